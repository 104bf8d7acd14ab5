"""Tables as they are published, without an option: what is found of their classes.

``python -m benchmarks raw FOLDER`` reads all tables of a folder, with nothing given; those with
classes in the header are compared with them. Cells and customers are made here.

The rules of ``rskc.Preparer`` were settled on 17 tables of de Souto et al. (2008), and on cells and
customers with seeds below 10; the seeds here are others.
"""

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from benchmarks.declare import Rows, and_mean, benchmark
from benchmarks.real import published
from rskc import Preparer, RobustSparseKMeans
from rskc.files import TableError, read_table
from rskc.selection import Stability

FIRST = 100  # seed
N_CELLS, N_GENES, TYPES = 2000, 1500, 8
N_CUSTOMERS = 1500
CELLS = {  # genes that mark a type, mean log depth, shares of the types
    "eight types": (60, 0.0, np.full(TYPES, 1 / TYPES)),
    "rare types": (60, 0.0, np.array([0.3, 0.2, 0.15, 0.12, 0.1, 0.06, 0.04, 0.03])),
    "low depth": (80, -0.7, np.full(TYPES, 1 / TYPES)),
}
SEGMENTS = ("shop", "telephone", "bank", "web")
JUDGED = "ARI {:.3f} | prepared | predicted again"


@benchmark(
    "Published tables, nothing given",
    f"table | read as | classes | K | {JUDGED}",
)
def tables(folder: Path) -> Rows:
    yield from and_mean(_published(folder))


def _published(folder: Path) -> Rows:
    for name, table in published(folder):
        if isinstance(table, TableError):
            yield name[:28], "refused", "", "", 0.0, str(table)[:40], ""
            continue
        words, same, model = _fitted(table.data, None)
        n_classes, index = "", None
        if table.labels is not None:
            n_classes = str(len(set(table.labels)))
            index = adjusted_rand_score(table.labels, model.labels_)
        shape = f"{len(table.data)} x {table.data.shape[1]}"
        yield name[:28], shape, n_classes, str(model.n_clusters), index, words, same


@benchmark("Single cells: counts, K given", f"table | {JUDGED}")
def cells(seeds: int = 2) -> Rows:
    def judged(name: str, seed: int) -> tuple[float, str, str]:
        X, types = make_cells(name, seed)
        words, same, model = _fitted(X, TYPES)
        return adjusted_rand_score(types, model.labels_), words, same

    yield from and_mean(_means(CELLS, judged, seeds))


@benchmark("Customers: a CSV, nothing given", f"table | {JUDGED}")
def customers(seeds: int = 2) -> Rows:
    def judged(name: str, seed: int) -> tuple[float, str, str]:
        frame, segments = make_customers(name, seed)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "customers.csv")
            frame.to_csv(path, index=False)
            table = read_table(path, text_columns="categories")
        words, same, model = _fitted(table.data, None)
        return adjusted_rand_score(segments, model.labels_), words, same

    yield from and_mean(_means(SEGMENTS, judged, seeds))


def _means(names: Iterable[str], judged: Callable, seeds: int) -> Rows:
    for name in names:
        results = [judged(name, FIRST + i) for i in range(seeds)]
        indices, words, same = zip(*results, strict=True)
        yield name, np.mean(indices), words[0], "NO" if "NO" in same else "yes"


