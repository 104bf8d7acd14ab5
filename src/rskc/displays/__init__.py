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

from rskc.displays.cases import ClusterDisplay, OutlierDisplay, SilhouetteDisplay
from rskc.displays.features import WeightsDisplay
from rskc.displays.search import SearchDisplay
from rskc.displays.tables import CellsDisplay, HeatmapDisplay

__all__ = [
    "CellsDisplay",
    "ClusterDisplay",
    "HeatmapDisplay",
    "OutlierDisplay",
    "SearchDisplay",
    "SilhouetteDisplay",
    "WeightsDisplay",
]
