"""Measure time and memory relative to baselines on the same data, with requirements: `make bench`.

Every ratio is measured in one process, with compiled code warmed up first, as the best of several repeats. The table is
also written as JSON to `benchmarks/results/`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from threadpoolctl import threadpool_limits

from measure import WIDTH, result_table, save_results
from page_speed import page_rows
from process_costs import command_rows, file_rows, first_call_rows, memory_rows, report_rows
from search_speed import (
    corpus_rows,
    epochs_against_product,
    exact_against_greedy,
    growth_rows,
    lda_against_fit,
    lda_against_greedy,
    lda_against_grid,
    two_threads,
    warm_up,
)
from text_speed import text_rows
from topics_speed import moves_rows, prior_rows, topic_rows

BENCHMARKS = {
    "exact": exact_against_greedy,
    "lda": lda_against_greedy,
    "fit": lda_against_fit,
    "grid": lda_against_grid,
    "topics": topic_rows,
    "prior": prior_rows,
    "moves": moves_rows,
    "text": text_rows,
    "corpus": corpus_rows,
    "epochs": epochs_against_product,
    "memory": memory_rows,
    "files": file_rows,
    "command": command_rows,
    "report": report_rows,
    "page": page_rows,
    "growth": growth_rows,
    "first-call": first_call_rows,
    "threads": two_threads,
}
ON_TEXTS = ("topics", "text", "command")  # run on the text sets of --data


def main() -> None:
    """Run the requested benchmarks, print the table and save it."""
    options = parse()
    rows = []
    with threadpool_limits(1):  # baselines run on one thread as well
        warm_up()
        for name in options.only or BENCHMARKS:
            Console(stderr=True).print(f"{name} ...")
            more = {"data": options.data} if name in ON_TEXTS else {}
            rows += BENCHMARKS[name](options.quick, options.repeats or (1 if options.quick else 3), **more)
    title = "mmpca benchmarks" + (", quick: small data" if options.quick else "")
    Console(width=None if sys.stdout.isatty() else WIDTH).print(result_table(rows, title))
    path = save_results(rows, quick=options.quick)
    print(f"written to {path.relative_to(path.parents[2])}")


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line, or other arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="smaller data, one repeat; requirements that need size are not checked"
    )
    parser.add_argument(
        "--only", action="append", choices=BENCHMARKS, metavar="NAME",
        help=f"run only this benchmark; may be repeated: {', '.join(BENCHMARKS)}",
    )  # fmt: skip
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="folder of the text sets for topics, text and command"
    )
    parser.add_argument("--repeats", type=int, help="take the best of this many repeats (default: 3; 1 with --quick)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
