"""Arrays on a device: the same answers as in memory, of the kind and on the device that was given.

torch tensors on the CPU stand for those on a GPU (these too, where there is one), and
array-api-strict, which allows nothing but the standard, for every other library.
"""

import os
import pickle
from functools import cache

import array_api_strict
import matplotlib.pyplot as plt
import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal
from sklearn.base import clone

from engine_kinds import has_cuda, to_cuda, to_cupy, to_strict, to_tensor
from fits import TABLES, TALL, assert_same_fit, in_memory, model_for, with_missing
from rskc import RobustSparseKMeans, load, save
from rskc.comparison import compare_solutions
from rskc.displays import ClusterDisplay, HeatmapDisplay, OutlierDisplay, SilhouetteDisplay
from rskc.engines import engine_for
from rskc.engines.device import engine as device
from rskc.engines.device import ops, passes_array
from rskc.engines.device.ops import to_host
from rskc.inputs.arrays import model_to_numpy
from rskc.metrics import revised_silhouette

try:
    import torch
except ImportError:
    torch = None

if torch is None and os.environ.get("RSKC_REQUIRE_TORCH"):
    raise RuntimeError("torch is asked for and not installed")

if torch is not None:
    torch.set_num_threads(1)  # tables are small: threads would wait for one another

pytestmark = pytest.mark.filterwarnings("ignore::rskc.SmallClusterWarning")
needs_torch = pytest.mark.skipif(torch is None, reason="needs torch, which is not installed")


def needs_cuda(library):
    return pytest.mark.skipif(
        not has_cuda(library), reason=f"there is no CUDA device for {library}"
    )


KINDS = [
    pytest.param(to_tensor, marks=needs_torch, id="torch"),
    pytest.param(to_cuda, marks=needs_cuda("torch"), id="cuda"),
    pytest.param(to_cupy, marks=needs_cuda("cupy"), id="cupy"),
    pytest.param(to_strict, id="strict"),
]
each_kind = pytest.mark.parametrize("to_kind", KINDS)


@pytest.fixture(autouse=True)
def dispatch():
    """Arrays of other libraries than torch and CuPy are taken as they are if this is on."""
    os.environ["SCIPY_ARRAY_API"] = "1"
    with sklearn.config_context(array_api_dispatch=True):
        yield


each_table = pytest.mark.parametrize(
    "name", [name for name in TABLES if "chosen" not in name and "found" not in name]
)
ARRAYS = ("labels_", "trimmed_weighted_", "trimmed_unweighted_", "outliers_")


@cache
def both(name, to_kind):
    """A table, the model fitted to it in memory, and that fitted on the device."""
    X = TABLES[name][0]
    return X, in_memory(name), model_for(name).fit(to_kind(X))


@each_kind
@each_table
def test_a_fit_is_that_in_memory(name, to_kind):
    X, here, there = both(name, to_kind)
    assert_same_fit(there, here, 1e-5 if X.dtype == np.float32 else 1e-8)


@each_kind
@each_table
def test_what_comes_back_is_of_the_same_kind(name, to_kind):
    X, _, model = both(name, to_kind)
    given, kind = to_kind(X), type(to_kind(X))
    results = [getattr(model, attribute) for attribute in ARRAYS]
    results += [model.cluster_centers_, model.feature_weights_, model.distances_]
    results += [model.predict(given), model.transform(given), model.is_outlier(given)]
    for array in results:
        assert isinstance(array, kind)
        assert array.device == given.device
    assert model.cluster_centers_.dtype == given.dtype
    assert model.transform(given).dtype == given.dtype


@each_kind
@each_table
def test_predictions_are_those_in_memory(name, to_kind):
    X, here, there = both(name, to_kind)
    assert_array_equal(to_host(there.predict(to_kind(X))), here.predict(X))
    assert_array_equal(to_host(there.predict(to_kind(X))), to_host(there.labels_))
    assert_array_equal(to_host(there.is_outlier(to_kind(X))), here.is_outlier(X))
    rounding = {"rtol": 1e-4 if X.dtype == np.float32 else 1e-8, "atol": 1e-9}
    assert_allclose(to_host(there.transform(to_kind(X))), here.transform(X), **rounding)
    assert_allclose(to_host(there.score_samples(to_kind(X))), here.score_samples(X), **rounding)
    assert there.score(to_kind(X)) == pytest.approx(here.score(X), rel=1e-6)


@each_kind
def test_models_and_data_of_different_kinds_go_together(to_kind):
    X, here, there = both("robust sparse", to_kind)
    assert isinstance(there.predict(X), np.ndarray)
    assert_array_equal(there.predict(X), here.predict(X))
    assert isinstance(here.predict(to_kind(X)), type(to_kind(X)))
    assert_array_equal(to_host(here.predict(to_kind(X))), here.predict(X))


