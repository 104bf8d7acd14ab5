"""
How many features?
==================

The L1 bound decides how many features get weight. Too small, and clusters are told apart by a few
features although others know more; too large, and noise has a say.
"""

import matplotlib.pyplot as plt

from rskc import RobustSparseKMeans
from rskc.datasets import make_simulation
from rskc.displays import FeaturePathDisplay, GapDisplay
from rskc.selection import GapL1, feature_path

outlying = make_simulation(model=1, random_state=0)  # 50 features of 500 tell
model = RobustSparseKMeans(3, trim=0.05, n_init=10, random_state=0)

# %%
# The path
# --------
# Each line is a feature. On the left a few share the weight; as the bound grows, more come in. Up
# to about 50 features those that tell are ahead of all others, and then the noise comes in as one
# gray flood, at the bottom: from there on, a larger bound changes nothing but the number of
# features.

path = feature_path(model, outlying.data)
FeaturePathDisplay.from_estimator(path)

# %%
# The gap
# -------
# The objective grows with the bound whether features tell or not. So each column is permuted on its
# own, which keeps its values and its outlying cells and destroys the clusters, and the objectives
# are compared. The largest gap lies on a plateau where nearly all have weight: the rule of one
# standard error takes the least bound that is nearly as good.

gap = GapL1(model, n_permutations=10, random_state=0).fit(outlying.data)
GapDisplay.from_estimator(gap)

# %%
# What was found by it: nearly all the features that tell, and hardly any other.

support = gap.best_estimator_.get_support()
true, false = (support & outlying.informative).sum(), (support & ~outlying.informative).sum()
print(f"{true} of 50 features that tell, and {false} of 450 that do not")

plt.show()
