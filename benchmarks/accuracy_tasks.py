"""Tasks of the accuracy benchmark: methods on simulated, labeled and reference data."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import io, sparse
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import parity
from measure import Array
from mmpca import MMPCA, engine
from mmpca.counts import as_counts
from mmpca.errors import OverdispersionWarning
from mmpca.model.prediction import ClusterMixture, joint_log_likelihood
from mmpca.simulate import Simulation, paper_design
from mmpca.topics import fit_lda
from tasks import Numbers

ALPHA = 1.0  # the estimator's default
BALANCES, NOISES = (1.0, 0.85, 0.7), (0.0, 0.2, 0.4, 0.5, 0.6)
CEILING = "ceiling"
PERMUTED, THREADS = "rows permuted", "two threads"
INVARIANCE_NOISE = 0.2
COUNTS_FILE, LABELS_FILE = "counts.mtx.gz", "labels.csv"


# --- methods ----------------------------------------------------------------------------------------------------


class Fitted(NamedTuple):
    """The result of a method."""

    labels: NDArray[np.int32]  # (N,)
    topics: Array  # (K, V)
    bound: float
    overdispersion: float


Method = Callable[[sparse.csr_array, int, int, int], Fitted]


def estimator(X: sparse.csr_array, n_clusters: int, n_topics: int, seed: int, **options: object) -> Fitted:
    """Fit the estimator."""
    model = MMPCA(n_clusters, n_topics, random_state=seed, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverdispersionWarning)  # it is measured
        model.fit(X)
    return Fitted(model.labels_, model.components_, model.bound_, model.overdispersion_)


def published(X: sparse.csr_array, n_clusters: int, n_topics: int, seed: int, **options: object) -> Fitted:
    """Search as published: exact evaluation of every move, one random start, topics from an LDA with row prior 1."""
    topics = fit_lda(as_counts(X), n_topics, rng=np.random.default_rng(seed), row_prior=1.0).beta
    options |= {"topics": topics, "algorithm": "exact", "start": "random", "n_init": 1}
    return estimator(X, n_clusters, n_topics, seed, **options)


METHODS: dict[str, Method] = {
    "default": estimator,
    "published": published,
    "cvem": partial(estimator, algorithm="cvem"),
    "vbem": partial(estimator, algorithm="vbem"),
}
LABELED_METHODS: dict[str, Method] = METHODS | {"sqrt": partial(estimator, stabilize="sqrt")}


# --- simulated data ---------------------------------------------------------------------------------------------


class SimulatedTask(NamedTuple):
    """One method, or the ceiling, on one data set of the paper's design."""

    balance: float
    noise: float
    seed: int
    method: str
    n_samples: int = 400

    @property
    def key(self) -> str:
        """The name of its file in the store."""
        return f"simulated-n{self.n_samples}-b{self.balance:g}-e{self.noise:g}-s{self.seed}-{self.method}"

    def draw(self) -> Simulation:
        """Simulate the data set, which is the same for every method."""
        return paper_design(self.n_samples, noise=self.noise, balance=self.balance, random_state=self.seed)

    def run(self) -> Numbers:
        """Return the adjusted Rand index and, for a method, its time and the bound minus the bound at the truth."""
        data = self.draw()
        if self.method == CEILING:
            return {"ari": adjusted_rand_score(data.labels, bayes_labels(data))}
        start = process_time()
        fitted = METHODS[self.method](data.X, *data.cluster_topics.shape, self.seed)
        seconds = process_time() - start
        numbers = {"ari": adjusted_rand_score(data.labels, fitted.labels), "seconds": seconds}
        if self.method != "vbem":  # its bound is of another kind
            numbers["above_truth"] = fitted.bound - bound_at_truth(data, fitted)
        return numbers


def bayes_labels(data: Simulation) -> NDArray[np.int64]:
    """Return the most probable cluster of each row under the true parameters, (N,)."""
    theta = (1 - data.noise) * data.cluster_topics + data.noise / len(data.topics)
    return joint_log_likelihood(as_counts(data.X), ClusterMixture(data.topics, theta, data.weights)).argmax(axis=1)


def bound_at_truth(data: Simulation, fitted: Fitted) -> float:
    """Return the bound of the true labels under the topics of a fit, leaving out clusters without rows."""
    names, labels = np.unique(data.labels, return_inverse=True)
    state = engine.build(as_counts(data.X), labels, n_clusters=len(names), beta=fitted.topics, alpha=ALPHA)
    return engine.bound(state)


def simulated_tasks(
    n_seeds: int,
    *,
    balances: Sequence[float] = BALANCES,
    noises: Sequence[float] = NOISES,
    n_samples: int = 400,
) -> list[SimulatedTask]:
    """Return the tasks of the grid, seed by seed, so that an unfinished run covers all cells."""
    return [
        SimulatedTask(balance, noise, seed, method, n_samples)
        for seed in range(n_seeds)
        for balance in balances
        for noise in noises
        for method in (CEILING, *METHODS)
    ]


