"""Timing two things side by side."""

import time
from collections.abc import Callable


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def best_of(repeats: int, *works: Callable[[], object]) -> list[float]:
    """Least seconds of each, the repeats taken in turn so that noise affects all alike."""
    for work in works:
        work()
    rounds = [[seconds(work) for work in works] for _ in range(repeats)]
    return [min(column) for column in zip(*rounds, strict=True)]


def print_table(title: str, header: tuple, rows: list[tuple]) -> None:
    print(f"\n{title}\n")
    cells = [header, *[tuple(str(cell) for cell in row) for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    for number, row in enumerate(cells):
        print("| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |")
        if number == 0:
            print("|" + "|".join("-" * (w + 2) for w in widths) + "|", flush=True)


def times(ratio: float) -> str:
    return f"{ratio:.1f}x"
