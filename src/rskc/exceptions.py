"""Errors and warnings with fields, so that each surface can phrase them for its reader.

Only ``SmallClusterWarning`` is public. The others are the classes that scikit-learn and Python lead
one to expect, ValueError and UserWarning, with fields.
"""

import sys
import warnings
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rskc.utils.wording import shortened

LONGEST_VALUE = 200
NO_OTHER_NAMES: Mapping[str, str] = MappingProxyType({})
# A call may pass through these on its way from the user's line to ours.
ON_THE_WAY = ("rskc", "sklearn", "joblib")


class Phrased(Exception):
    """A message about parameters: a template, and the values in it.

    In the template ``{n_clusters}`` is the name of a parameter, unless ``values`` has that name.
    """

    def __init__(self, template: str, **values: Any):
        self.template, self.values = template, values
        super().__init__(self.phrased())

    def phrased(self, names: Mapping[str, str] = NO_OTHER_NAMES) -> str:
        """Return the message with other names for parameters, such as the options of a command."""
        return self.template.format_map(KnownNames({**names, **self.values}))

    def __reduce__(self) -> Any:
        return type(self).__new__, (type(self), *self.args), dict(vars(self))


class ParameterError(Phrased, ValueError):
    """A parameter has a value that is not allowed; the message names both, and the remedy."""

    def __init__(self, parameter: str, value: Any, words: str, **values: Any):
        self.parameter, self.value = parameter, value
        is_scalar = type(value).__module__ == "numpy" and getattr(value, "shape", None) == ()
        shown = shortened(repr(value.item() if is_scalar else value), LONGEST_VALUE)
        super().__init__(f"{{{parameter}}}={{value}} {words}", value=shown, **values)


class FitWarning(Phrased, UserWarning):
    """A warning of a fit: its ``kind``, and the ``parameter`` that can remedy it, if any."""

    def __init__(self, kind: str, parameter: str | None, template: str, **values: Any):
        self.kind, self.parameter = kind, parameter
        super().__init__(template, **values)


class SmallClusterWarning(FitWarning):
    """Cases that are taken for outliers may be a small cluster.

    They are the smallest cluster of a solution with a larger objective, or a clump among the cases
    that are trimmed or flagged.
    """


class ColumnWarning(Phrased, UserWarning):
    """A column of a data frame holds numbers, but looks like ids or known classes."""


class OverflowedError(Phrased, ValueError):
    """The squares of the data overflow."""


class ComparisonError(Phrased, ValueError):
    """Two solutions, ``a`` and ``b``, are not about the same cases or features."""


class ClusterError(RuntimeError):
    """A Dask cluster, or what only it had, was lost."""


class KnownNames(dict):
    """Names of parameters; those that are not known are called what they are.

    Names that start with a dash are options of a command, and are written as one types them.
    """

    def with_value(self, name: str, value: Any) -> str:
        """Write a parameter and its value: ``trim='auto'``, or ``--trim auto``."""
        shown = self[name]
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
        if shown.startswith("-"):
            return f"{shown} {text}"
        return f"{shown}={value!r}" if isinstance(value, str) else f"{shown}={text}"

    def __missing__(self, name: str) -> str:
        return name


def warn_user(warning: Warning | str) -> None:
    """Warn at the line that called rskc, however many functions of its own lie between."""
    frame, level = sys._getframe(1), 2
    while (
        frame.f_back is not None
        and frame.f_globals.get("__name__", "").partition(".")[0] in ON_THE_WAY
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)


def unobserved_error(n_cases: int) -> ValueError:
    """Return the error about a table without a single cell that is observed."""
    where = "its only case" if n_cases == 1 else f"any of its {n_cases:,} cases"
    return ValueError(f"X has no observed cell in {where}; give it some data.")


def not_numpy(block: Any) -> TypeError:
    """Return the error about a block of Dask's that is no NumPy array."""
    dense = ": X.map_blocks(lambda block: block.toarray(), dtype=X.dtype)"
    remedy = dense if hasattr(block, "toarray") else ""
    kind = type(block).__name__
    return TypeError(f"X has blocks of type {kind}; they must be NumPy arrays{remedy}.")
