"""Clustering AnnData objects: what is added, and that it survives a file."""

import sys

import anndata
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import rskc.anndata
from rskc import RobustSparseKMeans
from rskc.datasets import make_simulation
from rskc.markers import marker_effects

SETTINGS = {"l1_bound": 6, "n_init": 5, "random_state": 0}


@pytest.fixture
def adata():
    made = make_simulation(random_state=0, n_features=60, n_informative=20)
    adata = anndata.AnnData(made.data.copy())
    adata.obs_names = [f"cell{i}" for i in range(60)]
    adata.var_names = [f"gene{j}" for j in range(60)]
    return adata


def test_results_are_those_of_the_estimator(adata):
    model = rskc.anndata.cluster(adata, 3, **SETTINGS)
    same = RobustSparseKMeans(3, **SETTINGS).fit(adata.X)
    assert_array_equal(adata.obs["rskc"].astype(int), same.labels_)
    assert_array_equal(adata.obs["rskc_outlier"], same.outliers_)
    assert_array_equal(adata.obs["rskc_distance"], same.distances_)
    assert_array_equal(adata.var["rskc_weight"], same.feature_weights_)
    assert adata.obs["rskc"].dtype == "category"
    assert list(adata.obs["rskc"].cat.categories) == ["0", "1", "2"]
    assert list(model.feature_names_in_) == list(adata.var_names)
    assert list(model.case_names_in_) == list(adata.obs_names)


def test_a_file_keeps_it_all(adata, tmp_path):
    rskc.anndata.cluster(adata, 3, **SETTINGS)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert again.obs["rskc"].equals(adata.obs["rskc"])
    assert again.var["rskc_weight"].equals(adata.var["rskc_weight"])
    assert again.uns["rskc"]["params"]["n_clusters"] == 3
    assert again.uns["rskc"]["params"]["l1_bound"] == 6
    assert again.uns["rskc"]["summary"] == adata.uns["rskc"]["summary"]


def test_parameters_that_no_file_holds_are_named(adata, tmp_path):
    def init(X, n_clusters, random_state):
        return X[:n_clusters]

    params = {"init": init, "random_state": np.random.RandomState(0)}
    rskc.anndata.cluster(adata, 3, **params)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    assert "init" in anndata.read_h5ad(tmp_path / "cells.h5ad").uns["rskc"]["params"]["init"]


def test_genes_are_ranked_as_scanpy_reads_them(adata, tmp_path):
    model = rskc.anndata.cluster(adata, 3, **SETTINGS)
    rskc.anndata.rank_genes(adata, model)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    for found in (adata.uns, anndata.read_h5ad(tmp_path / "cells.h5ad").uns):
        ranked = found["rank_genes_groups"]
        assert ranked["params"]["groupby"] == "rskc"
        assert ranked["params"]["reference"] == "rest"
        effects = marker_effects(model, adata.to_df()).effects * model.get_support()
        for k in range(3):
            names, scores = ranked["names"][str(k)], ranked["scores"][str(k)]
            assert sorted(names) == sorted(adata.var_names)
            markers = model.markers_frame(adata.to_df(), min_effect=0).query(f"cluster == {k}")
            high = markers.feature[markers.effect > 0]
            assert_array_equal(names[: len(high)], high)
            assert_allclose(scores, effects[k, adata.var_names.get_indexer(names)], rtol=1e-6)
            assert np.isnan(ranked["pvals"][str(k)]).all()
            assert np.isnan(ranked["pvals_adj"][str(k)]).all()


def test_genes_are_ranked_where_clusters_are_of_a_representation(adata):
    adata.obsm["X_pca"] = adata.X[:, :7]
    adata.layers["thin"] = sparse.csr_matrix(np.maximum(adata.X, 0))
    model = rskc.anndata.cluster(adata, 3, use_rep="X_pca", key_added="own", random_state=0)
    rskc.anndata.rank_genes(adata, model, groupby="own", layer="thin", key_added="genes")
    assert "rank_genes_groups" not in adata.uns
    ranked = adata.uns["genes"]
    assert len(ranked) == 6
    assert len(ranked["names"]) == adata.n_vars
    assert ranked["params"]["layer"] == "thin"


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_sparse_tables_give_the_clusters_of_dense_ones(adata, make, dtype):
    counts = np.maximum(adata.X * 3, 0).astype(dtype)
    settings = {**SETTINGS, "trim": 0}
    dense = rskc.anndata.cluster(anndata.AnnData(counts), 3, **settings)
    thin = rskc.anndata.cluster(anndata.AnnData(make(counts)), 3, **settings)
    assert_array_equal(thin.labels_, dense.labels_)
    assert thin.cluster_centers_.dtype == (np.float32 if dtype == np.float32 else np.float64)


