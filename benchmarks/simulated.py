"""Accuracy on the paper's design: the methods, the ceiling that nobody can pass, and two promises."""

from __future__ import annotations

from collections.abc import Sequence
from time import process_time
from typing import NamedTuple

import numpy as np
from sklearn.metrics import adjusted_rand_score

from ledger import Numbers
from methods import ALPHA, METHODS, Fitted
from mmpca import MMPCA, engine
from mmpca.counts import as_counts
from mmpca.model.prediction import joint_log_likelihood
from mmpca.simulate import Simulation, paper_design

BALANCES, NOISES = (1.0, 0.85, 0.7), (0.0, 0.2, 0.4, 0.5, 0.6)
CEILING = "ceiling"
PERMUTED, THREADS = "rows permuted", "two threads"
PROMISE_NOISE = 0.2


class Simulated(NamedTuple):
    """One method, or the ceiling, on one data set of the paper's design."""

    balance: float
    noise: float
    seed: int
    method: str
    n_samples: int = 400

    @property
    def key(self) -> str:
        """The name of its file."""
        return f"simulated-n{self.n_samples}-b{self.balance:g}-e{self.noise:g}-s{self.seed}-{self.method}"

    def draw(self) -> Simulation:
        """Draw the data set: the same for every method."""
        return paper_design(self.n_samples, noise=self.noise, balance=self.balance, random_state=self.seed)

    def run(self) -> Numbers:
        """Return the adjusted Rand index and, for a method, its time and how far it is above the true labels."""
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


class Promise(NamedTuple):
    """What the estimator promises of its labels, tried on one data set."""

    name: str
    seed: int
    n_samples: int = 400

    @property
    def key(self) -> str:
        """The name of its file."""
        return f"promise-n{self.n_samples}-s{self.seed}-{self.name.replace(' ', '-')}"

    def run(self) -> Numbers:
        """Return the adjusted Rand index of two fits that should agree."""
        data = paper_design(self.n_samples, noise=PROMISE_NOISE, random_state=self.seed)
        model = MMPCA(*data.cluster_topics.shape, random_state=self.seed, n_jobs=1)
        first = model.fit_predict(data.X)
        if self.name == THREADS:
            return {"ari": float(np.array_equal(first, model.set_params(n_jobs=2).fit_predict(data.X)))}
        order = np.random.default_rng(self.seed).permutation(len(first))
        return {"ari": adjusted_rand_score(first[order], model.fit_predict(data.X[order]))}


def bayes_labels(data: Simulation) -> np.ndarray:
    """Return the most probable cluster of each row under the true parameters, (N,)."""
    n_topics = len(data.topics)
    theta = (1 - data.noise) * data.cluster_topics + data.noise / n_topics
    return joint_log_likelihood(as_counts(data.X), data.topics, theta, data.weights).argmax(axis=1)


def bound_at_truth(data: Simulation, fitted: Fitted) -> float:
    """Return the bound of the true labels under the topics of a fit; clusters without a row do not count."""
    names, labels = np.unique(data.labels, return_inverse=True)
    state = engine.build(as_counts(data.X), labels, n_clusters=len(names), beta=fitted.topics, alpha=ALPHA)
    return engine.bound(state)


def simulated_tasks(
    n_seeds: int,
    *,
    balances: Sequence[float] = BALANCES,
    noises: Sequence[float] = NOISES,
    n_samples: int = 400,
) -> list[Simulated]:
    """Return the tasks of the grid, seed by seed, so that an unfinished run has all cells."""
    return [
        Simulated(balance, noise, seed, method, n_samples)
        for seed in range(n_seeds)
        for balance in balances
        for noise in noises
        for method in (CEILING, *METHODS)
    ]


def promise_tasks(n_seeds: int, n_samples: int = 400) -> list[Promise]:
    """Return the tasks that try the promises."""
    return [Promise(name, seed, n_samples) for seed in range(n_seeds) for name in (PERMUTED, THREADS)]
