"""How good a clustering is: agreement with known labels, and all methods side by side on one data set."""

from mmpca.evaluation.agreement import Agreement, Confusion, agreement, matched_confusion
from mmpca.evaluation.comparison import Comparison, compare
from mmpca.evaluation.methods import all_methods

__all__ = ["Agreement", "Comparison", "Confusion", "agreement", "all_methods", "compare", "matched_confusion"]
