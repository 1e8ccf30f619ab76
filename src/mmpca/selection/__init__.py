"""Which number of clusters and topics: a grid of fits, criteria to compare them, and reasons in words."""

from mmpca.selection.criteria import CRITERIA
from mmpca.selection.estimator import MMPCASearch

__all__ = ["CRITERIA", "MMPCASearch"]
