r"""Criteria that compare the cells of a grid, and a description of the choice. Larger is better for every criterion.

`icl` is the paper's criterion. `cluster_score` compares numbers of clusters at one number of topics,

.. math:: L(Q, K) - \tfrac{1}{2} (Q K - 1) \log N,

the bound minus a penalty for Q topic shares of K - 1 free parameters each and for Q - 1 weights; the topics are the
same for every Q, so they are not penalized. `predictive` compares numbers of topics by the likelihood of held-out
counts, then numbers of clusters by `cluster_score`. docs/model-selection.md derives and tests it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca import engine

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

CRITERIA = ("predictive", "icl")
NAMES = {"predictive": "predictive likelihood", "icl": "ICL"}

# In nats: if a criterion is a log probability, odds of 20,000 to 1 and of 20 to 1.
STRONG, WEAK = 10.0, 3.0
STRONG_ERRORS, WEAK_ERRORS = 3.0, 1.0  # the same in standard errors, where there is one


# --- criteria ---------------------------------------------------------------------------------------------------


def icl(bounds: Array, n_clusters: Integers, n_topics: Integers, *, n_samples: int, n_features: int) -> Array:
    """Return the paper's criterion for each cell, (C,); `n_features` counts the features that occur."""
    cells = zip(bounds.tolist(), n_clusters.tolist(), n_topics.tolist(), strict=True)
    size = {"n_samples": n_samples, "n_features": n_features}
    return np.array([engine.icl(bound, n_clusters=q, n_topics=k, **size) for bound, q, k in cells])


def cluster_score(bounds: Array, n_clusters: Integers, n_topics: Integers, n_samples: int) -> Array:
    """Return the bound of each cell minus half of log N for each parameter of its clusters, (C,)."""
    score: Array = bounds - 0.5 * (n_clusters * n_topics - 1) * np.log(n_samples)
    return score


def predictions(
    predicted: Mapping[int, Array], n_predicted: int, score: Array, n_topics: Integers, n_counts: int
) -> dict[str, Array]:
    """Return the columns that compare cells by their predictions of held-out counts.

    For large data only some rows are predicted, the same ones for every number of topics; `predictive` and its error
    are scaled to all counts.

    Parameters
    ----------
    predicted : mapping of int to array of shape (R,)
        Log-likelihood of the held-out counts of each predicted row, for each number of topics.
    n_predicted : int
        Sum of the counts of these rows.
    score : array of shape (C,)
        `cluster_score` of each cell.
    n_topics : array of shape (C,)
    n_counts : int
        Sum of all counts.

    Returns
    -------
    dict of array of shape (C,)
        `held_out`, `predictive` and `predictive_error`.
    """
    mean = {k: float(rows.sum()) / n_predicted for k, rows in predicted.items()}
    error = predictive_error(predicted)
    held_out = np.array([mean[k] for k in n_topics.tolist()])
    best = {k: score[n_topics == k].max() for k in np.unique(n_topics).tolist()}
    behind = score - np.array([best[k] for k in n_topics.tolist()])
    return {
        "held_out": held_out,
        "predictive": n_counts * held_out + behind,
        "predictive_error": np.array([n_counts / n_predicted * error[k] for k in n_topics.tolist()]),
    }


def predictive_error(predicted: Mapping[int, Array]) -> dict[int, float]:
    r"""Return the standard error of each number of topics' loss against the best one, in nats of the predicted rows.

    If row i loses :math:`d_i`, the loss is :math:`\sum_i d_i` and its error :math:`\sqrt{R\,\mathrm{var}(d)}`: rows
    are independent, and the same counts were held out for every number of topics.
    """
    best = max(predicted.values(), key=np.sum)
    return {
        k: float(np.sqrt(len(rows)) * np.std(best - rows, ddof=min(1, len(rows) - 1))) for k, rows in predicted.items()
    }


# --- the choice in words ----------------------------------------------------------------------------------------


class Support(NamedTuple):
    """How well the results support a chosen number of clusters or topics."""

    strength: str  # "strong", "moderate" or "weak"; "" if no other number was tried
    closest: int | None  # the best other number
    beyond: str  # "fewer" or "more" if the chosen number is at an edge of the grid that could be extended, otherwise ""


def support(chosen: int, behind: Mapping[int, tuple[float, float]], most: float = np.inf) -> Support:
    """Return how well the scores support a number.

    Parameters
    ----------
    chosen : int
    behind : mapping of int to (float, float)
        For each number that was tried, how far it is behind the chosen one, and the standard error of that.
    most : float
        The largest possible number: the number of rows for clusters, of features for topics.

    Examples
    --------
    >>> support(6, {5: (300.0, 0.0), 6: (0.0, 0.0), 7: (2.0, 0.0)})
    Support(strength='weak', closest=7, beyond='')
    """
    others = {number: gap for number, gap in behind.items() if number != chosen}
    if not others:
        return Support("", None, "")
    is_strong = all(nats >= max(STRONG, STRONG_ERRORS * error) for nats, error in others.values())
    is_weak = any(nats < max(WEAK, WEAK_ERRORS * error) for nats, error in others.values())
    beyond = "fewer" if 1 < chosen < min(others) else "more" if max(others) < chosen < most else ""
    return Support(
        "strong" if is_strong else "weak" if is_weak else "moderate", min(others, key=others.__getitem__), beyond
    )


def reason(results: Mapping[str, NDArray[Any]], criterion: str, most: tuple[float, float] = (np.inf, np.inf)) -> str:
    """Describe which cell is the best, and how strong the evidence is.

    Parameters
    ----------
    results : mapping of str to array of shape (C,)
        `n_clusters`, `n_topics`, the criterion, and for "predictive" its `predictive_error`.
    criterion : {"predictive", "icl"}
    most : tuple of two numbers
        The largest possible numbers of clusters and topics: those of rows and features.
    """
    n_clusters, n_topics, score = results["n_clusters"], results["n_topics"], results[criterion]
    is_random = criterion == "predictive" and "predictive_error" in results
    error = results["predictive_error"] if is_random else np.zeros(len(score))
    best = int(score.argmax())
    q, k = int(n_clusters[best]), int(n_topics[best])
    by_q = {int(n_clusters[c]): (float(score[best] - score[c]), 0.0) for c in np.flatnonzero(n_topics == k)}
    by_k = {
        int(x): (float(score[best] - score[n_topics == x].max()), float(error[n_topics == x].max()))
        for x in np.unique(n_topics)
    }
    sentences = [
        f"{_cell(q, k)}, chosen by {NAMES[criterion]}.",
        _in_words(q, support(q, by_q, most[0]), "cluster"),
        _in_words(k, support(k, by_k, most[1]), "topic"),
    ]
    if len(score) > 1:
        second = np.argsort(-score, kind="stable")[1]
        sentences.append(f"The runner-up is {_cell(int(n_clusters[second]), int(n_topics[second]))}.")
    return " ".join(sentence for sentence in sentences if sentence)


def _in_words(chosen: int, found: Support, what: str) -> str:
    """Return a sentence about one of the two numbers, "" if it had no alternative."""
    if not found.strength:
        return ""
    extra = {"strong": "", "moderate": f"; {found.closest} is next best", "weak": f"; {found.closest} is about as good"}
    edge = f" Try {found.beyond} {what}s as well: {chosen} is at the edge of the grid." if found.beyond else ""
    return f"The evidence for {_count(chosen, what)} is {found.strength}{extra[found.strength]}.{edge}"


def _cell(n_clusters: int, n_topics: int) -> str:
    return f"{_count(n_clusters, 'cluster')} and {_count(n_topics, 'topic')}"


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
