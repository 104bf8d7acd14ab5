"""Handwritten digits: the example of R's RSKC package."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

from reproduction.outcome import Reproduction, small_clusters_expected
from reproduction.panels import new_figure
from rskc.displays import SilhouetteDisplay
from rskc.estimator import RobustSparseKMeans
from rskc.metrics import classification_error_rate, revised_silhouette, sensitivity

# RSKC 2.4.2, K=10, L1=5.7, alpha=.1, nstart=1000.
RSKC = {"CER": 0.0518, "features with weight": 45, "mean revised silhouette": 0.480}


@small_clusters_expected()
def digits(seed: int = 0) -> Reproduction:
    """1,797 digits of 8 x 8 pixels, K=10, l1_bound=5.7, trim=.1."""
    X, truth = load_digits(return_X_y=True)
    model = RobustSparseKMeans(10, l1_bound=5.7, trim=0.1, random_state=seed).fit(X)
    ours = {
        "CER": classification_error_rate(model.labels_, truth),
        "features with weight": int(model.get_support().sum()),
        "mean revised silhouette": float(revised_silhouette(model, X).values.mean()),
    }
    numbers = pd.DataFrame({"what": list(ours), "rskc": ours.values(), "RSKC": RSKC.values()})
    return Reproduction(
        "digits",
        "Handwritten digits: the example of R's RSKC",
        _figure(model, X),
        {
            "rskc and RSKC": numbers,
            "The cluster that holds most of each digit": sensitivity(truth, model.labels_),
        },
        _verdict(ours),
    )


def _figure(model: Any, X: np.ndarray) -> Any:
    """Silhouettes, the weights as a picture, and the centers."""
    figure = new_figure(11, 6)
    left, right = figure.subfigures(1, 2, width_ratios=(1.1, 1))
    SilhouetteDisplay.from_estimator(model, X, ax=left.subplots())
    axes = right.subplots(3, 4).ravel()
    axes[0].imshow(model.feature_weights_.reshape(8, 8), cmap="cividis")
    axes[0].set_title("weights", fontsize=9)
    for k, center in enumerate(model.cluster_centers_):
        axes[k + 1].imshow(center.reshape(8, 8), cmap="Greys")
        axes[k + 1].set_title(f"cluster {k}", fontsize=9)
    for ax in axes:
        ax.axis("off")
    return figure


def _verdict(ours: dict[str, float]) -> str:
    agrees = ours["CER"] <= RSKC["CER"] + 0.002
    return (
        f"{'As good as RSKC' if agrees else 'Worse than RSKC'}: CER {ours['CER']:.4f} against "
        f"{RSKC['CER']}, {ours['features with weight']} of 64 pixels with weight against "
        f"{RSKC['features with weight']}, mean revised silhouette "
        f"{ours['mean revised silhouette']:.3f} against {RSKC['mean revised silhouette']:.3f}."
    )
