"""Searches on tables with more cases than they work on, and on tables of other kinds."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans

from rskc import RobustSparseKMeans
from rskc.inputs.validation import PRECISIONS, validated
from rskc.report._searches import sections_of
from rskc.selection import Clest, GapL1, GridSearch
from rskc.selection.search import MAX_SAMPLES
from rskc.selection.subsample import draw, draw_cases, gather, with_length
from skips import skip_without

# Seeds that are not set come upon solutions that are passed over, now and then.
pytestmark = pytest.mark.filterwarnings("ignore::rskc.SmallClusterWarning")

QUIET = {"progress": False, "random_state": 0, "n_jobs": 1}
MODEL = RobustSparseKMeans(3, l1_bound=2, trim=0.05, n_init=3)
SEARCHES = {
    "Clest": lambda **how: Clest(MODEL, (2, 3, 4), n_splits=2, n_references=2, **how),
    "GapL1": lambda **how: GapL1(MODEL, 5, n_permutations=3, **how),
    "GridSearch": lambda **how: GridSearch(MODEL, (2, 3), 2, (0, 0.05), **how),
}
EVERY = pytest.mark.parametrize("name", SEARCHES)


def make(name, **how):
    return SEARCHES[name](**{**QUIET, **how})


def corners(n=400, p=8, far=8.0, seed=0):
    """Three clusters of unit noise, each out along an axis of its own, and some outlying cases."""
    rng = np.random.default_rng(seed)
    X = far * np.eye(3, p)[np.arange(n) % 3] + rng.standard_normal((n, p))
    X[:: n // 8] += rng.uniform(20, 40, (len(X[:: n // 8]), p))
    return X


def seed_of_search(random_state=0):
    return int(np.random.RandomState(random_state).randint(2**31))


def drawn(X, n_used, random_state=0):
    return X[draw_cases(len(X), n_used, seed_of_search(random_state))]


def assert_same_choice(search, other):
    pd.testing.assert_frame_equal(search.table_, other.table_)
    assert search._chosen() == other._chosen()


def as_dask(X, rows=90, **options):
    skip_without("dask")
    import dask.array as array

    return array.from_array(X, chunks=(rows, X.shape[1]), **options)


def with_unknown_rows(X):
    blocks = as_dask(X)
    return blocks[blocks[:, 0] < np.inf]


def as_dask_frame(X):
    skip_without("dask")
    import dask.dataframe as frames

    named = pd.DataFrame(X, columns=[f"gene {j}" for j in range(X.shape[1])])
    return frames.from_pandas(named, npartitions=5)


def as_tensor(X):
    skip_without("array_api_compat", "torch")
    import torch

    return torch.from_numpy(X)


KINDS = {
    "array": as_dask,
    "unknown rows": with_unknown_rows,
    "column chunks": lambda X: as_dask(X).rechunk((130, 3)),
    "frame": as_dask_frame,
    "tensor": as_tensor,
}
TOLD = pytest.mark.filterwarnings("ignore:X has 3 chunks of columns")
EVERY_KIND = pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=TOLD if kind == "column chunks" else ()) for kind in KINDS]
)


# ---- Which cases


@given(n=st.integers(1, 500), share=st.floats(0, 1), seed=st.integers(0, 2**31 - 1))
def test_cases_are_drawn_once_each_and_upwards(n, share, seed):
    n_used = max(1, int(share * n))
    cases = draw_cases(n, n_used, seed)
    assert len(cases) == n_used
    assert (np.diff(cases) > 0).all()
    assert cases[0] >= 0
    assert cases[-1] < n
    assert_array_equal(cases, draw_cases(n, n_used, seed))


def test_every_case_may_be_drawn():
    counts = np.zeros(20, int)
    for seed in range(2000):
        counts[draw_cases(20, 5, seed)] += 1
    assert abs(counts - 500).max() < 100  # five standard deviations


def test_few_of_very_many_cases_take_little_memory():
    assert draw_cases(10**12, 10_000, 0).max() < 10**12


def test_a_table_that_is_small_enough_is_itself():
    X = corners()
    assert gather(X, draw(len(X), None, len(X), 0).cases) is X


@EVERY_KIND
def test_the_same_cases_of_every_kind_of_table(kind):
    X = corners()
    search = Clest(MODEL)
    table = validated(search, KINDS[kind](X), reset=True, dtype=PRECISIONS)
    found = gather(with_length(table), draw(len(X), None, 37, 5).cases)
    assert isinstance(found, np.ndarray)
    assert found.flags.c_contiguous
    assert_array_equal(found, X[draw_cases(len(X), 37, 5)])
    assert_array_equal(gather(with_length(table), None), X)


def test_only_the_wanted_rows_of_dask_travel_and_other_blocks_are_not_read():
    skip_without("dask")
    import dask.array as array

    read = []

    def block(block_info=None):
        (first, last), _ = block_info[None]["array-location"]
        read.append(first)
        return np.arange(first, last, dtype=float)[:, None]

    table = array.map_blocks(block, chunks=((10,) * 100, (1,)), dtype=float)
    read.clear()  # Dask may have tried it
    found = gather(table, draw(1000, None, 5, 3).cases)
    assert_array_equal(found[:, 0], draw_cases(1000, 5, 3))
    assert len(read) <= 5


def test_counting_rows_leaves_the_array_of_the_caller_alone():
    table = with_unknown_rows(corners())
    assert len(with_length(table)) == 400
    assert np.isnan(table.shape[0])


# ---- What is searched


@EVERY
def test_small_tables_are_searched_whole(name):
    X = corners(120)
    asked = make(name).fit(X)
    assert asked.n_samples_used_ == 120
    assert asked.get_params()["max_samples"] == MAX_SAMPLES == 5000
    for most in (None, 120, 10**9):
        other = make(name, max_samples=most).fit(X)
        assert_same_choice(asked, other)
        assert_array_equal(asked.best_estimator_.labels_, other.best_estimator_.labels_)


@EVERY
def test_a_search_on_a_part_is_a_search_on_the_drawn_cases(name):
    X = corners()
    part = make(name, max_samples=150).fit(X)
    assert (part.n_samples_used_, part.n_samples_) == (150, 400)
    assert_same_choice(part, make(name).fit(drawn(X, 150)))
    assert len(part.best_estimator_.labels_) == 400
    assert len(part.fit_predict(X)) == 400


@EVERY
def test_the_model_is_fitted_to_all_cases_with_what_was_chosen(name):
    X = corners()
    part = make(name, max_samples=150).fit(X)
    seed = part.best_estimator_.random_state
    alone = RobustSparseKMeans(**{**MODEL.get_params(), "random_state": seed, **part._chosen()})
    assert_array_equal(part.best_estimator_.labels_, alone.fit(X).labels_)
    assert_allclose(part.best_estimator_.objective_, alone.objective_, rtol=1e-12)
    assert not hasattr(part, "_warm")


def test_the_part_depends_on_the_seed():
    X = corners()
    tables = [make("Clest", max_samples=100, random_state=seed).fit(X).table_ for seed in (0, 1)]
    assert not tables[0].equals(tables[1])


def test_the_same_part_for_any_number_of_jobs(in_processes):
    X = corners()
    one, two = (make("Clest", max_samples=150, n_jobs=n).fit(X) for n in (1, 2))
    assert_same_choice(one, two)
    assert_array_equal(one.best_estimator_.labels_, two.best_estimator_.labels_)


def test_a_frame_keeps_its_names():
    frame = pd.DataFrame(corners(), columns=list("abcdefgh"))
    frame.index = [f"case {i}" for i in range(400)]
    search = make("GapL1", max_samples=100).fit(frame)
    assert search.feature_names_in_.tolist() == list("abcdefgh")
    assert search.best_estimator_.case_names_in_[7] == "case 7"
    assert_same_choice(search, make("GapL1", max_samples=100).fit(frame.to_numpy()))


def test_another_clusterer_is_searched_on_a_part_as_well():
    X = corners()
    clest = Clest(KMeans(n_init=3), (2, 3, 4), n_splits=3, n_references=4, max_samples=120, **QUIET)
    assert len(clest.fit(X).best_estimator_.labels_) == 400


@pytest.mark.parametrize("value", [0, -1, 2.5, 0.5, "all", True])
def test_a_wrong_number_of_cases_is_refused(value):
    with pytest.raises(ValueError, match=r"max_samples=.* must be an integer >= 1 or None"):
        make("Clest", max_samples=value).fit(corners())


def test_too_small_a_part_is_refused_and_leaves_no_checkpoint(tmp_path):
    path = tmp_path / "checkpoint"
    with pytest.raises(ValueError, match="n_clusters=4 is more than 3 cases, as many as"):
        make("Clest", max_samples=11, checkpoint=path).fit(corners())
    assert not path.exists()


# ---- Checkpoints


def stop_after(search, X, n):
    def stop(done, total):
        if done >= n:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search.set_params(progress=stop).fit(X)


@pytest.mark.parametrize("random_state", [0, None])
def test_a_search_on_a_part_goes_on_with_the_same_part(random_state, tmp_path):
    X, path = corners(), tmp_path / "checkpoint"
    how = {"max_samples": 150, "checkpoint": path, "random_state": random_state}
    stop_after(make("Clest", **how), X, 2)
    calls = []
    resumed = make("Clest", **how, progress=lambda done, total: calls.append(done)).fit(X)
    assert calls[0] == 2
    if random_state is not None:
        assert_same_choice(resumed, make("Clest", max_samples=150).fit(X))


@pytest.mark.parametrize("random_state", [0, None])
def test_a_checkpoint_of_another_part_or_other_data_is_refused(random_state, tmp_path):
    X, path = corners(), tmp_path / "checkpoint"
    how = {"max_samples": 150, "checkpoint": path, "random_state": random_state}
    stop_after(make("Clest", **how), X, 2)
    with pytest.raises(ValueError, match=r"made with max_samples=150 .* has max_samples=160"):
        make("Clest", **{**how, "max_samples": 160}).fit(X)
    with pytest.raises(ValueError, match="made with other data"):
        make("Clest", **how).fit(X + 1e-9)


@EVERY_KIND
def test_a_checkpoint_serves_every_kind_of_table(kind, tmp_path):
    X, path = corners(), tmp_path / "checkpoint"
    how = {"max_samples": 150, "checkpoint": path}
    stop_after(make("Clest", **how), X, 4)
    calls = []
    make("Clest", **how, progress=lambda done, total: calls.append(done)).fit(KINDS[kind](X))
    assert calls[0] == 4


# ---- Other kinds of table


@EVERY_KIND
@EVERY
def test_every_kind_of_table_gives_the_same_choice(name, kind):
    X = corners()
    search = make(name, max_samples=150).fit(KINDS[kind](X))
    numpy = make(name, max_samples=150).fit(X)
    assert_same_choice(search, numpy)
    labels = search.best_estimator_.labels_
    assert type(labels).__module__.split(".")[0] == {"tensor": "torch"}.get(kind, "dask")
    assert_array_equal(np.asarray(labels), numpy.best_estimator_.labels_)


@pytest.mark.parametrize("kind", ["array", "unknown rows", "tensor"])
def test_a_small_table_of_every_kind_is_searched_whole(kind):
    X = corners(120)
    search = make("GapL1").fit(KINDS[kind](X))
    assert search.n_samples_used_ == 120
    assert_same_choice(search, make("GapL1").fit(X))
    assert not hasattr(search, "_warm")


def test_infinite_cells_among_the_drawn_are_refused():
    X = corners()
    X[draw_cases(400, 150, seed_of_search())[3], 2] = np.inf
    with pytest.raises(ValueError, match="Input X contains infinity"):
        make("Clest", max_samples=150).fit(as_dask(X))


@EVERY
def test_a_page_says_that_a_part_was_searched(name):
    X = corners()
    (part,), (whole,) = (sections_of(make(name, max_samples=most).fit(X)) for most in (150, None))
    assert "Searched on 150 of the 400 cases, drawn at random." in part["explain"]
    assert "Searched" not in whole["explain"]
