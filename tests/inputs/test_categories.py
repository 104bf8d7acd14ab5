"""Columns of categories: the encoder, fits of frames, searches, files and the command line."""

import json
import warnings
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from commands import flat, run
from model_files import refusal, rewritten, setting
from rskc import ColumnStandardizer, RobustSparseKMeans, load, save
from rskc.displays import ClusterDisplay, HeatmapDisplay, WeightsDisplay
from rskc.exceptions import FitWarning
from rskc.files import read_table, write_ranked_lists
from rskc.inputs.categories import CategoryEncoder, encoded_blocks
from rskc.report import make_report
from rskc.selection import GapL1, GridSearch, Stability
from rskc.selection.references import CLOUDS, permuted, stepped_reference

N = 120
CLASS = np.repeat([0, 1, 2], N // 3)


@pytest.fixture(scope="module")
def frame():
    """Three clusters in a number, a category and a flag; a number and a category of noise."""
    rng = np.random.default_rng(0)
    colors = np.array(["red", "blue", "green"])
    color = np.where(rng.random(N) < 0.9, colors[CLASS], rng.choice(colors, N)).astype(object)
    color[[5, 50]] = None
    made = pd.DataFrame(
        {
            "size": rng.normal(size=N) + 5 * (CLASS == 1),
            "noise": rng.normal(size=N),
            "color": color,
            "letter": rng.choice(list("uvwx"), N),
            "flag": rng.random(N) < 0.1 + 0.8 * (CLASS == 2),
        }
    )
    made["size"] /= made["size"].std()
    return made


def fitted(frame, K=3, **asked):
    return RobustSparseKMeans(K, **({"random_state": 0, "n_init": 10} | asked)).fit(frame)


@pytest.fixture(scope="module")
def model(frame):
    return fitted(frame, trim=0.02)


# ---- The encoder


@settings(max_examples=40)
@given(st.lists(st.sampled_from("abcdé"), min_size=12, max_size=60), st.randoms())
def test_a_column_of_categories_has_the_variance_of_a_number_in_halves(cells, random):
    encoder = CategoryEncoder()
    X = pd.DataFrame({"c": cells})
    if len(set(cells)) > 2 and 2 * len(set(cells)) >= len(cells):
        return
    found = encoder.fit(X).transform(X)
    assert found.var(axis=0).sum() == pytest.approx(2 / np.pi * (len(set(cells)) > 1))
    order = list(range(len(cells)))
    random.shuffle(order)
    again = CategoryEncoder().fit(X.iloc[order]).transform(X.iloc[order])
    assert_allclose(again, found[order])
    assert encoder.groups(None, None).masses.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.arange(6.0), "Expected 2D array, got 1D array"),
        (np.ones((6, 2), complex), "Complex data not supported"),
    ],
)
def test_the_encoder_checks_shape_and_kind(X, words):
    with pytest.raises(ValueError, match=words):
        CategoryEncoder().fit(X)


