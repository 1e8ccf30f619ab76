"""All methods on one data set: agreement, time, memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mmpca.counts import as_counts
from mmpca.evaluation.agreement import agreement
from mmpca.evaluation.methods import all_methods
from mmpca.model import MMPCA


class Comparison(NamedTuple):
    """How one method did.

    Attributes
    ----------
    method : str
        Its name.
    ari, nmi : float or None
        Agreement with the known labels, where there are any.
    seconds : float
        Time of the fit, without the compilation of kernels.
    peak_megabytes : float or None
        Largest memory that the fit had allocated at once, beyond the data, as Python and NumPy report it. What compiled
        code allocates for itself, numba's or that of scikit-learn, is not seen.
    labels : ndarray of shape (n_samples,)
        The clusters it found.
    """

    method: str
    ari: float | None
    nmi: float | None
    seconds: float
    peak_megabytes: float | None
    labels: NDArray[np.int64]


def compare(
    X: Any,
    n_clusters: int,
    n_topics: int,
    *,
    labels: Any = None,
    methods: Iterable[str] | Mapping[str, Any] | None = None,
    random_state: Any = None,
    measure_memory: bool = True,
    callback: Callable[[Comparison], object] | None = None,
) -> list[Comparison]:
    """Fit several methods to the same counts and say how each did.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        Non-negative whole numbers, no row without any.
    n_clusters : int
        Number of clusters.
    n_topics : int
        Number of topics, for the methods that have any.
    labels : array-like of shape (n_samples,), optional
        Known labels to compare with.
    methods : iterable of str or mapping of str to estimator, optional
        Names out of `all_methods`, or unfitted clusterers of your own by name; by default all methods.
    random_state : int, RandomState instance or None, default=None
        Seed of each method; of those given as estimators their own counts.
    measure_memory : bool, default=True
        Whether each method is fitted a second time to see its memory; watching it in the first would cost time.
    callback : callable, optional
        Called with each result as soon as there is one.

    Returns
    -------
    list of Comparison
        In the order of the methods.

    Examples
    --------
    >>> from mmpca.evaluation import compare
    >>> from mmpca.simulate import paper_design
    >>> data = paper_design(n_samples=60, random_state=0)
    >>> rows = compare(data.X, 6, 4, labels=data.labels, methods=["spherical k-means"], random_state=0)
    >>> rows[0].method, rows[0].labels.shape
    ('spherical k-means', (60,))
    """
    rows = as_counts(X)
    if labels is not None and np.shape(labels) != (rows.n_rows,):
        raise ValueError(
            f"labels must be one label for each of the {rows.n_rows} rows of X, but their shape is {np.shape(labels)}. "
            "Give as many labels as rows."
        )
    chosen = chosen_methods(methods, all_methods(n_clusters, n_topics, random_state))
    _compile_kernels()
    csr = rows.to_csr()
    results = []
    for name, estimator in chosen.items():
        results.append(_result(name, estimator, csr, labels, measure_memory))
        if callback is not None:
            callback(results[-1])
    return results


def chosen_methods(methods: Iterable[str] | Mapping[str, Any] | None, known: dict[str, Any]) -> dict[str, Any]:
    """Return the estimators to compare, by name."""
    if methods is None:
        return known
    if isinstance(methods, Mapping):
        return dict(methods)
    names = [methods] if isinstance(methods, str) else list(methods)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"a method must be one of {', '.join(known)}, but one is {unknown[0]!r}. Correct its name.")
    return {name: known[name] for name in names}


@cache
def _compile_kernels() -> None:
    """Fit something tiny, so that no method is timed with the compilation or loading of the package's kernels."""
    MMPCA(2, 2, n_init=2, random_state=0).fit([[3, 1, 0], [2, 2, 0], [0, 1, 3], [1, 0, 4]])


def _result(name: str, estimator: Any, csr: Any, truth: Any, measure_memory: bool) -> Comparison:
    """Fit one method and return how it did."""
    start = perf_counter()
    found = np.asarray(clone(estimator).fit_predict(csr)).astype(np.int64)
    seconds = perf_counter() - start
    peak = _peak_megabytes(clone(estimator), csr) if measure_memory else None
    ari, nmi = (None, None) if truth is None else agreement(truth, found)
    return Comparison(name, ari, nmi, seconds, peak, found)


def _peak_megabytes(estimator: Any, csr: Any) -> float:
    """Return the largest memory that a fit has allocated at once."""
    with _traced():
        before = tracemalloc.get_traced_memory()[0]
        estimator.fit(csr)
        return (tracemalloc.get_traced_memory()[1] - before) / 1e6


@contextmanager
def _traced() -> Iterator[None]:
    """Watch memory from here on; where somebody watches already, only start the peak anew."""
    if tracemalloc.is_tracing():
        tracemalloc.reset_peak()
        yield
        return
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()
