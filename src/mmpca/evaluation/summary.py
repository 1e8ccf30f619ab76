"""One call that says how good and how sure a fitted model is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mmpca.evaluation.agreement import Agreement, agreement
from mmpca.evaluation.coherence import topic_coherence, topic_diversity
from mmpca.evaluation.stability import Stability, stability

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Summary:
    """What there is to know about a fit, cluster by cluster and topic by topic.

    Attributes
    ----------
    n_samples, n_features : int
        Rows and features of the data.
    bound, icl, score : float
        `bound_` and `icl_` of the fit, and the mean log-likelihood of the rows.
    converged : bool
        Whether the search came to its end.
    overdispersion : float
        How much more counts vary than the model expects; 1 is ideal.
    sizes : ndarray of int, shape (n_clusters,)
        Rows in each cluster.
    certainty : ndarray of shape (n_clusters,)
        Mean probability that a row of the cluster belongs to it; NaN for a cluster without rows. Where counts come in
        bursts, this is too sure.
    leading_topic : ndarray of int, shape (n_clusters,)
        The topic with the largest share.
    npmi, umass : ndarray of shape (n_topics,)
        Coherence of each topic's ten leading features.
    diversity : float
        Share of distinct ones among the 25 leading features of all topics.
    stability : Stability or None
        What came back in refits, if they were asked for.
    agreement : Agreement or None
        Agreement with known labels, if there are any.
    """

    n_samples: int
    n_features: int
    bound: float
    icl: float
    score: float
    converged: bool
    overdispersion: float
    sizes: NDArray[np.int64]
    certainty: Array
    leading_topic: NDArray[np.int64]
    npmi: Array
    umass: Array
    diversity: float
    stability: Stability | None
    agreement: Agreement | None

    def clusters(self) -> dict[str, list[Any]]:
        """Return a table with a line for each cluster, column by column: ``pandas.DataFrame`` takes it."""
        table: dict[str, list[Any]] = {
            "cluster": list(range(len(self.sizes))),
            "rows": self.sizes.tolist(),
            "certainty": self.certainty.tolist(),
            "leading_topic": self.leading_topic.tolist(),
        }
        if self.stability is not None:
            table["stability"] = self.stability.clusters.tolist()
            table["verdict"] = self.stability.verdicts
        return table

    def topics(self) -> dict[str, list[Any]]:
        """Return a table with a line for each topic, column by column."""
        return {"topic": list(range(len(self.npmi))), "npmi": self.npmi.tolist(), "umass": self.umass.tolist()}

    def __str__(self) -> str:
        """Return the summary as plain text."""
        head = [
            f"{self.n_samples} rows, {self.n_features} features, {len(self.sizes)} clusters, {len(self.npmi)} topics; "
            f"bound {self.bound:,.1f}, icl {self.icl:,.1f}, {'converged' if self.converged else 'not converged'}; "
            f"overdispersion {self.overdispersion:.2f}, topic diversity {self.diversity:.2f}"
        ]
        if self.agreement is not None:
            head.append(f"known labels: ARI {self.agreement.ari:.3f}, NMI {self.agreement.nmi:.3f}")
        return "\n".join([*head, *_aligned(self.clusters()), *_aligned(self.topics())])


def summarise(
    model: Any, X: Any, *, labels: Any = None, n_refits: int = 0, n_jobs: int | None = None, random_state: Any = None
) -> Summary:
    """Say how good and how sure a fitted model is.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The counts that it was fitted to.
    labels : array-like of shape (n_samples,), optional
        Known labels to compare with.
    n_refits : int, default=0
        Refits on random four fifths of the rows, to see which clusters come back; each takes about as long as the fit.
    n_jobs : int or None, default=None
        Refits at a time.
    random_state : int, RandomState instance or None, default=None
        Seed of the refits.

    Returns
    -------
    Summary

    Examples
    --------
    >>> from mmpca import MMPCA
    >>> from mmpca.evaluation import summarise
    >>> from mmpca.simulate import paper_design
    >>> data = paper_design(n_samples=150, random_state=0)
    >>> model = MMPCA(6, 4, n_init=2, random_state=0).fit(data.X)
    >>> summary = summarise(model, data.X, labels=data.labels)
    >>> summary.n_samples, int(summary.sizes.sum()), summary.converged
    (150, 150, True)
    >>> list(summary.clusters())
    ['cluster', 'rows', 'certainty', 'leading_topic']
    """
    check_is_fitted(model)
    probabilities, members = model.predict_proba(X), np.asarray(model.labels_)
    if len(probabilities) != len(members):
        raise ValueError(
            f"X must be what the model was fitted to, {len(members)} rows, but it has {len(probabilities)}. "
            "Fit the model to X first."
        )
    refits = None
    if n_refits:
        refits = stability(model, X, n_refits=n_refits, n_jobs=n_jobs, random_state=random_state)
    sizes = np.bincount(members, minlength=model.n_clusters)
    own = np.bincount(members, probabilities[np.arange(len(members)), members], model.n_clusters)
    return Summary(
        n_samples=len(members),
        n_features=int(model.n_features_in_),
        bound=float(model.bound_),
        icl=float(model.icl_),
        score=model.score(X),
        converged=bool(model.converged_),
        overdispersion=float(model.overdispersion_),
        sizes=sizes.astype(np.int64),
        certainty=np.divide(own, sizes, out=np.full(len(sizes), np.nan), where=sizes > 0),
        leading_topic=model.cluster_topics_.argmax(axis=1),
        npmi=topic_coherence(model.components_, X),
        umass=topic_coherence(model.components_, X, measure="umass"),
        diversity=topic_diversity(model.components_),
        stability=refits,
        agreement=None if labels is None else agreement(labels, members),
    )


def _aligned(table: dict[str, list[Any]]) -> list[str]:
    """Return the lines of a table of plain text, a blank one before them."""
    columns = [
        [name, *(f"{x:.2f}" if isinstance(x, float) else str(x) for x in cells)] for name, cells in table.items()
    ]
    widths = [max(map(len, column)) for column in columns]
    lines = zip(*columns, strict=True)
    return ["", *("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)]
