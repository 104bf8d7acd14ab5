"""
Outlying cells
==============

Where a table has many features, a few bad cells spoil nearly every case: with one cell in a hundred
and 200 features, nine cases in ten have one. No share of the cases can be trimmed then. rskc bounds
what a single cell counts instead, and reports which cells are outlying.
"""

# %%
# A table with bad cells
# ----------------------
# 120 cases in three clusters, which 30 of the 200 features set apart. One cell in a hundred is
# replaced by a number far away, and a tenth of one more feature, *f150*, too: a gauge that sticks.
# *f150* differs between no clusters.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from rskc import RobustSparseKMeans
from rskc.displays import CellsDisplay
from rskc.metrics import classification_error_rate

rng = np.random.default_rng(1)
true = np.repeat([0, 1, 2], 40)
X = rng.normal(size=(120, 200))
X[:, :30] += 2.0 * (true[:, None] - 1)
bad = rng.random(X.shape) < 0.01
X[bad] = rng.choice([-1, 1], bad.sum()) * rng.uniform(8, 30, bad.sum())
stuck = rng.choice(120, 12, replace=False)
X[stuck, 150] = 25.0
bad[stuck, 150] = True
X = pd.DataFrame(X, columns=[f"f{j}" for j in range(200)])
print(f"{bad.any(axis=1).mean():.0%} of the cases have a bad cell")

# %%
# The fit
# -------
# With the defaults nothing has to be asked for: the fit sees that many cases have extreme cells,
# and bounds their errors (``cells="auto"``). ``cells=None`` leaves them alone, as the paper does.

model = RobustSparseKMeans(3, random_state=0).fit(X)
left_alone = RobustSparseKMeans(3, cells=None, random_state=0).fit(X)
for name, fitted in [("cells='auto'", model), ("cells=None", left_alone)]:
    print(f"{name}: error rate {classification_error_rate(true, fitted.labels_):.3f}")
print(model.summary())

# %%
# Which cells
# -----------
# ``outlying_cells_`` marks them, and ``cells_frame`` lists them with the value, the center of the
# cluster and the distance between the two in scales of the feature.

found = model.outlying_cells_.toarray()
print(f"{(found & bad).sum()} of {bad.sum()} bad cells found, {(found & ~bad).sum()} others marked")
print(model.cells_frame(X).head())

# %%
# The picture of the table shows them all. A column of marks is a feature worth a look, here *f150*;
# a row of marks would be a case.

CellsDisplay.from_estimator(model, X)
plt.show()
