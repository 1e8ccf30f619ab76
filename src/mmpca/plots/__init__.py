"""Figures of models, searches and evaluations.

Every function draws on the axes (or figure) passed to it, or creates new ones, and returns them. The functions need
matplotlib: ``pip install "mmpca[plots]"``. docs/report.md shows an example of each.
"""

from mmpca.plots.clusters import (
    certainty_strips,
    clusters_over,
    clustree,
    label_composition,
    marker_dotplot,
    relevance_bars,
    theta_heatmap,
)
from mmpca.plots.evaluation import confusion, stability
from mmpca.plots.model import (
    bound_history,
    cluster_sizes,
    cluster_topics,
    distinctive_features,
    topic_features,
    topic_space,
    topics,
)
from mmpca.plots.rows import ordination, row_map
from mmpca.plots.selection import criterion_curves, criterion_heatmap, dendrogram

__all__ = [
    "bound_history",
    "certainty_strips",
    "cluster_sizes",
    "cluster_topics",
    "clusters_over",
    "clustree",
    "confusion",
    "criterion_curves",
    "criterion_heatmap",
    "dendrogram",
    "distinctive_features",
    "label_composition",
    "marker_dotplot",
    "ordination",
    "relevance_bars",
    "row_map",
    "stability",
    "theta_heatmap",
    "topic_features",
    "topic_space",
    "topics",
]
