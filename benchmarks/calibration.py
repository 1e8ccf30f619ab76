"""How far probabilities can be trusted: accuracy, mean probability and calibration error, for each dispersion.

Labeled data sets are split into fitted rows (70 %) and new rows. Each cluster stands for the class that most of its
fitted rows have. Simulated rows come with clusters, which are matched one to one. A probability is calibrated if, among
all rows predicted with probability p, a share p is right; the calibration error is the mean difference over ten bins.
A probability refers to a cluster, and a cluster may hold rows of several classes. The accuracy of the most certain
tenth of each cluster's rows shows this: it is far below 1 if even the core of a cluster mixes classes.

With `--intervals N`, only the coverage of `theta_interval` is measured, on N data sets of each of the paper's designs.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from accuracy_tasks import data_folders, read_labeled
from mmpca import MMPCA
from mmpca.errors import OverdispersionWarning
from mmpca.simulate import Simulation, paper_design, sparse_topics

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

DISPERSIONS = ("auto", "multinomial", "shares", "polya")
N_BINS = 10
FITTED_SHARE = 0.7
N_NEW = 3000  # simulated rows
PAPER_DESIGNS = ((100, 0.0), (200, 0.2), (400, 0.4))  # rows and noise
LEVEL = 0.95  # of intervals
HEADLINE_WORDS = (2, 6)  # of the headlines cut out of a set of short texts
HEADLINES = "news_titles"


class Case(NamedTuple):
    """Rows to fit and new rows, with their true clusters or classes."""

    name: str
    X: sparse.csr_array
    truth: Labels
    new_X: sparse.csr_array
    new_truth: Labels
    n_clusters: int
    n_topics: int
    is_matched: bool  # clusters are matched one to one, not mapped to the most frequent class


class Calibration(NamedTuple):
    """How probabilities compare with the truth."""

    accuracy: float
    probability: float  # mean of the most probable clusters'
    error: float


def calibration(probabilities: Array, classes: Labels, truth: Labels) -> Calibration:
    """Compare the most probable clusters with the truth.

    Parameters
    ----------
    probabilities : array of shape (N, Q)
    classes : array of int, shape (Q,)
        The class that each cluster stands for.
    truth : array of int, shape (N,)

    Examples
    --------
    >>> result = calibration(np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([0, 1]), np.array([0, 0]))
    >>> result.accuracy, round(result.probability, 2), round(result.error, 2)
    (0.5, 0.8, 0.4)
    """
    largest, is_right = probabilities.max(axis=1), classes[probabilities.argmax(axis=1)] == truth
    bins = np.minimum((largest * N_BINS).astype(int), N_BINS - 1)
    gaps = np.abs(np.bincount(bins, largest, N_BINS) - np.bincount(bins, is_right, N_BINS))
    return Calibration(float(is_right.mean()), float(largest.mean()), float(gaps.sum() / len(truth)))


def surest_accuracy(probabilities: Array, classes: Labels, truth: Labels, share: float = 0.1) -> float:
    """Return the accuracy of the most certain rows: the given share of each cluster, but at least one row.

    Examples
    --------
    >>> p = np.array([0.9, 0.8, 0.7, 0.6])
    >>> surest_accuracy(np.column_stack([p, 1 - p]), np.array([0, 1]), np.array([0, 1, 0, 1]), share=0.5)
    0.5
    """
    largest, labels = probabilities.max(axis=1), probabilities.argmax(axis=1)
    by_cluster = [np.flatnonzero(labels == q) for q in np.unique(labels)]
    surest = [some[np.argsort(-largest[some])][: int(np.ceil(share * len(some)))] for some in by_cluster]
    at = np.concatenate(surest)
    return float((classes[labels[at]] == truth[at]).mean())


def classes_of(labels: NDArray[np.int32], truth: Labels, n_clusters: int, *, is_matched: bool) -> Labels:
    """Return the class that each cluster stands for, (Q,)."""
    table = np.zeros((n_clusters, max(n_clusters, int(truth.max()) + 1)))
    np.add.at(table, (labels, truth), 1)
    classes: Labels = linear_sum_assignment(-table)[1] if is_matched else table.argmax(axis=1)
    return classes


# --- data -------------------------------------------------------------------------------------------------------


def simulated_cases(seed: int) -> Iterator[Case]:
    """Yield the paper's design, whose rows are multinomial, and rows with varying topic shares."""
    for n_samples, noise in PAPER_DESIGNS:
        data = paper_design(n_samples=n_samples + N_NEW, noise=noise, random_state=seed)
        first, rest = slice(n_samples), slice(n_samples, None)
        split = (data.X[first], data.labels[first], data.X[rest], data.labels[rest])
        yield Case(f"paper, N = {n_samples}, noise {noise:g}", *split, 6, 4, True)
    for concentration in (5.0, 20.0, 100.0):
        yield varying_rows(concentration, seed)
    for concentration in (30.0, 100.0, 300.0):
        yield varying_rows(concentration, seed, is_bursty=True)


def varying_rows(
    concentration: float, seed: int, n_samples: int = 400, n_new: int = N_NEW, *, is_bursty: bool = False
) -> Case:
    """Draw 5 clusters of rows whose shares of 4 topics, or of all features, are Dirichlet with this concentration."""
    rng = np.random.default_rng(seed)
    topics = 0.9 * sparse_topics(4, 500, random_state=rng) + 0.1 / 500
    means = rng.dirichlet(np.full(4, 0.7), 5)
    truth = rng.integers(5, size=n_samples + n_new)
    if is_bursty:
        means, topics = means @ topics, np.eye(500)
    shares = np.array([rng.dirichlet(np.maximum(concentration * means[q], 1e-9)) for q in truth])
    X = sparse.csr_array(rng.multinomial(200, shares @ topics))
    split = (X[:n_samples], truth[:n_samples], X[n_samples:], truth[n_samples:])
    kind = "bursts" if is_bursty else "shares"
    return Case(f"{kind}, concentration {concentration:g}", *split, 5, 4, True)


def labeled_cases(path: Path, seed: int, max_rows: int | None, names: Sequence[str]) -> Iterator[Case]:
    """Yield the labeled data sets, with as many clusters and topics as classes."""
    for folder in data_folders(path):
        if names and folder.name not in names:
            continue
        X, truth = read_labeled(folder)
        if max_rows is None or len(truth) <= max_rows:
            yield split_case(folder.name, X, truth, seed)
        if folder.name == HEADLINES:
            n_words = np.asarray(X.sum(axis=1))
            largest = np.argsort(-np.bincount(truth))[:20]
            kept = (n_words >= HEADLINE_WORDS[0]) & (n_words <= HEADLINE_WORDS[1]) & np.isin(truth, largest)
            yield split_case("headlines of 2 to 6 words", X[kept], np.unique(truth[kept], return_inverse=True)[1], seed)


def split_case(name: str, X: sparse.csr_array, truth: Labels, seed: int) -> Case:
    """Split a data set into fitted and new rows; features that no fitted row has are dropped, and so are empty rows."""
    order = np.random.default_rng(seed).permutation(len(truth))
    n_fitted, n_classes = int(FITTED_SHARE * len(truth)), int(truth.max()) + 1
    fitted, new = order[:n_fitted], order[n_fitted:]
    present = np.flatnonzero(np.asarray(X[fitted].sum(axis=0)) > 0)
    new_X = X[new][:, present]
    filled = np.asarray(new_X.sum(axis=1)) > 0
    return Case(
        name, X[fitted][:, present], truth[fitted], new_X[filled], truth[new][filled], n_classes, n_classes, False
    )


# --- measurements -----------------------------------------------------------------------------------------------


