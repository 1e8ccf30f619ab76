"""Mixture of multinomial PCA as a scikit-learn clusterer."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, Literal, Self

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
    group_rows,
    map_rows,
    one_blas_thread,
    open_threads,
    row_totals,
)
from mmpca.counts import Counts, Units, as_counts, in_memory, transposition_hint
from mmpca.errors import CountsError, InterruptedSearchWarning, OverdispersionWarning, warn
from mmpca.io import CountTable
from mmpca.model import editing, explanation, files, intervals, online, outliers, prediction
from mmpca.model.callbacks import CallbackSupportMixin, callback_of, with_callbacks
from mmpca.model.checkpoints import Checkpoint
from mmpca.model.choices import Pairs, choose_source, choose_units
from mmpca.model.dispersion import (
    LARGE_INDEX,
    Bursts,
    advice_on,
    draw_bursts,
    draw_shares,
    in_counts,
)
from mmpca.model.fitting import (
    LEARNED,
    ClusterSums,
    Fit,
    Found,
    find_clusters,
    measure_concentration,
    sum_clusters,
)
from mmpca.model.inspection import warn_of_misread_columns
from mmpca.model.outliers import mark_outliers
from mmpca.model.results import ResultTables, given_names, positions, row_names_of, set_names
from mmpca.model.rules import check_fit_parameters, check_topic_prior
from mmpca.model.starts import (
    SAMPLED_ROWS,
    Labels,
    Outcome,
    StartReport,
    check_labels,
)
from mmpca.model.temperature import Temperature, n_sampled
from mmpca.monitor import Callback, Monitor, logger
from mmpca.topics import topic_shares

Array = NDArray[np.float64]

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


class MMPCA(
    ResultTables, CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
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
        random ("mixture") or from k-means on tf-idf ("tfidf"); from the one of these three sources whose clusters agree
        best between two random halves of the features ("auto", see docs/topics.md; always "lda" with "polya" and
        "vbem"); drawn at random; or given. Rows of an array must sum to one.
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
    _compared: Pairs
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

    @with_callbacks
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
            with Ctrl-C: the best state found so far is kept, with a warning. Without it, scikit-learn's callbacks
            (``model.set_callbacks(ProgressBar())``, scikit-learn 1.9) receive each stage.
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
        run: dict[str, Any] = {"attributes": vars(checked), "checkpoint": checkpoint}
        run["callback"] = callback_of(self, callback)
        if labels is None and seed_topics is None:
            return self.fit_rows(LocalRows(rows), **run)
        knowledge = editing.check_knowledge(
            self,
            None if labels is None else editing.in_order_of(labels, X),
            seed_topics,
            shape=(rows.n_rows, rows.n_features),
            feature_names=getattr(checked, "feature_names_in_", None),
            checkpoint=checkpoint,
        )
        self.fit_rows(LocalRows(rows), **run, **knowledge.arguments())
        knowledge.name(self)
        return self

    def partial_fit(self, X: Any, y: object = None) -> Self:
        """Update the model with a batch of rows, in memory that does not grow with the number of batches.

        The first 50,000 rows are kept, or fewer if they have more than 20 million entries; the model is refitted to
        them whenever their number has grown by a quarter, and one last time when there are enough. Each refit
        renumbers the clusters. After the last one, rows are assigned to clusters, whose sums, sizes and topic shares
        are updated; topics change slowly; and rows that no cluster explains form new clusters, so `n_clusters` may grow
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
        compared: Pairs | None = None,
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
            For ``topics="auto"``, the source chosen by an earlier comparison, if any.
        compared : sequence of pairs, optional
            For batches: agreements of sources in earlier comparisons, which a new comparison takes into account.
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
        parameters = self.get_params(deep=False)
        parameters |= {name: int(parameters[name]) for name in ("n_clusters", "n_topics")}  # small types overflow
        seeds = np.random.SeedSequence(check_random_state(self.random_state).randint(2**31)).spawn(3)
        saved = resumed if checkpoint is None else Checkpoint.of_fit(checkpoint, parameters, backend)
        if not isinstance(parameters["start"], str):
            parameters["start"] = check_labels(parameters["start"], backend.n_rows, parameters["n_clusters"])
        if not isinstance(parameters["topic_prior"], str):
            parameters["topic_prior"] = check_topic_prior(parameters["topic_prior"], parameters["n_topics"])
        keep = saved.save_labels if isinstance(saved, Checkpoint) else None
        monitor = Monitor(callback, verbose=self.verbose, checkpoint=keep)
        with one_blas_thread(), open_threads(effective_n_jobs(self.n_jobs)) as threads:
            backend = backend.with_threads(threads)
            fit = Fit(
                **{name: parameters[name] for name in Fit._fields if name in parameters},
                topics_seed=seeds[0],
                search_seed=seeds[1],
                monitor=monitor,
                sample_size=sample_size,
                topics_source=topics_source,
                compared=compared,
                known=known,
                topic_seeds=topic_seeds,
                merge_split=resumed is None,
            )
            # Topics and labels; then, if counts vary too much for a multinomial, again in the units that suit them.
            has_topics = saved is not None and saved.beta is not None
            chosen = fit if has_topics else choose_source(fit, backend)
            found = find_clusters(chosen, backend, saved, bursts)
            monitor.begin("dispersion", "measuring overdispersion")
            summary = sum_clusters(found, backend)
            is_open = self.dispersion == "auto" and self.stabilize is None and found.topics.source in LEARNED
            if is_open and summary.dispersion.overall > LARGE_INDEX and not monitor.is_stopped:
                found = choose_units(fit, found, backend)
                summary = sum_clusters(found, backend)
            # Predictions: topics that the search has learned are smoothed for new rows.
            best, rows, smoothing = found.best, found.rows, 0.0
            if found.topics.source in LEARNED or self.algorithm == "vbem":
                some = np.linspace(0, rows.n_rows - 1, min(rows.n_rows, prediction.SMOOTHING_ROWS)).astype(int)
                fitted = (best.labels[some], best.beta, best.theta, summary.sums)
                smoothing = prediction.choose_smoothing(rows.take(some), *fitted)
            # What only some fits have: the variation of topic shares within clusters, and the last step of the paper.
            optional: dict[str, Any] = {}
            if found.dispersion != "multinomial":
                monitor.begin("shares", "measuring how much topic shares vary")
                optional["concentration_"] = measure_concentration(found, summary.sums, smoothing)
            if found.bursts is not None:
                optional |= {"variance_factors_": found.bursts.factors, "mean_profile_": found.bursts.profile}
            if self.refit_topics is True and self.algorithm != "vbem":
                optional |= self._refit(best, summary.sums, threads, monitor)
            # Fitted attributes. Only now does the model change: an error above leaves an earlier fit as it was.
            n_rows = backend.map_reduce(group_rows, np.arange(rows.n_rows), best.labels, shared=(self.n_clusters,))
            self._set_fitted(found, summary, {**attributes, **optional})
            self.smoothing_, self.cluster_row_counts_ = smoothing, n_rows.astype(np.int32)
            self._set_sample(found, backend, seeds[2])
            if compared is not None:
                self._compared = chosen.compared or ()  # for `partial_fit`
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

    def _refit(self, best: Outcome, sums: Array, threads: Threads, monitor: Monitor) -> dict[str, Any]:
        """Return the attributes of the last step of the paper."""
        try:
            components, gamma, bound = engine.refit_topics(best.state(sums), threads=threads, monitor=monitor)
        except KeyboardInterrupt:  # keep what the search has found
            monitor.stop()
            components, gamma, bound = best.beta, best.gamma, best.bound
        return {
            "refit_components_": components,
            "refit_cluster_topics_": gamma / gamma.sum(axis=1, keepdims=True),
            "refit_bound_": max(bound, best.bound),  # rounding
        }

    def _set_fitted(self, found: Found, summary: ClusterSums, attributes: Mapping[str, Any]) -> None:
        """Set the attributes that describe the search and its clusters, and given ones, instead of earlier ones."""
        for name in OPTIONAL_ATTRIBUTES:
            self.__dict__.pop(name, None)
        self.__dict__.update(attributes)
        best, n_samples = found.best, len(found.best.labels)
        self.labels_, self.weights_ = best.labels, best.weights
        self.components_, self.cluster_topic_params_, self.cluster_topics_ = best.beta, best.gamma, best.theta
        self.cluster_counts_ = summary.counts
        if summary.sums is not summary.counts:
            self._unit_counts = summary.sums
        self.overdispersion_, self.cluster_overdispersion_ = summary.dispersion
        self.dispersion_, self.stabilize_, self.topics_source_ = found.dispersion, found.stabilize, found.topics.source
        self.topic_prior_ = float(self.topic_prior) if isinstance(self.topic_prior, Real) else best.alpha
        n_present = int((summary.counts.sum(axis=0) > 0).sum())
        sizes = {"n_clusters": self.n_clusters, "n_topics": self.n_topics, "n_samples": n_samples}
        self.bound_, self.icl_ = best.bound, engine.icl(best.bound, **sizes, n_features=n_present)
        self.bound_history_, self.n_epochs_ = np.array(best.history.bounds), best.history.n_epochs
        self.converged_ = best.history.converged and found.is_complete
        self.starts_ = [outcome.report() for outcome in found.outcomes]
        drawn = summary.counts if found.dispersion == "polya" else summary.sums  # by `sample`
        self._mean_length = float(drawn.sum() / n_samples)
        if self.verbose:
            for number, start in enumerate(self.starts_, start=1):
                message = "start %d (%s): bound %.3f after %d epochs"
                logger.info(message, number, start.kind, start.bound, start.n_epochs)

    def _set_sample(self, found: Found, backend: RowBackend, seed: np.random.SeedSequence) -> None:
        """Keep some of the rows, from which temperature and outliers are estimated when they are first needed."""
        rows, labels = found.rows, found.best.labels
        some = np.linspace(0, rows.n_rows - 1, n_sampled(rows.n_rows, len(found.best.weights))).astype(int)
        sample, lengths = rows.take(some), map_rows(backend if found.bursts is not None else rows, row_totals, some)
        if isinstance(self.temperature, str):
            self._temperature = Temperature(sample, labels[some], self.mixture(), seed)
        else:
            self._temperature = float(self.temperature)
        self._outlier_knots = outliers.FittedSample(sample, lengths, labels[some])
        self._fitted_rows = backend.rows if isinstance(backend, LocalRows) else None

    def checked_counts(self, X: Any) -> Counts:
        """Check the parameters and the data of a fit, and set the attributes that describe its features.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or CountTable of shape (n_samples, n_features)

        Returns
        -------
        Counts
        """
        check_fit_parameters(self.get_params(deep=False))
        rows = self._counts(X, reset=True)
        self._check_sizes(LocalRows(rows))
        return rows

    def _counts(self, X: Any, *, reset: bool) -> Counts:
        """Return X as counts, checked against the fitted features; when fitting, empty rows are an error."""
        if isinstance(X, CountTable):
            return self._table_counts(X, reset=reset)
        X = in_memory(X)
        rows = as_counts(X, empty_rows="error" if reset else "allow")
        row_names = X.index if hasattr(X, "columns") and hasattr(X, "index") else None
        checked = self
        is_nameless = sparse.issparse(X) or (getattr(self, "_is_named_later", False) and not hasattr(X, "columns"))
        if not reset and is_nameless and hasattr(self, "feature_names_in_"):
            # Such data cannot have names, or had none in the fit; scikit-learn's warning would not help.
            checked = copy.copy(self)
            del checked.feature_names_in_
        validate_data(checked, X, reset=reset, skip_check_array=True)  # names and number of the features
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
            False keeps the edited labels, and also `temperature_` and the standardization of outlier scores, because
            estimating them can take longer than the edit.

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
        if not refit:
            if len(self.weights_) > 1:  # a single cluster needs no temperature, so it has none to keep
                fitted._temperature = self._temperature
            if (knots := outliers.knots_of(self)) is not None:  # None in files of older versions
                fitted._outlier_knots = knots
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
        `cluster_topics_`. They are only as valid as the model.

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
        """Return the parameters that score rows, with smoothed topics.

        Returns
        -------
        ClusterMixture
        """
        topics = prediction.smoothed_topics(self.components_, self.cluster_topics_, self.unit_counts, self.smoothing_)
        return prediction.ClusterMixture(
            topics,
            self.cluster_topics_,
            self.weights_,
            topic_params=self.cluster_topic_params_,
            sizes=self.cluster_sizes.astype(np.float64),
            topic_prior=self.topic_prior_,
            concentration=getattr(self, "concentration_", None),
            sums=self.unit_counts if getattr(self, "topics_source_", "given") in LEARNED else None,
            smoothing=self.smoothing_,
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
