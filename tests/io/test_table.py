"""Matrices are assembled from pieces in any order; names fit their matrix."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmpca.io.table import CountsBuilder

ENTRIES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 300), st.integers(0, 70_000)), max_size=30)


@given(pieces=st.lists(ENTRIES, max_size=4), transposed=st.booleans())
def test_pieces_in_any_order_add_up_to_their_matrix(pieces, transposed):
    builder, expected = CountsBuilder(transposed), np.zeros((7, 301), dtype=np.int64)
    for piece in pieces:
        rows, columns, counts = np.array(piece, dtype=np.int32).reshape(-1, 3).T
        builder.add(rows, columns, counts)
        np.add.at(expected, (rows, columns), counts)
    X = builder.build((7, 301))
    assert X.has_sorted_indices
    assert X.dtype == X.indices.dtype == np.int32
    np.testing.assert_array_equal(X.toarray(), expected.T if transposed else expected)
    assert X.nnz + builder.n_zeros == sum(map(len, pieces))


def test_the_input_of_the_builder_is_not_changed():
    rows, columns, counts = (np.array(values, dtype=np.int32) for values in ([1, 0], [0, 1], [3, 0]))
    builder = CountsBuilder()
    builder.add(rows, columns, counts)
    builder.build((2, 2))
    assert (rows.tolist(), columns.tolist(), counts.tolist()) == ([1, 0], [0, 1], [3, 0])


@pytest.mark.parametrize("shape", [(1, 1), (3, 2)])
def test_a_builder_without_entries_gives_an_empty_matrix(shape):
    X = CountsBuilder(transposed=True).build(shape)
    assert X.shape == shape[::-1]
    assert X.nnz == 0
