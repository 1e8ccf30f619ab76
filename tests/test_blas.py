"""BLAS has one thread as long as anyone needs that."""

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from mmpca import MMPCA
from mmpca.blas import one_blas_thread
from mmpca.simulate import paper_design


def n_blas_threads():
    """Return the numbers of threads of all BLAS libraries of this process."""
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def several_threads():
    with threadpool_limits(3, user_api="blas"):
        yield


def test_the_limit_holds_until_the_last_has_left():
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)  # before the second, as threads do
    assert n_blas_threads() == {1}
    second.__exit__(None, None, None)
    assert n_blas_threads() == {3}


def test_an_error_ends_the_limit():
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        raise ZeroDivisionError
    assert n_blas_threads() == {3}


def test_topics_are_learned_under_the_limit(monkeypatch):
    seen, learn = [], MMPCA._topics

    def watched(*arguments):
        seen.append(n_blas_threads())
        return learn(*arguments)

    monkeypatch.setattr(MMPCA, "_topics", watched)
    MMPCA(3, 2, n_init=1, random_state=0).fit(paper_design(n_samples=60, random_state=0).X)
    assert seen == [{1}]
    assert n_blas_threads() == {3}
