"""An experiment that takes no time and logs which tasks were run."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from mmpca.paper import Experiment
from mmpca.paper.experiment import columns, new_task


@dataclass(frozen=True)
class Toy(Experiment):
    name: ClassVar[str] = "toy"
    shared_options: ClassVar[tuple[str, ...]] = ("factor",)
    replicates: int = 4
    seed: int = 0
    factor: int = 2
    log: str = ""  # a file that gets a line for each task that is run
    interrupted: int = -1  # the seed whose tasks receive Ctrl-C and return what they have, as a search does

    @classmethod
    def quick(cls):
        return cls(replicates=1)

    def tasks(self):
        return [new_task(kind, seed=seed) for seed in self.seeds for kind in ("short", "long")]

    def run(self, task):
        if self.log:
            with Path(self.log).open("a") as file:
                file.write(f"{task.key}\n")
        if task["seed"] == self.interrupted:
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(10)
            except KeyboardInterrupt:
                return {"value": None}
        return {"value": self.factor * task["seed"] / 3}

    def table(self, records):
        return columns([{"kind": task.kind, "seed": task["seed"], **record} for task, record in records.items()])

    def summary(self, table):
        return table

    def draw(self, table):
        raise NotImplementedError


@dataclass(frozen=True)
class TimedToy(Toy):
    """Measures time, and records the process it ran in."""

    is_timed: ClassVar[bool] = True

    def run(self, task):
        return {"value": os.getpid()}
