"""Measurements, each against a rival in the same process: ``python -m benchmarks [name ...]``."""
