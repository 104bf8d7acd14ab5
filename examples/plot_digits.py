"""
Which pixels separate digits
============================

1,797 handwritten digits, each 8 x 8 pixels. The model finds ten clusters without the true digits,
and a weight for each pixel. Here features have a position, so the weights can be shown as an image.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from rskc import RobustSparseKMeans
from rskc.displays import SilhouetteDisplay, WeightsDisplay

digits = load_digits(as_frame=True)
X = digits.data
model = RobustSparseKMeans(10, trim=0.02, l1_bound=5, n_init=10, random_state=0).fit(X)

# %%
# The weights
# -----------
# Nothing was standardized: all pixels have the same unit, and one that hardly varies should not
# count as much as one that does. The columns on the left and right edge are nearly always white,
# and get no weight.

WeightsDisplay.from_estimator(model, n_top=15)

# %%
# Centers as images
# -----------------
# Pixels of weight 0 are gray: they do not influence the clusters. The title is the digit that is
# most frequent in the cluster, and its share.

figure, axes = plt.subplots(2, 6, figsize=(9, 3.6), layout="constrained")
weights = model.feature_weights_.reshape(8, 8)
panels = axes.ravel()
image = panels[0].imshow(weights, cmap="viridis")
panels[0].set_title("weights", fontsize=9)
seen = np.where(model.feature_weights_ > 0, model.cluster_centers_, np.nan).reshape(-1, 8, 8)
colors = plt.colormaps["Blues"].with_extremes(bad="#BBBBBB")
for k, ax in enumerate(panels[1:11]):
    counts = np.bincount(digits.target[model.labels_ == k], minlength=10)
    ax.imshow(seen[k], cmap=colors, vmin=0, vmax=16)
    ax.set_title(f"{k}: '{counts.argmax()}', {counts.max() / counts.sum():.0%}", fontsize=9)
for ax in panels:
    ax.set_axis_off()

# %%
# The silhouettes
# ---------------
# They show how much nearer a case is to its own center than to the next one. The longest bars are
# those of zeros and sixes, the clusters 0 and 7, which hold hardly anything else. The largest
# cluster, 4, mixes threes with others. Darker bars are outliers.

SilhouetteDisplay.from_estimator(model, X)

# %%
# The strangest digits
# --------------------
# Those farthest from their center, by the weighted distance.

strange = np.argsort(model.score_samples(X))[:8]
figure, axes = plt.subplots(1, 8, figsize=(9, 1.6), layout="constrained")
for ax, i in zip(axes, strange, strict=True):
    ax.imshow(digits.images[i], cmap="Greys", vmin=0, vmax=16)
    ax.set_title(f"case {i}: '{digits.target[i]}'", fontsize=8)
    ax.set_axis_off()

plt.show()
