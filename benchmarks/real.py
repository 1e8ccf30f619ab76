"""Accuracy on labelled data sets, each a folder with `counts.mtx.gz` and `labels.csv`, and on the reference runs."""

from __future__ import annotations

import csv
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import io, sparse
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import parity
from ledger import Numbers
from methods import REAL_METHODS
from mmpca import MMPCA

FILES = ("counts.mtx.gz", "labels.csv")


class Real(NamedTuple):
    """One method on one data set, with as many clusters as it has classes."""

    folder: str
    factor: int  # topics for each cluster
    method: str

    @property
    def name(self) -> str:
        """The name of the data set."""
        return Path(self.folder).name

    @property
    def key(self) -> str:
        """The name of its file."""
        return f"real-{self.name}-k{self.factor}q-{self.method}"

    def run(self) -> Numbers:
        """Return the agreement with the classes, the index of overdispersion and the time."""
        X, classes = read(Path(self.folder))
        n_clusters = int(classes.max()) + 1
        start = process_time()
        fitted = REAL_METHODS[self.method](X, n_clusters, self.factor * n_clusters, 0)
        seconds = process_time() - start
        return {
            "ari": adjusted_rand_score(classes, fitted.labels),
            "nmi": normalized_mutual_info_score(classes, fitted.labels),
            "overdispersion": fitted.overdispersion,
            "seconds": seconds,
            "n_clusters": n_clusters,
        }


class Referenced(NamedTuple):
    """The estimator on the data of one reference run."""

    folder: str

    @property
    def name(self) -> str:
        """The name of the run."""
        return Path(self.folder).name

    @property
    def key(self) -> str:
        """The name of its file."""
        return f"reference-{self.name}"

    def run(self) -> Numbers:
        """Return the accuracy with topics of our own and of the run, and by how much our best bound exceeds its own."""
        reference = parity.read(Path(self.folder))
        own = MMPCA(reference.n_clusters, len(reference.beta), random_state=0).fit(reference.X)
        best = reference.fit(n_init=parity.N_STARTS)
        return {
            "ari": adjusted_rand_score(reference.labels, own.labels_),
            "ari_of_run": adjusted_rand_score(reference.labels, reference.final),
            "above_run": best.bound_ - reference.bound,
        }


def data_folders(path: Path) -> list[Path]:
    """Return the folders of the data sets; raise FileNotFoundError if there are none."""
    folders = sorted({found.parent for found in path.glob(f"*/{FILES[0]}")})
    complete = [folder for folder in folders if all((folder / name).is_file() for name in FILES)]
    if not complete:
        raise FileNotFoundError(f"{path} holds no data set: expected folders with {' and '.join(FILES)}.")
    return complete


def read(folder: Path) -> tuple[sparse.csr_array, NDArray[np.int64]]:
    """Return counts and classes of a data set; rows without counts are left out."""
    X = sparse.csr_array(io.mmread(folder / FILES[0]))
    with (folder / FILES[1]).open(newline="", encoding="utf-8") as file:
        names = [line[0] for line in csv.reader(file)][1:]  # without the header
    classes = np.unique(names, return_inverse=True)[1]
    is_filled = np.asarray(X.sum(axis=1)) > 0
    return X[is_filled], classes[is_filled]


def real_tasks(path: Path, max_rows: int | None = None) -> list[Real]:
    """Return the tasks of all data sets up to a size: K = Q, and K = 2 Q where there are as many features."""
    tasks = []
    for folder in data_folders(path):
        X, classes = read(folder)
        if max_rows is not None and len(classes) > max_rows:
            continue
        factors = [factor for factor in (1, 2) if factor * (classes.max() + 1) <= X.shape[1]]
        tasks += [Real(str(folder), factor, method) for factor in factors for method in REAL_METHODS]
    return tasks


def reference_tasks(path: Path) -> list[Referenced]:
    """Return a task for each reference run."""
    return [Referenced(str(folder)) for folder in parity.run_folders(path)]
