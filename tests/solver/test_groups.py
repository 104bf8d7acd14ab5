"""Features that share a weight: the weights step, laws, searches, files and the command line."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2_contingency, f_oneway, rankdata

from commands import flat, run
from rskc import RobustSparseKMeans, load, save
from rskc.datasets import make_simulation
from rskc.displays import WeightsDisplay
from rskc.files import TableError, read_gmt
from rskc.model.automatic import rank_tests, ranks_of
from rskc.report import make_report
from rskc.selection import GapL1, GridSearch, Stability
from rskc.solver import Problem
from rskc.solver.alternate import weigh
from rskc.solver.groups import FeatureGroups, as_plain, check_groups


@pytest.fixture(scope="module")
def X():
    return make_simulation(model=1, random_state=0).data[:, :100]  # 50 features matter


def by_tens(p=100):
    return [f"g{j // 10}" for j in range(p)]


def fitted(X, groups=None, **settings):
    settings |= {"random_state": 0, "n_init": 10, "feature_groups": groups}
    return RobustSparseKMeans(3, **settings).fit(X)


# ---- The weights step


@settings(max_examples=60)
@given(st.lists(st.integers(0, 4), min_size=2, max_size=12), st.floats(1, 3), st.integers(0, 2**31))
def test_weights_of_groups_keep_both_norms_and_are_the_best(names, bound, seed):
    groups = check_groups([f"g{name}" for name in names], None, len(names))
    rng = np.random.default_rng(seed)
    between = rng.gamma(1, size=len(names))
    found = weigh(Problem(2, l1_bound=bound, feature_groups=groups), between)
    v = groups.weights_of(found)
    assert np.linalg.norm(v) <= 1 + 1e-12
    assert v.sum() <= bound * (1 + 1e-12)
    assert all(len(np.unique(found[members])) == 1 for members in groups.members)
    for _ in range(20):  # no other weights within the norms bring more
        other = np.maximum(v + 0.1 * rng.normal(size=len(v)), 0)
        other /= max(np.linalg.norm(other), other.sum() / bound, 1e-300)
        assert groups.spread(other) @ between <= found @ between * (1 + 1e-12)


@pytest.mark.parametrize("runs", [1, 3])
def test_groups_of_one_take_the_step_of_features_bit_by_bit(runs):
    between = np.random.default_rng(0).gamma(1, size=(runs, 30))
    alone = check_groups([f"f{j}" for j in range(30)], None, 30)
    for asked in ({"l1_bound": 2.5}, {"n_features": 7}):
        plain = weigh(Problem(2, **asked), between)
        assert_array_equal(weigh(Problem(2, **asked, feature_groups=alone), between), plain)


# ---- Fits


def test_groups_that_matter_are_found(X):
    model = fitted(X, by_tens())
    assert model.n_features_different_ == 5
    assert_array_equal(model.group_weights_ > 0, np.arange(10) < 5)
    assert_array_equal(model.group_names_, [f"g{j}" for j in range(10)])
    assert_array_equal(model.feature_group_, np.arange(100) // 10)
    assert_allclose(model.feature_weights_, np.repeat(model.group_weights_, 10) / 10)
    assert model.l1_bound_ == pytest.approx(model.group_weights_.sum())
    assert np.linalg.norm(model.group_weights_) == pytest.approx(1)
    again = model.set_params(feature_groups=None).fit(X)
    assert not hasattr(again, "group_names_")


def test_a_group_of_copies_counts_like_the_feature_alone():
    few = np.random.default_rng(0).normal(size=(60, 8))
    few[:, :4] += np.outer(np.repeat([0, 5, 10], 20), [1, -1, 0.8, 0.6])
    copied = np.hstack([few, few[:, [0, 0]]])
    alone = fitted(few, l1_bound=1.8, trim=0)
    groups = {"copies": [0, 8, 9]}
    together = fitted(copied, groups, l1_bound=1.8, trim=0)
    assert_array_equal(alone.labels_, together.labels_)
    assert_allclose(together.group_weights_, alone.feature_weights_, atol=1e-9)
    assert together.objective_ == pytest.approx(alone.objective_)


def test_an_array_and_a_mapping_say_the_same(X):
    names = [f"x{j}" for j in range(100)]
    frame = pd.DataFrame(X, columns=names)
    by_name = {"a": names[:10], "b": ["x12"], "c": "x13"}
    by_number = {"a": range(10), "b": 12, "c": np.array([13])}
    array = ["a"] * 10 + [None, "", "b", "c"] + [np.nan] * 86
    models = [
        fitted(data, groups, n_features=3)
        for data, groups in ((frame, by_name), (X, by_number), (X, array))
    ]
    for model in models[1:]:
        assert_array_equal(model.feature_weights_, models[0].feature_weights_)
        assert_array_equal(model.group_names_, models[0].group_names_)
    assert models[0].group_names_[:4].tolist() == ["a", "x10", "x11", "b"]


def test_missing_cells_and_an_unobserved_feature(X):
    X = X[:, :40].copy()
    X[::7, 3], X[:, 5] = np.nan, np.nan
    model = fitted(X, by_tens(40), n_features=2)
    assert model.feature_weights_[5] == 0
    assert_allclose(model.feature_weights_[:5], model.group_weights_[0] / 9)


# ---- Tests of groups


def grouped_tests(X, labels, groups):
    ranks, K = ranks_of(X), labels.max() + 1
    return rank_tests(ranks, labels, K, groups=groups)


def test_the_test_of_copies_is_that_of_the_feature():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 20)
    x = rng.normal(size=60) + 0.4 * labels
    found = grouped_tests(np.column_stack([x, x, x]), labels, check_groups(["a"] * 3, None, 3))
    ranks = rankdata(x)
    expected = f_oneway(*(ranks[labels == k] for k in range(3)))
    assert_allclose([found.statistics[0], found.p_values[0]], expected, rtol=1e-6)


def test_the_test_of_a_category_is_that_of_its_table():
    rng = np.random.default_rng(1)
    labels = np.repeat([0, 1], 150)
    category = np.where(rng.random(300) < 0.15 * labels, 0, rng.integers(0, 3, 300))
    indicators = np.eye(3)[category]
    shares = indicators.mean(axis=0)
    groups = FeatureGroups(
        np.array(["c"], object), np.zeros(3, int), np.zeros(3, int), (1 - shares) / 2, np.ones(3)
    )
    table = np.array([[(labels[category == c] == k).sum() for c in range(3)] for k in (0, 1)])
    expected = chi2_contingency(table).pvalue
    assert grouped_tests(indicators, labels, groups).p_values[0] == pytest.approx(
        expected, rel=0.05
    )


# ---- Searches, files, words


def test_searches_carry_groups_by_name(X):
    frame = pd.DataFrame(X[:, :60], columns=[f"n{j}" for j in range(60)])
    groups = {f"g{i}": [f"n{j}" for j in range(10 * i, 10 * i + 10)] for i in range(6)}
    model = RobustSparseKMeans(3, n_init=5, trim=0.02, feature_groups=groups)
    how = {"random_state": 0, "n_jobs": 1, "progress": False}
    gap = GapL1(model, 4, n_permutations=3, **how).fit(frame)
    assert gap.table_.l1_bound.max() == pytest.approx(np.sqrt(6))
    assert gap.table_.n_features.max() <= 6
    assert gap.best_estimator_.feature_groups == groups
    grid = GridSearch(model, 3, 2, [0], **how).fit(frame)
    assert grid.table_.n_features.max() <= 6
    assert grid.weights_.shape == (2, 60)
    assert grid.best_estimator_.group_names_.tolist() == list(groups)
    stable = Stability(model, [3], n_splits=2, n_references=0, **how).fit(frame)
    assert stable.selection_probabilities_.shape == (60,)
    assert len(np.unique(stable.selection_probabilities_[:10])) == 1


def test_groups_given_by_index_and_range_are_kept_in_a_file(X, tmp_path):
    groups = {"a": pd.Index(range(10)), 7: (20, 21)}
    model = fitted(X, groups, n_features=2)
    save(model, tmp_path / "m.rskc")
    again = load(tmp_path / "m.rskc")
    assert again.feature_groups == as_plain(groups)
    assert_array_equal(again.fit(X).group_weights_, model.group_weights_)


def test_words_frames_and_pictures_speak_of_groups(X):
    pytest.importorskip("matplotlib")
    model = fitted(X, by_tens(), n_features=3, trim=0.02)
    words = model.summary()
    assert "3 of 10 feature groups have weight" in words
    frame = model.features_frame()
    assert_array_equal(frame.group, by_tens())
    assert_array_equal(frame.group_weight, np.repeat(model.group_weights_, 10))
    display = WeightsDisplay.from_estimator(model)
    assert len(display.bars_) == 3
    assert "3 of 10 feature groups have weight" in display.ax_.get_title(loc="left")
    page = make_report(model, X)
    assert "3 of 10 feature groups have weight" in page.summary["headline"]
    assert page.summary["charts"]["weights"]["data"]["bars"]["feature"][0] in model.group_names_
    assert [c["label"] for c in page.summary["features"]["columns"]][3:5] == [
        "Group",
        "Weight of the group",
    ]


# ---- GMT files


def test_a_gmt_file(tmp_path):
    path = tmp_path / "sets.gmt"
    path.write_text("ONE\tna\tA\tB\tZ\n\nTWO\tna\tB\tC\t\nNONE\tna\tX\tY\n")
    found = read_gmt(path, list("ABCDE"))
    assert found.groups == {"ONE": ["A", "B"], "TWO": ["C"]}
    assert (found.not_found, found.n_several, found.n_alone) == (["NONE"], 1, 2)
    assert found.words() == (
        "2 groups with features of the table, 1 without any ('NONE'); 2 features in no group, "
        "with a weight alone; 1 feature in several groups, counted in the first."
    )


def test_a_damaged_gmt_file(tmp_path):
    path = tmp_path / "damaged.gmt.gz"
    path.write_bytes(gzip.compress(b"a\tb\tA")[:14] + b"\xff" * 20)
    with pytest.raises(TableError, match="cannot be read"):
        read_gmt(path, ["A"])


def test_groups_in_the_command_line(X, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = [f"G{j}" for j in range(40)]
    pd.DataFrame(X[:, :40], columns=names, index=[f"s{i}" for i in range(60)]).to_csv("genes.csv")
    sets = [f"P{i}\tna\t" + "\t".join(names[10 * i : 10 * i + 10]) for i in range(3)]
    (tmp_path / "p.gmt").write_text("\n".join(sets))
    asked = ["genes.csv", "-k", "3", "--n-init", "5", "--groups", "p.gmt", "--no-report"]
    told = flat(run("fit", *asked).output)
    assert "p.gmt: 3 groups with features of the table; 10 features in no group" in told
    assert "feature groups" in told
    features = pd.read_csv("genes-rskc/features.csv")
    assert features.group[[0, 10, 35]].tolist() == ["P0", "P1", "G35"]
    summary = json.loads((tmp_path / "genes-rskc" / "summary.json").read_text())
    assert {"P0", "P1", "P2"} & {each["feature"] for each in summary["result"]["top_features"]}
