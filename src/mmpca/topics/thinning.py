"""Thinning: random splits of single counts into counts to fit and counts to score."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca.counts import Counts

Array = NDArray[np.float64]

KEPT_SHARE = 0.8
CHUNK = 2**22  # numbers in a temporary array


class CountSplit(NamedTuple):
    """The same rows twice; their counts add up to all counts. A row may be empty in either."""

    kept: Counts
    held_out: Counts


def split_counts(rows: Counts, rng: np.random.Generator, *, kept_share: float = KEPT_SHARE) -> CountSplit:
    """Keep each single count with probability `kept_share`, and hold out the others.

    Both parts of a row have the same expected profile, so shares fitted to one part predict the other. Thinning a
    multinomial yields two multinomials that are independent given their totals.

    Parameters
    ----------
    rows : Counts of shape (N, V)
    rng : Generator
    kept_share : float

    Returns
    -------
    CountSplit
        `kept` and `held_out`, both of shape (N, V).

    Examples
    --------
    >>> import numpy as np
    >>> from mmpca.counts import as_counts
    >>> from mmpca.topics import split_counts
    >>> split = split_counts(as_counts([[70, 30], [0, 50]]), np.random.default_rng(0))
    >>> (split.kept.to_csr() + split.held_out.to_csr()).toarray()
    array([[70, 30],
           [ 0, 50]], dtype=int32)
    """
    kept = rng.binomial(rows.data, kept_share).astype(np.int32)
    return CountSplit(_with_data(rows, kept), _with_data(rows, rows.data - kept))


def count_folds(rows: Counts, n_folds: int, rng: np.random.Generator) -> Iterator[CountSplit]:
    """Divide the single counts into folds and yield a split for each; every count is held out once.

    Parameters
    ----------
    rows : Counts of shape (N, V)
    n_folds : int
    rng : Generator

    Yields
    ------
    CountSplit

    Examples
    --------
    >>> import numpy as np
    >>> from mmpca.counts import as_counts
    >>> from mmpca.topics import count_folds
    >>> folds = list(count_folds(as_counts([[70, 30], [0, 50]]), 5, np.random.default_rng(0)))
    >>> sum(fold.held_out.to_csr() for fold in folds).toarray()
    array([[70, 30],
           [ 0, 50]], dtype=int32)
    """
    left = rows.data.copy()
    for fold in range(n_folds):
        # The fold's share of the counts left: jointly a multinomial, with one fold in memory at a time.
        taken = rng.binomial(left, 1.0 / (n_folds - fold)).astype(np.int32)
        left -= taken
        yield CountSplit(_with_data(rows, rows.data - taken), _with_data(rows, taken))


def known_counts(rows: Counts, beta: Array) -> Counts:
    """Return the counts of features that have positive probability in some topic; rows may become empty.

    Parameters
    ----------
    rows : Counts of shape (N, V)
    beta : array of shape (K, V)

    Returns
    -------
    Counts of shape (N, V)
    """
    is_known = beta.sum(axis=0) > 0  # (V,)
    return _with_data(rows, rows.data * is_known[rows.indices])


def unseen_terms(beta: Array, n_counts: float) -> Array:
    r"""Return corrections to the log-probabilities of features, so that features without a topic have one, (V,).

    Topics give probability zero to features that never occurred during fitting. To score new rows, all :math:`U` of
    these share the weight of a single count: together they have probability :math:`\epsilon = 1 / (n + 1)` after
    :math:`n` counts, each of them :math:`\epsilon / U`, and the probabilities of the others shrink by
    :math:`1 - \epsilon`.

    Parameters
    ----------
    beta : array of shape (K, V)
        Topics; their logarithm counts as zero for features that no topic has.
    n_counts : float
        Sum of the counts that the topics were fitted to.

    Returns
    -------
    terms : array of shape (V,)

    Examples
    --------
    >>> import numpy as np
    >>> from mmpca.topics.thinning import unseen_terms
    >>> np.exp(unseen_terms(np.array([[0.5, 0.5, 0.0, 0.0]]), 9)).round(3)  # 0.9 of the seen, 0.1 / 2 for the unseen
    array([0.9 , 0.9 , 0.05, 0.05])
    >>> unseen_terms(np.array([[0.5, 0.5]]), 9)
    array([0., 0.])
    """
    is_unseen = ~beta.any(axis=0)
    n_unseen = int(is_unseen.sum())
    if not n_unseen:
        return np.zeros(beta.shape[1])
    share = 1.0 / (n_counts + 1.0)
    terms = np.full(beta.shape[1], np.log1p(-share))
    terms[is_unseen] = np.log(share / n_unseen)
    return terms


def _with_data(rows: Counts, data: NDArray[np.int32]) -> Counts:
    """Return rows with other counts at the same entries, without those that became zero."""
    is_positive = data > 0
    n_before = np.concatenate([[0], np.cumsum(is_positive)])
    return Counts(n_before[rows.indptr], rows.indices[is_positive], data[is_positive], rows.n_features)


def held_out_score(held_out: Counts, shares: Array, beta: Array) -> float:
    """Return the mean log-likelihood of a held-out count under the topics and the shares of its row.

    Parameters
    ----------
    held_out : Counts of shape (N, V)
        Counts that were not used to fit the shares and topics.
    shares : array of shape (N, K)
        Topic shares of the same rows, fitted to other counts; rows sum to one.
    beta : array of shape (K, V)
        Topics; rows sum to one.

    Returns
    -------
    score : float
        In nats; larger is better. Minus infinity if a count has probability zero, 0 without any counts.

    Examples
    --------
    >>> import numpy as np
    >>> from mmpca.counts import as_counts
    >>> from mmpca.topics import held_out_score
    >>> score = held_out_score(as_counts([[1, 1]]), np.array([[1.0]]), np.array([[0.5, 0.5]]))
    >>> round(float(np.exp(score)), 2)
    0.5
    """
    total = float(held_out_rows(held_out, shares, beta).sum())
    return total / max(1, int(held_out.data.sum(dtype=np.int64)))


def held_out_rows(held_out: Counts, shares: Array, beta: Array, *, chunk: int = CHUNK) -> Array:
    """Return the log-likelihood of the held-out counts of each row, (N,); see :func:`held_out_score`."""
    beta_rows, total = np.ascontiguousarray(beta.T), np.zeros(held_out.n_rows)
    row_of_entry = np.repeat(np.arange(held_out.n_rows), np.diff(held_out.indptr))
    step = max(1, chunk // len(beta))
    for part in (slice(start, start + step) for start in range(0, held_out.nnz, step)):
        rows = row_of_entry[part]
        with np.errstate(divide="ignore"):
            log_profile = np.log(np.einsum("ek,ek->e", shares[rows], beta_rows[held_out.indices[part]]))
        total += np.bincount(rows, held_out.data[part] * log_profile, minlength=held_out.n_rows)
    return total
