"""What choosing the row prior brings on the paper's design, what it takes, and what leaps save."""

from __future__ import annotations

from collections.abc import Iterator
from time import process_time

import numpy as np
from scipy.optimize import linear_sum_assignment

from measure import Array, Limits, Row
from mmpca.counts import Counts, as_counts
from mmpca.simulate import paper_design
from mmpca.topics import fit_lda
from mmpca.topics.em import SMOOTHING, Problem, Runner, Stepper, random_mixture
from mmpca.topics.em import Limits as Passes

NOISES = (0.0, 0.2, 0.4, 0.5)
BALANCES = (1.0, 0.85, 0.7)
N_TOPICS = 4
PUBLISHED = 1.0
MOST_STEPS = 5_000


def prior_rows(quick: bool, repeats: int) -> list[Row]:
    """Return the error of topics under the chosen prior against the published one, and the time of the default fit."""
    rows = []
    for noise in NOISES:
        chosen, published, seconds, priors = [], [], [], []
        for counts, topics in designs(noise, 1 if quick else 2):
            start = process_time()
            fit = fit_lda(counts, N_TOPICS, rng=np.random.default_rng(0))
            seconds.append(process_time() - start)
            fixed = fit_lda(counts, N_TOPICS, rng=np.random.default_rng(0), row_prior=PUBLISHED)
            priors.append(f"{fit.row_prior:g}")
            chosen.append(error(fit.beta, topics))
            published.append(error(fixed.beta, topics))
        note = f"prior {', '.join(priors)}; {np.mean(seconds):.2f} s a fit, {max(seconds):.2f} s at most"
        name = f"noise {noise:g}: error of topics (mean total variation)"
        rows += [
            Row("prior", f"{name}, prior {PUBLISHED:g}", float(np.mean(published))),
            Row("prior", f"{name}, prior chosen / prior {PUBLISHED:g}", float(np.mean(chosen) / np.mean(published)),
                Limits(at_most=1), f"{np.mean(chosen):.3f}; {note}"),
        ]  # fmt: skip
    return [*rows, saved_passes()]


def designs(noise: float, n_seeds: int) -> Iterator[tuple[Counts, Array]]:
    """Yield counts and their true topics."""
    for balance in BALANCES:
        for seed in range(n_seeds):
            data = paper_design(noise=noise, balance=balance, random_state=seed)
            yield as_counts(data.X), data.topics


def error(beta: Array, topics: Array) -> float:
    """Return the mean total variation between topics and the true ones, matched as well as can be."""
    distances = 0.5 * np.abs(beta[:, None] - topics[None]).sum(axis=2)
    return float(distances[linear_sum_assignment(distances)].mean())


def saved_passes() -> Row:
    """Count the steps of plain EM to where the accelerated run ends, but for one nat."""
    counts, _ = next(designs(0.5, 1))
    problem = Problem(counts, counts.column_totals() > 0, 30.0, SMOOTHING)
    mixture = random_mixture(problem, N_TOPICS, np.random.default_rng(0))
    fit, step = Runner()(problem, mixture, Passes(max_passes=1_000, tol=1e-5)), Stepper(problem)
    n_steps, objective = 0, -np.inf
    while objective < fit.objective - 1.0 and n_steps < MOST_STEPS:
        mixture, objective = step(mixture, is_scored=True)
        n_steps += 1
    return Row("prior", "noise 0.5, prior 30: passes of plain EM / with leaps", n_steps / fit.n_passes, Limits(2),
               f"{n_steps} / {fit.n_passes}")  # fmt: skip
