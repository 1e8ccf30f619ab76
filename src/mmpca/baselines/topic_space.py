"""Clustering in the topic space of an LDA: Gaussian mixture, k-means, or the most probable topic."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.linalg import helmert
from scipy.special import digamma
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from mmpca.baselines.base import Array, CountClusterer, RandomState, child_seeds
from mmpca.counts import Counts
from mmpca.parameters import Rule, either, integer, one_of

# Many passes with short E-steps reach a higher bound on simulated data than the same time spent on E-steps of 100
# updates, scikit-learn's default.
PASSES, ROW_UPDATES, FINAL_ROW_UPDATES = 100, 10, 100

COVARIANCES = ("full", "tied", "diag", "spherical")

_TOPIC_PARAMETERS = ("n_topics", "n_components")  # names that transformers use for the number of topics
_EPS = float(np.finfo(np.float64).eps)
_WORTH_DROPPING = 0.7  # converged rows are dropped once no more than this fraction of the rows is left
_SMALLEST_SHARE = 1e-6  # in a logarithm: a ratio to a share of zero would decide everything


# --- the LDA ----------------------------------------------------------------------------------------------------


class VariationalLDA(LatentDirichletAllocation):
    """scikit-learn's LDA, several times as fast on short rows; results are equal up to rounding.

    scikit-learn's E-step loops over the rows in Python; here all rows that have not converged are updated together. A
    release of scikit-learn that no longer calls `_e_step` would use its own E-step: slower, with the same results.
    """

    def _e_step(self, X: Any, cal_sstats: bool, random_init: bool, parallel: object = None) -> tuple[Array, Any]:
        """Return the parameters of the rows' topic shares (N, K) and, if asked for, the topics' statistics (K, V)."""
        csr = sparse.csr_array(X, dtype=np.float64)
        shape = (csr.shape[0], self.exp_dirichlet_component_.shape[0])
        gamma = self.random_state_.gamma(100.0, 0.01, shape) if random_init else np.ones(shape)
        weights = np.exp(_expected_logs(gamma))
        self._update(csr, gamma, weights)
        if not cal_sstats:
            return gamma, None
        ratios = _Tokens(csr, self.exp_dirichlet_component_).ratios(weights)
        return gamma, (ratios.T @ weights).T * self.exp_dirichlet_component_

    def _update(self, csr: sparse.csr_array, gamma: Array, weights: Array) -> None:
        """Update all rows until they converge, in place; csr: (N, V), gamma and weights: (N, K)."""
        topics = np.ascontiguousarray(self.exp_dirichlet_component_.T)  # (V, K)
        at, tokens = np.arange(csr.shape[0]), _Tokens(csr, self.exp_dirichlet_component_)
        is_moving = np.full(at.size, True)
        for _ in range(self.max_doc_update_iter):
            updated = self.doc_topic_prior_ + weights[at] * (tokens.ratios(weights[at]) @ topics)
            change = np.abs(updated - gamma[at]).mean(axis=1)
            gamma[at[is_moving]] = updated[is_moving]
            weights[at[is_moving]] = np.exp(_expected_logs(updated[is_moving]))
            is_moving &= change >= self.mean_change_tol
            if not is_moving.any():
                return
            if is_moving.mean() < _WORTH_DROPPING:
                at, is_moving = at[is_moving], is_moving[is_moving]
                tokens = _Tokens(csr[at], self.exp_dirichlet_component_)


class _Tokens:
    """The stored counts of some rows, with the weight that each topic gives them."""

    def __init__(self, csr: sparse.csr_array, topics: Array) -> None:
        self.csr = csr
        self.row_of = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))  # (nnz,)
        self.topics = topics.take(csr.indices, axis=1)  # (K, nnz)
        self.product, self.expected = np.empty(csr.nnz), np.empty(csr.nnz)

    def ratios(self, weights: Array) -> sparse.csr_array:
        """Return each count divided by its expected probability; weights: (N, K) -> (N, V)."""
        self.expected.fill(_EPS)
        for column, topic in zip(weights.T, self.topics, strict=True):
            # A loop over topics in preallocated arrays is several times as fast as one large product.
            np.take(column, self.row_of, out=self.product, mode="clip")
            self.product *= topic
            self.expected += self.product
        np.divide(self.csr.data, self.expected, out=self.product)
        return sparse.csr_array((self.product, self.csr.indices, self.csr.indptr), shape=self.csr.shape)


def _expected_logs(gamma: Array) -> Array:
    """Return the expected logarithms under Dirichlet distributions, (N, K) -> (N, K)."""
    logs: Array = digamma(gamma) - digamma(gamma.sum(axis=1, keepdims=True))
    return logs


def _is_topic_model(value: Any) -> bool:
    """Return True for an instance, not a class, of a transformer whose number of topics can be set."""
    needed = ("fit", "transform", "get_params", "set_params")
    if isinstance(value, type) or not all(callable(getattr(value, name, None)) for name in needed):
        return False
    return any(name in value.get_params(deep=False) for name in _TOPIC_PARAMETERS)


LDA_RULE = either(
    one_of("sklearn"),
    Rule(
        _is_topic_model,
        "an unfitted estimator with fit, transform and n_topics or n_components, such as mmpca.topics.LDA()",
    ),
)


def fit_topic_space(rows: Counts, lda: Any, n_topics: int, seeds: list[int]) -> tuple[Any, Array]:
    """Fit an LDA once per seed; return the one with the best score, and the topic shares of the rows, (N, K).

    A transformer without `score` is fitted only for the first seed.
    """
    csr = rows.to_csr()
    if isinstance(lda, str):
        # The row prior alternates between 1 and 1/K; the bound decides which suits the data better.
        priors = [1.0 if turn % 2 == 0 else 1.0 / n_topics for turn in range(len(seeds))]
        fits = [_fit_variational(csr, n_topics, prior, seed) for prior, seed in zip(priors, seeds, strict=True)]
    else:
        seeds = seeds if hasattr(lda, "score") else seeds[:1]
        fits = [_prepared(lda, n_topics, seed).fit(csr) for seed in seeds]
    best = fits[0] if len(fits) == 1 else max(fits, key=lambda fit: fit.score(csr))
    return best, np.asarray(best.transform(csr), dtype=np.float64)


def _fit_variational(csr: Any, n_topics: int, row_prior: float, seed: int) -> VariationalLDA:
    """Return a fitted variational LDA that transforms rows with longer E-steps than it was fitted with."""
    options = {"doc_topic_prior": row_prior, "max_iter": PASSES, "max_doc_update_iter": ROW_UPDATES}
    model = VariationalLDA(n_topics, random_state=seed, **options).fit(csr)
    return model.set_params(max_doc_update_iter=FINAL_ROW_UPDATES)


def _prepared(lda: Any, n_topics: int, seed: int) -> Any:
    """Return a clone of the transformer with the number of topics and the seed set."""
    model = clone(lda)
    known = model.get_params(deep=False)
    size = next(name for name in _TOPIC_PARAMETERS if name in known)
    seeding = {"random_state": seed} if "random_state" in known else {}
    return model.set_params(**{size: n_topics}, **seeding)


# --- clusterers -------------------------------------------------------------------------------------------------


class LDAMap(CountClusterer):
    """LDA with one topic per cluster: each row belongs to its most probable topic.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, which is also the number of topics.
    lda : "sklearn" or estimator, default="sklearn"
        scikit-learn's variational LDA, with row priors of 1 and 1/n_clusters in turn, or an unfitted transformer
        such as `mmpca.topics.LDA()`, whose number of topics and seed are set here.
    n_init : int, default=5
        Number of runs of the LDA; the one with the best score is kept.
    random_state : int, RandomState instance or None, default=None
        Seed of the runs.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Most probable topic of each row; a topic may have no rows.
    shares_ : ndarray of shape (n_samples, n_clusters)
        Topic shares of the rows.
    lda_ : estimator
        The fitted LDA.
    lda_score_ : float or None
        Its score on the rows, by which the run was chosen; for "sklearn", the variational bound. None for a
        transformer without `score`.
    n_features_in_ : int
        Number of features.

    References
    ----------
    D. M. Blei, A. Y. Ng and M. I. Jordan, "Latent Dirichlet allocation", Journal of Machine Learning Research 3, 2003.

    Examples
    --------
    >>> from mmpca.baselines import LDAMap
    >>> X = [[9, 1, 0, 0], [8, 2, 0, 1], [0, 1, 7, 3], [1, 0, 9, 4]]
    >>> labels = LDAMap(2, random_state=0).fit_predict(X)
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """

    shares_: Array
    lda_score_: float | None

    _rules: ClassVar = {"n_clusters": integer(1), "lda": LDA_RULE, "n_init": integer(1)}

    def __init__(
        self, n_clusters: int = 8, *, lda: Any = "sklearn", n_init: int = 5, random_state: RandomState = None
    ) -> None:
        self.n_clusters = n_clusters
        self.lda = lda
        self.n_init = n_init
        self.random_state = random_state

    def _fit(self, rows: Counts, rng: np.random.RandomState) -> None:
        seeds = child_seeds(rng, self.n_init)
        self.lda_, self.shares_ = fit_topic_space(rows, self.lda, self.n_clusters, seeds)
        self.lda_score_ = float(self.lda_.score(rows.to_csr())) if hasattr(self.lda_, "score") else None
        self.labels_ = self.shares_.argmax(axis=1)


class KMeansLDA(CountClusterer):
    """k-means on the rows' topic shares under an LDA.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_topics : int, default=5
        Number of topics, at least 2.
    lda : "sklearn" or estimator, default="sklearn"
        scikit-learn's variational LDA, with row priors of 1 and 1/n_topics in turn, or an unfitted transformer
        such as `mmpca.topics.LDA()`, whose number of topics and seed are set here.
    n_init_lda : int, default=4
        Number of runs of the LDA; the one with the best score is kept.
    n_init : int, default=10
        Number of starts of k-means; the one with the smallest sum of squares is kept.
    random_state : int, RandomState instance or None, default=None
        Seed of both.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row.
    cluster_centers_ : ndarray of shape (n_clusters, n_topics)
        Mean topic shares.
    inertia_ : float
        Sum of squared distances of shares from their centers; smaller is better.
    shares_ : ndarray of shape (n_samples, n_topics)
        Topic shares of the rows.
    lda_ : estimator
        The fitted LDA.
    n_features_in_ : int
        Number of features.

    References
    ----------
    D. M. Blei, A. Y. Ng and M. I. Jordan, "Latent Dirichlet allocation", Journal of Machine Learning Research 3, 2003,
    for the space; S. P. Lloyd, "Least squares quantization in PCM", IEEE Transactions on Information Theory 28, 1982.

    Examples
    --------
    >>> from mmpca.baselines import KMeansLDA
    >>> X = [[9, 1, 0, 0], [8, 2, 0, 1], [0, 1, 7, 3], [1, 0, 9, 4]]
    >>> labels = KMeansLDA(2, 2, random_state=0).fit_predict(X)
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """

    shares_: Array
    cluster_centers_: Array

    _rules: ClassVar = {
        "n_clusters": integer(1),
        "n_topics": integer(2),
        "lda": LDA_RULE,
        "n_init_lda": integer(1),
        "n_init": integer(1),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        n_topics: int = 5,
        *,
        lda: Any = "sklearn",
        n_init_lda: int = 4,
        n_init: int = 10,
        random_state: RandomState = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_topics = n_topics
        self.lda = lda
        self.n_init_lda = n_init_lda
        self.n_init = n_init
        self.random_state = random_state

    def _fit(self, rows: Counts, rng: np.random.RandomState) -> None:
        *lda_seeds, seed = child_seeds(rng, self.n_init_lda + 1)
        self.lda_, self.shares_ = fit_topic_space(rows, self.lda, self.n_topics, lda_seeds)
        model = KMeans(self.n_clusters, n_init=self.n_init, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
            model.fit(self.shares_)
        self.labels_ = model.labels_.astype(np.int64)
        self.cluster_centers_, self.inertia_ = model.cluster_centers_, float(model.inertia_)


class GMMLDA(CountClusterer):
    """Gaussian mixture on the rows' topic shares under an LDA, with the covariance model chosen by BIC.

    Shares sum to one, so their covariance is singular. They are therefore expressed in an orthonormal basis of the
    directions in which they can differ (Helmert's), which has one coordinate fewer than there are topics, preserves
    distances and treats all topics alike.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of Gaussian components.
    n_topics : int, default=5
        Number of topics, at least 2.
    lda : "sklearn" or estimator, default="sklearn"
        scikit-learn's variational LDA, with row priors of 1 and 1/n_topics in turn, or an unfitted transformer
        such as `mmpca.topics.LDA()`, whose number of topics and seed are set here.
    space : {"shares", "log-ratio"}, default="shares"
        Coordinates of the shares themselves, or of their logarithms (isometric log-ratios).
    covariance : {"auto", "full", "tied", "diag", "spherical"}, default="auto"
        Covariance model; "auto" fits all four and keeps the one with the best BIC.
    n_init_lda : int, default=4
        Number of runs of the LDA; the one with the best score is kept.
    n_init : int, default=10
        Number of starts of EM for each covariance model, from k-means.
    random_state : int, RandomState instance or None, default=None
        Seed of both.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Most probable component of each row; a component may have no rows.
    covariance_ : str
        The covariance model.
    bics_ : dict of float
        BIC of each fitted covariance model; larger is better (scikit-learn's divided by -2).
    bic_, log_likelihood_ : float
        Of the chosen model, for coordinates scaled to a mean variance of one.
    converged_ : bool
        Whether its EM converged.
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
        **KMeansLDA._rules,
        "space": one_of("shares", "log-ratio"),
        "covariance": one_of("auto", *COVARIANCES),
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
            raise ValueError(f"GMMLDA needs at least 2 rows, but n_samples = {rows.n_rows}. Pass more rows.")

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
            warnings.simplefilter("ignore", ConvergenceWarning)  # reported as `converged_`
            return model.fit(points)


def coordinates(shares: Array, space: str) -> Array:
    """Return shares without their singular direction, scaled to a mean variance of one, (N, K) -> (N, K - 1).

    One scale for all coordinates does not affect the comparison of covariance models, and keeps scikit-learn's
    smallest variance negligible.
    """
    values = shares if space == "shares" else np.log(np.maximum(shares, _SMALLEST_SHARE))
    points: Array = values @ helmert(shares.shape[1]).T
    scale = float(np.sqrt(points.var(axis=0).mean()))
    # For identical rows, the scale is only a rounding error.
    return points / scale if scale > 1e-9 else points
