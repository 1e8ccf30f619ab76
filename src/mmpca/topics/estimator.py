"""Latent Dirichlet allocation as a scikit-learn transformer."""

from __future__ import annotations

import logging
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mmpca.counts import Counts, as_counts
from mmpca.places import in_threads, threads
from mmpca.topics.checks import check_parameters
from mmpca.topics.em import SMOOTHING, Array, Callback, fitted_shares
from mmpca.topics.lda import FINAL, fit_lda
from mmpca.topics.splits import held_out_score, known_counts

logger = logging.getLogger("mmpca")


class LDA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Latent Dirichlet allocation of counts, its row prior chosen from the data.

    Every row mixes topics, distributions over the features, in shares of its own. Topics and shares are the most
    probable ones, found by accelerated EM.

    Parameters
    ----------
    n_topics : int, default=10
        Number of topics.
    row_prior : "auto" or float, default="auto"
        Tokens of each topic that a row is taken to have beforehand: large where rows mix all topics, small where a row
        is about few of them. "auto" holds out a fifth of the counts and takes what predicts them best.
    smoothing : float, default=0.05
        Tokens of each feature that a topic is taken to have beforehand.
    n_init : "auto" or int, default="auto"
        Random starts; the one with the highest objective is kept. "auto" makes three, and on small data up to
        twenty, until three have ended where the best did.
    max_passes : int, default=1000
        Passes over the rows in a run of EM.
    tol : float, default=1e-5
        A run ends when a pass changes the topics by less than this in mean total variation.
    n_jobs : int or None, default=None
        Threads; -1 means all cores. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of splits, starts and samples.
    verbose : int, default=0
        1 reports the choice of the prior through the logger "mmpca", 2 the passes as well.

    Attributes
    ----------
    components_ : ndarray of shape (n_topics, n_features)
        Topics, rows sum to one. Features that never occur have probability zero.
    row_prior_ : float
        The prior that was chosen or given.
    prior_scores_ : dict of float
        Mean log-likelihood of a held-out count for each prior that was tried.
    n_passes_ : int
        Passes over the rows, the choice of the prior included.
    converged_ : bool
        Whether the topics settled within `max_passes`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    Examples
    --------
    >>> from mmpca.simulate import paper_design
    >>> from mmpca.topics import LDA
    >>> data = paper_design(n_samples=100, random_state=0)
    >>> model = LDA(n_topics=4, random_state=0).fit(data.X)
    >>> model.row_prior_
    10.0
    >>> model.transform(data.X).shape
    (100, 4)
    """

    components_: Array
    row_prior_: float
    prior_scores_: dict[float, float]
    n_passes_: int
    converged_: bool

    def __init__(
        self,
        n_topics: int = 10,
        *,
        row_prior: float | str = "auto",
        smoothing: float = SMOOTHING,
        n_init: int | str = "auto",
        max_passes: int = FINAL.max_passes,
        tol: float = FINAL.tol,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_topics = n_topics
        self.row_prior = row_prior
        self.smoothing = smoothing
        self.n_init = n_init
        self.max_passes = max_passes
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: object = None, *, callback: Callback | None = None) -> Self:
        """Learn topics from the rows of a count matrix.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Non-negative whole numbers, no row without any.
        y : ignored
        callback : callable, optional
            Called with the number of passes so far; a true answer stops there, and what was reached is kept.

        Returns
        -------
        self
        """
        parameters = self.get_params(deep=False)
        check_parameters(parameters)
        # The data are checked in the name of another model, so that a refusal leaves this one as it was.
        checked = type(self)(**parameters)
        rows = checked._counts(X, reset=True)
        fit = fit_lda(
            rows,
            self.n_topics,
            rng=np.random.default_rng(check_random_state(self.random_state).randint(2**31)),
            row_prior="auto" if isinstance(self.row_prior, str) else float(self.row_prior),
            smoothing=float(self.smoothing),
            n_init="auto" if isinstance(self.n_init, str) else int(self.n_init),
            max_passes=self.max_passes,
            tol=float(self.tol),
            n_threads=effective_n_jobs(self.n_jobs),
            callback=self._watch(callback),
        )
        if self.verbose:
            logger.info("row prior %g of %s after %d passes", fit.row_prior, fit.scores, fit.n_passes)
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        for name, value in vars(checked).items():
            setattr(self, name, value)
        self.components_, self.row_prior_, self.prior_scores_ = fit.beta, fit.row_prior, fit.scores
        self.n_passes_, self.converged_ = fit.n_passes, fit.converged
        return self

    def transform(self, X: Any) -> Array:
        """Return the rows in topic space: their most probable topic shares, shape (n_samples, n_topics), sums one.

        A row without counts of features that occurred in fitting has equal shares.
        """
        check_is_fitted(self)
        return self._shares(self._counts(X, reset=False))

    def score(self, X: Any, y: object = None) -> float:
        """Return the mean log-likelihood of a count of X under the topics and its row's shares; larger is better.

        The shares are fitted to the same counts, which flatters rows that are short: see `perplexity` for counts
        held out. Features that never occurred in fitting are passed over.
        """
        return -float(np.log(self.perplexity(X)))

    def perplexity(self, X: Any, held_out: Any = None) -> float:
        """Return the perplexity of counts: how many equally likely features would be as hard to predict.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Counts that the rows' shares are fitted to.
        held_out : like X, optional
            Other counts of the same rows, whose perplexity is returned; by default those of X.

        Returns
        -------
        perplexity : float
            Smaller is better. Features that never occurred in fitting are passed over.
        """
        check_is_fitted(self)
        rows = self._counts(X, reset=False)
        scored = rows if held_out is None else self._counts(held_out, reset=False)
        if scored.n_rows != rows.n_rows:
            raise ValueError(
                f"held_out must hold other counts of the {rows.n_rows} rows of X, but it has {scored.n_rows} rows. "
                "Split the counts of each row, e.g. with mmpca.topics.split_counts."
            )
        scored = known_counts(scored, self.components_)
        return float(np.exp(-held_out_score(scored, self._shares(rows), self.components_)))

    def _shares(self, rows: Counts) -> Array:
        """Return the most probable topic shares of the rows, (N, K)."""
        with threads(effective_n_jobs(self.n_jobs)) as pool:
            beta_rows = np.ascontiguousarray(self.components_.T)
            for_rows = in_threads(pool)
            return fitted_shares(rows, beta_rows, self.row_prior_, tol=1e-7, max_iter=1000, for_rows=for_rows)

    def _counts(self, X: Any, *, reset: bool) -> Counts:
        """Return X as counts, checked against what the model was fitted to, empty rows refused in fitting."""
        X = validate_data(
            self, X, reset=reset, accept_sparse=True, dtype=None, ensure_all_finite=False, ensure_min_samples=1
        )
        return as_counts(X, empty_rows="error" if reset else "allow")

    def _watch(self, callback: Callback | None) -> Callback | None:
        """Return the callback, reporting the passes on the way where asked to."""
        if self.verbose < 2:
            return callback

        def watch(n_passes: int) -> object:
            logger.info("pass %d", n_passes)
            return callback(n_passes) if callback is not None else None

        return watch

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags
