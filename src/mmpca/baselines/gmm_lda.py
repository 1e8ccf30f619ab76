"""Gaussian mixture in the space of an LDA."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import helmert
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from mmpca.baselines.base import Array, CountClusterer, RandomState, child_seeds
from mmpca.baselines.checks import AT_LEAST_ONE, AT_LEAST_TWO, LDA_CHOICE, one_of
from mmpca.baselines.topic_space import fit_topic_space
from mmpca.counts import Counts

COVARIANCES = ("full", "tied", "diag", "spherical")

# Shares below this are one in a logarithm: a ratio to a share of zero would decide everything.
_SMALLEST_SHARE = 1e-6


class GMMLDA(CountClusterer):
    """Gaussian mixture on the rows' topic shares under an LDA, its covariance model chosen by BIC.

    Shares sum to one, so their covariance is singular. They are written in an orthonormal basis of the directions in
    which they can differ (Helmert's, one coordinate fewer than topics): no distance changes and no topic is singled
    out.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of Gaussian components.
    n_topics : int, default=5
        Number of topics, at least 2.
    lda : "sklearn" or estimator, default="sklearn"
        scikit-learn's variational LDA with row priors 1 and 1/n_topics by turns, or an unfitted transformer such as
        `mmpca.topics.LDA()`, whose number of topics and seed are set here.
    space : {"shares", "log-ratio"}, default="shares"
        Coordinates of the shares themselves, or of their logarithms (isometric log-ratios).
    covariance : {"auto", "full", "tied", "diag", "spherical"}, default="auto"
        Covariance model; "auto" fits all four and takes the best BIC.
    n_init_lda : int, default=4
        Runs of the LDA; the one that scores best is kept.
    n_init : int, default=10
        Starts of EM for each covariance model, from k-means.
    random_state : int, RandomState instance or None, default=None
        Seed of everything.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Most probable component of each row; a component may have no row.
    covariance_ : str
        The covariance model.
    bics_ : dict of float
        BIC of each covariance model that was fitted; larger is better, half of scikit-learn's with the other sign.
    bic_, log_likelihood_ : float
        Of the chosen model, for coordinates scaled to a mean variance of one.
    converged_ : bool
        Whether its EM settled.
    shares_ : ndarray of shape (n_samples, n_topics)
        Topic shares of the rows.
    lda_, mixture_ : estimator
        The fitted LDA and Gaussian mixture.
    n_features_in_ : int
        Number of features.

    References
    ----------
    R. Lebret, S. Iovleff, F. Langrognet, C. Biernacki, G. Celeux and G. Govaert, "Rmixmod: the R package of the
    model-based unsupervised, supervised, and semi-supervised classification Mixmod library", Journal of Statistical
    Software 67, 2015; J. J. Egozcue and others, "Isometric logratio transformations for compositional data analysis",
    Mathematical Geology 35, 2003.

    Examples
    --------
    >>> from mmpca.baselines import GMMLDA
    >>> X = [[9, 1, 0, 0], [8, 2, 0, 1], [0, 1, 7, 3], [1, 0, 9, 4]]
    >>> labels = GMMLDA(2, 2, covariance="spherical", random_state=0).fit_predict(X)
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """

    shares_: Array
    bics_: dict[str, float]

    _rules: ClassVar = {
        "n_clusters": AT_LEAST_ONE,
        "n_topics": AT_LEAST_TWO,
        "lda": LDA_CHOICE,
        "space": one_of("shares", "log-ratio"),
        "covariance": one_of("auto", *COVARIANCES),
        "n_init_lda": AT_LEAST_ONE,
        "n_init": AT_LEAST_ONE,
    }

    def __init__(
        self,
        n_clusters: int = 8,
        n_topics: int = 5,
        *,
        lda: Any = "sklearn",
        space: str = "shares",
        covariance: str = "auto",
        n_init_lda: int = 4,
        n_init: int = 10,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_topics = n_topics
        self.lda = lda
        self.space = space
        self.covariance = covariance
        self.n_init_lda = n_init_lda
        self.n_init = n_init
        self.random_state = random_state

    def _check_rows(self, rows: Counts) -> None:
        super()._check_rows(rows)
        if rows.n_rows < 2:
            raise ValueError(f"GMMLDA needs at least 2 rows, but n_samples = {rows.n_rows}. Give more rows.")

    def _fit(self, rows: Counts, rng: np.random.RandomState) -> None:
        *lda_seeds, seed = child_seeds(rng, self.n_init_lda + 1)
        self.lda_, self.shares_ = fit_topic_space(rows, self.lda, self.n_topics, lda_seeds)
        points = coordinates(self.shares_, self.space)
        kinds = COVARIANCES if self.covariance == "auto" else (self.covariance,)
        fits = {kind: self._mixture(points, kind, seed) for kind in kinds}
        self.bics_ = {kind: -float(fit.bic(points)) / 2 for kind, fit in fits.items()}
        self.covariance_ = max(self.bics_, key=self.bics_.__getitem__)
        self.mixture_, self.bic_ = fits[self.covariance_], self.bics_[self.covariance_]
        self.log_likelihood_ = float(self.mixture_.score_samples(points).sum())
        self.labels_ = self.mixture_.predict(points)
        self.converged_ = bool(self.mixture_.converged_)

    def _mixture(self, points: Array, covariance: str, seed: int) -> GaussianMixture:
        """Return a fitted Gaussian mixture; points: (N, K - 1)."""
        model = GaussianMixture(
            self.n_clusters, covariance_type=covariance, n_init=self.n_init, max_iter=500, random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # `converged_` says so
            return model.fit(points)


def coordinates(shares: Array, space: str) -> Array:
    """Return shares without their singular direction, scaled to a mean variance of one, (N, K) -> (N, K - 1).

    One scale for all coordinates keeps the comparison of covariance models as it is, and makes scikit-learn's
    smallest variance small in comparison.
    """
    values = shares if space == "shares" else np.log(np.maximum(shares, _SMALLEST_SHARE))
    points: Array = values @ helmert(shares.shape[1]).T
    scale = float(np.sqrt(points.var(axis=0).mean()))
    # Identical rows have no scale but rounding.
    return points / scale if scale > 1e-9 else points
