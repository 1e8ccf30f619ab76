"""Mixture of multinomial PCA as a scikit-learn clusterer."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
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
from mmpca.blas import one_blas_thread
from mmpca.counts import Counts, as_counts, square_root
from mmpca.engine.refit import refit_topics
from mmpca.errors import InterruptedSearchWarning, OverdispersionWarning
from mmpca.model import constraints, explanation, files, prediction, starts
from mmpca.model.checkpoints import Checkpoint
from mmpca.model.dispersion import advice, overdispersion
from mmpca.model.messages import tell_of_starts, telling
from mmpca.model.searching import Common, Watch, expect, search
from mmpca.places import Here, Place, column_totals, group_sums, in_threads, threads
from mmpca.stages import Listener, Stages
from mmpca.topics import fit_lda_at, topic_shares

Array = NDArray[np.float64]
REFIT_STEPS = 200  # at the most


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
    start : {"auto", "random", "kmeans", "anneal"} or array of shape (n_samples,), default="auto"
        Labels that the search starts from: balanced at random, by k-means on the rows in topic space, by soft
        assignments that are cooled down, all of these in turn, or given.
    n_init : int or "auto", default="auto"
        Number of starts, the best bound is kept. By default at most 10 for up to 2,000 rows, 6 for up to 20,000, and 3
        for more, and no further when 3, 2 or 1 of them in a row were no better than the best before. Given labels
        make one start.
    algorithm : {"greedy", "exact", "cvem", "vbem"}, default="greedy"
        "greedy" screens the moves by second-order gains, settles close calls exactly, and merges and splits clusters
        where that raises the bound; "exact" evaluates every move of a row as published; "cvem" reassigns all rows with
        the parameters held fixed, then updates these; "vbem" gives every row a probability for each cluster, updates
        the topics as well (the model of Yu et al., 2005), and labels rows by the most probable cluster at the end.
    stabilize : {None, "sqrt"}, default=None
        "sqrt" fits and predicts rounded square roots of the counts, for overdispersed data.
    max_epochs : int, default=200
        Epochs of the search, in each of which every row is visited once; 0 evaluates the start.
    tol : float, default=1e-10
        A move must raise the bound by more than this share of its magnitude. With "vbem" an epoch must, by at least
        1e-7 of it.
    refit_topics : bool, default=True
        Re-estimate topics and topic shares on the final clusters, the labels held fixed. "vbem" has done so.
    n_jobs : int or None, default=None
        Threads, shared between the starts first and the rows of a block then; -1 means all cores. The result
        does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of topics, starts and the order of visits.
    verbose : int, default=0
        1 reports each start through the logger "mmpca", 2 each epoch as well; on standard error, unless logging has
        been set up.

    Attributes
    ----------
    labels_ : ndarray of int32, shape (n_samples,)
        Cluster of each row.
    weights_ : ndarray of shape (n_clusters,)
        Share of the rows in each cluster (pi); with "vbem", of the soft assignments.
    cluster_counts_ : ndarray of shape (n_clusters, n_features)
        Sums of the rows of each cluster; of square roots with ``stabilize="sqrt"``.
    components_ : ndarray of shape (n_topics, n_features)
        Topics (beta), re-estimated with `refit_topics`. Features that never occur have probability zero, unless
        `topics` were given with another and are not re-estimated.
    cluster_topics_ : ndarray of shape (n_clusters, n_topics)
        Expected topic shares of each cluster (theta).
    cluster_topic_params_ : ndarray of shape (n_clusters, n_topics)
        Parameters of their Dirichlet posteriors (gamma).
    bound_ : float
        Bound of the labels under the topics that the search used; for "vbem", of the soft assignments, which does not
        compare with that of labels.
    icl_ : float
        The paper's criterion to choose n_clusters and n_topics, larger is better; it belongs to `bound_`.
    refit_bound_ : float
        Bound under `components_`; equal to `bound_` without `refit_topics`.
    bound_history_ : ndarray of shape (n_epochs_ + 1,)
        Bound at the best start, then after each of its epochs; it never decreases.
    n_epochs_ : int
        Epochs of the best start.
    converged_ : bool
        Whether the last epoch changed nothing: for "greedy" and "exact", no single move raises the bound; for "cvem",
        no row fits another cluster better with the parameters held fixed; for "vbem", the bound rises by less than
        `tol`.
    starts_ : list of StartReport
        Kind, seed, bound, n_epochs, converged and seconds of each start.
    overdispersion_ : float
        Variance of the counts around their clusters as a multiple of what the model predicts, about 1 if it holds. See
        `stabilize` where it is large.
    cluster_overdispersion_ : ndarray of shape (n_clusters,)
        The same for each cluster.
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
    cluster_counts_: Array
    components_: Array
    cluster_topics_: Array
    cluster_topic_params_: Array
    bound_: float
    icl_: float
    refit_bound_: float
    bound_history_: Array
    n_epochs_: int
    converged_: bool
    starts_: list[starts.StartReport]
    overdispersion_: float
    cluster_overdispersion_: Array
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
        algorithm: starts.Algorithm = "greedy",
        stabilize: str | None = None,
        max_epochs: int = 200,
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

    def fit(
        self,
        X: Any,
        y: object = None,
        *,
        callback: starts.Callback | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        on_stage: Listener | None = None,
    ) -> Self:
        """Cluster the rows of a count matrix.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Non-negative whole numbers, no row without any.
        y : ignored
        callback : callable, optional
            Called after each block of a search with the number of the start and a `Progress`; a true answer stops the
            search as Ctrl-C does: the best state so far is kept, with a warning.
        checkpoint : path, optional
            A file for the topics, and of a greedy search of more than 50,000 rows for the labels after each epoch.
            If it is there already, the fit goes on from it: to a maximum of the bound, if by another way than
            without a break. The file of other data or parameters is refused.
        on_stage : callable, optional
            Called again and again with a `Stage`: name, text, share of the whole fit that is done, and about how many
            seconds are left, None while there is too little to go by. The result does not depend on it.

        Returns
        -------
        self
        """
        # The data are checked in the name of another model, so that a refusal leaves this one as it was.
        checked = type(self)(**self.get_params(deep=False))
        rows = checked.checked_counts(X)
        place, parameters = Here(rows), self.get_params(deep=False)
        kept = None if checkpoint is None else Checkpoint.of_fit(checkpoint, parameters, place)
        return self.fit_at(place, attributes=vars(checked), callback=callback, checkpoint=kept, on_stage=on_stage)

    def fit_at(
        self,
        place: Place,
        *,
        attributes: Mapping[str, Any],
        callback: starts.Callback | None = None,
        checkpoint: Checkpoint | None = None,
        on_stage: Listener | None = None,
    ) -> Self:
        """Cluster rows wherever they are; for those who know such places, as `mmpca.distributed` does.

        Parameters
        ----------
        place : Place
            Counts that have been checked, square roots with `stabilize`.
        attributes : mapping of str to value
            What checking the data has found: `n_features_in_`, `feature_names_in_`.
        callback : callable, optional
            As in :meth:`fit`.
        checkpoint : Checkpoint, optional
            Where topics and labels are kept, and known from an earlier fit that did not end.
        on_stage : callable, optional
            As in :meth:`fit`.

        Returns
        -------
        self
        """
        seeds = np.random.SeedSequence(check_random_state(self.random_state).randint(2**31)).spawn(2)
        plan = self._plan(place.n_rows)
        planned = self._starts(plan.n_starts, place.n_rows, place.n_features, seeds[1])
        stages = Stages(on_stage)
        expect(
            stages, place, n_clusters=self.n_clusters, n_topics=self.n_topics, algorithm=self.algorithm,
            kinds=[start.kind for start in planned], patience=plan.patience, refits=self._refits,
        )  # fmt: skip
        learn = partial(self._topics, place, np.random.default_rng(seeds[0]), stages)
        on_epoch = None if checkpoint is None else checkpoint.keep
        watch = Watch(effective_n_jobs(self.n_jobs), telling(callback, self.verbose), on_epoch, stages)
        with one_blas_thread():
            beta = learn() if checkpoint is None else checkpoint.topics(learn)
            if checkpoint is not None and checkpoint.labels is not None:
                planned = [starts.Start("checkpoint", planned[0].seed, checkpoint.labels)]
            outcomes, is_interrupted = search(
                place,
                self._common(beta),
                planned,
                plan.patience,
                seed=int(seeds[1].generate_state(1)[0]),
                watch=watch,
            )
        # Of many rows the starts were tried on some of them; their bounds are not comparable with the last one.
        best = starts.best_of([outcome for outcome in outcomes if len(outcome.labels) == place.n_rows])
        if self.verbose:
            tell_of_starts(outcomes)
        counts = place.total(group_sums, np.arange(place.n_rows), best.labels, shared=(self.n_clusters,))
        refitted = best.beta, best.gamma, best.bound
        try:
            refitted = self._refitted(best, counts, stages)
        except KeyboardInterrupt:  # what the search found is not lost
            is_interrupted = True
        stages.begin("dispersion", "overdispersion")
        with one_blas_thread(), threads(effective_n_jobs(self.n_jobs)) as pool:
            fitted = dict(attributes) | self._fitted(best, place.using(in_threads(pool)), counts, refitted)
        fitted["starts_"] = [starts.report(outcome) for outcome in outcomes]
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        for name, value in fitted.items():
            setattr(self, name, value)
        stages.end()
        self._warn(is_interrupted, len(outcomes))
        return self

    def checked_counts(self, X: Any) -> Counts:
        """Return data as counts that this model can be fitted to, or say why not; square roots with `stabilize`."""
        constraints.check_parameters(self.get_params(deep=False))
        rows = self._counts(X, reset=True)
        constraints.check_sizes(rows, self.n_clusters, self.n_topics)
        return rows

    def _counts(self, X: Any, *, reset: bool) -> Counts:
        """Return X as counts, checked against what the model was fitted to, empty rows refused in fitting."""
        X = validate_data(
            self, X, reset=reset, accept_sparse=True, dtype=None, ensure_all_finite=False, ensure_min_samples=1
        )
        rows = as_counts(X, empty_rows="error" if reset else "allow")
        return square_root(rows) if self.stabilize == "sqrt" else rows

    def _topics(self, place: Place, rng: np.random.Generator, stages: Stages) -> Array:
        """Return the topics that the search uses, (K, V)."""
        if isinstance(self.topics, str) and self.topics == "lda":
            n_threads = effective_n_jobs(self.n_jobs)
            return fit_lda_at(place, self.n_topics, rng=rng, n_threads=n_threads, stages=stages).beta
        totals = place.total(column_totals, np.arange(place.n_rows))
        if not isinstance(self.topics, str):
            return constraints.check_topics(self.topics, self.n_topics, totals)
        beta = np.zeros((self.n_topics, place.n_features))
        beta[:, totals > 0] = rng.dirichlet(np.ones((totals > 0).sum()), self.n_topics)
        return beta

    def _plan(self, n_samples: int) -> starts.Plan:
        """Return how many starts to make at the most, and when to stop before."""
        if not isinstance(self.start, str):
            return starts.Plan(1, 1)
        return starts.auto_plan(n_samples) if isinstance(self.n_init, str) else starts.Plan(self.n_init, self.n_init)

    def _starts(
        self, n_starts: int, n_samples: int, n_features: int, seed: np.random.SeedSequence
    ) -> list[starts.Start]:
        """Return the starts, each with a seed of its own."""
        seeds = [int(word) for word in seed.generate_state(n_starts)]
        if not isinstance(self.start, str):
            labels = constraints.check_labels(self.start, n_samples, self.n_clusters)
            return [starts.Start("given", seeds[0], labels)]
        kinds: tuple[str, ...] = (self.start,)
        if self.start == "auto":
            kinds = starts.auto_kinds(n_samples, int(self.n_clusters) * int(self.n_topics) * n_features)
        return [starts.Start(kinds[number % len(kinds)], word) for number, word in enumerate(seeds)]

    def _common(self, beta: Array) -> Common:
        """Return what all starts have in common."""
        return Common(beta, float(self.topic_prior), self.n_clusters, self.algorithm, self.max_epochs, float(self.tol))

    def _fitted(
        self, best: starts.Outcome, place: Place, counts: Array, refitted: tuple[Array, Array, float]
    ) -> dict[str, Any]:
        """Return the fitted attributes of the best outcome."""
        components, gamma, refit_bound = refitted
        cluster_topics = gamma / gamma.sum(axis=1, keepdims=True)
        dispersion = overdispersion(place, best.labels, topics=components, cluster_topics=cluster_topics)
        n_present = int((counts.sum(axis=0) > 0).sum())
        sizes = {"n_clusters": self.n_clusters, "n_topics": self.n_topics, "n_samples": place.n_rows}
        return {
            "labels_": best.labels,
            "cluster_counts_": counts,
            "weights_": best.weights,
            "bound_": best.bound,
            "icl_": engine.icl(best.bound, **sizes, n_features=n_present),
            "bound_history_": np.array(best.run.bounds),
            "n_epochs_": best.run.n_epochs,
            "converged_": best.run.converged,
            "components_": components,
            "cluster_topic_params_": gamma,
            "cluster_topics_": cluster_topics,
            "refit_bound_": refit_bound,
            "overdispersion_": dispersion.overall,
            "cluster_overdispersion_": dispersion.clusters,
            "_mean_length": float(counts.sum() / place.n_rows),
        }

    @property
    def _refits(self) -> bool:
        """Whether topics are re-estimated at the end: soft assignments have updated them on the way."""
        return self.refit_topics and self.algorithm != "vbem"

    def _refitted(self, best: starts.Outcome, counts: Array, stages: Stages) -> tuple[Array, Array, float]:
        """Return topics, gamma and their bound, re-estimated on the final clusters where asked to."""
        if not self._refits:
            return best.beta, best.gamma, best.bound
        sizes = np.bincount(best.labels, minlength=self.n_clusters)
        state = engine.of_sums(counts, sizes, beta=best.beta, alpha=float(self.topic_prior), gamma=best.gamma)
        stages.begin("refit", "topics of the clusters, step {step} of at most {n_steps}", REFIT_STEPS)
        n_threads = effective_n_jobs(self.n_jobs)
        components, gamma, bound = refit_topics(state, max_iter=REFIT_STEPS, n_threads=n_threads, stages=stages)
        return components, gamma, max(bound, best.bound)  # rounding

    def _warn(self, is_interrupted: bool, n_starts: int) -> None:
        """Warn of an interruption, and of data that the model does not fit."""
        if is_interrupted:
            warnings.warn(
                f"The search was interrupted after {n_starts} of its starts had begun; the best state so far is "
                "kept, and converged_ tells whether it is a maximum.",
                InterruptedSearchWarning,
                stacklevel=3,
            )
        if (message := advice(self.overdispersion_, stabilize=self.stabilize)) is not None:
            warnings.warn(message, OverdispersionWarning, stacklevel=3)

    # --- using the fit ------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return the most probable cluster of each row.

        New rows are weighed by `components_`, `cluster_topics_` and `weights_`; a row that was fitted may, if it is a
        borderline case, be predicted into another cluster than its label, because it does not pull its cluster with it.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            A row without counts falls into the largest cluster. Counts of features that no topic knows, because they
            never occurred in fitting, are passed over.

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

    def merge_path(self) -> engine.MergePath:
        """Merge the clusters pairwise, each time the two whose merge costs the bound least, down to one.

        The topics are `components_`, held fixed; the bound at the full number of clusters is `refit_bound_`, except
        with "vbem", whose own bound is of another kind.

        Returns
        -------
        MergePath
            `linkage` of shape (n_clusters - 1, 4) for :func:`scipy.cluster.hierarchy.dendrogram`, `bounds` of 1, 2, ...
            clusters, and `groups(n)`, the group of each cluster when n are left: ``path.groups(3)[model.labels_]``
            are labels of three clusters.
        """
        check_is_fitted(self)
        sizes = np.bincount(self.labels_, minlength=self.n_clusters)
        return engine.merge_path(
            engine.of_sums(self.cluster_counts_, sizes, beta=self.components_, alpha=float(self.topic_prior))
        )

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

    def explain(
        self,
        X: Any,
        rows: ArrayLike | None = None,
        *,
        labels: ArrayLike | None = None,
        n_features: int = 10,
        gains: bool | None = None,
    ) -> list[explanation.Explanation]:
        """Tell why rows are in their clusters: odds and gains of the alternatives, and what speaks for and against.

        Odds take the parameters of the fit as they are; a row that was fitted has pulled its cluster with it a little,
        so that its own cluster looks somewhat better than to a new row. Gains are changes of the bound with everything
        maximised anew: of moving the row where X is what was fitted, else of adding it here rather than there.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            With all rows that were fitted, in their order, these are known again.
        rows : array of int, optional
            Numbers of the rows to explain; all by default.
        labels : array of int, shape (n_samples,), optional
            Clusters to explain. By default `labels_` for the X that was fitted, the most probable ones for others.
        n_features : int, default=10
            Features to list on each side at the most.
        gains : bool, optional
            Whether to compute gains, which takes a maximisation for each row and cluster. By default if `rows` are
            named.

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
        with_gains = rows is not None if gains is None else bool(gains)
        mixture = explanation.mixture_of(self)
        return explanation.explain(
            counts, mixture, rows=rows, labels=labels, n_features=n_features, with_gains=with_gains
        )

    def save(self, path: str | os.PathLike[str], *, text: Mapping[str, Any] | None = None) -> None:
        """Write the fitted model to a file that :func:`mmpca.load` reads; docs/model-file.md describes it.

        The file takes the place of an older one at a stroke: a crash in the middle leaves that as it was. All
        parameters and fitted attributes are kept, but for a `random_state` that is not an int: it becomes None.

        Parameters
        ----------
        path : path
            By custom with the ending ``.mmpca``.
        text : mapping, optional
            How texts became counts, as :meth:`mmpca.text.CountTexts.settings` tells it, to be kept with the model.
        """
        files.save(self, path, text=text)

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
