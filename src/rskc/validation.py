"""Checks at the border. Each message names the parameter, its value and what is allowed."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from rskc.arrays import is_dask, is_on_device, to_numpy
from rskc.engines import Engine
from rskc.engines.threads import usable_threads


def is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_real(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, Real) and not math.isnan(value)


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


def check_wanted(n_features: Any, l1_bound: Any, p: int) -> int | None:
    """The number of features that is wanted instead of a bound, if any."""
    if n_features is None:
        return None
    if l1_bound is not None and l1_bound != "auto":
        raise ValueError(
            f"n_features={n_features!r} and l1_bound={l1_bound!r} are two ways to say the same; "
            "give one of them only."
        )
    return check_integer("n_features", n_features, 1, p)


def check_bound(l1_bound: Any, n_features: Any, p: int) -> float | None:
    """The bound for p features; None for no bound, or a number of features instead."""
    root = float(np.sqrt(p))
    if n_features is not None or l1_bound is None:
        return None
    if isinstance(l1_bound, str) and l1_bound == "auto":
        return 1 + (root - 1) / 2
    if isinstance(l1_bound, str) or not is_real(l1_bound) or l1_bound < 1:
        raise ValueError(
            f"l1_bound={l1_bound!r} must be a number in [1, {root:.3g}] for {p} features, "
            'or "auto"; use None to keep all of them equal.'
        )
    return float(min(l1_bound, root))


def check_distinct(engine: Engine, n_clusters: int) -> None:
    distinct = engine.distinct(n_clusters)
    if distinct < n_clusters:
        raise ValueError(
            f"n_clusters={n_clusters} is more than the {distinct} distinct cases among the "
            f"n_samples={engine.n_cases}; lower n_clusters."
        )


def check_centers(init: Any, K: int, p: int) -> np.ndarray:
    try:
        centers = np.asarray(centers_to_numpy(init), dtype=np.float64)
    except (TypeError, ValueError):
        centers = np.empty(0)
    if centers.shape == (K, p) and np.isfinite(centers).all():
        return centers
    raise ValueError(
        "init must name a kind of start or hold finite centers of shape (n_clusters, n_features) = "
        f"({K}, {p}); got {' '.join(repr(init).split()):.60}."
    )


def centers_to_numpy(init: Any) -> Any:
    """Return ``init`` as it is, or as NumPy's if it is on a device or in blocks of Dask."""
    if not (is_dask(init) or hasattr(init, "__array_namespace__") or is_on_device(init)):
        return init
    return to_numpy(init.detach() if hasattr(init, "detach") else init)


def check_finite(engine: Engine, solution: Any) -> None:
    if not (np.isfinite(solution.objective) and np.isfinite(solution.inertia)):
        raise squares_overflow(engine)


def squares_overflow(engine: Engine) -> ValueError:
    return ValueError(
        f"The squares of X overflow: it has cells of up to {engine.largest_cell():.3g}. Rescale "
        "its columns, or raise trim if these cells are outlying."
    )


def check_n_threads(n_threads: Any) -> int:
    """Return how many threads to use, None for all; no more than there are."""
    if n_threads is not None:
        n_threads = check_integer("n_threads", n_threads, 1, remedy=" or None")
    return usable_threads(n_threads)


def check_seed(random_state: Any) -> np.random.RandomState:
    try:
        return check_random_state(random_state)
    except ValueError:
        raise ValueError(
            f"random_state={random_state!r} must be None, an integer in [0, 2**32) or a "
            "RandomState."
        ) from None
