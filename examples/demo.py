"""Three clusters that two of 1,000 features show, and a few wild cells.

K-means is drowned by the 998 noise features. Sparse K-means falls for the wild cells. Robust and
sparse K-means finds the clusters, the two features and the wild cases.

Run it with ``make demo``, or ``python examples/demo.py [folder]``.
"""

import sys
import time
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

from rskc import RobustSparseKMeans, SmallClusterWarning
from rskc.datasets import make_figure1
from rskc.metrics import classification_error_rate

COLOURS = np.array(["#0072B2", "#E69F00", "#009E73"])  # Okabe and Ito: safe for the colour-blind


def make_data():
    """300 cases, 1,000 features; 6 cases have the same wild cell, in a feature of noise."""
    clean = make_figure1(random_state=0)
    X, wild = clean.data.copy(), np.arange(0, 300, 50)
    X[wild, 500] = 25.0
    return X, clean.target, np.isin(np.arange(300), wild)


def fit_all(X):
    """Fit K-means, sparse K-means and robust sparse K-means."""
    models = {
        "K-means": KMeans(3, n_init=20, random_state=0),
        "sparse K-means": RobustSparseKMeans(3, trim=0, l1_bound=1.4, random_state=0),
        "robust and sparse K-means": RobustSparseKMeans(3, trim=0.05, l1_bound=1.4, random_state=0),
    }
    seconds = {}
    for name, model in models.items():
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SmallClusterWarning)
            model.fit(X)
        seconds[name] = time.perf_counter() - start
    return models, seconds


def draw(X, truth, wild, models):
    """The cases in the two features that matter, coloured by cluster."""
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), sharex=True, sharey=True)
    for ax, (name, model) in zip(axes, models.items(), strict=True):
        colours = COLOURS[model.labels_]
        ax.scatter(*X[~wild, :2].T, c=colours[~wild], s=16, alpha=0.8, linewidths=0)
        ax.scatter(*X[wild, :2].T, c=colours[wild], s=70, marker="X", edgecolors="black")
        error = classification_error_rate(model.labels_[~wild], truth[~wild])
        ax.set_title(f"{name}\n{error:.0%} of the pairs wrong", fontsize=11)
        ax.set_xlabel("feature 0")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("feature 1")
    figure.text(0.995, 0.01, "crosses: cases with a wild cell in feature 500", ha="right", size=8)
    figure.tight_layout()
    return figure


def describe(model, wild):
    """What was found, in words."""
    support = model.get_support(indices=True)
    weights = ", ".join(f"feature {j} ({model.feature_weights_[j]:.2f})" for j in support)
    print(f"  {len(support)} of {model.n_features_in_:,} features matter: {weights}")
    found = np.flatnonzero(model.trimmed_ & wild)
    print(
        f"  {len(found)} of the {wild.sum()} wild cases were trimmed: {', '.join(map(str, found))}"
    )
    print(f"  sizes of the clusters: {', '.join(map(str, np.bincount(model.labels_)))}")


def main():
    X, truth, wild = make_data()
    models, seconds = fit_all(X)
    print(
        f"{X.shape[0]} cases x {X.shape[1]:,} features, 3 true clusters, {wild.sum()} wild cells\n"
    )
    for name, model in models.items():
        error = classification_error_rate(model.labels_[~wild], truth[~wild])
        print(f"{name:26} {error:6.1%} of the pairs wrong   {seconds[name] * 1e3:6.0f} ms")
    print("\nrobust and sparse K-means says:")
    describe(models["robust and sparse K-means"], wild)
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "clusters.png"
    figure = draw(X, truth, wild, models)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    print(f"\nThe picture is in {path}")


if __name__ == "__main__":
    main()
