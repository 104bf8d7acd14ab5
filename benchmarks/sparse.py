"""A sparse matrix of single-cell shape: as it is, made dense first, and scikit-learn's KMeans."""

import numpy as np
from scipy.sparse import csr_matrix, vstack
from sklearn.cluster import KMeans

from benchmarks.declare import Rows, benchmark
from benchmarks.timing import Usage, apart, forget_peak, resident, usage
from rskc import RobustSparseKMeans
from rskc.metrics import classification_error_rate

FILLED, K = 0.1, 8
MODELS = {
    "K-means": RobustSparseKMeans(K, trim=0, l1_bound=None, random_state=0),
    "robust and sparse, all automatic": RobustSparseKMeans(K, random_state=0),
    "scikit-learn's KMeans": KMeans(K, random_state=0),
}


def counts(n, p, K):
    """Draw logarithms of counts, of which a share is above 0; 40 features differ for a cluster."""
    rng = np.random.default_rng(0)
    rates = np.repeat(-np.log1p(-FILLED) * rng.gamma(2.0, 0.5, p)[None], K, axis=0)
    for k in range(K):
        rates[k, rng.choice(p, min(40, p // K), replace=False)] *= 8
    classes, parts = rng.integers(0, K, n), []
    for drawn in np.array_split(classes, -(-n // 2000)):
        depth = rng.gamma(10.0, 0.1, (len(drawn), 1))
        parts.append(csr_matrix(np.log1p(rng.poisson(rates[drawn] * depth)), dtype=np.float32))
    return vstack(parts, format="csr"), classes


@benchmark(
    "Sparse matrices, {n} x {p} in float32, 10% filled, K=8; peaks with the data included",
    "fit | matrix MB {:.0f} | peak MB {:.0f} | peak / matrix {:.2f} | s {:.1f} | "
    "CPU s {:.1f} | inertia {:.6g} | CER {:.4f}",
)
def sparse(n: int = 100_000, p: int = 2000) -> Rows:
    for name in MODELS:
        for dense in (False, True)[: 1 if "scikit" in name else 2]:
            used, base = apart(fitted, name, n, p, dense)
            size, inertia, error = used.result
            peak = used.peak - base
            title = f"{name}, {'made dense' if dense else 'sparse'}"
            yield title, size, peak, peak / size, used.seconds, used.cpu, inertia, error


def fitted(name: str, n: int, p: int, dense: bool) -> tuple[Usage, float]:
    """Fit a model, and return what this took and the memory before there were data."""
    warm, _ = counts(500, 100, 3)  # what importing takes
    for data in (warm, warm.toarray()):
        RobustSparseKMeans(3, n_init=1).fit(data)
    KMeans(3, n_init=1).fit(warm)
    base = resident("VmRSS")
    X, classes = counts(n, p, K)
    size = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 2**20
    forget_peak()
    used = usage(lambda: MODELS[name].fit(X.toarray() if dense else X))
    error = classification_error_rate(classes, used.result.labels_)
    return used._replace(result=(size, used.result.inertia_, error)), base
