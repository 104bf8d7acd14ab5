"""Run the measurements that are named, or all of them."""

import sys
from importlib import import_module

NAMES = (
    "kmeans",
    "many",
    "blobs",
    "whole_fit",
    "passes",
    "scaling",
    "memory",
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
    "explorer",
    "helpers",
    "blocks",
    "gpu",
)


def main() -> None:
    chosen = sys.argv[1:] or NAMES
    for name in chosen:
        if name not in NAMES:
            sys.exit(f"benchmarks: {name!r} is not one of {', '.join(NAMES)}.")
        import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
