"""The choice of a cell in words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CLEAR, CLOSE = 10.0, 3.0  # nats: odds of 20,000 and of 20 to one, if a criterion is a log probability


def sentence(n_clusters: NDArray[np.int64], n_topics: NDArray[np.int64], score: Array, criterion: str) -> str:
    """Say which cell is best and how far behind its neighbours are.

    Parameters
    ----------
    n_clusters, n_topics : arrays of shape (C,)
        The cells.
    score : array of shape (C,)
        The criterion, larger is better.
    criterion : str
        Its name.
    """
    best = int(score.argmax())
    q, k = int(n_clusters[best]), int(n_topics[best])
    by_q = {int(n_clusters[c]): score[best] - score[c] for c in np.flatnonzero(n_topics == k)}
    by_k = {int(x): score[best] - score[n_topics == x].max() for x in np.unique(n_topics)}
    parts = [f"{_count(q, 'cluster')} and {_count(k, 'topic')}, by the criterion {criterion}"]
    parts += [_verdict(q, by_q, "cluster"), _verdict(k, by_k, "topic")]
    return "; ".join(part for part in parts if part) + "."


def _verdict(chosen: int, gaps: dict[int, float], what: str) -> str:
    """Say how clear one of the two numbers is, with its neighbours in the grid."""
    others = sorted(gaps)
    place = others.index(chosen)
    neighbours = [others[p] for p in (place - 1, place + 1) if 0 <= p < len(others)]
    if not neighbours:
        return ""
    near = min(gaps[x] for x in neighbours)
    clear = "clear" if near >= CLEAR else "a close call" if near < CLOSE else "likely"
    told = " and ".join(f"{_count(x, what)} {'is' if x == 1 else 'are'} {gaps[x]:.3g} nats worse" for x in neighbours)
    edge = "" if 0 < place < len(others) - 1 else f" (at the edge of the grid: try {_beyond(place, others)})"
    return f"the number of {what}s is {clear}: {told}{edge}"


def _beyond(place: int, others: list[int]) -> str:
    return "fewer" if place == 0 and others[0] > 1 else "more"


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
