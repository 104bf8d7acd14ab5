"""Run the measurements that are named, or all of them; ``raw`` and ``real`` read folders."""

import sys
from importlib import import_module
from pathlib import Path

NAMES = (
    "kmeans",
    "many",
    "blobs",
    "whole_fit",
    "passes",
    "scaling",
    "memory",
    "plan",
    "missing",
    "weights",
    "sparse",
    "answers",
    "selection",
    "choice",
    "cells",
    "number",
    "mixed",
    "mixed_number",
    "raw",
    "real",
    "explorer",
    "helpers",
    "blocks",
    "gpu",
)


def main() -> None:
    folders = [Path(word) for word in sys.argv[1:] if word not in NAMES and Path(word).is_dir()]
    chosen = [word for word in sys.argv[1:] if Path(word) not in folders] or NAMES
    for name in chosen:
        if name not in NAMES:
            sys.exit(f"benchmarks: {name!r} is not one of {', '.join(NAMES)}.")
        measure = import_module(f"benchmarks.{name}").main
        measure(folders) if name in ("raw", "real") else measure()


if __name__ == "__main__":
    main()
