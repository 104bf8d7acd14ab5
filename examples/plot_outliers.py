"""
Outlying cases, and why two distances judge them
================================================

The paper's masking example: 300 cases, three clusters in the first two features, and three cases
with outlying cells in noise features.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from rskc import RobustSparseKMeans, SmallClusterWarning
from rskc.datasets import make_masking
from rskc.displays import ClusterDisplay, OutlierDisplay, WeightsDisplay

masking = make_masking(random_state=0)
X = masking.data
settings = {"n_clusters": 3, "l1_bound": 1.4, "random_state": 0}

# %%
# Nothing trimmed
# ---------------
# Three cases of 300 are enough: if they form a cluster, the features with outlying cells have the
# largest between-cluster sum of squares. So these features get the weight, and the three cases a
# cluster.

with warnings.catch_warnings():
    warnings.simplefilter("ignore", SmallClusterWarning)
    naive = RobustSparseKMeans(trim=0, **settings).fit(X)
WeightsDisplay.from_estimator(naive)
print("sizes of the clusters:", np.bincount(naive.labels_))

# %%
# 2% trimmed
# ----------
# With trimming, the weights go to the two informative features.

model = RobustSparseKMeans(trim=0.02, **settings).fit(X)
WeightsDisplay.from_estimator(model)

# %%
# This is masking: measured in these two features, the outlying cases 0, 1 and 2 are ordinary. A
# rule that looks at the weighted distance alone would keep them, and they would draw the weights
# back. The unweighted distance shows them: they lie on top of the picture, beyond its threshold.

# sphinx_gallery_thumbnail_number = 3
OutlierDisplay.from_estimator(model, X)

# %%
# Trimmed is not the same as outlying. Trimming a given share is a precaution and takes its share
# whether there are outlying cases or not; an outlier is farther from its center than is likely by
# chance, in the features with weight or in all features. With ``trim="auto"``, the default, the
# outlying cases are those that are left out. In the features with weight the three cases are
# ordinary, and belong to clusters.

print("trimmed: ", np.flatnonzero(model.trimmed_))
print("outliers:", np.flatnonzero(model.outliers_))
ClusterDisplay.from_estimator(model, X)

# %%
# New cases
# ---------
# The thresholds hold for new cases: ``is_outlier`` applies them, and ``score_samples`` returns
# minus the distance that is the more outlying of the two.

new = np.array([[2, 2, 0, 0, 0], [9, -9, 0, 0, 0]])
print(model.is_outlier(new), -model.score_samples(new))

plt.show()