@pytest.mark.parametrize("n_blocks", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_fit_is_the_same_in_blocks(frame, n_blocks, weighted):
    dask = pytest.importorskip("dask.dataframe")
    cases = np.arange(len(frame))
    frame = frame.assign(letter=frame.letter.where(cases % 7 > 0))
    frame = frame.assign(grade=cases % 3, ward=cases // 3 % 2)  # numbers that stand for categories
    asked = {"categorical": ["ward"], "ordinal": ["grade"]} if weighted else {}
    weights = np.random.default_rng(0).integers(1, 4, len(frame)) if weighted else None
    blocks = dask.from_pandas(frame, npartitions=n_blocks)
    expected = RobustSparseKMeans(2, random_state=0, **asked).fit(frame, sample_weight=weights)
    model = RobustSparseKMeans(2, random_state=0, **asked).fit(blocks, sample_weight=weights)
    assert model.encoder_.columns_ == expected.encoder_.columns_
    assert_array_equal(model.labels_, expected.labels_)
    assert_allclose(model.feature_weights_, expected.feature_weights_, rtol=1e-9, atol=1e-12)
    assert_allclose(model.cluster_centers_, expected.cluster_centers_, rtol=1e-9, atol=1e-12)
    assert model.n_missing_ == expected.n_missing_
    assert_array_equal(model.predict(blocks), expected.predict(frame))
    assert_allclose(expected.transform(blocks), expected.transform(frame))


def test_of_blocks_only_columns_that_are_wanted_are_read(frame):
    dask = pytest.importorskip("dask.dataframe")
    blocks = dask.from_pandas(frame, npartitions=2)
    encoder = CategoryEncoder().fit(blocks)
    expected = encoder.transform(frame)
    rows = encoded_blocks(blocks, encoder)
    assert_array_equal(rows, expected)
    for wanted in (np.array([0]), np.array([1, expected.shape[1] - 1]), np.array([2, 0])):
        assert_array_equal(rows.of_columns(wanted), expected[:, wanted])


def test_what_blocks_cannot_hold(frame, model, monkeypatch):
    dask = pytest.importorskip("dask.dataframe")
    array = dask.from_pandas(frame[["size", "noise"]], npartitions=2).to_dask_array()
    with pytest.raises(ValueError, match="Categories need a data frame"):
        RobustSparseKMeans(2, categorical=[0]).fit(array)
    with pytest.raises(ValueError, match="fitted to categories, which need a data frame"):
        model.predict(array)
    days = frame.assign(day=pd.Timestamp("2026-01-01"))
    with pytest.raises(ValueError, match=r"not numbers: 'day' \(dates\)"):
        RobustSparseKMeans(2).fit(dask.from_pandas(days, npartitions=2))
    monkeypatch.setattr("rskc.inputs.categories.MOST_IN_BLOCKS", 2)
    with pytest.raises(ValueError, match="more than 2 categories; leave the column out"):
        RobustSparseKMeans(2).fit(dask.from_pandas(frame, npartitions=2))


# ---- Fits


def test_results_speak_of_columns(frame, model):
    assert model.n_features_in_ == 5
    assert model.feature_names_in_.tolist() == list(frame.columns)
    assert model.feature_weights_.shape == model.feature_p_values_.shape == (5,)
    assert set(np.flatnonzero(model.feature_weights_)) == {0, 2, 4}
    assert model.n_features_different_ == 3
    assert model.n_missing_ == 2
    assert not hasattr(model, "group_names_")
    assert (pd.crosstab(CLASS, model.labels_).max(axis=1) > 30).all()
    assert model.cluster_centers_.shape == (3, 2 + 3 + 4 + 2)
    table = model.features_frame().set_index("feature")
    red = pd.crosstab(model.labels_, frame.color, normalize="index").red
    k = int(red.argmax())
    assert table.loc["color", f"center_{k}"].startswith("red ")
    assert "color" in model.summary()
    assert "2 of 600 cells missing" in model.summary()


def test_methods_take_frames_with_the_same_columns(frame, model):
    assert_array_equal(model.predict(frame), model.labels_)
    assert_allclose(model.transform(frame).min(axis=1) ** 2, model.distances_, atol=1e-9)
    assert_array_equal(model.is_outlier(frame.iloc[:9]), model.outliers_[:9])
    assert np.isfinite(model.score(frame))
    of_polars = fitted(pl.from_pandas(frame), trim=0.02)
    assert_array_equal(of_polars.labels_, model.labels_)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"color": "hue"}))


def test_a_category_that_is_not_known(frame, model):
    new = frame.iloc[[0]].assign(color="pink")
    with pytest.warns(UserWarning, match="'pink' in 'color'"):
        distance = model.transform(new)
    Z = model.encoder_.transform(frame.iloc[[0]])
    names = model.encoder_.get_feature_names_out().tolist()
    Z[0, [names.index(f"color = {c}") for c in ("blue", "green", "red")]] = 0
    weights = model.feature_weights_[model.encoder_.columns]
    assert_allclose(distance**2, ((Z - model.cluster_centers_) ** 2 * weights).sum(1)[None])


