"""Print ratios of time and memory on the same data, with what is required of them: `make bench`.

Every ratio is measured in one process, compiled code warmed up first, as the best of several repeats. The table is
written as JSON into `benchmarks/results/` as well.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

import mmpca
from command import command_rows
from files import file_rows
from growth import growth_rows
from lda import topic_rows
from measure import Row
from prior import prior_rows
from processes import first_call_rows, memory_rows
from reports import report_rows
from speed import (
    corpus_rows,
    epochs_against_product,
    exact_against_greedy,
    lda_against_fit,
    lda_against_greedy,
    lda_against_grid,
    two_threads,
    warm_up,
)

BENCHMARKS = {
    "exact": exact_against_greedy,
    "lda": lda_against_greedy,
    "fit": lda_against_fit,
    "grid": lda_against_grid,
    "topics": topic_rows,
    "prior": prior_rows,
    "corpus": corpus_rows,
    "epochs": epochs_against_product,
    "memory": memory_rows,
    "files": file_rows,
    "command": command_rows,
    "report": report_rows,
    "growth": growth_rows,
    "first-call": first_call_rows,
    "threads": two_threads,
}
RESULTS = Path(__file__).with_name("results")
WIDTH = 160  # of the table where the output is no terminal


def main() -> None:
    """Run the benchmarks that are asked for, print the table and store it."""
    options = parse()
    rows = []
    with threadpool_limits(1):  # rivals on one thread as well
        warm_up()
        for name in options.only or BENCHMARKS:
            Console(stderr=True).print(f"{name} ...")
            more = {"data": options.data} if name in ("topics", "command") else {}
            rows += BENCHMARKS[name](options.quick, options.repeats or (1 if options.quick else 3), **more)
    Console(width=None if sys.stdout.isatty() else WIDTH).print(table(rows, options.quick))
    path = store(rows, options)
    print(f"written to {path.relative_to(path.parents[2])}")


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller data, one repeat; what needs size is not judged")
    parser.add_argument("--only", action="append", choices=BENCHMARKS, metavar="NAME",
                        help=f"run this one, may be repeated: {', '.join(BENCHMARKS)}")  # fmt: skip
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="text sets that topics are compared and commands run on"
    )
    parser.add_argument("--repeats", type=int, help="take the best of so many (default: 3, with --quick 1)")
    return parser.parse_args()


def table(rows: list[Row], quick: bool) -> Table:
    """Return the rows as a table for the terminal."""
    result = Table(title="mmpca benchmarks" + (", quick: small data" if quick else ""))
    result.add_column("benchmark")
    result.add_column("measure", overflow="fold", ratio=3)
    for name in ("value", "required"):
        result.add_column(name, justify="right", no_wrap=True)
    result.add_column("holds")
    result.add_column("note", overflow="fold", ratio=2)
    for row in rows:
        required = "" if row.required is None else str(row.required)
        holds = {None: "", True: "[green]yes[/]", False: "[bold red]no[/]"}[row.holds]
        result.add_row(row.benchmark, row.measure, f"{row.value:.3g}", required, holds, row.note)
    return result


def store(rows: list[Row], options: argparse.Namespace) -> Path:
    """Write the rows, and what they were measured with, into a new file; return its path."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"bench-{datetime.now():%Y%m%d-%H%M%S}.json"
    content = {
        "quick": options.quick,
        "revision": revision(),
        "versions": {name: version(name) for name in ("mmpca", "numpy", "scipy", "scikit-learn", "numba")},
        "rows": [
            row._asdict() | {"required": None if row.required is None else str(row.required), "holds": row.holds}
            for row in rows
        ],
    }
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return path


def revision() -> str | None:
    """Return the commit of the package that was measured; None outside of a checkout."""
    command = ["git", "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, cwd=Path(mmpca.__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


if __name__ == "__main__":
    main()
