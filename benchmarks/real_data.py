"""Compare MMPCA with all baselines and other packages on labeled data: `make real-data DATA=path`.

Every method is given the number of classes as its numbers of clusters and topics, and the rows in a random order that
depends on the seed: some files are sorted by class, which helps methods that visit rows in file order. A method is run
with ten seeds on a data set if its first fit there takes less than ten seconds, and with three otherwise. Finished fits
are stored, so a second run continues where the first stopped; `--sets`, `--methods` and `--seeds` restrict a run, and
the table shows all finished fits.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, svds
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize

from accuracy_tasks import data_folders, read_labeled
from measure import RESULTS, WIDTH, Limits, Row, result_table
from mmpca import MMPCA
from mmpca.errors import OverdispersionWarning, SuspiciousCountsWarning
from mmpca.evaluation import all_methods
from mmpca.store import Store
from tasks import Numbers, numbers_of, run_all

DEFAULT, BASELINE = "MMPCA", "GSDMM"
SHORT_FIT, MANY_SEEDS, FEW_SEEDS = 10.0, 10, 3  # seconds, seeds
MEAN_LEAD, LARGEST_LAG = 0.03, 0.03  # required of the default: over the best baseline, and behind any on one set
SHORT_TEXTS = "news_titles"  # where the default must reach GSDMM
N_COMPONENTS = 100  # of the rows before k-means
BATCHES, BATCH_ROWS = "MMPCA, batches", 1000
LEAST_SHARE = {"newsgroups20": 0.95}  # of the default's ARI, required of batches
MOST_FEATURES = 2000  # of rows that k-means takes without reducing them first

Labels = NDArray[np.int64]
Method = Callable[[sparse.csr_array, int, int], Labels]


# --- methods ----------------------------------------------------------------------------------------------------


def fit_mmpca(X: sparse.csr_array, n_clusters: int, seed: int, **options: Any) -> Labels:
    """Return the labels of MMPCA."""
    with warnings.catch_warnings():
        for category in (OverdispersionWarning, SuspiciousCountsWarning):
            warnings.simplefilter("ignore", category)
        return MMPCA(n_clusters, n_clusters, random_state=seed, **options).fit(X).labels_


def fit_batches(X: sparse.csr_array, n_clusters: int, seed: int) -> Labels:
    """Return the labels that MMPCA predicts after fitting batches of rows in random order."""
    order, model = np.random.default_rng(seed).permutation(X.shape[0]), MMPCA(n_clusters, n_clusters, random_state=seed)
    with warnings.catch_warnings():
        for category in (OverdispersionWarning, SuspiciousCountsWarning):
            warnings.simplefilter("ignore", category)
        for first in range(0, X.shape[0], BATCH_ROWS):
            model.partial_fit(X[order[first : first + BATCH_ROWS]])
    return model.predict(X)


def fit_baseline(X: sparse.csr_array, n_clusters: int, seed: int, *, name: str) -> Labels:
    """Return the labels of a baseline of the package."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about convergence, of scikit-learn
        return all_methods(n_clusters, n_clusters, seed)[name].fit(X).labels_


def kmeans(points: Any, n_clusters: int, seed: int) -> Labels:
    """Return the labels of k-means."""
    return KMeans(n_clusters, n_init=10, random_state=seed).fit(points).labels_


def n_components(X: sparse.csr_array) -> int:
    """Return the number of main directions to keep."""
    return min(N_COMPONENTS, min(X.shape) - 1)


def tfidf_kmeans(X: sparse.csr_array, n_clusters: int, seed: int) -> Labels:
    """Return the labels of k-means on tf-idf, reduced by a singular value decomposition and normalized."""
    weighted = TfidfTransformer(sublinear_tf=True).fit_transform(X)
    return kmeans(normalize(TruncatedSVD(n_components(X), random_state=seed).fit_transform(weighted)), n_clusters, seed)


def hellinger_kmeans(X: sparse.csr_array, n_clusters: int, seed: int) -> Labels:
    """Return the labels of k-means on square roots of proportions."""
    points = normalize(X.astype(np.float64), norm="l1").sqrt()
    if X.shape[1] > MOST_FEATURES:
        points = TruncatedSVD(n_components(X), random_state=seed).fit_transform(points)
    return kmeans(points, n_clusters, seed)


