"""Python that repeats a fit, for pages that say how they were made (internal)."""

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rskc.utils.wording import cleaned, count

LONGEST = 2000
# Parameters that change how a fit runs and not what it finds.
HOW = ("n_threads", "device", "verbose")


class Snippet(NamedTuple):
    """The lines before a model is made, and the line that makes it."""

    imports: list[str]
    lines: list[str]  # from the file to X, and what else must be defined
    model: str
    fit: str
    reader: bool  # whether the lines read a file, as ``table``


def parameters_of(model: Any) -> dict[str, Any]:
    """Return the parameters that decide what a fit finds, in the order of the signature."""
    known = model.get_params(deep=False)
    names = [name for name in inspect.signature(type(model)).parameters if name in known]
    return {name: known[name] for name in names if name not in HOW}


def snippet_of(model: Any, n: int, p: int, run: Mapping[str, Any], weights: Any) -> Snippet:
    """Write the Python that fits a model to n cases by p features, read as ``run`` says.

    ``weights`` are those of the cases, None if they have none.
    """
    defaults = inspect.signature(type(model)).parameters
    arguments, defined = [], []
    for name, value in parameters_of(model).items():
        if value is not None and not isinstance(value, (str, int, float, np.generic)):
            defined.append(f"{name} = ...  # {in_python(value)}")
            arguments.append(f"{name}={name}")
        elif name == "n_clusters":
            arguments.append(f"{value}")
        elif value != defaults[name].default:
            arguments.append(f"{name}={in_python(value)}")
    known = [(key, run[key]) for key in ("file", "standardization") if run.get(key)]
    standardizer, reader = cleaned(run.get("standardizer", ""), 100), run.get("reader")
    names = sorted(filter(None, ["RobustSparseKMeans", standardizer.partition("(")[0]]))
    read = [f"X = ...  # your table of {count(n, 'case')} x {count(p, 'feature')}"]
    if reader:
        read = [f"table = {cleaned(reader, LONGEST)}", "X = table.data"]
    if standardizer:
        frames = '.set_output(transform="pandas")' if reader else ""
        read.append(f"X = {standardizer}{frames}.fit_transform(X)")
    imports = [f"from rskc import {', '.join(names)}"]
    imports += ["from rskc.files import read_table"] * bool(reader)
    comments = [f"# {key}: {cleaned(value, 100)}" for key, value in known]
    made = f"model = RobustSparseKMeans({', '.join(arguments)})"
    given = "" if weights is None else f", sample_weight={'table.weights' if reader else '...'}"
    lines = [*comments, *read, *defined]
    return Snippet(imports, lines, made, f"model.fit(X{given})", bool(reader))


def in_python(value: Any) -> str:
    """Write a parameter as in Python; arrays and functions by what they are."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray) or (isinstance(value, list) and value):
        return f"an array of shape {np.shape(value)}"
    if isinstance(value, Mapping):
        return f"a mapping of {count(len(value), 'group')} to features"
    if callable(value):
        return cleaned(f"the function {getattr(value, '__qualname__', type(value).__name__)}", 80)
    return cleaned(repr(value), 80)
