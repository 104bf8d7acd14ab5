"""Robust and sparse K-means clustering.

The names below are loaded when they are first used: importing scikit-learn takes a second where
pandas is installed, and ``import rskc`` a tenth of that.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rskc.estimator import RobustSparseKMeans
    from rskc.exceptions import SmallClusterWarning
    from rskc.explorer import explore
    from rskc.files import load, save
    from rskc.preprocessing import ColumnStandardizer, Preparer, RowStandardizer
    from rskc.versions import show_versions

__version__ = version("rskc")

__all__ = [
    "ColumnStandardizer",
    "Preparer",
    "RobustSparseKMeans",
    "RowStandardizer",
    "SmallClusterWarning",
    "__version__",
    "explore",
    "load",
    "save",
    "show_versions",
]

_HOMES = {
    "ColumnStandardizer": "rskc.preprocessing",
    "Preparer": "rskc.preprocessing",
    "RobustSparseKMeans": "rskc.estimator",
    "RowStandardizer": "rskc.preprocessing",
    "SmallClusterWarning": "rskc.exceptions",
    "explore": "rskc.explorer",
    "load": "rskc.files",
    "save": "rskc.files",
    "show_versions": "rskc.versions",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'rskc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
