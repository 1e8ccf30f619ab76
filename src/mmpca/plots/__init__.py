"""Figures from results. Each function draws on axes that it is given, or makes them, and returns them.

Needs matplotlib: ``pip install "mmpca[plots]"``.
"""

from mmpca.plots.selection import criterion_curves, criterion_heatmap, dendrogram

__all__ = ["criterion_curves", "criterion_heatmap", "dendrogram"]
