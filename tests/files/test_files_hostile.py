"""Model files with a right checksum and bad content: refused, in little memory."""

import contextlib
import copy
import io
import json
import tracemalloc
import zipfile
from functools import partial

import numpy as np
import pytest

from model_files import refusal, rewritten, setting
from rskc import RobustSparseKMeans, load, save
from rskc.files import ModelFileError, models, read_model
from rskc.files.models import unpack

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5)) + 4 * (np.arange(60) % 3)[:, None] * np.eye(5)[0]


def fitted(random_state=0):
    return RobustSparseKMeans(3, random_state=random_state).fit(X)


MODEL = fitted()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.rskc"


@pytest.fixture
def good(path):
    """The bytes of a good file."""
    save(MODEL, path, extra={"x": X[0], "names": np.array(["ab", "c"])})
    return path.read_bytes()


def contents_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return json.loads(archive.read(models.CONTENTS))


def entry_of(data, *keys):
    """Return the name of an array in the archive."""
    found = contents_of(data)
    for key in keys:
        found = found[key]
    return found["__array__"]


HEADERS = [
    b"{'descr': '<i4', 'fortran_order': False, 'shape': (60,), ",  # ends too early
    b"{'descr': '<i4', 'fortran_order': False, 'shape': (60,), }'''",
    b"{'descr': '<i4', 'fortran_order': False, 'shape': (60L,), }",  # of Python 2
    b"(" * 100,
    b"\xff\x00" * 50,
]


@pytest.mark.parametrize("header", HEADERS)
def test_broken_headers_are_refused(good, path, header):
    start = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
    name = entry_of(good, "attributes", "labels_")
    refusal(rewritten(good, path, **{name: start + header + bytes(240)}))


def test_true_and_false_are_bytes_of_0_and_1(good, path):
    header = (
        b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '|b1', 'fortran_order': False, 'shape': (60,), }"
    )
    name = entry_of(good, "attributes", "outliers_")
    outliers = load(rewritten(good, path, **{name: header.ljust(128) + b"\x07" * 60})).outliers_
    assert outliers.view(np.uint8).tolist() == [1] * 60


def test_text_that_is_none_is_refused(good, path):
    name = entry_of(good, "extra", "names")
    with zipfile.ZipFile(io.BytesIO(good)) as archive:
        raw = archive.read(name)
    refusal(rewritten(good, path, **{name: raw[:-4] + b"\xff\xff\xff\x7f"}))


# --- Memory --------------------------------------------------------------------------------------


def peak_of_loading(path):
    """Return the memory that loading takes, in multiples of the file's size."""
    tracemalloc.start()
    try:
        read_model(path)
    except ModelFileError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak / path.stat().st_size


def test_an_array_is_read_once(path):
    save(MODEL, path, extra={"x": np.zeros(100_000)})

    def again(contents):
        contents["extra"]["x"] = [contents["extra"]["x"]] * 300

    rewritten(path.read_bytes(), path, again)
    assert peak_of_loading(path) < 5
    refusal(path)


@pytest.mark.parametrize("value", [[], {}, {"a": []}, 0])
def test_loading_takes_a_small_multiple_of_the_file(good, path, value):
    many = setting("extra", value={"a": [value] * 50_000})
    assert peak_of_loading(rewritten(good, path, many)) < 30


def test_loading_arrays_takes_little_more_than_they_do(path):
    save(MODEL, path, extra={"x": np.zeros(100_000)})
    assert peak_of_loading(path) < 3.5


# --- Mutants -------------------------------------------------------------------------------------

STRANGE = [
    *(None, True, -1, 0, 1, 2, 59, 61, 10**8, 2**31, 2**63, 10**30, 0.5, -0.0, 1e308, 5e-324),
    *("", "x", "auto", "\ud800", "nan", [], {}, [1], {"a": 1}),
    *(np.nan, -np.inf, {"__names__": []}, {"__names__": ["a"] * 5}),
    *({"__array__": "arrays/0.npy"}, {"__array__": "arrays/3.npy"}),
]
NUMPY = [0.0, -1.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 1e-300, 2**31, -(2**31)]


def places(value, found=()):
    """Return the paths to all values in a piece of JSON."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield (*found, key)
        if isinstance(inner, dict | list) and inner:
            yield from places(inner, (*found, key))


def mutant(data, path, rng):
    """Write a file with a right checksum, a few values of which are others."""
    contents, entries = contents_of(data), {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()[1:]}
    for _ in range(rng.integers(1, 4)):
        name = list(files)[rng.integers(len(files))]
        raw, kind = bytearray(files[name]), rng.integers(4)
        if kind < 2:
            some = list(places(contents))
            place, value = some[rng.integers(len(some))], STRANGE[rng.integers(len(STRANGE))]
            setting(*place, value=copy.deepcopy(value))(contents)
        elif kind == 2:
            raw[rng.integers(len(raw))] = rng.integers(256)
            entries[name] = bytes(raw)
        elif (array := unpack(io.BytesIO(raw))).dtype.kind == "f" and array.ndim:
            array = array.ravel()
            array[rng.integers(array.size)] = NUMPY[rng.integers(len(NUMPY))]
            entries[name] = bytes(raw[:128]) + array.tobytes()
    return rewritten(data, path, lambda old: (old.clear(), old.update(contents)), **entries)


def use(model):
    """Do all that predicts and describes, which may refuse what makes no sense."""
    methods = ("predict", "transform", "score_samples", "is_outlier", "cases_frame", "score", "fit")
    for call in (
        model.summary,
        model.features_frame,
        *(partial(getattr(model, name), X) for name in methods),
    ):
        with contextlib.suppress(Exception):
            call()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n", [100, pytest.param(1500, marks=pytest.mark.slow)])
def test_mutants_are_refused_or_crash_nothing(path, n):
    save(fitted(), path, extra={"x": X[0]})
    data, rng, loaded = path.read_bytes(), np.random.default_rng(1), 0
    for _ in range(n):
        try:
            model = load(mutant(data, path, rng))
        except ModelFileError:
            continue
        loaded += 1
        use(model)
    assert loaded > 5