def test_a_wide_sparse_table_is_clustered():
    """No dense copy is made of it: tests/model/test_sparse.py counts the bytes."""
    rng = np.random.default_rng(0)
    rows, columns = np.arange(300).repeat(20), rng.integers(0, 20_000, 6000)
    columns[: 6000 // 2] %= 30  # the first half of the cases share features
    counts = sparse.csr_matrix((np.ones(6000, np.float32), (rows, columns)), (300, 20_000))
    wide = anndata.AnnData(counts)
    model = rskc.anndata.cluster(
        wide, 2, prepare=None, trim=0, l1_bound=None, n_init=4, random_state=0
    )
    assert_array_equal(np.sort(np.bincount(model.labels_)), [150, 150])


def test_layers_and_representations(adata):
    adata.layers["shifted"] = adata.X + 5
    adata.obsm["X_pca"] = adata.X[:, :7]
    rskc.anndata.cluster(adata, 3, layer="shifted", key_added="a", **SETTINGS)
    rskc.anndata.cluster(adata, 3, use_rep="X", key_added="b", **SETTINGS)
    model = rskc.anndata.cluster(adata, 3, use_rep="X_pca", key_added="a", random_state=0)
    assert "b_weight" in adata.var
    assert "a_weight" not in adata.var  # that of the first run would be wrong
    assert model.n_features_in_ == 7
    assert adata.uns["a"]["params"]["use_rep"] == "X_pca"


def test_a_view_becomes_a_copy_of_its_own(adata):
    part = adata[:, :40]
    with pytest.warns(UserWarning, match="view"):
        rskc.anndata.cluster(part, 3, random_state=0)
    assert "rskc" in part.obs
    assert "rskc" not in adata.obs


def test_other_refusals(adata, tmp_path):
    with pytest.raises(TypeError, match="must be an AnnData"):
        rskc.anndata.cluster(adata.X, 3)
    with pytest.raises(ValueError, match="no X"):
        rskc.anndata.cluster(anndata.AnnData(obs=adata.obs), 3)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    with pytest.raises(ValueError, match="to_memory"):
        rskc.anndata.cluster(backed, 3)
    backed.file.close()


def test_without_anndata_one_sentence_says_what_to_do(adata, monkeypatch):
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(ImportError, match=r"pip install \"rskc\[anndata\]\""):
        rskc.anndata.cluster(adata, 3)


def cells(n=240, p=300, seed=0):
    """Counts of three types of cells, and four genes that vary for no type."""
    rng = np.random.default_rng(seed)
    types = np.arange(n) % 3
    means = np.exp(rng.normal(-0.5, 1, p) + np.zeros((3, p)))
    for k in range(3):
        means[k, 20 * k : 20 * k + 20] *= 8
    rates = means[types] * np.exp(rng.normal(0, 0.4, (n, 1)))
    rates[:, -4:] = np.exp(rng.normal(3, 1.5, (n, 4)))
    return sparse.csr_matrix(rng.poisson(rates).astype(np.float32)), types


def test_raw_counts_are_prepared_and_the_number_of_clusters_chosen():
    counts, types = cells()
    adata = anndata.AnnData(counts)
    model = rskc.anndata.cluster(adata, n_init=5, random_state=0)
    assert model.n_clusters == 3
    assert adata.uns["rskc"]["preparation"].startswith("counts divided by size factors")
    found = adata.obs["rskc"].astype(int).to_numpy()
    assert all(len(set(types[found == k])) == 1 for k in range(3))
    assert (counts != adata.X).nnz == 0
    rskc.anndata.rank_genes(adata, model)
    ranked = adata.uns["rank_genes_groups"]
    for k in range(3):
        kind = types[found == k][0]
        assert {int(name) // 20 for name in ranked["names"][str(k)][:10]} == {kind}
        assert (np.diff(ranked["scores"][str(k)][:10]) <= 1).all()
        assert (ranked["scores"][str(k)][:10] > 0).all()
    options = {"n_init": 5, "random_state": 0, "cells": None}
    as_it_is = rskc.anndata.cluster(adata, 3, prepare=None, **options)
    assert_array_equal(as_it_is.labels_, RobustSparseKMeans(3, **options).fit(counts).labels_)
