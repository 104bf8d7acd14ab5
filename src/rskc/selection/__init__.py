"""Choosing the number of clusters, the L1 bound and the trimming share.

Every search is used alike: ``Clest(estimator, ...).fit(X)`` leaves a table (``table_``), a decision
(here ``n_clusters_``) and a model fitted with it (``best_estimator_``). All share one runner:
parallel, with progress, and with a ``checkpoint`` from which a search that was stopped goes on.
"""

from rskc.selection.clest import Clest
from rskc.selection.gap import GapL1
from rskc.selection.grid import GridSearch
from rskc.selection.stability import Stability

__all__ = ["Clest", "GapL1", "GridSearch", "Stability"]