def test_numbers_that_are_not_standardized_are_named(frame):
    raw = frame.assign(size=40 + 10 * frame["size"], noise=170 + 8 * frame["noise"])
    with pytest.warns(FitWarning, match="2 columns of numbers vary far more .*: size, noise"):
        model = fitted(raw, trim=0.02)
    assert model.warning_kinds_ == ["numbers not standardized"]
    assert model.feature_weights_[:2].sum() > 0.99 * model.feature_weights_.sum()
    for how in (("median", "mad"), ("mean", "std")):  # a warning would be an error
        fitted(ColumnStandardizer(*how).fit_transform(raw), trim=0.02)
    fitted(raw[["size", "noise"]], trim=0.02)  # no categories
    advice = {item["about"]: item["brief"] for item in make_report(model, raw).summary["advice"]}
    assert "standardize them" in advice["Numbers not standardized"]
    assert "Units differ" not in advice  # it would say the same


def test_models_come_back_from_their_files(frame, model, tmp_path):
    ordered = fitted(frame, ordinal={"color": ["red", "green", "blue"]}, categorical=["letter"])
    for made in (model, ordered):
        save(made, tmp_path / "m.rskc")
        again = load(tmp_path / "m.rskc")
        assert_array_equal(again.predict(frame), made.predict(frame))
        assert_array_equal(again.score_samples(frame), made.score_samples(frame))
        assert again.summary() == made.summary()
        pd.testing.assert_frame_equal(again.features_frame(), made.features_frame())
        assert_array_equal(again.fit(frame).labels_, made.labels_)
    data = (tmp_path / "m.rskc").read_bytes()
    for value in ({"list": []}, {"list": [{"list": ["x", {"list": []}, {"list": []}, 0.0]}]}):
        wrong = setting("attributes", "encoder_", value=value)
        assert "encoder_" in refusal(rewritten(data, tmp_path / "w.rskc", wrong))


# ---- Searches, markers, pictures, pages


def test_a_stepped_cloud_has_the_categories_of_the_data(frame):
    encoder = CategoryEncoder().fit(frame)
    X = encoder.transform(frame)
    X[3, encoder.columns == 2] = np.nan
    for kind in CLOUDS:
        cloud = stepped_reference(kind, X, encoder.columns)
        drawn = cloud.draw(np.random.default_rng(0))
        assert_array_equal(np.isnan(drawn), np.isnan(X))
        for j in np.flatnonzero(np.bincount(encoder.columns) > 1):
            own, other = X[:, encoder.columns == j], drawn[:, encoder.columns == j]
            assert_allclose(np.sort(own, axis=0), np.sort(other, axis=0))  # as frequent
            assert set((np.nan_to_num(other) > 0).sum(axis=1)) <= {0, 1}
        numbers = np.bincount(encoder.columns)[encoder.columns] == 1
        assert_allclose(drawn[:, numbers].std(axis=0), X[:, numbers].std(axis=0), rtol=0.3)


def test_steps_of_one_cloud_keep_their_correlation():
    rng = np.random.default_rng(0)
    f = rng.normal(size=2000)
    X = CategoryEncoder().fit_transform(pd.DataFrame({"x": f, "b": f + rng.normal(size=2000) > 0}))
    drawn = stepped_reference("normal", X, np.array([0, 1, 1])).draw(rng)
    own, found = (np.corrcoef(cells[:, 0], cells[:, 2])[0, 1] for cells in (X, drawn))
    assert 0.8 * own < found < 1.1 * own  # without the strengthening it is 0.8, the root of 2 / pi


