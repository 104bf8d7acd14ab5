"""Sparse matrices: the same results as dense ones, without a dense copy of the whole."""

import gzip
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.io import mmwrite

import rskc.engines.sparse as engine_module
from rskc import ColumnStandardizer, RobustSparseKMeans, RowStandardizer
from rskc.engines import MemoryEngine, SparseEngine, engine_for
from rskc.engines.sparse import bytes_of
from rskc.files import TableError, read_table
from rskc.metrics import revised_silhouette
from search_kinds import each_search, search_of
from skips import skip_without

METHODS = {
    "K-means": {"trim": 0, "l1_bound": None},
    "trimmed": {"trim": 0.1, "l1_bound": None},
    "sparse": {"trim": 0, "l1_bound": 2.5},
    "robust and sparse": {"trim": 0.1, "l1_bound": 2.5},
    "automatic": {},
}
each_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


def thin(n=150, p=40, K=3, seed=0, filled=0.1, dtype=np.float64):
    """Counts, most of them 0, of which 8 features tell clusters apart; a dense array."""
    rng = np.random.default_rng(seed)
    rates = np.full((K, p), filled)
    rates[:, :8] = rng.gamma(1.0, 2.0, (K, 8))
    return np.log1p(rng.poisson(rates[rng.integers(0, K, n)])).astype(dtype)


@pytest.fixture(params=["dense tables", "sparse tables"])
def tables(request, monkeypatch):
    """Small tables are made dense; here they may not be."""
    if request.param == "sparse tables":
        monkeypatch.setattr(engine_module, "DENSE_BYTES", 0)
        monkeypatch.setattr(engine_module, "DENSE_SHARE", 0)


def fitted(X, weights=None, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = RobustSparseKMeans(3, random_state=0, **params)
        return model.fit(X, sample_weight=weights)


def assert_same(one, other):
    """The same clusters, however they are numbered: partitions that tie are found in any order."""
    pairs = np.unique(np.column_stack([one.labels_, other.labels_]), axis=0)
    assert_array_equal(np.bincount(pairs[:, 0]), 1)
    assert_array_equal(np.bincount(pairs[:, 1]), 1)
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-9)
    assert one.inertia_ == pytest.approx(other.inertia_, rel=1e-9)
    centers = other.cluster_centers_[pairs[:, 1]]
    assert_allclose(one.cluster_centers_[pairs[:, 0]], centers, rtol=1e-6, atol=1e-9)
    assert_allclose(one.feature_weights_, other.feature_weights_, atol=1e-9)
    assert_allclose(one.distances_, other.distances_, rtol=1e-9, atol=1e-12)
    assert_array_equal(one.trimmed_, other.trimmed_)
    assert_array_equal(one.outliers_, other.outliers_)


# ---- The same as dense


@each_method
@pytest.mark.parametrize("shape", [(150, 40), (40, 150), (1500, 12)], ids=str)
def test_a_fit_is_that_of_the_dense_table(tables, method, shape):
    X = thin(*shape)
    assert_same(fitted(sparse.csr_array(X), **method), fitted(X, **method))


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), method=st.sampled_from(list(METHODS)))
def test_a_fit_of_any_thin_table_is_that_of_the_dense_one(seed, method):
    rng = np.random.default_rng(seed)
    X = thin(int(rng.integers(30, 90)), int(rng.integers(9, 60)), seed=seed) + 0.0
    X += (rng.random(X.shape) < 0.05) * rng.normal(size=X.shape)  # no ties
    X[rng.random(len(X)) < 0.03] *= 50
    matrix, params = sparse.csr_matrix(X), METHODS[method]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_module, "DENSE_BYTES", 0)
        patch.setattr(engine_module, "DENSE_SHARE", 0)
        assert_same(fitted(matrix, **params), fitted(X, **params))


def test_many_clusters_and_a_sample_of_many_cases(tables, monkeypatch):
    monkeypatch.setattr("rskc.solver.search.SAMPLE_CELLS", 2000)
    monkeypatch.setattr("rskc.solver.search.FEWEST_CASES", 200)
    X = thin(900, 20, K=7)
    for K in (3, 7):
        kinds = [
            RobustSparseKMeans(K, trim=0.05, l1_bound=3, random_state=0).fit(table)
            for table in (sparse.csr_array(X), X)
        ]
        assert_same(*kinds)


