"""The grid of (Q, K) as a scikit-learn estimator."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from mmpca.counts import Counts
from mmpca.errors import InterruptedSearchWarning
from mmpca.model import MMPCA
from mmpca.model.messages import be_heard
from mmpca.selection import criteria
from mmpca.selection.cells import Options, Topics
from mmpca.selection.checks import check_grid, check_search
from mmpca.selection.grid import Grid, GridFit, GridProgress
from mmpca.selection.reasons import sentence
from mmpca.selection.store import Store, fingerprint

Array = NDArray[np.float64]

logger = logging.getLogger("mmpca")

AUTO_FOLDS = 5
RESAMPLED_SHARE = 0.8  # of the rows, drawn without replacement


class MMPCASearch(ClusterMixin, BaseEstimator):
    """Choice of the numbers of clusters and topics, on a grid.

    Topics are learned once for each number of topics. Each cell is fitted from starts of its own and from the clusters
    of its neighbours, split or merged, and the best is kept.

    Parameters
    ----------
    n_clusters : iterable of int, default=range(2, 9)
        Numbers of clusters to try, ascending; values may be skipped.
    n_topics : iterable of int, default=range(2, 6)
        Numbers of topics to try, ascending.
    criterion : {"predictive", "icl"}, default="predictive"
        What decides, larger is better: "predictive" takes the number of topics that predicts held-out counts best,
        and for it the number of clusters with the best bound after a price for their parameters; "icl" is that of the
        paper. `results_` has both, the first where counts were predicted.
    n_init : int or "auto", default="auto"
        Fresh starts of each cell; by default at most 4, no more when 2 in a row are no better.
    topic_prior : float, default=1.0
        As in `MMPCA`.
    stabilize : {None, "sqrt"}, default=None
        As in `MMPCA`.
    max_epochs : int, default=200
        As in `MMPCA`.
    tol : float, default=1e-10
        As in `MMPCA`.
    n_folds : int or "auto", default="auto"
        Parts of the counts, each predicted from the others, by which numbers of topics are compared. "auto" is 5 for
        the criterion "predictive", and 0, no prediction at all, for "icl".
    n_resamples : int, default=0
        Searches of the whole grid on random four fifths of the rows, to see how often each cell wins.
    n_jobs : int or None, default=None
        Cells fitted at a time, through joblib: by default in processes, or wherever
        :func:`joblib.parallel_config` says. With a Dask client, ``with joblib.parallel_config("dask"):
        search.fit(X)`` fits the cells on its cluster, all workers at a time: the counts are sent once for each of the
        three stages (topics, cells, neighbours), and only this process writes to `store`. The result does not depend
        on any of this.
    random_state : int, RandomState instance or None, default=None
        Seed of topics, splits and starts. With `store`, give a number, so that a second run can go on.
    store : path or None, default=None
        Folder in which finished cells are kept. A second run with the same data and options goes on where the first
        was interrupted or killed, and finds the same; other data or options are refused.
    verbose : int, default=0
        1 reports progress through the logger "mmpca".

    Attributes
    ----------
    results_ : dict of ndarray
        One entry for each cell: `n_clusters`, `n_topics`, `bound`, `icl`, `cluster_score`, `n_epochs`, `converged`,
        `kind` and `seed` of the start it came from, and `seconds`; where counts were predicted, `held_out` (mean
        log-likelihood of a held-out count with as many topics), `predictive` and `predictive_error` (the standard
        error of what the number of topics loses against the best one, in nats); with `n_resamples` `wins`, the share
        of resamples that it won. ``pandas.DataFrame(search.results_)`` makes a table of it.
    best_params_ : dict
        `n_clusters` and `n_topics` of the best cell.
    best_score_ : float
        Its criterion.
    best_estimator_ : MMPCA
        Its model.
    runner_up_ : dict or None
        `n_clusters` and `n_topics` of the second best cell.
    gap_ : float
        How far behind that is, in nats.
    reason_ : str
        The choice in words.
    labels_ : ndarray of int32, shape (n_samples,)
        Labels of the best cell.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

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
        self.stabilize = stabilize
        self.max_epochs = max_epochs
        self.tol = tol
        self.n_folds = n_folds
        self.n_resamples = n_resamples
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.store = store
        self.verbose = verbose

    def fit(self, X: Any, y: object = None, *, callback: Callable[[GridProgress], object] | None = None) -> Self:
        """Fit all cells of the grid and choose one.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Non-negative whole numbers, no row without any.
        y : ignored
        callback : callable, optional
            Called with a `GridProgress` after each part.

        Returns
        -------
        self
        """
        grids = check_grid(self.n_clusters, "n_clusters"), check_grid(self.n_topics, "n_topics")
        check_search(self.get_params(deep=False))
        template = self._template(grids[0][-1], grids[1][-1])
        rows = template.checked_counts(X)
        seed = int(check_random_state(self.random_state).randint(2**31))
        options = self._options(seed)
        store = Store(self.store)
        grid = Grid(rows, *grids, options, store)
        store.open(self._belonging(rows, options))
        found = grid.fit(self.n_jobs, self._watch(callback))
        results = self._results(found, rows)
        if self.n_resamples and found.is_complete:
            results["wins"] = self._wins(grid, results)
        self._choose(results, found, X, (rows.n_rows, rows.n_features))
        if not found.is_complete:
            n_cells = len(grids[0]) * len(grids[1])
            warnings.warn(
                f"The search was interrupted: {len(found.cells)} of {n_cells} cells are compared, and their neighbours "
                "have not improved all of them.",
                InterruptedSearchWarning,
                stacklevel=2,
            )
        return self

    def _template(self, n_clusters: int, n_topics: int, **parameters: Any) -> MMPCA:
        """Return a model with the common parameters."""
        common = {name: getattr(self, name) for name in ("topic_prior", "stabilize", "max_epochs", "tol")}
        return MMPCA(n_clusters, n_topics, **common, **parameters)

    def _options(self, seed: int) -> Options:
        """Return what all cells have in common."""
        n_init = None if isinstance(self.n_init, str) else int(self.n_init)
        auto_folds = AUTO_FOLDS if self.criterion == "predictive" else 0
        n_folds = auto_folds if isinstance(self.n_folds, str) else int(self.n_folds)
        return Options(seed, float(self.topic_prior), n_init, int(self.max_epochs), float(self.tol), n_folds)

    def _belonging(self, rows: Counts, options: Options) -> dict[str, Any]:
        """Return what a store has to agree in."""
        return {"stabilize": self.stabilize, "data": fingerprint(rows)} | options._asdict()

    def _watch(self, callback: Callable[[GridProgress], object] | None) -> Callable[[GridProgress], object] | None:
        """Return the callback, reporting on the way where asked to."""
        if not self.verbose:
            return callback
        be_heard()

        def watch(progress: GridProgress) -> object:
            logger.info("%s: %d of %d parts, %.0f s left", *progress)
            return callback(progress) if callback is not None else None

        return watch

    def _results(self, found: GridFit, rows: Counts) -> dict[str, NDArray[Any]]:
        """Return a table of the cells, by topics and then clusters."""
        keys = sorted(found.cells, key=lambda key: key[::-1])
        cells = [found.cells[key] for key in keys]
        q, k = np.array(keys, dtype=np.int64).T
        sizes = criteria.Sizes(
            rows.n_rows, int((rows.column_totals() > 0).sum()), int(rows.data.sum(dtype=np.int64))
        )  # fmt: skip
        bounds = np.array([cell.bound for cell in cells])
        score = criteria.cluster_score(bounds, q, k, sizes)
        results: dict[str, NDArray[Any]] = {
            "n_clusters": q,
            "n_topics": k,
            "bound": bounds,
            "icl": criteria.icl(bounds, q, k, sizes),
            "cluster_score": score,
        }
        results |= _predictions(found.topics, score, k, sizes)
        return results | {
            name: np.array([getattr(cell, name) for cell in cells])
            for name in ("n_epochs", "converged", "kind", "seed", "seconds")
        }

    def _wins(self, grid: Grid, results: dict[str, NDArray[Any]]) -> Array:
        """Return the share of resamples that each cell wins, (C,)."""
        wins = np.zeros(len(results["bound"]))
        for number in range(self.n_resamples):
            seeds = np.random.SeedSequence([grid.options.seed, number])
            n_taken = max(grid.n_clusters[-1], round(RESAMPLED_SHARE * grid.rows.n_rows))
            taken = np.sort(np.random.default_rng(seeds).permutation(grid.rows.n_rows)[:n_taken])
            folder = None if grid.store.folder is None else grid.store.folder / f"resample-{number}"
            again = grid._replace(rows=grid.rows.take(taken), store=Store(folder))
            again.store.open(self._belonging(again.rows, grid.options))
            found = again.fit(self.n_jobs)
            if not found.is_complete:
                warnings.warn(
                    f"The resamples were interrupted: wins are those of {number} of them.",
                    InterruptedSearchWarning,
                    stacklevel=3,
                )
                break
            wins[self._results(found, again.rows)[self.criterion].argmax()] += 1  # the same cells in the same order
        return wins / max(1.0, wins.sum())

    def _choose(self, results: dict[str, NDArray[Any]], found: GridFit, X: Any, most: tuple[int, int]) -> None:
        """Set the fitted attributes; `most` are the numbers of clusters and topics that there can be."""
        score = results[self.criterion]
        order = np.argsort(-score, kind="stable")
        pairs = [
            {"n_clusters": int(results["n_clusters"][c]), "n_topics": int(results["n_topics"][c])} for c in order[:2]
        ]
        q, k = pairs[0]["n_clusters"], pairs[0]["n_topics"]
        start = {"topics": found.topics[k].beta, "start": found.cells[q, k].labels}
        self.best_estimator_ = self._template(q, k, **start, random_state=0).fit(X)
        self.results_, self.best_params_, self.best_score_ = results, pairs[0], float(score[order[0]])
        self.runner_up_ = pairs[1] if len(pairs) > 1 else None
        self.gap_ = float(score[order[0]] - score[order[1]]) if len(pairs) > 1 else np.inf
        self.reason_ = sentence(results, self.criterion, most)
        self.labels_ = self.best_estimator_.labels_
        self.n_features_in_ = self.best_estimator_.n_features_in_
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_

    # --- the best model -----------------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return the most probable cluster of each row under the best model."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each cluster for each row under the best model."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    def score(self, X: Any, y: object = None) -> float:
        """Return the mean log-likelihood of the rows under the best model; larger is better."""
        check_is_fitted(self)
        return self.best_estimator_.score(X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def _predictions(
    topics: Mapping[int, Topics], score: Array, n_topics: NDArray[np.int64], sizes: criteria.Sizes
) -> dict[str, Array]:
    """Return the columns that held-out counts make, if there are any."""
    known = {k: found for k, found in topics.items() if k in n_topics and found.n_predicted}
    if not known:
        return {}
    # The same rows for all K, and of large data a part of them: in nats of all counts.
    n_predicted = next(iter(known.values())).n_predicted
    mean = {k: float(found.predicted.sum()) / n_predicted for k, found in known.items()}
    error = criteria.predictive_error({k: found.predicted for k, found in known.items()})
    held_out = np.array([mean[k] for k in n_topics.tolist()])
    return {
        "held_out": held_out,
        "predictive": criteria.predictive(score, n_topics, held_out, sizes),
        "predictive_error": np.array([sizes.n_counts / n_predicted * error[k] for k in n_topics.tolist()]),
    }
