"""
How many features?
==================

The L1 bound decides how many features get weight. If it is too small, a few features separate the
clusters although others are informative too; if it is too large, noise contributes.
"""

import matplotlib.pyplot as plt

from rskc import RobustSparseKMeans
from rskc.datasets import make_simulation
from rskc.displays import SearchDisplay
from rskc.selection import GapL1, GridSearch

data = make_simulation(model=1, random_state=0)  # 50 features of 500 are informative
model = RobustSparseKMeans(3, trim=0.05, n_init=10, random_state=0)

# %%
# The path
# --------
# Each line is a feature, blue if it is informative. On the left a few share the weight; as the
# bound grows, more enter. Up to about 50 features the informative ones come first, and then the
# noise features enter together, in gray at the bottom: from there on, a larger bound changes
# nothing but the number of features.

path = GridSearch(model, l1_bounds=15, trims=0.05, random_state=0).fit(data.data)
ax = plt.subplots(layout="constrained")[1]
for informative, color in ((False, "silver"), (True, "C0")):
    weights = path.weights_[:, data.informative == informative]
    ax.plot(path.table_.l1_bound, weights, color=color, lw=0.8)
ax.set(xlabel="L1 bound", ylabel="weight")

# %%
# The gap
# -------
# The objective grows with the bound whether features are informative or not. So each column is
# permuted on its own, which keeps its values and its outlying cells and destroys the clusters, and
# the objectives are compared. The largest gap lies on a plateau where nearly all features have
# weight: the rule of one standard error takes the least bound that is nearly as good.

gap = GapL1(model, n_permutations=10, random_state=0).fit(data.data)
SearchDisplay.from_estimator(gap)

# %%
# It finds nearly all informative features, and hardly any other.

support = gap.best_estimator_.get_support()
true, false = (support & data.informative).sum(), (support & ~data.informative).sum()
print(f"{true} of 50 informative features, and {false} of 450 others")

plt.show()
