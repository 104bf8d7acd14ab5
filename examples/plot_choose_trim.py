"""
How much to trim?
=================

With too little trimming outlying cases form clusters; with too much, small clusters are lost. The
distances of the cases tell how many are outlying, and curves show what more or less trimming
changes. A fit with ``trim="auto"``, the default, needs neither.
"""

import matplotlib.pyplot as plt
import numpy as np

from rskc import RobustSparseKMeans
from rskc.datasets import make_simulation
from rskc.displays import GridDisplay, OutlierDisplay, TrimCurvesDisplay
from rskc.selection import GridSearch, TrimCurves

X = make_simulation(random_state=0, n_features=200).data.copy()
rng = np.random.default_rng(0)
outlying = [3, 22, 35, 41]
X[outlying, [150, 160, 170, 180]] = rng.choice([-1, 1], 4) * [20, 25, 30, 35]

# %%
# Four of 60 cases are outlying
# -----------------------------
# The legend tells how many cases are outlying, and the rings mark the least share that trims as
# many. Each point is the share of pairs of cases that change, compared with the next smaller
# trimming. Four or five clusters have to split a true one, and how they split it depends on which
# cases are left: they keep changing.

model = RobustSparseKMeans(3, l1_bound=6, n_init=10, random_state=0)
trims = np.arange(10) / 60
curves = TrimCurves(model, [2, 3, 4, 5], trims, random_state=0).fit(X)
TrimCurvesDisplay.from_estimator(curves)

# %%
# The number of features is informative as well: outlying cells draw weight.

TrimCurvesDisplay.from_estimator(curves, y="n_features")

# %%
# Why the curves do not decide
# ----------------------------
# A partition may stay as it is long before all outlying cases are trimmed: too few are left for a
# cluster of their own. They still distort centers and weights. And it may go on changing when all
# are trimmed, as with four clusters here. So the distances decide.

print("outlying:", outlying)
print("trimmed:", np.flatnonzero(curves.best_estimator_.trimmed_))
OutlierDisplay.from_estimator(curves.best_estimator_, X)

# %%
# Together with the bound
# -----------------------
# A true partition is found with many settings, an accidental one with few. The consensus of a
# setting is the agreement of its partition with those of all other settings with the same number of
# clusters.

grid = GridSearch(model, [2, 3, 4], 5, [0, 2 / 60, 4 / 60, 6 / 60], random_state=0).fit(X)
GridDisplay.from_estimator(grid)

plt.show()
