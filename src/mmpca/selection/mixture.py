r"""Compare numbers of clusters by a mixture over the rows' topic counts that lets rows of one cluster differ.

Given K topics, row i has expected topic counts :math:`s_i`, (K,). The rows of a cluster mix the topics differently:
:math:`\theta_i \sim` Dirichlet(:math:`\alpha_q`), so the counts are Dirichlet-multinomial,

.. math:: \log p(s_i | q) = \log\Gamma(A_q) - \log\Gamma(A_q + L_i)
          + \sum_k [\log\Gamma(\alpha_{qk} + s_{ik}) - \log\Gamma(\alpha_{qk})], \quad A_q = \sum_k \alpha_{qk}.

EM fits the mixture in K dimensions, which takes little time beside learning the topics. Numbers of clusters are
compared by BIC: the log-likelihood minus half of log N for each of the Q K + Q - 1 parameters.

The density takes :math:`s_i` for :math:`L_i` counts whose topics were seen. They were not: where features come in
bursts or topics overlap, the shares of a row are known far less exactly, and estimates end at zero by chance. A density
that takes such zeros for exact has a cluster for each pattern of them. Row i therefore enters with
:math:`L_i / \phi` counts, as many as would determine its shares equally well. `noise_factor` estimates :math:`\phi`
from two halves of the features.

A Dirichlet distribution with all parameters below one has a mode in every corner: one component would be several
clusters, and a single one could describe any collection of texts. Every cluster therefore has a parameter of at least
one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, logsumexp, polygamma

from mmpca.counts import Counts
from mmpca.model.starts import fill_empty, kmeans_labels
from mmpca.monitor import Monitor
from mmpca.selection import kernels
from mmpca.selection.held_out import LEAST_MASS, in_halves, random_halves
from mmpca.topics import topic_shares

Array = NDArray[np.float64]
Labels = NDArray[np.int32]

N_HALVINGS = 2  # of the features, to estimate the noise of topic shares
LEAST_ALPHA = 1e-4
LEAST_MODE = 1.0  # of the largest parameter of a cluster
MOST_LENGTHS = 20.0  # largest concentration, in median lengths of the rows: beyond, rows look multinomial
FIRST_CONCENTRATION = 20.0
LEAST_WEIGHT = 1e-6  # of a row in a cluster
REACH = 25.0  # nats behind its best cluster, beyond which a cluster is left out for some steps
FULL_PASS = 5  # steps after which all clusters are compared again
FIRST_STEPS, TRIAL_STEPS, MOST_STEPS = 6, 12, 150
TOL = 1e-5  # nats per row gained by a step, below which EM ends
N_DIRECTIONS = 2  # in which a cluster is split
LEAST_SPLIT = 4  # rows of a cluster that can be split
N_PARTITIONS = 2  # of k-means, from which EM starts besides the split
PATIENCE = 3  # larger numbers to try without a better one
ROWS_AT_ONCE = 10_000  # whose probabilities of all clusters are in memory at the same time
FOUND = 0.5  # overlap (Jaccard) of a cluster with one of a resample that counts as the same
RESAMPLED_SHARE = 0.8  # of the rows, drawn without replacement
N_SPLITS = 2  # by which a resample arrives at its number of clusters


class ShareMixture(NamedTuple):
    """A fitted mixture."""

    alphas: Array  # (Q, K)
    weights: Array  # (Q,)
    joint: Array  # log of weight times density, (N, Q); -inf where negligible
    log_likelihood: float

    @property
    def labels(self) -> Labels:
        """The most probable cluster of each row."""
        labels: Labels = self.joint.argmax(axis=1).astype(np.int32)
        return labels

    @property
    def bic(self) -> float:
        """Log-likelihood minus half of log N for each parameter; larger is better."""
        n_clusters, n_topics = self.alphas.shape
        return self.log_likelihood - 0.5 * (n_clusters * n_topics + n_clusters - 1) * float(np.log(len(self.joint)))


def errors_against(best: int, path: Mapping[int, ShareMixture]) -> Array:
    """Return the standard error of how far the log-likelihood of each mixture is from that of the best one.

    The difference is a sum over the rows, so its error follows from how much they vary.
    """
    by_row = {n: logsumexp(one.joint, axis=1) for n, one in path.items()}  # (N,) each
    return np.array([np.sqrt(len(own)) * (by_row[best] - own).std() for own in by_row.values()])


def topic_counts(rows: Counts, beta: Array, factor: float = 1.0) -> Array:
    """Return the expected topic counts of each row, (N, K), under a prior that weighs as much as a single count.

    With a :func:`noise_factor`, `factor` counts of the row are one here.
    """
    shares = topic_shares(rows, beta, prior=factor / len(beta))
    counts: Array = shares * (rows.row_totals() / factor)[:, None]
    return counts


def noise_factor(rows: Counts, beta: Array, rng: np.random.Generator) -> float:
    r"""Return the variance of the rows' estimated topic shares, as a multiple of that of :math:`L_i` draws of topics.

    Two random halves of the features give two estimates a and b of the shares of a row, with independent errors of
    twice the variance that all features give. Hence :math:`|a - b|^2 / 4` estimates the variance, whatever the cluster
    of the row, and :math:`(1 - a'b) / L` the variance of L draws. The factor is the ratio of their sums, at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from mmpca.counts import as_counts
    >>> rng = np.random.default_rng(0)
    >>> beta = np.repeat(np.eye(2), 50, axis=1) / 50
    >>> X = rng.multinomial(100, np.array([0.3, 0.7]) @ beta, size=500)
    >>> [round(noise_factor(as_counts(times * X), beta, rng)) for times in (1, 4)]
    [1, 4]
    """
    lengths, observed, expected = rows.row_totals(), 0.0, 0.0
    for _ in range(N_HALVINGS if len(beta) > 1 else 0):
        halves = random_halves(rows.n_features, rng)
        known = in_halves(rows, halves)
        is_seen = (known[0].row_totals() > 0) & (known[1].row_totals() > 0)
        a, b = (_shares_from_half(part, beta[:, half])[is_seen] for part, half in zip(known, halves, strict=True))
        observed += 0.25 * float(((a - b) ** 2).sum())
        expected += float(((1.0 - (a * b).sum(axis=1)) / lengths[is_seen]).sum())
    return max(1.0, observed / expected) if expected > 0 else 1.0


def _shares_from_half(rows: Counts, beta: Array) -> Array:
    """Return the topic shares of rows with some of the features, as shares of all features; beta: (K, V / 2)."""
    masses = np.maximum(beta.sum(axis=1), LEAST_MASS)  # (K,)
    shares: Array = topic_shares(rows, beta / masses[:, None], prior=1.0 / len(beta)) / masses
    return shares / shares.sum(axis=1, keepdims=True)


# --- EM ---------------------------------------------------------------------------------------------------------


def plain_log_densities(counts: Array, alphas: Array) -> Array:
    """Return log p(s_i | q), (N, Q): :func:`mmpca.selection.kernels.log_densities` in plain NumPy."""
    total, length = alphas.sum(axis=1), counts.sum(axis=1)[:, None]
    rising = gammaln(alphas + counts[:, None]) - gammaln(alphas)  # (N, Q, K)
    densities: Array = rising.sum(axis=2) - gammaln(total + length) + gammaln(total)
    return densities


def plain_newton_step(counts: Array, weights: Array, alphas: Array) -> Array:
    """Return the Newton step in log(alpha), (Q, K): :func:`mmpca.selection.kernels.newton_step` in plain NumPy."""
    total, length = alphas.sum(axis=1), counts.sum(axis=1)[:, None]
    at, w = alphas + counts[:, None], weights[:, :, None]
    slope = (w * (digamma(at) - digamma(alphas))).sum(axis=0)  # (Q, K)
    bend = (w * (polygamma(1, at) - polygamma(1, alphas))).sum(axis=0)
    common_slope = (weights * (digamma(total + length) - digamma(total))).sum(axis=0)[:, None]
    common_bend = -(weights * (polygamma(1, total + length) - polygamma(1, total))).sum(axis=0)[:, None]
    concave = np.maximum(alphas * common_slope, 1e-12)
    curvature = concave - alphas * slope - alphas**2 * bend
    curvature = np.where(curvature > 1e-12, curvature, concave)
    plain, common = alphas * (slope - common_slope) / curvature, alphas / curvature
    divisor = 1.0 - common_bend * (alphas * common).sum(axis=1, keepdims=True)
    share = np.where(divisor > 0, common_bend / np.where(divisor > 0, divisor, 1.0), 0.0)
    step: Array = plain + common * share * (alphas * plain).sum(axis=1, keepdims=True)
    return np.clip(step, -kernels.LONGEST_STEP, kernels.LONGEST_STEP)


class _Problem(NamedTuple):
    """Topic counts of rows, and the largest concentration."""

    counts: Array  # (N, K)
    totals: Array  # (N,)
    most: float

    @classmethod
    def of(cls, counts: Array) -> _Problem:
        """Return the problem of rows (N, K)."""
        totals = counts.sum(axis=1)
        return cls(np.ascontiguousarray(counts), totals, MOST_LENGTHS * float(np.median(totals)) + 10.0)

    def take(self, rows: NDArray[np.intp]) -> _Problem:
        """Return the problem of some of the rows."""
        return self._replace(counts=np.ascontiguousarray(self.counts[rows]), totals=self.totals[rows])

    def moved(self, alphas: Array, step: Array) -> Array:
        """Return parameters after a step in their logarithms, within their limits."""
        new = np.maximum(alphas * np.exp(step), LEAST_ALPHA)
        new *= np.minimum(1.0, self.most / new.sum(axis=1, keepdims=True))
        new *= np.maximum(1.0, LEAST_MODE / new.max(axis=1, keepdims=True))
        result: Array = np.maximum(new, LEAST_ALPHA)
        return result

    def newton_step(self, alphas: Array, responsibilities: Array) -> Array:
        """Return a step in the logarithms of the parameters, (Q, K)."""
        step = np.empty_like(alphas)
        kernels.newton_step(self.counts, self.totals, responsibilities, alphas, LEAST_WEIGHT, step)
        return step

    def joint(self, alphas: Array, weights: Array, is_active: NDArray[np.bool_]) -> tuple[Array, float]:
        """Return the log of weight times density, (N, Q), and the log-likelihood."""
        joint = np.empty((len(self.counts), len(alphas)))
        kernels.log_densities(self.counts, self.totals, alphas, is_active, joint)
        joint += np.log(np.maximum(weights, 1e-300))
        return joint, float(_log_sums(joint).sum())

    def from_labels(self, labels: Labels, n_clusters: int) -> ShareMixture:
        """Return the mixture of a partition, after a few steps with it held fixed."""
        responsibilities = np.eye(n_clusters)[labels]
        means = responsibilities.T @ self.counts + 0.1
        alphas = self.moved(FIRST_CONCENTRATION * means / means.sum(axis=1, keepdims=True), np.zeros_like(means))
        for _ in range(FIRST_STEPS):
            alphas = self.moved(alphas, self.newton_step(alphas, responsibilities))
        weights = responsibilities.mean(axis=0)
        everything = np.ones((len(labels), n_clusters), dtype=bool)
        return ShareMixture(alphas, weights, *self.joint(alphas, weights, everything))

    def run(self, start: ShareMixture, n_steps: int) -> ShareMixture:
        """Improve a mixture by EM; the log-likelihood never decreases.

        A Newton step of the parameters need not raise it, so it is shortened until it does. In most steps, only those
        clusters of a row are evaluated that were within reach of its best one.
        """
        now, everything = start, np.ones_like(start.joint, dtype=bool)
        is_active = everything
        for n in range(n_steps):
            responsibilities = np.exp(now.joint - _log_sums(now.joint)[:, None])
            weights, step = responsibilities.mean(axis=0), self.newton_step(now.alphas, responsibilities)
            if n % FULL_PASS == 0:
                is_active = everything
            for _ in range(6):
                alphas = self.moved(now.alphas, step)
                new = ShareMixture(alphas, weights, *self.joint(alphas, weights, is_active))
                if new.log_likelihood >= now.log_likelihood:
                    break
                step *= 0.25
            else:
                break
            gain, now = new.log_likelihood - now.log_likelihood, new
            if n % FULL_PASS == 0:
                is_active = now.joint > now.joint.max(axis=1, keepdims=True) - REACH
                if n and gain < TOL * len(now.joint):
                    break
        joint = self.joint(now.alphas, now.weights, everything)
        return ShareMixture(now.alphas, now.weights, *joint)

    def split(self, mixture: ShareMixture) -> ShareMixture | None:
        """Return the mixture with one cluster split in two, where that gains most; None if none can be split."""
        best, labels = None, mixture.labels
        for q in range(len(mixture.weights)):
            at = np.flatnonzero(labels == q)
            if len(at) < LEAST_SPLIT:
                continue
            part = self.take(at)
            whole = float(mixture.joint[at, q].sum()) - len(at) * float(np.log(mixture.weights[q]))
            points = np.sqrt(part.counts / part.totals[:, None])
            points -= points.mean(axis=0)
            directions = np.linalg.eigh(points.T @ points)[1][:, ::-1][:, :N_DIRECTIONS]
            for side in (points @ directions > 0).T:
                if 0 < side.sum() < len(side):
                    halves = part.run(part.from_labels(side.astype(np.int32), 2), TRIAL_STEPS)
                    if best is None or halves.log_likelihood - whole > best[0]:
                        best = (halves.log_likelihood - whole, q, halves)
        if best is None:
            return None
        _, q, halves = best
        alphas = np.vstack([np.delete(mixture.alphas, q, axis=0), halves.alphas])
        weights = np.append(np.delete(mixture.weights, q), mixture.weights[q] * halves.weights)
        everything = np.ones((len(labels), len(weights)), dtype=bool)
        return ShareMixture(alphas, weights, *self.joint(alphas, weights, everything))

    def fit(
        self,
        n_clusters: int,
        rng: np.random.Generator,
        smaller: ShareMixture | None,
        n_starts: int,
        n_steps: int = MOST_STEPS,
    ) -> ShareMixture:
        """Fit a mixture from partitions by k-means, and from a smaller mixture by splitting its clusters."""
        shares = self.counts / self.totals[:, None]
        starts = [
            self.from_labels(kmeans_labels(np.sqrt(shares), n_clusters, rng), n_clusters)
            for _ in range(n_starts if n_clusters > 1 else 1)
        ]
        while smaller is not None and len(smaller.weights) < n_clusters:
            smaller = self.split(smaller)
        if smaller is not None:
            starts.append(smaller)
        tried = [self.run(start, TRIAL_STEPS) for start in starts]
        return self.run(max(tried, key=lambda one: one.log_likelihood), n_steps)


def _log_sums(joint: Array) -> Array:
    """Return the logarithm of the sum of exponentials of each row, (N,)."""
    largest = joint.max(axis=1)
    sums: Array = largest + np.log(np.exp(joint - largest[:, None]).sum(axis=1))
    return sums


def fit_mixture(
    counts: Array, n_clusters: int, rng: np.random.Generator, *, n_starts: int = N_PARTITIONS
) -> ShareMixture:
    """Fit a mixture of Dirichlet-multinomials to topic counts (N, K).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> shares = np.vstack([rng.dirichlet([18, 2], 50), rng.dirichlet([4, 16], 50)])
    >>> counts = np.array([rng.multinomial(100, p) for p in shares], dtype=float)
    >>> (fit_mixture(counts, 2, rng).alphas.max(axis=1) > 10).all()
    np.True_
    """
    return _Problem.of(counts).fit(n_clusters, rng, None, n_starts)


# --- numbers of clusters ----------------------------------------------------------------------------------------


def mixture_path(
    counts: Array, rng: np.random.Generator, numbers: Sequence[int] | None = None, monitor: Monitor | None = None
) -> dict[int, ShareMixture]:
    """Fit mixtures of 1, 2, ... clusters for as long as BIC rises, or of the given numbers of clusters.

    The path ends when none of `PATIENCE` larger numbers is better. From 16 on it takes larger steps, and finally tries
    the numbers around the best. A stopped monitor ends it after the first number.

    Parameters
    ----------
    counts : array of shape (N, K)
        Topic counts of the rows.
    rng : Generator
    numbers : sequence of int, optional
        Ascending.
    monitor : Monitor, optional
        Receives each number as a step.

    Returns
    -------
    dict of int to ShareMixture
        In ascending order.
    """
    problem, monitor = _Problem.of(counts), Monitor() if monitor is None else monitor
    path: dict[int, ShareMixture] = {}

    def extend(candidates: Iterator[int]) -> None:
        for n in candidates:
            if path and monitor.is_stopped:
                return
            # A split of a much smaller mixture would take as many steps as there are numbers in between.
            before = max((q for q in path if q < n and n - q <= max(1, q // 4)), default=None)
            path[n] = problem.fit(n, rng, None if before is None else path[before], N_PARTITIONS)
            monitor.step()

    def best() -> int:
        return max(path, key=lambda q: path[q].bic)

    if numbers is not None:
        extend(iter(numbers))
        return path
    largest = len(counts) if counts.shape[1] > 1 else 1  # with one topic, all rows are alike

    def rising() -> Iterator[int]:
        n = 1
        while n <= largest and sum(q > best() for q in path) < PATIENCE if path else True:
            yield n
            n += max(1, n // 8)

    extend(rising())
    tried = sorted(path)
    at = tried.index(best())
    around = range(tried[max(0, at - 1)], tried[min(len(tried) - 1, at + 1)] + 1)
    extend(n for n in around if n not in path)
    return dict(sorted(path.items()))


def labels_of(counts: Array, mixture: ShareMixture, rng: np.random.Generator) -> Labels:
    """Return the most probable clusters of rows (N, K) under a mixture; rows are moved to fill empty clusters."""
    n_clusters, labels = len(mixture.weights), np.empty(len(counts), dtype=np.int32)
    for first in range(0, len(counts), ROWS_AT_ONCE):
        some = slice(first, first + ROWS_AT_ONCE)
        is_active = np.ones((len(counts[some]), n_clusters), dtype=bool)
        joint, _ = _Problem.of(counts[some]).joint(mixture.alphas, mixture.weights, is_active)
        labels[some] = joint.argmax(axis=1)
    return fill_empty(labels, n_clusters, rng)


def found_again(counts: Array, labels: Labels, rng: np.random.Generator) -> Array:
    """Return the largest overlap (Jaccard index) of each cluster with a cluster of a resample, (Q,).

    The mixture is fitted to a random 80% of the rows, from starts of its own.
    """
    n_clusters = int(labels.max()) + 1
    some = np.sort(rng.permutation(len(counts))[: max(n_clusters, round(RESAMPLED_SHARE * len(counts)))])
    problem = _Problem.of(counts[some])
    smaller = None
    for n in range(max(1, n_clusters - N_SPLITS), n_clusters):  # k-means alone misses small clusters
        smaller = problem.fit(n, rng, smaller, 1, TRIAL_STEPS)
    again = problem.fit(n_clusters, rng, smaller, N_PARTITIONS).labels
    table = np.zeros((n_clusters, n_clusters))
    np.add.at(table, (labels[some], again), 1.0)
    union = table.sum(axis=1, keepdims=True) + table.sum(axis=0) - table
    overlap: Array = (table / np.maximum(union, 1.0)).max(axis=1)
    return overlap
