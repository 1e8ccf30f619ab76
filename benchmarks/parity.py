"""Compare with reference runs of the authors' R package: `make parity REFERENCE=path`.

Every folder in the path is a run with its counts, topics, first and final labels, bound and criterion. Three things are
required: the bound at its final labels is the same, a search from its first labels ends where no single move gains, and
the best of ten starts does not end below it. Processor times are compared if the run has them.
`benchmarks/r/run_mompca.R` makes such runs.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy import io, sparse
from sklearn.metrics import adjusted_rand_score

from measure import Array, Limits, check_mark
from mmpca import MMPCA, engine
from mmpca.counts import as_counts

FILES = ("counts.mtx.gz", "labels.csv", "beta_init.csv", "start.csv", "final.csv", "result.csv")
ALPHA = 1.0  # the prior of the reference runs
N_STARTS = 10
SAME, NO_GAIN, NOT_BELOW = Limits(at_most=1e-6), Limits(at_most=1e-9), Limits(at_least=0)


class Reference(NamedTuple):
    """One run of the R package."""

    name: str
    X: sparse.csr_array  # (N, V)
    labels: NDArray[np.int32]  # true clusters, (N,)
    beta: Array  # (K, V)
    start: NDArray[np.int32]
    final: NDArray[np.int32]
    n_clusters: int
    bound: float
    icl: float
    topic_seconds: float  # processor time; NaN if the run has none
    search_seconds: float

    def fit(self, **options: object) -> MMPCA:
        """Fit with the run's topics."""
        model = MMPCA(self.n_clusters, len(self.beta), topics=self.beta, topic_prior=ALPHA, random_state=0, **options)
        return model.fit(self.X)


class Line(NamedTuple):
    """One line of the table: a value for each run."""

    measure: str
    values: list[float]
    style: str
    required: Limits | None = None  # None: reported only

    @property
    def holds(self) -> bool | None:
        """Whether all runs meet the requirement; None without one."""
        return None if self.required is None else all(self.required.hold(value) for value in self.values)


def main() -> int:
    """Print the table; return 1 if a requirement fails and 2 without reference runs."""
    try:
        references = [read(folder) for folder in run_folders(parse().path)]
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    lines = compare(references)
    Console(width=None if sys.stdout.isatty() else 80 + 14 * len(references)).print(table(references, lines))
    return int(any(line.holds is False for line in lines))


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line, or other arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, help="folder with one folder per reference run")
    return parser.parse_args(arguments)


# --- reading ----------------------------------------------------------------------------------------------------


def run_folders(path: Path) -> list[Path]:
    """Return the folders of the runs; raise FileNotFoundError if there are none or one lacks a file."""
    if not path.is_dir():
        raise FileNotFoundError(f"The folder {path} does not exist. Give the folder of the reference runs.")
    folders = sorted(folder for folder in path.iterdir() if folder.is_dir())
    if not folders:
        raise FileNotFoundError(f"No reference run in {path}: expected folders that contain {', '.join(FILES)}.")
    for folder in folders:
        missing = [name for name in FILES if not (folder / name).is_file()]
        if missing:
            raise FileNotFoundError(f"The reference run {folder} has no file {', '.join(missing)}.")
    return folders


def read(folder: Path) -> Reference:
    """Read one run."""
    with (folder / "result.csv").open(newline="") as file:
        result = {row["name"]: float(row["value"]) for row in csv.DictReader(file)}
    labels, start, final = (
        np.loadtxt(folder / name, dtype=np.int32, ndmin=1) for name in ("labels.csv", "start.csv", "final.csv")
    )
    return Reference(
        name=folder.name,
        X=sparse.csr_array(io.mmread(folder / "counts.mtx.gz")),
        labels=labels,
        beta=np.loadtxt(folder / "beta_init.csv", delimiter=",", ndmin=2),
        start=start,
        final=final,
        n_clusters=int(result["n_clusters"]),
        bound=result["bound"],
        icl=result["icl"],
        topic_seconds=result.get("beta_cpu_seconds", np.nan),
        search_seconds=result.get("search_cpu_seconds", np.nan),
    )


# --- comparing --------------------------------------------------------------------------------------------------


