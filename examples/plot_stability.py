"""
How sure are the clusters?
==========================

Halves of the cases are clustered again and again. Whatever is found again in most of them deserves
more trust: a number of clusters, a cluster, the place of a case, a feature. One search answers all
of these. The data have three clusters, in 50 of 200 features, and one outlying cell.
"""

import matplotlib.pyplot as plt

from rskc import RobustSparseKMeans
from rskc.datasets import make_simulation
from rskc.displays import ClusterDisplay, ConsensusDisplay, SearchDisplay, SelectionDisplay
from rskc.selection import Stability

X = make_simulation(model=1, n_features=200, random_state=0).data
search = Stability(RobustSparseKMeans(), range(2, 7), random_state=0, progress=False)
search.fit(X)

# %%
# How many clusters
# -----------------
# Blue: the stability of the least stable cluster. One cluster too many splits a true one, each
# time in another way, and the curve falls. Orange: how far the two halves of a split agree.

SearchDisplay.from_estimator(search)

# %%
# Which clusters, and which cases
# -------------------------------
# Dark squares: cases that are always together. A pale line within a square is a case that is
# sometimes elsewhere.

ConsensusDisplay.from_estimator(search)
print(f"Stability of each cluster: {search.cluster_stability_.round(2)}")

# %%
# The same in the plot of the clusters: doubtful cases are pale.

ClusterDisplay.from_estimator(search.best_estimator_, X, stability=search.case_stability_)

# %%
# Which features
# --------------
# The share of the half-samples in which a feature differs between the clusters. Few reach 75% by
# chance; the title has a bound on them.

SelectionDisplay.from_estimator(search)

plt.show()
