"""Models in files: exact, whole, and safe to open."""

import copy
import enum
import hashlib
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import issparse
from sklearn.base import clone

import rskc
from model_files import refusal, rewritten, setting
from rskc import RobustSparseKMeans, load, save
from rskc.files import models, read_model
from rskc.model.fitted import ATTRIBUTES

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5)) + 4 * (np.arange(60) % 3)[:, None] * np.eye(5)[0]


def fitted(data=X, n_clusters=3, **params):
    return RobustSparseKMeans(n_clusters, **({"random_state": 0} | params)).fit(data)


def incomplete(dtype=np.float64):
    data = X.astype(dtype)
    data[3, 2] = np.nan
    return data


def named():
    index = ["=1+1", "\u202e", 3, 4.5, pd.Timestamp("2024-01-01"), *range(100, 155)]
    return pd.DataFrame(X, index=index, columns=["a b", '"', "<script>", "🙂", "x" * 10_000])


class Count(enum.IntEnum):
    THREE = 3


GROUPS, CENTERS = list("aabbc"), pd.DataFrame(X[:3])
ACCEPTED = {
    "n_clusters": [3, np.int64(3), np.uint8(3), Count.THREE],
    "trim": [0, 0.1, "auto", np.float32(0.125), Fraction(1, 8), np.str_("auto")],
    "cells": [None, "auto", 3, 3.3, np.float32(3.5), np.int64(3), Fraction(7, 2), np.str_("auto")],
    "l1_bound": [
        None,
        "auto",
        "half",
        2,
        1.5,
        np.float64(1.5),
        Fraction(3, 2),
        np.int64(2),
        np.inf,
    ],
    "n_features": [None, 2, np.int64(2)],
    "feature_groups": [
        None,
        GROUPS,
        tuple(GROUPS),
        np.array(GROUPS),
        pd.Series(GROUPS),
        pd.Index(GROUPS),
        {"one": [0, 1], "two": np.array([2, 3]), "three": 4},
    ],
    "categorical": [None, [], [0], (0,), np.array([0]), pd.Index([0]), 0, np.int64(0)],
    "ordinal": [None, [0], pd.Index([0]), np.array([0]), 0],
    "reweight": [True, False],
    "outlier_rule": ["both", "paper"],
    "outlier_cutoff": [None, 3, 0, 2.5, np.float32(3), np.int8(3), Fraction(5, 2), 1e308],
    "init": ["auto", "random", X[:3], X[:3].tolist(), X[:3].astype(int), CENTERS, [*X[:3]]],
    "n_init": ["auto", 3, np.int16(3), Count.THREE],
    "max_iter": [100, np.int32(100), 2**31],
    "tol": [1e-4, 0, np.float32(1e-4), Fraction(1, 100)],
    "n_threads": [None, 1, np.int64(1)],
    "device": [None],
    "verbose": [0, np.int64(0)],
    "random_state": [None, 1, np.int64(1)],
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a model é.rskc"


def test_every_parameter_has_its_accepted_values():
    assert ACCEPTED.keys() == RobustSparseKMeans().get_params().keys()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param(name, value, id=f"{name}-{i}")
        for name, values in ACCEPTED.items()
        for i, value in enumerate(values)
    ],
)
def test_what_a_fit_accepts_can_be_saved_and_loaded(path, name, value):
    """And it is fitted alike again."""
    data = np.column_stack([np.arange(60) % 2, X[:, 1:]])
    others = {"random_state": 0, "n_clusters": 3} | ({"l1_bound": None} if "fea" in name else {})
    model = RobustSparseKMeans(**others | {name: copy.deepcopy(value)}).fit(data)
    save(model, path)
    loaded = load(path)
    assert_array_equal(loaded.predict(data), model.predict(data))
    again, anew = (clone(each).fit(data) for each in (model, loaded))
    if value is not None:
        assert_array_equal(again.labels_, anew.labels_)


@pytest.mark.parametrize("state", [np.random, np.random.RandomState(3), np.random.default_rng(1)])
def test_random_states_are_not_kept(path, state):
    model = fitted(random_state=state)
    save(model, path)
    again = load(path)
    assert again.random_state is None
    assert_array_equal(again.predict(X), model.predict(X))


