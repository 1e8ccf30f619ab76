"""Choose the numbers of clusters and topics: a grid of fits, criteria, and a description of the choice."""

from mmpca.selection.criteria import CRITERIA
from mmpca.selection.estimator import MMPCASearch

__all__ = ["CRITERIA", "MMPCASearch"]