class InvarianceTask(NamedTuple):
    """Two fits of the same rows that should agree: in another order, or on two threads."""

    name: str
    seed: int
    n_samples: int = 400

    @property
    def key(self) -> str:
        """The name of its file in the store."""
        return f"invariance-n{self.n_samples}-s{self.seed}-{self.name.replace(' ', '-')}"

    def run(self) -> Numbers:
        """Return the adjusted Rand index between the two fits; for threads, 1 if all labels are equal and else 0."""
        data = paper_design(self.n_samples, noise=INVARIANCE_NOISE, random_state=self.seed)
        model = MMPCA(*data.cluster_topics.shape, random_state=self.seed, n_jobs=1)
        first = model.fit_predict(data.X)
        if self.name == THREADS:
            return {"ari": float(np.array_equal(first, model.set_params(n_jobs=2).fit_predict(data.X)))}
        order = np.random.default_rng(self.seed).permutation(len(first))
        return {"ari": adjusted_rand_score(first[order], model.fit_predict(data.X[order]))}


def invariance_tasks(n_seeds: int, n_samples: int = 400) -> list[InvarianceTask]:
    """Return the tasks for both invariances."""
    return [InvarianceTask(name, seed, n_samples) for seed in range(n_seeds) for name in (PERMUTED, THREADS)]


# --- labeled data -----------------------------------------------------------------------------------------------


class LabeledTask(NamedTuple):
    """One method on one labeled data set, with as many clusters as classes."""

    folder: str
    factor: int  # topics per cluster
    method: str

    @property
    def name(self) -> str:
        """The name of the data set."""
        return Path(self.folder).name

    @property
    def key(self) -> str:
        """The name of its file in the store."""
        return f"labeled-{self.name}-k{self.factor}q-{self.method}"

    def run(self) -> Numbers:
        """Return the agreement with the classes, the index of overdispersion and the time."""
        X, classes = read_labeled(Path(self.folder))
        n_clusters = int(classes.max()) + 1
        start = process_time()
        fitted = LABELED_METHODS[self.method](X, n_clusters, self.factor * n_clusters, 0)
        seconds = process_time() - start
        return {
            "ari": adjusted_rand_score(classes, fitted.labels),
            "nmi": normalized_mutual_info_score(classes, fitted.labels),
            "overdispersion": fitted.overdispersion,
            "seconds": seconds,
            "n_clusters": n_clusters,
        }


def data_folders(path: Path) -> list[Path]:
    """Return the folders of the labeled data sets; raise FileNotFoundError if there are none."""
    files = (COUNTS_FILE, LABELS_FILE)
    folders = sorted(found.parent for found in path.glob(f"*/{COUNTS_FILE}") if (found.parent / LABELS_FILE).is_file())
    if not folders:
        raise FileNotFoundError(f"No data set in {path}: expected folders that contain {' and '.join(files)}.")
    return folders


def read_labeled(folder: Path) -> tuple[sparse.csr_array, NDArray[np.int64]]:
    """Return the counts and classes of a data set, without empty rows."""
    X = sparse.csr_array(io.mmread(folder / COUNTS_FILE))
    with (folder / LABELS_FILE).open(newline="", encoding="utf-8") as file:
        names = [line[0] for line in csv.reader(file)][1:]  # without the header
    classes = np.unique(names, return_inverse=True)[1]
    is_filled = np.asarray(X.sum(axis=1)) > 0
    return X[is_filled], classes[is_filled]


def labeled_tasks(path: Path, max_rows: int | None = None) -> list[LabeledTask]:
    """Return the tasks of all data sets up to a size: K = Q, and K = 2 Q if there are enough features."""
    tasks = []
    for folder in data_folders(path):
        X, classes = read_labeled(folder)
        if max_rows is not None and len(classes) > max_rows:
            continue
        factors = [factor for factor in (1, 2) if factor * (classes.max() + 1) <= X.shape[1]]
        tasks += [LabeledTask(str(folder), factor, method) for factor in factors for method in LABELED_METHODS]
    return tasks


# --- reference runs ---------------------------------------------------------------------------------------------


class ReferenceTask(NamedTuple):
    """The estimator on the data of one run of the R package."""

    folder: str

    @property
    def name(self) -> str:
        """The name of the run."""
        return Path(self.folder).name

    @property
    def key(self) -> str:
        """The name of its file in the store."""
        return f"reference-{self.name}"

    def run(self) -> Numbers:
        """Return our accuracy, the run's accuracy, and our bound with the run's topics minus its own bound."""
        reference = parity.read(Path(self.folder))
        own = MMPCA(reference.n_clusters, len(reference.beta), random_state=0).fit(reference.X)
        best = reference.fit(n_init=parity.N_STARTS)
        return {
            "ari": adjusted_rand_score(reference.labels, own.labels_),
            "ari_of_run": adjusted_rand_score(reference.labels, reference.final),
            "above_run": best.bound_ - reference.bound,
        }


def reference_tasks(path: Path) -> list[ReferenceTask]:
    """Return a task for each reference run."""
    return [ReferenceTask(str(folder)) for folder in parity.run_folders(path)]
