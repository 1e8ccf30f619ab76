"""Features are matched by name, and what does not fit is counted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mmpca.errors import CountsError
from mmpca.model.alignment import align_features

NAMES = st.lists(st.sampled_from("abcdefgh"), max_size=12)


@given(names=NAMES, known=st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1), seed=st.integers(0, 99))
def test_alignment_is_a_sum_by_names(names, known, seed):
    X = np.random.default_rng(seed).integers(0, 4, size=(3, len(names)))
    aligned = align_features(sparse.csr_array(X), names, known)
    for v, name in enumerate(known):
        columns = [u for u, other in enumerate(names) if other == name]
        np.testing.assert_array_equal(aligned.X.toarray()[:, v], X[:, columns].sum(axis=1))
    assert aligned.n_unseen == sum(name not in known for name in names)
    assert aligned.unseen_total == X[:, [u for u, name in enumerate(names) if name not in known]].sum()
    assert aligned.n_missing == len(set(known) - set(names))
    assert aligned.X.sum() + aligned.unseen_total == X.sum()


def test_the_same_features_need_no_note():
    X = sparse.csr_array(np.array([[1, 0], [2, 3]], dtype=np.int32))
    aligned = align_features(X, ["a", "b"], np.array(["a", "b"], dtype=object))
    np.testing.assert_array_equal(aligned.X.toarray(), X.toarray())
    assert aligned.X.dtype == X.dtype
    assert aligned.notes() == []


def test_notes_say_what_was_left_out_and_what_is_missing():
    aligned = align_features(sparse.csr_array([[4, 1]]), ["new", "a"], ["a", "b"])
    assert aligned.notes() == [
        "1 features that the model does not know were left out, and 4 of 5 counts with them.",
        "1 of the model's 2 features do not occur: taken as zero.",
    ]


def test_a_model_with_doubled_names_cannot_be_matched():
    with pytest.raises(CountsError, match="two features of the same name"):
        align_features(sparse.csr_array([[1]]), ["a"], ["a", "a"])
