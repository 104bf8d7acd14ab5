"""Pictures of a fitted model or search, as Display objects in the manner of scikit-learn.

Each display is made from a model, draws itself, and keeps its numbers and artists::

    from rskc.displays import SilhouetteDisplay

    display = SilhouetteDisplay.from_estimator(model, X)
    display.figure_.savefig("silhouette.png")

The searches of ``rskc.selection`` have one display, which needs no X::

    SearchDisplay.from_estimator(Clest(model).fit(X))

``display.plot(ax=...)`` draws the same numbers again, in axes of your own; give their figure
``layout="constrained"``, since legends and names stand beside the axes. matplotlib, the extra
``plot``, is imported when something is drawn and not before; no display calls ``plt.show``.
"""

from rskc.displays.cells import CellsDisplay
from rskc.displays.clusters import ClusterDisplay
from rskc.displays.consensus import ConsensusDisplay
from rskc.displays.heatmap import HeatmapDisplay
from rskc.displays.outliers import OutlierDisplay
from rskc.displays.search import SearchDisplay
from rskc.displays.selected import SelectionDisplay
from rskc.displays.silhouette import SilhouetteDisplay
from rskc.displays.weights import WeightsDisplay

__all__ = [
    "CellsDisplay",
    "ClusterDisplay",
    "ConsensusDisplay",
    "HeatmapDisplay",
    "OutlierDisplay",
    "SearchDisplay",
    "SelectionDisplay",
    "SilhouetteDisplay",
    "WeightsDisplay",
]
