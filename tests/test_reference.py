"""R's RSKC on the same data: each step from the same state, then the whole fit by its result.

The numbers and what they mean: ``reference/README.md``. RSKC's result is no optimum, and it joins
weights and trimmed sets of different iterations: so steps must agree, and fits be as good.
"""

import warnings
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from definitions import found_by_r, plain_between
from rskc import RobustSparseKMeans, SmallClusterWarning
from rskc.engines import Partitions, engine_for
from rskc.metrics import classification_error_rate
from rskc.solver.alternate import sparse_weights

FILES = sorted((Path(__file__).parent / "reference").glob("golden*.json.gz"))
# RSKC's bisection leaves its weights, and with them its objective, up to 2.4e-5 off the bound.
RSKC_PRECISION = 1e-4


class Golden(NamedTuple):
    name: str
    X: np.ndarray
    K: int
    cluster: np.ndarray
    outlier: np.ndarray
    runs: list

    def mask(self, numbers):
        """Mask of cases given by their numbers, which start at 1."""
        mask = np.zeros(len(self.X), bool)
        mask[np.array(numbers, int) - 1] = True
        return mask

    def labels(self, entry):
        return np.array(entry["labels"], np.int32) - 1

    def error(self, labels):
        """CER to the truth over the cases that are not outlying."""
        clean = ~self.outlier
        return classification_error_rate(labels[clean], self.cluster[clean])

    def kept(self, entry):
        return ~(self.mask(entry["oW"]) | self.mask(entry["oE"]))

    @property
    def is_complete(self):
        return not np.isnan(self.X).any()


@cache
def goldens():
    """The tables, by name."""
    records = [found_by_r(path.name.partition(".")[0]) for path in FILES]
    return {record["case"]: _golden(record) for record in records}


def _golden(record):
    truth = record["truth"]
    cluster, outlier = np.array(truth["cluster"]), np.array(truth["outlier"], bool)
    X = np.array(record["data"], float)
    return Golden(record["case"], X, record["K"], cluster, outlier, record["runs"])


def runs(wanted=lambda run: True, tables=lambda golden: True):
    chosen = filter(tables, goldens().values())
    return [(golden, run) for golden in chosen for run in golden.runs if wanted(run)]


complete = partial(runs, tables=lambda golden: golden.is_complete)
incomplete = partial(runs, tables=lambda golden: not golden.is_complete)


def sparse(run):
    return run["L1"] is not None


def name(value):
    if isinstance(value, Golden):
        return value.name
    return f"L1={value['L1']}-alpha={value['alpha']}"


def each_run(wanted, among=runs):
    return pytest.mark.parametrize(("golden", "run"), among(wanted), ids=name)


class Step(NamedTuple):
    far: np.ndarray
    between: np.ndarray  # in the units of the data
    groups: np.ndarray  # -1 for a case in either trimmed set


def steps_like(golden, run):
    """Each entry of RSKC's path, steps (b)-(d) from its partition, and the weights before."""
    engine, m = engine_for(golden.X), int(run["alpha"] * len(golden.X) + 1e-9)
    made_with = np.ones(golden.X.shape[1])
    for entry in run["path"]:
        labels = golden.labels(entry)[None]
        groups = np.where(golden.mask(entry["oW"]), np.int32(-1), labels)
        start = Partitions(groups, labels, np.zeros(1), np.ones(1, bool), engine.arrays)
        sums = engine.sums(start.groups, golden.K)
        far, _, sums = engine.take_out_farthest(start.groups, start.labels, sums, m)
        kept = np.where(far, np.int32(-1), groups)
        between = engine.between(sums, kept, made_with[None])[0] * engine.unit
        yield entry, Step(far[0], between, kept[0]), made_with
        made_with = np.array(entry["weights"])


def test_all_goldens_are_here():
    assert len(FILES) == 14
    assert len(complete()) == 124
    assert len(incomplete()) == 36
    assert sum(len(run["path"]) for _, run in complete(sparse)) > 180
    assert all(np.isnan(golden.X).sum() > 100 for golden, _ in incomplete())


# ---- Steps (b)-(e), fed with RSKC's own partitions


