"""New rows under a fitted mixture: match their features to the model's, then score the clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logsumexp, softmax

from mmpca.backend import SERIAL, Threads
from mmpca.counts import Counts, Units
from mmpca.engine import shares
from mmpca.errors import CountsError
from mmpca.topics import unseen_terms

Array = NDArray[np.float64]
Names = Sequence[str] | NDArray[Any]

ROWS_AT_ONCE = 20_000  # scored together; the (N, Q) scores of all rows may take more memory than the counts
SMALLEST = np.finfo(np.float64).tiny
SMOOTHINGS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)  # counts added to each feature of each topic
SMOOTHING_ROWS = 2000  # which choose among them
LARGEST_TABLE = 2_000_000  # entries times topics
BEST = np.dtype([("cluster", np.int32), ("probability", np.float64)])


# --- features ---------------------------------------------------------------------------------------------------


class Alignment(NamedTuple):
    """Counts with a model's features as columns, and a record of what did not match.

    Attributes
    ----------
    X : csr_array of shape (n_rows, n_known)
        The counts; columns of features missing from the input are zero.
    n_unseen, unseen_total : int
        Number of input features that the model does not know, and their counts, which are dropped.
    n_missing : int
        Number of the model's features that are missing from the input.
    """

    X: sparse.csr_array
    n_unseen: int
    unseen_total: int
    n_missing: int

    def notes(self) -> list[str]:
        """Return one sentence for each kind of mismatch."""
        notes = []
        if self.n_unseen:
            total = self.unseen_total + int(self.X.sum())
            features = "1 feature" if self.n_unseen == 1 else f"{self.n_unseen:,} features"
            notes.append(
                f"Dropped {features} that the model does not know, with {self.unseen_total:,} of {total:,} counts."
            )
        if self.n_missing:
            notes.append(
                f"{self.n_missing:,} of the model's {self.X.shape[1]:,} features are missing from the input and count "
                "as zero."
            )
        return notes


def note_on_positions(is_model_named: bool, is_input_named: bool) -> list[str]:
    """Return a note if columns are matched by position because only one of model and input has feature names."""
    if is_model_named == is_input_named:
        return []
    nameless = "input" if is_model_named else "model"
    return [f"The {nameless} has no feature names: columns are matched to the model's features by their position."]


def align_features(X: sparse.csr_array, names: Names, known: Names, *, name: str = "X") -> Alignment:
    """Reorder the columns of a matrix to the features that a model knows.

    Features are matched by name; columns with the same name are added up.

    Parameters
    ----------
    X : csr_array of shape (n_rows, n_columns)
    names : sequence of str, shape (n_columns,)
        Names of the columns.
    known : sequence of str, shape (n_known,)
        Names of the model's features.
    name : str, default="X"
        Name of the input in error messages.

    Returns
    -------
    Alignment

    Raises
    ------
    CountsError
        If no column has a name that the model knows, or the model has two features with the same name and the names
        are not the same in the same order.

    Examples
    --------
    >>> from scipy import sparse
    >>> from mmpca.model.prediction import align_features
    >>> aligned = align_features(sparse.csr_array([[1, 2, 3]]), ["pear", "fig", "apple"], ["apple", "kiwi", "pear"])
    >>> aligned.X.toarray()
    array([[3, 0, 1]])
    >>> aligned.n_unseen, aligned.unseen_total, aligned.n_missing
    (1, 2, 1)
    """
    columns = {str(name): v for v, name in enumerate(known)}
    if len(columns) < len(known):
        if [str(name) for name in names] == [str(name) for name in known]:  # the same columns in the same order
            return Alignment(X, n_unseen=0, unseen_total=0, n_missing=0)
        repeated = Counter(str(name) for name in known).most_common(1)[0][0]
        raise CountsError(
            f"{name}: features cannot be matched by name, because the model has two features named {repeated!r}. Pass "
            "the columns of the fit in their order, or fit a model with unique feature names."
        )
    target = np.array([columns.get(str(name), -1) for name in names], dtype=np.intp)
    found = np.flatnonzero(target >= 0)
    if not found.size:
        raise CountsError(f"{name}: none of the features has a name that the model knows. Is this the right input?")
    n_matched = len(np.unique(target[found]))
    # Sums of columns with the same name may exceed the largest number of their type.
    ones = np.ones(found.size, dtype=X.dtype if n_matched == found.size else np.int64)
    selection = sparse.csr_array((ones, (found, target[found])), shape=(len(target), len(known)))
    unseen = np.asarray(X.sum(axis=0), dtype=np.int64)[target < 0]
    return Alignment(
        X=sparse.csr_array(X @ selection),
        n_unseen=len(target) - found.size,
        unseen_total=int(unseen.sum()),
        n_missing=len(known) - n_matched,
    )


# --- topics for new rows ----------------------------------------------------------------------------------------

# Topics fitted to rows give features that one row alone has, or one topic alone, too extreme probabilities for others.
# For predictions, every feature that occurs therefore gets b further counts in every topic, where b is the value under
# which each fitted row is most probable once its own counts are taken out of the topics.


def smoothed_topics(topics: Array, cluster_topics: Array, cluster_counts: Array, smoothing: float) -> Array:
    """Return topics, (K, V), with `smoothing` counts added to every feature that occurs.

    Parameters
    ----------
    topics : array of shape (K, V)
    cluster_topics : array of shape (Q, K)
    cluster_counts : array of shape (Q, V)
        Sums of the rows of each cluster; with the shares, they say how many counts each topic stands for.
    smoothing : float
        0 returns the topics themselves.

    Examples
    --------
    >>> import numpy as np
    >>> smoothed_topics(np.array([[0.9, 0.1, 0.0]]), np.ones((1, 1)), np.array([[9.0, 1.0, 0.0]]), 1.0).round(2)
    array([[0.83, 0.17, 0.  ]])
    """
    if smoothing == 0:
        return topics
    totals = cluster_counts.sum(axis=1) @ cluster_topics  # expected counts of the topics, (K,)
    counts = totals[:, None] * topics + float(smoothing) * topics.any(axis=0)
    smoothed: Array = counts / counts.sum(axis=1, keepdims=True)
    return smoothed


def topic_counts(topics: Array, cluster_topics: Array, cluster_counts: Array) -> Array:
    r"""Return the expected counts of features in topics, (K, V): :math:`\sum_q M_{qv} \phi_{qvk}`."""
    profiles = cluster_topics @ topics
    ratios = np.divide(cluster_counts, profiles, out=np.zeros_like(profiles), where=profiles > 0)
    counts: Array = topics * (cluster_topics.T @ ratios)
    return counts


def choose_smoothing(
    rows: Counts, labels: NDArray[np.int32], topics: Array, cluster_topics: Array, cluster_counts: Array
) -> float:
    r"""Return the smoothing of `SMOOTHINGS` under which fitted rows, each taken out of the topics, are most probable.

    Row i of cluster q has contributed about :math:`x_{iv} \phi_{qvk}` of the counts :math:`N_k \beta_{kv}` of topic k,
    with :math:`\phi_{qvk}` the share of topic k in feature v of its cluster, so without the row the topic is

    .. math:: \beta^{(-i)}_{kv} = \frac{N_k \beta_{kv} - x_{iv} \phi_{qvk} + b}{N_k - \sum_w x_{iw} \phi_{qwk} + b V}

    and the score of b is the log-likelihood of all rows under these topics and the shares of their clusters.
    """
    totals, n_present = cluster_counts.sum(axis=1) @ cluster_topics, topics.any(axis=0).sum()
    beta_rows = np.ascontiguousarray(topics.T)  # (V, K)
    scores = np.zeros(len(SMOOTHINGS))
    n_at_once = max(1, LARGEST_TABLE * rows.n_rows // (rows.nnz * len(topics) + 1))
    for start in range(0, rows.n_rows, n_at_once):
        X = rows.take(slice(start, start + n_at_once)).to_csr()
        row, x = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.data[:, None].astype(np.float64)  # (n, 1)
        theta, beta = cluster_topics[labels[start : start + n_at_once][row]], beta_rows[X.indices]  # (n, K) each
        own = x * theta * beta / np.maximum((theta * beta).sum(axis=1, keepdims=True), SMALLEST)  # (n, K)
        sums = np.zeros((X.shape[0], len(topics)))
        np.add.at(sums, row, own)
        others, left = np.maximum(totals * beta - own, 0.0), np.maximum(totals - sums, SMALLEST)  # (n, K), (rows, K)
        for at, smoothing in enumerate(SMOOTHINGS):
            probability = (theta * (others + smoothing) / (left + smoothing * n_present)[row]).sum(axis=1)
            scores[at] += float(x[:, 0] @ np.log(np.maximum(probability, SMALLEST)))
    return SMOOTHINGS[int(scores.argmax())]


# --- scores -----------------------------------------------------------------------------------------------------


class ClusterMixture(NamedTuple):
    """The parameters that score rows.

    Attributes
    ----------
    topics : array of shape (K, V)
    cluster_topics : array of shape (Q, K)
    weights : array of shape (Q,)
    topic_params : array of shape (Q, K) or None
        Parameters of the posteriors of `cluster_topics`, from which a fitted row is subtracted.
    sizes : array of shape (Q,) or None
        Fitted rows in each cluster.
    topic_prior : float or array of shape (K,)
    concentration : float or None
        Of the rows' topic shares in each cluster; None if all rows of a cluster have the same shares.
    sums : array of shape (Q, V) or None
        Sums of the clusters if the topics were learned from the fitted rows; None if they do not depend on the rows.
    smoothing : float
        Counts added to each feature of each topic.
    """

    topics: Array
    cluster_topics: Array
    weights: Array
    topic_params: Array | None = None
    sizes: Array | None = None
    topic_prior: float | Array = 1.0
    concentration: float | None = None
    sums: Array | None = None
    smoothing: float = 0.0

    def left_out(self, labels: NDArray[np.int32] | None) -> shares.LeftOut | None:
        """Return the contributions of fitted rows to their clusters, to be left out; None if all rows are new."""
        if labels is None or self.topic_params is None or self.sizes is None or not (labels >= 0).any():
            return None
        counts = None if self.sums is None else topic_counts(self.topics, self.cluster_topics, self.sums)
        return shares.LeftOut(labels, self.topic_params, self.sizes, self.topic_prior, counts, self.smoothing)


class Scores(NamedTuple):
    """A mixture in the form that scores rows fastest."""

    log_profiles: Array  # log (theta_q beta)_v, (V, Q)
    log_weights: Array  # log pi_q, (Q,)
    mixture: ClusterMixture
    units: Units = Units()  # in which rows are scored
    temperature: float = 1.0  # by which log-odds are divided


def log_profiles(topics: Array, cluster_topics: Array) -> Array:
    """Return log (theta_q beta)_v, shape (Q, V); zero for features that no topic has, so they carry no evidence."""
    profiles = cluster_topics @ topics
    # A product that underflows becomes the smallest positive number, because zero means that no topic has the feature.
    logs: Array = np.log(np.maximum(profiles, SMALLEST), out=np.zeros_like(profiles), where=topics.any(axis=0))
    return logs


def scores_of(
    mixture: ClusterMixture,
    units: Units = Units(),  # noqa: B008 - immutable
    temperature: float = 1.0,
) -> Scores:
    """Return the scores of a mixture."""
    profiles = log_profiles(mixture.topics, mixture.cluster_topics)
    return Scores(np.ascontiguousarray(profiles.T), np.log(mixture.weights), mixture, units, temperature)


def joint_of(rows: Counts, scores: Scores, labels: NDArray[np.int32] | None = None, threads: Threads = SERIAL) -> Array:
    """Return the joint log-likelihood of rows and clusters, (N, Q); see :func:`joint_log_likelihood`."""
    rows, mixture = scores.units.convert(rows), scores.mixture
    left_out = mixture.left_out(labels)
    if mixture.concentration is None and left_out is None:
        evidence: Array = rows.to_csr() @ scores.log_profiles
    else:
        evidence = shares.row_evidence(
            rows,
            topics=mixture.topics,
            cluster_topics=mixture.cluster_topics,
            concentration=np.full(len(mixture.weights), mixture.concentration or np.inf),
            left_out=left_out,
            threads=threads,
        )
    weights = scores.log_weights if left_out is None else shares.log_weights_without_row(mixture.weights, left_out)
    return evidence + weights


def joint_in_blocks(
    rows: Counts,
    scores: Scores,
    labels: NDArray[np.int32] | None = None,
    threads: Threads = SERIAL,
    block_size: int = ROWS_AT_ONCE,
) -> Iterator[tuple[slice, Array]]:
    """Yield slices of the rows, each with its joint log-likelihood (block_size, Q)."""
    for first in range(0, rows.n_rows, block_size):
        block = slice(first, first + block_size)
        yield block, joint_of(rows.take(block), scores, None if labels is None else labels[block], threads)


def joint_log_likelihood(rows: Counts, mixture: ClusterMixture, labels: NDArray[np.int32] | None = None) -> Array:
    """Return log pi_q + log p(x_i | cluster q), shape (N, Q).

    Without a concentration, the latter is sum_v x_iv log (theta_q beta)_v; with one, see :mod:`mmpca.engine.shares`.
    Multinomial coefficients are left out, because they are the same in all clusters, and so are features that no
    topic has; `mean_log_likelihood` adds their probability.

    Parameters
    ----------
    rows : Counts of shape (N, V)
        In the units of the fit.
    mixture : ClusterMixture
    labels : array of int, shape (N,), optional
        Clusters of fitted rows, negative for new rows. A fitted row is compared with its cluster without the row.
    """
    return joint_of(rows, scores_of(mixture), labels)


def posterior(joint: Array, temperature: float = 1.0) -> Array:
    """Return the probability of each cluster given the row, (N, Q), with log-odds divided by the temperature."""
    probabilities: Array = softmax(joint / temperature, axis=1)
    return probabilities


def most_probable(probabilities: Array) -> NDArray[Any]:
    """Return the most probable cluster of each row with its probability, an array of dtype `BEST`, (N,)."""
    best = np.empty(len(probabilities), dtype=BEST)
    best["cluster"], best["probability"] = probabilities.argmax(axis=1), probabilities.max(axis=1)
    return best


def own_probability(probabilities: Array, labels: NDArray[np.int32]) -> Array:
    """Return the probability of each row's own cluster, (N,)."""
    own: Array = probabilities[np.arange(len(labels)), labels]
    return own


def mean_log_likelihood(rows: Counts, joint: Array, topics: Array, n_counts: float) -> float:
    """Return the mean over the rows of log sum_q exp(joint), plus the terms of features that no topic has.

    The terms do not depend on the cluster, so only scores need them; see :func:`mmpca.topics.unseen_terms`.
    """
    return float(np.mean(logsumexp(joint, axis=1) + rows.to_csr() @ unseen_terms(topics, n_counts)))
