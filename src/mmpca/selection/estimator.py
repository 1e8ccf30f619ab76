"""The search over a grid of (Q, K) as a scikit-learn estimator."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterable
from importlib.metadata import version
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from mmpca.backend import LocalRows
from mmpca.counts import Counts, Units
from mmpca.errors import InterruptedSearchWarning, OverdispersionWarning, SuspiciousCountsWarning, warn
from mmpca.model import MMPCA
from mmpca.model.dispersion import Bursts
from mmpca.monitor import Callback, Monitor
from mmpca.parameters import N_JOBS, VERBOSE, Rule, check_parameters, either, integer, is_integer, one_of
from mmpca.selection import criteria
from mmpca.selection.grid import CellOptions, Grid, GridFit
from mmpca.store import Store

Array = NDArray[np.float64]

AUTO_FOLDS = 5
RESAMPLED_SHARE = 0.8  # share of the rows in a resample, drawn without replacement
SCHEMA = 4  # of a store's parts
PILOT_STARTS = 4  # of the fit whose variance factors all cells share, if n_init="auto"
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
    "n_resamples": integer(0),
    "n_jobs": N_JOBS,
    "store": Rule(lambda value: value is None or isinstance(value, str | os.PathLike), "a folder or None"),
    "verbose": VERBOSE,
}


class MMPCASearch(ClusterMixin, BaseEstimator):
    """Search for the numbers of clusters and topics on a grid.

    Topics are learned once for each number of topics. Each cell of the grid, a number of clusters and a number of
    topics, is fitted from its own starts and from the clusters of its neighbors, split or merged; the best fit is
    kept.

    Parameters
    ----------
    n_clusters : iterable of int, default=range(2, 9)
        Numbers of clusters to try, in ascending order; gaps are allowed.
    n_topics : iterable of int, default=range(2, 6)
        Numbers of topics to try, in ascending order.
    criterion : {"predictive", "icl"}, default="predictive"
        Criterion that chooses the cell; larger is better. "predictive" chooses the number of topics that predicts
        held-out counts best, and at this number of topics the number of clusters with the best penalized bound. "icl"
        is the criterion of the paper. `results_` holds both, "predictive" only if counts were held out.
    n_init : int or "auto", default="auto"
        Number of fresh starts of each cell. "auto" makes at most 4, and stops after 2 in a row without progress.
    topic_prior : float, default=1.0
        As in :class:`~mmpca.MMPCA`.
    dispersion : {"multinomial", "shares", "polya", "auto"}, default="multinomial"
        As in :class:`~mmpca.MMPCA`. "polya" and "auto" fit the largest numbers of clusters and topics first; all cells
        then share the variance factors of this fit, which makes their bounds comparable.
    stabilize : {None, "sqrt"}, default=None
        As in :class:`~mmpca.MMPCA`.
    max_epochs : int, default=200
        As in :class:`~mmpca.MMPCA`.
    tol : float, default=1e-10
        As in :class:`~mmpca.MMPCA`.
    n_folds : int or "auto", default="auto"
        Number of folds of the counts, each predicted from the others, that compare numbers of topics. "auto" means 5
        for the criterion "predictive", and 0, no prediction, for "icl".
    n_resamples : int, default=0
        Number of times to repeat the whole search on a random 80% of the rows, to see how often each cell wins.
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
    verbose : int, default=0
        1 reports progress to the logger "mmpca".

    Attributes
    ----------
    results_ : dict of ndarray
        One entry for each cell: `n_clusters`, `n_topics`, `bound`, `icl`, `cluster_score`, `n_epochs`, `converged`,
        `kind` and `seed` of the best start, and `seconds`. If counts were held out, also `held_out` (mean
        log-likelihood of a held-out count), `predictive`, and `predictive_error` (standard error of the loss of this
        number of topics against the best one, in nats). With `n_resamples`, also `wins` (share of the resamples that
        the cell won). ``pandas.DataFrame(search.results_)`` turns it into a table.
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
    >>> search = MMPCASearch(n_clusters=(5, 6, 7), n_topics=(4,), random_state=0).fit(data.X)
    >>> search.best_params_
    {'n_clusters': 6, 'n_topics': 4}
    """

    results_: dict[str, NDArray[Any]]
    best_params_: dict[str, int]
    best_score_: float
    best_estimator_: MMPCA
    runner_up_: dict[str, int] | None
    gap_: float
    reason_: str
    labels_: NDArray[np.int32]

    def __init__(
        self,
        n_clusters: Iterable[int] = range(2, 9),
        n_topics: Iterable[int] = range(2, 6),
        *,
        criterion: str = "predictive",
        n_init: int | str = "auto",
        topic_prior: float = 1.0,
        dispersion: str = "multinomial",
        stabilize: str | None = None,
        max_epochs: int = 200,
        tol: float = 1e-10,
        n_folds: int | str = "auto",
        n_resamples: int = 0,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        store: str | os.PathLike[str] | None = None,
        verbose: int = 0,
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

    def fit(self, X: Any, y: object = None, *, callback: Callback | None = None) -> Self:
        """Fit all cells of the grid and choose the best.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Counts: non-negative whole numbers; no row may be empty.
        y : None
            Ignored.
        callback : callable, optional
            Called with a :class:`~mmpca.monitor.Progress` at the beginning of each stage ("topics", "cells",
            "neighbors", "resamples") and after each of its steps. If it returns a true value, the search stops and
            keeps the finished cells, as it does after Ctrl-C.

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
            If the search was interrupted; the finished cells are compared.
        SuspiciousCountsWarning
            As in :meth:`mmpca.MMPCA.fit`.
        """
        n_clusters, n_topics = _check_grid(self.n_clusters, "n_clusters"), _check_grid(self.n_topics, "n_topics")
        self._check_parameters()
        largest = self._model(n_clusters[-1], n_topics[-1])
        counts = largest.checked_counts(X)
        seed = int(check_random_state(self.random_state).randint(2**31))
        monitor = Monitor(callback, verbose=self.verbose)
        pilot = self._pilot(largest, counts, seed)
        rows = (Units(self.stabilize) if pilot is None else pilot.units).convert(counts)
        grid = Grid(rows, n_clusters, n_topics, self._options(seed), self._store(rows, seed))
        found = grid.fit(self.n_jobs, monitor)
        results = self._results(found, rows)
        if self.n_resamples and found.is_complete:
            results["wins"] = self._wins(grid, results, monitor)
        self._set_best(results, found, X, counts, pilot)
        monitor.end()
        if not found.is_complete:
            n_cells = len(n_clusters) * len(n_topics)
            warn(
                f"The search was interrupted. {len(found.cells)} of {n_cells} cells are compared, and not all of them "
                "were improved from their neighbors.",
                InterruptedSearchWarning,
            )
        return self

    def _check_parameters(self) -> None:
        check_parameters(self.get_params(deep=False), RULES)
        if self.criterion == "predictive" and not isinstance(self.n_folds, str) and self.n_folds == 0:
            raise ValueError(
                'n_folds must be at least 2 for criterion="predictive", which predicts held-out counts, but it is 0. '
                'Use n_folds="auto", or criterion="icl".'
            )

    def _pilot(self, model: MMPCA, counts: Counts, seed: int) -> MMPCA | None:
        """Fit the largest model if its variance factors, or the choice of a dispersion, are needed by all cells."""
        if self.dispersion not in ("polya", "auto"):
            return None
        model.set_params(random_state=seed, n_init=PILOT_STARTS if isinstance(self.n_init, str) else self.n_init)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OverdispersionWarning)  # issued by the best model
            return model.fit_rows(LocalRows(counts), attributes={"n_features_in_": counts.n_features})

    def _model(self, n_clusters: int, n_topics: int, **parameters: Any) -> MMPCA:
        """Return an unfitted model with the parameters that all cells share."""
        names = ("topic_prior", "dispersion", "stabilize", "max_epochs", "tol")
        return MMPCA(n_clusters, n_topics, **{name: getattr(self, name) for name in names} | parameters)

    def _options(self, seed: int) -> CellOptions:
        """Return the options that all cells share."""
        n_init = None if isinstance(self.n_init, str) else int(self.n_init)
        auto_folds = AUTO_FOLDS if self.criterion == "predictive" else 0
        n_folds = auto_folds if isinstance(self.n_folds, str) else int(self.n_folds)
        return CellOptions(seed, float(self.topic_prior), n_init, int(self.max_epochs), float(self.tol), n_folds)

    def _store(self, rows: Counts, seed: int, subfolder: str = "") -> Store:
        """Return the store, opened for these rows."""
        store = Store(None if self.store is None else os.path.join(self.store, subfolder), "search")
        identity = {"schema": SCHEMA, "mmpca": version("mmpca"), "dispersion": self.dispersion}
        identity["stabilize"] = self.stabilize
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

    def _wins(self, grid: Grid, results: dict[str, NDArray[Any]], monitor: Monitor) -> Array:
        """Return the share of the resamples that each cell wins, (C,)."""
        wins, n_rows, seed = np.zeros(len(results["bound"])), grid.rows.n_rows, grid.options.seed
        n_taken = max(grid.n_clusters[-1], round(RESAMPLED_SHARE * n_rows))
        monitor.begin("resamples", "searching again on parts of the rows", self.n_resamples)
        for number in range(self.n_resamples):
            rng = np.random.default_rng(np.random.SeedSequence([seed, number]))
            rows = grid.rows.take(np.sort(rng.permutation(n_rows)[:n_taken]))
            again = grid._replace(rows=rows, store=self._store(rows, seed, f"resample-{number}"))
            found = again.fit(self.n_jobs, Monitor())
            if found.is_complete:
                winner = self._results(found, rows)[self.criterion].argmax()  # the same cells in the same order
                wins[winner] += 1
                monitor.step()
            if (not found.is_complete or monitor.is_stopped) and wins.sum() < self.n_resamples:
                warn(
                    f"The search was interrupted: `wins` is based on {wins.sum():.0f} of {self.n_resamples} resamples.",
                    InterruptedSearchWarning,
                )
                break
        return wins / max(1.0, wins.sum())

    def _set_best(
        self, results: dict[str, NDArray[Any]], found: GridFit, X: Any, counts: Counts, pilot: MMPCA | None
    ) -> None:
        """Set the fitted attributes."""
        score = results[self.criterion]
        order = np.argsort(-score, kind="stable")
        pairs = [
            {"n_clusters": int(results["n_clusters"][c]), "n_topics": int(results["n_topics"][c])} for c in order[:2]
        ]
        q, k = pairs[0]["n_clusters"], pairs[0]["n_topics"]
        start: dict[str, Any] = {"topics": found.topics[k].beta, "start": found.cells[q, k].labels, "random_state": 0}
        bursts = None
        if pilot is not None:
            start |= {"dispersion": pilot.dispersion_, "stabilize": pilot.stabilize_}
            if pilot.dispersion_ == "polya":
                bursts = Bursts(pilot.variance_factors_, pilot.mean_profile_)
        self.best_estimator_ = self._model(q, k, **start)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SuspiciousCountsWarning)  # issued before the search
            self.best_estimator_.checked_counts(X)  # learns the names of the features
        self.best_estimator_.fit_rows(LocalRows(counts), attributes=dict(vars(self.best_estimator_)), bursts=bursts)
        self.results_, self.best_params_, self.best_score_ = results, pairs[0], float(score[order[0]])
        self.runner_up_ = pairs[1] if len(pairs) > 1 else None
        self.gap_ = float(score[order[0]] - score[order[1]]) if len(pairs) > 1 else np.inf
        self.reason_ = criteria.reason(results, self.criterion, (counts.n_rows, counts.n_features))
        self.labels_ = self.best_estimator_.labels_
        self.n_features_in_ = self.best_estimator_.n_features_in_
        self.__dict__.pop("feature_names_in_", None)  # from an earlier fit
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_

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


def _check_grid(values: Any, name: str) -> tuple[int, ...]:
    """Return the numbers to try as a tuple; raise ValueError unless they are whole, at least 1 and ascending."""
    try:
        numbers: list[Any] = [values] if is_integer(values, 0) else list(values)
    except TypeError:
        numbers = []
    if not numbers:
        raise ValueError(f"{name} must list numbers to try, such as range(2, 9) or [2, 4, 8], but it is {values!r}.")
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


def _fingerprint(rows: Counts) -> str:
    """Return a checksum of counts."""
    digest = hashlib.sha256(repr((rows.n_rows, rows.n_features)).encode())
    for array in (rows.indptr, rows.indices, rows.data):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
