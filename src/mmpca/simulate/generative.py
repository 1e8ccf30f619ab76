"""Draw counts from a mixture of multinomial PCA.

A row is drawn token by token: a topic from the mixture of the row's cluster, then a feature from that topic. Summed
over tokens, this is the multinomial of the model. The cost grows with the number of tokens, whereas drawing a
multinomial per row would take one binomial draw for each of the n_samples x n_features cells. Only very long rows are
cheaper to draw as multinomials, and are drawn that way.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mmpca.parameters import check_parameters, integer, real

Array: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None

_SUM_TOLERANCE = 1e-6  # accepts rows of float32 probabilities, but not unnormalized ones
_TOKENS_PER_CHUNK = 2**20  # limits the memory for tokens to about 50 MB; the data do not depend on it
_MAX_TOKENS = 2**20  # of a row that is drawn token by token; the data do depend on it


class Simulation(NamedTuple):
    """Simulated counts with their true clusters and parameters.

    Attributes
    ----------
    X : csr_array of int64, shape (n_samples, n_features)
        The counts, in canonical format: indices sorted, no duplicates, no stored zeros.
    labels : ndarray of int64, shape (n_samples,)
        The cluster of each row.
    topics : ndarray of shape (n_topics, n_features)
        The distribution of each topic over the features (the paper's beta).
    cluster_topics : ndarray of shape (n_clusters, n_topics)
        The distribution of each cluster over the topics, before noise (the paper's theta).
    weights : ndarray of shape (n_clusters,)
        The probability of each cluster (the paper's pi).
    noise : float
        The probability that a token's topic is drawn uniformly (the paper's epsilon).
    feature_names : ndarray of str, shape (n_features,)
        A name for each column of `X`.
    """

    X: sparse.csr_array
    labels: Integers
    topics: Array
    cluster_topics: Array
    weights: Array
    noise: float
    feature_names: npt.NDArray[np.str_]


def simulate_mmpca(
    n_samples: int = 400,
    *,
    topics: npt.ArrayLike,
    cluster_topics: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    lengths: npt.ArrayLike = 250,
    noise: float = 0.0,
    feature_names: npt.ArrayLike | None = None,
    random_state: RandomState = None,
) -> Simulation:
    """Draw a count matrix from a mixture of multinomial PCA with given parameters.

    Row i gets its cluster q from `weights`, and its counts from a multinomial with `lengths[i]` trials and
    probabilities ``((1 - noise) * cluster_topics[q] + noise / n_topics) @ topics``.

    Parameters
    ----------
    n_samples : int, default=400
        Number of rows.
    topics : array-like of shape (n_topics, n_features)
        The distribution of each topic over the features; rows sum to one.
    cluster_topics : array-like of shape (n_clusters, n_topics)
        The distribution of each cluster over the topics; rows sum to one.
    weights : array-like of shape (n_clusters,), default=None
        Relative frequencies of the clusters: non-negative, divided by their sum. None means uniform. A cluster with a
        small weight may get no rows.
    lengths : int or array-like of int, shape (n_samples,), default=250
        The total count of each row, at least one.
    noise : float, default=0.0
        The probability that a token's topic is drawn uniformly instead of from its cluster.
    feature_names : array-like of str, shape (n_features,), default=None
        Names of the columns. None means x0, x1, ...
    random_state : int, Generator, RandomState or None, default=None
        The same integer gives the same data.

    Returns
    -------
    Simulation
        The counts `X`, the true `labels`, and the parameters.

    Notes
    -----
    Time and memory grow with the total count, not with n_samples x n_features; a row of more than a million counts
    takes time and memory for its features instead. Memory is about twice that of `X`, plus 50 MB at most.

    Examples
    --------
    >>> from mmpca.simulate import simulate_mmpca
    >>> topics = [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]
    >>> data = simulate_mmpca(3, topics=topics, cluster_topics=[[1, 0], [0, 1]], lengths=8, random_state=0)
    >>> data.labels
    array([1, 0, 0])
    >>> data.X.toarray()
    array([[0, 0, 1, 7],
           [2, 6, 0, 0],
           [4, 4, 0, 0]])
    """
    check_parameters({"n_samples": n_samples, "noise": noise}, {"n_samples": integer(1), "noise": real(0, 1)})
    topics = _check_distributions(topics, name="topics", axes="(n_topics, n_features)")
    cluster_topics = _check_distributions(cluster_topics, name="cluster_topics", axes="(n_clusters, n_topics)")
    n_topics, n_features = topics.shape
    if cluster_topics.shape[1] != n_topics:
        raise ValueError(
            f"cluster_topics must have one column for each of the {n_topics} rows of topics, but its shape is "
            f"{cluster_topics.shape}. Transpose one of them, or use the same topics in both."
        )
    weights = _check_weights(weights, len(cluster_topics))
    lengths = _check_lengths(lengths, n_samples)
    feature_names = _check_feature_names(feature_names, n_features)
    rng = as_generator(random_state)

    labels = np.searchsorted(_cumulative(weights), rng.random(n_samples), side="right").astype(np.int64)
    noisy_topics = (1 - noise) * cluster_topics + noise / n_topics
    X = draw_counts(rng, labels, lengths, topics, noisy_topics)
    return Simulation(X, labels, topics, cluster_topics, weights, float(noise), feature_names)


def draw_counts(
    rng: np.random.Generator,
    labels: Integers,
    lengths: Integers,
    topics: Array,
    cluster_topics: Array,
    tokens_per_chunk: int = _TOKENS_PER_CHUNK,
) -> sparse.csr_array:
    """Draw the counts of rows with known clusters and totals, (N, V).

    labels, lengths: (N,); topics: (K, V); cluster_topics: (Q, K). About `tokens_per_chunk` tokens are drawn at a time,
    which limits memory and does not change the result.
    """
    topic_cdf, mixture_cdf = _cumulative(topics), _cumulative(cluster_topics)
    chunks = []
    for rows in _row_chunks(lengths, tokens_per_chunk):
        if lengths[rows.start] > _MAX_TOKENS:
            chunks.append(_draw_long_row(rng, int(lengths[rows.start]), cluster_topics[labels[rows.start]] @ topics))
        else:
            chunks.append(_draw_chunk(rng, labels[rows], lengths[rows], topic_cdf, mixture_cdf))
    return chunks[0] if len(chunks) == 1 else sparse.vstack(chunks, format="csr")


def _draw_long_row(rng: np.random.Generator, length: int, profile: Array) -> sparse.csr_array:
    """Draw a row of many counts as one multinomial, (1, V)."""
    # Without the features of probability zero: NumPy gives what rounding leaves over to the last feature.
    possible = np.flatnonzero(profile)
    counts = rng.multinomial(length, profile[possible] / profile.sum())
    drawn = np.flatnonzero(counts)
    indices = possible[drawn].astype(np.int32)
    return sparse.csr_array((counts[drawn], indices, [0, len(drawn)]), shape=(1, len(profile)))


def _draw_chunk(
    rng: np.random.Generator, labels: Integers, lengths: Integers, topic_cdf: Array, mixture_cdf: Array
) -> sparse.csr_array:
    """Draw the tokens of some rows by inverting the distribution functions, and count them."""
    # Two numbers per token, side by side: the random stream is used in row order, however rows are divided into chunks.
    uniform = rng.random((lengths.sum(), 2))
    for_topic, for_feature = uniform[:, 0], uniform[:, 1]
    features = np.empty(len(uniform), dtype=np.int32)
    is_below = np.zeros(len(uniform), dtype=bool)
    for k, cdf in enumerate(topic_cdf):
        was_below, is_below = is_below, for_topic < np.repeat(mixture_cdf[labels, k], lengths)
        has_topic = is_below & ~was_below
        features[has_topic] = np.searchsorted(cdf, for_feature[has_topic], side="right")
    # SciPy converts both index arrays to the larger of their types, so keep this one small as well.
    indptr = np.zeros(len(lengths) + 1, dtype=np.dtype("int32" if len(features) < 2**31 else "int64"))
    np.cumsum(lengths, out=indptr[1:])
    ones = np.ones(len(features), dtype=np.int64)
    X = sparse.csr_array((ones, features, indptr), shape=(len(lengths), topic_cdf.shape[1]))
    X.sum_duplicates()
    return X


def _cumulative(probabilities: Array) -> Array:
    """Return cumulative sums along the last axis, scaled to end at exactly one.

    With ``side="right"``, `searchsorted` then never returns an index that is out of range or has probability zero.
    """
    sums = np.cumsum(probabilities, axis=-1)
    return sums / sums[..., -1:]


def _row_chunks(lengths: Integers, tokens_per_chunk: int) -> Iterator[slice]:
    """Yield slices of rows with at most `tokens_per_chunk` tokens; a longer row gets its own slice."""
    longest = max(tokens_per_chunk, _MAX_TOKENS)
    ends = np.cumsum(np.where(lengths > _MAX_TOKENS, longest + 1, lengths))  # does not overflow
    start, n_drawn = 0, 0
    while start < len(lengths):
        stop = max(start + 1, int(np.searchsorted(ends, n_drawn + tokens_per_chunk, side="right")))
        yield slice(start, stop)
        start, n_drawn = stop, int(ends[stop - 1])


# --- checks -----------------------------------------------------------------------------------------------------


def _check_distributions(values: npt.ArrayLike, *, name: str, axes: str) -> Array:
    """Return a copy of a matrix whose rows must be probability distributions."""
    matrix = np.array(values, dtype=np.float64)
    if matrix.ndim != 2 or matrix.size == 0:
        raise ValueError(
            f"{name} must be a non-empty matrix of shape {axes}, but its shape is {matrix.shape}. "
            "Write a single distribution as a matrix with one row."
        )
    wrong = np.argwhere(~(np.isfinite(matrix) & (matrix >= 0)))
    if len(wrong):
        row, column = wrong[0]
        raise ValueError(
            f"{name} must hold finite probabilities of at least 0, but {name}[{row}, {column}] = "
            f"{matrix[row, column]}. Replace it, then divide the row by its sum."
        )
    sums = matrix.sum(axis=1)
    row = int(np.abs(sums - 1).argmax())
    if abs(sums[row] - 1) > _SUM_TOLERANCE:
        raise ValueError(
            f"Each row of {name} must sum to 1, but row {row} sums to {sums[row]:.6g}. "
            f"Divide by the row sums: {name} / {name}.sum(axis=1, keepdims=True)."
        )
    return matrix


def _check_weights(weights: npt.ArrayLike | None, n_clusters: int) -> Array:
    """Return the cluster weights divided by their sum; uniform weights for None."""
    if weights is None:
        return np.full(n_clusters, 1 / n_clusters)
    vector = np.array(weights, dtype=np.float64)
    if vector.shape != (n_clusters,):
        raise ValueError(
            f"weights must have one entry for each of the {n_clusters} rows of cluster_topics, but its shape is "
            f"{vector.shape}. Pass {n_clusters} numbers, or None for equal weights."
        )
    wrong = np.flatnonzero(~(np.isfinite(vector) & (vector >= 0)))
    if len(wrong):
        raise ValueError(
            f"weights must be finite and at least 0, but weights[{wrong[0]}] = {vector[wrong[0]]}. "
            "Use 0 for a cluster without rows."
        )
    if not vector.any():
        raise ValueError("weights must have a positive sum, but all are 0. Pass None for equal weights.")
    return vector / vector.sum()


def _check_lengths(lengths: npt.ArrayLike, n_samples: int) -> Integers:
    """Return the row totals as a vector of `n_samples` positive integers."""
    if np.ma.is_masked(lengths):  # asarray would drop the mask
        raise ValueError("lengths must be integers, but some of them are masked. Fill them in.")
    totals = np.asarray(lengths)
    if totals.dtype.kind not in "iu":
        raise ValueError(
            f"lengths must be integers, but its type is {totals.dtype}. Round them: np.rint(lengths).astype(int)."
        )
    if totals.ndim > 0 and totals.shape != (n_samples,):
        raise ValueError(
            f"lengths must be one integer, or one for each of the {n_samples} rows, but its shape is {totals.shape}. "
            f"Pass an array of shape ({n_samples},), or set n_samples to its length."
        )
    totals = np.broadcast_to(totals, (n_samples,)).astype(np.int64)
    if totals.min() < 1:
        row = int(totals.argmin())
        raise ValueError(
            f"lengths must be at least 1, but lengths[{row}] = {totals[row]}: an empty row carries no information "
            "about its cluster. Drop that row or make it longer."
        )
    return totals


def _check_feature_names(names: npt.ArrayLike | None, n_features: int) -> npt.NDArray[np.str_]:
    """Return one name per feature; "x0", "x1", ... for None, as scikit-learn does."""
    if names is None:
        return np.array([f"x{v}" for v in range(n_features)])
    array = np.array(names, dtype=np.str_)
    if array.shape != (n_features,):
        raise ValueError(
            f"feature_names must have one name for each of the {n_features} columns of topics, but its shape is "
            f"{array.shape}. Pass {n_features} names, or None for x0, x1, ..."
        )
    return array


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return a NumPy Generator: the given one, or a new one seeded with `random_state`."""
    if isinstance(random_state, np.random.RandomState):
        # A draw, not a copy: two calls with the same RandomState give different data, as with a Generator.
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            "random_state must be None, a non-negative integer, a numpy.random.Generator or a "
            f"numpy.random.RandomState, but it is {random_state!r}."
        ) from None
