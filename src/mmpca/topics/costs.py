"""What learning topics costs, stage by stage, before it begins: to tell how long it will take.

A unit is an entry times a topic in a pass of EM, about seven nanoseconds of one thread. The other numbers are
multiples that were measured on 100,000 rows of 50,000 features with 30 topics; where all topics fit into the cache of a
processor, all of it takes less.
"""

from __future__ import annotations

import numpy as np

from mmpca.topics.spectral import N_PASSES, SPARE_DIRECTIONS

UNIT = 7e-9  # seconds
SMALL_TABLE, LARGE_TABLE = 500_000, 1_500_000  # topics times features: within the cache, beyond it
SMALL_PACE = 0.5  # what an entry takes within the cache, of the time beyond it
DIRECTION = 1.7  # an entry times a direction, in a pass
SCORE = 2.1  # an entry times a topic, for each prior
REFINING = 3.4  # an entry times a topic, in a pass over all rows
USUAL_PASSES = 150  # of EM, where it may settle
USUAL_SEARCH = 400  # passes of all runs that choose the prior


def pace(n_features: int, n_topics: int) -> float:
    """Return what the stages of topics of this size take, as a share of the costs below."""
    sizes = np.log([SMALL_TABLE, LARGE_TABLE])
    return float(np.interp(np.log(n_features * n_topics), sizes, [SMALL_PACE, 1.0]))


def of_whole(n_entries: int, n_topics: int) -> dict[str, float]:
    """Return the costs of topics from all rows by EM alone."""
    work = float(n_entries * n_topics)
    return {"prior": USUAL_SEARCH * work, "topics": USUAL_PASSES * work}


def of_directions(n_entries: int, n_scored: int, n_topics: int, n_priors: int) -> dict[str, float]:
    """Return the costs of groups of rows from so many entries, and of a prior from so many others."""
    work = DIRECTION * n_entries * (n_topics + SPARE_DIRECTIONS)
    scores = SCORE * n_scored * n_topics * (n_priors + 2)
    return {"directions": N_PASSES * work, "groups": work, "scores": scores}


def of_first(n_entries: int, n_topics: int) -> dict[str, float]:
    """Return the costs of a prior from so many entries by EM."""
    return {"prior": float(USUAL_SEARCH * n_entries * n_topics)}


def of_sample(n_sampled: int, n_passes: int, n_entries: int, n_refining: int, n_topics: int) -> dict[str, float]:
    """Return the costs of passes over a sample and of so many over all entries."""
    return {
        "sample": float(min(n_passes, USUAL_PASSES) * n_sampled * n_topics),
        "refining": REFINING * n_refining * n_entries * n_topics,
    }