def test_what_is_asked_of_a_fitted_model(tables):
    X = thin()
    matrix = sparse.csr_array(X)
    model = fitted(matrix, trim=0.1, l1_bound=2.5)
    assert_array_equal(model.predict(matrix), model.labels_)
    for name in ("predict", "transform", "score_samples", "is_outlier", "score"):
        found, expected = (getattr(model, name)(table) for table in (matrix, X))
        assert_allclose(found, expected, rtol=1e-12, err_msg=name)
    assert_allclose(-model.score(matrix), np.sort(model.distances_)[:135].sum())
    transformed = fitted(matrix, trim=0.1, l1_bound=2.5).fit_transform(matrix)
    assert_allclose(transformed, model.transform(X), rtol=1e-12)
    assert_allclose(revised_silhouette(model, matrix).values, revised_silhouette(model, X).values)
    assert model.markers_frame(matrix).equals(model.markers_frame(X))
    assert_allclose(model.cases_frame(matrix).silhouette, model.cases_frame(X).silhouette)


def test_columns_far_from_zero_lose_few_digits(tables):
    """A date in days, and a constant: their squares would swamp what clusters differ by."""
    X = thin(300, 60, filled=0.02)
    X[:, 20] = 2e4 + X[:, 0]
    X[:, 21] = 1.0
    X[::50, 20] = 0
    for method in METHODS.values():
        assert_same(fitted(sparse.csr_array(X), **method), fitted(X, **method))


def test_distances_to_a_center_at_a_case_are_zero():
    X = thin(60, 30)
    model = fitted(sparse.csr_array(X), trim=0, l1_bound=None)
    model.cluster_centers_ = X[:3].copy()
    assert_array_equal(np.diag(model.transform(sparse.csr_array(X[:3]))), 0)


def test_outlying_cells(tables):
    X = thin()
    X[3, 5], X[7, 30] = 1e30, -1e155
    for method in ({"trim": 0.1, "l1_bound": 2.5}, {}):
        assert_array_equal(
            fitted(sparse.csr_array(X), **method).labels_, fitted(X, **method).labels_
        )


def test_the_number_of_threads_changes_no_bit(tables, monkeypatch):
    monkeypatch.setattr(engine_module, "POOL_WORK", 0)
    monkeypatch.setattr(engine_module, "CHUNK_BYTES", 2**14)
    monkeypatch.setattr("rskc.engines.memory.joblib.cpu_count", lambda: 3)
    X = sparse.csr_array(thin(600, 30))
    one, three = (fitted(X, n_threads=n) for n in (1, 3))
    for name in ("labels_", "cluster_centers_", "feature_weights_", "distances_"):
        assert_array_equal(getattr(one, name), getattr(three, name))


# ---- How a matrix is stored


def stored(X):
    """The same table in other ways."""
    csr = sparse.csr_matrix(X)
    wide = csr.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    mark = (X == 0) & (np.random.default_rng(0).random(X.shape) < 0.1)
    zeros = sparse.csr_array(np.where(mark, 7.0, X))
    zeros.data[zeros.data == 7.0] = 0
    coo = csr.tocoo()
    order = np.random.default_rng(0).permutation(2 * coo.nnz)
    halves = [np.tile(part, 2)[order] for part in (coo.data / 2, coo.row, coo.col)]
    twice = sparse.coo_matrix((halves[0], (halves[1], halves[2])), shape=X.shape)
    last = np.lexsort((-coo.col, coo.row))
    unsorted = sparse.csr_matrix((coo.data[last], coo.col[last], csr.indptr), shape=X.shape)
    repeated = sparse.csr_array(
        (np.repeat(csr.data / 2, 2), np.repeat(csr.indices, 2), 2 * csr.indptr), shape=X.shape
    )
    return {
        "csr_array": sparse.csr_array(X),
        "csc_matrix": sparse.csc_matrix(X),
        "csc_array": sparse.csc_array(X),
        "int64 indices": wide,
        "explicit zeros": zeros,
        "coo with duplicates": twice,
        "unsorted": unsorted,
        "duplicates": repeated,
        "lil": sparse.lil_matrix(X),
        "dok": sparse.dok_array(X),
    }


