"""The breast-cancer example: 78 tumours, 4,751 genes, and the estrogen receptor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from reproduction.outcome import Reproduction, small_clusters_expected
from reproduction.panels import new_figure
from rskc.displays import SilhouetteDisplay
from rskc.estimator import RobustSparseKMeans
from rskc.metrics import (
    classification_error_rate,
    feature_agreement,
    revised_silhouette,
    silhouette_means,
)
from rskc.preprocessing.standardizers import RowStandardizer
from rskc.selection import Clest
from rskc.selection.clest import chosen_by

WHERE = (
    "The data are those of van 't Veer et al. (2002), Nature 415, 530-536, as in Bioconductor's "
    "seventyGeneData: log ratios of 78 tumours and 4,751 genes, a row a tumour, a column a gene; "
    "and a table, with the tumours in the same order, that has a column ER (pos or neg)."
)
K, BOUND = 2, 6.0
TRIMMED = (0, 1, 5, 10)
# CER to the receptor without outliers, and mean silhouettes (of a cluster without its outliers, and
# of these; larger cluster first), as the paper gives them.
PAPER_CER = (0.10, 0.08, 0.08, 0.06)
PAPER_SILHOUETTES = {0: ((0.85, 0.44), (0.79, 0.55)), 10: ((0.91, 0.42), (0.91, 0.30))}
# RSKC 2.4.2: CER over all cases and over the untrimmed ones, and the number of genes.
RSKC_ALL, RSKC_KEPT = (0.0986, 0.0986, 0.1439, 0.1865), (0.0986, 0.1011, 0.0821, 0.0606)
RSKC_GENES = (70, 74, 73, 73)
NUMBERS = range(2, 7)


@small_clusters_expected()
def breast_cancer(
    data: Any = None,
    labels: Any = None,
    seed: int = 0,
    n_splits: int = 20,
    n_jobs: int | None = -1,
    progress: Any = True,
) -> Reproduction:
    """Rows standardized by median and MAD, K=2, l1_bound=6, trimming 0, 1, 5 and 10 cases.

    Parameters
    ----------
    data : data frame of shape (n_samples, n_features)
        Log ratios, a row a tumour.
    labels : array-like of shape (n_samples,)
        Estrogen-receptor status of each.
    seed, n_splits, n_jobs, progress
        For the fits, and for Clest.
    """
    if data is None or labels is None:
        raise ValueError(f"breast-cancer needs data and labels. {WHERE}")
    labels = np.asarray(labels)
    if len(data) != len(labels):
        raise ValueError(f"data has {len(data)} rows and labels {len(labels)}. {WHERE}")
    standardizer = RowStandardizer()
    if isinstance(data, pd.DataFrame):
        standardizer.set_output(transform="pandas")  # keeps the names of cases and genes
    X = standardizer.fit_transform(data)
    fits = {m: _fitted(X, m / len(X), seed) for m in TRIMMED}
    searches = {m: _search(X, m / len(X), seed, n_splits, n_jobs, progress) for m in TRIMMED}
    tables = {
        "CER to the estrogen receptor: without outliers, of all cases, and of the untrimmed ones": (
            _errors(fits, labels)
        ),
        "Genes with weight, those shared with no trimming, and the number of clusters by Clest": (
            _genes(fits, searches)
        ),
        "Mean revised silhouettes, larger cluster first": _silhouettes(X, fits),
    }
    title = f"Breast cancer: {X.shape[0]} tumours, {X.shape[1]:,} genes"
    return Reproduction("breast-cancer", title, _figure(X, fits), tables, _verdict(tables))


def _fitted(X: np.ndarray, trim: float, seed: int) -> RobustSparseKMeans:
    model = RobustSparseKMeans(K, trim=trim, l1_bound=BOUND, n_init=100, random_state=seed)
    return model.fit(X)


def _search(
    X: Any, trim: float, seed: int, n_splits: int, n_jobs: int | None, progress: Any
) -> Clest:
    model = RobustSparseKMeans(trim=trim, l1_bound=BOUND, random_state=seed)
    how = {"n_splits": n_splits, "random_state": seed, "n_jobs": n_jobs, "progress": progress}
    return Clest(model, NUMBERS, rule="paper", **how).fit(X)


def _errors(fits: dict[int, RobustSparseKMeans], labels: np.ndarray) -> Any:
    rows = []
    for i, (m, model) in enumerate(fits.items()):
        cases = (~model.outliers_, np.full(len(labels), True), ~model.trimmed_)
        tame, all_, kept = (classification_error_rate(model.labels_[c], labels[c]) for c in cases)
        rows.append(
            {
                "trimmed": m,
                "outliers": int(model.outliers_.sum()),
                "CER": _two_digits(tame),
                "CER, paper": _two_digits(PAPER_CER[i]),
                "all": all_,
                "all, RSKC": RSKC_ALL[i],
                "untrimmed": kept,
                "untrimmed, RSKC": RSKC_KEPT[i],
            }
        )
    return pd.DataFrame(rows)


def _genes(fits: dict[int, RobustSparseKMeans], searches: dict[int, Clest]) -> Any:
    rows = []
    for (m, model), genes in zip(fits.items(), RSKC_GENES, strict=True):
        common, clest = feature_agreement(model, fits[0]), searches[m]
        either = common.n_a + common.n_b - common.n_both
        rows.append(
            {
                "trimmed": m,
                "genes": common.n_a,
                "genes, RSKC": genes,
                "shared": f"{common.n_both} of {either} = {common.jaccard:.0%}",
                "K, paper's rule": clest.n_clusters_,
                "K, rskc's rule": _by_agreement(clest),
            }
        )
    return pd.DataFrame(rows)


def _by_agreement(clest: Clest) -> int:
    return chosen_by("agreement", clest.table_, clest.level, clest.n_references)[1]


def _silhouettes(X: Any, fits: dict[int, RobustSparseKMeans]) -> Any:
    rows = []
    for m, paper in PAPER_SILHOUETTES.items():
        means = silhouette_means(revised_silhouette(fits[m], X), fits[m].outliers_)
        means = means.sort_values("size", ascending=False, kind="stable")
        for found, (tame, outlying) in zip(means.itertuples(), paper, strict=True):
            rows.append(
                {
                    "trimmed": m,
                    "cases": found.size,
                    "outliers": found.n_outliers,
                    "mean": _two_digits(found.mean_without_outliers),
                    "mean, paper": _two_digits(tame),
                    "of outliers": _two_digits(found.mean_of_outliers),
                    "of outliers, paper": _two_digits(outlying),
                }
            )
    return pd.DataFrame(rows)


def _two_digits(value: float) -> str:
    """As the paper gives them; nothing for the mean of no case."""
    return "" if np.isnan(value) else f"{value:.2f}"


def _figure(X: Any, fits: dict[int, RobustSparseKMeans]) -> Any:
    figure = new_figure(12, 8)
    axes = figure.subplots(1, len(PAPER_SILHOUETTES))
    for ax, m in zip(axes, PAPER_SILHOUETTES, strict=True):
        SilhouetteDisplay.from_estimator(fits[m], X, ax=ax)
        name = f"RSK, {m} trimmed" if m else "SK"
        ax.set_title(f"{name}\n{ax.get_title(loc='left')}", fontsize=10, loc="left")
    return figure


def _verdict(tables: dict[str, Any]) -> str:
    errors, genes, silhouettes = tables.values()
    numbers = sorted(set(genes["K, paper's rule"]))
    same = list(errors["CER"]) == list(errors["CER, paper"]) and numbers == [K]
    tame, outlying = (_apart(silhouettes, name) for name in ("mean", "of outliers"))
    equal = (errors["all"] - errors["all, RSKC"]).abs().max() < 1e-4
    apart = (errors["untrimmed"] - errors["untrimmed, RSKC"]).abs().idxmax()
    most = errors.iloc[apart]
    return (
        f"{'As in the paper' if same else 'Not all as in the paper'}: with 0, 1, 5 and 10 cases "
        "trimmed the CER to the estrogen receptor, without the outliers (those farther than median "
        f"+ 3.5 MAD), is {', '.join(errors['CER'])} (paper: 0.10, 0.08, 0.08, 0.06), and Clest "
        f"chooses K = {' or '.join(map(str, numbers))} (paper: 2 at all four). With 10 trimmed "
        f"{genes['genes'].iloc[-1]} genes have weight (paper: about 70), and of the genes that "
        "have it with 10 trimmed or with none, these have it with both: "
        f"{genes['shared'].iloc[-1]} (paper: 62%). "
        f"Over all cases the CERs are {'' if equal else 'not all '}those of RSKC. Over the "
        f"untrimmed ones they differ most with {most['trimmed']} trimmed ({most['untrimmed']:.3f} "
        f"against {most['untrimmed, RSKC']:.3f}): not all trimmed cases are the same. The "
        f"mean silhouettes of the clusters are up to {tame:.2f} from the paper's"
        + (
            "."
            if np.isnan(outlying)
            else f", and those of the outliers, which are few, {outlying:.2f}."
        )
    )


def _apart(table: Any, name: str) -> float:
    """Return the largest difference of a column from that of the paper."""
    known = table[table[name] != ""]
    return (known[name].astype(float) - known[f"{name}, paper"].astype(float)).abs().max()
