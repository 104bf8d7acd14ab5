"""Checks at the border. Each message names the parameter, its value and what is allowed."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any


def is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and not math.isnan(value)


def check_integer(
    name: str, value: Any, least: int, most: int | None = None, remedy: str = ""
) -> int:
    if is_integer(value) and value >= least and (most is None or value <= most):
        return int(value)
    bounds = f"an integer >= {least}" if most is None else f"an integer in [{least}, {most}]"
    raise ValueError(f"{name}={value!r} must be {bounds}{remedy}.")


def check_real(
    name: str, value: Any, low: float, below: float = math.inf, remedy: str = ""
) -> float:
    if is_real(value) and low <= value < below:
        return float(value)
    bounds = f"a number >= {low:g}" if below == math.inf else f"a number in [{low:g}, {below:g})"
    raise ValueError(f"{name}={value!r} must be {bounds}{remedy}.")


def check_choice(name: str, value: Any, allowed: tuple, remedy: str = "") -> None:
    if not any(type(value) is type(choice) and value == choice for choice in allowed):
        listed = ", ".join(map(repr, allowed))
        raise ValueError(f"{name}={value!r} must be one of {listed}{remedy}.")
