"""Robust and sparse K-means clustering."""

from importlib.metadata import version

from rskc._complaints import SmallClusterWarning
from rskc._show_versions import show_versions
from rskc.estimator import RobustSparseKMeans

__version__ = version("rskc")

__all__ = ["RobustSparseKMeans", "SmallClusterWarning", "__version__", "show_versions"]