@each_kind
def test_a_model_speaks_as_one_in_memory(to_kind):
    X, here, there = both("robust sparse", to_kind)
    assert there.summary() == here.summary()
    assert_frame_equal(there.markers_frame(to_kind(X)), here.markers_frame(X))
    for found in (compare_solutions(here, there), compare_solutions(there, here, to_kind(X))):
        assert found.cases.empty
        assert (found.features.change != "gained").all()
    assert_frame_equal(there.features_frame(), here.features_frame())
    assert_frame_equal(there.cases_frame(), here.cases_frame())
    assert_array_equal(there.get_support(), here.get_support())
    copied = model_to_numpy(there)
    assert isinstance(copied.labels_, np.ndarray)
    assert not isinstance(there.labels_, np.ndarray)
    assert model_to_numpy(here) is here


@needs_torch
def test_torch_needs_no_dispatch():
    with sklearn.config_context(array_api_dispatch=False):
        model = RobustSparseKMeans(3, random_state=0, n_init=5).fit(torch.asarray(TALL))
    assert isinstance(model.labels_, torch.Tensor)


def test_other_arrays_become_numpy_without_dispatch():
    with sklearn.config_context(array_api_dispatch=False):
        model = RobustSparseKMeans(3, random_state=0, n_init=5).fit(to_strict(TALL))
    assert isinstance(model.labels_, np.ndarray)


@needs_torch
def test_whole_numbers_and_gradients():
    whole = torch.asarray(np.round(TALL).astype(np.int64))
    model = RobustSparseKMeans(3, random_state=0, n_init=5).fit(whole)
    assert model.cluster_centers_.dtype == torch.float64
    tensor = torch.asarray(TALL).requires_grad_()
    model = RobustSparseKMeans(3, random_state=0, n_init=5).fit(tensor)
    assert not model.cluster_centers_.requires_grad
    turned = torch.asarray(TALL.T.copy()).T  # not contiguous
    again = RobustSparseKMeans(3, random_state=0, n_init=5).fit(turned)
    assert_array_equal(to_host(again.labels_), to_host(model.labels_))


@needs_torch
def test_a_fitted_model_can_be_pickled():
    _, _, model = both("robust sparse", to_tensor)
    loaded = pickle.loads(pickle.dumps(model))
    assert_array_equal(to_host(loaded.predict(torch.asarray(TALL))), to_host(model.labels_))


@each_kind
@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros(5), "two dimensions"),
        (np.zeros((0, 3)), "two dimensions"),
        (np.full((9, 2), np.inf), "contains infinity"),
        (np.full((9, 2), np.nan), "no observed cell"),
        (np.zeros((9, 2)), "distinct case"),
    ],
)
def test_bad_data_get_one_sentence(to_kind, X, message):
    with pytest.raises(ValueError, match=message) as caught:
        RobustSparseKMeans(2).fit(to_kind(X))
    assert "\n" not in str(caught.value)


@each_kind
@pytest.mark.parametrize("blank", [False, True], ids=["complete", "missing"])
def test_an_infinite_cell_is_refused_by_predict(to_kind, blank):
    X = with_missing(TALL) if blank else TALL.copy()
    model = RobustSparseKMeans(3, random_state=0, n_init=5).fit(to_kind(X))
    X[5, 2] = np.inf
    with pytest.raises(ValueError, match="contains infinity"):
        model.predict(to_kind(X))


# ---- Passes


@each_kind
def test_chunks_change_nothing(to_kind, monkeypatch):
    _, _, whole = both("missing", to_kind)
    monkeypatch.setattr(passes_array, "CPU_CELLS", 5000)
    monkeypatch.setattr(passes_array, "GPU_CELLS", 5000)
    cut = clone(whole).fit(to_kind(TABLES["missing"][0]))
    assert_array_equal(to_host(cut.labels_), to_host(whole.labels_))
    assert cut.objective_ == pytest.approx(whole.objective_, rel=1e-12)


def test_what_does_not_fit_is_refused_with_the_numbers(monkeypatch):
    for module in (device, ops):
        monkeypatch.setattr(module, "free_bytes", lambda place: 3 * 2**30)
    large = array_api_strict.zeros((1, 1), dtype=array_api_strict.float32)
    large = array_api_strict.broadcast_to(large, (2**20, 2**10))
    with pytest.raises(MemoryError, match=r"needs about 8 GiB .* and 3 GiB are free"):
        engine_for(large, missing=False).table(np.ones((1, 2**10)))
    assert engine_for(to_strict(TALL)).work_bytes == 3 * 2**30 // ops.WORK_SHARE


