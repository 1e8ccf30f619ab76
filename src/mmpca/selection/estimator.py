"""The search for the numbers of clusters and topics as a scikit-learn estimator."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from itertools import pairwise
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from mmpca.backend import LocalRows, one_blas_thread, open_threads
from mmpca.counts import Counts, Units
from mmpca.errors import InterruptedSearchWarning, OverdispersionWarning, SuspiciousCountsWarning, warn
from mmpca.model import MMPCA
from mmpca.model.callbacks import CallbackSupportMixin, callback_of, with_callbacks
from mmpca.model.dispersion import LARGE_INDEX, Bursts
from mmpca.model.inspection import pooled_overdispersion
from mmpca.monitor import Callback, Monitor
from mmpca.parameters import N_JOBS, NONE, VERBOSE, Rule, check_parameters, either, integer, is_integer, one_of
from mmpca.selection import criteria, held_out, mixture
from mmpca.selection.grid import CellFit, CellOptions, Grid, GridFit, TopicFit, fresh_cell, learn, remember
from mmpca.store import Store
from mmpca.topics.lda import sample_rows

Array = NDArray[np.float64]

AUTO_FOLDS = 5
RESAMPLED_SHARE = 0.8  # share of the rows in a resample, drawn without replacement
SCHEMA = 8  # of a store's parts
N_NEIGHBORS = 2  # numbers of clusters on each side of the chosen one whose splits are kept
AUTO_CLUSTERS, AUTO_TOPICS = range(2, 9), range(2, 6)  # of the criteria that need a grid
AUTO_RESAMPLES = 5
HELD_OUT_ENTRIES = 250_000  # nonzero entries of the rows that choose the number of topics
MIXTURE_CELLS = 12_000  # rows times topics of the mixtures that choose the number of clusters
LEAST_MIXTURE_ROWS = 1500
PILOT_STARTS = 4  # of the fit whose variance factors all cells share, if n_init="auto"
PILOT_ROWS = 20  # for each cluster of the model that chooses a dispersion
EXPLAIN = {
    "schema": "it was written by another version of mmpca",
    "mmpca": "it was written by another version of mmpca, whose results may differ",
    "data": "its counts differ from these (for texts, check that the same words are counted)",
    "seed": "its random_state (--seed) differs; to resume a search, use the same number each time",
}
# The models check the parameters that they share with the search.
RULES = {
    "criterion": one_of(*criteria.CRITERIA),
    "n_init": either(one_of("auto"), integer(1)),
    "n_folds": either(one_of("auto"), Rule(lambda value: is_integer(value, 0) and value != 1, "0 or at least 2")),
    "n_resamples": either(one_of("auto"), integer(0)),
    "n_jobs": N_JOBS,
    "store": Rule(lambda value: value is None or isinstance(value, str | os.PathLike), "a folder or None"),
    "verbose": either(NONE, VERBOSE),
}


class MMPCASearch(CallbackSupportMixin, ClusterMixin, BaseEstimator):
    """Choose the numbers of clusters and topics.

    By default, the number of topics is increased from one for as long as held-out features are predicted clearly
    better, and then the number of clusters for as long as a mixture that lets rows of one cluster differ fits clearly
    better. Clusters that are not found again in resamples of the rows are not counted. One model is fitted, with the
    numbers chosen.

    Parameters
    ----------
    n_clusters : "auto" or iterable of int, default="auto"
        Numbers of clusters to try, in ascending order; gaps are allowed. "auto" starts at one and stops on its own.
        There are never more independent topics than clusters: the profiles of Q clusters have rank Q at most.
    n_topics : "auto" or iterable of int, default="auto"
        Numbers of topics to try, in ascending order.
    criterion : {"shares", "predictive", "icl"}, default="shares"
        "shares" chooses the smallest number of topics within one standard error of the best prediction of held-out
        features, and then the number of clusters by the BIC of a mixture over the rows' topic proportions. "predictive"
        and "icl" fit every combination of the numbers, by default 2 to 8 clusters and 2 to 5 topics, and assume that
        the rows of a cluster differ by multinomial noise alone: "predictive" by held-out counts and a penalized bound,
        "icl" as in the paper.
    n_init : int or "auto", default="auto"
        Number of fresh starts of each cell. "auto" makes at most 4, and stops after 2 in a row without progress. With
        "shares", the model starts from the clusters that were compared, and "auto" adds no other starts.
    topic_prior : float, default=1.0
        As in :class:`~mmpca.MMPCA`.
    dispersion : {"auto", "multinomial", "shares", "polya"}, default="auto"
        As in :class:`~mmpca.MMPCA`. "polya", and "auto" if the counts of all rows are overdispersed, fit the largest
        numbers of clusters and topics first; all cells then share the variance factors of this fit, which makes their
        bounds comparable.
    stabilize : {None, "sqrt"}, default=None
        As in :class:`~mmpca.MMPCA`.
    max_epochs : int, default=200
        As in :class:`~mmpca.MMPCA`.
    tol : float, default=1e-10
        As in :class:`~mmpca.MMPCA`.
    n_folds : int or "auto", default="auto"
        Number of folds that compare numbers of topics. For "shares", each holds out a fifth of the rows, and "auto"
        means 5, or 1 for large data; at most 5. For "predictive", every count is predicted from the other folds, and
        "auto" means 5. For "icl", "auto" means 0: no counts are predicted.
    n_resamples : int or "auto", default="auto"
        Number of random samples of 80% of the rows. With "shares", the mixture is fitted to each of them, and only
        clusters found again in at least four fifths of them are counted; "auto" means 5. With the other criteria, the
        whole search is repeated to see how often each cell wins; "auto" means 0.
    n_jobs : int or None, default=None
        Number of cells fitted in parallel by joblib: in processes, or on the backend chosen by
        :func:`joblib.parallel_config`. With a Dask client, ``with joblib.parallel_config("dask"): search.fit(X)`` fits
        the cells on its cluster; the counts are sent once for each of the three stages, and only this process writes
        to `store`. The results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the topics, folds and starts. Resuming from a `store` requires the same number.
    store : path or None, default=None
        Folder that keeps the finished cells. A second run with the same data and options resumes where the first was
        interrupted or killed, and gives the same results.
    verbose : int or None, default=None
        None shows progress if the search takes more than two seconds, on a terminal or in a notebook. 0 shows nothing,
        1 reports progress to the logger "mmpca".

    Attributes
    ----------
    results_ : dict of ndarray
        With "shares", one entry for each number of clusters at the chosen number of topics: `n_clusters`, `n_topics`,
        `shares` (the criterion), `shares_error` (standard error of its distance from the best one, over rows),
        `chosen` (1 for the choice), `n_stable` (clusters that at least four fifths of the resamples found again,
        -1 if not examined) and `n_resamples`. With the other criteria, one entry for each cell: `n_clusters`,
        `n_topics`, `bound`, `icl`, `cluster_score`, `n_epochs`, `converged`, `kind` and `seed` of the best start, and
        `seconds`. If counts were held out, also `held_out` (mean log-likelihood of a held-out count), `predictive`, and
        `predictive_error` (standard error of the loss of this number of topics against the best one, in nats). With
        `n_resamples`, also `wins` (share of the resamples that the cell won). ``pandas.DataFrame(search.results_)``
        turns it into a table.
    topic_results_ : dict of ndarray
        With "shares", one entry for each number of topics: `n_topics`, `held_out` (mean log-likelihood of a predicted
        count), `loss` against the best number and its standard `error`, in nats.
    choice_ : Choice
        With "shares": `plateau`, the smallest and the largest number of clusters that the data do not rule out,
        `is_determined`, `strength`, and `best`, the number with the best criterion before resampling.
    best_params_ : dict
        `n_clusters` and `n_topics` of the best cell.
    best_score_ : float
        Criterion of the best cell.
    best_estimator_ : MMPCA
        Model of the best cell.
    runner_up_ : dict or None
        `n_clusters` and `n_topics` of the second best cell.
    gap_ : float
        Difference between the criteria of the best and the second best cell, in nats.
    reason_ : str
        The choice, and the strength of the evidence, in words.
    labels_ : ndarray of int32, shape (n_samples,)
        Labels of the best cell.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has names.

    See Also
    --------
    mmpca.MMPCA : The model of a single cell.

    Examples
    --------
    >>> from mmpca import MMPCASearch
    >>> from mmpca.simulate import paper_design
    >>> data = paper_design(n_samples=200, random_state=0)
    >>> search = MMPCASearch(random_state=0).fit(data.X)
    >>> search.best_params_
    {'n_clusters': 6, 'n_topics': 4}
    """

    results_: dict[str, NDArray[Any]]
    topic_results_: dict[str, NDArray[Any]]
    choice_: criteria.Choice
    best_params_: dict[str, int]
    best_score_: float
    best_estimator_: MMPCA
    runner_up_: dict[str, int] | None
    gap_: float
    reason_: str
    labels_: NDArray[np.int32]

    def __init__(
        self,
        n_clusters: str | Iterable[int] = "auto",
        n_topics: str | Iterable[int] = "auto",
        *,
        criterion: str = "shares",
        n_init: int | str = "auto",
        topic_prior: float = 1.0,
        dispersion: str = "auto",
        stabilize: str | None = None,
        max_epochs: int = 200,
        tol: float = 1e-10,
        n_folds: int | str = "auto",
        n_resamples: int | str = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        store: str | os.PathLike[str] | None = None,
        verbose: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_topics = n_topics
        self.criterion = criterion
        self.n_init = n_init
        self.topic_prior = topic_prior
        self.dispersion = dispersion
        self.stabilize = stabilize
        self.max_epochs = max_epochs
        self.tol = tol
        self.n_folds = n_folds
        self.n_resamples = n_resamples
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.store = store
        self.verbose = verbose

    # --- fitting ------------------------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: Any, y: object = None, *, callback: Callback | None = None) -> Self:
        """Choose the numbers, and fit the model with them.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Counts: non-negative whole numbers; no row may be empty.
        y : None
            Ignored.
        callback : callable, optional
            Called with a :class:`~mmpca.monitor.Progress` at the beginning of each stage ("topics", "clusters",
            "resamples" and "cells", or "topics", "cells", "neighbors" and "resamples" for a grid) and after each of its
            steps. If it returns a true value, the search stops and chooses among the finished results. A grid search
            also does so after Ctrl-C.

        Returns
        -------
        self : MMPCASearch
            The fitted search.

        Raises
        ------
        StoreError
            If the folder `store` cannot be written to, or belongs to a search with other data or options.

        Warns
        -----
        InterruptedSearchWarning
            If the search was interrupted; only finished results are compared.
        SuspiciousCountsWarning
            As in :meth:`mmpca.MMPCA.fit`.
        """
        self._check_parameters()
        is_grid = self.criterion != "shares"
        n_clusters = _check_numbers(self.n_clusters, "n_clusters", AUTO_CLUSTERS if is_grid else None)
        n_topics = _check_numbers(self.n_topics, "n_topics", AUTO_TOPICS if is_grid else None)
        least = [
            1 if isinstance(given, str) else largest
            for given, largest in ((self.n_clusters, (n_clusters or (1,))[-1]), (self.n_topics, (n_topics or (1,))[-1]))
        ]
        counts = self._model(*least).checked_counts(X)
        n_clusters, n_topics = _within(n_clusters, counts.n_rows), _within(n_topics, counts.n_features)
        seed = int(check_random_state(self.random_state).randint(2**31))
        monitor = Monitor(callback_of(self, callback), verbose=self.verbose)
        pilot = self._pilot(n_clusters, n_topics, counts, seed)
        rows = (Units(self.stabilize) if pilot is None else pilot.units).convert(counts)
        store = self._store(rows, seed)
        if is_grid:
            assert n_clusters is not None
            assert n_topics is not None
            self._fit_grid(Grid(rows, n_clusters, n_topics, self._options(seed), store), X, counts, pilot, monitor)
        else:
            with one_blas_thread():
                self._fit_shares(rows, n_clusters, n_topics, self._options(seed), store, X, counts, pilot, monitor)
        return self

    def _fit_grid(self, grid: Grid, X: Any, counts: Counts, pilot: MMPCA | None, monitor: Monitor) -> None:
        """Fit all cells of a grid and choose the best."""
        rows = grid.rows
        found = grid.fit(self.n_jobs, monitor)
        results = self._results(found, rows)
        n_resamples = 0 if isinstance(self.n_resamples, str) else int(self.n_resamples)
        if n_resamples and found.is_complete:
            results["wins"] = self._wins(grid, results, n_resamples, monitor)
        score = results[self.criterion]
        order = np.argsort(-score, kind="stable")
        q, k = int(results["n_clusters"][order[0]]), int(results["n_topics"][order[0]])
        words = criteria.reason(results, self.criterion, (counts.n_rows, counts.n_features))
        self._set_best(results, order, words, (found.topics[k].beta, found.cells[q, k]), X, counts, pilot)
        self._keep_history(
            found.cells[q, k], {n: cell.labels for (n, topics), cell in found.cells.items() if topics == k}
        )
        monitor.end()
        if not found.is_complete:
            n_cells = len(grid.n_clusters) * len(grid.n_topics)
            warn(
                f"The search was interrupted. {len(found.cells)} of {n_cells} cells are compared, and not all of them "
                "were improved from their neighbors.",
                InterruptedSearchWarning,
            )

    def _fit_shares(
        self,
        rows: Counts,
        n_clusters: tuple[int, ...] | None,
        n_topics: tuple[int, ...] | None,
        options: CellOptions,
        store: Store,
        X: Any,
        counts: Counts,
        pilot: MMPCA | None,
        monitor: Monitor,
    ) -> None:
        """Choose the number of topics, then that of clusters, and fit one model."""
        tried = self._try_topics(rows, n_topics, options, store, monitor)
        k, was_stopped = held_out.simplest(tried), monitor.is_stopped
        topics = remember(store, f"topics-{k}", TopicFit, lambda: learn(rows, options, k))
        # Clusters: a sample of the rows is enough, whose number shrinks as that of the topics grows.
        rng = np.random.default_rng([options.seed, k, 1])
        n_rows = min(rows.n_rows, max(LEAST_MIXTURE_ROWS, MIXTURE_CELLS // k))
        at = np.arange(n_rows) if n_rows == rows.n_rows else np.sort(rng.permutation(rows.n_rows)[:n_rows])
        some = rows if n_rows == rows.n_rows else rows.take(at)
        factor = mixture.noise_factor(some, topics.beta, np.random.default_rng([options.seed, k, 3]))
        topic_counts = mixture.topic_counts(some, topics.beta, factor)
        monitor.begin("clusters", "comparing numbers of clusters", 0 if n_clusters is None else len(n_clusters))
        path = mixture.mixture_path(topic_counts, rng, n_clusters, monitor)
        numbers, score = np.array(list(path)), np.array([one.bic for one in path.values()])
        best = criteria.simplest_number(numbers, score)
        found_again = self._resample(topic_counts, path[best].labels, options.seed, monitor) if best > 1 else []
        n_stable = criteria.n_reproducible(np.array(found_again) >= mixture.FOUND) if found_again else None
        most = (counts.n_rows, counts.n_features)
        losses = held_out.losses(tried)
        choice = criteria.choose({"n_clusters": numbers, "shares": score}, losses, k, n_stable, len(found_again), most)
        results: dict[str, NDArray[Any]] = {
            "n_clusters": numbers,
            "n_topics": np.full(len(numbers), k),
            "shares": score,
            "shares_error": mixture.errors_against(int(numbers[score.argmax()]), path),
            "chosen": (numbers == choice.n_clusters).astype(np.int64),
            "n_stable": np.where(numbers == best, -1 if n_stable is None else n_stable, -1),
            "n_resamples": np.full(len(numbers), len(found_again)),
        }
        every = topic_counts if some is rows else mixture.topic_counts(rows, topics.beta, factor)
        own = np.random.default_rng([options.seed, k, 4])
        labels = mixture.labels_of(every, path[choice.n_clusters], own)
        # One cluster has a single profile, whatever its topics.
        if choice.n_clusters == 1 and n_topics is None and k > 1:
            choice = choice._replace(n_topics=1, by_topics=criteria.Support("", None, ""))
            results["n_topics"][numbers == 1] = 1
            topics = remember(store, "topics-1", TopicFit, lambda: learn(rows, options, 1))
        monitor.begin("cells", "fitting the model", 1)
        q, k = choice.n_clusters, choice.n_topics
        start = hashlib.sha256(labels.tobytes()).hexdigest()[:8]  # it depends on the numbers that were compared
        cell = remember(store, f"cell-{q}-{k}-{start}", CellFit, lambda: fresh_cell(rows, options, topics, q, labels))
        monitor.step()
        order = np.concatenate([np.flatnonzero(numbers == q), [c for c in np.argsort(-score) if numbers[c] != q]])
        words = criteria.describe(choice)
        self._set_best(results, order.astype(int), words, (topics.beta, cell), X, counts, pilot)
        self.best_params_ = {"n_clusters": q, "n_topics": k}
        self.choice_ = choice
        self.topic_results_ = {
            "n_topics": np.array(list(tried)),
            "held_out": np.array([one.by_row.sum() / max(1, one.n_counts) for one in tried.values()]),
            "loss": np.array([loss for loss, _ in losses.values()]),
            "error": np.array([error for _, error in losses.values()]),
        }
        self._keep_history(cell, {n: one.labels for n, one in path.items()}, at)
        monitor.end()
        if was_stopped or monitor.is_stopped:
            warn(
                f"The search was interrupted. Only {_listed(tried)} topics and {_listed(path)} clusters were compared.",
                InterruptedSearchWarning,
            )

    def _try_topics(
        self, rows: Counts, n_topics: tuple[int, ...] | None, options: CellOptions, store: Store, monitor: Monitor
    ) -> dict[int, held_out.HeldOut]:
        """Return how well numbers of topics predict held-out features: the given ones, or as many as it takes."""
        tried: dict[int, held_out.HeldOut] = {}
        if n_topics is not None and len(n_topics) == 1:  # nothing to compare
            return {n_topics[0]: held_out.HeldOut(np.zeros(1), 0, 1.0, 1.0, 1.0, np.zeros(1, dtype=int))}
        rng = np.random.default_rng([options.seed, 0])
        some = rows.take(sample_rows(np.diff(rows.indptr), HELD_OUT_ENTRIES, rng))
        auto = held_out.N_PARTS if some.nnz <= held_out.SMALL else 1
        n_folds = auto if isinstance(self.n_folds, str) else min(int(self.n_folds), held_out.N_PARTS)
        folds = held_out.make_folds(some, n_folds, rng)
        monitor.begin("topics", "comparing numbers of topics", 0 if n_topics is None else len(n_topics))
        largest = min(some.n_features, folds[0].fitted.n_rows)
        with open_threads(effective_n_jobs(self.n_jobs)) as threads:
            for k in held_out.numbers_to_try(tried, largest) if n_topics is None else n_topics:
                if tried and monitor.is_stopped:
                    break
                before = tried[max(tried)] if tried else None
                own = np.random.default_rng([options.seed, k])
                path = hashlib.sha256(repr(tuple(tried)).encode()).hexdigest()[:8]  # priors come from numbers before
                tried[k] = remember(
                    store,
                    f"held-out-{path}-{k}",
                    held_out.HeldOut,
                    lambda: held_out.hold_out(folds, k, before, own, threads),  # noqa: B023
                )
                monitor.step()
        return tried

    def _resample(self, counts: Array, labels: NDArray[np.int32], seed: int, monitor: Monitor) -> list[Array]:
        """Return how well each resample reproduces each cluster, (Q,) each."""
        n_resamples = AUTO_RESAMPLES if isinstance(self.n_resamples, str) else int(self.n_resamples)
        found: list[Array] = []
        monitor.begin("resamples", "looking for the same clusters in parts of the rows", n_resamples)
        for number in range(n_resamples):
            if monitor.is_stopped:
                break
            found.append(mixture.found_again(counts, labels, np.random.default_rng([seed, number, 2])))
            monitor.step()
        return found

    def _check_parameters(self) -> None:
        check_parameters(self.get_params(deep=False), RULES)
        if self.criterion != "icl" and not isinstance(self.n_folds, str) and self.n_folds == 0:
            raise ValueError(
                f"n_folds must be at least 2 for criterion={self.criterion!r}, which predicts held-out counts, but it "
                "is 0. "
                'Use n_folds="auto", or criterion="icl".'
            )

    def _pilot(
        self, n_clusters: tuple[int, ...] | None, n_topics: tuple[int, ...] | None, counts: Counts, seed: int
    ) -> MMPCA | None:
        """Fit the largest model if its variance factors, or the choice of a dispersion, are needed by all cells.

        No choice is needed if the overdispersion of all rows as a single cluster does not exceed `LARGE_INDEX`, because
        clusters explain some of the variation.
        """
        if self.dispersion not in ("polya", "auto"):
            return None
        if self.dispersion == "auto" and (
            self.stabilize is not None or not pooled_overdispersion(counts) > LARGE_INDEX
        ):
            return None
        # Clusters of a few rows would not show which variance model is right.
        auto = max(2, min(AUTO_CLUSTERS[-1], counts.n_rows // PILOT_ROWS))
        largest = auto if n_clusters is None else n_clusters[-1]
        most_topics = min(AUTO_TOPICS[-1], largest) if n_topics is None else n_topics[-1]
        model = self._model(min(largest, counts.n_rows), min(most_topics, counts.n_features))
        model.set_params(
            topics="lda", random_state=seed, n_init=PILOT_STARTS if isinstance(self.n_init, str) else self.n_init
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OverdispersionWarning)  # issued by the best model
            return model.fit_rows(LocalRows(counts), attributes={"n_features_in_": counts.n_features})

    def _model(self, n_clusters: int, n_topics: int, **parameters: Any) -> MMPCA:
        """Return an unfitted model with the parameters that all cells share."""
        names = ("topic_prior", "dispersion", "stabilize", "max_epochs", "tol")
        shared = {name: getattr(self, name) for name in names} | {"verbose": 0}  # the search shows progress itself
        return MMPCA(n_clusters, n_topics, **shared | parameters)

    def _options(self, seed: int) -> CellOptions:
        """Return the options that all cells share."""
        n_init = None if isinstance(self.n_init, str) else int(self.n_init)
        auto_folds = AUTO_FOLDS if self.criterion == "predictive" else 0
        n_folds = auto_folds if isinstance(self.n_folds, str) else int(self.n_folds)
        n_folds = n_folds if self.criterion != "shares" else 0  # these are folds of rows, not of counts
        return CellOptions(seed, float(self.topic_prior), n_init, int(self.max_epochs), float(self.tol), n_folds)

    def _store(self, rows: Counts, seed: int, subfolder: str = "") -> Store:
        """Return the store, opened for these rows."""
        store = Store(None if self.store is None else os.path.join(self.store, subfolder), "search")
        identity = {"schema": SCHEMA, "mmpca": version("mmpca"), "dispersion": self.dispersion}
        identity["stabilize"] = self.stabilize
        if self.criterion == "shares":
            identity["row_folds"] = self.n_folds
        store.open(identity | {"data": _fingerprint(rows)} | self._options(seed)._asdict(), EXPLAIN)
        return store

    def _results(self, found: GridFit, rows: Counts) -> dict[str, NDArray[Any]]:
        """Return the table of cells, ordered by topics and then clusters."""
        keys = sorted(found.cells, key=lambda key: key[::-1])
        cells = [found.cells[key] for key in keys]
        q, k = np.array(keys, dtype=np.int64).T
        n_features, n_counts = int((rows.column_totals() > 0).sum()), int(rows.data.sum(dtype=np.int64))
        bounds = np.array([cell.bound for cell in cells])
        score = criteria.cluster_score(bounds, q, k, rows.n_rows)
        results: dict[str, NDArray[Any]] = {
            "n_clusters": q,
            "n_topics": k,
            "bound": bounds,
            "icl": criteria.icl(bounds, q, k, n_samples=rows.n_rows, n_features=n_features),
            "cluster_score": score,
        }
        topics = {n_topics: found.topics[n_topics] for n_topics in np.unique(k).tolist()}
        n_predicted = next(iter(topics.values())).n_predicted  # the same rows for every number of topics
        if n_predicted:
            predicted = {n_topics: fit.predicted for n_topics, fit in topics.items()}
            results |= criteria.predictions(predicted, n_predicted, score, k, n_counts)
        return results | {
            name: np.array([getattr(cell, name) for cell in cells])
            for name in ("n_epochs", "converged", "kind", "seed", "seconds")
        }

    def _wins(self, grid: Grid, results: dict[str, NDArray[Any]], n_resamples: int, monitor: Monitor) -> Array:
        """Return the share of the resamples that each cell wins, (C,)."""
        wins, n_rows, seed = np.zeros(len(results["bound"])), grid.rows.n_rows, grid.options.seed
        n_taken = max(grid.n_clusters[-1], round(RESAMPLED_SHARE * n_rows))
        monitor.begin("resamples", "searching again on parts of the rows", n_resamples)
        for number in range(n_resamples):
            rng = np.random.default_rng(np.random.SeedSequence([seed, number]))
            rows = grid.rows.take(np.sort(rng.permutation(n_rows)[:n_taken]))
            again = grid._replace(rows=rows, store=self._store(rows, seed, f"resample-{number}"))
            found = again.fit(self.n_jobs, Monitor())
            if found.is_complete:
                winner = self._results(found, rows)[self.criterion].argmax()  # the same cells in the same order
                wins[winner] += 1
                monitor.step()
            if (not found.is_complete or monitor.is_stopped) and wins.sum() < n_resamples:
                warn(
                    f"The search was interrupted: `wins` is based on {wins.sum():.0f} of {n_resamples} resamples.",
                    InterruptedSearchWarning,
                )
                break
        return wins / max(1.0, wins.sum())

    def _set_best(
        self,
        results: dict[str, NDArray[Any]],
        order: NDArray[Any],
        words: str,
        start: tuple[Array, CellFit],
        X: Any,
        counts: Counts,
        pilot: MMPCA | None,
    ) -> None:
        """Set the fitted attributes: entries of the results in `order`, best first, and topics and a cell to start."""
        topics, cell = start
        labels = cell.labels
        score = results[self.criterion]
        pairs = [
            {"n_clusters": int(results["n_clusters"][c]), "n_topics": int(results["n_topics"][c])} for c in order[:2]
        ]
        options: dict[str, Any] = {"topics": topics, "start": labels, "random_state": 0}
        options["dispersion"] = "multinomial" if self.dispersion == "auto" else self.dispersion
        bursts = None
        if pilot is not None:
            options |= {"dispersion": pilot.dispersion_, "stabilize": pilot.stabilize_}
            if pilot.dispersion_ == "polya":
                bursts = Bursts(pilot.variance_factors_, pilot.mean_profile_)
        self.best_estimator_ = self._model(int(labels.max()) + 1, len(topics), **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SuspiciousCountsWarning)  # issued before the search
            self.best_estimator_.checked_counts(X)  # learns the names of the features
        best = self.best_estimator_
        best.fit_rows(LocalRows(counts), attributes=dict(vars(best)), bursts=bursts, topics_source="lda")
        # Report the starts of the search, not the given labels.
        best.starts_ = cell.start_reports()
        for name in ("topic_results_", "choice_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # from an earlier fit
        self.results_, self.best_params_, self.best_score_ = results, pairs[0], float(score[order[0]])
        self.runner_up_ = pairs[1] if len(pairs) > 1 else None
        self.gap_ = float(score[order[0]] - score[order[1]]) if len(pairs) > 1 else np.inf
        self.reason_ = words
        self.labels_ = self.best_estimator_.labels_
        self.n_features_in_ = self.best_estimator_.n_features_in_
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_

    def _keep_history(
        self, cell: CellFit, partitions: dict[int, NDArray[np.int32]], rows: NDArray[np.intp] | None = None
    ) -> None:
        """Store a record of the search in the best model: what was compared, and how clusters split.

        `partitions` holds the labels of some rows, all by default, for each number of clusters.
        """
        best = self.best_estimator_
        q = len(best.weights_)
        partitions = partitions | {q: best.labels_ if rows is None else best.labels_[rows]}
        numbers = sorted(partitions)
        at = numbers.index(q)
        near = [partitions[n] for n in numbers[max(0, at - N_NEIGHBORS) : at + N_NEIGHBORS + 1]]
        best.search_ = {
            "criterion": self.criterion,
            "reason": self.reason_,
            "results": _finite_columns(self.results_),
            "topics": _finite_columns(getattr(self, "topic_results_", {})),
            "bounds": cell.history.tolist(),
            "splits": [contingency_matrix(*pair).tolist() for pair in pairwise(near)],
        }

    # --- the best model -----------------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return the most probable cluster of each row under the best model.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Counts.

        Returns
        -------
        labels : ndarray of int32, shape (n_samples,)
            Cluster of each row.
        """
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each cluster for each row under the best model.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Counts.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_clusters)
            Rows sum to one.
        """
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    def score(self, X: Any, y: object = None) -> float:
        """Return the mean log-likelihood of the rows under the best model; larger is better.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Counts.
        y : None
            Ignored.

        Returns
        -------
        score : float
            Mean log-likelihood of a row.
        """
        check_is_fitted(self)
        return self.best_estimator_.score(X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def _check_numbers(values: Any, name: str, auto: Iterable[int] | None) -> tuple[int, ...] | None:
    """Return the numbers to try, `auto` for "auto"; raise ValueError unless they are whole, positive and ascending."""
    if isinstance(values, str) and values == "auto":
        return None if auto is None else tuple(auto)
    try:
        numbers: list[Any] = [values] if is_integer(values, 0) else list(values)
    except TypeError:
        numbers = []
    if not numbers:
        raise ValueError(
            f'{name} must be "auto" or list numbers to try, such as range(2, 9) or [2, 4, 8], but it is {values!r}.'
        )
    for number in numbers:
        if not is_integer(number, 1):
            raise ValueError(f"{name} must list whole numbers of at least 1, but it contains {number!r}.")
    for number, following in pairwise(numbers):
        if following <= number:
            raise ValueError(
                f"{name} must be ascending without duplicates, but {following} comes after {number}. "
                f"Use sorted(set({name}))."
            )
    return tuple(int(number) for number in numbers)


def _within(numbers: tuple[int, ...] | None, largest: int) -> tuple[int, ...] | None:
    """Return the numbers that are possible; given ones have been checked, so these are those of "auto"."""
    return None if numbers is None else tuple(n for n in numbers if n <= largest) or (1,)


def _finite_columns(table: Mapping[str, NDArray[Any]]) -> dict[str, list[float]]:
    """Return the columns that hold only finite numbers, as lists."""
    return {
        name: column.astype(float if column.dtype.kind == "f" else int).tolist()
        for name, column in table.items()
        if column.dtype.kind in "biuf" and np.isfinite(column).all()
    }


def _listed(numbers: Iterable[int]) -> str:
    """Return numbers in words."""
    return ", ".join(map(str, sorted(numbers)))


def _fingerprint(rows: Counts) -> str:
    """Return a checksum of counts."""
    digest = hashlib.sha256(repr((rows.n_rows, rows.n_features)).encode())
    for array in (rows.indptr, rows.indices, rows.data):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
