"""Topics of texts: held-out likelihood and processor time of `LDA` against scikit-learn's and tomotopy's.

All fit the same four fifths of the counts, and are scored on the others under their own topics and the shares that
they themselves give to the rows. Rivals are run under several priors, and the best run is compared: what it took to
find it is not counted, while our time includes the choice of the prior.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import starmap
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np
import tomotopy
from scipy import io, sparse
from sklearn.decomposition import LatentDirichletAllocation

from measure import Array, Limits, Row
from mmpca.counts import Counts, as_counts
from mmpca.simulate import simulate_mmpca, sparse_topics
from mmpca.topics import LDA, held_out_score, split_counts
from mmpca.topics.splits import known_counts

TEXTS = ("acl_venues", "medical_abstracts_test")  # folders with counts.mtx.gz
N_TOPICS = 20
QUICK_ROWS = 600
SKLEARN_PASSES = 30
TOMOTOPY_PASSES = 1000
# Row prior and smoothing: the defaults, and others up to the largest that it allows.
SKLEARN_PRIORS = ((None, None), (0.3, 0.1), (1.0, 0.3), (1.0, 1.0))
# tomotopy fits its row prior itself, every tenth pass; of its smoothing, up to where the score falls again.
TOMOTOPY_SMOOTHINGS = (0.01, 0.05, 0.2, 0.5)


class Topics(NamedTuple):
    """What a method found in the counts that were kept."""

    beta: Array  # (K, V)
    shares: Array  # (N, K)


class Outcome(NamedTuple):
    """How a method did."""

    score: float  # mean log-likelihood of a held-out count
    seconds: float
    settings: str


def topic_rows(quick: bool, repeats: int, data: Path | None = None) -> list[Row]:
    """Compare on each text set of the folder `data`, or on simulated text without it; the time is that of one run."""
    ours(as_counts(np.eye(5, dtype=int) + 1), 2)  # compiles
    rows = [row for text in starmap(compare, texts(quick, data)) for row in text]
    return [row._replace(required=None) for row in rows] if quick else rows


def texts(quick: bool, data: Path | None) -> list[tuple[str, Counts]]:
    """Return the names and counts of the text sets."""
    found = [] if data is None else [name for name in TEXTS if Path(data, name, "counts.mtx.gz").exists()]
    if not found:
        print(f"No folder {' or '.join(TEXTS)} in {data}: topics are compared on simulated text. Name one by --data.")
        sets = {"simulated text": simulated_text()}
    else:
        sets = {name: sparse.csr_array(io.mmread(Path(data, name, "counts.mtx.gz"))) for name in found}
    return [(name, as_counts(X[:QUICK_ROWS] if quick else X)) for name, X in sets.items()]


def simulated_text() -> sparse.csr_array:
    """Draw short rows over many features, each about a few of the topics."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(N_TOPICS, 0.1), 3_000)
    topics = sparse_topics(N_TOPICS, 4_000, concentration=0.05, random_state=rng)
    return simulate_mmpca(3_000, topics=topics, cluster_topics=shares, lengths=80, random_state=rng).X


def compare(name: str, rows: Counts) -> list[Row]:
    """Return what each rival is behind in likelihood, and ahead in time."""
    split = split_counts(rows, np.random.default_rng(0))
    mine = outcome("auto", partial(ours, split.kept), split.held_out)
    rivals = {
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
    for rival, outcomes in rivals.items():
        best = max(outcomes, key=lambda one: one.score)
        measure = f"{name}: {{}}, ours {{}} {rival}"
        scores = f"{mine.score:.4f}, {best.score:.4f} with {best.settings}"
        seconds = f"{best.seconds:.1f} s / {mine.seconds:.1f} s"
        table += [
            Row("topics", measure.format("held-out nats a count", "-"), mine.score - best.score, Limits(0), scores),
            Row("topics", f"{name}: processor time, {rival} / ours", best.seconds / mine.seconds, Limits(1), seconds),
        ]
    return table


def outcome(settings: str, fit: Callable[[], Topics], held_out: Counts) -> Outcome:
    """Time a fit and score it."""
    start = process_time()
    found = fit()
    seconds = process_time() - start
    # Features whose counts were all held out are unknown to every method alike.
    return Outcome(held_out_score(known_counts(held_out, found.beta), found.shares, found.beta), seconds, settings)


# --- the methods ------------------------------------------------------------------------------------------------


def ours(rows: Counts, n_topics: int = N_TOPICS) -> Topics:
    """Fit with nothing but the defaults."""
    X = rows.to_csr()[np.diff(rows.indptr) > 0]  # a row may have lost all its counts
    model = LDA(n_topics, n_jobs=1, random_state=0).fit(X)
    return Topics(model.components_, model.transform(rows.to_csr()))


def sklearns(rows: Counts, n_topics: int, row_prior: float | None, smoothing: float | None) -> Topics:
    """Fit scikit-learn's variational LDA, its topics left without probability where no count was."""
    model = LatentDirichletAllocation(
        n_topics, doc_topic_prior=row_prior, topic_word_prior=smoothing, max_iter=SKLEARN_PASSES, random_state=0
    )
    shares = model.fit_transform(rows.to_csr())
    weights = model.components_ * (rows.column_totals() > 0)
    return Topics(weights / weights.sum(axis=1, keepdims=True), shares)


def tomotopys(rows: Counts, n_topics: int, smoothing: float) -> Topics:
    """Fit tomotopy's Gibbs sampler on one thread."""
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
