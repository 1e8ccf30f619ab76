"""Counts as weighted directions: tf-idf with rows of unit length."""

from __future__ import annotations

from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

from mmpca.counts import Counts


def unit_tfidf(rows: Counts) -> sparse.csr_array:
    """Return the rows as tf-idf with unit Euclidean length, shape (n_rows, n_features).

    The inverse document frequency is scikit-learn's smoothed one, which is at least 1: no row vanishes.
    """
    return sparse.csr_array(TfidfTransformer().fit_transform(rows.to_csr().astype(float)))
