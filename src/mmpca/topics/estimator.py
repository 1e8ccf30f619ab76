"""Latent Dirichlet allocation as a scikit-learn transformer."""

from __future__ import annotations

import logging
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mmpca.backend import LocalRows, open_threads
from mmpca.counts import Counts, as_counts, in_memory
from mmpca.monitor import Callback, Monitor, Progress
from mmpca.parameters import N_JOBS, PRIOR, VERBOSE, check_parameters, either, integer, one_of, real
from mmpca.topics.em import SMOOTHING, Array, fitted_shares
from mmpca.topics.lda import MAX_PASSES, TOL, fit_lda
from mmpca.topics.thinning import held_out_rows, known_counts, unseen_terms

logger = logging.getLogger("mmpca")

RULES = {
    "n_topics": integer(1),
    "row_prior": either(one_of("auto"), PRIOR),
    "smoothing": PRIOR,
    "n_init": either(one_of("auto"), integer(1)),
    "max_passes": integer(1),
    "tol": real(0.0, 1.0),
    "n_jobs": N_JOBS,
    "verbose": VERBOSE,
}


class LDA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Latent Dirichlet allocation of counts, with a row prior chosen from the data.

    Every row mixes topics, which are distributions over the features, in its own shares. The topics and shares are the
    most probable ones, found by accelerated EM.

    Parameters
    ----------
    n_topics : int, default=10
        Number of topics.
    row_prior : "auto" or float, default="auto"
        Pseudo-tokens of each topic in each row: large if rows mix all topics, small if each row uses only a few. "auto"
        holds out a fifth of the counts and chooses the value that predicts them best.
    smoothing : float, default=0.05
        Pseudo-tokens of each feature in each topic.
    n_init : "auto" or int, default="auto"
        Random starts; the one with the highest objective is kept. "auto" makes three, and on small data up to
        twenty, until three have reached the same objective as the best.
    max_passes : int, default=1000
        Maximum number of passes over the rows in a run of EM.
    tol : float, default=1e-5
        A run ends when a pass changes the topics by less than this in mean total variation.
    n_jobs : int or None, default=None
        Number of threads; -1 uses all cores. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of splits, starts and samples.
    verbose : int, default=0
        1 logs the chosen prior to the logger "mmpca", 2 the passes as well.

    Attributes
    ----------
    components_ : ndarray of shape (n_topics, n_features)
        Topics; rows sum to one. Features that never occur have probability zero.
    row_prior_ : float
        The row prior, chosen or given.
    prior_scores_ : dict of float
        Mean log-likelihood of a held-out count for each row prior that was tried.
    n_passes_ : int
        Number of passes over the rows, including those that choose the prior.
    converged_ : bool
        Whether the topics converged within `max_passes`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has them.

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
    _n_counts: int

    def __init__(
        self,
        n_topics: int = 10,
        *,
        row_prior: float | str = "auto",
        smoothing: float = SMOOTHING,
        n_init: int | str = "auto",
        max_passes: int = MAX_PASSES,
        tol: float = TOL,
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
            Non-negative whole numbers, without empty rows.
        y : ignored
        callback : callable, optional
            Called with a :class:`mmpca.monitor.Progress`; a true return value stops the fit and keeps the topics found
            so far.

        Returns
        -------
        self

        Raises
        ------
        CountsError
            If X is not a matrix of counts; the model is left unchanged.
        """
        parameters = self.get_params(deep=False)
        check_parameters(parameters, RULES)
        # The data are checked on behalf of a copy, so that an error leaves this model unchanged.
        checked = type(self)(**parameters)
        rows = checked._counts(X, reset=True)

        def report(progress: Progress) -> object:
            if self.verbose >= 2:
                logger.info("%s, pass %d", progress.text, progress.n_done)
            return callback is not None and callback(progress)

        monitor = Monitor(report, verbose=int(self.verbose))
        with open_threads(effective_n_jobs(self.n_jobs)) as threads:
            fit = fit_lda(
                LocalRows(rows, threads),
                self.n_topics,
                rng=np.random.default_rng(check_random_state(self.random_state).randint(2**31)),
                row_prior="auto" if isinstance(self.row_prior, str) else float(self.row_prior),
                smoothing=float(self.smoothing),
                n_init="auto" if isinstance(self.n_init, str) else int(self.n_init),
                max_passes=self.max_passes,
                tol=float(self.tol),
                monitor=monitor,
            )
        if self.verbose:
            logger.info("row prior %g, scores %s, %d passes", fit.row_prior, fit.scores, fit.n_passes)
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        for name, value in vars(checked).items():
            setattr(self, name, value)
        self.components_, self.row_prior_, self.prior_scores_ = fit.beta, fit.row_prior, fit.scores
        self.n_passes_, self.converged_ = fit.n_passes, fit.converged
        self._n_counts = int(rows.data.sum(dtype=np.int64))
        monitor.end()
        return self

    def transform(self, X: Any) -> Array:
        """Return the most probable topic proportions of the rows.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)

        Returns
        -------
        shares : ndarray of shape (n_samples, n_topics)
            Rows sum to one. A row without counts of known features has equal shares.
        """
        check_is_fitted(self)
        return self._shares(self._counts(X, reset=False))

    def score(self, X: Any, y: object = None) -> float:
        """Return the mean log-likelihood of a count under the topics and the shares of its row; larger is better.

        The shares are fitted to the same counts, which makes short rows look better than they are; `perplexity` can
        score held-out counts. Features that never occurred during fitting share a probability of 1 / (n + 1) after n
        counts, as in :meth:`mmpca.MMPCA.score`.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        score : float
        """
        return -float(np.log(self.perplexity(X)))

    def perplexity(self, X: Any, held_out: Any = None) -> float:
        """Return the perplexity: the number of equally likely features that would be as hard to predict.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Counts to fit the shares of the rows to.
        held_out : like X, optional
            Other counts of the same rows, to be scored; by default those of X.

        Returns
        -------
        perplexity : float
            Smaller is better. Features that never occurred during fitting have a small probability, as in
            :meth:`score`.
        """
        check_is_fitted(self)
        rows = self._counts(X, reset=False)
        scored = rows if held_out is None else self._counts(held_out, reset=False)
        if scored.n_rows != rows.n_rows:
            raise ValueError(
                f"held_out must have other counts of the {rows.n_rows} rows of X, but it has {scored.n_rows} rows. "
                "Split the counts of each row, e.g. with mmpca.topics.split_counts."
            )
        terms = unseen_terms(self.components_, self._n_counts)
        known = known_counts(scored, self.components_)
        total = held_out_rows(known, self._shares(rows), self.components_).sum() + (scored.to_csr() @ terms).sum()
        return float(np.exp(-total / max(1, int(scored.data.sum(dtype=np.int64)))))

    def _shares(self, rows: Counts) -> Array:
        """Return the most probable topic proportions of the rows, (N, K)."""
        with open_threads(effective_n_jobs(self.n_jobs)) as threads:
            beta_rows = np.ascontiguousarray(self.components_.T)
            return fitted_shares(rows, beta_rows, self.row_prior_, tol=1e-7, max_iter=1000, threads=threads)

    def _counts(self, X: Any, *, reset: bool) -> Counts:
        """Return X as counts, checked against the features of the fit; when fitting, empty rows are an error."""
        X = in_memory(X)
        rows = as_counts(X, empty_rows="error" if reset else "allow")
        validate_data(self, X, reset=reset, skip_check_array=True)  # names and number of the features
        return rows

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags
