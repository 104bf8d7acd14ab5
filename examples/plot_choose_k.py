"""
How many clusters?
==================

K-means returns as many clusters as it is asked for. Two criteria help to choose the number, each
with another idea of what a cluster is. The data have three clusters, in 50 of 200 features, and one
outlying cell.
"""

import matplotlib.pyplot as plt

from rskc import RobustSparseKMeans
from rskc.datasets import make_simulation
from rskc.displays import SearchDisplay
from rskc.selection import Clest, Stability

X = make_simulation(model=1, n_features=200, random_state=0).data
model = RobustSparseKMeans(trim=0.05, l1_bound=6, n_init=5)

# %%
# Clest
# -----
# *Can the clusters be predicted?* They are learned from two thirds of the cases, and the other
# cases are assigned to them; these are also clustered on their own, and both partitions are
# compared. Blue: the disagreement. Orange: the disagreement in data without clusters. Both are
# needed: a low blue curve alone says little, since with many clusters pairs are rarely together,
# and so rarely wrong.

clest = Clest(model, range(2, 6), n_splits=10, random_state=0).fit(X)
SearchDisplay.from_estimator(clest)

# %%
# Stability
# ---------
# *Are the clusters found again in half of the cases?* The worst cluster decides. The other curve is
# the agreement of two halves, which also sees cases that change between stable clusters.

stability = Stability(model, range(2, 6), random_state=0).fit(X)
SearchDisplay.from_estimator(stability)

# %%
# Where the criteria disagree, look at the clusters: two that lie close together may be predicted
# less well than their union, and still be two.

print(clest.table_[["n_clusters", "difference", "agreement", "n_below", "chosen"]].to_string())

plt.show()
