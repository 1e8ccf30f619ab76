"""Mixture of multinomial PCA as a scikit-learn clusterer."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mmpca import engine
from mmpca.counts import Counts, as_counts, square_root
from mmpca.engine.refit import refit_topics
from mmpca.errors import InterruptedSearchWarning
from mmpca.model import constraints, prediction, starts
from mmpca.topics import learn_topics, topic_shares

Array = NDArray[np.float64]
Callback = Callable[[int, engine.Progress], object]

logger = logging.getLogger("mmpca")

# Starts of one fit when `n_init` is "auto": the smaller the data, the cheaper and the more needed.
AUTO_STARTS = ((2_000, 10), (20_000, 4))
AUTO_STARTS_LARGE = 2


class MMPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """Clustering of count data through a mixture of multinomial PCA.

    Rows of counts (documents x words, sites x species, cells x genes) fall into clusters; the clusters share topics,
    distributions over the features, and differ by how much of each topic they have. Given topics, a greedy search
    moves one row at a time as long as a variational bound of the likelihood rises.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters (the paper's Q).
    n_topics : int, default=5
        Number of topics (the paper's K).
    topics : {"lda", "random"} or array of shape (n_topics, n_features), default="lda"
        Topics that the search uses (the paper's beta): learned from the rows by latent Dirichlet allocation, drawn at
        random, or given; rows sum to one.
    topic_prior : float, default=1.0
        Symmetric Dirichlet prior of the clusters' topic shares (the paper's alpha).
    start : {"auto", "random", "kmeans"} or array of shape (n_samples,), default="auto"
        Labels that the search starts from: balanced at random, by k-means on the rows in topic space, both in turn, or
        given.
    n_init : int or "auto", default="auto"
        Number of starts, the best bound is kept; by default 10 for up to 2,000 rows, 4 for up to 20,000, and 2 for
        more. Given labels make one start.
    algorithm : {"greedy", "exact", "cvem"}, default="greedy"
        "greedy" screens the moves by second-order gains and settles close calls exactly, "exact" evaluates every move
        as published, "cvem" reassigns all rows with the parameters held fixed, then updates these.
    stabilize : {None, "sqrt"}, default=None
        "sqrt" fits and predicts rounded square roots of the counts, for overdispersed data.
    max_epochs : int, default=50
        Epochs of the search, in each of which every row is visited once; 0 evaluates the start.
    tol : float, default=1e-10
        A move must raise the bound by more than this share of its magnitude.
    refit_topics : bool, default=True
        Re-estimate topics and topic shares on the final clusters, the labels held fixed.
    n_jobs : int or None, default=None
        Threads, shared between the starts first and the rows of a block then; -1 means all cores. The result
        does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of topics, starts and the order of visits.
    verbose : int, default=0
        1 reports each start through the logger "mmpca", 2 each epoch as well.

    Attributes
    ----------
    labels_ : ndarray of int32, shape (n_samples,)
        Cluster of each row.
    weights_ : ndarray of shape (n_clusters,)
        Share of the rows in each cluster (pi).
    components_ : ndarray of shape (n_topics, n_features)
        Topics (beta), re-estimated with `refit_topics`. Features that never occur have probability zero.
    cluster_topics_ : ndarray of shape (n_clusters, n_topics)
        Expected topic shares of each cluster (theta).
    cluster_topic_params_ : ndarray of shape (n_clusters, n_topics)
        Parameters of their Dirichlet posteriors (gamma).
    bound_ : float
        Bound of the labels under the topics that the search used.
    icl_ : float
        The paper's criterion to choose n_clusters and n_topics, larger is better; it belongs to `bound_`.
    refit_bound_ : float
        Bound under `components_`; equal to `bound_` without `refit_topics`.
    bound_history_ : ndarray of shape (n_epochs_ + 1,)
        Bound at the best start, then after each of its epochs; it never decreases.
    n_epochs_ : int
        Epochs of the best start.
    converged_ : bool
        Whether no single move raises the bound any more.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

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
    components_: Array
    cluster_topics_: Array
    cluster_topic_params_: Array
    bound_: float
    icl_: float
    refit_bound_: float
    bound_history_: Array
    n_epochs_: int
    converged_: bool
    _mean_length: float

    def __init__(
        self,
        n_clusters: int = 8,
        n_topics: int = 5,
        *,
        topics: str | ArrayLike = "lda",
        topic_prior: float = 1.0,
        start: str | ArrayLike = "auto",
        n_init: int | str = "auto",
        algorithm: engine.Algorithm = "greedy",
        stabilize: str | None = None,
        max_epochs: int = 50,
        tol: float = 1e-10,
        refit_topics: bool = True,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_topics = n_topics
        self.topics = topics
        self.topic_prior = topic_prior
        self.start = start
        self.n_init = n_init
        self.algorithm = algorithm
        self.stabilize = stabilize
        self.max_epochs = max_epochs
        self.tol = tol
        self.refit_topics = refit_topics
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # --- fitting ------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: object = None, *, callback: Callback | None = None) -> Self:
        """Cluster the rows of a count matrix.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Non-negative whole numbers, no row without any.
        y : ignored
        callback : callable, optional
            Called after each block of a search with the number of the start and a `Progress`; a true answer stops the
            search as Ctrl-C does: the best state so far is kept, with a warning.

        Returns
        -------
        self
        """
        parameters = self.get_params(deep=False)
        constraints.check_parameters(parameters)
        # The data are checked in the name of another model, so that a refusal leaves this one as it was.
        checked = type(self)(**parameters)
        rows = checked._counts(X, reset=True)
        constraints.check_sizes(rows, self.n_clusters, self.n_topics)
        seeds = np.random.SeedSequence(check_random_state(self.random_state).randint(2**31)).spawn(2)
        beta = self._topics(rows, np.random.default_rng(seeds[0]))
        outcomes = starts.search_all(
            self._starts(rows, beta, seeds[1]),
            rows,
            beta=beta,
            alpha=float(self.topic_prior),
            n_clusters=self.n_clusters,
            n_threads=effective_n_jobs(self.n_jobs),
            search=partial(engine.search, algorithm=self.algorithm, max_epochs=self.max_epochs, tol=float(self.tol)),
            callback=self._watch(callback),
        )
        best = max(outcomes, key=lambda outcome: outcome.bound)  # the first of equals
        self._report(outcomes)
        attributes = vars(checked) | self._fitted(best, rows, beta)
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        for name, value in attributes.items():
            setattr(self, name, value)
        if any(outcome.run.interrupted for outcome in outcomes):
            warnings.warn(
                f"The search was interrupted after {len(outcomes)} of its starts had begun; the best state so far is "
                "kept, and converged_ tells whether it is a maximum.",
                InterruptedSearchWarning,
                stacklevel=2,
            )
        return self

    def _counts(self, X: Any, *, reset: bool) -> Counts:
        """Return X as counts, checked against what the model was fitted to, empty rows refused in fitting."""
        X = validate_data(
            self, X, reset=reset, accept_sparse=True, dtype=None, ensure_all_finite=False, ensure_min_samples=1
        )
        rows = as_counts(X, empty_rows="error" if reset else "allow")
        return square_root(rows) if self.stabilize == "sqrt" else rows

    def _topics(self, rows: Counts, rng: np.random.Generator) -> Array:
        """Return the topics that the search uses, (K, V)."""
        column_totals = rows.column_totals()
        if not isinstance(self.topics, str):
            return constraints.check_topics(self.topics, self.n_topics, column_totals)
        if self.topics == "random":
            beta = np.zeros((self.n_topics, rows.n_features))
            beta[:, column_totals > 0] = rng.dirichlet(np.ones((column_totals > 0).sum()), self.n_topics)
            return beta
        return learn_topics(rows, self.n_topics, rng=rng)

    def _starts(self, rows: Counts, beta: Array, seed: np.random.SeedSequence) -> list[starts.Start]:
        """Return the labels to start from, each with a generator of its own."""
        if not isinstance(self.start, str):
            labels = constraints.check_labels(self.start, rows.n_rows, self.n_clusters)
            return [starts.Start("given", labels, np.random.default_rng(seed))]
        n_init = self.n_init
        if isinstance(n_init, str):
            n_init = next((n for limit, n in AUTO_STARTS if rows.n_rows <= limit), AUTO_STARTS_LARGE)
        kinds = ["kmeans", "random"] if self.start == "auto" else [self.start]
        shares = topic_shares(rows, beta, prior=float(self.topic_prior)) if "kmeans" in kinds else None
        drawn = []
        for number, child in enumerate(seed.spawn(n_init)):
            rng, kind = np.random.default_rng(child), kinds[number % len(kinds)]
            if kind == "kmeans" and shares is not None:
                labels = starts.kmeans_labels(shares, self.n_clusters, rng)
            else:
                labels = starts.random_labels(rows.n_rows, self.n_clusters, rng)
            drawn.append(starts.Start(kind, labels, rng))
        return drawn

    def _fitted(self, best: starts.Outcome, rows: Counts, beta: Array) -> dict[str, Any]:
        """Return the fitted attributes of the best outcome."""
        state = engine.build(rows, best.labels, n_clusters=self.n_clusters, beta=beta, alpha=float(self.topic_prior))
        engine.relabel(state, best.labels, best.gamma)
        components, gamma, refit_bound = refit_topics(state) if self.refit_topics else (beta, state.gamma, best.bound)
        n_present = int((rows.column_totals() > 0).sum())
        sizes = {"n_clusters": self.n_clusters, "n_topics": self.n_topics, "n_samples": rows.n_rows}
        return {
            "labels_": best.labels,
            "weights_": state.sizes / rows.n_rows,
            "bound_": best.bound,
            "icl_": engine.icl(best.bound, **sizes, n_features=n_present),
            "bound_history_": np.array(best.run.bounds),
            "n_epochs_": best.run.n_epochs,
            "converged_": best.run.converged,
            "components_": components,
            "cluster_topic_params_": gamma,
            "cluster_topics_": gamma / gamma.sum(axis=1, keepdims=True),
            "refit_bound_": refit_bound,
            "_mean_length": float(rows.data.sum(dtype=np.int64) / rows.n_rows),
        }

    def _watch(self, callback: Callback | None) -> Callback | None:
        """Return the callback, reporting each epoch on the way where asked to."""
        if self.verbose < 2:
            return callback

        def watch(number: int, progress: engine.Progress) -> object:
            if progress.n_done == progress.n_rows:
                logger.info("start %d, epoch %d: %d moves", number + 1, progress.epoch, progress.n_moves)
            return callback(number, progress) if callback is not None else None

        return watch

    def _report(self, outcomes: list[starts.Outcome]) -> None:
        """Say where each start ended, where asked to."""
        if self.verbose:
            for number, outcome in enumerate(outcomes, start=1):
                logger.info(
                    "start %d (%s): bound %.3f after %d epochs",
                    number,
                    outcome.kind,
                    outcome.bound,
                    outcome.run.n_epochs,
                )

    # --- using the fit ------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return the most probable cluster of each row.

        New rows are weighed by `components_`, `cluster_topics_` and `weights_`; a row that was fitted may, if it is a
        borderline case, be predicted into another cluster than its label, because it does not pull its cluster with it.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            A row without counts falls into the largest cluster. Counts of features that never occurred in fitting are
            passed over.

        Returns
        -------
        labels : ndarray of int32, shape (n_samples,)
        """
        labels: NDArray[np.int32] = self._joint(X).argmax(axis=1).astype(np.int32)
        return labels

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each cluster for each row, shape (n_samples, n_clusters)."""
        return prediction.posterior(self._joint(X))

    def score(self, X: Any, y: object = None) -> float:
        """Return the mean log-likelihood of the rows, multinomial coefficients left out; larger is better."""
        return prediction.mean_log_likelihood(self._joint(X))

    def transform(self, X: Any) -> Array:
        """Return the rows in topic space: their expected topic shares, shape (n_samples, n_topics), sums one."""
        check_is_fitted(self)
        return topic_shares(self._counts(X, reset=False), self.components_, prior=float(self.topic_prior))

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
        lengths : int or array of shape (n_samples,), optional
            Totals of the rows; by default the mean total of the fitted rows.
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        X : csr_array of shape (n_samples, n_features)
            Counts; square roots of counts for a model with ``stabilize="sqrt"``.
        y : ndarray of shape (n_samples,)
            Cluster of each row.
        """
        check_is_fitted(self)
        from mmpca.simulate import simulate_mmpca  # only who draws pays for it

        drawn = simulate_mmpca(
            n_samples,
            topics=self.components_,
            cluster_topics=self.cluster_topics_,
            weights=self.weights_,
            lengths=max(1, round(self._mean_length)) if lengths is None else lengths,
            random_state=random_state,
        )
        return drawn.X, drawn.labels

    def _joint(self, X: Any) -> Array:
        """Return the joint log-likelihood of rows and clusters, (N, Q)."""
        check_is_fitted(self)
        rows = self._counts(X, reset=False)
        return prediction.joint_log_likelihood(rows, self.components_, self.cluster_topics_, self.weights_)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags
