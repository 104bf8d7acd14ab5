"""
How much to trim?
=================

With too little trimming outlying cases form clusters; with too much, small clusters are lost. The
distances of the cases tell how many are outlying, and a grid of fits shows what more or less
trimming changes.
"""

import matplotlib.pyplot as plt
import numpy as np

from rskc import RobustSparseKMeans
from rskc.datasets import make_simulation
from rskc.displays import OutlierDisplay, SearchDisplay
from rskc.selection import GridSearch

X = make_simulation(random_state=0, n_features=200).data.copy()
rng = np.random.default_rng(0)
outlying = [3, 22, 35, 41]
X[outlying, [150, 160, 170, 180]] = rng.choice([-1, 1], 4) * [20, 25, 30, 35]

# %%
# Four of 60 cases are outlying
# -----------------------------
# A fit with ``trim="auto"``, the default, goes by the distances of the cases: those that are much
# farther from their centers than the others, in the features with weight or in all, are trimmed.

model = RobustSparseKMeans(3, trim="auto", l1_bound=6, n_init=10, random_state=0).fit(X)
print("outlying:", outlying)
print("trimmed:", np.flatnonzero(model.trimmed_))
OutlierDisplay.from_estimator(model, X)

# %%
# What more or less trimming changes
# ----------------------------------
# A true partition is found with many settings, an accidental one with few. The consensus of a
# setting is the agreement of its partition with those of all other settings with the same number
# of clusters. Three clusters are found with any trimming at all; four have to split a true one, and
# how they split it depends on which cases are left.

trims = np.arange(10) / 60
curves = GridSearch(model, [3, 4], None, trims, random_state=0).fit(X)
SearchDisplay.from_estimator(curves)

# %%
# The number of features is informative as well: outlying cells draw weight.

print(curves.table_[["n_clusters", "trim", "n_features", "n_outliers", "consensus"]].to_string())

# %%
# Together with the bound
# -----------------------
# The same for several bounds: with three clusters and the outlying cases trimmed, the bound matters
# little as long as it leaves some ten features.

grid = GridSearch(model, [3], 6, [0, 2 / 60, 4 / 60, 6 / 60], random_state=0).fit(X)
SearchDisplay.from_estimator(grid)

plt.show()
