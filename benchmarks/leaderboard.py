"""Compare twelve systems from PyPI on labeled data from PyPI, and update docs/leaderboard.md: `make leaderboard`.

Every system gets the counts and the number of classes (as many topics as clusters, if it has topics), and one seed.
Each fit runs in a process of its own, which measures processor time and peak memory. Finished fits are kept. Fits that
are not run keep their numbers on the page: `--systems mmpca` updates one row.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from scipy import sparse
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans
from sklearn.decomposition import NMF, LatentDirichletAllocation, TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import normalize

from measure import RESULTS
from mmpca import MMPCA
from mmpca.store import Store
from public_data import SETS
from tasks import Numbers, numbers_of, run_all

PAGE = Path(__file__).parents[1] / "docs" / "leaderboard.md"
LIMIT = 1800.0  # seconds of a fit
N_COMPONENTS = 50  # of tf-idf, before methods that need few dimensions
MEASURES = ("ari", "nmi", "seconds", "megabytes")

System = Callable[[sparse.csr_array, int, int], Any]  # counts, number of clusters, seed -> labels


# --- systems ----------------------------------------------------------------------------------------------------


def directions(X: sparse.csr_array, seed: int) -> Any:
    """Return the rows' tf-idf in their main directions, of unit length."""
    weighted = TfidfTransformer(sublinear_tf=True).fit_transform(X)
    n_components = min(N_COMPONENTS, min(X.shape) - 1)
    return normalize(TruncatedSVD(n_components, random_state=seed).fit_transform(weighted))


def sklearn_shares(X: sparse.csr_array, n_topics: int, seed: int) -> Any:
    """Return the topic shares of scikit-learn's LDA."""
    return LatentDirichletAllocation(n_topics, max_iter=30, random_state=seed).fit_transform(X)


def tokens(X: sparse.csr_array) -> list[list[str]]:
    """Return the rows as lists of words, which libraries for texts expect."""
    names = np.array([f"w{v}" for v in range(X.shape[1])])
    bounds = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    return [np.repeat(names[X.indices[a:b]], X.data[a:b]).tolist() for a, b in bounds]


def mmpca_default(X: sparse.csr_array, n_clusters: int, seed: int) -> Any:
    """Fit MMPCA with its defaults."""
    return MMPCA(n_clusters, n_clusters, random_state=seed).fit(X).labels_


def kmeans_tfidf(X: sparse.csr_array, n_clusters: int, seed: int) -> Any:
    """Run k-means on tf-idf in its main directions."""
    return KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(directions(X, seed))


def kmeans_hellinger(X: sparse.csr_array, n_clusters: int, seed: int) -> Any:
    """Run k-means on square roots of proportions."""
    return KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(normalize(X.astype(float), norm="l1").sqrt())


def agglomerative(X: sparse.csr_array, n_clusters: int, seed: int) -> Any:
    """Cluster tf-idf in its main directions by Ward's method."""
    return AgglomerativeClustering(n_clusters).fit_predict(directions(X, seed))


