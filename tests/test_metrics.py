"""The measures: laws, small cases by hand, and R's RSKC on the same partitions and centers."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import rand_score

from counting import count_calls
from definitions import found_by_r
from rskc import RobustSparseKMeans
from rskc.datasets import make_figure1
from rskc.engines import engine_for
from rskc.metrics import (
    FeatureAgreement,
    classification_error_rate,
    feature_agreement,
    feature_precision,
    revised_silhouette,
    sensitivity,
    silhouette_means,
)

labels = st.integers(-3, 5)
pairs = st.lists(st.tuples(labels, labels), min_size=2, max_size=40)


class Distances:
    """Stands for a fitted model: its distances are given."""

    def __init__(self, distances):
        self.distances = np.asarray(distances)

    def _apply(self, method, X):
        assert method == "squared"
        return self.distances


def naive_rate(a, b):
    n = len(a)
    wrong = [(a[i] == a[j]) != (b[i] == b[j]) for i in range(n) for j in range(i)]
    return np.mean(wrong)


@given(pairs)
def test_the_rate_is_the_share_of_pairs_that_disagree(rows):
    a, b = np.transpose(rows)
    rate = classification_error_rate(a, b)
    assert rate == pytest.approx(naive_rate(a, b), abs=1e-15)
    assert rate == pytest.approx(1 - rand_score(a, b), abs=1e-12)
    assert rate == classification_error_rate(b, a)


@given(pairs, st.randoms())
def test_the_rate_does_not_see_names_or_order(rows, random):
    a, b = np.transpose(rows)
    order = random.sample(range(len(a)), len(a))
    named = np.array(["x", "", "yy", "é", "1", "z z", "0", "-1", "nan"])[b + 3]
    renumbered = random.sample(range(-(10**9), 10**9), 9)
    rate = classification_error_rate(a, b)
    assert classification_error_rate(a[order], b[order]) == rate
    assert classification_error_rate(np.array(renumbered)[a + 3], named) == rate
    assert classification_error_rate(a, a * 0.25) == 0


WORDS = np.array(["a", "b", "c", "d"], object)
KINDS_OF_LABELS = {
    "numbers": lambda codes: codes * 2.5,
    "text": lambda codes: WORDS.astype(str)[codes],
    "words": lambda codes: WORDS[codes],
    "list": lambda codes: WORDS[codes].tolist(),
    "categories": lambda codes: pd.Categorical(WORDS[codes]),
    "series": lambda codes: pd.Series(WORDS[codes], index=codes),
    "nullable": lambda codes: pd.array(np.where(codes == 3, None, codes), "Int64"),
    "mixed": lambda codes: np.array([None, "None", 1, "1"], object)[codes],
    "new NaNs": lambda codes: np.array([float("nan") if c == 3 else c for c in codes], object),
}
each_kind = pytest.mark.parametrize("kind", KINDS_OF_LABELS)


@each_kind
def test_labels_take_at_most_three_calls_each(kind):
    """Some kinds are numbered by a dictionary, which is a call or two a label, and never more."""
    codes = np.random.default_rng(0).integers(0, 4, 50_000)
    labels = KINDS_OF_LABELS[kind](codes)
    assert classification_error_rate(labels, codes) == 0
    assert count_calls(lambda: classification_error_rate(labels, codes)) < 3 * len(codes)


@given(pairs, st.randoms())
def test_sensitivity_is_the_largest_share_of_each_class(rows, random):
    true, clusters = np.transpose(rows)
    found = sensitivity(true, clusters)
    table = pd.crosstab(true, clusters)
    assert_array_equal(found["class"], table.index)
    assert_array_equal(found["size"], table.sum(axis=1))
    assert_array_equal(found["cluster"], table.idxmax(axis=1))
    assert_allclose(found["sensitivity"], table.max(axis=1) / table.sum(axis=1))
    order = random.sample(range(len(true)), len(true))
    pd.testing.assert_frame_equal(sensitivity(true[order], clusters[order]), found)


@each_kind
def test_sensitivity_takes_any_labels(kind):
    codes = np.array([3, 0, 0, 1, 2, 2, 3, 3])
    labels = KINDS_OF_LABELS[kind](codes)
    found = sensitivity(labels, np.minimum(codes, 1))
    assert sorted(found["size"]) == [1, 2, 2, 3]
    assert (found["sensitivity"] == 1).all()
    assert found["cluster"].sum() == 3
    named = sensitivity(codes, labels)["cluster"]
    assert len(named) == 4
    if kind not in ("nullable", "mixed", "new NaNs"):
        assert_array_equal(named, np.unique(np.asarray(labels)))


@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 30))
def test_a_silhouette_compares_the_two_nearest_centers(seed, K, n):
    distances = np.random.default_rng(seed).integers(0, 5, (n, K)) / 4
    found = revised_silhouette(Distances(distances), None)
    ordered = np.sort(distances, axis=1)
    assert_array_equal(found.a, ordered[:, 0])
    assert_array_equal(found.b, ordered[:, 1])
    assert_array_equal(found.nearest, distances.argmin(axis=1))
    assert (found.second != found.nearest).all()
    assert_array_equal(distances[np.arange(n), found.second], found.b)
    assert ((found.values >= 0) & (found.values <= 1)).all()
    assert_allclose(found.values * found.b, found.b - found.a)
    assert (found.values[found.b == 0] == 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_silhouettes_of_a_fitted_model(dtype):
    X = make_figure1(n_samples=90, n_features=20, random_state=0).data.astype(dtype)
    model = RobustSparseKMeans(3, trim=0, l1_bound=1.4, random_state=0).fit(X)
    found = revised_silhouette(model, X)
    assert_array_equal(found.nearest, model.labels_)
    errors = X[:, None, :] - model.cluster_centers_
    expected = np.sort((errors**2) @ model.feature_weights_, axis=1)
    assert_allclose(found.a, expected[:, 0], rtol=1e-5)
    assert_allclose(found.b, expected[:, 1], rtol=1e-5)
    framed = revised_silhouette(model.set_output(transform="pandas"), X)
    assert_array_equal(framed.values, found.values)


# ---- Means of silhouettes


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 30))
def test_means_do_not_see_the_order_and_follow_the_names(seed, K, n):
    rng = np.random.default_rng(seed)
    distances, outliers = rng.random((n, K)), rng.random(n) < 0.3
    table = silhouette_means(revised_silhouette(Distances(distances), None), outliers)
    assert table["size"].sum() == n
    assert table["n_outliers"].sum() == outliers.sum()
    order = rng.permutation(n)
    moved = revised_silhouette(Distances(distances[order]), None)
    pd.testing.assert_frame_equal(silhouette_means(moved, outliers[order]), table)
    renamed = revised_silhouette(Distances(distances[:, ::-1]), None)
    again = silhouette_means(renamed, outliers)
    again = again.assign(cluster=K - 1 - again["cluster"]).sort_values("cluster")
    both = again[again["size"] > 0], table[table["size"] > 0]
    pd.testing.assert_frame_equal(*(frame.reset_index(drop=True) for frame in both))


# ---- Features


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20, unique=True), st.data())
def test_precision_sees_neither_order_nor_unit(weights, data):
    weights, p = np.array(weights), len(weights)
    true = np.array(data.draw(st.lists(st.booleans(), min_size=p, max_size=p)))
    order = np.array(data.draw(st.permutations(range(p))))
    n_top = data.draw(st.none() | st.integers(1, 25))
    count = feature_precision(weights, true, n_top)
    assert feature_precision(weights[order], true[order], n_top) == count
    assert feature_precision(weights * 8, np.flatnonzero(true), n_top) == count
    assert count <= min(true.sum(), np.count_nonzero(weights), p if n_top is None else n_top)
    assert feature_precision(weights, np.ones(p, bool)) == np.count_nonzero(weights)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=20), st.randoms())
def test_agreement_is_that_of_sets(rows, random):
    a, b = np.transpose(rows).astype(float)
    found, turned = feature_agreement(a, b), feature_agreement(b, a)
    first, second = set(np.flatnonzero(a)), set(np.flatnonzero(b))
    assert found[:3] == (len(first), len(second), len(first & second))
    if first and second:
        assert found.jaccard == len(first & second) / len(first | second)
        assert found.jaccard <= min(found.share_of_a, found.share_of_b)
        assert (found.share_of_a, found.share_of_b) == (turned.share_of_b, turned.share_of_a)
    order = random.sample(range(len(a)), len(a))
    assert_array_equal(feature_agreement(a[order], b[order]), found)


def test_agreement_of_models():
    X = pd.DataFrame(make_figure1(n_samples=60, n_features=6, random_state=0).data).add_prefix("g")
    models = [RobustSparseKMeans(3, n_features=k, n_init=4, random_state=0).fit(X) for k in (2, 4)]
    assert feature_agreement(*models) == FeatureAgreement(2, 4, 2, 0.5, 1, 0.5)
    assert feature_agreement(models[0], models[1].feature_weights_).n_both == 2
    other = RobustSparseKMeans(3, n_init=4).fit(X.add_prefix("h"))
    for wrong in (other, np.ones(5)):
        with pytest.raises(ValueError, match=r"^a is about 6 features and b about [56]; .*\.$"):
            feature_agreement(models[0], wrong)
    with pytest.raises(ValueError, match=r"^b must be one row of finite weights"):
        feature_agreement(models[0], RobustSparseKMeans())


# ---- R's RSKC, and a real table


@cache
def references():
    """The reference results of R, those of sparse fits."""
    files = sorted((Path(__file__).parent / "reference").glob("golden*.json.gz"))
    records = [found_by_r(path.name.partition(".")[0]) for path in files]
    return [(r, run) for r in records for run in r["runs"] if "revised_silhouette" in run]


def silhouette_like(record, run):
    """Ours, at the centers and weights of R."""
    X, centers = np.array(record["data"], float), np.array(run["centers"], float)
    engine = engine_for(X)
    placed = engine.frame.place(centers[:, None, :])
    labels = np.zeros((len(centers), len(X)), np.int32)
    distances = engine.distances(labels, placed, np.array([run["weights"]])).T * engine.unit
    return revised_silhouette(Distances(distances), X)


def test_silhouettes_and_their_means_agree_with_r():
    assert len({record["case"] for record, _ in references()}) == 14
    for record, run in references():
        found, theirs = silhouette_like(record, run), np.array(run["revised_silhouette"])
        assert_allclose(found.values, theirs, rtol=0, atol=1e-9)
        outliers = np.zeros(len(theirs), bool)
        outliers[np.array(run["oW"] + run["oE"], int) - 1] = True
        for row in silhouette_means(found, outliers).itertuples():
            own = found.nearest == row.cluster
            for mean, mask in (
                (row.mean, own),
                (row.mean_without_outliers, own & ~outliers),
                (row.mean_of_outliers, own & outliers),
            ):
                expected = theirs[mask].mean() if mask.any() else np.nan
                assert mean == pytest.approx(expected, abs=1e-9, nan_ok=True)
