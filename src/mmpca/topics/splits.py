"""Counts split at random into those to fit and those to score: what held-out likelihood needs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca.counts import Counts

Array = NDArray[np.float64]

KEPT_SHARE = 0.8
_CHUNK = 2**22  # numbers in a temporary array


class Split(NamedTuple):
    """The same rows twice: their counts add up to the whole. A row may be empty in either."""

    kept: Counts
    held_out: Counts


def split_counts(rows: Counts, rng: np.random.Generator, *, kept_share: float = KEPT_SHARE) -> Split:
    """Keep each single count with probability `kept_share`, and hold out the others.

    Both parts of a row have the same profile as the row, so that shares fitted to the one predict the other. Thinning
    a multinomial gives two that are independent given their totals.

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
    return Split(with_data(rows, kept), with_data(rows, rows.data - kept))


def with_data(rows: Counts, data: NDArray[np.int32]) -> Counts:
    """Return rows with other counts at the same entries, zeros dropped."""
    is_positive = data > 0
    n_before = np.concatenate([[0], np.cumsum(is_positive)])
    return Counts(n_before[rows.indptr], rows.indices[is_positive], data[is_positive], rows.n_features)


def known_counts(rows: Counts, beta: Array) -> Counts:
    """Return the counts of features that some topic (K, V) knows; rows may become empty."""
    is_known = beta.sum(axis=0) > 0  # (V,)
    return with_data(rows, rows.data * is_known[rows.indices])


def held_out_score(held_out: Counts, shares: Array, beta: Array) -> float:
    """Return the mean log-likelihood of a held-out count under the topics in the shares of its row.

    Parameters
    ----------
    held_out : Counts of shape (N, V)
        Counts that had no part in fitting shares and topics.
    shares : array of shape (N, K)
        Topic shares of the same rows, fitted to other counts; rows sum to one.
    beta : array of shape (K, V)
        Topics, rows sum to one.

    Returns
    -------
    score : float
        In nats, larger is better; minus infinity where a count has probability zero, and 0 without any counts.
    """
    total = float(held_out_rows(held_out, shares, beta).sum())
    return total / max(1, int(held_out.data.sum(dtype=np.int64)))


def held_out_rows(held_out: Counts, shares: Array, beta: Array) -> Array:
    """Return the log-likelihood of the held-out counts of each row, (N,); see :func:`held_out_score`."""
    beta_rows, total = np.ascontiguousarray(beta.T), np.zeros(held_out.n_rows)
    row_of_entry = np.repeat(np.arange(held_out.n_rows), np.diff(held_out.indptr))
    step = max(1, _CHUNK // len(beta))
    for part in (slice(start, start + step) for start in range(0, held_out.nnz, step)):
        rows = row_of_entry[part]
        with np.errstate(divide="ignore"):
            log_profile = np.log(np.einsum("ek,ek->e", shares[rows], beta_rows[held_out.indices[part]]))
        total += np.bincount(rows, held_out.data[part] * log_profile, minlength=held_out.n_rows)
    return total