def hdbscan(X: sparse.csr_array, n_clusters: int, seed: int) -> Any:
    """Cluster by density, which finds its own number of clusters; rows without a cluster share a label."""
    return HDBSCAN(min_cluster_size=max(5, X.shape[0] // 100), copy=True).fit_predict(directions(X, seed))


def lda(X: sparse.csr_array, n_clusters: int, seed: int) -> Any:
    """Take the largest topic of scikit-learn's LDA."""
    return sklearn_shares(X, n_clusters, seed).argmax(axis=1)


def gmm_lda(X: sparse.csr_array, n_clusters: int, seed: int) -> Any:
    """Fit a Gaussian mixture to the topic shares of scikit-learn's LDA."""
    shares = np.sqrt(sklearn_shares(X, n_clusters, seed))
    mixture = GaussianMixture(n_clusters, covariance_type="diag", n_init=5, random_state=seed)
    return mixture.fit_predict(shares)


def nmf(X: sparse.csr_array, n_clusters: int, seed: int) -> Any:
    """Take the largest component of a factorization of tf-idf."""
    weighted = TfidfTransformer().fit_transform(X)
    return NMF(n_clusters, init="nndsvd", max_iter=500, random_state=seed).fit_transform(weighted).argmax(axis=1)


def tomotopy_lda(X: sparse.csr_array, n_clusters: int, seed: int) -> Any:
    """Take the largest topic of tomotopy's LDA, which samples and fits its prior."""
    import tomotopy

    model = tomotopy.LDAModel(k=n_clusters, seed=seed)
    for words in tokens(X):
        model.add_doc(words)
    model.train(500, workers=1)
    return [int(np.argmax(row.get_topic_dist())) for row in model.docs]


def gensim_lda(X: sparse.csr_array, n_clusters: int, seed: int) -> Any:
    """Take the largest topic of gensim's online LDA."""
    from gensim.models import LdaModel

    rows = [list(zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True))
            for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]  # fmt: skip
    names = {v: str(v) for v in range(X.shape[1])}
    model = LdaModel(rows, n_clusters, names, passes=10, alpha="auto", random_state=seed)
    return model.inference(rows)[0].argmax(axis=1)


def topica_gsdmm(X: sparse.csr_array, n_clusters: int, seed: int) -> Any:
    """Fit topica's GSDMM, a mixture for short texts, with the priors of its paper."""
    from topica import GSDMM

    model = GSDMM(n_clusters, seed=seed, alpha=0.1, beta=0.1)
    model.fit(tokens(X))
    return np.asarray(model.doc_cluster)


def scanpy_leiden(X: sparse.csr_array, n_clusters: int, seed: int) -> Any:
    """Cluster scanpy's graph of neighbors by Leiden, at the resolution that comes closest to the number of clusters."""
    import anndata
    import scanpy as sc

    data = anndata.AnnData(sparse.csr_matrix(X, dtype=np.float32))
    sc.pp.normalize_total(data)
    sc.pp.log1p(data)
    sc.pp.pca(data, n_comps=min(N_COMPONENTS, min(X.shape) - 1), random_state=seed)
    sc.pp.neighbors(data, random_state=seed)
    found = []
    for resolution in np.geomspace(0.1, 3.0, 12):
        sc.tl.leiden(data, float(resolution), random_state=seed, flavor="igraph", n_iterations=2, directed=False)
        found.append(data.obs["leiden"].astype(int).to_numpy())
    return min(found, key=lambda labels: abs(labels.max() + 1 - n_clusters))


SYSTEMS: dict[str, System] = {
    "mmpca: MMPCA": mmpca_default,
    "scikit-learn: k-means, tf-idf + SVD": kmeans_tfidf,
    "scikit-learn: k-means, Hellinger": kmeans_hellinger,
    "scikit-learn: Ward, tf-idf + SVD": agglomerative,
    "scikit-learn: HDBSCAN, tf-idf + SVD": hdbscan,
    "scikit-learn: LDA": lda,
    "scikit-learn: Gaussian mixture on LDA": gmm_lda,
    "scikit-learn: NMF, tf-idf": nmf,
    "tomotopy: LDA": tomotopy_lda,
    "gensim: LDA": gensim_lda,
    "topica: GSDMM": topica_gsdmm,
    "scanpy: Leiden": scanpy_leiden,
}


# --- tasks ------------------------------------------------------------------------------------------------------


class Fit(NamedTuple):
    """One system on one data set, with one seed."""

    data: str
    system: str
    seed: int

    @property
    def key(self) -> str:
        """The name of its file in the store."""
        return "_".join(re.sub(r"[^a-z0-9]+", "-", part.lower()) for part in (*self[:2], f"s{self.seed}"))

    def run(self) -> Numbers:
        """Fit in a process of its own; a fit that fails or takes too long has no numbers."""
        command = [sys.executable, __file__, "--fit", *self[:2], str(self.seed)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True)
        except subprocess.TimeoutExpired:
            return dict.fromkeys(MEASURES, np.nan)
        except subprocess.CalledProcessError as error:
            print(f"{self.system} on {self.data}: {error.stderr.strip().splitlines()[-1]}", file=sys.stderr)
            return dict.fromkeys(MEASURES, np.nan)
        return json.loads(done.stdout.splitlines()[-1])


def measure(fit: Fit) -> Numbers:
    """Fit in this process, after a first fit of tiny data that loads libraries and compiles kernels."""
    warnings.simplefilter("ignore")  # about convergence; results count
    X, classes = SETS[fit.data]()
    system, n_clusters = SYSTEMS[fit.system], int(classes.max()) + 1
    tiny = sparse.csr_array(np.random.default_rng(0).poisson(2.0, (80, 60)) + np.eye(80, 60, dtype=np.int64))
    system(tiny, 2, 0)
    reset_peak()
    before, start = peak_megabytes(), process_time()
    labels = np.asarray(system(X, n_clusters, fit.seed))
    seconds = process_time() - start
    return {
        "ari": float(adjusted_rand_score(classes, labels)),
        "nmi": float(normalized_mutual_info_score(classes, labels)),
        "seconds": seconds,
        "megabytes": max(0.0, peak_megabytes() - before),
    }


def peak_megabytes() -> float:
    """Return the peak memory of this process since `reset_peak`; elsewhere than on Linux, since its start."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1]) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # bytes on macOS


def reset_peak() -> None:
    """Forget the peak of reading the data, which would hide that of the fit; only Linux can."""
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text("5")


# --- results ----------------------------------------------------------------------------------------------------


def means(results: Mapping[Fit, Numbers], measure: str) -> dict[tuple[str, str], float]:
    """Return the mean of a measure over the seeds, by system and data set."""
    values: dict[tuple[str, str], list[float]] = {}
    for fit, numbers in results.items():
        values.setdefault((fit.system, fit.data), []).append(numbers[measure])
    return {key: float(np.mean(found)) for key, found in values.items()}


def markdown(results: Mapping[Fit, Numbers]) -> str:
    """Return one table: ARI on each data set, then the means of ARI and NMI, all seconds and the largest memory."""
    by_measure = {name: means(results, name) for name in MEASURES}
    sets = [name for name in SETS if any(fit.data == name for fit in results)]
    lines = [
        ["system", *sets, "mean ARI", "mean NMI", "seconds", "MB"],
        ["---"] * (len(sets) + 5),
    ]

    def order(system: str) -> float:
        """Sort by mean ARI; systems without results on all sets come last."""
        mean = np.mean([by_measure["ari"].get((system, name), np.nan) for name in sets])
        return np.inf if np.isnan(mean) else -mean

    for system in sorted((name for name in SYSTEMS if any(fit.system == name for fit in results)), key=order):
        ari, nmi, seconds, memory = (
            [by_measure[name].get((system, data), np.nan) for data in sets] for name in MEASURES
        )
        cells = [number(value) for value in (*ari, np.mean(ari), np.mean(nmi))]
        lines.append([system, *cells, number(np.sum(seconds), ".0f"), number(np.max(memory), ".0f")])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def number(value: float, form: str = ".2f") -> str:
    """Return a number, or a dash for a fit that failed or took too long."""
    return "-" if np.isnan(value) else f"{value:{form}}"


def update(page: Path, results: Mapping[Fit, Numbers]) -> None:
    """Replace the table of the page, and write all numbers beside it as CSV."""
    section = re.compile(r"(<!-- begin leaderboard -->\n).*?(<!-- end leaderboard -->)", flags=re.DOTALL)
    text = section.sub(lambda found: f"{found[1]}\n{markdown(results)}\n{found[2]}", page.read_text(encoding="utf-8"))
    page.write_text(text, encoding="utf-8")
    with page.with_suffix(".csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["data", "system", "seed", *MEASURES])
        writer.writerows([*fit, *(f"{numbers[name]:.4g}" for name in MEASURES)] for fit, numbers in results.items())


def recorded(page: Path) -> dict[Fit, Numbers]:
    """Return the numbers of the last update of the page."""
    path = page.with_suffix(".csv")
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {
            Fit(row["data"], row["system"], int(row["seed"])): {name: float(row[name]) for name in MEASURES}
            for row in csv.DictReader(file)
        }


def main() -> int:
    """Run unfinished fits and update the page."""
    options = parse()
    if options.fit:
        data, system, seed = options.fit
        print(json.dumps(measure(Fit(data, system, int(seed)))))
        return 0
    store = Store(options.results, "leaderboard")
    systems = [name for name in SYSTEMS if not options.systems or any(word in name for word in options.systems)]
    fits = [
        Fit(data, system, seed)
        for seed in range(options.seeds)
        for data in SETS
        if not options.sets or data in options.sets
        for system in systems
    ]
    run_all(fits, store, n_jobs=options.jobs, console=Console(stderr=True))
    earlier = recorded(PAGE)
    every = [Fit(data, system, seed) for seed in range(options.seeds) for data in SETS for system in SYSTEMS]
    results = {fit: numbers_of(fit, store) if store.read(fit.key) is not None else earlier[fit]
               for fit in every if store.read(fit.key) is not None or fit in earlier}  # fmt: skip
    print(markdown(results))
    update(PAGE, results)
    return 0


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line, or other arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", help="names of data sets (default: all)")
    parser.add_argument("--systems", nargs="+", help="words in the names of systems (default: all)")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds (default: 1)")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes (default: 1)")
    parser.add_argument("--results", type=Path, default=RESULTS / "leaderboard", help="folder of finished results")
    parser.add_argument("--fit", nargs=3, metavar=("DATA", "SYSTEM", "SEED"), help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
