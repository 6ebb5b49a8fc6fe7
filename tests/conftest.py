import os

# Before anything imports torch or transformers: one thread a test process, and no hub is asked.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("DAGSTER_DISABLE_TELEMETRY", "yes")
os.environ.pop("DAGSTER_HOME", None)
os.environ.pop("RETRICO_PROJECT", None)