def test_what_could_not_be_loaded_is_not_saved(path):
    model = fitted()
    model.n_iter_ = "many"
    with pytest.raises(ValueError, match=r"model cannot be saved: .*n_iter_ is not of type int"):
        save(model, path)
    assert not path.exists()


def same(one, two):
    if issparse(one):
        return issparse(two) and one.shape == two.shape and not (one != two).nnz
    """Whether two values are the same, types and bits included."""
    if type(one) is not type(two):
        return False
    if isinstance(one, np.ndarray) and one.dtype != object:
        return (one.dtype, one.shape, one.tobytes()) == (two.dtype, two.shape, two.tobytes())
    if isinstance(one, np.ndarray):
        return one.tolist() == two.tolist()
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, tuple | list):
        return len(one) == len(two) and all(map(same, one, two))
    return one == two


MODELS = {
    "plain": lambda: (fitted(), X),
    "missing": lambda: (fitted(incomplete()), incomplete()),
    "single": lambda: (fitted(incomplete(np.float32)), incomplete(np.float32)),
    "dense": lambda: (fitted(l1_bound=None, trim=0), X),
    "wanted": lambda: (fitted(n_features=2), X),
    "numpy": lambda: (
        fitted(n_clusters=np.int64(3), trim=np.float32(0.125), n_init=np.int16(9)),
        X,
    ),
    "array": lambda: (fitted(init=X[:3]), X),
    "lists": lambda: (fitted(init=X[:3].tolist()), X),
    "one": lambda: (fitted(n_clusters=1), X),
    "column": lambda: (fitted(X[:, :1]), X[:, :1]),
    "automatic": lambda: (fitted(trim="auto", l1_bound="auto"), X),
    "cells": lambda: (fitted(cells=2.0), X),
    "groups": lambda: (fitted(feature_groups=["a", None, *"bbba"][: X.shape[1]]), X),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore")
def test_round_trips_are_exact(name, path):
    model, data = MODELS[name]()
    save(model, path)
    again = load(path)
    assert vars(again).keys() == vars(model).keys()
    different = [key for key, value in vars(model).items() if not same(value, vars(again)[key])]
    assert not different
    for method in ("predict", "transform", "score_samples", "is_outlier"):
        assert same(getattr(again, method)(data), getattr(model, method)(data))
    assert again.score(data) == model.score(data)
    assert again.summary() == model.summary()
    pd.testing.assert_frame_equal(again.features_frame(), model.features_frame())
    pd.testing.assert_frame_equal(again.cases_frame(data), model.cases_frame(data))


def test_all_that_a_fit_leaves_is_saved():
    """A new fitted attribute must be given a place in the file."""
    data = named() / 10  # numbers that vary as categories do
    data["kind"] = np.resize(["u", "v"], len(data))
    groups = {"both": list(data.columns[:2])}
    model = fitted(data, feature_groups=groups)
    model.fit(data, sample_weight=np.arange(1, 1 + len(data))).set_output(transform="pandas")
    known = {*ATTRIBUTES, *model.get_params()}
    assert known == set(vars(model))


def test_names_survive(path):
    data = named()
    model = fitted(data).set_output(transform="pandas")
    save(model, path)
    again = load(path)
    assert list(again.feature_names_in_) == list(data.columns)
    expected = ["=1+1", "\u202e", 3, 4.5, "2024-01-01 00:00:00", *range(100, 155)]
    assert list(again.case_names_in_) == expected
    assert [type(name) for name in again.case_names_in_[:5]] == [str, str, int, float, str]
    pd.testing.assert_frame_equal(again.transform(data), model.transform(data))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(data.rename(columns={"a b": "other"}))


@given(st.lists(st.text(), min_size=5, max_size=5, unique=True), st.text())
@example(["\ud800", "\x00", "../../etc/passwd", "\n", "=x"], "{}")
def test_any_name_survives(tmp_path_factory, names, key):
    model = MODEL.__class__(**MODEL.get_params())
    for name, value in vars(MODEL).items():
        setattr(model, name, value)
    model.feature_names_in_ = np.array(names, object)
    path = tmp_path_factory.mktemp("names") / "m"
    save(model, path, extra={key: key})
    saved = read_model(path)
    assert list(saved.model.feature_names_in_) == names
    assert saved.extra == {key: key}


MODEL = fitted()


def test_the_same_model_makes_the_same_file(tmp_path):
    for name in "ab":
        save(MODEL, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_extra_goes_with_it(path):
    extra = {
        "standardize": {"rows": None, "columns": {"by": "median", "center": X[0], "scale": X[1]}},
        "dict": {"array": "arrays/0.npy"},
        "values": [1, 2.5, np.nan, -np.inf, True, None, [1, "é"], np.float32(0.1), []],
        "names": np.array(["a", "b"]),
    }
    save(MODEL, path, extra=extra)
    saved = read_model(path)
    assert saved.rskc_version == rskc.__version__
    assert same(saved.extra["standardize"]["columns"]["scale"], X[1])
    assert saved.extra["dict"] == extra["dict"]
    assert same(saved.extra["names"], extra["names"])
    assert repr(saved.extra["values"]) == repr(extra["values"])
    save(MODEL, path)
    assert read_model(path).extra == {}


def test_what_cannot_be_saved_is_named(path):
    def starts(X, n_clusters, random_state):
        return X[:n_clusters]

    model = fitted(init=starts)
    with pytest.raises(TypeError, match=r"^init cannot be saved.*set_params\(init='auto'\)"):
        save(model, path)
    save(model.set_params(init="auto"), path)
    np.testing.assert_array_equal(load(path).predict(X), model.predict(X))
    for extra in ({"x": object()}, {"x": np.array([1j])}, {"x": np.array([[{}]])}):
        with pytest.raises(TypeError, match=r"^extra cannot be saved"):
            save(MODEL, path, extra=extra)
    with pytest.raises(TypeError, match="only a RobustSparseKMeans"):
        save(type("Child", (RobustSparseKMeans,), {})(), path)
    with pytest.raises(ValueError, match="not fitted"):
        save(RobustSparseKMeans(), path)


# --- What is refused -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved_bytes(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m"
    save(fitted(named()), path, extra={"x": X[0]})
    return path.read_bytes()


def test_any_flipped_byte_is_refused(saved_bytes, path):
    """Every byte in the first and last 2,000, and some in between."""
    size = len(saved_bytes)
    places = {*range(min(2000, size)), *range(size - 2000, size), *range(0, size, 37)}
    for place in sorted(places):
        changed = bytearray(saved_bytes)
        changed[place] ^= 1 << (place % 8)
        path.write_bytes(changed)
        refusal(path)
    assert "damaged" in refusal(path)


def test_any_truncation_is_refused(saved_bytes, path):
    for length in {*range(200), *range(200, len(saved_bytes), 211), len(saved_bytes) - 1}:
        path.write_bytes(saved_bytes[:length])
        refusal(path)
    path.write_bytes(saved_bytes + b"\n")
    assert "damaged" in refusal(path)


def test_foreign_files_are_refused(path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("the pickle was opened",))

    path.write_bytes(pickle.dumps(Trap()))
    assert "not a model" in refusal(path)
    np.savez(path.with_suffix(".npz"), a=1)
    assert "not a model" in refusal(path.with_suffix(".npz"))


def test_deep_nesting_and_two_kinds_of_value_are_refused(saved_bytes, path):
    deep = b"[" * 200_000
    assert "not a model" in refusal(rewritten(saved_bytes, path, **{models.CONTENTS: deep}))
    both = setting("attributes", "labels_", value={"__array__": "a", "b": 1})
    assert "not a model" in refusal(rewritten(saved_bytes, path, both))


def test_a_size_that_is_a_lie_is_refused(saved_bytes, path):
    """The directory of the archive says that an entry is larger than the file."""
    place = saved_bytes.index(b"PK\x01\x02")
    changed = bytearray(saved_bytes[:-64])
    changed[place + 20 : place + 28] = (2**31).to_bytes(4, "little") * 2
    path.write_bytes(bytes(changed) + hashlib.sha256(changed).hexdigest().encode())
    assert "larger than the file" in refusal(path)
