"""Put the figures and tables of finished experiments into docs/experiments.md: `make experiments` runs them first."""

from __future__ import annotations

import csv
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from mmpca.experiments import EXPERIMENTS, Table, make

DOCUMENT = Path(__file__).with_name("experiments.md")
FIGURES = Path(__file__).with_name("experiments")


def main() -> None:
    """Refresh what has results in the folder that is named on the command line."""
    folder = finished_folder(sys.argv[1:])
    text = DOCUMENT.read_text(encoding="utf-8")
    FIGURES.mkdir(exist_ok=True)
    for name in EXPERIMENTS:
        path = folder / name / f"{name}.csv"
        place = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", flags=re.DOTALL)
        if path.exists() and place.search(text):
            shown = f"![The figure of {name}](experiments/{name}.svg)\n\n{tables(name, read(path))}"
            text = place.sub(lambda found, shown=shown: f"{found[1]}\n{shown}\n{found[2]}", text)
            shutil.copy(folder / name / f"{name}.svg", FIGURES)
    DOCUMENT.write_text(text, encoding="utf-8")


def finished_folder(arguments: list[str]) -> Path:
    """Return the folder of results; leave with a word where there is none."""
    folder = Path(arguments[0]) if len(arguments) == 1 else None
    if folder is None or not any((folder / name / f"{name}.csv").exists() for name in EXPERIMENTS):
        sys.exit(
            f"Name a folder with results such as noise/noise.csv, as `make experiments` makes it; got {arguments}."
        )
    return folder


def tables(name: str, results: Table) -> str:
    """Return the summary of an experiment, and how far methods are behind MMPCA where they are compared."""
    experiment = make(name)
    gaps = experiment.gaps(results)
    behind = "" if gaps is None else f"\nBehind MMPCA on the same data sets, mean (standard error):\n\n{markdown(gaps)}"
    return markdown(experiment.summary(results)) + behind


def read(path: Path) -> Table:
    """Return the columns of a table, numbers as numbers."""
    with path.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    return {name: [value_of(row[place]) for row in rows] for place, name in enumerate(head)}


def value_of(field: str) -> Any:
    """Return a number where there is one."""
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
        *([shown(value) for value in row] for row in zip(*table.values(), strict=True)),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def shown(value: Any) -> str:
    """Return a value with as many digits as a reader wants."""
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"
    return "" if value is None else str(value)


if __name__ == "__main__":
    main()