def clr_kmeans(X: sparse.csr_array, n_clusters: int, seed: int) -> Labels:
    """Return the labels of k-means on centered log-ratios of the counts plus one."""
    logs = X.astype(np.float64).log1p()
    means = logs.mean(axis=1)  # (N,)
    if X.shape[1] <= MOST_FEATURES:
        return kmeans(logs.toarray() - means[:, None], n_clusters, seed)
    # Centered rows are dense: their main directions come from products alone.
    centered = LinearOperator(
        logs.shape,
        matvec=lambda x: logs @ x.ravel() - means * x.sum(),
        rmatvec=lambda y: logs.T @ y.ravel() - means @ y.ravel(),
        dtype=np.float64,
    )
    U, scale, _ = svds(centered, n_components(X), random_state=seed)
    return kmeans(U * scale, n_clusters, seed)


def topica_gsdmm(X: sparse.csr_array, n_clusters: int, seed: int) -> Labels:
    """Return the labels of the GSDMM of topica, with the priors of its paper."""
    from topica import GSDMM

    names = np.array([str(v) for v in range(X.shape[1])])
    documents = [np.repeat(names[X.indices[a:b]], X.data[a:b]).tolist() for a, b in pairwise(X.indptr)]
    model = GSDMM(n_clusters, seed=seed, alpha=0.1, beta=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about clusters that are all used
        model.fit(documents)
    return np.asarray(model.doc_cluster)


OURS: dict[str, Method] = {
    DEFAULT: fit_mmpca,
    BATCHES: fit_batches,
    "MMPCA, topics lda": partial(fit_mmpca, topics="lda"),
    "MMPCA, topics mixture": partial(fit_mmpca, topics="mixture"),
    "MMPCA, multinomial": partial(fit_mmpca, dispersion="multinomial"),
    "MMPCA, shares": partial(fit_mmpca, dispersion="shares"),
    "MMPCA, polya": partial(fit_mmpca, dispersion="polya"),
    "MMPCA, auto": partial(fit_mmpca, dispersion="auto"),
    "MMPCA, sqrt": partial(fit_mmpca, stabilize="sqrt"),
}
BASELINES: dict[str, Method] = {
    "topica GSDMM": topica_gsdmm,
    "k-means, tf-idf + SVD": tfidf_kmeans,
    "k-means, Hellinger": hellinger_kmeans,
    "k-means, CLR": clr_kmeans,
    **{name: partial(fit_baseline, name=name) for name in all_methods(2, 2) if name != DEFAULT},
}
METHODS = OURS | BASELINES


# --- tasks ------------------------------------------------------------------------------------------------------


class RealTask(NamedTuple):
    """One method on one labeled data set, with one seed."""

    folder: str
    method: str
    seed: int

    @property
    def name(self) -> str:
        """The name of the data set."""
        return Path(self.folder).name

    @property
    def key(self) -> str:
        """The name of its file in the store."""
        method = "-".join("".join(c if c.isalnum() else " " for c in self.method.lower()).split())
        return f"{self.name}-{method}-s{self.seed}"

    def run(self) -> Numbers:
        """Return the agreement with the classes and the time of the fit."""
        X, classes = read_labeled(Path(self.folder))
        order = np.random.default_rng(self.seed).permutation(len(classes))
        X, classes = X[order], classes[order]
        start = process_time()
        labels = METHODS[self.method](X, int(classes.max()) + 1, self.seed)
        return {"ari": adjusted_rand_score(classes, labels), "seconds": process_time() - start}


Results = Mapping[RealTask, Numbers]


def further_seeds(first: Results, n_seeds: int | None) -> list[RealTask]:
    """Return the tasks with the other seeds, seed by seed; `n_seeds` limits how many there are."""
    limits = {
        task: min(n_seeds or MANY_SEEDS, MANY_SEEDS if numbers["seconds"] < SHORT_FIT else FEW_SEEDS)
        for task, numbers in first.items()
    }
    return [task._replace(seed=seed) for seed in range(1, MANY_SEEDS) for task, limit in limits.items() if seed < limit]


# --- results ----------------------------------------------------------------------------------------------------


def mean_ari(results: Results) -> dict[str, dict[str, float]]:
    """Return the mean adjusted Rand index by method and data set."""
    found: dict[str, dict[str, list[float]]] = {}
    for task, numbers in results.items():
        found.setdefault(task.method, {}).setdefault(task.name, []).append(numbers["ari"])
    return {method: {name: float(np.mean(all_)) for name, all_ in sets.items()} for method, sets in found.items()}


def verdicts(results: Results) -> list[Row]:
    """Check the requirements on the default; a method that was not run on all its data sets has no mean."""
    means = mean_ari(results)
    own = means.get(DEFAULT, {})
    baselines = {name: sets for name, sets in means.items() if name in BASELINES}
    complete = {
        name: np.mean([sets[one] for one in own]) for name, sets in baselines.items() if own.keys() <= sets.keys()
    }
    rows = []
    if complete:
        best = max(complete, key=lambda name: complete[name])
        ours = float(np.mean(list(own.values())))
        note = f"{ours:.3f}, {best} {complete[best]:.3f}, on {len(own)} data sets"
        rows.append(Row("all", "mean ARI: default - best baseline", ours - complete[best], Limits(MEAN_LEAD), note))
    for name, value in own.items():
        others = {baseline: sets[name] for baseline, sets in baselines.items() if name in sets}
        if others:
            best = max(others, key=lambda baseline: others[baseline])
            note = f"{value:.3f}, {best} {others[best]:.3f}"
            rows.append(Row(name, "ARI: default - best baseline", value - others[best], Limits(-LARGEST_LAG), note))
    for name, value in means.get(BATCHES, {}).items():
        if name in own:
            note = f"{value:.3f}, all rows at once {own[name]:.3f}"
            required = Limits(LEAST_SHARE[name]) if name in LEAST_SHARE else None
            rows.append(Row(name, "ARI: batches / default", value / own[name], required, note))
    if SHORT_TEXTS in own and SHORT_TEXTS in baselines.get(BASELINE, {}):
        lead = own[SHORT_TEXTS] - baselines[BASELINE][SHORT_TEXTS]
        rows.append(Row(SHORT_TEXTS, f"ARI: default - {BASELINE}", lead, Limits(0)))
    return rows


def ari_table(results: Results) -> Table:
    """Return the mean adjusted Rand index of each method on each data set, and over all of them."""
    means, names = mean_ari(results), list(dict.fromkeys(task.name for task in results))
    most = max((task.seed + 1 for task in results), default=0)
    table = Table(title=f"labeled data: mean adjusted Rand index over up to {most} seeds, clusters = topics = classes")
    for name in ("method", *names, "mean"):
        table.add_column(name, justify="left" if name == "method" else "right")
    for method in (name for name in METHODS if name in means):
        if method == next((name for name in BASELINES if name in means), None):
            table.add_section()
        values = means[method]
        mean = f"{np.mean(list(values.values())):.3f}" if len(values) == len(names) else ""
        table.add_row(method, *(f"{values[name]:.3f}" if name in values else "" for name in names), mean)
    return table


def main() -> int:
    """Run unfinished fits and print the table; return 1 if a requirement fails and 2 if there are no data."""
    options = parse()
    console, progress = Console(width=None if sys.stdout.isatty() else WIDTH), Console(stderr=True)
    try:
        every = data_folders(options.data)
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    folders = [folder for folder in every if not options.sets or folder.name in options.sets]
    methods = [name for name in METHODS if not options.methods or name in options.methods]
    if find_spec("topica") is None and "topica GSDMM" in methods:
        console.print("topica is not installed and left out: pip install topica")
        methods.remove("topica GSDMM")
    store = Store(options.results, "real data")
    first = run_all(
        [RealTask(str(folder), method, 0) for folder in folders for method in methods],
        store,
        n_jobs=options.jobs,
        console=progress,
    )
    run_all(further_seeds(first, options.seeds), store, n_jobs=options.jobs, console=progress)
    results = finished(every, store)
    console.print(ari_table(results))
    rows = verdicts(results)
    console.print(result_table(rows, "requirements"))
    return int(any(row.holds is False for row in rows))


def finished(folders: Sequence[Path], store: Store) -> dict[RealTask, Numbers]:
    """Return all results in the store."""
    tasks = (
        RealTask(str(folder), method, seed) for folder in folders for method in METHODS for seed in range(MANY_SEEDS)
    )
    return {task: numbers_of(task, store) for task in tasks if store.read(task.key) is not None}


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line, or other arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with one folder per labeled data set")
    parser.add_argument("--sets", nargs="+", help="names of data sets (default: all)")
    parser.add_argument("--methods", nargs="+", help="names of methods (default: all)")
    parser.add_argument("--seeds", type=int, help="limit on the number of seeds")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes (default: 1)")
    parser.add_argument("--results", type=Path, default=RESULTS / "real-data", help="folder of finished results")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
