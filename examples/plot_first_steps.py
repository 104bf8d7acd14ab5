"""
First steps
===========

A table of 150 cases and 600 features. Three clusters differ in twelve of the features, some
strongly and some weakly; the other 588 are noise. A few cells are outlying, for instance because a
decimal point was lost.

Three pictures answer three questions: which cases belong together, which features matter, and which
cases to distrust.

To keep the last figure as a file: ``python examples/plot_first_steps.py first-steps.png``.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

from rskc import RobustSparseKMeans
from rskc.displays import ClusterDisplay, OutlierDisplay, WeightsDisplay
from rskc.metrics import classification_error_rate

rng = np.random.default_rng(2)
truth = np.repeat([0, 1, 2], 50)
strength = np.linspace(2.0, 0.8, 12)
X = rng.normal(size=(150, 600))
X[:, :12] += np.array([[-1, 1], [0, -1], [1, 1]])[truth][:, np.arange(12) % 2] * strength
outlying = [7, 61, 112, 140]
X[outlying, [200, 0, 250, 299]] = [60, -25, 70, 65]

# %%
# K-means treats all 600 features alike. The 588 noise features drown the twelve others, and an
# outlying cell is so far from everything that a cluster of its own lowers the within sum of
# squares.

plain = KMeans(3, n_init=20, random_state=0).fit(X)
print(f"K-means: {classification_error_rate(plain.labels_, truth):.0%} of the pairs are wrong")

# %%
# Robust and sparse K-means weights the features while it clusters, and trims the cases that are
# farthest from their center, here 5% of them: they get a label, but do not contribute to centers
# and weights.

model = RobustSparseKMeans(n_clusters=3, trim=0.05, n_features=12, random_state=0).fit(X)
print(f"rskc: {classification_error_rate(model.labels_, truth):.0%} of the pairs are wrong")

# %%
# Which cases belong together
# ---------------------------
# The cases in the plane that shows most of the weighted distances. An outlying cell in a feature
# without weight does no harm: of the outlying cases, only 61 lies apart, on the edge.

ClusterDisplay.from_estimator(model, X)

# %%
# Which features matter
# ---------------------
# The weights are roughly in the true order, strong features first; noise features have none.

WeightsDisplay.from_estimator(model)

# %%
# Which cases to distrust
# -----------------------
# Two distances judge a case. Those on the right are far in the features with weight, as case 61 is;
# those on top are far in all features together, and would draw weight to a noise feature. Beyond a
# line a case is an outlier.

OutlierDisplay.from_estimator(model, X, n_names=4)

# %%
# All in one figure
# -----------------

figure = plt.figure(figsize=(15, 4.4), layout="constrained")
axes = figure.subplots(1, 3, width_ratios=[1.15, 0.8, 1])
ClusterDisplay.from_estimator(model, X, ax=axes[0])
WeightsDisplay.from_estimator(model, ax=axes[1])
OutlierDisplay.from_estimator(model, X, n_names=4, ax=axes[2])
questions = "Which cases belong together", "Which features matter", "Which cases to distrust"
for ax, words in zip(axes, questions, strict=True):
    ax.set_title(words, loc="left", fontsize=13, fontweight="bold")
axes[2].legend(loc="lower right", fontsize=8, framealpha=0.9)

if __name__ == "__main__" and len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=110)
else:
    plt.show()
