"""
First steps
===========

A table of 150 cases and 600 features. Three clusters differ in twelve of the features, some
strongly and some hardly; the other 588 are noise. And a few cells are outlying, as cells are when a
comma was lost.

Three questions, three pictures: who belongs together, which features tell, which cases to distrust.

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
# K-means looks at all 600 features alike. The 588 that are noise drown the twelve that are not,
# and an outlying cell is a long way from everything: it pays to give it a cluster of its own.

plain = KMeans(3, n_init=20, random_state=0).fit(X)
print(f"K-means: {classification_error_rate(plain.labels_, truth):.0%} of the pairs are wrong")

# %%
# Robust and sparse K-means weighs the features while it clusters, and trims the cases that are
# farthest from their center, here 5% of them: they get a label, and have no say.

model = RobustSparseKMeans(n_clusters=3, trim=0.05, n_features=12, random_state=0).fit(X)
print(f"rskc: {classification_error_rate(model.labels_, truth):.0%} of the pairs are wrong")

# %%
# Who belongs together
# --------------------
# The cases in the plane that shows most of the weighted distances. An outlying cell in a feature
# without weight does no harm: of the outlying cases, only 61 stands apart, on the edge.

ClusterDisplay.from_estimator(model, X)

# %%
# Which features tell
# -------------------
# The weights are about in the order of the truth, strong features first; none went to noise.

WeightsDisplay.from_estimator(model)

# %%
# Which cases to distrust
# -----------------------
# Two rules trim, and this is why. To the right: far in the features that matter; only case 61 is.
# On top: far in any feature; these are the cases that would draw weight to a feature of noise.

OutlierDisplay.from_estimator(model, X, n_names=4)

# %%
# All in one figure
# -----------------

figure = plt.figure(figsize=(15, 4.4), layout="constrained")
axes = figure.subplots(1, 3, width_ratios=[1.15, 0.8, 1])
ClusterDisplay.from_estimator(model, X, ax=axes[0])
WeightsDisplay.from_estimator(model, ax=axes[1])
OutlierDisplay.from_estimator(model, X, n_names=4, ax=axes[2])
questions = "Who belongs together", "Which features tell", "Which cases to distrust"
for ax, words in zip(axes, questions, strict=True):
    ax.set_title(words, loc="left", fontsize=13, fontweight="bold")
axes[2].legend(loc="upper right", bbox_to_anchor=(1, 0.88), fontsize=8, framealpha=0.9)

if __name__ == "__main__" and len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=110)
else:
    plt.show()
