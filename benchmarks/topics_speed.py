"""Topics: held-out likelihood and time of `LDA` compared with other libraries, and what choosing the prior gains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import starmap
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np
from scipy import io, sparse
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.metrics import adjusted_rand_score

from measure import Array, Limits, Row
from mmpca import MMPCA
from mmpca.counts import Counts, as_counts
from mmpca.simulate import paper_design
from mmpca.topics import LDA, fit_lda, held_out_score, known_counts, split_counts
from mmpca.topics.em import SMOOTHING, Problem, em_step, random_mixture, run_em
from problems import TEXTS, simulated_text

N_TOPICS = 20
QUICK_ROWS = 600
SKLEARN_PASSES = 30
TOMOTOPY_PASSES = 1000
# Row prior and smoothing: the defaults, and others up to the largest that scikit-learn allows.
SKLEARN_PRIORS = ((None, None), (0.3, 0.1), (1.0, 0.3), (1.0, 1.0))
# tomotopy fits its row prior itself, every tenth pass; smoothing up to the point where the score falls again.
TOMOTOPY_SMOOTHINGS = (0.01, 0.05, 0.2, 0.5)


# --- against other libraries ------------------------------------------------------------------------------------
#
# All methods fit the same four fifths of the counts and are scored on the rest, under their own topics and their own
# proportions of the rows. Baselines are run with several priors and the best run is compared; the time spent finding
# it is not counted, while our time includes the choice of the prior.


class Topics(NamedTuple):
    """Topics and proportions that a method found."""

    beta: Array  # (K, V)
    shares: Array  # (N, K)


class Outcome(NamedTuple):
    """Score and time of a method."""

    score: float  # mean log-likelihood per held-out count
    seconds: float
    settings: str


def topic_rows(quick: bool, repeats: int, data: Path | None = None) -> list[Row]:
    """Compare on each text set in the folder `data`, or on simulated text; each method is timed once."""
    ours(as_counts(np.eye(5, dtype=int) + 1), 2)  # compiles
    rows = [row for text in starmap(compare, texts(quick, data)) for row in text]
    return [row._replace(required=None) for row in rows] if quick else rows


def texts(quick: bool, data: Path | None) -> list[tuple[str, Counts]]:
    """Return the names and counts of the text sets."""
    found = [] if data is None else [name for name in TEXTS if Path(data, name, "counts.mtx.gz").exists()]
    if not found:
        print(f"No folder {' or '.join(TEXTS)} in {data}: using simulated text. Use --data to name the folder.")
        sets = {"simulated text": simulated_text()}
    else:
        sets = {name: sparse.csr_array(io.mmread(Path(data, name, "counts.mtx.gz"))) for name in found}
    return [(name, as_counts(X[:QUICK_ROWS] if quick else X)) for name, X in sets.items()]


def compare(name: str, rows: Counts) -> list[Row]:
    """Compare likelihood and time with each baseline."""
    split = split_counts(rows, np.random.default_rng(0))
    mine = outcome("auto", partial(ours, split.kept), split.held_out)
    baselines = {
        f"scikit-learn, {SKLEARN_PASSES} passes": [
            outcome(f"priors {row_prior}, {smoothing}", partial(sklearns, split.kept, N_TOPICS, row_prior, smoothing),
                    split.held_out)
            for row_prior, smoothing in SKLEARN_PRIORS
        ],
        f"tomotopy, {TOMOTOPY_PASSES} passes": [
            outcome(f"smoothing {smoothing}", partial(tomotopys, split.kept, N_TOPICS, smoothing), split.held_out)
            for smoothing in TOMOTOPY_SMOOTHINGS
        ],
    }  # fmt: skip
    table = []
    for baseline, outcomes in baselines.items():
        best = max(outcomes, key=lambda one: one.score)
        scores = f"{mine.score:.4f}, {best.score:.4f} with {best.settings}"
        seconds = f"{best.seconds:.1f} s / {mine.seconds:.1f} s"
        likelihood, time = f"{name}: held-out nats per count, ours - {baseline}", f"{name}: CPU time, {baseline} / ours"
        table += [
            Row("topics", likelihood, mine.score - best.score, Limits(0), scores),
            Row("topics", time, best.seconds / mine.seconds, Limits(1), seconds),
        ]
    return table


def outcome(settings: str, fit: Callable[[], Topics], held_out: Counts) -> Outcome:
    """Time a fit and score it."""
    start = process_time()
    found = fit()
    seconds = process_time() - start
    # Features whose counts were all held out are unknown to every method.
    return Outcome(held_out_score(known_counts(held_out, found.beta), found.shares, found.beta), seconds, settings)


def ours(rows: Counts, n_topics: int = N_TOPICS) -> Topics:
    """Fit with the defaults."""
    X = rows.to_csr()[np.diff(rows.indptr) > 0]  # all counts of a row may have been held out
    model = LDA(n_topics, n_jobs=1, random_state=0).fit(X)
    return Topics(model.components_, model.transform(rows.to_csr()))


def sklearns(rows: Counts, n_topics: int, row_prior: float | None, smoothing: float | None) -> Topics:
    """Fit scikit-learn's variational LDA; features without counts get no probability."""
    model = LatentDirichletAllocation(
        n_topics, doc_topic_prior=row_prior, topic_word_prior=smoothing, max_iter=SKLEARN_PASSES, random_state=0
    )
    shares = model.fit_transform(rows.to_csr())
    weights = model.components_ * (rows.column_totals() > 0)
    return Topics(weights / weights.sum(axis=1, keepdims=True), shares)


