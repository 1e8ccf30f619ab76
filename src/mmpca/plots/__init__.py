"""Figures from results. Each function draws on axes that it is given, or makes them, and returns them.

Needs matplotlib: ``pip install "mmpca[plots]"``.
"""

from mmpca.plots.experiments import agreement_curves, choice_maps, growth_curves, run_courses
from mmpca.plots.model import bound_history, cluster_sizes, cluster_topics, topic_features, topics
from mmpca.plots.selection import criterion_curves, criterion_heatmap, dendrogram

__all__ = [
    "agreement_curves",
    "bound_history",
    "choice_maps",
    "cluster_sizes",
    "cluster_topics",
    "criterion_curves",
    "criterion_heatmap",
    "dendrogram",
    "growth_curves",
    "run_courses",
    "topic_features",
    "topics",
]
