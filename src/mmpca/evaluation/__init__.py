"""How good a clustering is, and how certain: known labels, refits, coherent topics, and other methods."""

from mmpca.evaluation.coherence import topic_coherence, topic_diversity
from mmpca.evaluation.comparison import Comparison, all_methods, compare
from mmpca.evaluation.ecology import indicators, totals_explained
from mmpca.evaluation.partitions import Agreement, Confusion, Stability, agreement, matched_confusion, stability
from mmpca.evaluation.summary import Summary, summarize

__all__ = [
    "Agreement",
    "Comparison",
    "Confusion",
    "Stability",
    "Summary",
    "agreement",
    "all_methods",
    "compare",
    "indicators",
    "matched_confusion",
    "stability",
    "summarize",
    "topic_coherence",
    "topic_diversity",
    "totals_explained",
]
