"""Choose the numbers of clusters and topics: held-out features, mixtures of row shares, grids of fits."""

from mmpca.selection.criteria import CRITERIA, GRID_CRITERIA
from mmpca.selection.estimator import MMPCASearch

__all__ = ["CRITERIA", "GRID_CRITERIA", "MMPCASearch"]
