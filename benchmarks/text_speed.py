"""Real text: time of a default fit relative to other libraries on the same counts, and agreement with known labels."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import io, sparse
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import adjusted_rand_score

from measure import Limits, Row
from mmpca import MMPCA, MMPCASearch
from mmpca.monitor import Progress

GSDMM_PASSES = 30
FIRST_EPOCHS = 2  # which may cost more: from k-means, many rows move
MOST_PRODUCTS = Limits(at_most=10)  # of an epoch after these, in products with a dense matrix
PRODUCT_REPEATS = 5
QUICK_ROWS = 1_000
SEARCHED_ROWS, MOST_FITS = 2_000, Limits(at_most=5)  # time of MMPCASearch() / time of MMPCA()


class TextLimits(NamedTuple):
    """What is required of a fit, in units of other methods."""

    lda_passes: Limits | None = None
    gsdmm: Limits | None = None
    products: Limits | None = None
    threads: Limits | None = None  # wall time on one thread / on two; requires two idle cores
    search: Limits | None = None


REQUIRED = {
    "newsgroups20": TextLimits(
        lda_passes=Limits(at_most=10), products=MOST_PRODUCTS, threads=Limits(at_least=1.6), search=MOST_FITS
    ),
    "tdt2": TextLimits(gsdmm=Limits(at_most=1.5), search=MOST_FITS),
    "news_titles": TextLimits(gsdmm=Limits(at_most=5)),
}


def text_rows(quick: bool, repeats: int, data: Path | None = None) -> list[Row]:
    """Compare on each labeled text set in the folder `data`, with as many clusters and topics as it has classes."""
    found = [] if data is None else [name for name in REQUIRED if Path(data, name, "counts.mtx.gz").exists()]
    if not found:
        print(f"No folder {', '.join(REQUIRED)} in {data}: real text is left out. Use --data to name the folder.")
    return [row for name in found for row in compare(name, quick, Path(data or "", name))]


def compare(name: str, quick: bool, folder: Path) -> list[Row]:
    """Time each method once on one text set."""
    X = sparse.csr_array(io.mmread(folder / "counts.mtx.gz")).astype(np.int64)
    with open(folder / "labels.csv", encoding="utf-8", newline="") as file:
        truth = np.array([row[-1] for row in csv.reader(file)][1:])
    if quick:
        X, truth = X[:QUICK_ROWS], truth[:QUICK_ROWS]
    n_classes, required = len(np.unique(truth)), REQUIRED[name]
    timer = SearchTimer()
    fit, model = timed(lambda: MMPCA(n_classes, n_classes, random_state=0).fit(X, callback=timer))
    epochs = timer.epochs[FIRST_EPOCHS:]
    product = min(timed(lambda: X @ np.ones((X.shape[1], n_classes)))[0] for _ in range(PRODUCT_REPEATS))
    lda, _ = timed(lambda: LatentDirichletAllocation(n_classes, max_iter=1, random_state=0).fit(X))
    kmeans, labels = timed(lambda: minibatch_kmeans(X, n_classes))
    title = f"{name}, Q = K = {n_classes}: a default fit / "
    rows = [
        Row(
            "text",
            f"{title}one pass of scikit-learn's LDA",
            fit / lda,
            required.lda_passes,
            f"{fit:.1f} s / {lda:.1f} s",
        ),
        Row("text", f"{title}MiniBatchKMeans on tf-idf", fit / kmeans, None, f"{fit:.1f} s / {kmeans:.1f} s"),
        *gsdmm_rows(title, X, truth, fit, n_classes, required.gsdmm),
        search_row(name, X, required.search),
        Row("text", f"{name}: ARI of a default fit", adjusted_rand_score(truth, model.labels_)),
        Row("text", f"{name}: ARI of MiniBatchKMeans", adjusted_rand_score(truth, labels)),
    ]
    if required.threads is not None:
        rows.insert(1, two_threads(name, X, n_classes, required.threads))
    if len(epochs):
        measure = f"{name}: slowest epoch after the first {FIRST_EPOCHS} / one product X @ D"
        note = f"{epochs.max():.2f} s / {product:.3f} s; median epoch {np.median(epochs) / product:.1f}; "
        note += f"merges and splits {timer.between:.1f} s"
        rows.insert(1, Row("text", measure, epochs.max() / product, required.products, note))
    return [row._replace(required=None) for row in rows] if quick else rows


def two_threads(name: str, X: sparse.csr_array, n_classes: int, limits: Limits) -> Row:
    """Compare the wall time of a default fit on one thread and on two; meaningful only if two cores are idle."""
    fits = [
        timed(lambda n=n: MMPCA(n_classes, n_classes, random_state=0, n_jobs=n).fit(X), perf_counter) for n in (1, 2)
    ]
    (one, first), (two, second) = fits
    same = "same labels" if np.array_equal(first.labels_, second.labels_) else "DIFFERENT LABELS"
    return Row("text", f"{name}: wall time on 1 thread / on 2", one / two, limits, f"{one:.1f} s / {two:.1f} s, {same}")


class SearchTimer:
    """A callback that times the search within a fit: its epochs, and the merges and splits between them."""

    def __init__(self) -> None:
        self._last, self._seconds, self.between = process_time(), dict[int, float](), 0.0

    def __call__(self, progress: Progress) -> None:
        """Add the time since the last report to the epoch, or to the work between epochs."""
        now = process_time()
        if progress.epoch:
            self._seconds[progress.epoch] = self._seconds.get(progress.epoch, 0.0) + now - self._last
        elif self._seconds and progress.start:
            self.between += now - self._last
        self._last = now

    @property
    def epochs(self) -> NDArray[np.float64]:
        """Seconds of each epoch."""
        return np.array(list(self._seconds.values()))


def gsdmm_rows(
    title: str, X: sparse.csr_array, truth: NDArray[Any], fit: float, n_clusters: int, limits: Limits | None
) -> list[Row]:
    """Compare with the Dirichlet multinomial mixture of topica, if it is installed."""
    try:
        from topica import GSDMM
    except ImportError:
        print("topica is not installed, so GSDMM is left out: pip install topica")
        return []
    names = np.array([str(v) for v in range(X.shape[1])])
    documents = [np.repeat(names[X.indices[a:b]], X.data[a:b]).tolist() for a, b in pairwise(X.indptr)]
    model = GSDMM(n_clusters)
    gsdmm, _ = timed(lambda: model.fit(documents, iters=GSDMM_PASSES))
    note = f"{fit:.1f} s / {gsdmm:.1f} s"
    ari = adjusted_rand_score(truth, np.asarray(model.doc_topic).argmax(axis=1))
    return [
        Row("text", f"{title}topica's GSDMM, {GSDMM_PASSES} passes", fit / gsdmm, limits, note),
        Row("text", f"{title.split(',')[0]}: ARI of GSDMM", ari),
    ]


def search_row(name: str, X: sparse.csr_array, limits: Limits | None) -> Row:
    """Compare the time of `MMPCASearch()` with that of `MMPCA()`, on some of the rows."""
    some = X[np.sort(np.random.default_rng(0).permutation(X.shape[0])[:SEARCHED_ROWS])]
    some = some[some.sum(axis=1) > 0]
    fit, _ = timed(lambda: MMPCA(random_state=0).fit(some))
    seconds, search = timed(lambda: MMPCASearch(random_state=0).fit(some))
    chosen = "{n_clusters} clusters, {n_topics} topics".format(**search.best_params_)
    note = f"{seconds:.1f} s / {fit:.1f} s; {chosen}"
    return Row("text", f"{name}, {some.shape[0]:,} rows: MMPCASearch() / MMPCA()", seconds / fit, limits, note)


def minibatch_kmeans(X: sparse.csr_array, n_clusters: int) -> NDArray[np.int32]:
    """Return the labels of k-means on tf-idf."""
    points = TfidfTransformer(sublinear_tf=True).fit_transform(X)
    return np.asarray(MiniBatchKMeans(n_clusters, n_init=3, random_state=0).fit(points).labels_)


def timed(call: Callable[[], Any], clock: Callable[[], float] = process_time) -> tuple[float, Any]:
    """Return the time that a call takes, in seconds (processor time by default), and its result."""
    start = clock()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about overdispersed counts, and about LDAs that have not converged
        result = call()
    return clock() - start, result