def tomotopys(rows: Counts, n_topics: int, smoothing: float) -> Topics:
    """Fit tomotopy's Gibbs sampler on one thread."""
    import tomotopy  # its compiled part cannot be loaded after some other libraries

    model = tomotopy.LDAModel(k=n_topics, eta=smoothing, seed=0)
    model.burn_in = TOMOTOPY_PASSES // 10
    filled = np.flatnonzero(np.diff(rows.indptr))
    for i in filled:
        entries = slice(rows.indptr[i], rows.indptr[i + 1])
        model.add_doc(np.repeat(rows.indices[entries], rows.data[entries]).astype(str).tolist())
    model.train(TOMOTOPY_PASSES, workers=1)
    beta, shares = np.zeros((n_topics, rows.n_features)), np.full((rows.n_rows, n_topics), 1 / n_topics)
    beta[:, np.array(model.used_vocabs, dtype=int)] = [model.get_topic_word_dist(k) for k in range(n_topics)]
    shares[filled] = [document.get_topic_dist() for document in model.docs]
    return Topics(beta, shares)


# --- the row prior ----------------------------------------------------------------------------------------------

NOISES, BALANCES = (0.0, 0.2, 0.4, 0.5), (1.0, 0.85, 0.7)
N_TRUE_TOPICS = 4
PUBLISHED = 1.0
MAX_STEPS = 5_000


def prior_rows(quick: bool, repeats: int) -> list[Row]:
    """Compare the error of topics under the chosen and the published prior, and time the default fit."""
    rows = []
    for noise in NOISES:
        chosen, published, seconds, priors = [], [], [], []
        for counts, topics in designs(noise, 1 if quick else 2):
            start = process_time()
            fit = fit_lda(counts, N_TRUE_TOPICS, rng=np.random.default_rng(0))
            seconds.append(process_time() - start)
            fixed = fit_lda(counts, N_TRUE_TOPICS, rng=np.random.default_rng(0), row_prior=PUBLISHED)
            priors.append(f"{fit.row_prior:g}")
            chosen.append(error(fit.beta, topics))
            published.append(error(fixed.beta, topics))
        note = f"prior {', '.join(priors)}; {np.mean(seconds):.2f} s per fit, at most {max(seconds):.2f} s"
        name = f"noise {noise:g}: error of topics (mean total variation)"
        rows += [
            Row("prior", f"{name}, prior {PUBLISHED:g}", float(np.mean(published))),
            Row("prior", f"{name}, chosen prior / prior {PUBLISHED:g}", float(np.mean(chosen) / np.mean(published)),
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
    """Return the mean total variation distance from the true topics under the best matching."""
    distances = 0.5 * np.abs(beta[:, None] - topics[None]).sum(axis=2)
    return float(distances[linear_sum_assignment(distances)].mean())


def saved_passes() -> Row:
    """Count how many steps plain EM needs to come within one nat of the accelerated result."""
    counts, _ = next(designs(0.5, 1))
    problem = Problem(counts, counts.column_totals() > 0, 30.0, SMOOTHING)
    mixture = random_mixture(problem, N_TRUE_TOPICS, np.random.default_rng(0))
    fit = run_em(problem, mixture, max_passes=1_000, tol=1e-5)
    n_steps, objective = 0, -np.inf
    while objective < fit.objective - 1.0 and n_steps < MAX_STEPS:
        mixture, objective = em_step(problem, mixture, is_scored=True)
        n_steps += 1
    return Row("prior", "noise 0.5, prior 30: passes of plain EM / of accelerated EM", n_steps / fit.n_passes,
               Limits(2), f"{n_steps} / {fit.n_passes}")  # fmt: skip


# --- topics re-estimated after every move -----------------------------------------------------------------------


def moves_rows(quick: bool, repeats: int) -> list[Row]:
    """Compare clusters and topics of the published algorithm with topics held fixed and re-estimated after moves."""
    rows = []
    for noise in NOISES[:1] if quick else NOISES[:3]:
        for start in ("kmeans", "random"):
            ends = np.array([ends_of_both(noise, start, seed) for seed in range(1 if quick else 3)]).mean(axis=0)
            for name, (ari, distance, bound) in zip(("fixed", "re-estimated"), ends, strict=True):
                note = f"error of topics {distance:.2f}, bound {bound:.0f}"
                rows.append(Row("moves", f"noise {noise:g}, start {start}: ARI, topics {name}", float(ari), None, note))
    return rows


def ends_of_both(noise: float, start: str, seed: int) -> list[list[float]]:
    """Return ARI, error of topics and bound with topics held fixed, then with topics re-estimated after moves."""
    data = paper_design(noise=noise, random_state=seed)
    beta = MMPCA(6, N_TRUE_TOPICS, topics="lda", random_state=seed).fit(data.X).components_
    own = {"topics": beta, "algorithm": "exact", "start": start, "n_init": 2, "random_state": seed}
    fits = [MMPCA(6, N_TRUE_TOPICS, refit_topics=refit, **own).fit(data.X) for refit in (False, "moves")]
    return [
        [adjusted_rand_score(data.labels, fit.labels_), error(fit.components_, data.topics), fit.bound_] for fit in fits
    ]
