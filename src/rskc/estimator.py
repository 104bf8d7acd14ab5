"""RobustSparseKMeans: its parameters and attributes, and what can be asked of a fitted one."""

from importlib import import_module
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

import rskc.model.fitting as fitting
from rskc.exceptions import warn_user
from rskc.inputs.arrays import model_to_numpy, to_numpy
from rskc.markers import LEAST_EFFECT, marker_effects, markers_frame
from rskc.model.fitted import PredictionMixin
from rskc.model.summary import ResultsMixin


class RobustSparseKMeans(ResultsMixin, PredictionMixin, ClusterMixin, BaseEstimator):
    """Robust and sparse K-means.

    Finds clusters that show in a few of many features, while a share of the cases may be outlying.
    Each feature gets a weight, 0 for those that do not matter; the cases farthest from their
    centers, in the weighted and in the unweighted sense, are excluded from centers and weights.

    Without trimming (``trim=0``) it is sparse K-means, without sparsity (``l1_bound=None``) trimmed
    K-means, and without both K-means.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, K.
    trim : float or "auto", default="auto"
        Share of the cases that each of the two rules trims, 0 <= trim < 0.5: the method of the
        paper. "auto": a first fit trims nothing, and that is all if it shows no outlying case.
        Otherwise another fit trims 15%; cases that are far from its centers are set aside, unless
        they form a cluster of their own; the others are clustered with hardly any trimming; and the
        reweighting step excludes the cases that are outlying in the end.
    cells : float >= 1, "auto" or None, default="auto"
        How many scales a cell must be from the center of its case, in a feature, to be outlying:
        its squared error counts no more than that, and it does not contribute to the center. In a
        wide table nearly every case has a few outlying cells, and no share can be trimmed.
        "auto": 3.3, .1% of clean normal cells, where many cases have extreme cells that no clusters
        explain, and trim or bound is automatic; otherwise none, as with None.
        None: cells are left alone, as in the paper.
    l1_bound : float, "auto", "half" or None, default="auto"
        Bound on the L1 norm of the weights, whose L2 norm is 1: from 1, one feature, to
        ``sqrt(n_features_in_)``, where it no longer binds. "half" is halfway between. "auto":
        clusters are found with that bound, each feature is tested for a difference between them,
        and the clusters are refined with as many features as pass, until they no longer change.
        None: no sparsity, all weights are 1; so are those of one cluster, unless a number is given.
    n_features : int or None, default=None
        A wanted number of features instead of a bound. The bound is chosen so that this number of
        weights is above 0.
    feature_groups : array-like of shape (n_features_in_,), mapping or None, default=None
        Features that share one weight. An array has the name of the group of each feature, None
        or "" for one that is alone; a mapping has the features of each group, by names or numbers,
        and all others are alone. Bound and ``n_features`` are then over groups, and the features
        that differ are tested by groups. Each of the m features of a group has the weight of the
        group divided by m: a group of m copies counts like one of them.
    categorical : sequence of str or int, default=None
        Columns of X whose numbers stand for categories, by name or number. Of a data frame the
        columns of text, of true and false, and of categorical types are categories anyway. Each
        becomes a group of indicators with one weight, scaled so that it counts like a standardized
        number; see :class:`rskc.categories.CategoryEncoder`. A missing category is missing, and
        one that ``predict`` has not seen is none of the known ones, with a warning.
    ordinal : sequence of str or int, or mapping, default=None
        Columns whose categories have an order and are coded by rank; a mapping gives the order.
    reweight : bool, default=False
        Whether the reweighting step follows a fit with a given ``trim``: centers, between sums and
        weights are computed again from the cases that are not outliers by either distance, and so
        are labels and outliers, until the outliers no longer change. ``trim="auto"`` includes it.
    init : {"auto", "random", "k-means++", "robust"}, array or callable, default="auto"
        Starting centers. "random": cases drawn at random. "k-means++": cases far from one another.
        "robust": the same, but the cases farthest from all others cannot be drawn, so that outlying
        ones do not capture a center. "auto": random ones and, in turn, robust ones if cases are
        trimmed, else k-means++. An array (n_clusters, n_features_in_) is one start; a callable
        gets ``X``, ``n_clusters`` and ``random_state`` and returns such an array.
    n_init : int or "auto", default="auto"
        Number of restarts. "auto": 10 to 100, the fewer the larger the data; 1 for an array. Of
        tables with more than 8 million cells (and 32,768 cases) a sample of the cases is searched,
        30 times, and the result runs to convergence on all cases.
    max_iter : int, default=300
        Most iterations of K-means in each step, and most alternations between partition and
        weights.
    tol : float, default=1e-4
        Restarts stop when their within sum of squares falls by less than this share of itself, and
        the alternation when the weights change by less than this share. The returned solution runs
        to convergence in any case, so that its labels are those that ``predict`` gives. From a
        million cases on, a fit stops when at most ``10 * tol`` of the cases change their cluster or
        flag, and the weights change by no more than that share. 0 runs everything until nothing
        changes.
    outlier_rule : {"both", "paper"}, default="both"
        Which cases are outliers. "both": those whose weighted or unweighted distance to their
        center is large, on a scale on which distances are nearly normal, the cube root of the
        squared distance. Clusters differ in few features; a case that is outlying in the others
        shows in its unweighted distance alone. "paper": by the weighted squared distance itself,
        which flags about 2% of clean cases where four features have weight, and more where fewer
        have.
    outlier_cutoff : float or None, default=None
        A case is an outlier if it is above the median by more than this number of MADs (each times
        1.4826). None: 3 for "both", which 0.3% of clean normal cases exceed, raised to 5 where
        the distances have a heavy tail and no gap at 3; and 3.5 for "paper".
    random_state : int, RandomState, Generator or None, default=None
        Seed of the restarts. The same seed gives the same result for any number of threads.
    n_threads : int or None, default=None
        Number of threads in memory; None for all that the machine, or OMP_NUM_THREADS, allows.
        A device, and the scheduler of Dask, have their own.
    device : str or None, default=None
        Where ``fit`` makes its passes over an array in memory or a Dask collection: "cuda",
        "cuda:1", or "cpu" by torch. The data go there block by block, so that they may be larger
        than its memory; what fits stays there. None: where the data are, as those of a tensor on a
        GPU are. Predictions are made where *their* data are.
    verbose : int, default=0
        1: a line for each stage; 2: also one for each iteration.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each case, trimmed or not: that of its nearest center.
    cluster_centers_ : ndarray of shape (n_clusters, n_features_in_)
        Means, in the space of the data, of the cases that the weighted rule keeps. With categories
        they have a column for each indicator, as ``encoder_.get_feature_names_out()`` names them;
        ``features_frame`` has the shares of the categories.
    feature_weights_ : ndarray of shape (n_features_in_,)
        Weights of the features.
    group_names_, group_weights_ : ndarray of shape (n_groups,)
        With ``feature_groups``: the groups in the order of their first features, a feature alone by
        its own name, and their weights. L1 norm and L2 norm are those of these weights.
    feature_group_ : ndarray of int of shape (n_features_in_,)
        With ``feature_groups``: the number of the group of each feature.
    trimmed_weighted_, trimmed_unweighted_, trimmed_ : ndarray of bool of shape (n_samples,)
        Cases trimmed by their weighted distance, by their unweighted one, and by either, in the
        iteration that is returned. As in RSKC, its partition and trimmed cases were made with the
        weights of the iteration before: ``trimmed_weighted_`` need not be the cases that are
        farthest in the final weights. To judge cases by these, use ``outliers_``.
        After the reweighting step ``trimmed_weighted_`` are all cases that are left out, and
        ``trimmed_unweighted_`` those that are far by their unweighted distance.
    outlying_cells_ : sparse array of bool of shape (n_samples, n_features_in_)
        The outlying cells, of all cases; none where ``cell_cutoff_`` is None.
    cell_scales_ : ndarray of shape (n_features_in_,)
        The scale of each feature's errors, 1.4826 times their median size within clusters.
        Infinite for features of which no cell can be outlying: with few values, mostly zeros,
        categories.
    cell_cutoff_ : float or None
        The number of scales that was used.
    n_trim_ : int
        How many cases each rule trims, or how many are left out after the reweighting step. With
        ``sample_weight``, how many the weighted rule trims, one of them perhaps in part.
    trim_ : float
        The same as a share of the cases, or of their weight.
    sample_weight_ : ndarray of shape (n_samples,)
        The weights of the cases, if any were given. A case that is trimmed in part counts as
        trimmed in ``trimmed_`` and its like.
    outliers_ : ndarray of bool of shape (n_samples,)
        Cases whose distance is above ``outlier_threshold_``, or the unweighted one above
        ``unweighted_outlier_threshold_``.
    distances_ : ndarray of shape (n_samples,)
        Weighted squared distance of each case to its center.
    unweighted_distances_ : ndarray of shape (n_samples,)
        Squared distance of each case to the same center, over all features, all with weight 1.
    outlier_threshold_, unweighted_outlier_threshold_ : float
        The distances beyond which a case is an outlier, weighted and unweighted. Both are those of
        new cases: cases that make their center are nearer to it by (1 - 1/size)^2, for which their
        distances are corrected. The second is infinite for the rule "paper".
    outlier_cutoff_ : float
        The cut-off that was used.
    objective_ : float
        Weighted between-cluster sum of squares over the cases that both rules keep.
    objective_path_ : ndarray
        The objective, iteration by iteration, and last that of the solution: the best state on the
        way, run to convergence. It may fall, since the trimmed cases change.
    inertia_ : float
        Weighted within-cluster sum of squares over the cases that the weighted rule keeps.
    l1_bound_ : float or None
        The bound that was used, or that ``n_features`` led to.
    feature_statistics_, feature_p_values_ : ndarray of shape (n_features_in_,)
        With ``l1_bound="auto"`` and two clusters or more: for each feature the test for a
        difference between clusters, a one-way F on ranks, which is Kruskal and Wallis's test, over
        the cases that are neither trimmed nor outliers (4,000 of them at most, evenly spaced). It
        is a rule for choosing and no inference: the same data made the clusters. Features of a
        group have the test of their group: F over all its features, with as many more degrees of
        freedom as the group amounts to independent features.
    n_features_different_ : int
        How many features, or groups, pass at a false discovery rate of 5% (Benjamini and Hochberg).
    n_features_enough_ : int
        The least number of features, or groups, whose refit puts 99% of the cases in the same
        clusters, tried by halving.
    n_iter_ : int
        Number of alternations between partition and weights, the last being that of the solution.
    n_missing_ : int
        Number of missing cells.
    n_features_in_ : int
        Number of features.
    encoder_ : CategoryEncoder
        How categories became numbers, if X had any.
    feature_names_in_ : ndarray of str
        Names of the features, if X had any.
    case_names_in_ : ndarray of object of shape (n_samples,)
        Index of X, if it was a pandas frame with other than the default one.
    warnings_, warning_kinds_ : list of str
        The warnings of the fit, and the kind of each, such as "not converged".

    Warns
    -----
    ConvergenceWarning
        If ``max_iter`` ended it.
    SmallClusterWarning
        If another solution has a larger objective, but a cluster of no more cases than may be
        outlying; or if trimmed and outlying cases form a clump, which may be a small cluster.

    Notes
    -----
    Distances are weighted squared Euclidean ones, ``sum_j w_j (x_j - c_j)^2``, in all attributes;
    ``unweighted_distances_`` are with all weights 1. ``transform`` gives their square roots, as
    KMeans does.

    The weight of a feature follows its variance between clusters. Where units differ, or numbers
    are counts, amounts or intensities, the largest ones take it: put :class:`rskc.Preparer` before.

    NaN marks a missing cell. Nothing is imputed and no case is dropped: distances are over the
    features observed in both case and center, scaled up by the observed weight, and means are over
    observed cells (a center is NaN in a feature of which its cluster has none). A case of which
    nothing that has weight is observed gets label 0 and an infinite distance, is flagged as an
    outlier, and is excluded from the fit. A feature without an observed cell gets weight 0.

    Where more than ``l1_bound**2`` features tie for the largest weight, no solution treats them
    alike; the first of them get the weight, so that both norms hold.

    To use the weights for selecting features in a pipeline, those with a weight above 0::

        SelectFromModel(RobustSparseKMeans(3), threshold=1e-9)

    References
    ----------
    Kondo, Salibian-Barrera and Zamar, "A robust and sparse K-means clustering algorithm",
    arXiv:1201.6082.

    Examples
    --------
    >>> from rskc import RobustSparseKMeans
    >>> from rskc.datasets import make_simulation
    >>> outlying = make_simulation(model=1, random_state=0)
    >>> model = RobustSparseKMeans(3, trim=1 / 60, l1_bound=6.2, random_state=0).fit(outlying.data)
    >>> int(model.get_support().sum())
    49
    >>> bool(model.trimmed_[0])
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        trim: float | str = "auto",
        cells: float | str | None = "auto",
        l1_bound: float | str | None = "auto",
        n_features: int | None = None,
        feature_groups: Any = None,
        categorical: Any = None,
        ordinal: Any = None,
        reweight: bool = False,
        init: Any = "auto",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        outlier_rule: str = "both",
        outlier_cutoff: float | None = None,
        random_state: Any = None,
        n_threads: int | None = None,
        device: str | None = None,
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.trim = trim
        self.cells = cells
        self.l1_bound = l1_bound
        self.n_features = n_features
        self.feature_groups = feature_groups
        self.categorical = categorical
        self.ordinal = ordinal
        self.reweight = reweight
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.outlier_rule = outlier_rule
        self.outlier_cutoff = outlier_cutoff
        self.random_state = random_state
        self.n_threads = n_threads
        self.device = device
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Cluster the cases of X.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The data, NaN for a missing cell. float32 arrays stay float32, anything else becomes
            float64. Of a sparse matrix no dense copy is made; its zeros are values. A torch tensor
            or a CuPy array is clustered on its device, a Dask array or dataframe block by block on
            Dask's scheduler; labels, masks and distances are then of the same kind.
        y : ignored
            There for the scikit-learn interface.
        sample_weight : array-like of shape (n_samples,), default=None
            Case weights; None for equal weights. A case of weight 3 counts as three copies of
            it, and one of weight 0 does not contribute but gets a label. Multiplying all
            weights changes nothing but the sums ``objective_`` and ``inertia_``. Cases are trimmed
            until the share ``trim`` of all weight is gone, the last one in part.

        Returns
        -------
        self : RobustSparseKMeans
        """
        for warning in fitting.fit(self, X, sample_weight=sample_weight):
            warn_user(warning)
        return self

    def get_support(self, indices: bool = False) -> np.ndarray:
        """Return the features with a weight above 0, as a mask or as their numbers."""
        check_is_fitted(self, "cluster_centers_")
        support = to_numpy(self.feature_weights_) > 0
        return np.flatnonzero(support) if indices else support

    def markers_frame(
        self,
        X: Any,
        *,
        n_top: int | None = None,
        min_effect: float = LEAST_EFFECT,
        selection_probabilities: Any = None,
    ) -> Any:
        """Return a pandas.DataFrame with one row per marker, a feature that sets a cluster apart.

        A marker of a cluster is a feature with weight whose mean over the cluster is
        ``min_effect`` or more away from that over all other clusters (its effect) or from that over
        each of them (its separation), in robust standard deviations within clusters. All are over
        the cases that are neither trimmed nor outliers; see :class:`rskc.markers.MarkerEffects`.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The data of the fit.
        n_top : int or None, default=None
            Most markers of each cluster; None for all.
        min_effect : float, default=0.5
            The least effect, above or below 0, or separation; 0 for all features with weight.
        selection_probabilities : array-like of shape (n_features,), default=None
            How often each feature would be found again, as ``selection_probabilities_`` of a
            search: a column of the frame.

        Returns
        -------
        frame : pandas.DataFrame
            Sorted by cluster and then by the size of effect or separation, whichever is larger:
            ``cluster``; ``rank``, from 1 on; ``feature``; ``effect``,
            ``(mean - mean_of_others) / scale``; ``separation``, the distance to the nearest mean of
            another cluster, divided by ``scale``; ``position`` of the mean: "above" those of all
            other clusters, "below" all or "between" them; ``mean`` and ``mean_of_others``;
            ``scale``, the standard deviation within clusters; ``weight``; and, where it is given,
            ``selection_probability``. It has no rows where there is one cluster, which has no
            markers.

        Notes
        -----
        Effects describe the clusters. They are no test of whether there are any, and p-values of
        a test between clusters that the same cases made are not valid: Chen and Witten, "Selective
        inference for k-means clustering", arXiv:2203.15267.
        """
        check_is_fitted(self, "cluster_centers_")
        effects = marker_effects(self, X)
        return markers_frame(self, effects, n_top, min_effect, selection_probabilities)

    def report(self, X: Any, path: Any = None) -> Any:
        """Make an HTML page that explains the result, with charts and tables, without a network.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The data of the fit.
        path : str or path, default=None
            Where to write the page, whole or not at all; None to write nothing.

        Returns
        -------
        report : rskc.report.Report
            With ``html``, ``save`` and, in a notebook, the page itself. For true labels, searches
            and a title see :func:`rskc.report.make_report`. Needs the extra ``report``.
        """
        check_is_fitted(self, "cluster_centers_")
        # The one door upwards, by name: the page is made of models and not the other way round.
        report = import_module("rskc.report").make_report(model_to_numpy(self), X)
        if path is not None:
            report.save(path)
        return report

    @property
    def feature_importances_(self) -> np.ndarray:
        """The weights of the features, by the name that ``SelectFromModel`` looks for."""
        check_is_fitted(self, "cluster_centers_")
        return to_numpy(self.feature_weights_)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags
