r"""Rows in batches: a fit to the first rows, then updates of sums, topic shares and topics, in constant memory.

**The beginning.** Topics cannot be learned from a few rows, so the first ones are kept: as many as a fit to large
data samples to try its starts, or until they have `MOST_ENTRIES` entries. The model is refitted to them whenever their
number has grown by a quarter, and one last time when there are enough; ``topics="auto"`` compares its sources again
whenever the number has doubled, and a close choice uses all comparisons so far. Fewer refits would cost accuracy: a
fit to all rows finds better clusters than a fit to half of them, whose clusters the other half only joins.

**Updates.** In a batch without a refit, each row is assigned to its most probable cluster; sums, sizes and topic shares
of the clusters are updated, and every topic is averaged with the counts of the batch that belong to it, weighted by the
number of its counts: with :math:`N_k` counts so far,

.. math:: \beta_{kv} \propto N_k \beta_{kv} + \sum_i x_{iv} \phi_{q_i v k}.

**New clusters.** After the beginning, only rows that their cluster does not explain (:mod:`mmpca.model.outliers`) are
kept, until there are `LEAST_NEW` of them, and at most `MOST_KEPT`. Those that fit together become a cluster if this
increases ICL, the bound minus a penalty for the cluster's parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmpca import engine
from mmpca.backend import LocalRows, group_rows, one_blas_thread
from mmpca.counts import Counts, no_rows, stacked
from mmpca.engine.bound import responsibilities
from mmpca.model import outliers, prediction
from mmpca.model.choices import Pairs
from mmpca.model.starts import SAMPLED_ROWS

if TYPE_CHECKING:
    from mmpca.model.estimator import MMPCA

Array = NDArray[np.float64]
Labels = NDArray[np.int32]

MOST_ENTRIES = 20_000_000  # of the first rows, which are kept to learn topics and clusters: 160 MB
GROWTH, COMPARED_GROWTH = 1.25, 2.0  # of their number between fits, and between comparisons of topic sources
LEAST_NEW, MOST_KEPT = 30, 1000  # rows that do not fit, before a cluster is made of them, and kept for one
# Attributes of a fit that do not hold after another batch.
OF_ALL_ROWS = (
    "_outlier_score", "row_stability_", "cluster_stability_", "refit_components_", "refit_cluster_topics_",
    "refit_bound_", "_empty_rows", "search_",
)  # fmt: skip
LEVEL = 0.001  # of their outlier scores
NEW_PASSES = 5  # over these rows, to find those that fit together


class Kept(NamedTuple):
    """Rows that are kept between batches, in counts: the first ones, and those that fit no cluster."""

    first: Counts
    n_fitted: int  # of the first rows, in the last fit
    n_compared: int  # of the first rows, in the last fit that chose the source of its topics
    compared: Pairs  # agreements of sources in the comparisons so far
    strange: Counts
    strange_labels: Labels  # clusters to which these were added


def partial_fit(model: MMPCA, counts: Counts, attributes: dict[str, object]) -> None:
    """Update a model with a batch of rows, in place."""
    kept: Kept | None = model.__dict__.get("_kept_rows")
    nothing = Kept(no_rows(counts.n_features), 0, 0, (), no_rows(counts.n_features), np.zeros(0, dtype=np.int32))
    is_new = not hasattr(model, "weights_")
    if is_new or (kept is not None and kept.first.n_rows):
        kept = nothing if kept is None else kept
        first = stacked([kept.first, counts])
        is_last = first.n_rows >= SAMPLED_ROWS or first.nnz >= MOST_ENTRIES
        if is_new or is_last or first.n_rows >= GROWTH * kept.n_fitted:
            compares = is_new or is_last or first.n_rows >= COMPARED_GROWTH * kept.n_compared
            source = "given" if compares else model.topics_source_
            model.fit_rows(LocalRows(first), attributes=attributes, topics_source=source, compared=kept.compared)
            compared = model.__dict__.pop("_compared")
            n_compared = first.n_rows if compares else kept.n_compared
            labels = model.labels_[-counts.n_rows :]
            sizes = np.bincount(model.labels_, minlength=len(model.weights_))
            model._fitted_rows = None
            model._kept_rows = nothing if is_last else Kept(first, first.n_rows, n_compared, compared, *nothing[4:])
            model._cluster_sizes, model.labels_ = sizes.astype(np.int64), labels
            return
        kept = kept._replace(first=first)
    model._kept_rows = nothing if kept is None else kept
    with one_blas_thread():
        _update(model, counts)


def _update(model: MMPCA, counts: Counts) -> None:
    """Assign the rows of a batch, and update the clusters and topics, in place."""
    for name in OF_ALL_ROWS:
        model.__dict__.pop(name, None)
    model._fitted_rows, kept = None, model._kept_rows
    rows, n_clusters = model.units.convert(counts), len(model.weights_)
    labels = prediction.joint_log_likelihood(rows, model.mixture()).argmax(axis=1).astype(np.int32)
    fits = np.ones(rows.n_rows, dtype=np.bool_)
    if not kept.first.n_rows:  # otherwise, all rows are kept for the next fit
        fits = outliers.outlier_scores(model, counts, np.full(rows.n_rows, -1, dtype=np.int32), labels) >= LEVEL
    # Topics: averages over all counts so far, those of the batch divided by the shares of their clusters.
    theta, beta = model.cluster_topics_, model.components_
    by_topic = (model.unit_counts.sum(axis=1) @ theta)[:, None] * beta  # (K, V)
    is_known = beta.max(axis=0) > 0
    sums = rows.group_sums(labels, n_clusters)  # (Q, V)
    for q in np.flatnonzero(sums.any(axis=1)).tolist():
        phi = np.where(is_known[:, None], responsibilities(beta, model.cluster_topic_params_[q]), theta[q])  # (V, K)
        by_topic += (sums[q][:, None] * phi).T
    components = by_topic / by_topic.sum(axis=1, keepdims=True)
    # Clusters: sums, sizes and topic shares.
    sizes = model.cluster_sizes + np.bincount(labels, minlength=n_clusters)
    n_rows = rows_with_features(counts, labels, n_clusters)
    unit_sums = model.unit_counts + sums
    model.cluster_counts_ = model.cluster_counts_ + counts.group_sums(labels, n_clusters)
    model.cluster_row_counts_ = model.cluster_row_counts_ + n_rows.astype(np.int32)
    if "_unit_counts" in model.__dict__:
        model._unit_counts = unit_sums
    model.components_, model.labels_ = components, labels
    _set_clusters(model, unit_sums, sizes)
    strange = stacked([kept.strange, counts.take(np.flatnonzero(~fits))])
    own = np.append(kept.strange_labels, labels[~fits])
    last = slice(max(0, strange.n_rows - MOST_KEPT), strange.n_rows)
    model._kept_rows = kept._replace(strange=strange.take(last), strange_labels=own[last])
    if len(own) >= LEAST_NEW:
        _add_cluster(model)


def _set_clusters(model: MMPCA, unit_sums: Array, sizes: NDArray[np.int64]) -> None:
    """Set topic shares, weights and bound of clusters from their sums and sizes, in place."""
    gamma = (
        model.cluster_topic_params_ if np.min(model.topic_prior_) >= 1 and len(model.weights_) == len(sizes) else None
    )
    state = engine.from_sums(unit_sums, sizes, beta=model.components_, alpha=model.topic_prior_, gamma=gamma)
    model._cluster_sizes, model.weights_ = sizes, sizes / sizes.sum()
    model.cluster_topic_params_ = state.clusters.gamma.copy()
    model.cluster_topics_ = state.clusters.gamma / state.clusters.gamma.sum(axis=1, keepdims=True)
    model.bound_ = engine.bound(state)
    n_present, n_topics = int((model.cluster_counts_.sum(axis=0) > 0).sum()), len(model.components_)
    counted = {"n_clusters": len(sizes), "n_topics": n_topics, "n_samples": int(sizes.sum())}
    model.icl_ = engine.icl(model.bound_, **counted, n_features=n_present)
    drawn = model.cluster_counts_ if model.dispersion_ == "polya" else model.unit_counts
    model._mean_length = float(drawn.sum() / sizes.sum())


def _add_cluster(model: MMPCA) -> None:
    """Make a new cluster of rows that fit no other, in place, if this increases ICL."""
    kept, old = model._kept_rows, model.icl_
    rows, labels, n_clusters = model.units.convert(kept.strange), kept.strange_labels, len(model.weights_)
    mixture = model.mixture()
    own = prediction.joint_log_likelihood(rows, mixture)[np.arange(rows.n_rows), labels]
    joins = np.ones(rows.n_rows, dtype=np.bool_)
    for _ in range(NEW_PASSES):
        if joins.sum() < LEAST_NEW // 2:
            return
        total = rows.take(np.flatnonzero(joins)).group_sums(np.zeros(joins.sum(), dtype=np.int64), 1)
        state = engine.from_sums(total, [joins.sum()], beta=model.components_, alpha=model.topic_prior_)
        theta = state.clusters.gamma / state.clusters.gamma.sum()
        alone = prediction.ClusterMixture(mixture.topics, theta, np.array([joins.sum() / model.cluster_sizes.sum()]))
        joins = prediction.joint_log_likelihood(rows, alone)[:, 0] > own
    if joins.sum() < LEAST_NEW // 2:
        return
    moving = np.flatnonzero(joins)
    counts, some, of = kept.strange.take(moving), rows.take(moving), labels[moving]
    sizes = np.append(model.cluster_sizes - np.bincount(of, minlength=n_clusters), len(moving))
    if not sizes.all():
        return

    def with_new(table: Array, taken: Array) -> Array:
        return np.vstack([table - taken, taken.sum(axis=0)])

    before = {name: value for name, value in vars(model).items() if name != "_kept_rows"}
    n_rows = rows_with_features(counts, of, n_clusters)
    unit_sums = with_new(model.unit_counts, some.group_sums(of, n_clusters))
    model.cluster_counts_ = with_new(model.cluster_counts_, counts.group_sums(of, n_clusters))
    model.cluster_row_counts_ = with_new(model.cluster_row_counts_.astype(np.float64), n_rows).astype(np.int32)
    if "_unit_counts" in model.__dict__:
        model._unit_counts = unit_sums
    _set_clusters(model, unit_sums, sizes)
    if model.icl_ <= old:
        model.__dict__.update(before)
        return
    model.n_clusters = len(sizes)
    model.__dict__.pop("_outlier_cells", None)  # simulated rows of the other clusters hardly change between batches
    model.cluster_overdispersion_ = np.append(model.cluster_overdispersion_, model.overdispersion_)
    left = np.flatnonzero(~joins)
    model._kept_rows = kept._replace(strange=kept.strange.take(left), strange_labels=labels[left])


def rows_with_features(counts: Counts, labels: Labels, n_clusters: int) -> Array:
    """Return how many rows of each cluster have each feature, (Q, V)."""
    return LocalRows(counts).map_reduce(group_rows, np.arange(counts.n_rows), labels, shared=(n_clusters,))
