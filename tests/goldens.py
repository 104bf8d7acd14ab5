"""Fits to the bit: what some 200 small fits give, over all engines, before a change and after it.

    python tests/goldens.py record goldens.json    # on the code as it was
    python tests/goldens.py compare goldens.json   # on the code as it is; 1 if a fit differs

A fit is a draw of an engine, missing cells, case weights, groups, precision, K, trim and bound; of
its results the objective is kept as it is, and of each array a digest. It is a tool, not a test:
bits depend on the CPU and on BLAS. ``--only blocks`` runs the fits whose name has that in it.
"""

import argparse
import hashlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

# How many fits of each engine: those that take longest are fewest.
NUMBERS = {"compiled": 80, "twin": 40, "sparse": 30, "blocks": 32, "strict": 24}
FACTORS = {
    "shape": [(60, 8), (40, 90), (400, 5)],
    "missing": [False, True],
    "weights": ["none", "copies", "any"],
    "groups": [False, True],
    "dtype": ["float64", "float32"],
    "K": [1, 2, 4, 7],
    "trim": [0.0, 0.1, 0.15, "auto"],
    "bound": ["none", "some", "auto"],
    "reweight": [False, False, True],
    "kind": [0, 1],  # sparse tables or dense ones; cells of blocks that are kept or not
}
ARRAYS = (
    "labels_",
    "cluster_centers_",
    "feature_weights_",
    "trimmed_weighted_",
    "trimmed_unweighted_",
    "outliers_",
    "distances_",
    "unweighted_distances_",
)


def draws(engine):
    """Yield the fits of an engine: an even draw of all of them, the same each time."""
    every = [
        dict(zip(FACTORS, levels, strict=True)) for levels in itertools.product(*FACTORS.values())
    ]
    every = [fit for fit in every if engine != "sparse" or not fit["missing"]]
    rng = np.random.default_rng(sum(map(ord, engine)))
    for i in rng.choice(len(every), NUMBERS[engine], replace=False):
        yield every[i]


def data_of(shape, missing, dtype, rng):
    """Return clusters in a few columns, some outlying cases, and holes if asked."""
    n, p = shape
    X = rng.normal(size=shape)
    X[:, : max(2, p // 4)] += 4 * rng.integers(0, 3, (n, 1))
    X[rng.integers(0, n, 2), rng.integers(0, p, 2)] += 60
    X[5] = X[6]
    if missing:
        X[rng.random(shape) < 0.15] = np.nan
        X[3], X[:, 1], X[7, 1] = np.nan, np.nan, 1.0
    return X.astype(dtype)


def weights_of(kind, n, rng):
    """Return none, whole numbers, or any."""
    if kind == "none":
        return None
    return rng.integers(0, 4, n).astype(float) if kind == "copies" else rng.exponential(size=n)


def brought(engine, X, kind):
    """Return the table as the engine takes it."""
    if engine == "sparse":
        from scipy.sparse import csr_array

        from rskc.engines import sparse

        sparse.DENSE_BYTES, sparse.DENSE_SHARE = (0, 0.0) if kind else (2**25, 0.5)
        return csr_array(np.where(np.abs(X) < 1.5, 0, X).astype(X.dtype))
    if engine == "blocks":
        import dask
        import dask.array as da

        dask.config.set({"scheduler": "synchronous", "rskc.memory": "1kB" if kind else "1GB"})
        return da.from_array(X, chunks=(-(-len(X) // 3), X.shape[1]))
    if engine == "strict":
        import array_api_strict
        import sklearn

        sklearn.set_config(array_api_dispatch=True)
        return array_api_strict.asarray(X)
    return X


def digest(array):
    """Return a few letters that stand for the bits of an array."""
    array = np.ascontiguousarray(array.compute() if hasattr(array, "compute") else array)
    head = f"{array.dtype}{array.shape}".encode()
    return hashlib.sha256(head + array.tobytes()).hexdigest()[:12]


def facts_of(engine, fit):
    """Fit, and return what is kept of it."""
    from rskc import RobustSparseKMeans

    rng = np.random.default_rng(3)
    X = data_of(fit["shape"], fit["missing"], fit["dtype"], rng)
    table = brought(engine, X, fit["kind"])
    weights = weights_of(fit["weights"], len(X), rng)
    groups = [f"group {j // 3}" for j in range(X.shape[1])] if fit["groups"] else None
    bound = {"none": None, "some": 1.6, "auto": "auto"}[fit["bound"]]
    model = RobustSparseKMeans(
        fit["K"],
        trim=fit["trim"],
        l1_bound=bound,
        feature_groups=groups,
        reweight=fit["reweight"],
        n_init=6,
        random_state=1,
        n_threads=1 + fit["kind"],
    )
    try:
        model.fit(table, sample_weight=weights)
    except (ValueError, FloatingPointError) as error:
        return {"error": str(error)[:60]}
    facts = {"objective_": float(model.objective_).hex()}
    facts |= {name: digest(getattr(model, name)) for name in ARRAYS}
    return facts | {
        "predict": digest(model.predict(table)),
        "transform": digest(model.transform(table)),
    }


def name_of(engine, fit):
    """Return the levels of a fit in one line."""
    return " ".join([engine, *(f"{factor}={level}" for factor, level in fit.items())])


def run(engine, only):
    """Return the facts of the fits of an engine, by name."""
    found = {}
    for fit in draws(engine):
        name = name_of(engine, fit)
        if only in name:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found[name] = facts_of(engine, fit)
    return found


def run_apart(engine, only):
    """Do that in a process of its own: the twin is what rskc has where nothing is compiled."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "found.json"
        command = [sys.executable, __file__, "run", str(path), "--engine", engine, "--only", only]
        subprocess.run(command, check=True, env=os.environ | {"SCIPY_ARRAY_API": "1"})
        return json.loads(path.read_text())


def main():
    """Record or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=["record", "compare", "run"])
    parser.add_argument("path", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--engine", default="")
    asked = parser.parse_args()
    if asked.task == "run":
        if asked.engine == "twin":
            sys.modules["rskc.engines._passes"] = None
        asked.path.write_text(json.dumps(run(asked.engine, asked.only)))
        return 0
    found = {}
    for engine in NUMBERS:
        found |= run_apart(engine, asked.only)
    if asked.task == "record":
        asked.path.write_text(json.dumps(found, indent=0))
        print(f"{len(found)} fits recorded")
        return 0
    known, differing = json.loads(asked.path.read_text()), 0
    for name, facts in found.items():
        other = [key for key in facts | known[name] if facts.get(key) != known[name].get(key)]
        if other:
            differing += 1
            print(f"{name}: {', '.join(other)}")
    print(f"{differing} of {len(found)} fits differ")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