@pytest.mark.parametrize("kind", stored(thin(4, 9)))
def test_any_way_to_store_a_table(kind):
    X = thin(90, 30)
    matrix, plain = stored(X)[kind], fitted(sparse.csr_matrix(X), trim=0.1)
    names = [name for name in ("data", "indices", "indptr") if hasattr(matrix, "indices")]
    before = {name: getattr(matrix, name).copy() for name in names}
    model = fitted(matrix, trim=0.1)
    assert_same(model, plain)
    assert_array_equal(model.predict(matrix), plain.labels_)
    for name, array in before.items():  # the caller's matrix is as it was, down to its order
        assert_array_equal(getattr(matrix, name), array)
        assert getattr(matrix, name).dtype == array.dtype
    assert_array_equal(matrix.toarray(), X)


def test_a_sparse_data_frame_keeps_its_names():
    X = thin(60, 20)
    names = [f"gene {j}" for j in range(20)]
    frame = pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(X), columns=names)
    model = fitted(frame, trim=0.1)
    assert list(model.feature_names_in_) == names
    assert_same(model, fitted(X, trim=0.1))


# ---- What is refused


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (sparse.csr_matrix((0, 5)), "0 sample"),
        (sparse.csr_matrix((5, 0)), "0 feature"),
        (sparse.csr_matrix(np.array([[1.0, np.inf], [0, 1], [2, 0], [0, 3]])), "infinity"),
        (sparse.csr_matrix(np.eye(5, dtype=complex)), "[Cc]omplex"),
    ],
    ids=["no cases", "no features", "infinite", "complex"],
)
def test_bad_matrices_are_refused(X, words):
    with pytest.raises(ValueError, match=words):
        RobustSparseKMeans(3).fit(X)


# ---- The engine


def test_nearly_full_matrices_are_made_dense_and_others_never():
    full, half = np.random.default_rng(0).random((2, 50, 20))
    half[half < 0.6] = 0
    assert type(engine_for(sparse.csr_array(full))) is MemoryEngine
    assert type(engine_for(sparse.csr_array(half))) is SparseEngine
    big = sparse.random(20_000, 300, density=0.02, format="csr", random_state=0)
    engine = engine_for(big)
    assert type(engine.part(np.arange(10_000))) is SparseEngine


@pytest.mark.parametrize("method", [METHODS["K-means"], METHODS["automatic"]], ids=str)
def test_memory_is_not_that_of_a_dense_copy(method, monkeypatch):
    """The sizes that do not grow with the table are lowered, so that a small table will do."""
    for name, value in (
        ("rskc.engines.sparse.DENSE_BYTES", 2**16),
        ("rskc.engines.sparse.CHUNK_BYTES", 2**17),
        ("rskc.engines.memory.FRAME_CELLS", 2**16),
        ("rskc.engines.memory.MemoryTable.work_bytes", 2**18),
        ("rskc.engines.memory.MemoryEngine.work_bytes", 2**18),
        ("rskc.model.automatic.MOST_CASES", 200),
        ("rskc.model.automatic.FEWEST_CASES", 200),
        ("rskc.model.automatic.CELLS_AT_ONCE", 2**14),
        ("rskc.model.outliers.MOST_SUSPECTS", 50),
        ("rskc.model.outliers.MOST_MEMBERS", 50),
        ("rskc.solver.search.FEWEST_CASES", 500),
        ("rskc.solver.search.SAMPLE_CELLS", 2**17),
    ):
        monkeypatch.setattr(name, value)
    X = sparse.vstack([sparse.csr_array(thin(2000, 500))] * 4, format="csr")
    fitted(X[:100], n_init=3, **method)  # what is imported on the way
    tracemalloc.start()
    fitted(X, n_init=3, **method)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * bytes_of(X) < 0.33 * 8 * X.shape[0] * X.shape[1]  # beside the matrix


