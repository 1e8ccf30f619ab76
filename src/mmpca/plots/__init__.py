"""Figures from results. Each function draws on axes that it is given, or makes them, and returns them.

Needs matplotlib: ``pip install "mmpca[plots]"``. docs/report.md shows most of them.
"""

from mmpca.plots.evaluation import confusion, stability
from mmpca.plots.experiments import agreement_curves, choice_maps, confusions, growth_curves, run_courses
from mmpca.plots.model import bound_history, cluster_sizes, cluster_topics
from mmpca.plots.rows import topic_space
from mmpca.plots.selection import criterion_curves, criterion_heatmap, dendrogram
from mmpca.plots.topics import topic_features, topics

__all__ = [
    "agreement_curves",
    "bound_history",
    "choice_maps",
    "cluster_sizes",
    "cluster_topics",
    "confusion",
    "confusions",
    "criterion_curves",
    "criterion_heatmap",
    "dendrogram",
    "growth_curves",
    "run_courses",
    "stability",
    "topic_features",
    "topic_space",
    "topics",
]
