"""Choosing the number of clusters, the L1 bound and the trimming share.

Every search is used alike: ``Clest(estimator, ...).fit(X)`` leaves a table (``table_``), a decision
(here ``n_clusters_``) and a model fitted with it (``best_estimator_``). All share one runner:
parallel, with progress, and with a ``checkpoint`` from which a search that was stopped goes on.
"""

from rskc.selection.clest import Clest
from rskc.selection.gap import GapL1
from rskc.selection.path import FeaturePath, feature_path
from rskc.selection.settings import GridSearch, TrimCurves
from rskc.selection.stability import Stability
from rskc.selection.strength import PredictionStrength

__all__ = [
    "Clest",
    "FeaturePath",
    "GapL1",
    "GridSearch",
    "PredictionStrength",
    "Stability",
    "TrimCurves",
    "feature_path",
]


def __getattr__(name: str) -> None:
    if name == "GapK":
        raise AttributeError(
            "rskc.selection has no GapK any more: on designs with known clusters it was right once "
            "in 18 times; use Stability or Clest for the number of clusters."
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