# ---- Searches


@each_search
def test_searches_take_row_subsets(name):
    X = thin(120, 15)
    matrix, search = sparse.csr_array(X), search_of(name, estimator=RobustSparseKMeans(3))
    best = search.fit(matrix).best_estimator_
    assert_array_equal(best.labels_, search.predict(matrix))
    assert best.n_clusters == search.fit(X).best_estimator_.n_clusters


# ---- Pictures


def test_displays_draw_what_they_draw_of_the_dense_table(monkeypatch):
    skip_without("matplotlib")
    from rskc.displays import ClusterDisplay, HeatmapDisplay, OutlierDisplay, SilhouetteDisplay

    X = thin()
    matrix, model = sparse.csr_array(X), fitted(X, trim=0.1, l1_bound=2.5)
    drawn = [ClusterDisplay.from_estimator(model, table) for table in (matrix, X)]
    assert_allclose(drawn[0].positions, drawn[1].positions)
    monkeypatch.setattr("rskc.pictures.models.MOST_CELLS", 0)
    positions = ClusterDisplay.from_estimator(model, matrix).positions
    assert_allclose(np.abs(positions), np.abs(drawn[1].positions), atol=1e-9)
    cells = [HeatmapDisplay.from_estimator(model, table).values for table in (matrix, X)]
    assert_array_equal(*cells)
    for display in (OutlierDisplay, SilhouetteDisplay):
        display.from_estimator(model, matrix)


def test_a_report_is_that_of_the_dense_table():
    skip_without("jinja2", "vl_convert")
    X = thin()
    model = fitted(X, trim=0.1, l1_bound=2.5)
    assert model.report(sparse.csr_array(X)).html == model.report(X).html


# ---- Standardizing


@pytest.mark.parametrize("scale", ["mad", "std"])
def test_sparse_columns_are_scaled_and_not_centered(scale):
    X = thin(200, 20)
    X[:, 3] += 5
    matrix = sparse.csc_matrix(X)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        made, dense = (ColumnStandardizer(scale=scale).fit(table) for table in (matrix, X))
    assert len({str(warning.message) for warning in warned}) == (scale == "mad")
    assert_allclose(made.scale_, dense.scale_)
    assert_array_equal(made.center_, 0)
    scaled = made.transform(matrix)
    assert_allclose(scaled.toarray(), X / made.scale_)
    assert_allclose(made.transform(X), scaled.toarray())
    assert_allclose(made.inverse_transform(scaled).toarray(), X)
    assert_array_equal(fitted(scaled, trim=0).labels_, fitted(dense.transform(X), trim=0).labels_)
    with pytest.raises(ValueError, match="centering by a fit to a dense table"):
        dense.transform(matrix)
    with pytest.raises(TypeError, match="dense data is required"):
        RowStandardizer().fit(matrix)


# ---- Files


def test_tables_in_sparse_files(tmp_path):
    skip_without("polars")
    X = thin(40, 12)
    sparse.save_npz(tmp_path / "t.npz", sparse.csc_matrix(X))
    mmwrite(tmp_path / "t.mtx", sparse.csr_matrix(X))
    packed = tmp_path / "t.mtx.gz"
    packed.write_bytes(gzip.compress((tmp_path / "t.mtx").read_bytes()))
    for name in ("t.npz", "t.mtx", "t.mtx.gz"):
        table = read_table(tmp_path / name)
        assert list(table.data.columns) == [f"x{j}" for j in range(12)]
        assert_allclose(table.data.sparse.to_dense().to_numpy(), X)
        assert table.n_missing == 0
        turned = read_table(tmp_path / name, features_in_rows=True, drop=[]).data
        assert_allclose(turned.sparse.to_dense().to_numpy(), X.T)
    fixed = np.column_stack([X[:, :2], np.zeros(40), np.full(40, 2.0)])
    sparse.save_npz(tmp_path / "fixed.npz", sparse.csr_array(fixed))
    assert read_table(tmp_path / "fixed.npz").constant == ["x2", "x3"]
    left = read_table(tmp_path / "t.npz", drop=["x3", "x5"])
    assert_allclose(left.data.sparse.to_dense().to_numpy(), np.delete(X, [3, 5], axis=1))
    assert left.dropped == {"x3": "asked for", "x5": "asked for"}
    with pytest.raises(TableError, match="there is no column 'y', given as"):
        read_table(tmp_path / "t.npz", drop=["y"])
    head = "%%MatrixMarket matrix coordinate real general\n"
    for bad in ("%%MatrixMarket nonsense\n1 2\n", "a,b\n1,2\n", head, f"{head}4 3 9\n1 1 5\n"):
        (tmp_path / "bad.mtx").write_text(bad)
        with pytest.raises(TableError, match=r"cannot be read as \.mtx"):
            read_table(tmp_path / "bad.mtx")


