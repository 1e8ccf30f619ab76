"""Insert figures and tables of finished experiments into docs/experiments.md; `make experiments` runs them first.

Results may be in several folders, for example if some methods were run with a different version or on fewer data sets.
Each method is taken from the last folder that contains it; with --add, this applies to each data set separately. The
combined results are stored in docs/experiments/runs, which is itself a folder of results, so long experiments can be
run in parts:

    python docs/draw_experiments.py --add docs/experiments/runs new-results
"""

from __future__ import annotations

import argparse
import csv
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mmpca.paper import EXPERIMENTS, Table, make
from mmpca.paper.comparison import MethodComparison
from mmpca.paper.experiment import group_means
from mmpca.paper.runner import write_csv
from mmpca.plots.style import save_figure

SHOWN_LEVELS = (0.0, 0.2, 0.4, 0.6)  # of noise, on the page; the files have all of them


def main() -> None:
    """Update the page from the folders of results given on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, help="folders of results, such as those of `make experiments`")
    parser.add_argument("--add", action="store_true", help="replace individual data sets instead of whole methods")
    options = parser.parse_args()
    folders = options.folders
    if not folders or not all(any(result_table(folder, name).exists() for name in EXPERIMENTS) for folder in folders):
        sys.exit("Pass folders of results that contain, for example, noise/noise.csv: see `make experiments`.")
    update(folders, Path(__file__).with_name("experiments.md"), adds=options.add)


def update(folders: Sequence[Path], document: Path, *, adds: bool = False) -> None:
    """Replace the tables and figures of all experiments with results in the folders; the rest of the page is kept."""
    text = document.read_text(encoding="utf-8")
    figures = document.with_suffix("")
    figures.mkdir(exist_ok=True)
    for name in EXPERIMENTS:
        paths = [path for folder in folders if (path := result_table(folder, name)).exists()]
        section = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", flags=re.DOTALL)
        if paths and section.search(text):
            results = combined(name, [read_table(path) for path in paths], adds=adds)
            content = (
                f"![Figure of {name}]({figures.name}/{name}.svg)\n\n{data_sets(results)}{page_table(name, results)}"
            )
            write_details(name, results, figures)
            text = section.sub(lambda found, content=content: f"{found[1]}\n{content}\n{found[2]}", text)
            if isinstance(make(name), MethodComparison):
                (figures / "runs" / name).mkdir(parents=True, exist_ok=True)
                write_csv(result_table(figures / "runs", name), shortened(results))
            if len(paths) == 1 and paths[0].with_suffix(".svg").exists():
                shutil.copy(paths[0].with_suffix(".svg"), figures)
            else:
                draw(name, results, figures)
    document.write_text(text, encoding="utf-8")


def result_table(folder: Path, name: str) -> Path:
    """Return the path of an experiment's table."""
    return folder / name / f"{name}.csv"


def combined(name: str, tables: Sequence[Table], *, adds: bool = False) -> Table:
    """Return the rows of all tables, in the order of one run.

    Each method is taken from the last table that contains it; with `adds`, this applies to each data set separately.
    """
    if len(tables) == 1:
        return tables[0]
    experiment = make(name)
    if not isinstance(experiment, MethodComparison):
        raise ValueError(f"{name} is in several folders, but only comparisons of methods can be combined.")
    rows = [[dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)] for table in tables]

    def identity(row: Mapping[str, Any]) -> tuple[Any, ...]:
        return (row["method"], row["seed"], *experiment.position(row)) if adds else (row["method"],)

    last = {identity(row): number for number, found in enumerate(rows) for row in found}
    kept = (row for number, found in enumerate(rows) for row in found if last[identity(row)] == number)
    return experiment.sorted_table(kept)


def shortened(table: Table) -> Table:
    """Return a table rounded to five decimals, to keep files with thousands of rows small."""
    return {name: [round(x, 5) if isinstance(x, float) else x for x in column] for name, column in table.items()}


def draw(name: str, results: Table, folder: Path) -> None:
    """Draw the figure of an experiment as SVG."""
    with tempfile.TemporaryDirectory() as temporary:
        save_figure(make(name).draw(results), Path(temporary) / name)
        shutil.copy(Path(temporary) / f"{name}.svg", folder)


def data_sets(results: Table) -> str:
    """Return a line with the number of data sets behind the means, by method if it differs."""
    seeds: dict[str, set[Any]] = {}
    for method, seed in zip(results.get("method", results.get("seed", ())), results.get("seed", ()), strict=True):
        seeds.setdefault(method if "method" in results else "", set()).add(seed)
    methods: dict[int, list[str]] = {}
    for method, found in seeds.items():
        methods.setdefault(len(found), []).append(method)
    if len(methods) == 1:
        (number,) = methods
        return f"{number} data sets for each setting.\n\n" if number > 1 else ""
    parts = (f"{number} ({', '.join(names)})" for number, names in sorted(methods.items(), reverse=True))
    return f"Data sets for each setting: {'; '.join(parts)}.\n\n" if methods else ""


def page_table(name: str, results: Table) -> str:
    """Return the summary of an experiment; for `noise`, of a few levels only, in as many columns as fit a page."""
    if name != "noise":
        return markdown(make(name).summary(results))
    kept = [place for place, level in enumerate(results["noise"]) if level in SHOWN_LEVELS]
    some = {column: [values[place] for place in kept] for column, values in results.items()}
    balances = {f"balance {balance:g}": balance for balance in dict.fromkeys(some["balance"])}
    means = group_means(some, "ari", rows=("method",), across=("balance", "noise"))
    return markdown(
        {
            head.replace(f"{name}, noise ", f"{name.removeprefix('balance ')}, "): column
            for head, column in means.items()
            for name in [next((name for name in balances if head.startswith(f"{name},")), head)]
        }
    )


def write_details(name: str, results: Table, folder: Path) -> None:
    """Write the whole summary of an experiment and, if methods are compared, their differences from MMPCA as CSV."""
    experiment = make(name)
    write_csv(folder / f"{name}.csv", experiment.summary(results))
    gaps = experiment.gaps(results)
    if gaps is not None:
        write_csv(folder / f"{name}-behind-mmpca.csv", gaps)


def read_table(path: Path) -> Table:
    """Return the columns of a CSV file, with numbers as numbers."""
    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    return {name: [number_or_text(row[place]) for row in rows] for place, name in enumerate(head)}


def number_or_text(field: str) -> Any:
    """Return a field as an int or a float if it is one."""
    for kind in (int, float):
        try:
            return kind(field)
        except ValueError:
            continue
    return field


def markdown(table: Table) -> str:
    """Return a table as Markdown."""
    lines = [
        list(table),
        ["---"] * len(table),
        *([cell(value) for value in row] for row in zip(*table.values(), strict=True)),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def cell(value: Any) -> str:
    """Return a value with a sensible number of digits."""
    if isinstance(value, float):
        return f"{value:z.3f}" if abs(value) < 10 else f"{value:.1f}"
    return "" if value is None else str(value)


if __name__ == "__main__":
    main()
