"""Pictures of a fitted model or search, as Display objects in the manner of scikit-learn.

Each display is made from a model, draws itself, and keeps its numbers and artists::

    from rskc.displays import SilhouetteDisplay

    display = SilhouetteDisplay.from_estimator(model, X)
    display.figure_.savefig("silhouette.png")

The searches of ``rskc.selection`` have displays too, which need no X::

    ClestDisplay.from_estimator(Clest(model).fit(X))

``display.plot(ax=...)`` draws the same numbers again, in axes of your own; give their figure
``layout="constrained"``, since legends and names stand beside the axes. matplotlib, the extra
``plot``, is imported when something is drawn and not before; no display calls ``plt.show``.
"""

from rskc.displays.cells import CellsDisplay
from rskc.displays.clest import ClestDisplay
from rskc.displays.clusters import ClusterDisplay
from rskc.displays.consensus import ConsensusDisplay
from rskc.displays.gap import GapDisplay
from rskc.displays.grid import GridDisplay
from rskc.displays.heatmap import HeatmapDisplay
from rskc.displays.outliers import OutlierDisplay
from rskc.displays.path import FeaturePathDisplay
from rskc.displays.selected import SelectionDisplay
from rskc.displays.silhouette import SilhouetteDisplay
from rskc.displays.stability import StabilityDisplay
from rskc.displays.strength import StrengthDisplay
from rskc.displays.trimming import TrimCurvesDisplay
from rskc.displays.weights import WeightsDisplay

__all__ = [
    "CellsDisplay",
    "ClestDisplay",
    "ClusterDisplay",
    "ConsensusDisplay",
    "FeaturePathDisplay",
    "GapDisplay",
    "GridDisplay",
    "HeatmapDisplay",
    "OutlierDisplay",
    "SelectionDisplay",
    "SilhouetteDisplay",
    "StabilityDisplay",
    "StrengthDisplay",
    "TrimCurvesDisplay",
    "WeightsDisplay",
]