@pytest.mark.parametrize("end", ["", ".gz"])
def test_names_beside_a_matrix(tmp_path, end):
    skip_without("polars")
    X = thin(5, 9)[:, :4]
    mmwrite(tmp_path / "matrix.mtx", sparse.coo_matrix(X.T))
    texts = {
        "features.tsv": "".join(f"E{j}\tgene {j}\tGene Expression\n" for j in range(4)),
        "barcodes.tsv": "".join(f"cell-{i}\n" for i in range(5)) + "\n",  # ends in a blank line
    }
    for name, text in texts.items():
        data = text.encode()
        (tmp_path / (name + end)).write_bytes(gzip.compress(data) if end else data)
    table = read_table(tmp_path / "matrix.mtx")
    assert list(table.data.columns) == [f"gene {j}" for j in range(4)]
    assert list(table.data.index) == [f"cell-{i}" for i in range(5)]
    assert table.id_column == "barcode"
    assert_allclose(table.data.sparse.to_dense().to_numpy(), X)
    folder = read_table(tmp_path)
    pd.testing.assert_frame_equal(folder.data, table.data)
    assert not folder.turned
    repeated = texts["features.tsv"].replace("gene 1", "gene 0").encode()
    name = tmp_path / ("features.tsv" + end)
    name.write_bytes(gzip.compress(repeated) if end else repeated)
    assert list(read_table(tmp_path / "matrix.mtx").data.columns) == [f"E{j}" for j in range(4)]
    uneven = b"E0\ta\r\nE1\n\nE2\tc\textra\r\nE3\td\n"
    name.write_bytes(gzip.compress(uneven) if end else uneven)
    assert list(read_table(tmp_path / "matrix.mtx").data.columns) == ["a", "E1", "c", "d"]
    name.write_bytes(gzip.compress(b"one\n") if end else b"one\n")
    with pytest.raises(TableError, match=r"shape \(4, 5\).*1 features and 5 cases"):
        read_table(tmp_path / "matrix.mtx")


def test_the_command_line_leaves_sparse_tables_sparse(tmp_path):
    skip_without("typer", "rich", "polars", "jinja2", "vl_convert", "psutil")
    from commands import refused, run

    X = thin(80, 12)
    sparse.save_npz(tmp_path / "t.npz", sparse.csr_matrix(X))
    np.save(tmp_path / "t.npy", X)
    found = {}
    for name in ("t.npz", "t.npy"):
        options = ("--clusters", "3", "--seed", "0", "--no-report", "--out", tmp_path / name[2:])
        run("fit", tmp_path / name, *options)
        found[name] = pd.read_csv(tmp_path / name[2:] / "labels.csv")
    assert_array_equal(found["t.npz"].cluster, found["t.npy"].cluster)
    assert_allclose(found["t.npz"].distance, found["t.npy"].distance)
    few = sparse.csr_matrix(X[:, :8])  # some without weight are missing
    sparse.save_npz(tmp_path / "few.npz", few)
    run("predict", tmp_path / "npz", tmp_path / "few.npz", "--out", tmp_path / "p.csv")
    assert_array_equal(pd.read_csv(tmp_path / "p.csv").cluster, found["t.npz"].cluster)
    standardize = ("--clusters", "3", "--standardize", "rows")
    assert "the table is sparse" in refused("fit", tmp_path / "t.npz", *standardize)
