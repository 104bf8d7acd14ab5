"""The explorer without a browser: the grid, what the page shows of it, and how it is packed."""

import json
import re
import shutil
import subprocess
from functools import partial
from importlib import resources

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

import rskc
from browsing import content_of
from rskc import RobustSparseKMeans
from rskc.explorer import Explorer
from rskc.explorer.packing import MISSING, bits_for, packed, scaled
from rskc.explorer.views import scene_of
from rskc.metrics import classification_error_rate
from rskc.selection.runner import Runner

ALONE = {"n_jobs": 1, "progress": False}


def corners(n=60, p=6, seed=0):
    """Three clusters in two features; a case that is far off."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[:, 0] += 8 * (np.arange(n) % 3 == 1)
    X[:, 1] += 8 * (np.arange(n) % 3 == 2)
    X[7, 4] = 60
    return X


def explore(X, **how):
    how = {"n_clusters": [2, 3, 4], "n_features": [2, 6], "trims": [0, 0.05], "n_splits": 1} | how
    return rskc.explore(X, **ALONE | how)


@pytest.fixture(scope="module")
def frame():
    X = pd.DataFrame(corners(), columns=list("abcdef"))
    return X.set_index(pd.Index([f"case {i}" for i in range(len(X))]))


@pytest.fixture(scope="module")
def page(frame):
    return explore(frame, labels=np.arange(60) % 3, title="Corners")


def opened(page):
    return content_of(page.html)


# ---- The grid


def test_all_combinations_are_fitted(page):
    search = page.search
    assert search.axes_.n_clusters == [2, 3, 4]
    assert len(search.fits_) == len(search.halves_) == search.axes_.n_settings == 12
    for setting, fit in zip(search.axes_.settings, search.fits_, strict=True):
        assert len(np.unique(fit["labels"])) == setting["n_clusters"]
        assert fit["n_features"] == setting["n_features"]
        assert fit["n_trim"] == int(60 * setting["trim"])


def test_the_marked_setting_is_that_of_the_automatic_fit(frame):
    search = explore(frame, n_clusters=[2, 3], n_features="auto", trims="auto", n_splits=0).search
    automatic = search.best_estimator_
    assert search.choice_.n_clusters == 3
    k, f, t = scene_of(search).marked
    axes = search.axes_
    assert axes.n_clusters[k] == 3
    assert axes.n_features[f] == automatic.get_support().sum()
    assert axes.trims[t] == pytest.approx(automatic.trim_)
    same = RobustSparseKMeans(2, random_state=0)
    by_hand = rskc.selection.Stability(same, [2, 3], random_state=0, **ALONE).fit(frame)
    assert_array_equal(by_hand.best_estimator_.labels_, automatic.labels_)
    assert by_hand.reason_ == search.choice_.reason


@pytest.mark.filterwarnings("ignore")
def test_a_fit_with_the_settings_of_a_view_repeats_it(page, frame):
    words, _ = opened(page)
    for fit, line in zip(page.search.fits_, words["models"], strict=True):
        names = {"RobustSparseKMeans": RobustSparseKMeans}
        model = eval(line.partition("=")[2], names).fit(frame)
        assert classification_error_rate(model.labels_, fit["labels"]) == 0


def test_the_same_after_a_break(page, frame, tmp_path, monkeypatch):
    store, run, ran, steps = tmp_path / "explorer.db", Runner.run, [], []

    def broken(self, name, work, keys, more=0):
        if name.startswith("Halves of"):
            raise KeyboardInterrupt
        return run(self, name, work, keys, more)

    def counted(self, name, work, keys, more=0):
        ran.append(name)
        return run(self, name, partial(noted, work, ran), keys, more)

    same = {"labels": np.arange(60) % 3, "title": "Corners", "checkpoint": store}
    monkeypatch.setattr(Runner, "run", broken)
    with pytest.raises(KeyboardInterrupt):
        explore(frame, **same)
    monkeypatch.setattr(Runner, "run", counted)
    resumed = explore(frame, **same, progress=lambda *counts: steps.append(counts))
    assert resumed.html == page.html
    assert [name for name in ran if isinstance(name, tuple)] == [(i, 0) for i in range(12)]
    assert all(done <= total for done, total in steps)


def noted(work, ran, key):
    ran.append(key)
    return work(key)


def test_of_a_large_table_some_are_fitted():
    X = corners(600)
    page = explore(X, max_samples=90, n_clusters=[3], case_names=[f"c{i}" for i in range(600)])
    search, (words, _) = page.search, opened(page)
    assert words["n_shown"] == len(search.data_) == 90
    assert_array_equal(search.data_, X[search.samples_used_])
    assert words["cases"] == [f"c{i}" for i in search.samples_used_]
    assert all(sum(sizes) == 90 for sizes in words["sizes"])
    assert words["sample"].startswith("Searched on 90 of the 600 cases, drawn at random. The page")


def test_a_sparse_table_gives_the_page_of_the_dense_one():
    X = np.round(np.abs(corners(40)) * (np.random.default_rng(1).random((40, 6)) < 0.7), 1)
    how = {"n_clusters": [2, 3], "n_features": [2], "trims": [0, 0.1]}
    for most in (None, 30):
        how["max_samples"] = most
        assert explore(csr_array(X), **how).html == explore(X, **how).html


def mixed(n=90):
    """Three clusters, by a size and a color; letters and noise that tell nothing."""
    rng = np.random.default_rng(0)
    kind = np.arange(n) % 3
    color = np.array(["red", "green", "blue"], object)[kind]
    color[:2] = None
    columns = {"size": kind + rng.normal(0, 0.2, n), "noise": rng.normal(size=n)}
    letters = rng.choice(list("abcdefghijkl"), n, p=[0.3] + [0.7 / 11] * 11)
    return pd.DataFrame(columns | {"color": color, "letter": letters})


def test_categories_are_features_with_one_weight_each():
    X = mixed()
    page = explore(X, n_clusters=[3], n_features=[2, 4], trims=[0])
    words, arrays = opened(page)
    assert words["features"] == ["size", "noise", "color", "letter"]
    assert words["n_features"] == [2, 4]
    assert {words["features"][j] for j in words["shown"][:2]} == {"size", "color"}
    features = np.frombuffer(arrays["features"], "<u4")
    assert sorted(features[2:]) == [0, 1, 2, 3]
    place = words["shown"].index(2)
    cells = np.frombuffer(arrays["values"], "<u2").reshape(-1, len(X))[place]
    assert_array_equal(cells == MISSING, X.color.isna())
    names = np.array(words["categories"][place])
    low, high = words["spans"][place]
    found = names[np.round(low + (high - low) * cells[2:] / 65534).astype(int)]
    assert_array_equal(found, X.color[2:])
    letters = words["categories"][words["shown"].index(3)]
    assert letters[0] == "a"
    assert letters[-1] == "5 others"
    assert words["categories"][words["shown"].index(0)] is None
    assert classification_error_rate(page.search.fits_[0]["labels"], np.arange(90) % 3) == 0
    words, _ = opened(Explorer(page.search, units={"size": (100.0, 2.0)}))
    place, size = words["shown"].index(0), 100 + 2 * X["size"]
    assert_allclose(words["spans"][place], [size.min(), size.max()], rtol=1e-12)
    assert words["scales"][place] == 2.0


def test_of_no_clusters_nothing_is_marked():
    X = np.random.default_rng(0).normal(size=(40, 6))
    page = explore(X, n_clusters=[2, 3], n_splits=0)
    words, _ = opened(page)
    assert page.search.choice_.n_clusters == 1
    assert words["marked"] is None
    assert words["automatic"] == "The automatic choice is one cluster, that is, no clusters."
    assert words["reason"] == page.search.choice_.reason
    assert words["agreement"] == [None] * 8


@pytest.mark.parametrize("n", [3, 7])
def test_tiny_tables(n):
    X = np.random.default_rng(0).normal(size=(n, 1))
    page = rskc.explore(X, trims=[0], **ALONE)
    assert page.search.axes_.n_features == [1]
    assert page.search.axes_.n_clusters[0] == 2


# ---- What the page shows


def test_views_have_the_numbers_of_the_automatic_fit(page):
    scene = scene_of(page.search)
    K3 = [view for view in scene.views if len(view.sizes) == 3]
    own = page.search.best_estimator_.labels_
    assert max((view.labels == own).mean() for view in K3) == 1
    for view, fit in zip(scene.views, page.search.fits_, strict=True):
        assert classification_error_rate(view.labels, fit["labels"]) == 0
        assert_array_equal(np.bincount(view.labels, minlength=len(view.sizes)), view.sizes)
        assert_allclose(view.weights, np.sort(fit["weights"][fit["weights"] > 0])[::-1])
    # Half-samples agree where clusters are real.
    by_number = {len(view.sizes): view for view in scene.views[::2]}
    assert by_number[3].figures["agreement"] > 0.9 > by_number[4].figures["agreement"]
    assert by_number[3].times_agreed.mean() > 1.9
    assert set(by_number[3].times_selected[:2]) == {2}


# ---- Bytes


def unpacked(content, n, bits):
    each = np.unpackbits(np.frombuffer(content, np.uint8), bitorder="little")[: n * bits]
    return (each.reshape(n, bits) << np.arange(bits)).sum(axis=1)


@pytest.mark.parametrize("bits", [1, 3, 8, 9, 12, 16])
def test_the_page_reads_the_numbers_that_were_packed(bits):
    """More than 256 clusters, and more than 127 splits, take more than a byte."""
    assert [bits_for(n) for n in (1, 2, 3, 4, 5, 2**bits, 2**bits + 1)][4:] == [3, bits, bits + 1]
    beyond = scaled(np.array([-1.0, 0, 1, 2, 3, np.nan]), 0.0, 2.0)
    assert beyond.tolist() == [0, 0, 32767, 65534, 65534, MISSING]
    assert scaled(np.array([5.0]), 5.0, 5.0).tolist() == [0]
    if shutil.which("node") is None:
        pytest.skip("needs node, which is not installed")
    values = np.random.default_rng(bits).integers(0, 2**bits, 41)
    script = resources.files("rskc.explorer").joinpath("static/data.js").read_text("utf-8")
    script += f"""
    const bytes = Uint8Array.from({[0, 0, *packed(values, bits).tolist()]});
    console.log(JSON.stringify([...unpacked(bytes, 2, {len(values)}, {bits})]));
    """
    told = subprocess.run(
        ["node", "--input-type=module"], input=script, capture_output=True, text=True, check=True
    )
    assert json.loads(told.stdout) == values.tolist()


def test_the_page_holds_the_fits(page):
    words, arrays = opened(page)
    scene = scene_of(page.search)
    labels = np.concatenate([packed(v.labels, bits_for(len(v.sizes))) for v in scene.views])
    assert arrays["labels"] == labels.tobytes()
    first = unpacked(arrays["labels"][: -(-60 // 8)], 60, 1)
    assert_array_equal(first, scene.views[0].labels)
    weights = np.frombuffer(arrays["weights"], "<u2")[: words["n_weights"][0]] / 65534
    assert_allclose(weights, scene.views[0].weights, atol=1e-5)
    values = np.frombuffer(arrays["values"], "<u2").reshape(len(words["shown"]), 60)
    low, high = words["spans"][0]
    column = low + (high - low) * values[0] / 65534
    assert_allclose(column, page.search.data_[:, words["shown"][0]], atol=(high - low) / 6e4)
    assert words["features"] == list("abcdef")
    assert words["classes"]["codes"][:4] == [0, 1, 2, 0]


def test_the_page_fetches_nothing_and_runs_its_own_script_alone(page):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page.html)[1]
    assert policy.startswith("default-src &#x27;none&#x27;; script-src &#x27;sha256-")
    assert "unsafe-eval" not in policy
    assert not re.search(r'(?:src|href)="', page.html)
    assert page.html.count("<script") == 2
    assert repr(page) == "<Explorer: 12 settings, Corners>"


def test_the_explorer_goes_by_weight_and_says_so():
    X, weights = corners(), np.random.default_rng(0).integers(0, 4, 60)
    made = explore(X, trims=[0], n_splits=0, sample_weight=weights)
    search, n_used = made.search, np.count_nonzero(weights)
    model = RobustSparseKMeans(2, random_state=0).set_params(**search.axes_.settings[2])
    labels = model.fit(X, sample_weight=weights).labels_[weights > 0]
    assert classification_error_rate(labels, search.fits_[2]["labels"]) == 0
    words, _ = opened(made)
    assert words["sample"].startswith(f"Searched on {n_used} of the 60 cases, those with a weight")
    assert words["fit"] == "model.fit(X, sample_weight=...)"
