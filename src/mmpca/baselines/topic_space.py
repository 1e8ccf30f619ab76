"""Rows in the space of an LDA: scikit-learn's, or any transformer that is handed in."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from mmpca.baselines.base import Array
from mmpca.baselines.checks import TOPIC_PARAMETERS
from mmpca.baselines.variational import VariationalLDA
from mmpca.counts import Counts

# Short E-steps and many passes: on simulated data a higher bound than E-steps of 100 updates, scikit-learn's default,
# reach in the same time.
ROW_UPDATES = 10
PASSES = 100
FINAL_ROW_UPDATES = 100


def fit_topic_space(rows: Counts, lda: Any, n_topics: int, seeds: list[int]) -> tuple[Any, Array]:
    """Fit an LDA from several seeds, keep the one that scores best, and return it with the rows' shares.

    Parameters
    ----------
    rows : Counts
        The counts.
    lda : "sklearn" or estimator
        scikit-learn's variational LDA, or an unfitted transformer with a parameter `n_topics` or `n_components`.
    n_topics : int
        Number of topics.
    seeds : list of int
        One for each run. A transformer without `score` runs for the first only.

    Returns
    -------
    fitted : estimator
        The best run.
    shares : ndarray of shape (n_rows, n_topics)
        The rows in topic space.
    """
    csr = rows.to_csr()
    if isinstance(lda, str):
        fits = [_fit_sklearn(csr, n_topics, seed, turn) for turn, seed in enumerate(seeds)]
    else:
        seeds = seeds if hasattr(lda, "score") else seeds[:1]
        fits = [_prepared(lda, n_topics, seed).fit(csr) for seed in seeds]
    best = fits[0] if len(fits) == 1 else max(fits, key=lambda fit: fit.score(csr))
    return best, np.asarray(best.transform(csr), dtype=np.float64)


def _fit_sklearn(csr: Any, n_topics: int, seed: int, turn: int) -> VariationalLDA:
    """Return scikit-learn's LDA, its row prior 1 or 1/K by turns: which suits the data better, the bound tells."""
    model = VariationalLDA(
        n_topics,
        doc_topic_prior=1.0 if turn % 2 == 0 else 1.0 / n_topics,
        max_iter=PASSES,
        max_doc_update_iter=ROW_UPDATES,
        random_state=seed,
    ).fit(csr)
    return model.set_params(max_doc_update_iter=FINAL_ROW_UPDATES)


def _prepared(lda: Any, n_topics: int, seed: int) -> Any:
    """Return a clone of the transformer with the number of topics and the seed set."""
    model = clone(lda)
    known = model.get_params(deep=False)
    size = next(name for name in TOPIC_PARAMETERS if name in known)
    seeding = {"random_state": seed} if "random_state" in known else {}
    return model.set_params(**{size: n_topics}, **seeding)
