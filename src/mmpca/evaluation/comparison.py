"""MMPCA and the baselines on the same data: agreement with known labels, time, memory."""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Iterable, Mapping
from functools import cache
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mmpca import baselines
from mmpca.counts import as_counts
from mmpca.errors import SuspiciousCountsWarning
from mmpca.evaluation.partitions import agreement
from mmpca.model import MMPCA
from mmpca.model.inspection import warn_of_misread_columns
from mmpca.monitor import Callback, Monitor
from mmpca.topics import LDA


class Comparison(NamedTuple):
    """The result of one method.

    Attributes
    ----------
    method : str
        Name of the method.
    ari, nmi : float or None
        Agreement with the known labels, if there are any.
    seconds : float
        Time of the fit, without the compilation of kernels.
    peak_megabytes : float or None
        Peak memory that Python and NumPy allocated during the fit, beyond the data. Memory that compiled code
        allocates itself (numba, scikit-learn) is not included.
    labels : ndarray of shape (n_samples,)
        Clusters of the rows.
    """

    method: str
    ari: float | None
    nmi: float | None
    seconds: float
    peak_megabytes: float | None
    labels: NDArray[np.int64]


def all_methods(n_clusters: int, n_topics: int, random_state: Any = None) -> dict[str, Any]:
    """Return MMPCA and all baselines, unfitted, by the name they have in tables.

    Baselines that use an LDA come twice: with scikit-learn's LDA, and with the LDA of this package, which chooses its
    prior from the data.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    n_topics : int
        Number of topics, for the methods that have topics.
    random_state : int, RandomState instance or None, default=None
        Seed of each method.

    Returns
    -------
    methods : dict of str to estimator
        MMPCA comes first.

    Examples
    --------
    >>> from mmpca.evaluation import all_methods
    >>> list(all_methods(6, 4))[:3]
    ['MMPCA', 'GMM on LDA', 'GMM on LDA (mmpca)']
    """
    seed = {"random_state": random_state}
    own = {"lda": LDA(), "n_init_lda": 1, **seed}  # LDA restarts itself
    return {
        "MMPCA": MMPCA(n_clusters, n_topics, **seed),
        "GMM on LDA": baselines.GMMLDA(n_clusters, n_topics, **seed),
        "GMM on LDA (mmpca)": baselines.GMMLDA(n_clusters, n_topics, **own),
        "k-means on LDA": baselines.KMeansLDA(n_clusters, n_topics, **seed),
        "k-means on LDA (mmpca)": baselines.KMeansLDA(n_clusters, n_topics, **own),
        "LDA": baselines.LDAMap(n_clusters, **seed),
        "LDA (mmpca)": baselines.LDAMap(n_clusters, lda=LDA(), n_init=1, **seed),
        "NMF-EM": baselines.NMFEM(n_clusters, n_topics, **seed),
        "multinomial mixture": baselines.MultinomialMixture(n_clusters, **seed),
        "Poisson mixture": baselines.PoissonMixture(n_clusters, **seed),
        "integrated multinomial mixture": baselines.IntegratedMultinomialMixture(n_clusters, **seed),
        "Polya mixture": baselines.PolyaMixture(n_clusters, **seed),
        "GSDMM": baselines.GSDMM(n_clusters, **seed),
        "spherical k-means": baselines.SphericalKMeans(n_clusters, **seed),
        "NMF": baselines.NMFClustering(n_clusters, **seed),
    }


def compare(
    X: Any,
    n_clusters: int,
    n_topics: int,
    *,
    labels: Any = None,
    methods: Iterable[str] | Mapping[str, Any] | None = None,
    random_state: Any = None,
    measure_memory: bool = True,
    callback: Callback | None = None,
) -> list[Comparison]:
    """Fit several methods to the same counts and compare them.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        Counts: non-negative whole numbers; no row may be empty.
    n_clusters : int
        Number of clusters.
    n_topics : int
        Number of topics, for the methods that have topics.
    labels : array-like of shape (n_samples,), optional
        Known labels to compare with.
    methods : iterable of str or mapping of str to estimator, optional
        Names from `all_methods`, or your own unfitted clusterers by name; by default, all methods.
    random_state : int, RandomState instance or None, default=None
        Seed of each method; estimators that you pass keep their own.
    measure_memory : bool, default=True
        Fit each method a second time to measure its memory, which would slow down the first fit.
    callback : callable, optional
        Called with a :class:`~mmpca.monitor.Progress` before the first method and after each method; its text is the
        name of the next method. If it returns a true value, the remaining methods are skipped.

    Returns
    -------
    results : list of Comparison
        In the order of the methods.

    Examples
    --------
    >>> from mmpca.evaluation import compare
    >>> from mmpca.simulate import paper_design
    >>> data = paper_design(n_samples=60, random_state=0)
    >>> results = compare(data.X, 6, 4, labels=data.labels, methods=["spherical k-means"], random_state=0)
    >>> results[0].method, results[0].labels.shape
    ('spherical k-means', (60,))
    """
    rows = as_counts(X)
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    warn_of_misread_columns(rows, feature_names=names)
    if labels is not None and np.shape(labels) != (rows.n_rows,):
        raise ValueError(
            f"labels must have one label for each of the {rows.n_rows} rows of X, but its shape is {np.shape(labels)}."
        )
    chosen = chosen_methods(methods, all_methods(n_clusters, n_topics, random_state))
    _compile_kernels()
    csr, names = rows.to_csr(), [*chosen, "done"]
    monitor = Monitor(callback)
    monitor.begin("methods", names[0], len(chosen))
    results: list[Comparison] = []
    for estimator, name, following in zip(chosen.values(), names, names[1:], strict=False):
        if monitor.is_stopped:
            break
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SuspiciousCountsWarning)  # issued above
            results.append(_fit(name, estimator, csr, labels, measure_memory))
        monitor.step(text=following)
    return results


def chosen_methods(methods: Iterable[str] | Mapping[str, Any] | None, known: dict[str, Any]) -> dict[str, Any]:
    """Return the estimators to compare, by name."""
    if methods is None:
        return known
    if isinstance(methods, Mapping):
        return dict(methods)
    names = [methods] if isinstance(methods, str) else list(methods)
    for name in names:
        if name not in known:
            raise ValueError(f"methods must be among {', '.join(known)}, but one is {name!r}.")
    return {name: known[name] for name in names}


@cache
def _compile_kernels() -> None:
    """Fit tiny data, to keep the compilation of the package's kernels out of the times."""
    tiny = [[3, 1, 0], [2, 2, 0], [0, 1, 3], [1, 0, 4]]
    MMPCA(2, 2, n_init=2, random_state=0).fit(tiny)
    baselines.GSDMM(2, n_init=1, random_state=0).fit(tiny)


def _fit(name: str, estimator: Any, csr: Any, truth: Any, measure_memory: bool) -> Comparison:
    """Fit one method and return its result."""
    began = perf_counter()
    found = np.asarray(clone(estimator).fit_predict(csr)).astype(np.int64)
    seconds = perf_counter() - began
    peak = _peak_megabytes(clone(estimator), csr) if measure_memory else None
    ari, nmi = (None, None) if truth is None else agreement(truth, found)
    return Comparison(name, ari, nmi, seconds, peak, found)


def _peak_megabytes(estimator: Any, csr: Any) -> float:
    """Return the peak of the memory that a fit allocates."""
    was_tracing = tracemalloc.is_tracing()  # the caller may measure memory too
    tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        estimator.fit(csr)
        return (tracemalloc.get_traced_memory()[1] - before) / 1e6
    finally:
        if not was_tracing:
            tracemalloc.stop()
