"""The choice of a cell in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

CLEAR, CLOSE = 10.0, 3.0  # nats: odds of 20,000 and of 20 to one, if a criterion is a log probability
CLEAR_ERRORS, CLOSE_ERRORS = 3.0, 1.0  # the same in standard errors, where there is one


class Gap(NamedTuple):
    """How far a number is behind the chosen one."""

    nats: float
    error: float = 0.0  # standard error; 0 where nothing was drawn at random

    def is_at_least(self, nats: float, errors: float) -> bool:
        """Return whether the gap is so large, and so many of its errors."""
        return self.nats >= nats and self.nats >= errors * self.error

    def __str__(self) -> str:
        error = f" (standard error {number(self.error)})" if self.error else ""
        return f"{number(self.nats)} nats{error}"


def sentence(results: Mapping[str, NDArray[Any]], criterion: str, most: tuple[float, float] = (np.inf, np.inf)) -> str:
    """Say which cell is best and how far behind its neighbours are.

    Parameters
    ----------
    results : mapping of str to array of shape (C,)
        `n_clusters`, `n_topics`, the criterion (larger is better), and for "predictive" the `predictive_error`.
    criterion : str
        Its name.
    most : tuple of two numbers
        Clusters and topics that there can be at the most: the numbers of rows and of features.
    """
    n_clusters, n_topics, score = results["n_clusters"], results["n_topics"], results[criterion]
    is_drawn = criterion == "predictive" and "predictive_error" in results
    error = results["predictive_error"] if is_drawn else np.zeros(len(score))
    best = int(score.argmax())
    q, k = int(n_clusters[best]), int(n_topics[best])
    by_q = {int(n_clusters[c]): Gap(score[best] - score[c]) for c in np.flatnonzero(n_topics == k)}
    by_k = {
        int(x): Gap(score[best] - score[n_topics == x].max(), error[n_topics == x].max()) for x in np.unique(n_topics)
    }
    parts = [f"{_cell(q, k)}, by the criterion {criterion}"]
    parts += [_verdict(q, by_q, "cluster", most[0]), _verdict(k, by_k, "topic", most[1])]
    if len(score) > 1:
        second = int(np.argsort(-score, kind="stable")[1])
        gap = Gap(score[best] - score[second], error[second] if n_topics[second] != k else 0.0)
        parts.append(f"next best are {_cell(n_clusters[second], n_topics[second])}, {gap} behind")
    return "; ".join(part for part in parts if part) + "."


def number(value: float) -> str:
    """Return a number as it is read: three digits below a thousand, no fraction above."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _verdict(chosen: int, gaps: dict[int, Gap], what: str, most: float) -> str:
    """Say how clear one of the two numbers is, with its neighbours in the grid."""
    others = sorted(gaps)
    place = others.index(chosen)
    neighbours = [others[p] for p in (place - 1, place + 1) if 0 <= p < len(others)]
    if not neighbours:
        return ""
    rivals = [gap for other, gap in gaps.items() if other != chosen]
    is_clear = all(gap.is_at_least(CLEAR, CLEAR_ERRORS) for gap in rivals)
    is_close = any(not gap.is_at_least(CLOSE, CLOSE_ERRORS) for gap in rivals)
    verdict = "clear" if is_clear else "a close call" if is_close else "likely"
    told = " and ".join(f"{_count(x, what)} {'is' if x == 1 else 'are'} {gaps[x]} worse" for x in neighbours)
    beyond = "fewer" if place == 0 and chosen > 1 else "more" if place == len(others) - 1 and chosen < most else ""
    edge = f" (at the edge of the grid: try {beyond})" if beyond else ""
    return f"the number of {what}s is {verdict}: {told}{edge}"


def _cell(n_clusters: int, n_topics: int) -> str:
    return f"{_count(n_clusters, 'cluster')} and {_count(n_topics, 'topic')}"


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
