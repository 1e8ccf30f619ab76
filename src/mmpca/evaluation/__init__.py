"""How good a clustering is, and how sure: known labels, refits, coherence of topics, all methods side by side."""

from mmpca.evaluation.agreement import Agreement, Confusion, agreement, matched_confusion
from mmpca.evaluation.coherence import topic_coherence, topic_diversity
from mmpca.evaluation.comparison import Comparison, compare
from mmpca.evaluation.methods import all_methods
from mmpca.evaluation.stability import Stability, stability
from mmpca.evaluation.summary import Summary, summarise

__all__ = [
    "Agreement",
    "Comparison",
    "Confusion",
    "Stability",
    "Summary",
    "agreement",
    "all_methods",
    "compare",
    "matched_confusion",
    "stability",
    "summarise",
    "topic_coherence",
    "topic_diversity",
]