# ---- What others make of such a model


@each_kind
def test_reports_displays_and_files_take_a_model_from_a_device(to_kind, tmp_path):
    X, here, there = both("robust sparse", to_kind)
    save(there, tmp_path / "model.rskc")
    loaded = load(tmp_path / "model.rskc")
    assert_array_equal(loaded.labels_, here.labels_)
    assert isinstance(loaded.cluster_centers_, np.ndarray)
    page = there.report(to_kind(X))
    assert "clusters" in page.html
    for display in (ClusterDisplay, HeatmapDisplay, OutlierDisplay, SilhouetteDisplay):
        drawn = display.from_estimator(there, to_kind(X))
        plt.close(drawn.figure_)
    silhouettes = revised_silhouette(there, to_kind(X)).values
    assert_allclose(silhouettes, revised_silhouette(here, X).values, atol=1e-9)


# ---- What cannot be clustered as it is


@needs_torch
@pytest.mark.parametrize("method", ["fit", "predict"])
@pytest.mark.parametrize("sparse", ["to_sparse", "to_sparse_csc"])
@pytest.mark.filterwarnings("ignore:Sparse C.. tensor support is in beta")
def test_sparse_tensors_are_refused_with_how_to_make_them_dense(method, sparse):
    _, model, _ = both("K-means", to_tensor)
    message = r"^X has layout torch\.sparse_\w+; it must be dense: X\.to_dense\(\)\.$"
    with pytest.raises(TypeError, match=message):
        getattr(clone(model) if method == "fit" else model, method)(
            getattr(to_tensor(TALL), sparse)()
        )


@each_kind
@pytest.mark.parametrize("method", ["fit", "predict"])
def test_imaginary_parts_are_not_dropped(to_kind, method):
    _, model, _ = both("K-means", to_kind)
    with pytest.raises(ValueError, match=r"^X has dtype .*complex.*; .* numbers that are not comp"):
        getattr(clone(model) if method == "fit" else model, method)(to_kind(TALL + 1j))


def test_a_device_without_float64_is_named():
    place = array_api_strict.Device("no_float64")
    X = array_api_strict.asarray(TALL.astype(np.float32), device=place)
    with pytest.raises(ValueError, match=r"^X is on the device .*no_float64.*such as the CPU\.$"):
        RobustSparseKMeans(3).fit(X)


@needs_torch
def test_a_device_of_torch_without_float64_is_named(monkeypatch):
    empty = torch.empty

    def as_mps(*args, dtype=None, **options):
        if dtype == torch.float64:
            raise TypeError("Cannot convert a MPS Tensor to float64 dtype")
        return empty(*args, dtype=dtype, **options)

    monkeypatch.setattr(torch, "empty", as_mps)
    with pytest.raises(ValueError, match=r"^X is on the device cpu, which has no float64; move it"):
        RobustSparseKMeans(3).fit(to_tensor(TALL.astype(np.float32)))


# ---- Starts on a device


@each_kind
@pytest.mark.parametrize("callable_", [False, True])
def test_starts_may_be_on_a_device(to_kind, callable_):
    centers = TALL[[0, 100, 200]]
    init = (lambda X, K, random_state: to_kind(centers)) if callable_ else to_kind(centers)
    options = {"trim": 0.05, "l1_bound": 2.0, "n_init": 1}
    expected = RobustSparseKMeans(3, init=centers, **options).fit(TALL)
    for X in (TALL, to_kind(TALL)):
        found = RobustSparseKMeans(3, init=init, **options).fit(X)
        assert_array_equal(to_host(found.labels_), expected.labels_)


def with_gradients(X):
    return to_tensor(X).requires_grad_()


@pytest.mark.parametrize("to_kind", [*KINDS, pytest.param(with_gradients, marks=needs_torch)])
def test_a_model_with_starts_on_a_device_is_saved(to_kind, tmp_path):
    centers = TALL[[0, 100, 200]]
    model = RobustSparseKMeans(3, init=to_kind(centers)).fit(TALL)
    save(model, tmp_path / "model.rskc")
    loaded = load(tmp_path / "model.rskc").init
    assert isinstance(loaded, np.ndarray)
    assert_array_equal(loaded, centers)
    assert isinstance(model.init, type(to_kind(centers)))


@each_kind
def test_wrong_starts_on_a_device_are_named(to_kind):
    with pytest.raises(ValueError, match=r"^init must .* = \(3, 8\); got .*\.$"):
        RobustSparseKMeans(3, init=to_kind(TALL[:2])).fit(TALL)
