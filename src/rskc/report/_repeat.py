"""How the result came about, and how to get it again."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from rskc.report._facts import Facts
from rskc.report._words import count, number, shown
from rskc.versions import package_version, passes_facts

PACKAGES = ("rskc", "numpy", "scipy", "scikit-learn")
# Parameters that change how a fit runs and not what it finds.
HOW = ("n_threads", "verbose")
LABELS = {
    "command": "Command",
    "file": "File",
    "sha256": "SHA-256 of the file",
    "standardization": "Standardization",
    "date": "Date",
}
MEANINGS = {
    "n_clusters": "number of clusters",
    "trim": "share of the cases that each of the two rules trims",
    "l1_bound": "bound on the sum of the weights: the lower, the fewer features",
    "n_features": "wanted number of features",
    "init": "how starting centers are found",
    "n_init": "number of restarts",
    "max_iter": "most iterations",
    "tol": "change at which iterations end",
    "outlier_cutoff": "so many MADs above the median distance make an outlier",
    "random_state": "seed",
}
LONGEST = 2000


def settings_of(facts: Facts, run: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters, particulars of the run, versions, and a piece of Python."""
    model = facts.model
    return {
        "parameters": [
            {"name": name, "value": _brief(value), "meaning": MEANINGS.get(name, "")}
            for name, value in _parameters(model)
        ],
        "found": list(_found(facts)),
        "run": [
            {"label": LABELS.get(key, shown(key, 60)), "value": _in_full(value)}
            for key, value in run.items()
        ],
        "versions": versions(),
        "seeded": model.random_state is not None,
        "snippet": snippet(facts, run),
    }


def _in_full(value: Any) -> str:
    return shown(value, LONGEST)


def _parameters(model: Any) -> Iterator[tuple[str, Any]]:
    known = model.get_params(deep=False)
    for name in inspect.signature(type(model)).parameters:
        if name in known and name not in HOW:
            yield name, known[name]


def told(value: Any) -> str:
    """A parameter as one would write it; arrays and functions by what they are."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray) or (isinstance(value, list) and value):
        return f"an array of shape {np.shape(value)}"
    if callable(value):
        return shown(f"the function {getattr(value, '__qualname__', type(value).__name__)}", 80)
    return shown(repr(value), 80)


def _brief(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else told(value)


def _found(facts: Facts) -> Iterator[dict[str, str]]:
    """What the parameters led to."""
    model, n = facts.model, facts.n
    if model.l1_bound_ is not None:
        yield {"label": "L1 bound used", "value": number(model.l1_bound_, 4)}
    trimmed = count(int(model.n_trim_), "case")
    yield {"label": "Trimmed by each rule", "value": f"{trimmed} of {n:,}"}
    yield {"label": "Outlier threshold", "value": number(model.outlier_threshold_, 4)}
    yield {"label": "Objective", "value": number(model.objective_, 6)}
    yield {"label": "Iterations", "value": f"{int(model.n_iter_)}"}


def versions() -> dict[str, str]:
    """Versions of what the numbers depend on."""
    packages = {name: package_version(name) for name in PACKAGES}
    return {**packages, "python": sys.version.split()[0], "passes": passes_facts()["passes"]}


def snippet(facts: Facts, run: Mapping[str, Any]) -> str:
    """Python that repeats the run, given the data."""
    shape = f"{count(facts.n, 'case')} x {count(facts.p, 'feature')}"
    known = [(key, run[key]) for key in ("file", "standardization") if run.get(key)]
    lines = [
        "from rskc import RobustSparseKMeans",
        "from rskc.report import make_report",
        "",
        *(f"# {key}: {shown(value, 100)}" for key, value in known),
        f"X = ...  # your table of {shape}",
        *_defined(facts.model),
        f"model = RobustSparseKMeans({', '.join(_arguments(facts.model))})",
        "model.fit(X)",
        'make_report(model, X).save("report.html")',
    ]
    return "\n".join(lines)


def _arguments(model: Any) -> Iterator[str]:
    """The parameters that differ from their defaults, in Python."""
    defaults = inspect.signature(type(model)).parameters
    for name, value in _parameters(model):
        if name == "n_clusters":
            yield f"{value}"
        elif _is_simple(value) and value != defaults[name].default:
            yield f"{name}={told(value)}"
        elif not _is_simple(value):
            yield f"{name}={name}"


def _defined(model: Any) -> Iterator[str]:
    """A line for each parameter that cannot be written in a few characters."""
    for name, value in _parameters(model):
        if not _is_simple(value):
            yield f"{name} = ...  # {told(value)}"


def _is_simple(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, np.generic))
