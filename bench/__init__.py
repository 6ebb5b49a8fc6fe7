"""Benchmarks: each module's ``run()`` gives rows of (what, measured, budget). `make bench` prints them all."""
