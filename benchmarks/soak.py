"""Make thousands of small fits in one process, and print how memory, threads and descriptors grow: `make soak`."""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import mmpca
from mmpca import MMPCA
from mmpca.io import CountTable, read_counts, write_counts
from mmpca.simulate import simulate_mmpca, sparse_topics
from mmpca.topics import LDA

WARM_UP = 0.1  # share of the fits after which growth counts: caches and memory pools fill first
MOST_MEGABYTES = 16.0  # allowed growth after that; a leak of a model per fit would take hundreds
N_LINES = 10


class Usage(NamedTuple):
    """Resources of this process."""

    megabytes: float
    threads: int
    descriptors: int


def usage() -> Usage:
    """Return the resources that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    megabytes = pages * resource.getpagesize() / 2**20
    return Usage(megabytes, len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd")))


def uses(folder: Path) -> list[Callable[[int], object]]:
    """Return small pieces of work that together touch most of the package."""
    X = simulate_mmpca(
        24, topics=sparse_topics(2, 12, 0.5, random_state=0), cluster_topics=np.eye(2), lengths=30, random_state=0
    ).X
    write_counts(folder / "X.mtx", CountTable(X, None, None, []))

    def fit(number: int) -> None:
        MMPCA(3, 2, n_init=1, random_state=number).fit(X).predict_proba(X)

    def threads(number: int) -> None:
        MMPCA(3, 2, n_init=2, n_jobs=2, random_state=number).fit(X).explain(X, [number % 24])

    def save(number: int) -> None:
        model = MMPCA(2, 2, topics="random", n_init=1, random_state=number).fit(X, checkpoint=folder / "fit.npz")
        model.save(folder / "fit.mmpca")
        mmpca.load(folder / "fit.mmpca").sample(3, random_state=number)
        (folder / "fit.npz").unlink()

    def fail(number: int) -> None:
        try:
            MMPCA(30, 2, random_state=number).fit(X)
        except ValueError:
            MMPCA(2, 2, algorithm="vbem", n_init=1, random_state=number).fit(X)

    def read(number: int) -> None:
        LDA(2, row_prior=1.0, n_init=1, random_state=number).fit(read_counts(folder / "X.mtx").X)

    return [fit, threads, save, fail, read]


def soak(n_fits: int, console: Console) -> bool:
    """Make the fits, print the usage along the way, and return True if it stopped growing."""
    table = Table("fits", "seconds", "memory (MB)", "threads", "descriptors")
    steps = set(np.linspace(WARM_UP * n_fits, n_fits, N_LINES).astype(int).tolist())
    found: list[Usage] = []
    started = perf_counter()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        work = uses(Path(folder))
        for number in range(n_fits):
            work[number % len(work)](number)
            if number + 1 in steps:
                found.append(usage())
                numbers = f"{found[-1].megabytes:.1f}", str(found[-1].threads), str(found[-1].descriptors)
                table.add_row(f"{number + 1:,}", f"{perf_counter() - started:.0f}", *numbers)
    console.print(table)
    first, last = found[0], found[-1]
    growth = last.megabytes - first.megabytes
    console.print(
        f"Growth: {growth:+.1f} MB, {last.threads - first.threads:+d} threads, "
        f"{last.descriptors - first.descriptors:+d} descriptors."
    )
    return growth <= MOST_MEGABYTES and last.threads <= first.threads and last.descriptors <= first.descriptors


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fits", type=int, default=10_000)
    return parser.parse_args(arguments)


def main() -> int:
    """Run the fits and return the exit code."""
    return 0 if soak(parse().fits, Console(width=100 if not sys.stdout.isatty() else None)) else 1


if __name__ == "__main__":
    sys.exit(main())
