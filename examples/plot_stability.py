"""
How sure are the clusters?
==========================

Halves of the cases are clustered again and again. Whatever is found again in most of them deserves
more trust: a number of clusters, a cluster, the place of a case, a feature. One search answers all
of these. The data have three clusters, in 50 of 200 features, and one outlying cell.
"""

import matplotlib.pyplot as plt
import numpy as np

from rskc import RobustSparseKMeans
from rskc.datasets import make_simulation
from rskc.displays import ClusterDisplay, SearchDisplay
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
# The share of the half-samples that give two cases the same cluster. Dark squares: cases that are
# always together. A pale line within a square is a case that is sometimes elsewhere.

stability, model = search.case_stability_, search.best_estimator_
order = np.lexsort((-stability, model.labels_))
fig, ax = plt.subplots(figsize=(5, 5), layout="constrained")
ax.imshow(search.consensus_matrix()[np.ix_(order, order)], cmap="Blues", vmin=0, vmax=1)
ax.set(xlabel="case, by cluster and stability", ylabel="case, by cluster and stability")
print(f"Stability of each cluster: {search.cluster_stability_.round(2)}")

# %%
# In the plot of the clusters, with rings around the cases that change their cluster in one of ten
# half-samples or more.

clusters = ClusterDisplay.from_estimator(model, X)
places = clusters.positions[stability < 0.9]
clusters.ax_.scatter(*places.T, s=80, facecolors="none", edgecolors="black")

# %%
# Which features
# --------------
# The share of the half-samples in which a feature differs between the clusters. Few reach 75% by
# chance, and there is a bound on their number.

shares = np.sort(search.selection_probabilities_)[::-1]
fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.bar(np.arange(len(shares)), shares, width=1)
ax.axhline(0.75, color="black", linestyle="--")
ax.set(xlabel="feature, the most often selected first", ylabel="share of the half-samples")
n_selected, bound = np.count_nonzero(shares >= 0.75), search.selection_bound(0.75)
print(f"{n_selected} features selected, at most {bound:.2g} of them expected by chance")

plt.show()
