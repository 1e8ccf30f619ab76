r"""Criteria that compare numbers of clusters and topics, and a description of the choice. Larger is always better.

`shares` chooses the number of topics by held-out features (:mod:`mmpca.selection.held_out`), and then the number of
clusters by a mixture that lets rows of one cluster differ (:mod:`mmpca.selection.mixture`). The other criteria
compare the cells of a grid.

`icl` is the paper's criterion. `cluster_score` compares numbers of clusters at one number of topics,

.. math:: L(Q, K) - \tfrac{1}{2} (Q K - 1) \log N,

the bound minus a penalty for Q topic shares of K - 1 free parameters each and for Q - 1 weights; the topics are the
same for every Q, so they are not penalized. `predictive` compares numbers of topics by the likelihood of held-out
counts, then numbers of clusters by `cluster_score`. docs/model-selection.md derives and tests it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca import engine

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

GRID_CRITERIA = ("predictive", "icl")
CRITERIA = ("shares", *GRID_CRITERIA)
NAMES = {"shares": "BIC of row shares", "predictive": "predictive likelihood", "icl": "ICL"}

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
    # A number at an edge may be right, but numbers beyond it were never tried.
    strength = "weak" if is_weak else "strong" if is_strong and not beyond else "moderate"
    return Support(strength, min(others, key=others.__getitem__), beyond)


class Choice(NamedTuple):
    """Numbers of clusters and topics chosen by `shares`, and what supports them."""

    n_clusters: int
    n_topics: int
    best: int  # number of clusters with the best criterion
    plateau: tuple[int, int]  # the smallest and the largest number that the data do not rule out
    n_resamples: int
    n_stable: int | None  # how many of the `best` clusters enough resamples found again
    by_clusters: Support
    by_topics: Support
    strength: str  # "strong", "moderate" or "weak": that of the weaker number; "" if there was nothing to choose

    @property
    def is_determined(self) -> bool:
        """Whether the data determine the number of clusters within a factor of two."""
        return self.plateau[1] <= 2 * self.plateau[0] and (self.best == 1 or self.n_clusters > 1)


STRENGTHS = ("strong", "moderate", "weak")
REPRODUCIBLE = 0.8  # share of the resamples that must find a cluster again: of five, one may miss it


def choose(
    results: Mapping[str, NDArray[Any]],
    topics: Mapping[int, tuple[float, float]],
    n_topics: int,
    n_stable: int | None,
    n_resamples: int,
    most: tuple[float, float] = (np.inf, np.inf),
) -> Choice:
    """Choose the number of clusters: those of the best mixture that resamples find again.

    Parameters
    ----------
    results : mapping of str to array of shape (C,)
        `n_clusters` and `shares`, at the chosen number of topics.
    topics : mapping of int to (float, float)
        The loss of each number of topics against the best one, and its standard error.
    n_topics : int
        The chosen number.
    n_stable : int or None
        How many of the clusters of :func:`simplest_number` enough resamples found again; None without resamples.
    n_resamples : int
    most : tuple of two numbers
        The largest possible numbers of clusters and topics.
    """
    numbers, score = results["n_clusters"], results["shares"]
    best = simplest_number(numbers, score)
    behind = {int(q): (float(score.max() - value), 0.0) for q, value in zip(numbers, score, strict=True)}
    chosen = best
    if n_stable is not None and n_stable < best:  # the largest number that was tried and is not larger
        chosen = max((int(q) for q in numbers if q <= max(1, n_stable)), default=int(numbers.min()))
    near = [q for q, (nats, _) in behind.items() if nats < WEAK]
    by_clusters = support(best, {q: (max(0.0, nats), error) for q, (nats, error) in behind.items()}, most[0])
    by_topics = support(n_topics, topics, most[1])
    if by_topics.strength and topics[n_topics][0] > 0:  # within one standard error of the best, but not the best
        by_topics = by_topics._replace(strength="weak")
    found = [one.strength for one in (by_clusters, by_topics) if one.strength]
    if chosen < best:
        found.append("weak")
        by_clusters = by_clusters._replace(beyond="fewer" if 1 < chosen == numbers.min() else "")
    elif len(numbers) > 1 and numbers[score.argmax()] == numbers.max() < most[0]:  # perhaps by a small margin
        by_clusters = by_clusters._replace(beyond="more")
    strength = max(found, key=STRENGTHS.index, default="")
    plateau = (min(chosen, *near), max(best, *near))
    return Choice(chosen, n_topics, best, plateau, n_resamples, n_stable, by_clusters, by_topics, strength)


def n_reproducible(is_found: NDArray[np.bool_]) -> int:
    """Return how many clusters are found again in enough resamples; is_found: (resamples, Q)."""
    return int((is_found.sum(axis=0) >= n_needed(len(is_found))).sum())


def n_needed(n_resamples: int) -> int:
    """Return the number of resamples that must find a cluster again."""
    return math.ceil(REPRODUCIBLE * n_resamples)


def simplest_number(numbers: NDArray[Any], score: Array) -> int:
    """Return the smallest number of clusters less than 3 nats (odds of 20 to 1) behind the best."""
    return int(min(q for q, value in zip(numbers, score, strict=True) if value > score.max() - WEAK))


def describe(choice: Choice, *, knows_topics: bool = True) -> str:
    """Describe a choice by `shares` in three sentences: the numbers, the clusters, the topics.

    If it is not known how well other numbers of topics did, neither is the strength of the evidence.

    Examples
    --------
    >>> results = {"n_clusters": np.arange(1, 5), "shares": np.array([-90.0, -40.0, 0.0, -12.0])}
    >>> topics = {1: (400.0, 20.0), 2: (0.0, 0.0), 3: (35.0, 10.0)}
    >>> for sentence in describe(choose(results, topics, 2, 3, 5)).split(". "):
    ...     print(sentence)
    3 clusters and 2 topics, with strong evidence
    All 3 clusters are found again in at least 4 of 5 resamples
    2 topics predict held-out features best.
    """
    q, k, (low, high) = choice.n_clusters, choice.n_topics, choice.plateau
    first = (
        f"{_cell(q, k)}, with {choice.strength} evidence." if choice.strength and knows_topics else f"{_cell(q, k)}."
    )
    if not choice.is_determined:
        first = f"{_cell(q, k)}, but the data do not determine the number of clusters ({low} to {high})."
    elif low < high:
        first = f"{_cell(q, k)}; anything from {low} to {high} clusters is possible."
    edge = choice.by_clusters.beyond
    if edge and q == choice.best:
        at = high if edge == "more" else q
        second = f"Try {edge} clusters as well: {at} is at the edge of the numbers that were tried."
    elif choice.n_resamples and choice.best > 1:
        n, needed = choice.n_resamples, n_needed(choice.n_resamples)
        share = f"at least {needed} of " if needed < n else "all " if n > 1 else ""
        again = f"found again in {share}{_count(n, 'resample')}"
        if q < choice.best:
            fewest = f"{choice.best} clusters are the fewest that fit about as well as any number"
            few = {0: "none of them is", 1: "only 1 of them is"}.get(
                choice.n_stable or 0, f"only {choice.n_stable} of them are"
            )
            hint = f"; try {edge} clusters as well" if edge else ""
            second = f"{fewest}, but {few} {again}{hint}."
        else:
            second = f"All {q} clusters are {again}."
    elif choice.by_clusters.strength:
        extra = {"strong": "much better than", "moderate": "better than", "weak": "about as well as"}
        how = extra[choice.by_clusters.strength]
        closest = choice.by_clusters.closest
        second = f"{_count(choice.best, 'cluster')} {'fits' if choice.best == 1 else 'fit'} the rows {how} {closest}."
    elif choice.n_topics == 1:
        second = "The rows show no differences that would separate clusters."
    else:
        second = f"No number of clusters other than {choice.best} was tried."
    if not knows_topics:
        third = ""
    elif choice.by_topics.beyond:
        third = f"Try {choice.by_topics.beyond} topics as well: {k} is at the edge of the numbers that were tried."
    elif not choice.by_topics.strength:
        third = f"The number of topics is {k}."
    else:
        is_best = choice.by_topics.strength != "weak"
        verb = "predicts" if k == 1 else "predict"
        third = f"{_count(k, 'topic')} {verb} held-out features {'best' if is_best else 'as well as more topics do'}."
    return " ".join(sentence for sentence in (first, second, third) if sentence)


def reason(results: Mapping[str, NDArray[Any]], criterion: str, most: tuple[float, float] = (np.inf, np.inf)) -> str:
    """Describe which cell is the best, and how strong the evidence is.

    Parameters
    ----------
    results : mapping of str to array of shape (C,)
        `n_clusters`, `n_topics`, the criterion, and for "predictive" its `predictive_error`.
    criterion : {"shares", "predictive", "icl"}
    most : tuple of two numbers
        The largest possible numbers of clusters and topics: those of rows and features.
    """
    if criterion == "shares":  # a table does not say how well other numbers of topics did
        at = int(np.asarray(results["chosen"], dtype=float).argmax()) if "chosen" in results else 0
        k = int(results["n_topics"][at])
        n_stable = int(results["n_stable"].max()) if "n_stable" in results else -1
        n_resamples = int(results["n_resamples"].max()) if "n_resamples" in results else 0
        stable = n_stable if n_resamples else None
        return describe(choose(results, {k: (0.0, 0.0)}, k, stable, n_resamples, most), knows_topics=False)
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
