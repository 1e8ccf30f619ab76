"""All measures of one fitted model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mmpca.evaluation.coherence import topic_coherence, topic_diversity
from mmpca.evaluation.partitions import Agreement, Stability, agreement, stability

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Summary:
    """Measures of a fit, its clusters and its topics.

    Attributes
    ----------
    n_samples, n_features : int
        Size of the data.
    bound, icl, score : float
        `bound_` and `icl_` of the fit, and the mean log-likelihood of a row.
    converged : bool
        Whether the search converged.
    overdispersion : float
        Variance of the counts within clusters as a multiple of the variance that the model expects; 1 is ideal.
    sizes : ndarray of int, shape (n_clusters,)
        Number of rows in each cluster.
    certainty : ndarray of shape (n_clusters,)
        Mean probability that a row of the cluster belongs to it; NaN for a cluster without rows. Too high for
        overdispersed counts.
    leading_topic : ndarray of int, shape (n_clusters,)
        Topic with the largest share.
    npmi, umass : ndarray of shape (n_topics,)
        Coherence of each topic's ten leading features.
    diversity : float
        Share of distinct features among the 25 leading features of each topic.
    stability : Stability or None
        How well refits recover the clusters, if `n_refits` was given.
    agreement : Agreement or None
        Agreement with known labels, if they were given.

    Examples
    --------
    >>> from mmpca import MMPCA
    >>> from mmpca.evaluation import summarize
    >>> from mmpca.simulate import paper_design
    >>> data = paper_design(n_samples=60, random_state=0)
    >>> summary = summarize(MMPCA(3, 2, random_state=0).fit(data.X), data.X)
    >>> summary.n_samples, int(summary.sizes.sum()), len(summary.npmi)
    (60, 60, 2)
    >>> list(summary.topics())
    ['topic', 'npmi', 'umass']
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
        """Return a table of the clusters.

        Returns
        -------
        table : dict of str to list
            Columns of the table, with one entry per cluster; ``pandas.DataFrame`` accepts it.
        """
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
        """Return a table of the topics.

        Returns
        -------
        table : dict of str to list
            Columns of the table, with one entry per topic; ``pandas.DataFrame`` accepts it.
        """
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


def summarize(
    model: Any, X: Any, *, labels: Any = None, n_refits: int = 0, n_jobs: int | None = None, random_state: Any = None
) -> Summary:
    """Evaluate a fitted model by all measures at once.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The counts that the model was fitted to.
    labels : array-like of shape (n_samples,), optional
        Known labels to compare with.
    n_refits : int, default=0
        Number of refits on a random 80% of the rows, to see which clusters are recovered; each takes about as long as
        the fit.
    n_jobs : int or None, default=None
        Number of refits in parallel.
    random_state : int, RandomState instance or None, default=None
        Seed of the refits.

    Returns
    -------
    Summary
        Prints as text.

    Examples
    --------
    >>> from mmpca import MMPCA
    >>> from mmpca.evaluation import summarize
    >>> from mmpca.simulate import paper_design
    >>> data = paper_design(n_samples=150, random_state=0)
    >>> model = MMPCA(6, 4, n_init=2, random_state=0).fit(data.X)
    >>> summary = summarize(model, data.X, labels=data.labels)
    >>> summary.n_samples, int(summary.sizes.sum()), summary.converged
    (150, 150, True)
    >>> list(summary.clusters())
    ['cluster', 'rows', 'certainty', 'leading_topic']
    """
    check_is_fitted(model)
    members = np.asarray(model.labels_)
    probabilities = model.leave_one_out_proba(X)
    refits = None
    if n_refits:
        refits = stability(model, X, n_refits=n_refits, n_jobs=n_jobs, random_state=random_state)
    sizes = np.bincount(members, minlength=len(model.weights_))
    own = np.bincount(members, probabilities[np.arange(len(members)), members], len(model.weights_))
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
    """Return the lines of a plain text table, after a blank line."""
    columns = [
        [name, *(f"{x:.2f}" if isinstance(x, float) else str(x) for x in cells)] for name, cells in table.items()
    ]
    widths = [max(map(len, column)) for column in columns]
    lines = zip(*columns, strict=True)
    return ["", *("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)]
