"""Robust and sparse K-means on AnnData objects, by the conventions of scanpy.

::

    import rskc.anndata

    model = rskc.anndata.cluster(adata, 8)
    sc.pl.umap(adata, color=["rskc", "rskc_outlier"])

    rskc.anndata.rank_genes(adata, model)
    sc.pl.rank_genes_groups_dotplot(adata, n_genes=4)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from rskc.estimator import RobustSparseKMeans
from rskc.exceptions import warn_user
from rskc.inputs.arrays import NamedMatrix, model_to_numpy
from rskc.inputs.validation import check_choice
from rskc.markers import effects_between, regular_clusters
from rskc.preprocessing.preparer import Preparer
from rskc.selection import Stability

if TYPE_CHECKING:
    from anndata import AnnData

__all__ = ["cluster", "rank_genes"]

STORABLE = (bool, int, float, str, np.ndarray, np.generic)  # in an .h5ad


def cluster(
    adata: AnnData,
    n_clusters: int | str = "auto",
    *,
    prepare: str | None = "auto",
    layer: str | None = None,
    use_rep: str | None = None,
    key_added: str = "rskc",
    **params: Any,
) -> RobustSparseKMeans:
    """Cluster the observations of an AnnData object.

    Parameters
    ----------
    adata : AnnData
        The object. Sparse tables stay sparse.
    n_clusters : int or "auto", default="auto"
        Number of clusters; "auto": chosen by half-samples, :class:`rskc.selection.Stability`.
    prepare : {"auto", None}, default="auto"
        Whether the variables are prepared by :class:`rskc.Preparer`: counts are divided by size
        factors and become logarithms, and genes are divided by their scales. None: they are
        clustered as they are, as a representation is in any case.
    layer : str or None, default=None
        Layer to cluster by; None for ``X``.
    use_rep : str or None, default=None
        Representation in ``obsm`` to cluster by, such as "X_pca"; "X" for ``X``.
    key_added : str, default="rskc"
        Under which name the results are added.
    **params
        Parameters of :class:`rskc.RobustSparseKMeans`.

    Returns
    -------
    model : RobustSparseKMeans
        The fitted model. Added to the object are:

        - ``obs["rskc"]``: cluster, a category;
        - ``obs["rskc_outlier"]`` and ``obs["rskc_distance"]``: whether it looks like an outlier,
          and the weighted squared distance to its center;
        - ``var["rskc_weight"]``: weight of the variable, unless ``use_rep`` has others;
        - ``uns["rskc"]``: parameters and summary of the fit, and how the table was prepared.

    Examples
    --------
    >>> import anndata, rskc.anndata
    >>> from rskc.datasets import make_simulation
    >>> adata = anndata.AnnData(make_simulation(random_state=0).data)
    >>> model = rskc.anndata.cluster(adata, 3, l1_bound=6, random_state=0)
    >>> adata.obs["rskc"].value_counts().sum()
    np.int64(60)
    """
    import pandas as pd

    _check(adata, layer, use_rep)
    check_choice("prepare", prepare, ("auto", None))
    is_own, words, table = use_rep in (None, "X"), "nothing", _table_of(adata, layer, use_rep)
    if is_own and prepare == "auto":
        preparer = Preparer().fit(table)
        table, words = preparer.transform(table), preparer.describe()
    if is_own and issparse(table):
        table = NamedMatrix(table, adata.obs_names, adata.var_names)
    elif is_own:
        table = pd.DataFrame(table, adata.obs_names, adata.var_names, copy=False)
    if isinstance(n_clusters, str):
        check_choice("n_clusters", n_clusters, ("auto",), remedy=", or a number")
        search = Stability(RobustSparseKMeans(2, **params), random_state=params.get("random_state"))
        model = search.fit(table).best_estimator_
    else:
        model = RobustSparseKMeans(n_clusters, **params).fit(table)
    categories = np.unique(model.labels_).astype(str)
    adata.obs[key_added] = pd.Categorical(model.labels_.astype(str), categories=categories)
    adata.obs[f"{key_added}_outlier"] = model.outliers_
    adata.obs[f"{key_added}_distance"] = model.distances_
    if is_own:
        adata.var[f"{key_added}_weight"] = model.feature_weights_
    elif f"{key_added}_weight" in adata.var:  # of an earlier run, which is overwritten
        del adata.var[f"{key_added}_weight"]
    known = {"layer": layer, "use_rep": use_rep, **model.get_params(deep=False)}
    given = {name: value for name, value in known.items() if value is not None}
    adata.uns[key_added] = {
        "params": {k: v if isinstance(v, STORABLE) else str(v) for k, v in given.items()},
        "preparation": words,
        "summary": model.summary(),
    }
    return model


def rank_genes(
    adata: AnnData,
    model: RobustSparseKMeans,
    *,
    groupby: str = "rskc",
    layer: str | None = None,
    key_added: str = "rank_genes_groups",
) -> None:
    """Rank the genes that set each cluster apart, in the layout of scanpy's ``rank_genes_groups``.

    Added is ``uns["rank_genes_groups"]``: ``params``; ``names`` and ``scores``, from those above 0
    to those below; ``logfoldchanges``, the differences of the means, which are log fold changes if
    the values are logarithms; ``pvals`` and ``pvals_adj``, which are NaN, since p-values between
    clusters that the same cells made are not valid (arXiv:2203.15267).

    scanpy's plots (``sc.pl.rank_genes_groups``, ``..._dotplot``, ``..._heatmap`` and so on) and
    ``sc.get.rank_genes_groups_df`` read it. Scores are effects, as in
    :func:`rskc.markers.marker_effects`: how far the mean of a cluster is from that of the others,
    in robust standard deviations within clusters, over the cells that are neither trimmed nor
    outliers. Raw counts become logarithms first. Genes without weight have the score 0; where the
    clusters were found in a representation such as "X_pca", whose weights are not those of genes,
    all have their effect.

    Parameters
    ----------
    adata : AnnData
        The object with the clusters of ``model`` in ``obs``.
    model : RobustSparseKMeans
        What :func:`cluster` returned.
    groupby : str, default="rskc"
        Name of the clusters in ``obs``: ``key_added`` of :func:`cluster`.
    layer : str or None, default=None
        Layer whose genes are ranked; None for ``X``.
    key_added : str, default="rank_genes_groups"
        Name of the result in ``uns``, ``key`` in scanpy's plots; what is there is replaced.

    Examples
    --------
    >>> import anndata, rskc.anndata
    >>> from rskc.datasets import make_simulation
    >>> adata = anndata.AnnData(make_simulation(random_state=0).data)
    >>> model = rskc.anndata.cluster(adata, 3, l1_bound=6, random_state=0)
    >>> rskc.anndata.rank_genes(adata, model)
    >>> adata.uns["rank_genes_groups"]["names"].dtype.names
    ('0', '1', '2')
    """
    _check(adata, layer, None)
    model = model_to_numpy(model)
    labels = model.labels_.astype(str)
    if groupby not in adata.obs or list(adata.obs[groupby].astype(str)) != list(labels):
        raise ValueError(
            f"groupby={groupby!r} has not the clusters of this model in adata.obs; give the "
            "key_added of rskc.anndata.cluster, or cluster adata again."
        )
    if len(model.cluster_centers_) == 1:
        raise ValueError("One cluster has nothing to be compared with, so it has no markers.")
    table = Preparer(standardize=None).fit_transform(_table_of(adata, layer))
    found = effects_between(table, regular_clusters(model), len(model.cluster_centers_))
    names = np.asarray(adata.var_names)
    if np.array_equal(getattr(model, "feature_names_in_", ()), names):
        # Some of scanpy's plots want all genes, so that those without weight are not left out.
        for effects in (found.effects, found.separations):
            effects[:, model.feature_weights_ == 0] = 0
    shape = found.effects.shape
    columns = {
        "names": (np.broadcast_to(names, shape), "O"),
        "scores": (found.effects, "f4"),
        "logfoldchanges": (found.means - found.means_of_others, "f4"),
        "pvals": (np.full(shape, np.nan), "f8"),
        "pvals_adj": (np.full(shape, np.nan), "f8"),
    }
    strengths = np.fmax(np.abs(found.effects), found.separations)
    orders = np.argsort(np.where(found.effects < 0, strengths, -strengths), axis=1, kind="stable")
    # Records with a field a cluster; of clusters without regular cases there is none.
    groups = np.flatnonzero(np.isfinite(found.means).any(axis=1)).tolist()
    ranked = {
        name: np.rec.fromarrays(
            [values[k][orders[k]] for k in groups], dtype=[(str(k), kind) for k in groups]
        )
        for name, (values, kind) in columns.items()
    }
    params = {"groupby": groupby, "reference": "rest", "method": "rskc", "use_raw": False}
    params |= {"layer": layer, "corr_method": "none"}
    adata.uns[key_added] = {"params": params, **ranked}


def _check(adata: Any, layer: str | None, use_rep: str | None) -> None:
    try:
        from anndata import AnnData
    except ImportError as error:
        raise ImportError(
            'rskc.anndata needs anndata, which is not installed: pip install "rskc[anndata]".'
        ) from error
    if not isinstance(adata, AnnData):
        kind = type(adata).__name__
        raise TypeError(
            f"adata is of type {kind}; it must be an AnnData. For tables, use the estimator."
        )
    if layer is not None and use_rep is not None:
        raise ValueError(
            f"layer={layer!r} and use_rep={use_rep!r} are two tables to cluster by; give one."
        )
    if adata.isbacked:
        raise ValueError("adata is backed by a file; read it first: adata = adata.to_memory().")
    if adata.is_view:  # as scanpy does: results cannot be added to a view
        warn_user("adata is a view; it is made a copy of its own.")
        adata._init_as_actual(adata.copy())


def _table_of(adata: Any, layer: str | None, use_rep: str | None = None) -> Any:
    """Return X, a layer or a representation, sparse by rows or an array."""
    parameter, place, name = "use_rep", "obsm", use_rep
    if use_rep in (None, "X"):
        parameter, place, name = "layer", "layers", layer
    tables, table = getattr(adata, place), adata.X
    if name is None and table is None:
        raise ValueError("adata has no X; name a layer or use_rep.")
    if name is not None:
        if name not in tables:
            known = ", ".join(map(repr, tables)) or "none"
            raise ValueError(f"{parameter}={name!r} is not in adata.{place}; there: {known}.")
        table = tables[name]
    return table.tocsr() if issparse(table) else np.asarray(table)