def measure(case: Case, dispersion: str, seed: int) -> list[str]:
    """Fit a case and return the line of the table."""
    model = MMPCA(case.n_clusters, case.n_topics, dispersion=dispersion, random_state=seed)
    started = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverdispersionWarning)
        model.fit(case.X)
    seconds, started = process_time() - started, process_time()
    temperature = model.temperature_
    seconds_more = process_time() - started
    classes = classes_of(model.labels_, case.truth, case.n_clusters, is_matched=case.is_matched)
    probabilities = model.predict_proba(case.new_X)
    found = [
        *calibration(model.leave_one_out_proba(case.X), classes, case.truth),
        *calibration(probabilities, classes, case.new_truth),
        surest_accuracy(probabilities, classes, case.new_truth),
    ]
    numbers = [f"{value:.3f}" for value in found]
    concentration = f"{model.concentration_:.3g}" if hasattr(model, "concentration_") else ""
    return [
        case.name,
        dispersion,
        *numbers,
        concentration,
        f"{temperature:.3g}",
        f"{seconds:.1f}",
        f"{seconds_more:.1f}",
    ]


def noisy_shares(data: Simulation) -> Array:
    """Return the topic proportions from which the rows of each cluster were drawn, noise included, (Q, K)."""
    shares: Array = (1.0 - data.noise) * data.cluster_topics + data.noise / data.cluster_topics.shape[1]
    return shares


def coverage(n_samples: int, noise: float, seed: int) -> tuple[float, float]:
    """Return the coverage of intervals of topic proportions, and their mean width, on one data set."""
    data = paper_design(n_samples=n_samples, noise=noise, random_state=seed)
    model = MMPCA(*data.cluster_topics.shape, random_state=seed).fit(data.X)
    truth = noisy_shares(data)
    topics = linear_sum_assignment(-(np.sqrt(data.topics) @ np.sqrt(model.components_).T))[1]
    clusters = np.argsort(classes_of(model.labels_, data.labels.astype(np.int64), len(truth), is_matched=True))
    lower, upper = (limit[clusters][:, topics] for limit in model.theta_interval(LEVEL, random_state=seed))
    return float(((lower <= truth) & (truth <= upper)).mean()), float((upper - lower).mean())


def interval_table(n_sets: int, designs: Sequence[tuple[int, float]] = PAPER_DESIGNS) -> Table:
    """Return the coverage of intervals of theta on `n_sets` data sets of each design."""
    table = Table(title=f"{LEVEL:.0%} intervals of topic proportions; data sets per design: {n_sets}")
    for column in ("rows", "noise", "coverage", "standard error", "lowest in a data set", "mean width"):
        table.add_column(column, justify="right")
    for n_samples, noise in designs:
        shares, widths = np.array([coverage(n_samples, noise, seed) for seed in range(n_sets)]).T
        error = shares.std(ddof=1) / np.sqrt(n_sets) if n_sets > 1 else np.nan
        numbers = (shares.mean(), error, shares.min(), widths.mean())
        line = [str(n_samples), f"{noise:g}", *(f"{number:.3f}" for number in numbers)]
        print("  ".join(line), file=sys.stderr, flush=True)
        table.add_row(*line)
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder of labeled data sets")
    parser.add_argument("--sets", nargs="*", default=[], help="only these data sets")
    parser.add_argument("--max-rows", type=int, help="skip larger data sets")
    parser.add_argument("--dispersions", nargs="+", choices=DISPERSIONS, default=DISPERSIONS[:1])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-simulation", action="store_true", help="only labeled data sets")
    parser.add_argument("--intervals", type=int, metavar="N", help="check only theta_interval, on N sets per design")
    options = parser.parse_args(arguments)
    if options.intervals:
        Console(width=max(120, Console().width)).print(interval_table(options.intervals))
        return 0
    table = Table(title="Calibration of the most probable cluster, of fitted and new rows")
    for column in ("data", "dispersion"):
        table.add_column(column)
    for column in (
        "right",
        "mean p",
        "error",
        "new: right",
        "mean p",
        "error",
        "most certain: right",
        "concentration",
        "temperature",
        "seconds",
        "more",
    ):
        table.add_column(column, justify="right")
    cases = [] if options.no_simulation else list(simulated_cases(options.seed))
    if options.data is not None:
        cases += labeled_cases(options.data, options.seed, options.max_rows, options.sets)
    for case in cases:
        for dispersion in options.dispersions:
            line = measure(case, dispersion, options.seed)
            print("  ".join(line), file=sys.stderr, flush=True)
            table.add_row(*line)
    Console(width=max(120, Console().width)).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
