"""
Missing cells
=============

Cells may be missing, as NaN. Nothing is imputed and no case is dropped: distances are over what is
observed, scaled up to all features; centers and weights likewise. How many missing cells are
too many?
"""

import matplotlib.pyplot as plt
import numpy as np

from rskc import RobustSparseKMeans
from rskc.datasets import make_simulation
from rskc.displays import HeatmapDisplay
from rskc.metrics import classification_error_rate

clean = make_simulation(model=1, random_state=1)
rng = np.random.default_rng(0)
# Cells that are missing at one share are missing at larger ones too.
order = rng.random(clean.data.shape)


def with_missing(share):
    X = clean.data.copy()
    X[order < share] = np.nan
    return X


# %%
# Increasing shares of missing cells
# ----------------------------------
# 60 cases, 500 features of which 50 are informative, and one outlying cell. Dropping incomplete
# cases is no solution: with 1% of the cells missing, hardly any case is complete.

shares = np.array([0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
models = [
    RobustSparseKMeans(3, trim=0.05, l1_bound=6, n_init=20, random_state=0).fit(with_missing(share))
    for share in shares
]
errors = [classification_error_rate(model.labels_, clean.target) for model in models]
found = [model.feature_weights_[clean.informative].sum() / 6 for model in models]

figure, ax = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
ax.plot(shares, errors, "o-", color="#0072B2", label="pairs that are wrong")
ax.plot(shares, found, "s--", color="#D55E00", label="weight on informative features")
ax.set(xlabel="share of missing cells", ylabel="share", ylim=(-0.03, 1.03))
ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
ax.set_title(f"{(~np.isnan(with_missing(0.01)).any(axis=1)).sum()} of 60 cases are complete at 1%")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)

# %%
# Three cells of ten are missing
# ------------------------------
# Missing cells are gray. The three clusters are visible all the same, since many features carry the
# same information. In such data scaling up works well; with a few features that carry different
# information, missing cells do more harm.

HeatmapDisplay.from_estimator(models[3], with_missing(0.3))

# %%
# New cases may have missing cells too. A case with no observed value gets a label, since every case
# does, and an infinite distance.

unobserved = np.full((1, 500), np.nan)
print(models[0].predict(unobserved), -models[0].score_samples(unobserved))

plt.show()
