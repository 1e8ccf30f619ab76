"""Draw counts from a mixture of multinomial PCA.

A row is drawn token by token: a topic from the mixture of the row's cluster, then a feature from that topic.
Summed over tokens this is the multinomial of the model. Its cost grows with the number of tokens, where a
multinomial per row would cost one binomial for each of the n_samples x n_features cells.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from mmpca.simulate.checks import (
    RandomState,
    as_generator,
    check_distributions,
    check_feature_names,
    check_lengths,
    check_positive_integer,
    check_probability,
    check_weights,
)

# Bounds the memory for tokens to some 50 MB; the data drawn do not depend on it.
_TOKENS_PER_CHUNK = 2**20


class Simulation(NamedTuple):
    """Counts with the truth that they were drawn from.

    Attributes
    ----------
    X : csr_array of int64, shape (n_samples, n_features)
        The counts, in canonical format: indices sorted, no duplicates, no stored zeros.
    labels : ndarray of int64, shape (n_samples,)
        The cluster of each row.
    topics : ndarray of shape (n_topics, n_features)
        The distribution of each topic over the features (the paper's beta).
    cluster_topics : ndarray of shape (n_clusters, n_topics)
        The distribution of each cluster over the topics before the noise (the paper's theta).
    weights : ndarray of shape (n_clusters,)
        The probability of each cluster (the paper's pi).
    noise : float
        The probability that the topic of a token is uniform (the paper's epsilon).
    feature_names : ndarray of str, shape (n_features,)
        A name for each column of `X`.
    """

    X: sparse.csr_array
    labels: npt.NDArray[np.int64]
    topics: npt.NDArray[np.float64]
    cluster_topics: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]
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
        Relative frequencies of the clusters: non-negative, divided by their sum. None is uniform. A cluster
        with a small weight may get no row.
    lengths : int or array-like of int, shape (n_samples,), default=250
        The total count of each row, at least one.
    noise : float, default=0.0
        The probability that the topic of a token is uniform over the topics instead of the cluster's.
    feature_names : array-like of str, shape (n_features,), default=None
        Names of the columns. None is x0, x1, ...
    random_state : int, Generator, RandomState or None, default=None
        The same integer gives the same data.

    Returns
    -------
    Simulation
        The counts `X`, the true `labels`, and the parameters.

    Notes
    -----
    Time grows with the total count, and so does memory: about twice that of `X`, plus some 50 bytes for each
    token of the longest row. The size n_samples x n_features does not matter.

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
    n_samples = check_positive_integer(n_samples, name="n_samples")
    topics = check_distributions(topics, name="topics", axes="(n_topics, n_features)")
    cluster_topics = check_distributions(cluster_topics, name="cluster_topics", axes="(n_clusters, n_topics)")
    n_topics, n_features = topics.shape
    if cluster_topics.shape[1] != n_topics:
        raise ValueError(
            f"cluster_topics must have one column for each of the {n_topics} rows of topics, got shape "
            f"{cluster_topics.shape}. Both need the same topics; transpose the one that is turned."
        )
    weights = check_weights(weights, len(cluster_topics))
    lengths = check_lengths(lengths, n_samples)
    noise = check_probability(noise, name="noise")
    feature_names = check_feature_names(feature_names, n_features)
    rng = as_generator(random_state)

    labels = np.searchsorted(_cumulative(weights), rng.random(n_samples), side="right").astype(np.int64)
    noisy_topics = (1 - noise) * cluster_topics + noise / n_topics
    X = draw_counts(rng, labels, lengths, topics, noisy_topics)
    return Simulation(X, labels, topics, cluster_topics, weights, noise, feature_names)


def draw_counts(
    rng: np.random.Generator,
    labels: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    topics: npt.NDArray[np.float64],
    cluster_topics: npt.NDArray[np.float64],
    tokens_per_chunk: int = _TOKENS_PER_CHUNK,
) -> sparse.csr_array:
    """Draw the counts of rows whose clusters and totals are known.

    Parameters
    ----------
    rng : Generator
    labels, lengths : ndarray of int64, shape (n_samples,)
    topics : ndarray of shape (n_topics, n_features)
    cluster_topics : ndarray of shape (n_clusters, n_topics)
    tokens_per_chunk : int
        How many tokens to draw at a time, about. It bounds memory and does not change the result.

    Returns
    -------
    csr_array of int64, shape (n_samples, n_features)
    """
    topic_cdf, mixture_cdf = _cumulative(topics), _cumulative(cluster_topics)
    chunks = [
        _draw_chunk(rng, labels[rows], lengths[rows], topic_cdf, mixture_cdf)
        for rows in _row_chunks(lengths, tokens_per_chunk)
    ]
    return chunks[0] if len(chunks) == 1 else sparse.vstack(chunks, format="csr")


def _draw_chunk(
    rng: np.random.Generator,
    labels: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    topic_cdf: npt.NDArray[np.float64],
    mixture_cdf: npt.NDArray[np.float64],
) -> sparse.csr_array:
    """Draw all tokens of some rows and count them."""
    features = _draw_tokens(rng, labels, lengths, topic_cdf, mixture_cdf)
    # SciPy gives both index arrays the larger type of the two, so keep this one small too.
    index_type = np.dtype("int32" if len(features) < 2**31 else "int64")
    indptr = np.zeros(len(lengths) + 1, dtype=index_type)
    np.cumsum(lengths, out=indptr[1:])
    ones = np.ones(len(features), dtype=np.int64)
    X = sparse.csr_array((ones, features, indptr), shape=(len(lengths), topic_cdf.shape[1]))
    X.sum_duplicates()
    return X


def _draw_tokens(
    rng: np.random.Generator,
    labels: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    topic_cdf: npt.NDArray[np.float64],
    mixture_cdf: npt.NDArray[np.float64],
) -> npt.NDArray[np.int32]:
    """Draw the feature of each token, row after row, by inverting the distribution functions."""
    # Two numbers for each token, side by side: the stream is used in row order, whatever the chunks.
    uniform = rng.random((lengths.sum(), 2))
    for_topic, for_feature = uniform[:, 0], uniform[:, 1]
    features = np.empty(len(uniform), dtype=np.int32)
    is_below = np.zeros(len(uniform), dtype=bool)
    for k, cdf in enumerate(topic_cdf):
        was_below, is_below = is_below, for_topic < np.repeat(mixture_cdf[labels, k], lengths)
        has_topic = is_below & ~was_below
        features[has_topic] = np.searchsorted(cdf, for_feature[has_topic], side="right")
    return features


def _cumulative(probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Sum along the last axis, scaled so that it ends at exactly one.

    With ``side="right"``, `searchsorted` then never returns an index out of range or of probability zero.
    """
    sums = np.cumsum(probabilities, axis=-1)
    return sums / sums[..., -1:]


def _row_chunks(lengths: npt.NDArray[np.int64], tokens_per_chunk: int) -> Iterator[slice]:
    """Cut the rows into slices of at most `tokens_per_chunk` tokens; a longer row is a slice of its own."""
    ends = np.cumsum(lengths)
    start, n_drawn = 0, 0
    while start < len(lengths):
        stop = max(start + 1, int(np.searchsorted(ends, n_drawn + tokens_per_chunk, side="right")))
        yield slice(start, stop)
        start, n_drawn = stop, int(ends[stop - 1])
