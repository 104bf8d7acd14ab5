"""How a benchmark is declared: a function that yields the rows of a table, and its columns."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from inspect import signature

import numpy as np
from threadpoolctl import threadpool_limits

Rows = Iterator[tuple]


class NotHereError(Exception):
    """What a benchmark needs is not on this machine."""


def benchmark(title: str, columns: str, threads: int | None = None) -> Callable:
    """Declare a function that yields rows; calling it prints them.

    The title may name arguments in braces. Columns are separated by ``|``, each with the format of
    its numbers: ``"table | seconds {:.2f}"``. ``threads`` limits those of libraries.
    """
    parts = [column.strip().partition(" {") for column in columns.split("|")]
    heads = tuple(head for head, _, _ in parts)
    forms = ["{" + form if form else "{}" for _, _, form in parts]

    def declare(rows_of: Callable[..., Rows]) -> Callable[..., None]:
        @wraps(rows_of)
        def measure(**options: object) -> None:
            given = signature(rows_of).bind(**options)
            given.apply_defaults()
            with warnings.catch_warnings(), threadpool_limits(threads):
                warnings.simplefilter("ignore")
                rows = [
                    tuple(_shown(value, form) for value, form in zip(row, forms, strict=True))
                    for row in rows_of(**options)
                ]
            _print(title.format(**given.arguments), [heads, *rows])

        measure.is_benchmark = True
        return measure

    return declare


def _shown(value: object, form: str) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "NO"
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "-"
    return value if isinstance(value, str) else form.format(value)


def _print(title: str, rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, tuple("-" * width for width in widths))
    print(f"\n{title}\n")
    for row in rows:
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(f"| {' | '.join(padded)} |", flush=True)


def and_mean(rows: Iterable[tuple], name: str = "mean") -> Rows:
    """Yield the rows, and the means of their columns of numbers."""
    rows = list(rows)
    yield from rows
    means = []
    for column in list(zip(*rows, strict=True))[1:]:
        values = [value for value in column if value is not None]
        is_text = any(isinstance(value, str) for value in values)
        means.append("" if is_text else np.nanmean(values))
    yield name, *means
