"""
How many clusters?
==================

K-means gives as many clusters as it is asked for. Three ways to ask back, each with another idea of
what a cluster is. The data have three, in 50 of 200 features, and one outlying cell.
"""

import matplotlib.pyplot as plt

from rskc import RobustSparseKMeans
from rskc.datasets import make_simulation
from rskc.displays import ClestDisplay, GapDisplay, StrengthDisplay
from rskc.selection import Clest, GapK, PredictionStrength

X = make_simulation(model=1, n_features=200, random_state=0).data
model = RobustSparseKMeans(trim=0.05, l1_bound=6, n_init=5)

# %%
# Clest
# -----
# *Can they be foreseen?* Clusters are learned from two thirds of the cases, and the others are put
# to them; if these are clustered on their own, does the same come out? Blue: how often not. Gray:
# how often not in data without clusters. It takes both: a low blue alone says little, for with
# many clusters pairs are rarely together, and so rarely wrong.

clest = Clest(model, range(2, 6), n_splits=10, random_state=0).fit(X)
ClestDisplay.from_estimator(clest)

# %%
# Prediction strength
# -------------------
# The same idea, and stricter: it is as strong as the weakest of the clusters. One cluster is always
# foreseen, and the largest number above the threshold is taken.

strength = PredictionStrength(model, range(1, 6), n_splits=10, random_state=0).fit(X)
StrengthDisplay.from_estimator(strength)

# %%
# The gap
# -------
# *Are they tighter than by chance?* The within sum of squares falls with every further cluster; the
# gap is how much more it has fallen than in data without clusters. No cases are held back, so it
# can be used where there are few.

gap = GapK(model, range(1, 6), n_references=10, random_state=0).fit(X)
GapDisplay.from_estimator(gap)

# %%
# Where they disagree, look at the clusters: two that lie close together may be foreseen less well
# than their union, and still be two.

print(clest.table_[["n_clusters", "difference", "agreement", "p_value", "chosen"]].to_string())

plt.show()
