"""Topics of the rows by latent Dirichlet allocation: a fit for the search to start from, and an estimator."""

from mmpca.topics.em import topic_shares
from mmpca.topics.estimator import LDA
from mmpca.topics.lda import Budget, LDAFit, PriorChoice, choose_row_prior, fit_lda, predicted_rows
from mmpca.topics.thinning import (
    CountSplit,
    count_folds,
    held_out_score,
    known_counts,
    split_counts,
    unseen_terms,
)

__all__ = [
    "LDA",
    "Budget",
    "CountSplit",
    "LDAFit",
    "PriorChoice",
    "choose_row_prior",
    "count_folds",
    "fit_lda",
    "held_out_score",
    "known_counts",
    "predicted_rows",
    "split_counts",
    "topic_shares",
    "unseen_terms",
]
