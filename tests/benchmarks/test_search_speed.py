"""Searches are timed epoch by epoch, and the same search is made each time."""

import numpy as np

from problems import Sizes, corpus, start_labels
from search_speed import converged, epoch, timed_search

SIZES = Sizes(n_samples=200, n_features=100, n_clusters=3, n_topics=3, length=50)


def test_every_epoch_of_a_search_is_timed():
    state = corpus(SIZES).build(start_labels(SIZES, "random"))
    timed = timed_search(state, repeats=2)
    assert len(timed.seconds) == len(timed.n_moves) > 1
    assert (timed.seconds >= 0).all()


def test_two_threads_make_the_same_search():
    state = corpus(SIZES).build(start_labels(SIZES, "k-means, 5 % perturbed"))
    one, two = (timed_search(state, repeats=1, n_threads=n_threads) for n_threads in (1, 2))
    np.testing.assert_array_equal(one.labels, two.labels)
    assert one.n_moves == two.n_moves


def test_an_epoch_from_a_maximum_makes_no_move():
    epoch(converged(corpus(SIZES)))()