def _fitted(X: Any, n_clusters: int | None) -> tuple[str, str, RobustSparseKMeans]:
    """Return how a table was prepared, whether its cases are predicted as in the fit, the model."""
    preparer = Preparer().fit(X)
    prepared = _framed(X, preparer.transform(X))
    model = RobustSparseKMeans(n_clusters or 2, random_state=0)
    if n_clusters is None:
        search = Stability(model, random_state=0, n_jobs=1, progress=False)
        model = search.fit(prepared).best_estimator_
    else:
        model.fit(prepared)
    half = X[: X.shape[0] // 2]  # new rows, of a table that is not the whole
    again = model.predict(_framed(half, preparer.transform(half)))
    same = (again == model.labels_[: len(again)]).all()
    return preparer.describe()[:60], "yes" if same else "NO", model


def _framed(X: Any, prepared: Any) -> Any:
    is_plain = isinstance(X, pd.DataFrame) and not hasattr(prepared, "columns")
    return pd.DataFrame(prepared, X.index, X.columns) if is_plain else prepared


def make_cells(name: str, seed: int) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Make counts of cells: four genes and a program of 20 vary for no type."""
    n_markers, log_depth, shares = CELLS[name]
    rng = np.random.default_rng(seed)
    types = rng.choice(TYPES, N_CELLS, p=shares)
    logs = np.tile(rng.normal(-1.5, 1.5, N_GENES), (TYPES, 1))
    for k in range(TYPES):
        logs[k, rng.choice(N_GENES, n_markers, replace=False)] += rng.gamma(3, 0.5, n_markers)
    rates = logs[types] + rng.normal(log_depth, 0.4, (N_CELLS, 1))
    few, program = rng.choice(N_GENES, 4), rng.choice(N_GENES, 20)
    rates[:, few] = rng.normal(3, 1.8, (N_CELLS, 4))
    rates[:, program] += rng.normal(0, 0.6, (N_CELLS, 1))
    counts = rng.negative_binomial(2, 2 / (2 + np.exp(rates)))
    return sparse.csr_matrix(counts.astype(np.float32)), types


def make_customers(name: str, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Make customers of four segments: amounts, counts, shares, categories, and columns of noise.

    One in a hundred has a slip of the decimal in the first column.
    """
    rng = np.random.default_rng(seed)
    n = N_CUSTOMERS
    own = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])

    def amount(*means: float, spread: float = 0.5) -> np.ndarray:
        return np.exp(np.array(means)[own] + rng.normal(0, spread, n)).round(2)

    def kind(*words: str) -> np.ndarray:
        likely = np.array([0, 1, 2, 1])[own]
        return np.array(words)[np.where(rng.random(n) < 0.8, likely, rng.integers(0, 3, n))]

    columns = {
        "shop": lambda: {
            "annual_spend": amount(5, 6.5, 8, 6),
            "orders": rng.poisson(np.array([2, 6, 25, 4])[own]) + 1,
            "days_since_last": rng.exponential(np.array([150, 60, 10, 300])[own]).round(),
            "age": rng.normal(np.array([35, 45, 50, 28])[own], 6).round(),
            "discount_share": rng.beta(*np.array([[2, 8], [4, 4], [1, 9], [8, 2]])[own].T),
            "returns": rng.poisson(np.array([0.1, 0.3, 0.5, 2])[own]),
            "basket_of_noise": amount(7, 7, 7, 7, spread=1.5),
        },
        "telephone": lambda: {
            "minutes": amount(4, 6, 5, 7),
            "megabytes": amount(9, 6, 7, 10),
            "tenure_months": rng.gamma(np.array([2, 8, 5, 3])[own], 6).round(),
            "contract": kind("month", "year", "two years"),
            "calls": rng.poisson(np.array([1, 0.2, 3, 0.5])[own]),
            "bill": amount(3, 3.5, 3.8, 4.3, spread=0.2),
            "revenue_of_noise": amount(10, 10, 10, 10, spread=2),
        },
        "bank": lambda: {
            "balance": amount(7, 9, 11, 8, spread=0.8),
            "income": amount(10, 10.6, 11.4, 10.2, spread=0.25),
            "age": rng.normal(np.array([27, 45, 60, 38])[own], 5).round(),
            "products": rng.integers(1, 3, n) + np.array([0, 1, 3, 0])[own],
            "mortgage": (rng.random(n) < np.array([0.05, 0.8, 0.3, 0.1])[own]).astype(int),
            "card_spend": np.where(rng.random(n) < 0.2, 0, amount(6, 6.5, 7, 5)),
            "transfers_of_noise": amount(6, 6, 6, 6, spread=1.5),
        },
        "web": lambda: {
            "sessions": amount(1, 2.5, 3.5, 2, spread=0.4).round() + 1,
            "pages": rng.gamma(np.array([20, 40, 90, 30])[own], 0.1),
            "bounce_rate": rng.beta(*np.array([[8, 2], [3, 6], [2, 12], [5, 5]])[own].T),
            "seconds": amount(3, 5, 6.5, 4),
            "revenue": np.where(rng.random(n) < 0.4, 0, amount(3, 4, 5, 3, spread=1)),
            "device": kind("mobile", "desktop", "tablet"),
            "bytes_of_noise": amount(12, 12, 12, 12, spread=2),
        },
    }[name]()
    frame = pd.DataFrame(columns)
    frame.iloc[:, 0] = frame.iloc[:, 0].where(rng.random(n) > 0.01, frame.iloc[:, 0] * 20)
    return frame, own
