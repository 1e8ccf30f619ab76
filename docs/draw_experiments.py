"""Insert figures and tables of finished experiments into docs/experiments.md; `make experiments` runs them first."""

from __future__ import annotations

import csv
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from mmpca.paper import EXPERIMENTS, Table, make


def main() -> None:
    """Update the page from the folder of results given on the command line."""
    folders = [Path(argument) for argument in sys.argv[1:]]
    if len(folders) != 1 or not any(result_table(folders[0], name).exists() for name in EXPERIMENTS):
        sys.exit("Pass one folder of results that contains, for example, noise/noise.csv: see `make experiments`.")
    update(folders[0], Path(__file__).with_name("experiments.md"))


def update(folder: Path, document: Path) -> None:
    """Replace the tables and figures of all experiments with results in the folder; the rest of the page is kept."""
    text = document.read_text(encoding="utf-8")
    figures = document.with_suffix("")
    figures.mkdir(exist_ok=True)
    for name in EXPERIMENTS:
        path = result_table(folder, name)
        section = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", flags=re.DOTALL)
        if path.exists() and section.search(text):
            content = f"![Figure of {name}]({figures.name}/{name}.svg)\n\n{summary_tables(name, read_table(path))}"
            text = section.sub(lambda found, content=content: f"{found[1]}\n{content}\n{found[2]}", text)
            shutil.copy(path.with_suffix(".svg"), figures)
    document.write_text(text, encoding="utf-8")


def result_table(folder: Path, name: str) -> Path:
    """Return the path of an experiment's table."""
    return folder / name / f"{name}.csv"


def summary_tables(name: str, results: Table) -> str:
    """Return the summary of an experiment and, if methods are compared, their paired differences from MMPCA."""
    experiment = make(name)
    gaps = experiment.gaps(results)
    behind = "" if gaps is None else f"\nBehind MMPCA on the same data sets, mean (standard error):\n\n{markdown(gaps)}"
    return markdown(experiment.summary(results)) + behind


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
        return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"
    return "" if value is None else str(value)


if __name__ == "__main__":
    main()
