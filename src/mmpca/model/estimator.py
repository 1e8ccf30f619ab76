"""Mixture of multinomial PCA as a scikit-learn clusterer."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any, Literal, NamedTuple, Self, cast

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mmpca import engine
from mmpca.backend import (
    LocalRows,
    RowBackend,
    Threads,
    column_totals,
    group_rows,
    group_sums,
    map_rows,
    one_blas_thread,
    open_threads,
    row_totals,
)
from mmpca.counts import Counts, Units, as_counts, check_unmasked, in_memory, in_units, transposition_hint
from mmpca.errors import CountsError, InterruptedSearchWarning, OverdispersionWarning, warn
from mmpca.io import CountTable
from mmpca.model import editing, explanation, files, intervals, online, outliers, prediction
from mmpca.model.checkpoints import Checkpoint
from mmpca.model.dispersion import (
    LARGE_INDEX,
    LEAST_SPLITS,
    MOST_SPLITS,
    Bursts,
    Dispersion,
    advice_on,
    burstiness,
    contenders,
    draw_bursts,
    draw_shares,
    feature_halves,
    in_counts,
    is_same_partition,
    overdispersion,
)
from mmpca.model.inspection import warn_of_misread_columns
from mmpca.model.outliers import mark_outliers
from mmpca.model.results import ResultTables, given_names, positions, row_names_of, set_names
from mmpca.model.rules import SUM_TOLERANCE, check_fit_parameters, check_topic_prior
from mmpca.model.starts import (
    SAMPLED_ROWS,
    Labels,
    Outcome,
    Start,
    StartReport,
    best_of,
    mixture_labels,
    mixture_topics,
    plan_starts,
    search_from,
    search_from_starts,
)
from mmpca.model.temperature import Temperature, n_sampled
from mmpca.monitor import Callback, History, Monitor, Progress, logger
from mmpca.topics import CountSplit, LDAFit, fit_lda, new_feature_scores, split_counts, topic_shares
from mmpca.topics.lda import TOL

Array = NDArray[np.float64]

MAX_ROUNDS = 3  # of variance factors and clusters
PRIOR_ROUNDS = 20  # of estimated priors and clusters
# "auto" compares these on a sample of the rows, from a few starts on each half of the features.
CANDIDATES: tuple[tuple[str, str | None], ...] = (("polya", None), ("multinomial", "sqrt"), ("multinomial", None))
COMPARED_ROWS, COMPARED_STARTS, COMPARED_TOL = 2000, 2, 1e-4
LEARNED = ("lda", "mixture", "tfidf")  # sources of topics that depend on the rows
# Sources of topics are compared on a sample of as many rows, or this many for each cluster if that is more.
ROWS_PER_CLUSTER = 20
CONCENTRATION_ROWS = 1000  # from which the concentration of topic shares is estimated
# The layer of a file that holds the counts, the positions of rows without counts, which were left out, and whether
# the features were named after the fit.
DATA_ATTRIBUTES = ("_layer", "_empty_rows", "_is_named_later")
# Attributes that edits of the clusters do not change.
KEPT_ATTRIBUTES = (
    "n_features_in_", "feature_names_in_", "feature_annotations_", "_words", "_sklearn_output_config", *DATA_ATTRIBUTES,
)  # fmt: skip
# Attributes that not every fit has.
OPTIONAL_ATTRIBUTES = (
    "feature_names_in_", "refit_components_", "refit_cluster_topics_", "refit_bound_", "variance_factors_",
    "mean_profile_", "concentration_", "_unit_counts", "_cluster_names", "_topic_names", "feature_annotations_",
    "_outlier_cells", "_outlier_score", "edits_", "noise_clusters_", "_cluster_sizes", "_kept_rows",
    "cluster_stability_", "row_stability_", "search_", *DATA_ATTRIBUTES,
)  # fmt: skip


class _Run(NamedTuple):
    """Seeds, threads and progress of a fit, and how carefully it learns topics."""

    topics_seed: np.random.SeedSequence
    search_seed: np.random.SeedSequence
    n_threads: int
    threads: Threads
    monitor: Monitor
    sample_size: int
    row_prior: float | Literal["auto"] = "auto"
    n_topic_starts: int | Literal["auto"] = "auto"
    topics_tol: float = TOL
    given: str = "given"  # source of topics that are an array
    known: Labels | None = None  # labels of rows that never move, -1 for others
    seeds: editing.TopicSeeds | None = None  # of the topics
    merge_split: bool = True


class _Topics(NamedTuple):
    """Topics for the search, where they come from, and what came with them."""

    beta: Array  # (K, V)
    source: str
    labels: Labels | None = None  # that belong to these topics, (N,)
    row_prior: float | Literal["auto"] = "auto"  # of LDA


class _Found(NamedTuple):
    """The result of a search, and the units of its rows."""

    best: Outcome
    outcomes: list[Outcome]
    topics: _Topics
    rows: RowBackend  # in the units of the fit
    dispersion: str
    stabilize: str | None = None
    bursts: Bursts | None = None
    is_complete: bool = True  # not if it was interrupted before factors and clusters had settled


def _mean_prior(prior: Any) -> float:
    """Return a prior of topics that are learned on other data, in any order."""
    return 1.0 if isinstance(prior, str) else float(np.mean(prior))


class MMPCA(ResultTables, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """Cluster count data through a mixture of multinomial PCA.

    Rows of counts (documents x words, sites x species, cells x genes) fall into clusters. The clusters share topics,
    which are distributions over the features, and differ in how much of each topic they contain. Given topics, a greedy
    search moves one row at a time as long as a variational bound on the likelihood rises.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters (Q in the paper).
    n_topics : int, default=5
        Number of topics (K in the paper).
    topics : {"auto", "lda", "mixture", "tfidf", "random"} or array of shape (n_topics, n_features), default="auto"
        Topics used by the search (beta in the paper): learned from the rows by latent Dirichlet allocation ("lda", as
        published); from the clusters of a mixture without topics, which often suits texts better, and which starts at
        random ("mixture") or from k-means on tf-idf ("tfidf"); the one of these three whose clusters best
        predict held-out features ("auto", see docs/topics.md; always "lda" with "polya" and "vbem"); drawn at random;
        or given. Rows of an array must sum to one.
    topic_prior : float, array of shape (n_topics,) or "estimate", default=1.0
        Dirichlet prior of the topic proportions of clusters (alpha in the paper): the same for every topic, one value
        for each, or ``"estimate"``, which maximizes the bound over it in turn with the search. An estimate needs many
        clusters: each of them counts as one observation.
    start : {"auto", "random", "kmeans", "anneal", "mixture"} or array of shape (n_samples,), default="auto"
        Labels from which the search starts: a balanced random partition, k-means on the rows in topic space, annealed
        soft assignments, all of these in turn ("auto"; k-means alone for large data), the clusters of a mixture without
        topics (which also come first in "auto" if the topics are theirs), or given labels.
    n_init : int or "auto", default="auto"
        Number of starts; the result with the best bound is kept. "auto" makes at most 10 starts for up to 2,000 rows,
        6 for up to 20,000 and 3 for more, and stops when 3, 2 or 1 of them in a row do not improve the bound. With
        large tables (clusters x topics x features above two million), it makes one start, from the best of three
        k-means partitions. Given labels are a single start.
    algorithm : {"greedy", "exact", "cvem", "vbem"}, default="greedy"
        "greedy" screens moves by second-order gains, decides close calls exactly, and merges and splits clusters where
        that raises the bound. "exact" evaluates every move of every row, as published. "cvem" reassigns all rows with
        the parameters held fixed, then updates the parameters. "vbem" gives every row a probability for each cluster,
        updates the topics as well (the model of Yu et al., 2005), and labels each row with its most probable cluster.
    dispersion : {"auto", "multinomial", "shares", "polya"}, default="auto"
        How rows vary within a cluster. "multinomial": by chance alone, as published. "shares": each row mixes the
        topics a little differently from its cluster. "polya": the counts of a feature come in bursts, with a variance
        factor for each feature; for abundances and sequencing reads. "auto" fits "multinomial" and keeps it unless
        `overdispersion_` is above 3; then it chooses between it, "polya" and ``stabilize="sqrt"`` by how well clusters
        found in one half of the features agree with those of the other half (docs/overdispersion.md). With topics that
        are given or drawn at random, and with ``stabilize="sqrt"``, "auto" is "multinomial".
    temperature : float or "auto", default="auto"
        Number by which `predict_proba` and `explain` divide log-odds, because real counts carry less evidence than
        independent ones and clusters are uncertain. "auto" estimates it from the fitted rows (docs/overdispersion.md);
        1 gives the probabilities of the published model. Labels do not depend on it.
    stabilize : {None, "sqrt"}, default=None
        "sqrt" fits and predicts rounded square roots of the counts, an older remedy for overdispersed data.
    max_epochs : int, default=200
        Maximum number of epochs of the search, each of which visits every row once; 0 evaluates the start.
    tol : float, default=1e-10
        A move must raise the bound by more than this share of its magnitude. With "vbem", this applies to a whole
        epoch, with a share of at least 1e-7.
    refit_topics : bool or "moves", default=False
        If True, also re-estimate topics and topic proportions on the final clusters, with the labels held fixed: the
        last step of the paper, kept in `refit_components_` and `refit_cluster_topics_`. It describes the fitted rows
        better and new rows worse (docs/topics.md), so predictions do not use it. "vbem" updates its topics anyway and
        ignores this. With ``"moves"``, which needs ``algorithm="exact"``, topics are re-estimated after every move of a
        row, and `components_` are those at the end (docs/topics.md).
    n_jobs : int or None, default=None
        Number of threads, shared first between the starts and then between the rows of a block; -1 uses all cores. The
        result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the topics, the starts and the order in which rows are visited.
    verbose : int or None, default=None
        None shows progress if a fit takes more than two seconds, on a terminal or in a notebook. 0 shows nothing, 1
        logs each start to the logger "mmpca", 2 each epoch as well; to standard error, unless logging is configured.

    Attributes
    ----------
    labels_ : ndarray of int32, shape (n_samples,)
        Cluster of each row.
    weights_ : ndarray of shape (n_clusters,)
        Share of the rows in each cluster (pi); with "vbem", of the soft assignments.
    cluster_counts_ : ndarray of shape (n_clusters, n_features)
        Sums of the rows of each cluster, in original counts.
    cluster_row_counts_ : ndarray of int32, shape (n_clusters, n_features)
        Number of rows of each cluster in which each feature occurs.
    components_ : ndarray of shape (n_topics, n_features)
        Topics (beta): those of the search, or of the soft assignments with "vbem". Features that never occur have
        probability zero, unless given `topics` say otherwise.
    cluster_topics_ : ndarray of shape (n_clusters, n_topics)
        Expected topic proportions of each cluster (theta).
    cluster_topic_params_ : ndarray of shape (n_clusters, n_topics)
        Parameters of their Dirichlet posteriors (gamma).
    smoothing_ : float
        Counts that predictions add to each feature of each topic, so that a feature found in few rows does not decide
        about new ones; chosen by leaving each fitted row out in turn. 0 for `topics` that are given or drawn at random.
    bound_ : float
        Bound of the labels under `components_`. With "vbem", the bound of the soft assignments, which
        is not comparable with that of labels.
    icl_ : float
        The paper's criterion for choosing n_clusters and n_topics, larger is better; it belongs to `bound_`.
    refit_components_ : ndarray of shape (n_topics, n_features)
        Topics re-estimated on the final clusters; only with `refit_topics`.
    refit_cluster_topics_ : ndarray of shape (n_clusters, n_topics)
        Topic shares of the clusters that belong to them; only with `refit_topics`.
    refit_bound_ : float
        Bound under both, at least `bound_`; only with `refit_topics`.
    bound_history_ : ndarray of shape (n_epochs_ + 1,)
        Bound at the best start, then after each of its epochs; it never decreases.
    n_epochs_ : int
        Number of epochs of the best start.
    converged_ : bool
        Whether the last epoch changed nothing. For "greedy" and "exact", no single move raises the bound; for "cvem",
        no row fits another cluster better with the parameters held fixed; for "vbem", the bound rises by less than
        `tol`.
    starts_ : list of StartReport
        Kind, seed, bound, n_epochs, converged and seconds of each start.
    outlier_score_ : ndarray of shape (n_samples,)
        How well each row is explained by its cluster: a tail probability, small for outliers (:meth:`outlier_scores`).
        It is computed when first needed; until then, the model keeps a reference to the rows.
    overdispersion_ : float
        Variance of the counts within clusters as a multiple of what the model expects, about 1 if the model holds. With
        "polya" the model expects as much as the factors say, and with ``stabilize="sqrt"`` it is about the roots. If it
        is large, see `dispersion`; it is hardly affected by topic proportions that vary between rows.
    cluster_overdispersion_ : ndarray of shape (n_clusters,)
        The same for each cluster.
    dispersion_ : {"multinomial", "shares", "polya"}
        The `dispersion` of the fit, or what "auto" chose; predictions use it even if the parameter is changed later.
    variance_factors_ : ndarray of shape (n_features,)
        With "polya", the variance of each feature within clusters as a multiple of that of a multinomial, at least 1.
    mean_profile_ : ndarray of shape (n_features,)
        With "polya", the mean profile of the clusters at which counts are weighed.
    concentration_ : float
        With "shares" and "polya", the concentration c of the rows' topic proportions, which are Dirichlet(c theta_q) in
        cluster q: the larger it is, the more similar the rows; infinite if their proportions do not vary. All clusters
        share it. Predictions use it; the search does not.
    topics_source_ : {"lda", "mixture", "tfidf", "random", "given"}
        Where the topics of the search come from.
    temperature_ : float
        Number by which log-odds are divided, at least 1 if it was estimated. It is estimated when probabilities are
        first needed or the model is saved, which can take longer than fitting a small data set.
    topic_prior_ : float or array of shape (n_topics,)
        The `topic_prior` of the fit, or its estimate.
    edits_ : list of Edit
        Edits of the clusters since the fit, if there are any (:meth:`edit`).
    noise_clusters_ : ndarray of int32
        Clusters that were marked as noise, if there are any.
    stabilize_ : {None, "sqrt"}
        The `stabilize` of the fit, or what `dispersion="auto"` chose.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had them.
    feature_annotations_ : dict of str to ndarray of shape (n_features_in_,)
        Descriptions of the features, such as their taxonomy, if X is a table that has them.

    References
    ----------
    Jouvin, Latouche, Bouveyron, Bataillon, Livartowski: Greedy clustering of count data through a mixture of
    multinomial PCA. Computational Statistics, 2020.

    Examples
    --------
    >>> from mmpca import MMPCA
    >>> from mmpca.simulate import paper_design
    >>> data = paper_design(n_samples=100, random_state=0)
    >>> model = MMPCA(n_clusters=6, n_topics=4, n_init=2, random_state=0).fit(data.X)
    >>> model.cluster_topics_.shape
    (6, 4)
    >>> bool(model.converged_)
    True
    """

    labels_: NDArray[np.int32]
    weights_: Array
    cluster_counts_: Array
    cluster_row_counts_: NDArray[np.int32]
    components_: Array
    cluster_topics_: Array
    cluster_topic_params_: Array
    smoothing_: float
    bound_: float
    icl_: float
    refit_components_: Array
    refit_cluster_topics_: Array
    refit_bound_: float
    bound_history_: Array
    n_epochs_: int
    converged_: bool
    starts_: list[StartReport]
    overdispersion_: float
    cluster_overdispersion_: Array
    dispersion_: str
    variance_factors_: Array
    mean_profile_: Array
    concentration_: float
    topics_source_: str
    topic_prior_: float | Array
    stabilize_: str | None
    edits_: list[editing.Edit]
    noise_clusters_: NDArray[np.int32]
    cluster_stability_: Array
    row_stability_: Array
    search_: dict[str, Any]
    _mean_length: float
    _outlier_knots: Array | outliers.FittedSample
    _fitted_rows: Counts | None = None
    _kept_rows: online.Kept
    _cluster_sizes: NDArray[np.int64]
    _unit_counts: Array
    _temperature: float | Temperature

    def __init__(
        self,
        n_clusters: int = 8,
        n_topics: int = 5,
        *,
        topics: str | ArrayLike = "auto",
        topic_prior: float | ArrayLike | Literal["estimate"] = 1.0,
        start: str | ArrayLike = "auto",
        n_init: int | str = "auto",
        algorithm: engine.Algorithm = "greedy",
        dispersion: str = "auto",
        temperature: float | str = "auto",
        stabilize: str | None = None,
        max_epochs: int = 200,
        tol: float = 1e-10,
        refit_topics: bool | Literal["moves"] = False,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_topics = n_topics
        self.topics = topics
        self.topic_prior = topic_prior
        self.start = start
        self.n_init = n_init
        self.algorithm = algorithm
        self.dispersion = dispersion
        self.temperature = temperature
        self.stabilize = stabilize
        self.max_epochs = max_epochs
        self.tol = tol
        self.refit_topics = refit_topics
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # --- fitting ------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: object = None,
        *,
        labels: ArrayLike | None = None,
        seed_topics: Mapping[str, Iterable[Any]] | None = None,
        callback: Callback | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Cluster the rows of a count matrix.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or CountTable of shape (n_samples, n_features)
            Nonnegative whole numbers; no row may be empty. The table that :func:`mmpca.io.read_counts` returns names
            the features.
        y : ignored
        labels : array of int or str, shape (n_samples,), optional
            Known clusters of some rows, by number or by name; all others are -1, None or NaN or, among names, "". Known
            rows never move. The search goes on from the best clusters found without labels, and starts again at the
            means of the known rows. Names become the names of the clusters. A pandas Series is matched to the rows by
            name if X has row names.
        seed_topics : mapping of str to words, optional
            Words that should make up some of the topics, such as ``{"sport": ["match", "coach"]}``: names of features,
            or numbers of columns. These topics come first and have these names; the others are free. Requires topics
            learned by LDA.
        callback : callable, optional
            Called repeatedly with a :class:`mmpca.monitor.Progress`. If it returns a true value, the fit stops as
            with Ctrl-C: the best state found so far is kept, with a warning.
        checkpoint : path, optional
            A file for the topics and, in a greedy search over more than 50,000 rows, for the labels after each epoch.
            If the file exists, the fit resumes from it and ends at a maximum of the bound, though not necessarily the
            one that an uninterrupted fit finds. A file from other data or parameters raises an error.

        Returns
        -------
        self

        Warns
        -----
        SuspiciousCountsWarning
            If a column or a row looks like an identifier, another measurement or a total, by its values or by its name
            and its values.
        OverdispersionWarning
            If counts vary much more within clusters than the model expects.
        InterruptedSearchWarning
            If the fit was interrupted.
        """
        # A copy checks the data, so that an error leaves this model unchanged.
        checked = type(self)(**self.get_params(deep=False))
        rows = checked.checked_counts(X)
        knowledge = editing.check_knowledge(
            self,
            None if labels is None else editing.in_order_of(labels, X),
            seed_topics,
            shape=(rows.n_rows, rows.n_features),
            feature_names=getattr(checked, "feature_names_in_", None),
            checkpoint=checkpoint,
        )
        self.fit_rows(
            LocalRows(rows),
            attributes=vars(checked),
            callback=callback,
            checkpoint=checkpoint,
            **knowledge.arguments(),
        )
        if labels is not None or seed_topics is not None:
            knowledge.name(self)
        return self

    def partial_fit(self, X: Any, y: object = None) -> Self:
        """Update the model with a batch of rows, in memory that does not grow with the number of batches.

        The first 10,000 rows are kept; the model is refitted to them whenever their number has doubled, and one last
        time when there are enough. From then on, rows are assigned to clusters, whose sums, sizes and topic shares are
        updated; topics change slowly; and rows that no cluster explains form new clusters, so `n_clusters` may grow
        (:mod:`mmpca.model.online`). After :meth:`fit`, or for a loaded model, updates begin immediately.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The next rows; no row may be empty. The first batch needs at least as many rows as there are clusters.
        y : ignored

        Returns
        -------
        self
            `labels_` holds the labels of this batch; :meth:`predict` labels earlier rows.

        Examples
        --------
        >>> from mmpca import MMPCA
        >>> from mmpca.simulate import paper_design
        >>> X = paper_design(n_samples=300, random_state=0).X
        >>> model = MMPCA(6, 4, n_init=1, random_state=0)
        >>> for first in range(0, 300, 100):
        ...     model = model.partial_fit(X[first : first + 100])
        >>> int(model.cluster_sizes.sum()), model.labels_.shape, model.predict(X).shape
        (300, (100,), (300,))
        """
        if self.algorithm == "vbem":
            raise ValueError('partial_fit needs hard clusters, but algorithm is "vbem".')
        is_first = not hasattr(self, "weights_")
        checked = type(self)(**self.get_params(deep=False)) if is_first else self
        counts = checked.checked_counts(X) if is_first else self._counts(X, reset=False)
        if not np.diff(counts.indptr).all():
            raise CountsError(f"X must not have empty rows, but row {np.diff(counts.indptr).argmin()} has no counts.")
        names = ("n_features_in_", "feature_names_in_")
        online.partial_fit(self, counts, {name: vars(checked)[name] for name in names if name in vars(checked)})
        return self

    def fit_rows(
        self,
        backend: RowBackend,
        *,
        attributes: Mapping[str, Any],
        callback: Callback | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        sample_size: int = SAMPLED_ROWS,
        bursts: Bursts | None = None,
        topics_source: str = "given",
        known: Labels | None = None,
        topic_seeds: editing.TopicSeeds | None = None,
        resumed: editing.Resumed | None = None,
    ) -> Self:
        """Cluster rows held by a backend; used by :func:`mmpca.distributed.fit`.

        Parameters
        ----------
        backend : RowBackend
            Valid counts.
        attributes : mapping of str to value
            Fitted attributes that come from the data: `n_features_in_`, `feature_names_in_`.
        callback, checkpoint
            As in :meth:`fit`.
        sample_size : int
            With more rows than this, starts are tried on a sample of this size.
        bursts : Bursts, optional
            Variance factors for ``dispersion="polya"``, which are otherwise estimated.
        topics_source : str
            Source of the topics if `topics` is an array; if they were learned from these rows, predictions smooth them.
        known : array of int32, shape (n_samples,), optional
            Labels of rows that never move, -1 for others.
        topic_seeds : TopicSeeds, optional
            Words that anchor topics.
        resumed : Resumed, optional
            Topics and labels from which the search continues, without merges and splits of clusters.

        Returns
        -------
        self
        """
        self._check_sizes(backend)
        seeds = np.random.SeedSequence(check_random_state(self.random_state).randint(2**31)).spawn(3)
        saved: Checkpoint | editing.Resumed | None = resumed
        if checkpoint is not None:
            saved = Checkpoint.of_fit(checkpoint, self.get_params(deep=False), backend)
        keep = saved.save_labels if isinstance(saved, Checkpoint) else None
        monitor = Monitor(callback, verbose=self.verbose, checkpoint=keep)
        n_threads, every = effective_n_jobs(self.n_jobs), np.arange(backend.n_rows)
        with one_blas_thread(), open_threads(n_threads) as threads:
            backend = backend.with_threads(threads)
            # Topics and labels, in the units that the dispersion asks for.
            run = _Run(seeds[0], seeds[1], n_threads, threads, monitor, sample_size, given=topics_source)
            run = run._replace(known=known, seeds=topic_seeds, merge_split=resumed is None)
            found = self._search_in_units(backend, run, saved, bursts)
            best, rows = found.best, found.rows
            counts = backend.map_reduce(group_sums, every, best.labels, shared=(self.n_clusters,))  # (Q, V)
            n_rows = backend.map_reduce(group_rows, every, best.labels, shared=(self.n_clusters,))  # (Q, V)
            sums = counts if rows is backend else rows.map_reduce(group_sums, every, best.labels, shared=(len(counts),))
            # Predictions: topics that the search has learned are smoothed for new rows.
            smoothing = 0.0
            if found.topics.source in LEARNED or self.algorithm == "vbem":
                some = np.linspace(0, backend.n_rows - 1, min(backend.n_rows, prediction.SMOOTHING_ROWS)).astype(int)
                fitted = (best.labels[some], best.beta, best.gamma / best.gamma.sum(axis=1, keepdims=True), sums)
                smoothing = prediction.choose_smoothing(rows.take(some), *fitted)
            # How much the topic shares of rows vary within clusters, in the units of the search.
            concentration = None
            if found.dispersion != "multinomial":
                monitor.begin("shares", "measuring how much topic shares vary")
                concentration = self._concentration(rows, best, sums, smoothing)
            # Refit, if asked for: topics and topic shares that maximize the bound under these labels.
            is_refit = self.refit_topics is True and self.algorithm != "vbem"
            refit = self._refit(best, sums, threads, monitor) if is_refit else {}
            # Fit of the model: the variance of rows around the mean profile of their cluster, against what it expects.
            monitor.begin("dispersion", "measuring overdispersion")
            dispersion = self._overdispersion(found, backend, counts, sums)
        # Only now does the model change: an error above leaves an earlier fit as it was.
        for name in OPTIONAL_ATTRIBUTES:
            self.__dict__.pop(name, None)  # of an earlier fit
        self.__dict__.update({**attributes, **refit})
        self.components_, self.cluster_topic_params_, self.cluster_counts_ = best.beta, best.gamma, counts
        self.cluster_row_counts_ = n_rows.astype(np.int32)
        self.cluster_topics_, self.smoothing_ = best.gamma / best.gamma.sum(axis=1, keepdims=True), smoothing
        self.overdispersion_, self.cluster_overdispersion_ = dispersion
        self.dispersion_, self.stabilize_, self.topics_source_ = found.dispersion, found.stabilize, found.topics.source
        if found.bursts is not None:
            self.variance_factors_, self.mean_profile_ = found.bursts
        if concentration is not None:
            self.concentration_ = concentration
        if sums is not counts:
            self._unit_counts = sums
        self._set_search_results(best, found.outcomes)
        self.converged_ = self.converged_ and found.is_complete
        # Temperature and outliers: estimated from some of the rows, when they are first needed.
        some = np.linspace(0, rows.n_rows - 1, n_sampled(rows.n_rows, len(counts))).astype(int)
        sample, lengths = rows.take(some), map_rows(backend if found.bursts is not None else rows, row_totals, some)
        if isinstance(self.temperature, str):
            self._temperature = Temperature(sample, best.labels[some], self.mixture(), seeds[2])
        else:
            self._temperature = float(self.temperature)
        self._outlier_knots = outliers.FittedSample(sample, lengths, best.labels[some])
        self._fitted_rows = backend.rows if isinstance(backend, LocalRows) else None
        monitor.end()
        if monitor.is_stopped:
            warn(
                f"The fit was interrupted after {len(found.outcomes)} starts had begun. The model holds the best state "
                "found so far; converged_ says whether it is a maximum.",
                InterruptedSearchWarning,
            )
        if (message := advice_on(self)) is not None:
            warn(message, OverdispersionWarning)
        return self

    def _search_in_units(
        self, backend: RowBackend, run: _Run, saved: Checkpoint | editing.Resumed | None, bursts: Bursts | None
    ) -> _Found:
        """Find topics and labels in the units of `dispersion` and `stabilize`, which "auto" chooses."""
        if self.dispersion == "polya":
            return self._search_bursts(backend, run, saved, bursts)
        if self.stabilize == "sqrt":
            return self._search_roots(backend, run, saved)
        dispersion = "multinomial" if self.dispersion == "auto" else self.dispersion
        found = _Found(*self._search(backend, run, saved), backend, dispersion)
        if self.dispersion != "auto" or found.topics.source not in LEARNED or run.monitor.is_stopped:
            return found
        run.monitor.checkpoint = None  # only the first search is saved
        sums = backend.map_reduce(
            group_sums, np.arange(backend.n_rows), found.best.labels, shared=(self.n_clusters,)
        )  # (Q, V)
        if not self._overdispersion(found, backend, sums, sums).overall > LARGE_INDEX:
            return found
        run.monitor.begin("dispersion", "choosing the dispersion")
        dispersion, stabilize = self._most_reproducible(backend, run)
        if dispersion == "polya":
            other = self._search_bursts(backend, run, None, None)
        elif stabilize == "sqrt":
            other = self._search_roots(backend, run, None)
        else:
            return found
        return found if run.monitor.is_stopped else other

    def _search_roots(self, backend: RowBackend, run: _Run, saved: Checkpoint | editing.Resumed | None) -> _Found:
        """Find topics and labels of square roots."""
        rows = backend.with_counts(in_units, Units("sqrt"))
        return _Found(
            *self._search(rows, run, saved), rows, "shares" if self.dispersion == "shares" else "multinomial", "sqrt"
        )

    def _search_bursts(
        self, backend: RowBackend, run: _Run, saved: Checkpoint | editing.Resumed | None, bursts: Bursts | None
    ) -> _Found:
        """Find topics and labels of effective counts, first with the factors of all rows, then of the last clusters."""
        found: _Found | None = None
        labels, n_clusters = np.zeros(backend.n_rows, dtype=np.int32), 1
        for number in range(MAX_ROUNDS):
            factors = burstiness(backend, labels, n_clusters) if bursts is None else bursts
            rows = backend.with_counts(in_units, factors.units)
            if found is not None:
                run = run._replace(row_prior=found.topics.row_prior)
            search = self._search(rows, run, saved if number == 0 else None, can_compare=False)
            run.monitor.checkpoint = None  # only the first search is saved
            if found is not None and run.monitor.is_stopped:
                break
            found = _Found(*search, rows, "polya", None, factors)
            if bursts is not None or run.monitor.is_stopped or is_same_partition(found.best.labels, labels):
                break
            labels, n_clusters = found.best.labels, self.n_clusters
        assert found is not None
        return found._replace(is_complete=not run.monitor.is_stopped)

    def _search(
        self,
        rows: RowBackend,
        run: _Run,
        saved: Checkpoint | editing.Resumed | None = None,
        *,
        can_compare: bool = True,
    ) -> tuple[Outcome, list[Outcome], _Topics]:
        """Learn topics, then find the labels that maximize the bound under them.

        Return the best search, all searches and the topics, whose source "auto" chooses if sources can be compared.
        """
        shape, sizes = (rows.n_rows, rows.n_features), {"n_clusters": self.n_clusters, "n_topics": self.n_topics}
        starts, patience = plan_starts(self.start, self.n_init, **sizes, shape=shape, seed=run.search_seed)
        options = engine.SearchOptions(
            n_clusters=self.n_clusters,
            alpha=check_topic_prior(self.topic_prior, self.n_topics),
            algorithm=self.algorithm,
            max_epochs=self.max_epochs,
            tol=float(self.tol),
            patience=patience,
            known=run.known,
            refits_topics=isinstance(self.refit_topics, str),
            merge_split=run.merge_split,
        )
        # Topics: beta, learned from the rows, given, or from an interrupted fit.
        topics = self._learn_topics(rows, run, saved, can_compare=can_compare)
        if saved is not None and saved.labels is not None:
            starts = [Start("checkpoint", starts[0].seed, saved.labels)]
        elif topics.labels is not None and isinstance(self.start, str) and self.start in ("auto", "mixture"):
            # Under their own topics, these labels are nearly a maximum that other starts reach as well.
            others = [] if isinstance(self.n_init, str) else starts[1:]
            starts = [Start("mixture", starts[0].seed, topics.labels), *others]
        # Search: labels that maximize the bound under these topics, from all starts.
        search = partial(
            search_from_starts,
            rows,
            topics.beta,
            seed=int(run.search_seed.generate_state(1)[0]),
            n_threads=run.n_threads,
            monitor=run.monitor,
            sample_size=run.sample_size,
        )
        is_free = run.known is not None and isinstance(self.start, str) and (saved is None or saved.labels is None)
        outcomes = search(starts, options._replace(known=None) if is_free else options)
        # Bounds of starts on a sample are not comparable with the bound of all rows, which comes last.
        best = best_of([outcome for outcome in outcomes if len(outcome.labels) == rows.n_rows])
        if is_free:
            # From the best clusters found without known labels, and from the means of the known rows.
            seed, known = starts[0].seed, list[list[Outcome]]()
            for start in (Start("known", seed, best.labels), Start("kmeans", seed, is_seeded=True)):
                known.append(search([start], options))
                if run.monitor.is_stopped:
                    break
            outcomes += [outcome for some in known for outcome in some]
            best = self._better_for_known(rows, run.known, [some[-1] for some in known])
        if isinstance(self.topic_prior, str):
            outcomes += self._estimate_prior(rows, best, options, run)
            best = outcomes[-1]
        return best, outcomes, topics

    def _estimate_prior(
        self, rows: RowBackend, best: Outcome, options: engine.SearchOptions, run: _Run
    ) -> list[Outcome]:
        """Estimate the prior and search on from the labels under it, in turn; return the searches, which only gain."""
        outcomes, every = [best], np.arange(rows.n_rows)
        for number in range(PRIOR_ROUNDS):
            best = outcomes[-1]
            run.monitor.begin("prior", f"estimating the topic prior, round {number + 1}")
            if run.monitor.is_stopped:
                break
            sums = rows.map_reduce(group_sums, every, best.labels, shared=(self.n_clusters,))  # (Q, V)
            sizes = np.bincount(best.labels, minlength=self.n_clusters)
            state = engine.from_sums(sums, sizes, beta=best.beta, alpha=best.alpha, gamma=best.gamma)
            alpha, gamma, _ = engine.estimate_prior(state)
            history = History(run.monitor, start=0, n_rows=rows.n_rows)
            start, own = Start("prior", best.start.seed, best.labels, gamma), options._replace(alpha=alpha)
            outcome = search_from(rows, best.beta, start, own, n_threads=run.n_threads, history=history)
            if outcome.bound < best.bound:  # under a prior below one, VE-steps may end in another maximum
                break
            outcomes.append(outcome)
            if np.array_equal(outcome.labels, best.labels):
                break
        return outcomes[1:] or [best]

    def _better_for_known(self, rows: RowBackend, known: Labels | None, candidates: list[Outcome]) -> Outcome:
        """Return the first of two searches unless the second one agrees with clearly more of the known labels.

        Each known row is assigned without its own contribution. A comparison of bounds would favor clusters that fit
        the rows a little better and have less to do with the labels.
        """
        assert known is not None
        given = np.flatnonzero(known >= 0)
        some, right = rows.take(given), list[NDArray[np.bool_]]()
        for found in candidates:
            theta = found.gamma / found.gamma.sum(axis=1, keepdims=True)
            sizes = np.bincount(found.labels, minlength=len(theta)).astype(np.float64)
            mixture = prediction.ClusterMixture(
                found.beta,
                theta,
                found.weights,
                topic_params=found.gamma,
                sizes=sizes,
                topic_prior=found.alpha,
            )
            joint = prediction.joint_log_likelihood(some, mixture, found.labels[given])
            right.append(joint.argmax(axis=1) == known[given])
        lead = right[-1].astype(int) - right[0]
        return candidates[-1] if lead.sum() > np.sqrt(np.abs(lead).sum()) else candidates[0]

    def _learn_topics(
        self, rows: RowBackend, run: _Run, saved: Checkpoint | editing.Resumed | None, *, can_compare: bool
    ) -> _Topics:
        """Return the topics that the search uses: those of a checkpoint, or new ones, which are saved there."""
        source, lda = self.topics if isinstance(self.topics, str) else run.given, None
        if saved is not None and saved.beta is not None:
            return _Topics(saved.beta, saved.source or source)
        if run.seeds is not None and isinstance(self.topics, str):
            source = "seeds"
        elif source == "auto":
            can_compare &= self.algorithm != "vbem" and min(self.n_clusters, self.n_topics) > 1
            source, lda = self._compare_sources(rows, run) if can_compare else ("lda", None)
        rng, every = np.random.default_rng(run.topics_seed), np.arange(rows.n_rows)
        if not isinstance(self.topics, str):
            topics = _Topics(check_topics(self.topics, self.n_topics, rows.map_reduce(column_totals, every)), source)
        elif run.seeds is not None:
            some, totals = np.sort(rng.permutation(every)[:SAMPLED_ROWS]), rows.map_reduce(column_totals, every)
            beta = editing.seeded_topics(rows.take(some), totals, self.n_topics, run.seeds, rng, run.monitor)
            topics = _Topics(beta, "lda")
        elif source == "lda":
            lda = self._fit_lda(rows, run) if lda is None else lda
            topics = _Topics(lda.beta, source, row_prior=lda.row_prior)
        elif source in ("mixture", "tfidf"):
            run.monitor.begin("topics", "topics: clustering without topics")
            is_present = rows.map_reduce(column_totals, every) > 0  # (V,)
            some, sizes = np.sort(rng.permutation(every)[:SAMPLED_ROWS]), (self.n_topics, self.n_clusters)
            own = partial(mixture_topics, from_tfidf=source == "tfidf")
            beta, labels = rows.apply(own, some, is_present, *sizes, rng, run.monitor)
            is_of_all = labels is not None and len(labels) == rows.n_rows
            topics = _Topics(beta, source, labels if is_of_all else None)
        else:
            beta, is_present = np.zeros((self.n_topics, rows.n_features)), rows.map_reduce(column_totals, every) > 0
            beta[:, is_present] = rng.dirichlet(np.ones(is_present.sum()), self.n_topics)
            topics = _Topics(beta, source)
        if run.monitor.is_stopped:  # a later fit must not resume from unfinished topics
            run.monitor.checkpoint = None
        elif isinstance(saved, Checkpoint):
            saved.save_topics(topics.beta, topics.source)
        return topics

    def _fit_lda(self, rows: RowBackend, run: _Run) -> LDAFit:
        """Learn topics by latent Dirichlet allocation."""
        rng = np.random.default_rng(run.topics_seed)
        careful: dict[str, Any] = {"row_prior": run.row_prior, "n_init": run.n_topic_starts, "tol": run.topics_tol}
        return fit_lda(rows, self.n_topics, rng=rng, n_threads=run.n_threads, monitor=run.monitor, **careful)

    def _compare_sources(self, rows: RowBackend, run: _Run) -> tuple[str, LDAFit | None]:
        """Return the best source of topics, and the fit of LDA if it was needed to compare them.

        The sources are compared on a sample of the rows, in a fixed order; each must lead the best one before it by
        more than the standard error of the difference.
        """
        rng = np.random.default_rng([*run.topics_seed.generate_state(2), 1])
        n_compared = max(COMPARED_ROWS, ROWS_PER_CLUSTER * self.n_clusters)
        topics, lda, split = cast(Any, "lda"), None, None
        if rows.n_rows <= n_compared:
            lda = self._fit_lda(rows, run)
            if lda.choice is not None:  # it fitted topics to most counts of all rows, and held out the others
                split, topics = lda.choice.split, np.ascontiguousarray(lda.choice.mixture.beta_rows.T)
        run.monitor.begin("topics", "topics: comparing sources")
        if split is None:
            split = split_counts(rows.take(np.sort(rng.permutation(rows.n_rows)[:n_compared])), rng)
        filled = np.flatnonzero(np.diff(split.kept.indptr))
        split = CountSplit(split.kept.take(filled), split.held_out.take(filled))
        if len(filled) <= max(self.n_clusters, self.n_topics):
            return "lda", lda

        def pass_on(_: Progress) -> bool:
            """Report no stages of the search on the sample, but obey a request to stop."""
            run.monitor.step(0)
            return run.monitor.is_stopped

        own: dict[str, Any] = {
            "max_epochs": self.max_epochs,
            "tol": self.tol,
            "topic_prior": _mean_prior(self.topic_prior),
        }
        model, inner = MMPCA(self.n_clusters, self.n_topics, topics=topics, n_init=1, **own), Monitor(pass_on)
        labels = {
            "lda": model._search(LocalRows(split.kept, run.threads), run._replace(monitor=inner, known=None))[0].labels
        }
        for source in ("mixture", "tfidf"):  # a search hardly changes their labels
            if inner.is_stopped:
                run.monitor.stop()
                return "lda", lda
            labels[source] = mixture_labels(split.kept, self.n_clusters, rng, inner, from_tfidf=source == "tfidf")
        scores = {source: new_feature_scores(split, found, self.n_clusters) for source, found in labels.items()}
        best = "lda"
        for source in ("mixture", "tfidf"):
            lead = scores[source] - scores[best]  # of each row
            is_better = lead.sum() > np.sqrt(len(lead)) * lead.std()
            if is_better and (best, source) == ("mixture", "tfidf"):
                is_better = self._is_as_reproducible(split.kept, rng, inner)
            best = source if is_better else best
        return best, lda

    def _is_as_reproducible(self, rows: Counts, rng: np.random.Generator, monitor: Monitor) -> bool:
        """Return True unless clusters from tf-idf agree clearly less between halves of the features than others.

        Starts from tf-idf may divide a large cluster in ways that predict well but that other features do not confirm.
        """
        from sklearn.metrics import adjusted_rand_score  # not needed otherwise

        lags = list[float]()
        while len(lags) < LEAST_SPLITS and not monitor.is_stopped:
            halves = feature_halves(rows, rng)
            if halves is None or halves[0].n_rows <= self.n_clusters:
                return True
            random, tfidf = (
                adjusted_rand_score(*(
                    mixture_labels(half, self.n_clusters, rng, monitor, from_tfidf=from_tfidf, n_chains=1)
                    for half in halves
                ))
                for from_tfidf in (False, True)
            )  # fmt: skip
            lags.append(random - tfidf)
        return len(lags) < 2 or bool(np.mean(lags) <= 2.0 * np.std(lags, ddof=1) / np.sqrt(len(lags)))

    def _most_reproducible(self, backend: RowBackend, run: _Run) -> tuple[str, str | None]:
        """Return the dispersion and stabilization whose clusters agree best between two halves of the features."""
        from sklearn.metrics import adjusted_rand_score  # not needed otherwise

        rng, run = np.random.default_rng(run.topics_seed), run._replace(known=None, seeds=None)
        rows = backend.take(np.sort(rng.permutation(backend.n_rows)[:COMPARED_ROWS]))
        run = run._replace(n_topic_starts=COMPARED_STARTS, topics_tol=COMPARED_TOL)
        priors: dict[tuple[str, str | None], Any] = {}
        own: dict[str, Any] = {
            "max_epochs": self.max_epochs,
            "tol": self.tol,
            "topic_prior": _mean_prior(self.topic_prior),
        }
        own |= {"n_init": COMPARED_STARTS, "topics": "lda"}

        def labels_of(half: Counts, candidate: tuple[str, str | None]) -> NDArray[np.int32]:
            dispersion, stabilize = candidate
            n_topics = min(self.n_topics, half.n_features)
            model = MMPCA(self.n_clusters, n_topics, dispersion=dispersion, stabilize=stabilize, **own)
            careful = run._replace(row_prior=priors.get(candidate, "auto"))  # the first half shows the prior to use
            found = model._search_in_units(LocalRows(half, run.threads), careful, None, None)
            priors[candidate] = found.topics.row_prior
            return found.best.labels

        scores, left = np.empty((0, len(CANDIDATES))), np.arange(len(CANDIDATES))
        while not run.monitor.is_stopped and len(left) > 1 and len(scores) < MOST_SPLITS:
            halves = feature_halves(rows, rng)
            if halves is None or halves[0].n_rows <= self.n_clusters:
                break
            agreement = np.full(len(CANDIDATES), -np.inf)
            for c in left:
                agreement[c] = adjusted_rand_score(*(labels_of(half, CANDIDATES[c]) for half in halves))
            scores = np.vstack([scores, agreement])
            left = left[contenders(scores[:, left])]
        if not len(scores):  # too few features or rows to compare anything
            return "multinomial", None
        return CANDIDATES[int(scores.sum(axis=0).argmax())]  # the first, if there are ties

    def _concentration(self, rows: RowBackend, best: Outcome, sums: Array, smoothing: float) -> float:
        """Return the concentration of the rows' topic shares, from some of the rows."""
        some = np.linspace(0, rows.n_rows - 1, min(rows.n_rows, CONCENTRATION_ROWS)).astype(int)
        theta = best.gamma / best.gamma.sum(axis=1, keepdims=True)
        topics = prediction.smoothed_topics(best.beta, theta, sums, smoothing)
        return engine.fit_concentration(
            rows.take(some),
            best.labels[some],
            topics=topics,
            n_clusters=self.n_clusters,
            alpha=best.alpha,
            threads=rows.threads,
        )

    def _overdispersion(self, found: _Found, backend: RowBackend, counts: Array, sums: Array) -> Dispersion:
        """Compare the variance within clusters with what the model of a fit expects."""
        labels, every = found.best.labels, np.eye(self.n_clusters)
        if found.bursts is None:  # of the counts or their roots, whichever were fitted
            profiles = sums / sums.sum(axis=1, keepdims=True)
            return overdispersion(found.rows, labels, topics=profiles, cluster_topics=every)
        profiles = counts / counts.sum(axis=1, keepdims=True)
        return overdispersion(backend, labels, topics=profiles, cluster_topics=every, factors=found.bursts.factors)

    def _refit(self, best: Outcome, counts: Array, threads: Threads, monitor: Monitor) -> dict[str, Any]:
        """Return the attributes of the last step of the paper."""
        sizes = np.bincount(best.labels, minlength=len(counts))
        state = engine.from_sums(counts, sizes, beta=best.beta, alpha=best.alpha, gamma=best.gamma)
        try:
            components, gamma, bound = engine.refit_topics(state, threads=threads, monitor=monitor)
        except KeyboardInterrupt:  # keep what the search has found
            monitor.stop()
            components, gamma, bound = best.beta, best.gamma, best.bound
        return {
            "refit_components_": components,
            "refit_cluster_topics_": gamma / gamma.sum(axis=1, keepdims=True),
            "refit_bound_": max(bound, best.bound),  # rounding
        }

    def _set_search_results(self, best: Outcome, outcomes: list[Outcome]) -> None:
        """Set the fitted attributes that describe the search."""
        n_samples, n_present = len(best.labels), int((self.cluster_counts_.sum(axis=0) > 0).sum())
        sizes = {"n_clusters": self.n_clusters, "n_topics": self.n_topics, "n_samples": n_samples}
        self.labels_, self.weights_ = best.labels, best.weights
        self.topic_prior_ = float(self.topic_prior) if isinstance(self.topic_prior, Real) else best.alpha
        self.bound_ = best.bound
        self.icl_ = engine.icl(best.bound, **sizes, n_features=n_present)
        self.bound_history_ = np.array(best.history.bounds)
        self.n_epochs_, self.converged_ = best.history.n_epochs, best.history.converged
        self.starts_ = [outcome.report() for outcome in outcomes]
        drawn = self.cluster_counts_ if self.dispersion_ == "polya" else self.unit_counts  # by `sample`
        self._mean_length = float(drawn.sum() / n_samples)
        if self.verbose:
            for number, start in enumerate(self.starts_, start=1):
                message = "start %d (%s): bound %.3f after %d epochs"
                logger.info(message, number, start.kind, start.bound, start.n_epochs)

    def checked_counts(self, X: Any) -> Counts:
        """Return X as valid counts for this model; raise an error otherwise."""
        check_fit_parameters(self.get_params(deep=False))
        rows = self._counts(X, reset=True)
        self._check_sizes(LocalRows(rows))
        return rows

    def _counts(self, X: Any, *, reset: bool) -> Counts:
        """Return X as counts, checked against the fitted features; when fitting, empty rows are an error."""
        if isinstance(X, CountTable):
            return self._table_counts(X, reset=reset)
        X = in_memory(X)
        check_unmasked(X)  # scikit-learn drops masks
        check_not_texts(X)
        row_names = X.index if hasattr(X, "columns") and hasattr(X, "index") else None
        checked = self
        is_nameless = sparse.issparse(X) or (getattr(self, "_is_named_later", False) and not hasattr(X, "columns"))
        if not reset and is_nameless and hasattr(self, "feature_names_in_"):
            # Such data cannot have names, or had none in the fit; scikit-learn's warning would not help.
            checked = copy.copy(self)
            del checked.feature_names_in_
        X = validate_data(
            checked, X, reset=reset, accept_sparse=True, dtype=None, ensure_all_finite=False, ensure_min_samples=1
        )
        rows = as_counts(X, empty_rows="error" if reset else "allow")
        if reset:
            warn_of_misread_columns(rows, row_names=row_names, feature_names=getattr(self, "feature_names_in_", None))
        return rows

    def _table_counts(self, table: CountTable, *, reset: bool) -> Counts:
        """Return a table as counts; when fitting, keep its names, and otherwise match features by name."""
        known = getattr(self, "feature_names_in_", None)
        if not reset and known is not None and table.feature_names is not None:
            aligned = prediction.align_features(table.X, table.feature_names, known)
            for note in aligned.notes():
                warn(note, UserWarning)
            return as_counts(aligned.X, empty_rows="allow")
        rows = self._counts(table.X, reset=reset)
        if reset and table.feature_names is not None:
            self.feature_names_in_ = np.array([str(name) for name in table.feature_names], dtype=object)
            if table.feature_annotations:
                self.feature_annotations_ = table.feature_annotations
        return rows

    @property
    def units(self) -> Units:
        """Units of the fit, in which rows are scored."""
        if self.dispersion_ == "polya":
            return Bursts(self.variance_factors_, self.mean_profile_).units
        return Units(self.stabilize_)

    @property
    def cluster_sizes(self) -> NDArray[np.int64]:
        """Number of fitted rows in each cluster, (Q,)."""
        sizes: NDArray[np.int64] | None = self.__dict__.get("_cluster_sizes")
        return np.bincount(self.labels_, minlength=len(self.weights_)) if sizes is None else sizes

    @property
    def unit_counts(self) -> Array:
        """Sums of the rows of each cluster in the units of the fit, (Q, V)."""
        sums: Array = getattr(self, "_unit_counts", self.cluster_counts_)
        return sums

    def _check_sizes(self, backend: RowBackend) -> None:
        """Raise ValueError unless there are enough rows for the clusters and enough features for the topics."""
        if self.n_clusters <= backend.n_rows and self.n_topics <= backend.n_features:
            return
        hint = transposition_hint(backend.rows) if isinstance(backend, LocalRows) else None
        if self.n_clusters > backend.n_rows:
            raise ValueError(
                f"n_clusters={self.n_clusters} clusters need at least as many rows, but n_samples = {backend.n_rows}. "
                f"Lower n_clusters or provide more rows. {hint or ''}".rstrip()
            )
        raise ValueError(
            f"n_topics={self.n_topics} topics need at least as many features, but n_features = {backend.n_features}. "
            f"Lower n_topics or provide more features. {hint or ''}".rstrip()
        )

    # --- using the fit ------------------------------------------------------------------------------------------

    def predict(self, X: Any, *, outliers: float | None = None) -> NDArray[np.int32]:
        """Return the most probable cluster of each row.

        Rows are scored with the topics `components_`, smoothed by `smoothing_`, with `cluster_topics_` and `weights_`.
        All rows are treated as new, so the result for a row does not depend on the others. A borderline fitted row may
        be predicted to belong to a cluster other than its label, because during fitting it pulled its cluster
        toward itself; :meth:`leave_one_out_proba` judges fitted rows.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            An empty row is assigned to the largest cluster. Features that never occurred during fitting are equally
            probable in all clusters, so their counts make no difference.
        outliers : float, optional
            Level, such as 0.01, below which the score of a row (:meth:`outlier_scores`) makes it an outlier; its label
            is -1, and so is that of rows in clusters marked as noise. By default, every row gets a cluster.

        Returns
        -------
        labels : ndarray of int32, shape (n_samples,)
        """
        labels: NDArray[np.int32] = self._joint(X).argmax(axis=1).astype(np.int32)
        return labels if outliers is None else mark_outliers(self, labels, self.outlier_scores(X), outliers)

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each cluster for each row, with log-odds divided by `temperature_`.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            New rows, as in :meth:`predict`.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_clusters)
            Rows sum to one.
        """
        return prediction.posterior(self._joint(X), self.temperature_)

    def leave_one_out_proba(self, X: Any) -> Array:
        """Return the probability of each cluster for the fitted rows, each judged without its own contribution.

        A fitted row has pulled its cluster toward itself, so :meth:`predict_proba` is overconfident about it. Here, the
        row is first removed from the topic proportions and the size of its cluster. These are the probabilities in
        `explain`, in label files and on pages. If a row's label is not its most probable cluster, only its own
        contribution keeps it there.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The fitted rows, in their order.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_clusters)
            Rows sum to one.

        Examples
        --------
        >>> from mmpca import MMPCA
        >>> X = [[5, 1, 0], [1, 5, 1], [4, 1, 0], [1, 4, 2]]
        >>> model = MMPCA(2, 2, random_state=0).fit(X)
        >>> bool((model.leave_one_out_proba(X).max(axis=1) <= model.predict_proba(X).max(axis=1)).all())
        True
        """
        check_is_fitted(self)
        rows = self.units.convert(self._counts(X, reset=False))
        labels = explanation.fitted_labels(rows, self)
        if (labels == explanation.NOT_FITTED).any():
            raise ValueError(
                f"X must hold the {len(self.labels_)} rows that the model was fitted to, in the same order, but its "
                "rows differ. Use predict_proba for new rows."
            )
        joint = prediction.joint_log_likelihood(rows, self.mixture(), labels)
        return prediction.posterior(joint, self.temperature_)

    def outlier_scores(self, X: Any) -> Array:
        """Return how well each row is explained by its cluster: a tail probability, small for outliers.

        The score is the probability that a row of the same length, drawn from the same cluster, is no more probable
        than this one. Without outliers, scores are uniform between 0 and 1 for short and long rows alike, so about one
        row in a hundred has a score below 0.01. :mod:`mmpca.model.outliers` describes the simulated rows, and how
        scores allow for counts that vary more than the model expects.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The fitted rows in their order, which keep their labels and are evaluated without their own contribution; or
            other rows, evaluated in their most probable cluster. An empty row has score 1.

        Returns
        -------
        scores : ndarray of shape (n_samples,)

        Examples
        --------
        >>> import numpy as np
        >>> from mmpca import MMPCA
        >>> from mmpca.simulate import paper_design
        >>> X = paper_design(n_samples=200, random_state=0).X
        >>> model = MMPCA(6, 4, n_init=1, random_state=0).fit(X)
        >>> odd = np.ones((1, X.shape[1]), dtype=int)  # every word once
        >>> bool(model.outlier_scores(odd)[0] < 1e-6), bool(0.3 < np.median(model.outlier_scores(X)) < 0.7)
        (True, True)
        """
        check_is_fitted(self)
        counts = self._counts(X, reset=False)
        rows = self.units.convert(counts)
        fitted = explanation.fitted_labels(rows, self)
        clusters = fitted
        if not (fitted >= 0).any():
            clusters = prediction.joint_log_likelihood(rows, self.mixture()).argmax(axis=1).astype(np.int32)
        return outliers.outlier_scores(self, counts, fitted, clusters)

    @property
    def outlier_score_(self) -> Array:
        """Score of each fitted row as in :meth:`outlier_scores`, (n_samples,); computed when it is first needed."""
        check_is_fitted(self)
        if "_outlier_score" not in self.__dict__:
            if self._fitted_rows is None:
                raise AttributeError(
                    "outlier_score_ is not available, because the model does not contain its rows. Call "
                    "outlier_scores(X) with the fitted rows."
                )
            self._outlier_score = outliers.outlier_scores(self, self._fitted_rows, self.labels_, self.labels_)
            self._fitted_rows = None  # no longer needed
        return self._outlier_score

    def outlier_labels(self, level: float = 0.01) -> NDArray[np.int32]:
        """Return the labels of the fitted rows, -1 for outliers.

        Parameters
        ----------
        level : float, default=0.01
            Rows whose `outlier_score_` is below this are outliers; this share of the rows is expected to be marked by
            chance.

        Returns
        -------
        labels : ndarray of int32, shape (n_samples,)
        """
        return mark_outliers(self, self.labels_, self.outlier_score_, level)

    def score(self, X: Any, y: object = None) -> float:
        """Return the mean log-likelihood of the rows, without multinomial coefficients.

        Features that never occurred during fitting have a small probability here, so that models fitted to different
        rows can be compared, as in cross-validation: after n counts, they share a probability of 1 / (n + 1) evenly,
        and the probabilities of all other features shrink by a common factor, so that all of them sum to one.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            An empty row has log-likelihood 0.
        y : ignored

        Returns
        -------
        score : float
            Larger is better.

        Examples
        --------
        >>> from mmpca import MMPCA
        >>> model = MMPCA(2, 2, random_state=0).fit([[5, 1, 0], [1, 5, 0], [4, 1, 0], [1, 4, 0]])
        >>> round(model.score([[0, 0, 1]]), 3)  # log(1 / 23): no row had the third feature, and there were 22 counts
        -3.135
        """
        check_is_fitted(self)
        rows = self.units.convert(self._counts(X, reset=False))
        joint = prediction.joint_log_likelihood(rows, self.mixture())
        return prediction.mean_log_likelihood(rows, joint, self.components_, float(self.unit_counts.sum()))

    def transform(self, X: Any) -> Array:
        """Return the rows in topic space: their expected topic proportions.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            As in :meth:`predict`.

        Returns
        -------
        shares : ndarray of shape (n_samples, n_topics)
            Rows sum to one.
        """
        check_is_fitted(self)
        rows = self.units.convert(self._counts(X, reset=False))
        return topic_shares(rows, self.components_, prior=self.topic_prior_)

    def edit(
        self,
        X: Any,
        *,
        merge: Sequence[Any] = (),
        split: Sequence[int] = (),
        move: Mapping[Any, int] | None = None,
        noise: Sequence[int] = (),
        refit: bool = True,
    ) -> editing.EditReport:
        """Merge, split or mark clusters, or move rows, then continue the search from there, in place.

        The topics `components_` are kept. The search moves single rows only, so it cannot undo a merge or a split, and
        rows that you moved stay in place. A merged cluster gets the lowest number of its parts, higher numbers move
        down to close the gap, and the second half of a split cluster gets the last number; names move with their
        clusters. `n_clusters` becomes the new number of clusters.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The fitted rows, in their order.
        merge : sequence of int, or of sequences of int
            Clusters to merge, such as ``[2, 5]``, or several such groups.
        split : sequence of int
            Clusters to split in two.
        move : mapping of int or str to int, optional
            Rows to move, by position, or by name if X has row names, with their new clusters.
        noise : sequence of int
            Clusters of rows that have nothing in common except that they fit nowhere else. They are named "noise", and
            :meth:`outlier_labels` and :meth:`predict` with `outliers` give their rows the label -1.
        refit : bool, default=True
            False keeps the edited labels.

        Returns
        -------
        EditReport
            The edits, also kept in `edits_` and in the model file; the bound before, right after, and after the search;
            and the new numbers of the clusters.

        Examples
        --------
        >>> from mmpca import MMPCA
        >>> from mmpca.simulate import paper_design
        >>> X = paper_design(n_samples=100, random_state=0).X
        >>> model = MMPCA(6, 4, n_init=1, random_state=0).fit(X)
        >>> report = model.edit(X, merge=[1, 4])
        >>> len(model.weights_), report.bound_edited < report.bound_before, report.bound_after >= report.bound_edited
        (5, True, True)
        """
        check_is_fitted(self)
        if self.algorithm == "vbem":
            raise ValueError('A model with algorithm="vbem" has soft clusters, which cannot be edited.')
        counts = self._counts(X, reset=False)
        named = positions(list(move or {}), row_names_of(X, None, counts.n_rows))
        move = dict(zip(named, (move or {}).values(), strict=True))
        filled = np.flatnonzero(counts.row_totals())  # rows without counts are in no cluster
        counts, at = counts.take(filled), {int(row): i for i, row in enumerate(filled)}
        if absent := [row for row in move if row not in at]:
            raise ValueError(f"move names row {absent[0]}, but X has no counts there.")
        move = {at[row]: q for row, q in move.items()}
        rows = self.units.convert(counts)
        if counts.n_rows != len(self.labels_) or (explanation.fitted_labels(rows, self) < 0).any():
            raise ValueError(
                f"X must hold the {len(self.labels_)} rows that the model was fitted to, in the same order."
            )
        plan = editing.plan_edits(self, rows, self.labels_, merge=merge, split=split, move=move, noise=noise)
        # Fit a copy, so an error leaves this model unchanged.
        own: dict[str, Any] = {
            "n_clusters": plan.n_clusters,
            "n_topics": len(self.components_),
            "topic_prior": self.topic_prior_,
            "start": "auto",  # labels given there were those of the clusters before
        }
        own |= {"dispersion": self.dispersion_, "stabilize": self.stabilize_}
        fitted = type(self)(**{**self.get_params(deep=False), **own, "max_epochs": self.max_epochs if refit else 0})
        known = np.full(counts.n_rows, editing.UNKNOWN, dtype=np.int32)
        known[plan.moved] = plan.labels[plan.moved]
        attributes = {name: vars(self)[name] for name in KEPT_ATTRIBUTES if name in vars(self)}
        bursts = Bursts(self.variance_factors_, self.mean_profile_) if self.dispersion_ == "polya" else None
        fitted.fit_rows(
            LocalRows(counts),
            attributes=attributes,
            bursts=bursts,
            known=known if len(plan.moved) else None,
            resumed=editing.Resumed(self.components_, plan.labels, self.topics_source_),
        )
        fitted.smoothing_ = self.smoothing_
        marked = {*map(int, getattr(self, "noise_clusters_", ())), *noise}
        parts = {new: {q for q, number in plan.numbers.items() if number == new} for new in plan.numbers.values()}
        noisy = sorted(new for new, merged in parts.items() if merged <= marked)  # nothing else was merged with noise
        names = {plan.numbers[q]: name for q, name in reversed(given_names(self, "cluster").items())}
        names = {q: name for q, name in names.items() if name != editing.NOISE}
        set_names(fitted, names | dict.fromkeys(noisy, editing.NOISE), given_names(self, "topic"))
        fitted.edits_ = [*getattr(self, "edits_", []), *plan.edits]
        if noisy:
            fitted.noise_clusters_ = np.array(noisy, dtype=np.int32)
        bounds = (self.bound_, float(fitted.bound_history_[0]), fitted.bound_)
        n_moved = int((fitted.labels_ != plan.labels).sum())
        parameters = self.get_params(deep=False) | {"n_clusters": plan.n_clusters}
        parameters["start"] = parameters["start"] if isinstance(parameters["start"], str) else "auto"
        self.__dict__.clear()
        self.__dict__.update(vars(fitted))
        self.set_params(**parameters)
        return editing.EditReport(plan.edits, *bounds, plan.numbers, n_moved)

    def merge_path(self) -> engine.MergePath:
        """Merge the clusters pairwise down to one, at each step the two whose merge lowers the bound least.

        The topics `components_` are held fixed. The bound at the full number of clusters is `bound_`, except with
        "vbem", which has a different kind of bound.

        Returns
        -------
        MergePath
            `linkage` of shape (n_clusters - 1, 4) for :func:`scipy.cluster.hierarchy.dendrogram`; `bounds` of 1, 2, ...
            clusters; and `groups(n)`, the group of each cluster when n groups are left:
            ``path.groups(3)[model.labels_]`` labels the rows by three clusters.
        """
        check_is_fitted(self)
        state = engine.from_sums(self.unit_counts, self.cluster_sizes, beta=self.components_, alpha=self.topic_prior_)
        return engine.merge_path(state)

    def theta_interval(
        self, level: float = 0.95, *, random_state: int | np.random.RandomState | None = 0
    ) -> tuple[Array, Array]:
        """Return intervals for the topic proportions of clusters, from two dozen refits to simulated rows.

        The proportions depend on topics that are also estimated, so their error is mostly bias. Intervals are centered
        at bias-corrected proportions and allow for a remaining bias as large as the correction; they need not contain
        `cluster_topics_`. They tend to be wider than `level` requires, and are only as valid as the model.

        Parameters
        ----------
        level : float, default=0.95
            Fraction of intervals that should contain the true value, between 0 and 1.
        random_state : int, RandomState instance or None, default=0
            Seed of the simulated rows.

        Returns
        -------
        lower, upper : ndarray of shape (n_clusters, n_topics)

        Examples
        --------
        >>> from mmpca import MMPCA
        >>> from mmpca.simulate import paper_design
        >>> model = MMPCA(6, 4, n_init=1, random_state=0).fit(paper_design(n_samples=60, random_state=0).X)
        >>> lower, upper = model.theta_interval(0.9)
        >>> lower.shape, bool((lower < upper).all())
        ((6, 4), True)
        """
        check_is_fitted(self)
        if not isinstance(level, Real) or not 0 < level < 1:
            shown = repr(level) if isinstance(level, Real) else f"a {type(level).__name__}"
            raise ValueError(f"level must be a number between 0 and 1, such as 0.95, but it is {shown}. Pass no data.")
        with warnings.catch_warnings():  # about simulated rows, which are of no interest to the caller
            warnings.simplefilter("ignore", OverdispersionWarning)
            lower, upper = intervals.theta_interval(self, float(level), check_random_state(random_state))
        return lower, upper

    def sample(
        self,
        n_samples: int = 1,
        *,
        lengths: int | ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> tuple[sparse.csr_array, NDArray[np.int64]]:
        """Draw rows from the fitted mixture.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.
        lengths : int or array of shape (n_samples,), optional
            Totals of the rows; by default the mean total of the fitted rows.
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        X : csr_array of shape (n_samples, n_features)
            Counts; square roots of counts for a model with ``stabilize="sqrt"``. With ``dispersion="shares"``, rows
            have their own topic proportions. With ``"polya"``, features come in bursts; their variance factors include
            the variation of topic proportions.
        y : ndarray of shape (n_samples,)
            Cluster of each row.
        """
        check_is_fitted(self)
        from mmpca.simulate import simulate_mmpca  # not needed to fit or predict

        lengths = max(1, round(self._mean_length)) if lengths is None else lengths
        if self.dispersion_ == "polya":
            rng, profiles = check_random_state(random_state), in_counts(self).profiles
            mixture: dict[str, Any] = {"topics": profiles, "cluster_topics": np.eye(len(profiles))}
            drawn = simulate_mmpca(n_samples, **mixture, weights=self.weights_, lengths=lengths, random_state=rng)
            totals = np.asarray(drawn.X.sum(axis=1), dtype=np.int64)
            return draw_bursts(totals, drawn.labels, profiles, self.variance_factors_, rng), drawn.labels
        mixture = {"topics": self.components_, "cluster_topics": self.cluster_topics_}
        concentration = getattr(self, "concentration_", np.inf)
        if np.isfinite(concentration):
            random_state = check_random_state(random_state)
        drawn = simulate_mmpca(n_samples, **mixture, weights=self.weights_, lengths=lengths, random_state=random_state)
        if np.isinf(concentration):
            return drawn.X, drawn.labels
        rng = check_random_state(random_state)
        totals = np.asarray(drawn.X.sum(axis=1), dtype=np.int64)
        return draw_shares(totals, drawn.labels, **mixture, concentration=concentration, rng=rng), drawn.labels

    def explain(
        self,
        X: Any,
        rows: ArrayLike | None = None,
        *,
        labels: ArrayLike | None = None,
        n_features: int = 10,
        gains: bool | None = None,
    ) -> list[explanation.Explanation]:
        """Explain why rows are in their clusters: odds and gains of the alternatives, and the evidence for and against.

        Odds use the fitted parameters, and are divided by `temperature_`. If X is the fitted data, each row is judged
        without its own contribution to its cluster, as in :meth:`leave_one_out_proba`. Gains are exact changes of the
        bound: of moving the row if X is the fitted data, otherwise of adding it to one cluster rather than another.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            If X holds all fitted rows in their order, they are recognized as such.
        rows : array of int or str, optional
            Rows to explain: positions, or names if X is a data frame or a table with row names; all by default.
        labels : array of int, shape (n_samples,), optional
            Clusters to explain. By default `labels_` for the fitted X, and the most probable clusters for other rows.
        n_features : int, default=10
            Maximum number of features to list on each side.
        gains : bool, optional
            Whether to compute gains, which takes an optimization for each row and cluster; by default if `rows` is
            given.

        Returns
        -------
        list of Explanation
            One for each row: cluster, probability, verdict, runner_up, margin (nats), alternatives, evidence_for,
            evidence_against, from_sizes, from_others, is_fitted, contribution, bound_margin.

        Examples
        --------
        >>> from mmpca import MMPCA
        >>> from mmpca.simulate import paper_design
        >>> data = paper_design(n_samples=100, random_state=0)
        >>> model = MMPCA(6, 4, n_init=1, random_state=0).fit(data.X)
        >>> why = model.explain(data.X, [3], n_features=2)[0]
        >>> bool(why.cluster == model.labels_[3]), why.verdict
        (True, 'clear')
        >>> total = sum(part.nats for part in why.evidence_for + why.evidence_against)
        >>> abs(total + why.from_sizes + why.from_others - why.margin) < 1e-9
        True
        >>> max(other.gain for other in why.alternatives) < 0  # moving it would lower the bound
        True
        """
        check_is_fitted(self)
        counts = self._counts(X, reset=False)
        rows = None if rows is None else positions(rows, row_names_of(X, None, counts.n_rows))
        with_gains = rows is not None if gains is None else bool(gains)
        return explanation.explain(counts, self, rows=rows, labels=labels, n_features=n_features, with_gains=with_gains)

    def save(self, path: str | os.PathLike[str], *, text: Mapping[str, Any] | None = None) -> None:
        """Write the fitted model to a file that :func:`mmpca.load` reads; docs/model-file.md describes the format.

        The file is written atomically: a crash leaves an existing file unchanged. All parameters and fitted attributes
        are saved, except that a `random_state` other than an int becomes None, and that `n_clusters`, `n_topics`,
        `topic_prior` and `stabilize` are those of the fit, even if they were changed since.

        Parameters
        ----------
        path : path
            By convention ending in ``.mmpca``.
        text : mapping, optional
            How texts were counted, from :meth:`mmpca.text.CountTexts.settings`; saved with the model.
        """
        files.save(self, path, text=text)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> MMPCA:
        """Load a model from a file; see :func:`mmpca.load`.

        Parameters
        ----------
        path : path

        Returns
        -------
        MMPCA
        """
        return files.load(path)

    def _joint(self, X: Any) -> Array:
        """Return the joint log-likelihood of rows and clusters, (N, Q), as if the rows were new."""
        check_is_fitted(self)
        return prediction.joint_log_likelihood(self.units.convert(self._counts(X, reset=False)), self.mixture())

    def mixture(self) -> prediction.ClusterMixture:
        """Return the parameters that score rows, with smoothed topics."""
        topics = prediction.smoothed_topics(self.components_, self.cluster_topics_, self.unit_counts, self.smoothing_)
        return prediction.ClusterMixture(
            topics,
            self.cluster_topics_,
            self.weights_,
            topic_params=self.cluster_topic_params_,
            sizes=self.cluster_sizes.astype(np.float64),
            topic_prior=self.topic_prior_,
            concentration=getattr(self, "concentration_", None),
        )

    @property
    def temperature_(self) -> float:
        """Number by which log-odds are divided."""
        found = self._temperature
        return found.value if isinstance(found, Temperature) else found

    @temperature_.setter
    def temperature_(self, value: float) -> None:
        self._temperature = float(value)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_fitted_rows": None}  # a pickled model does not hold its rows

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def check_not_texts(X: Any) -> None:
    """Raise ValueError if X is a text, or a list or column of texts."""
    first = X
    if isinstance(X, list | tuple) or len(getattr(X, "shape", ())) == 1:
        first = next(iter(X), None)
    if isinstance(first, str | bytes):
        raise ValueError(
            "X must be a matrix of counts, but it holds texts. mmpca.TextClusters counts the words of texts and "
            "clusters them, and mmpca.TextClusters.load loads a model of texts with its vocabulary; "
            "mmpca.text.CountTexts only counts words."
        )


def check_topics(topics: Any, n_topics: int, totals: NDArray[Any]) -> Array:
    """Return given topics as float64, (K, V).

    Rows must sum to one, and every feature with counts (`totals`, shape (V,)) must have a positive probability.
    """
    if np.ma.is_masked(topics):  # asarray would drop the mask
        raise ValueError("topics must hold probabilities, but some of them are masked. Fill them in.")
    beta = np.asarray(topics)
    if beta.dtype.kind not in "biuf":
        raise ValueError(
            f"topics must be a dense array of numbers, but it is a {type(topics).__name__} of type "
            f"{getattr(topics, 'dtype', beta.dtype)}. Convert it, e.g. with topics.toarray() or topics.astype(float)."
        )
    beta = beta.astype(np.float64)
    expected = (n_topics, len(totals))
    if beta.shape != expected:
        remedy = "Pass topics.T." if beta.T.shape == expected else "Pass one row per topic and one column per feature."
        raise ValueError(
            f"topics must have shape (n_topics, n_features) = {expected}, but its shape is {beta.shape}. {remedy}"
        )
    wrong = np.argwhere(~np.isfinite(beta) | (beta < 0))
    if len(wrong):
        k, v = wrong[0]
        raise ValueError(
            f"topics must hold probabilities, but topics[{k}, {v}] = {beta[k, v]}. Replace negative and missing values."
        )
    sums = beta.sum(axis=1)
    off = np.flatnonzero(np.abs(sums - 1.0) > SUM_TOLERANCE)
    if off.size:
        raise ValueError(
            f"each row of topics must sum to one, but row {off[0]} sums to {sums[off[0]]:.6g}. "
            "Normalize them: topics / topics.sum(axis=1, keepdims=True)."
        )
    impossible = np.flatnonzero((totals > 0) & (beta.sum(axis=0) == 0))
    if impossible.size:
        v = impossible[0]
        raise ValueError(
            f"every feature that occurs needs a positive probability in some topic, but feature {v} occurs {totals[v]} "
            f"times and has probability zero in all topics ({impossible.size} such features). "
            "Smooth the topics, e.g. add 1e-6 and normalize again, or drop the feature."
        )
    return beta / sums[:, None]