def compare(references: list[Reference]) -> list[Line]:
    """Return the lines of the table."""
    evaluated = [reference.fit(start=reference.final, max_epochs=0) for reference in references]
    best = [reference.fit(n_init=N_STARTS) for reference in references]

    def line(
        measure: str, value: Callable[[Reference, MMPCA], float], models: list[MMPCA], style: str,
        required: Limits | None = None,
    ) -> Line:  # fmt: skip
        return Line(measure, [value(*pair) for pair in zip(references, models, strict=True)], style, required)

    lines = [
        line("R: bound", lambda r, _: r.bound, best, ".1f"),
        line(
            "at R's labels: bound, relative difference",
            lambda r, m: abs(m.bound_ / r.bound - 1),
            evaluated,
            ".1e",
            SAME,
        ),
        line("at R's labels: ICL, relative difference", lambda r, m: abs(m.icl_ / r.icl - 1), evaluated, ".1e", SAME),
    ]
    for algorithm in ("exact", "greedy"):
        ended = [reference.fit(start=reference.start, algorithm=algorithm) for reference in references]
        lines += [
            line(f"{algorithm} from R's start: bound - R's, nats", lambda r, m: m.bound_ - r.bound, ended, ".3g"),
            line(f"{algorithm}: largest gain of a move, relative", largest_gain, ended, ".1e", NO_GAIN),
        ]
    if any(np.isfinite(reference.search_seconds) for reference in references):
        lines += time_lines(references)
    return lines + [
        line(f"best of {N_STARTS} starts: bound - R's, nats", lambda r, m: m.bound_ - r.bound, best, ".3g", NOT_BELOW),
        line("R: ARI", lambda r, _: adjusted_rand_score(r.labels, r.final), best, ".3f"),
        line(f"best of {N_STARTS}: ARI", lambda r, m: adjusted_rand_score(r.labels, m.labels_), best, ".3f"),
    ]


def time_lines(references: list[Reference]) -> list[Line]:
    """Return processor times of the R package and ratios to the same work here, after kernels are compiled."""
    references[0].fit(start="random", n_init=1, algorithm="exact", max_epochs=1)

    def seconds(fit: Callable[[Reference], object]) -> list[float]:
        """Return the time of a fit for each run."""
        times = []
        for reference in references:
            start = process_time()
            fit(reference)
            times.append(process_time() - start)
        return times

    one_start = [reference.search_seconds for reference in references]
    whole = [reference.topic_seconds + reference.search_seconds for reference in references]
    parts = {
        "exact": (one_start, seconds(lambda r: r.fit(start=r.start, algorithm="exact"))),
        "greedy": (one_start, seconds(lambda r: r.fit(start=r.start, algorithm="greedy"))),
        "default fit, with topics and all starts": (
            whole,
            seconds(lambda r: MMPCA(r.n_clusters, len(r.beta), random_state=0).fit(r.X)),
        ),
    }
    return [
        Line("R: search from one start, seconds", one_start, ".0f"),
        *(
            Line(f"time of R / {name}", [a / b for a, b in zip(theirs, ours, strict=True)], ".0f")
            for name, (theirs, ours) in parts.items()
        ),
    ]


def largest_gain(reference: Reference, model: MMPCA) -> float:
    """Return the largest gain of any single move from the model's labels, exactly, relative to the bound."""
    state = engine.build(
        as_counts(reference.X), model.labels_, n_clusters=reference.n_clusters, beta=reference.beta, alpha=ALPHA
    )
    gains = [
        engine.gain(state, i, q) for i, old in enumerate(model.labels_) for q in range(reference.n_clusters) if q != old
    ]
    return max(gains) / abs(engine.bound(state))


# --- the table --------------------------------------------------------------------------------------------------


def table(references: list[Reference], lines: list[Line]) -> Table:
    """Return the lines as a table for the terminal."""
    result = Table(title="mmpca and runs of the R package")
    result.add_column("measure")
    for reference in references:
        result.add_column(reference.name, justify="right", no_wrap=True)
    result.add_column("required", justify="right", no_wrap=True)
    result.add_column("holds")
    for line in lines:
        values = [format(value, line.style) for value in line.values]
        required = "" if line.required is None else str(line.required)
        result.add_row(line.measure, *values, required, check_mark(line.holds))
    return result


if __name__ == "__main__":
    sys.exit(main())
