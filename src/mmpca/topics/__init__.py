"""Where the search starts: topics from an LDA of the rows, rows in topic space; LDA as an estimator of its own."""

from mmpca.topics.estimator import LDA
from mmpca.topics.folds import fold_counts, predicted_rows
from mmpca.topics.lda import LDAFit, fit_lda, fit_lda_at, learn_topics
from mmpca.topics.prior import PriorChoice, choose_row_prior
from mmpca.topics.rows import topic_shares
from mmpca.topics.splits import Split, held_out_score, known_counts, split_counts

__all__ = [
    "LDA",
    "LDAFit",
    "PriorChoice",
    "Split",
    "choose_row_prior",
    "fit_lda",
    "fit_lda_at",
    "fold_counts",
    "held_out_score",
    "known_counts",
    "learn_topics",
    "predicted_rows",
    "split_counts",
    "topic_shares",
]
