"""How far a fit is, and about how long it will take.

A fit goes through stages whose costs can be told beforehand from the sizes of the data, though not how fast they will
be paid here. The time that those have taken which are done, over their cost, tells what those to come will take; of the
present stage its own pace does, as soon as a part of it is done: how hard a search is, no size tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Any, NamedTuple

LEAST_SECONDS, LEAST_SHARE = 2.0, 0.02  # of a fit, before which nothing is said of the time that is left
OWN_PACE = 0.25  # of a stage's steps, after which it goes by its own pace
UNSURE_REST = 0.25  # share of a stage that is expected to come when it has made its usual number of steps


class Stage(NamedTuple):
    """Where a fit stands."""

    name: str  # of the stage
    text: str  # what it does at the moment
    share: float  # of the whole fit that is done; it never falls
    seconds_left: float | None  # None where there is too little to go by


Listener = Callable[[Stage], object]


@dataclass
class _Present:
    """The stage that a fit is in."""

    name: str
    text: str
    cost: float
    n_steps: float
    is_sure: bool
    began: float
    steps: float = 0.0

    @property
    def spent(self) -> float:
        """Cost of the steps so far."""
        return self.cost * self.steps / self.n_steps

    @property
    def to_come(self) -> float:
        """Expected cost of the steps to come."""
        return self.cost * self.rest

    @property
    def rest(self) -> float:
        """Steps to come, as a share of the number that was expected."""
        share = self.steps / self.n_steps
        return max(0.0, 1.0 - share) if self.is_sure else UNSURE_REST**share

    @property
    def line(self) -> str:
        """What is done, with the number of the step."""
        step = int(self.steps) + 1
        return self.text.format(step=min(step, int(self.n_steps)) if self.is_sure else step, n_steps=self.n_steps)


class Stages:
    """The stages of a fit, told to a listener; without one, all calls do nothing.

    A copy that is sent to another process has no listener: there is nobody to tell.

    Parameters
    ----------
    listener : callable, optional
        Called with a `Stage`, from the thread that has got on; never from two at a time.
    clock : callable
        Returns seconds.

    Examples
    --------
    >>> told = []
    >>> stages = Stages(told.append, clock=iter([0, 0, 0, 30]).__next__)
    >>> stages.expect({"topics": 3.0, "search": 1.0})
    >>> stages.begin("topics", "pass {step} of {n_steps}", 2)
    >>> stages.step()
    >>> told[-1]
    Stage(name='topics', text='pass 2 of 2', share=0.375, seconds_left=50.0)
    """

    def __init__(self, listener: Listener | None = None, *, clock: Callable[[], float] = monotonic) -> None:
        self._listener, self._clock, self._lock = listener, clock, Lock()
        self._planned: dict[str, float] = {}  # costs of the stages to come, in their order
        self._present: _Present | None = None
        self._spent, self._share, self._began = 0.0, 0.0, clock()

    def __reduce__(self) -> tuple[Any, ...]:
        return Stages, ()

    @property
    def is_heard(self) -> bool:
        """Whether there is a listener."""
        return self._listener is not None

    def expect(self, costs: Mapping[str, float]) -> None:
        """Plan stages with their costs, in any unit that all have in common; new ones come next, in their order."""
        if self.is_heard:
            with self._lock:
                self._planned = dict(costs) | {n: cost for n, cost in self._planned.items() if n not in costs}

    def begin(self, name: str, text: str, n_steps: float = 1, *, is_sure: bool = True) -> None:
        """Begin a stage; those that were planned before it and have not begun are left out.

        Parameters
        ----------
        name : str
        text : str
            What to say; ``{step}`` and ``{n_steps}`` stand for numbers.
        n_steps : float
            Steps that the stage will make. A stage that tells of none has done its whole cost when the next one begins,
            others what they have told.
        is_sure : bool
            Whether it will make no more steps: otherwise the number is a usual one.
        """
        if not self.is_heard:
            return
        with self._lock:
            self._close()
            names = list(self._planned)
            left_out = names[: names.index(name)] if name in names else []
            for other in left_out:
                del self._planned[other]
            self._present = _Present(name, text, self._planned.pop(name, 0.0), n_steps, is_sure, self._clock())
            self._tell(self._present)

    def step(self, n_steps: float = 1) -> None:
        """Say that so many steps more are done."""
        if not self.is_heard:
            return
        with self._lock:
            if self._present is not None:
                self._present.steps += n_steps
                self._tell(self._present)

    def reach(self, n_steps: float, text: str | None = None) -> None:
        """Say that at least so many steps are done in all, and what is done now."""
        if not self.is_heard:
            return
        with self._lock:
            if self._present is not None:
                self._present.steps = max(self._present.steps, n_steps)
                self._present.text = self._present.text if text is None else text
                self._tell(self._present)

    def end(self) -> None:
        """Say that all is done."""
        if self._listener is not None:
            with self._lock:
                self._share, self._present, self._planned = 1.0, None, {}
                self._listener(Stage("done", "done", 1.0, 0.0))

    def _close(self) -> None:
        if self._present is not None:
            self._spent += self._present.spent if self._present.steps else self._present.cost

    def _tell(self, present: _Present) -> None:
        """Tell the listener of the present stage; the lock is held, so that shares arrive in their order."""
        elapsed, spent = self._clock() - self._began, self._spent + present.spent
        to_come = present.to_come + sum(self._planned.values())
        share = spent / (spent + to_come) if spent > 0 else 0.0
        left = self._seconds_left(present, elapsed, spent) if elapsed > 0 and spent > 0 else None
        if left is not None:
            share = elapsed / (elapsed + left)
        self._share = max(self._share, share)
        is_known = elapsed >= LEAST_SECONDS and share >= LEAST_SHARE
        if self._listener is not None:
            self._listener(Stage(present.name, present.line, self._share, left if is_known else None))

    def _seconds_left(self, present: _Present, elapsed: float, spent: float) -> float:
        """Return the time that the present stage and those to come will take."""
        pace = elapsed / spent
        own = pace * present.to_come
        if present.steps >= OWN_PACE * present.n_steps:
            own = (elapsed + self._began - present.began) * present.n_steps / present.steps * present.rest
        return own + pace * sum(self._planned.values())


QUIET = Stages()