def test_searches_take_categories(frame):
    model = RobustSparseKMeans(3, n_init=5, trim=0.02)
    how = {"random_state": 0, "n_jobs": 1, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stable = Stability(model, [3], n_splits=2, n_references=2, **how).fit(frame)
        sampled = Stability(model, [3], n_splits=2, n_references=0, max_samples=90, **how)
        sampled.fit(frame)
        gap = GapL1(model, 3, n_permutations=2, **how).fit(frame)
        grid = GridSearch(model, [2, 3], 2, [0], **how).fit(frame)
    for search in (stable, sampled):
        assert search.selection_probabilities_.shape == (5,)
        assert_array_equal(search.predict(frame), search.best_estimator_.labels_)
    assert gap.table_.l1_bound.max() == pytest.approx(np.sqrt(5))
    assert gap.table_.n_features.max() <= 5
    assert len(grid.changes_[0].features) <= 5
    assert grid.weights_.shape == (4, 5)


def test_indicators_of_a_category_are_permuted_together(frame):
    encoder = CategoryEncoder().fit(frame)
    groups, Z = encoder.groups(None, None), encoder.transform(frame)
    made = permuted(Z, np.random.default_rng(0), groups)
    own = groups.columns == 3
    assert_array_equal((made[:, own] > 0).sum(axis=1), np.ones(N))
    assert_allclose(np.sort(made, axis=0), np.sort(Z, axis=0))
    assert not np.array_equal(made[:, own], Z[:, own])


def test_markers_are_categories_with_their_shares(frame, model, tmp_path):
    found = model.markers_frame(frame)
    assert found.feature.str.startswith("color = ").sum() <= 3  # one of each cluster
    regular = ~(model.trimmed_ | model.outliers_)
    row = found[found.feature.str.startswith("color = ")].iloc[0]
    color = row.feature.removeprefix("color = ")
    mine = frame.color[regular & (model.labels_ == row.cluster)].dropna()
    assert row["mean"] == pytest.approx((mine == color).mean())
    write_ranked_lists(model, frame, tmp_path)
    assert "color = red\t" in (tmp_path / "cluster-0.rnk").read_text()


def test_pictures_and_pages(frame, model):
    assert set(WeightsDisplay.from_estimator(model).names) == {"size", "color", "flag"}
    names = [str(name) for name in HeatmapDisplay.from_estimator(model, frame).feature_names]
    assert {"size", "color = red", "flag = True"} <= set(names)
    ClusterDisplay.from_estimator(model, frame)
    summary = make_report(model, frame).summary
    assert "3 of 5 features differ" in summary["headline"]
    assert set(summary["result"]["top_features"]) == {"size", "color", "flag"}
    words = summary["features"]["words"]
    assert any(word.startswith("red ") for k in range(3) for word in words[f"center_{k}"])
    told = [marker["words"] for cluster in summary["markers"] for marker in cluster["top"]]
    assert any("% of the cluster, " in words for words in told)


# ---- Files and the command line


@pytest.fixture
def table(tmp_path, monkeypatch, frame):
    monkeypatch.chdir(tmp_path)
    made = frame.drop(columns="flag").assign(
        smoker=np.where(frame.flag, "yes", "no"),
        visit=[f"2024-01-{1 + i % 28:02d}" for i in range(N)],
        comment=[f"note {i}" for i in range(N)],
        code=np.arange(N) % 3,
    )
    made.insert(0, "patient", [f"P{i}" for i in range(N)])
    made.loc[3, "noise"] = np.nan
    made.to_csv("t.csv", index=False)
    return made


COMMENT = "text that names cases: 120 values in 120 cases"
FIT = ("fit", "t.csv", "-k", "3", "--n-init", "5", "--force")


def test_read_table_has_categories(table):
    found = read_table("t.csv", text_columns="categories")
    assert list(found.data) == ["size", "noise", "color", "letter", "smoker", "code"]
    assert found.categories["color"] == ("blue", "green", "red")
    assert found.dropped == {"visit": "dates", "comment": COMMENT}
    assert found.n_missing == 3
    other = read_table("t.csv", text_columns="drop", categorical=["code"])
    assert list(other.data) == ["size", "noise", "code"]
    assert other.categories == {"code": ("0", "1", "2")}
    with pytest.raises(ValueError, match="these columns hold no numbers: 'color', 'letter'"):
        read_table("t.csv")
    with pytest.raises(ValueError, match="there is no column 'cod'"):
        read_table("t.csv", categorical=["cod"])


def test_tables_of_categories_alone_and_dates_of_other_formats(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = pd.DataFrame({"a": ["x", "y"] * 20, "b": ["u", "u", "v", "w"] * 10})
    text.assign(day=["1.1.2024", "12/3/2024"] * 20).to_csv("t.csv", index=False)
    told = flat(run("fit", "t.csv", "-k", "2").output)
    assert "Column 'a' was read as 2 categories: x, y." in told
    columns = {"x": [0.0, 4.0], "when": [datetime(2024, 1, 1)] * 2, "took": [timedelta(1)] * 2}
    pl.DataFrame(columns).write_parquet("t.parquet")
    found = read_table("t.parquet", text_columns="drop")
    assert found.dropped == {"when": "dates", "took": "dates"}


def test_none_is_a_word_among_words_and_a_missing_number(table, frame):
    drinks = np.where(frame.flag, "None", np.where(CLASS == 1, "some", "much"))
    some = np.where(np.arange(N) % 30 == 0, "None", frame["noise"].round(3).astype(str))
    days = np.where(np.arange(N) % 40 == 0, "None", table["visit"])
    made = pd.DataFrame({"size": frame["size"], "drinks": drinks, "some": some, "visit": days})
    made.to_csv("t.csv", index=False)
    found = read_table("t.csv", text_columns="categories")
    assert found.categories["drinks"] == ("None", "much", "some")
    assert found.data["some"].isna().sum() == 4
    assert found.dropped == {"visit": "dates"}


def test_a_mixed_table_without_an_option(table):
    told = flat(run(*FIT).output)
    color = "Column 'color' was read as 3 categories: blue, green, red."
    assert color in told
    assert "Column 'smoker' was read as 2 categories: no, yes." in told
    assert f"'visit' (dates), 'comment' ({COMMENT})" in told
    assert "--categorical" not in told  # it would refuse the comments
    assert "columns centered and divided by their spread" in told
    features = pd.read_csv("t-rskc/features.csv")
    assert features.feature.tolist() == ["size", "noise", "color", "letter", "smoker", "code"]
    assert features.set_index("feature").loc["smoker", "center_0"].split()[0] in ("yes", "no")
    size = pd.read_csv("t.csv")["size"]  # centers and means are in the units of the file
    labels = pd.read_csv("t-rskc/labels.csv")
    of_size = features.set_index("feature").loc["size", "center_0"]
    kept = ~labels.trimmed & (labels.cluster == 0)
    assert float(of_size) == pytest.approx(size[kept.to_numpy()].mean())
    markers = pd.read_csv("t-rskc/markers.csv").query("cluster == 0").set_index("feature")
    assert markers.loc["size", "mean"] == pytest.approx(float(of_size), rel=0.05)
    assert labels.case[0] == "P0"
    summary = json.loads(Path("t-rskc/summary.json").read_text())
    assert "columns centered" in summary["read"]["prepared"]
    run("predict", "t-rskc", "t.csv", "--out", "again.csv", "--force")
    again = pd.read_csv("again.csv")
    assert_array_equal(again.cluster, labels.cluster)
    assert_array_equal(again.outlier, labels.outlier)
    table.head(4).drop(columns="letter").to_csv("few.csv", index=False)  # a category without weight
    run("predict", "t-rskc", "few.csv", "--out", "few-out.csv")
    assert_array_equal(pd.read_csv("few-out.csv").cluster, labels.cluster[:4])
    run("report", "t-rskc", "t.csv", "--out", "page.html")
