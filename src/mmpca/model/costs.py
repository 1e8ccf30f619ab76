"""What a search costs, stage by stage, before it begins, and how far it is: to tell how long it will take.

The unit is that of `mmpca.topics.costs`, and the multiples were measured on the same data; how much longer starts take
in which nearly all rows move, on 3,000 to 15,000 rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mmpca import engine
from mmpca.model.starts import Callback
from mmpca.stages import Stages

SHARES, ROUGH_SHARES = 7.0, 4.0  # an entry times a topic: of all rows, of those that starts are tried on
BUILDING, FINISHING, REFIT = 47.0, 20.0, 44.0  # cluster x topic x feature: of a start, the search of all rows, the end
STARTING = 5e6  # a start, of any size
FAR_STEPS = {"random": 5.0, "anneal": 5.0}  # of a start, where one from k-means makes a single step
CLIMBING = 1.4  # an entry times a cluster or topic, over all epochs
CARRYING = 0.65  # an entry times a cluster
DISPERSION = 3.0  # an entry
BUILT = 0.35  # share of a search that is done when its first epoch begins
USUAL_EPOCHS = 4


class Sizes(NamedTuple):
    """What costs depend on."""

    n_entries: int
    n_features: int
    n_clusters: int
    n_topics: int

    @property
    def table(self) -> int:
        """Numbers of all topics in all clusters and features."""
        return self.n_clusters * self.n_topics * self.n_features

    @property
    def climb(self) -> float:
        """Cost of the epochs of a search."""
        return CLIMBING * self.n_entries * (self.n_clusters + self.n_topics)


def start_steps(kinds: Sequence[str]) -> list[float]:
    """Return the steps that starts of these kinds count for: as many as they take longer than one from k-means."""
    return [FAR_STEPS.get(kind, 1.0) for kind in kinds]


def search_costs(sizes: Sizes, n_steps: float, *, sampled: float | None = None, is_refitted: bool) -> dict[str, float]:
    """Return the costs of all stages after the topics.

    Parameters
    ----------
    sizes : Sizes
    n_steps : float
        Steps of the starts that are likely to be made, see `start_steps`.
    sampled : float, optional
        Share of the rows that starts are tried on, if not all: the search goes on with all rows then.
    is_refitted : bool
        Whether topics are estimated anew at the end.
    """
    some = sizes if sampled is None else sizes._replace(n_entries=int(sampled * sizes.n_entries))
    found = {
        "shares": (SHARES if sampled is None else ROUGH_SHARES) * some.n_entries * sizes.n_topics,
        "starts": n_steps * (STARTING + BUILDING * sizes.table + some.climb),
    }
    if sampled is not None:
        found["carrying"] = CARRYING * sizes.n_entries * sizes.n_clusters
        found["search"] = FINISHING * sizes.table + sizes.climb
    if is_refitted:
        found["refit"] = REFIT * sizes.table
    return found | {"dispersion": DISPERSION * sizes.n_entries}


def watched(
    callback: Callback | None, stages: Stages, steps: Sequence[float] = (), *, n_at_once: int = 1
) -> Callback | None:
    """Return a callback that also tells stages of each block.

    Parameters
    ----------
    callback : callable, optional
    stages : Stages
    steps : sequence of float
        Of each start; without any, it is the search of all rows that is told of, as one step.
    n_at_once : int
        Starts side by side: those that began before the last so many have ended.
    """
    if not stages.is_heard:
        return callback
    done: dict[int, float] = {}  # shares of the starts that have begun

    def tell(number: int, now: engine.Progress) -> object:
        what = f"start {number + 1}" if steps else "all rows"
        text = f"{what}, epoch {now.epoch}, {now.n_moves:,} moves, bound {now.bound:,.1f}"
        done[number] = _share(now)
        begun = done.copy()  # other threads go on
        n_ended = max(0, max(begun) + 1 - n_at_once) if steps else 0
        present = sum(share * (steps[one] if steps else 1.0) for one, share in begun.items() if one >= n_ended)
        stages.reach(sum(steps[:n_ended]) + present, text)
        return None if callback is None else callback(number, now)

    return tell


def _share(now: engine.Progress) -> float:
    """Return about how much of a search is done, which may end after any epoch."""
    n_epochs = now.epoch - 1 + now.n_done / now.n_rows
    return float(BUILT + (1 - BUILT) * (1 - 0.25 ** (n_epochs / USUAL_EPOCHS)))
