r"""Dispersion: the variance of counts within clusters, relative to the multinomial model, and a model for it.

**The index.** Row i of cluster q has total L_i and expected counts :math:`\mu_{iv} = L_i p_{qv}`, where p_q is the
cluster's profile. Under the multinomial model, :math:`E (x_{iv} - \mu_{iv})^2 = L_i p_{qv} (1 - p_{qv})`. The index

.. math:: \frac{1}{\nu} \sum_i \frac{\sum_v (x_{iv} - L_i p_{qv})^2 / L_i}{1 - \sum_v p_{qv}^2}

is then 1 on average. It is Pearson's statistic with numerator and denominator summed over the features before dividing:
in the classical sum of quotients, rare features with expected counts far below one would dominate. All rows have the
same weight, whatever their total. The rows were used to fit K topics or Q means, whichever are fewer, which leaves
:math:`\nu = N - \min(K, Q)` degrees of freedom, shared among the clusters by size.

**Bursts.** With ``dispersion="polya"``, the counts of feature v have :math:`\phi_v \ge 1` times the variance of the
multinomial model: :math:`x_{iv}` is negative binomial with mean :math:`\mu_{iv}` and shape
:math:`a_{iv} = \mu_{iv} / (\phi_v - 1)`. Up to a constant, its log-likelihood is minorized at any :math:`a^0` by
:math:`t \log a` with the effective count :math:`t = a^0 (\psi(x + a^0) - \psi(a^0))`, so the search and the topics run
on t instead of x. The shape at which t is computed must not depend on the row's own cluster, which would confirm any
partition: it uses the mean profile :math:`p^*_v = \sum_q M_{qv} p_{qv} / \sum_q M_{qv}`, in which each count of feature
v contributes the share of v in its cluster. The factors come from moments within clusters, see `burstiness`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmpca import kernels
from mmpca.backend import EXACT_BITS, LocalRows, RowBackend, Rows, Threads, even_slices, group_sums, map_rows
from mmpca.counts import Counts, Units

Array = NDArray[np.float64]

# Texts have an index of 1.6 to 2.2, because words come in bursts, and gain nothing from square roots; abundance and
# sequencing counts have 4.7 to 140 and do gain (docs/overdispersion.md).
LARGE_INDEX = 3.0
SCALE_BITS = 20  # squares are rounded to multiples of 2**-20, to make their sums exact in any order
PRIOR_ROWS = 10.0  # weight of the median factor in that of each feature: as if it were seen in as many further rows
MIN_SEEN = 3  # rows in which a feature must occur to count for the median
ENTRIES_AT_ONCE = 2**20  # squared together
MIN_VARIANCE = 1e-9  # of a single draw; a cluster with only one feature has no variance to compare


class Dispersion(NamedTuple):
    """Variance of the counts within clusters, as a multiple of the variance that the model expects.

    Attributes
    ----------
    overall : float
        NaN if there is nothing to compare: a single feature, or no degrees of freedom left.
    clusters : array of shape (Q,)
        The same for each cluster.
    """

    overall: float
    clusters: Array


def overdispersion(
    rows: Counts | RowBackend,
    labels: NDArray[np.int32],
    *,
    topics: Array,
    cluster_topics: Array,
    factors: Array | None = None,
) -> Dispersion:
    """Compare the variance of rows within their clusters with the model's; the index is about 1 if the model holds.

    Parameters
    ----------
    rows : Counts of shape (N, V) or RowBackend
    labels : array of int, shape (N,)
        Cluster of each row.
    topics : array of shape (K, V)
    cluster_topics : array of shape (Q, K)
    factors : array of shape (V,), optional
        Variance factors of the features, by which the model expects more variance than a multinomial.

    Returns
    -------
    Dispersion

    Examples
    --------
    >>> import numpy as np
    >>> from mmpca.counts import as_counts
    >>> X = np.random.default_rng(0).multinomial(50, [0.2, 0.3, 0.5], size=1000)
    >>> topics = X.sum(axis=0, keepdims=True) / X.sum()
    >>> fitted = {"topics": topics, "cluster_topics": np.ones((1, 1))}
    >>> round(overdispersion(as_counts(X), np.zeros(1000, dtype=int), **fitted).overall)
    1
    >>> round(overdispersion(as_counts(7 * X), np.zeros(1000, dtype=int), **fitted).overall)
    7
    """
    profiles = cluster_topics @ topics  # (Q, V)
    n_clusters, n_fitted = len(profiles), min(cluster_topics.shape)
    concentration = (profiles**2).sum(axis=1)  # (Q,)
    variance = 1.0 - concentration  # of one draw, summed over the features
    if factors is not None:
        variance = (profiles * (1.0 - profiles)) @ factors
    varies = variance > MIN_VARIANCE
    sizes = np.bincount(labels, minlength=n_clusters)
    freedom = np.where(varies, sizes * max(0.0, 1.0 - n_fitted / rows.n_rows), 0.0)
    backend = LocalRows(rows) if isinstance(rows, Counts) else rows
    every, labels = np.arange(rows.n_rows), np.asarray(labels, dtype=np.int32)
    by_row = map_rows(backend, row_deviations, every, labels, shared=(profiles, concentration))
    deviations = np.bincount(labels, by_row, n_clusters)
    ratios = np.divide(deviations, variance, out=np.zeros(n_clusters), where=varies)
    observed, expected = (np.append(by_cluster, by_cluster.sum()) for by_cluster in (ratios, freedom))  # all rows last
    index = np.divide(observed, expected, out=np.full(n_clusters + 1, np.nan), where=expected > 0)
    return Dispersion(float(index[-1]), index[:-1])


class Bursts(NamedTuple):
    """A variance factor for each feature, and the profile at which counts are weighed.

    Attributes
    ----------
    factors : array of shape (V,)
        Variance within clusters as a multiple of that of the multinomial model (phi), at least 1.
    profile : array of shape (V,)
        Mean profile of the clusters (p*); zero for features that never occurred.
    """

    factors: Array
    profile: Array

    @property
    def units(self) -> Units:
        """Effective counts, with the shapes of the negative binomial in a row with total 1 as rates."""
        excess = self.factors - 1.0  # without any, a rate is infinite
        return Units(rates=np.divide(self.profile, excess, out=np.full(len(excess), np.inf), where=excess > 0))


def burstiness(rows: Counts | RowBackend, labels: NDArray[np.int32], n_clusters: int) -> Bursts:
    r"""Estimate the variance factors of features from the rows of some clusters.

    The moments within clusters give

    .. math:: \hat\phi_v = \frac{\sum_q \frac{n_q}{n_q - 1} \sum_{i \in q} (x_{iv} - L_i p_{qv})^2 / L_i}
              {\sum_q n_q p_{qv} (1 - p_{qv})}

    with p_q the mean profile of the n_q > 1 rows of cluster q. A feature seen in few rows says little about its own
    factor, so each is shrunk toward the median of all, with a weight of ten rows. The overall factor would be a poor
    guess: it is that of the most abundant features.

    Parameters
    ----------
    rows : Counts of shape (N, V) or RowBackend
        The counts themselves.
    labels : array of int, shape (N,)
        Cluster of each row.
    n_clusters : int

    Returns
    -------
    Bursts

    Examples
    --------
    >>> import numpy as np
    >>> from mmpca.counts import as_counts
    >>> from mmpca.model.dispersion import burstiness
    >>> X = np.random.default_rng(0).multinomial(50, [0.2, 0.3, 0.5], size=1000)
    >>> burstiness(as_counts(X), np.zeros(1000, dtype=int), 1).factors.round()
    array([1., 1., 1.])
    >>> burstiness(as_counts(4 * X), np.zeros(1000, dtype=int), 1).factors.round()
    array([4., 4., 4.])
    """
    backend = LocalRows(rows) if isinstance(rows, Counts) else rows
    every, labels = np.arange(backend.n_rows), np.asarray(labels, dtype=np.int32)
    sums = backend.map_reduce(group_sums, every, labels, shared=(n_clusters,))  # M, (Q, V)
    scale = float(2.0 ** min(SCALE_BITS, EXACT_BITS - int(sums.sum(axis=0).max()).bit_length()))
    found = backend.map_reduce(squares_and_rows, every, labels, shared=(n_clusters, scale))  # (Q + 1, V)
    squares, n_seen = found[:-1] / scale, found[-1]
    sizes, totals = np.bincount(labels, minlength=n_clusters)[:, None], sums.sum(axis=1, keepdims=True)
    profiles = np.divide(sums, totals, out=np.zeros_like(sums), where=totals > 0)
    correction = np.where(sizes > 1, sizes / np.maximum(sizes - 1, 1), 0.0)  # (Q, 1)
    observed = (correction * (squares - sums * profiles)).sum(axis=0)  # (V,)
    expected = (np.where(sizes > 1, sizes, 0) * profiles * (1.0 - profiles)).sum(axis=0)  # (V,)
    factors = np.divide(observed, expected, out=np.ones_like(observed), where=expected > MIN_VARIANCE)
    often = (n_seen >= MIN_SEEN) & (expected > MIN_VARIANCE)
    middle = float(np.median(factors[often])) if often.any() else 1.0
    factors = np.maximum((n_seen * factors + PRIOR_ROWS * middle) / (n_seen + PRIOR_ROWS), 1.0)
    column = sums.sum(axis=0)
    mean = np.divide((sums * profiles).sum(axis=0), column, out=np.zeros_like(column), where=column > 0)
    return Bursts(factors, mean)


def squares_and_rows(
    block: Counts, rows: Rows, labels: NDArray[np.int32], n_clusters: int, scale: float, threads: Threads
) -> Array:
    """Return sum_i x_iv^2 / L_i of each cluster, times `scale` and rounded, then the rows with a feature, (Q + 1, V).

    Sums of whole numbers below 2**53 are exact in any order.
    """
    selected, n_features = block.take(rows), block.n_features
    found = np.zeros((n_clusters + 1, n_features))
    for part in even_slices(selected.indptr, -(-selected.nnz // ENTRIES_AT_ONCE)):
        some = selected.take(part)
        n_entries = np.diff(some.indptr)
        squares = np.rint(some.data.astype(np.float64) ** 2 / np.repeat(some.row_totals(), n_entries) * scale)
        at = np.repeat(labels[part].astype(np.int64) * n_features, n_entries) + some.indices
        found[:-1] += np.bincount(at, squares, n_clusters * n_features).reshape(n_clusters, n_features)
        found[-1] += np.bincount(some.indices, minlength=n_features)
    return found


def draw_bursts(
    totals: NDArray[np.int64], labels: NDArray[Any], profiles: Array, factors: Array, rng: np.random.RandomState
) -> sparse.csr_array:
    """Draw rows (N, V) with these totals, the profiles (Q, V) of their clusters as means, and variance factors (V,).

    Gamma variates with the shapes of the negative binomial replace the profile of each row; given the total, this is
    a Dirichlet-multinomial if all factors are equal.
    """
    excess = np.maximum(factors - 1.0, 1e-9)  # the limit is a Poisson distribution
    drawn = []
    for total, q in zip(totals, labels, strict=True):
        levels = rng.gamma(total * profiles[q] / excess) * excess
        levels = levels if levels.sum() > 0 else profiles[q]  # tiny shapes underflow
        drawn.append(sparse.csr_array(rng.multinomial(total, levels / levels.sum())[None]))
    return sparse.csr_array(sparse.vstack(drawn))


def draw_shares(
    totals: NDArray[np.int64],
    labels: NDArray[Any],
    topics: Array,
    cluster_topics: Array,
    concentration: float,
    rng: np.random.RandomState,
) -> sparse.csr_array:
    """Draw rows (N, V) with these totals, whose topic shares are Dirichlet around those of their clusters (Q, K)."""
    drawn = []
    for total, q in zip(totals, labels, strict=True):
        levels = rng.gamma(concentration * cluster_topics[q])
        levels = levels if levels.sum() > 0 else cluster_topics[q]  # tiny shapes underflow
        profile = levels @ topics
        drawn.append(sparse.csr_array(rng.multinomial(total, profile / profile.sum())[None]))
    return sparse.csr_array(sparse.vstack(drawn))


# --- what people see --------------------------------------------------------------------------------------------


class Shown(NamedTuple):
    """Topics and clusters as shares of the original counts, for tables, pages and plots.

    Attributes
    ----------
    topics : array of shape (K, V)
        Share of each feature in each topic.
    cluster_topics : array of shape (Q, K)
        Share of each topic in each cluster.
    weights : array of shape (Q,)
        Share of the rows in each cluster.
    """

    topics: Array
    cluster_topics: Array
    weights: Array
    counts: Array | None = None  # of clusters whose profiles are not those of the topics, (Q, V)

    @property
    def profiles(self) -> Array:
        """Share of each feature in each cluster, (Q, V)."""
        if self.counts is None:
            return self.cluster_topics @ self.topics
        profiles: Array = self.counts / self.counts.sum(axis=1, keepdims=True)
        return profiles

    @property
    def overall(self) -> Array:
        """Share of each feature in all rows, (V,): the mean of the profiles, weighted by the sizes of the clusters."""
        return self.weights @ self.profiles


def in_counts(model: Any) -> Shown:
    r"""Return the topics and clusters of a fitted model in terms of the original counts.

    A model of counts is shown by its own parameters. One of square roots or of effective counts is in other units:
    there, the counts of cluster q are divided among the topics as the model divides its units,
    :math:`M_{qv} \theta_{qk} \beta_{kv} / \sum_l \theta_{ql} \beta_{lv}`, and shown as shares of these.

    Examples
    --------
    >>> import numpy as np
    >>> from mmpca import MMPCA
    >>> X = [[81, 1, 0], [64, 1, 0], [1, 81, 1], [1, 64, 1]]
    >>> model = MMPCA(2, 2, stabilize="sqrt", random_state=0).fit(X)
    >>> bool(np.allclose(in_counts(model).profiles, model.cluster_counts_ / model.cluster_counts_.sum(1)[:, None]))
    True
    """
    topics, shares = np.asarray(model.components_), np.asarray(model.cluster_topics_)
    weights = np.asarray(model.weights_)
    if getattr(model, "stabilize_", None) is None and getattr(model, "dispersion_", "multinomial") != "polya":
        return Shown(topics, shares, weights)
    counts = model.cluster_counts_
    shown_topics, shown_shares = np.zeros_like(topics), np.zeros_like(shares)
    for q, theta in enumerate(shares):
        joint = theta[:, None] * topics  # (K, V)
        total = joint.sum(axis=0)
        joint = np.divide(joint * counts[q], total, out=np.zeros_like(joint), where=total > 0)
        shown_topics += joint
        shown_shares[q] = joint.sum(axis=1)
    in_topic = shown_topics.sum(axis=1, keepdims=True)
    # A topic that no cluster uses has no counts: it is shown by its own parameters.
    shown_topics = np.divide(shown_topics, in_topic, out=topics.copy(), where=in_topic > 0)
    return Shown(shown_topics, shown_shares / shown_shares.sum(axis=1, keepdims=True), weights, counts)


def advice(overall: float, *, dispersion: str, stabilize: str | None, is_command: bool = False) -> str | None:
    """Return advice on a large index, in terms of Python or of the command line; None if there is nothing to do.

    Under ``dispersion="polya"`` there is nothing left to try: the factors already allow for the variance.
    """
    if dispersion == "polya" or not overall > LARGE_INDEX:
        return None
    name = "overdispersion" if is_command else "overdispersion_"
    polya = "--dispersion polya" if is_command else 'dispersion="polya"'
    roots = "--stabilize sqrt" if is_command else 'stabilize="sqrt"'
    what = "counts" if stabilize is None else "square roots of counts"
    remedy = f"Try {polya}, which models it" + (f", or {roots}." if stabilize is None else f" without {roots}.")
    return (
        f"Within clusters, {what} vary {overall:.3g} times as much as the model expects ({name}), so clusters may "
        f"reflect a few dominant features instead of whole profiles. {remedy}"
    )


def advice_on(model: Any, *, is_command: bool = False) -> str | None:
    """Return the advice on a fitted model; None if ``dispersion="auto"`` has compared the remedies already."""
    if model.dispersion == "auto" and model.stabilize is None and model.topics_source_ not in ("given", "random"):
        return None
    kind = {"dispersion": model.dispersion_, "stabilize": model.stabilize_}
    return advice(float(model.overdispersion_), **kind, is_command=is_command)


def plain_deviations(rows: Counts, labels: NDArray[np.int32], profiles: Array) -> Array:
    """Return sum_v (x_iv - L_i p_v)^2 / L_i of each row in plain NumPy; profiles: (Q, V) -> (N,)."""
    X = rows.to_csr().toarray().astype(np.float64)  # (N, V)
    totals = X.sum(axis=1, keepdims=True)
    deviations: Array = ((X - totals * profiles[labels]) ** 2 / totals).sum(axis=1)
    return deviations


def row_deviations(
    block: Counts, rows: Rows, labels: NDArray[np.int32], profiles: Array, concentration: Array, threads: Threads
) -> Array:
    """Return the same for some rows of a block, without dense counts or profiles of other clusters."""
    deviations = np.empty(len(rows))
    threads.for_rows(partial(kernels.row_deviations, block, profiles, concentration), rows, labels, deviations)
    return deviations
