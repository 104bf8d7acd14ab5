"""
Shape, not level: a pipeline with names
=======================================

Samples of a laboratory differ in level, for instance because one has more material than another,
and in spread. Of interest is their shape: which genes are high compared with the others. So each
case is standardized on its own before it is clustered. Names are kept for the pictures.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline

from rskc import RobustSparseKMeans, RowStandardizer
from rskc.displays import HeatmapDisplay, SilhouetteDisplay
from rskc.metrics import classification_error_rate

rng = np.random.default_rng(1)
truth = np.repeat([0, 1, 2], 20)
shape = rng.normal(size=(60, 300))
shape[:, :30] += np.array([-1.3, 0, 1.3])[truth][:, None] * rng.choice([-1, 1], 30)
level, spread = rng.normal(0, 3, (60, 1)), rng.lognormal(0, 0.7, (60, 1))
frame = pd.DataFrame(
    level + spread * shape,
    index=[f"{'ABC'[k]}{i:02}" for i, k in enumerate(truth)],
    columns=[f"gene {j}" for j in range(300)],
)
frame.iloc[5, 100] = 90  # a typing error

# %%
# Without standardization, the samples are clustered by their level, which shifts all genes alike
# and dominates the distances.

model = RobustSparseKMeans(3, trim=0.05, n_features=30, random_state=0)
raw = classification_error_rate(model.fit(frame).labels_, truth)

# %%
# ``RowStandardizer`` subtracts the median of each case and divides by its MAD, which the typing
# error does not influence. In a pipeline it is applied to new cases as well.

pipeline = make_pipeline(RowStandardizer(), model).set_output(transform="pandas")
labels = pipeline.fit_predict(frame)
print(
    f"wrong pairs: {raw:.0%} as they are, {classification_error_rate(labels, truth):.0%} by shape"
)
print("new cases:", pipeline.predict(100 + 7 * frame.iloc[:3]), "as before:", labels[:3])

# %%
# Displays take the last step and its input: the frame that the earlier steps return, which has the
# names of the original frame.

shapes = pipeline[:-1].transform(frame)
HeatmapDisplay.from_estimator(pipeline[-1], shapes)

# %%
# One bar for each sample, with its name.

SilhouetteDisplay.from_estimator(pipeline[-1], shapes)

plt.show()
