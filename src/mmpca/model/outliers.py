r"""Outliers: rows that their cluster does not explain, with scores that do not depend on the length of a row.

**The score.** Let :math:`\ell(x) = \log p(x | q)` be the log-probability of a row under its cluster, with the
multinomial coefficient; a fitted row is evaluated without its own contribution. The score of the row is the
probability that a row of the same length, drawn from the same cluster, is no more probable. Without outliers, scores
are uniform between 0 and 1, so a level of 0.01 marks one row in a hundred, short or long.

**Simulated rows.** Rows are drawn for each cluster at lengths 1, 2, 3, 5, 8, ..., each about 1.5 times the last; means
and spreads of :math:`\ell` at other lengths are interpolated, and the shape of the tail is that of all clusters
together. Rows are drawn as the model says: with ``"shares"``, each has its own topic proportions; with ``"polya"``,
features come in bursts. A multinomial model does not allow for overdispersion, so nearly every row of real counts would
be an outlier. Its rows are therefore drawn from a Dirichlet-multinomial distribution with the median of
`cluster_overdispersion_`; the median ignores clusters that outliers have inflated.

**Standardization.** No such model is exact. Scores of a sample of the fitted rows, as normal quantiles, are therefore
centered at their median and divided by the spread of their lower half, both by length. This assumes that most fitted
rows belong to their clusters, and that whatever the model misses stretches the distribution of all rows alike: the
quantiles below 20% are extrapolated from the model, not estimated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln, ndtr, ndtri

from mmpca.backend import Rows, Threads
from mmpca.counts import Counts, as_counts, no_rows, stacked
from mmpca.engine import shares
from mmpca.model.dispersion import draw_bursts, draw_shares, in_counts
from mmpca.topics import unseen_terms

if TYPE_CHECKING:
    from mmpca.model.estimator import MMPCA

Array = NDArray[np.float64]
Labels = NDArray[np.int32]

OUTLIER = -1  # label of rows that are in no cluster
STEP = 1.5  # ratio of successive simulated lengths
TAIL = 0.05  # share of the simulated rows in the lower tail, which is smoothed by an exponential distribution
MOST_DRAWS, LEAST_DRAWS, CLUSTER_DRAWS = 2000, 500, 50  # at each length: from all clusters, and at least from each
DRAWN_COUNTS = 4_000_000  # at each length, unless LEAST_DRAWS rows have more
N_KNOT_VALUES = 3  # log-length, median and spread
LOW = 0.2  # quantile that measures the spread of the lower half
ROWS_PER_KNOT, MOST_KNOTS, LEAST_ROWS = 300, 8, 50  # of the standardization; with fewer rows, there is none
SMALLEST_SPREAD = 1e-6  # of log-probabilities: rows of a single feature are all alike


# --- simulated rows ---------------------------------------------------------------------------------------------


def draw_dirichlet_multinomial(
    length: int, n_rows: int, profile: Array, factor: float, rng: np.random.Generator
) -> sparse.csr_array:
    """Draw rows (n, V) of one length and mean profile (V,), whose variance is about `factor` times multinomial.

    With c = L / (factor - 1), count t of a row is drawn from the profile with probability c / (c + t), and otherwise
    repeats one of the t counts before it (Pólya's urn). If there are fewer features than counts, gamma variates divided
    by their sum replace the profile, which gives the same distribution.
    """
    concentration = length / (factor - 1.0) if factor > 1.0 + 1e-6 else np.inf
    if length > len(profile):
        levels = np.broadcast_to(profile, (n_rows, len(profile)))
        if np.isfinite(concentration):
            drawn = rng.gamma(np.broadcast_to(concentration * profile, levels.shape))
            levels = np.where(drawn.sum(axis=1, keepdims=True) > 0, drawn, levels)  # tiny shapes underflow
        return sparse.csr_array(rng.multinomial(length, levels / levels.sum(axis=1, keepdims=True)))
    position = np.arange(length)
    source = np.broadcast_to(position, (n_rows, length))
    if np.isfinite(concentration):
        is_new = rng.random((n_rows, length)) * (concentration + position) < concentration
        source = np.where(is_new, source, (rng.random((n_rows, length)) * position).astype(np.int64))
        while True:  # follow repeats of repeats to the count that was drawn from the profile
            next_source = np.take_along_axis(source, source, axis=1)
            if np.array_equal(next_source, source):
                break
            source = next_source
    cumulative = np.cumsum(profile)
    drawn = np.searchsorted(cumulative, rng.random((n_rows, length)) * cumulative[-1], side="right")
    features = np.take_along_axis(np.minimum(drawn, np.flatnonzero(profile)[-1]), source, axis=1)
    indptr = np.arange(0, n_rows * length + 1, length)
    ones = np.ones(n_rows * length, dtype=np.int64)
    X = sparse.csr_array((ones, features.ravel(), indptr), shape=(n_rows, len(profile)))
    X.sum_duplicates()
    return X


class Cell(NamedTuple):
    """Log-probabilities of simulated rows of one length."""

    length: int
    means: Array  # per count, of each cluster, (Q,)
    spreads: Array  # (Q,)
    z: Array  # standardized, of all clusters, sorted, (n,)
    start: float  # of the tail
    excess: float  # mean distance of the rows in the tail from there

    def tail(self, z: Array) -> Array:
        """Return the probability of at most these standardized values."""
        n_below = np.searchsorted(self.z, z + 1e-9, side="right")
        p = np.clip(n_below / len(self.z), TAIL, 1.0 - 0.5 / len(self.z))
        smoothed: Array = np.where(z < self.start, TAIL * np.exp(np.minimum(0.0, (z - self.start) / self.excess)), p)
        return smoothed


class Reference:
    """Log-probabilities of rows simulated from a fitted model, by cluster and length.

    Cells are simulated when first needed, each from its own seed, so the score of a row does not depend on which
    other rows are scored.
    """

    def __init__(self, model: MMPCA, cells: dict[int, Cell]) -> None:
        self.model, self.mixture, self._cells = model, model.mixture(), cells
        self._lengths = np.array([1])
        self._unseen = unseen_terms(self.mixture.topics, float(model.unit_counts.sum()))
        is_bursty = model.dispersion_ == "polya"
        profiles = in_counts(model).profiles if is_bursty else self.mixture.cluster_topics @ self.mixture.topics
        self.profiles = profiles / profiles.sum(axis=1, keepdims=True)  # (Q, V)
        found = model.cluster_overdispersion_
        self.factor = max(1.0, float(np.nanmedian(found))) if not np.isnan(found).all() else 1.0

    def scores(self, rows: Counts, lengths: NDArray[Any], clusters: Labels, *, is_fitted: bool) -> Array:
        """Return the tail probabilities of rows in the units of the fit, (N,), before standardization.

        `lengths` (N,) are the totals of the rows as they are drawn; an empty row has probability 1.
        """
        found = np.ones(rows.n_rows)
        for q in range(len(self.profiles)):
            members = np.flatnonzero((clusters == q) & (lengths > 0))
            if len(members):
                observed = self.log_probability(rows.take(members), q, is_fitted=is_fitted)
                found[members] = self._tails(observed, lengths[members].astype(np.float64), q)
        return found

    def log_probability(self, rows: Counts, q: int, *, is_fitted: bool) -> Array:
        """Return log p(x_i | q), (N,), with multinomial coefficients; fitted rows of the cluster without themselves."""
        mixture, left_out = self.mixture, None
        if is_fitted and mixture.topic_params is not None and mixture.sizes is not None:
            own = np.zeros(rows.n_rows, dtype=np.int32)
            left_out = shares.LeftOut(own, mixture.topic_params[[q]], mixture.sizes[[q]], mixture.topic_prior)
        evidence = shares.row_evidence(
            rows,
            topics=mixture.topics,
            cluster_topics=mixture.cluster_topics[[q]],
            concentration=np.array([np.inf if mixture.concentration is None else mixture.concentration]),
            left_out=left_out,
        )[:, 0]
        row = np.repeat(np.arange(rows.n_rows), np.diff(rows.indptr))
        coefficients = gammaln(rows.row_totals() + 1.0) - np.bincount(row, gammaln(rows.data + 1.0), rows.n_rows)
        probability: Array = evidence + coefficients + rows.to_csr() @ self._unseen
        return probability

    def _tails(self, observed: Array, lengths: Array, q: int) -> Array:
        """Return the tail probabilities of log-probabilities under cluster q, (n,)."""
        grid = self._grid(float(lengths.max()))
        at = np.clip(np.searchsorted(grid, lengths, side="right") - 1, 0, len(grid) - 2)  # grid[at] <= length
        found = np.empty(len(lengths))
        for j in np.unique(at).tolist():
            some = at == j
            near = [self._cell(number) for number in range(max(0, j - 1), j + 3)]
            x, t = np.log([cell.length for cell in near]), np.log(lengths[some])
            means = lengths[some] * _interpolated(x, np.array([cell.means[q] for cell in near]), t)
            low, high = self._cell(j), self._cell(j + 1)
            weight = (t - np.log(low.length)) / np.log(high.length / low.length)
            spreads = np.exp((1 - weight) * np.log(low.spreads[q]) + weight * np.log(high.spreads[q]))
            z = (observed[some] - means) / spreads
            found[some] = (1 - weight) * low.tail(z) + weight * high.tail(z)
        return found

    def _grid(self, largest: float) -> NDArray[np.int64]:
        """Return the lengths to simulate, up to two beyond the largest."""
        while self._lengths[-1] <= largest or len(self._lengths) < 4:
            self._lengths = np.append(self._lengths, max(self._lengths[-1] + 1, round(self._lengths[-1] * STEP)))
        return np.append(self._lengths, max(self._lengths[-1] + 1, round(self._lengths[-1] * STEP)))

    def _cell(self, number: int) -> Cell:
        if number not in self._cells:
            grid = self._grid(float(self._lengths[-1]))
            self._cells[number] = self._simulate(int(grid[number]), number)
        return self._cells[number]

    def _simulate(self, length: int, number: int) -> Cell:
        """Draw rows of one length for all clusters."""
        n_clusters, n_features = self.profiles.shape
        n_drawn = np.clip(DRAWN_COUNTS // min(length, n_features), LEAST_DRAWS, MOST_DRAWS)
        if self.model.dispersion_ != "multinomial":  # whose rows take longer to draw and to score
            n_drawn = LEAST_DRAWS
        n_each = max(CLUSTER_DRAWS, int(n_drawn) // n_clusters)
        values = np.empty((n_clusters, n_each))
        for q in range(n_clusters):
            drawn = self._draw(length, n_each, q, np.random.SeedSequence([number, q]))
            values[q] = self.log_probability(drawn, q, is_fitted=False)
        means, spreads = values.mean(axis=1), np.maximum(values.std(axis=1, ddof=1), SMALLEST_SPREAD)
        z = np.sort(((values - means[:, None]) / spreads[:, None]).ravel())
        start = float(np.quantile(z, TAIL))
        return Cell(length, means / length, spreads, z, start, max(start - float(z[z <= start].mean()), 1e-3))

    def _draw(self, length: int, n_rows: int, q: int, seed: np.random.SeedSequence) -> Counts:
        """Draw rows of cluster q, in the units of the fit."""
        model, totals = self.model, np.full(n_rows, length)
        own, rng = np.zeros(n_rows, dtype=np.int64), np.random.RandomState(seed.generate_state(4))
        concentration = getattr(model, "concentration_", np.inf)
        if model.dispersion_ == "polya":
            X = draw_bursts(totals, own, self.profiles[[q]], model.variance_factors_, rng)
            return model.units.convert(as_counts(X))
        if np.isfinite(concentration):
            theta = self.mixture.cluster_topics[[q]]
            return as_counts(draw_shares(totals, own, self.mixture.topics, theta, concentration, rng))
        factor = self.factor if model.dispersion_ == "multinomial" else 1.0
        some = [
            as_counts(
                draw_dirichlet_multinomial(
                    length, n, self.profiles[q], factor, np.random.default_rng(rng.randint(2**31))
                )
            )
            for n in _portions(n_rows, length)
        ]
        return stacked(some) if some else no_rows(self.profiles.shape[1])


def _portions(n_rows: int, length: int) -> list[int]:
    """Return numbers of rows to draw at a time, so that they take little memory."""
    size = max(1, 1_000_000 // length)
    return [min(size, n_rows - first) for first in range(0, n_rows, size)]


def _interpolated(x: Array, y: Array, t: Array) -> Array:
    """Return the polynomial through a few points (x, y), at t (Lagrange)."""
    total = np.zeros_like(t)
    for i in range(len(x)):
        others = np.delete(x, i)
        total += y[i] * np.prod((t[:, None] - others) / (x[i] - others), axis=1)
    return total


# --- standardization --------------------------------------------------------------------------------------------


class FittedSample(NamedTuple):
    """Some of the fitted rows, from which scores are standardized when they are first needed."""

    rows: Counts  # in the units of the fit
    lengths: NDArray[np.int64]
    labels: Labels


def standardization(scores: Array, lengths: NDArray[Any]) -> Array:
    """Return how fitted rows deviate from simulated ones: log-length, median and spread, one row per knot, (B, 3).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> lengths = rng.integers(5, 500, 5000)
    >>> standardization(rng.random(5000), lengths)[:, 1:].mean(axis=0).round(1) + 0.0
    array([0., 1.])
    """
    if len(scores) < LEAST_ROWS:
        return np.array([[0.0, 0.0, 1.0]])
    order = np.argsort(lengths, kind="stable")
    knots = []
    for part in np.array_split(order, np.clip(len(order) // ROWS_PER_KNOT, 1, MOST_KNOTS)):
        quantiles = _normal_quantiles(scores[part])
        middle, low = np.quantile(quantiles, [0.5, LOW])
        spread = max((middle - low) / -ndtri(LOW), 0.1)
        knots.append((np.log(np.median(lengths[part])), middle, spread))
    return np.array(knots)


def standardize(scores: Array, lengths: NDArray[Any], knots: Array) -> Array:
    """Return scores, (N,), corrected for how fitted rows deviate from simulated ones; an empty row has score 1."""
    at = np.log(np.maximum(lengths, 1))
    middle, spread = (np.interp(at, knots[:, 0], knots[:, column]) for column in (1, 2))
    corrected: Array = np.where(lengths > 0, ndtr((_normal_quantiles(scores) - middle) / spread), 1.0)
    return corrected


def _normal_quantiles(scores: Array) -> Array:
    quantiles: Array = ndtri(np.clip(scores, 1e-300, 1.0 - 1e-12))
    return quantiles


def outlier_scores(model: MMPCA, counts: Counts, fitted: Labels, clusters: Labels) -> Array:
    """Return the scores of rows, (N,).

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    counts : Counts of shape (N, V)
        The counts themselves.
    fitted : array of int, shape (N,)
        Fitted labels, negative for other rows; from :func:`mmpca.model.explanation.fitted_labels`.
    clusters : array of int, shape (N,)
        Clusters that should explain the rows.
    """
    rows = model.units.convert(counts)
    lengths, is_fitted = lengths_of(model, counts, rows), bool((fitted >= 0).any())
    reference = Reference(model, model.__dict__.setdefault("_outlier_cells", {}))
    scores, known = reference.scores(rows, lengths, clusters, is_fitted=is_fitted), knots_of(model)
    if known is None:  # a file of an older version
        if not is_fitted:
            raise ValueError(
                "This model was saved by an older version, which did not record how fitted rows vary. Pass the "
                "fitted rows, or fit the model again."
            )
        filled = lengths > 0
        known = model._outlier_knots = standardization(scores[filled], lengths[filled])
    return standardize(scores, lengths, known)


def knots_of(model: MMPCA) -> Array | None:
    """Return the standardization of a model, estimated when first needed; None for files of older versions."""
    known: Array | FittedSample | None = model.__dict__.get("_outlier_knots")
    if isinstance(known, FittedSample):
        reference = Reference(model, model.__dict__.setdefault("_outlier_cells", {}))
        scores = reference.scores(known.rows, known.lengths, known.labels, is_fitted=True)
        known = model._outlier_knots = standardization(scores, known.lengths)
    return known


def score_block(block: Counts, rows: Rows, clusters: Labels, model: MMPCA, threads: Threads) -> Array:
    """Return the scores of some rows of a block that were not fitted, (n,)."""
    some = block.take(rows)
    return outlier_scores(model, some, np.full(some.n_rows, -1, dtype=np.int32), clusters)


def lengths_of(model: MMPCA, counts: Counts, rows: Counts) -> NDArray[np.int64]:
    """Return the lengths at which rows are compared: totals of the counts with bursts, otherwise in fitted units."""
    return (counts if model.dispersion_ == "polya" else rows).row_totals().astype(np.int64)


def mark_outliers(model: MMPCA, labels: NDArray[np.int32], scores: Array, level: float) -> NDArray[np.int32]:
    """Return labels with -1 for rows whose score is below a level, and for rows of clusters marked as noise."""
    if isinstance(level, bool) or not 0 <= level <= 1:
        raise ValueError(f"The level of outliers must be a number from 0 to 1, got {level!r}.")
    is_noise = np.isin(labels, getattr(model, "noise_clusters_", ()))
    return np.where((scores < level) | is_noise, np.int32(OUTLIER), labels)