@each_run(sparse)
def test_both_trimmed_sets_and_between_sums_agree(golden, run):
    accepted = None
    for entry, step, made_with in steps_like(golden, run):
        assert_array_equal(step.far, golden.mask(entry["oE"]))
        assert_array_equal(step.groups >= 0, golden.kept(entry))
        plain = plain_between(golden.X, step.groups, golden.K, made_with)
        # A difference of two sums is no better than their size.
        size = plain if golden.is_complete else plain.max()
        kept = golden.X[golden.kept(entry)]
        total = np.nansum((kept - np.nanmean(kept, axis=0)) ** 2, axis=0)
        assert (np.abs(step.between - plain) <= 1e-9 * size + 1e-12 * total).all()
        accepted = step if entry["accepted"] else accepted
    theirs = np.array(run["bss_per_feature"])
    limit = 0 if golden.is_complete else 1e-9 * theirs.max()
    assert_allclose(accepted.between, theirs, rtol=1e-9, atol=limit)


@each_run(sparse)
def test_weights_agree(golden, run):
    exact = sparse_weights(np.array(run["bss_per_feature"]), run["L1"])
    assert_allclose(exact, run["weights_exact"], rtol=0, atol=1e-9)
    for entry, step, _ in steps_like(golden, run):
        assert np.array(entry["weights"]) @ step.between == pytest.approx(entry["WBSS"], rel=1e-9)
        weights = sparse_weights(step.between, run["L1"])
        assert_allclose(weights, entry["weights"], rtol=0, atol=2 * RSKC_PRECISION)
        assert weights @ step.between == pytest.approx(entry["WBSS"], rel=RSKC_PRECISION)


# ---- The whole fit, at the default number of restarts


@cache
def fit(case, l1_bound, trim):
    X = goldens()[case].X
    if l1_bound is not None:
        l1_bound = min(l1_bound, np.sqrt(X.shape[1]))  # beyond, it warns that it never binds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallClusterWarning)
        model = RobustSparseKMeans(goldens()[case].K, trim=trim, l1_bound=l1_bound, random_state=0)
        return model.fit(X)


def fit_like(golden, run):
    return fit(golden.name, run["L1"], run["alpha"])


@each_run(lambda run: not sparse(run))
def test_without_sparsity_the_fit_is_the_same(golden, run):
    model = fit_like(golden, run)
    assert classification_error_rate(model.labels_, run["labels"]) == 0
    assert_array_equal(model.trimmed_weighted_, golden.mask(run["oW"]))
    assert_array_equal(model.trimmed_, model.trimmed_weighted_)
    assert model.inertia_ == pytest.approx(run["WWSS"], rel=1e-9)
    if golden.is_complete:
        centers = np.sort(model.cluster_centers_, axis=0)
        assert_allclose(centers, np.sort(run["centers"], axis=0), atol=1e-9)


@each_run(lambda run: sparse(run) and run["alpha"] == 0)
def test_without_trimming_the_objective_is_at_least_as_large(golden, run):
    model = fit_like(golden, run)
    assert model.objective_ >= max(run["WBSS"]) * (1 - RSKC_PRECISION)
    assert not model.trimmed_.any()


@each_run(lambda run: sparse(run) and run["alpha"] > 0)
def test_with_trimming_the_objective_per_kept_case_is_at_least_as_large(golden, run):
    model = fit_like(golden, run)
    theirs = max(entry["WBSS"] / golden.kept(entry).sum() for entry in run["path"])
    assert model.objective_ / (~model.trimmed_).sum() >= theirs * (1 - RSKC_PRECISION)


def test_where_trimming_covers_the_outliers_the_truth_is_found_as_well():
    """Not run by run: in weak signals one case of 60 is a CER of .02, and luck decides on it."""
    names, ours, theirs = [], [], []
    for golden, run in complete():
        model = fit_like(golden, run)
        if model.n_trim_ >= golden.outlier.sum():
            names.append(f"{golden.name} {name(run)}")
            ours.append(golden.error(model.labels_))
            theirs.append(golden.error(golden.labels(run)))
    worse = np.subtract(ours, theirs) > 0.01
    listed = [f"{names[i]}: {ours[i]:.3f} ({theirs[i]:.3f})" for i in np.flatnonzero(worse)]
    print("CER above RSKC's:", *listed, sep="\n  ")
    assert len(names) > 90
    assert np.mean(ours) <= np.mean(theirs) + 0.01
    assert worse.mean() <= 0.08
