import numpy as np
import pytest
from benchmarks.designs import DESIGNS, NULLS, SMALL_CLUSTERS, make_design
from numpy.testing import assert_array_equal

from rskc.datasets import make_contaminated, make_figure1, make_masking, make_simulation

KINDS = ("shared_cell", "clump_cells", "clump_rows", "far_rows")

MAKERS = {
    "figure1": lambda seed: make_figure1(random_state=seed),
    "masking": lambda seed: make_masking(random_state=seed),
    **{f"model{m}": lambda seed, m=m: make_simulation(m, random_state=seed) for m in range(3)},
    **{k: lambda seed, k=k: make_contaminated(k, random_state=seed) for k in KINDS},
}


def changed_cells(clean, outlying):
    return np.argwhere(clean.data != outlying.data)


@pytest.mark.parametrize("maker", MAKERS)
def test_a_seed_gives_the_same_data(maker):
    make = MAKERS[maker]
    for once, again in zip(make(3), make(np.random.default_rng(3)), strict=True):
        assert_array_equal(once, again)
    assert not np.array_equal(make(3).data, make(4).data)


@pytest.mark.parametrize(
    ("maker", "spread"), [("figure1", 3.0), ("masking", 2.0), ("model1", 1.0), ("shared_cell", 1.5)]
)
def test_cluster_means_are_near_the_truth(maker, spread):
    tables = [MAKERS[maker](seed) for seed in range(30)]
    for cluster, mean in enumerate((-spread, 0.0, spread)):
        found = np.vstack([t.data[(t.target == cluster) & ~t.outliers] for t in tables])
        truth = np.where(tables[0].informative, mean, 0.0)
        assert np.abs(found.mean(axis=0) - truth).max() < 5 / np.sqrt(len(found))


@pytest.mark.parametrize(
    ("kind", "cells", "mean"),
    [
        ("shared_cell", [499], 25),
        ("clump_cells", [497, 498, 499], 8),
        ("clump_rows", np.arange(500), 5),
        ("far_rows", np.arange(500), 1000),
    ],
)
def test_only_the_outlying_cells_of_the_outlying_cases_change(kind, cells, mean):
    clean = make_contaminated(kind, n_outliers=0, random_state=2)
    outlying = make_contaminated(kind, random_state=2)
    cases = np.flatnonzero(outlying.outliers)
    assert_array_equal(changed_cells(clean, outlying), [[i, j] for i in cases for j in cells])
    assert abs(outlying.data[np.ix_(cases, cells)].mean() - mean) < 1.5


@pytest.mark.parametrize("name", [*DESIGNS, *SMALL_CLUSTERS, *NULLS])
def test_designs_say_the_truth_about_themselves(name):
    design = make_design(name, random_state=1)
    n, p = design.data.shape
    assert design.labels.shape == design.outlying.shape == (n,)
    assert design.informative.shape == (p,)
    assert set(design.labels[design.labels >= 0]) == set(range(design.n_clusters))
    assert (design.n_clusters == 1) == (name in NULLS)
    assert design.informative.any() == (name not in NULLS)
    no_cluster = design.outlying if name.endswith(("rows", "clump")) else np.zeros(n, bool)
    assert_array_equal(design.labels < 0, no_cluster)
    assert_array_equal(design.data, make_design(name, random_state=1).data)
    assert not np.array_equal(design.data, make_design(name, random_state=2).data)


def test_designs_have_the_clusters_and_outlying_cells_they_name():
    line = make_design("line, cells", random_state=0)
    centers = [line.data[line.labels == k][:, line.informative].mean() for k in range(4)]
    assert np.abs(np.array(centers) - [-3, -1, 1, 3]).max() < 0.5
    assert line.outlying.sum() == 6
    assert (np.abs(line.data) > 6).any(axis=1)[line.outlying].all()
    clump = make_design("three, clump", random_state=0)
    shared = (np.abs(clump.data - 8) < 2)[clump.outlying].all(axis=0)
    assert shared.sum() == 5
    small = make_design("small cluster", random_state=0)
    assert_array_equal(np.bincount(small.labels), [75, 63, 12])


def test_designs_take_a_generator():
    drawn = [make_design("wide", np.random.default_rng(5)).data for _ in range(2)]
    assert_array_equal(*drawn)
