"""``mmpca reproduce``: an experiment of the paper, from its tasks to table and figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from mmpca.cli import screen
from mmpca.cli.guard import INTERRUPTED
from mmpca.cli.progress import watched
from mmpca.experiments import EXPERIMENTS, Ledger, Record, Task, make, run_tasks, write_output
from mmpca.experiments.reports import BiopsyReports, write_details
from mmpca.plots.style import check_matplotlib


def run(name: str, *, folder: Path, quick: bool, n_jobs: int, given: dict[str, Any]) -> None:
    """Run what is not finished, write and show; leave with code 130 if Ctrl-C came."""
    check_matplotlib()  # better now than after hours
    _check_options(name, given)
    experiment = make(name, quick=quick, **given)
    try:
        with watched(name) as tell:
            records = run_tasks(experiment, Ledger(folder), n_jobs=n_jobs, callback=tell)
    except KeyboardInterrupt:
        screen.say("interrupted", f"Finished parts are in {folder}; the same command goes on there.", "bold red")
        raise typer.Exit(INTERRUPTED) from None
    output = write_output(experiment, records, folder)
    if isinstance(experiment, BiopsyReports):
        output.files.extend(about_reports(experiment, records, folder))
    console = screen.out()
    _show(console, experiment.name, experiment.summary(output.table))
    gaps = experiment.gaps(output.table)
    if gaps is not None:
        _show(console, f"{experiment.name}: behind MMPCA on the same data, mean (standard error)", gaps)
    told = ", ".join(str(path) for path in output.files)
    console.print(f"written: {told}", highlight=False, markup=False, soft_wrap=True)


def _check_options(name: str, given: Mapping[str, Any]) -> None:
    """Refuse an option that the experiment does not have, in the command's own words."""
    for option, flag in (("levels", "--levels"), ("families", "--methods")):
        having = [other for other, kind in EXPERIMENTS.items() if option in {field.name for field in fields(kind)}]  # type: ignore[arg-type]
        if given.get(option) is not None and name not in having:
            raise ValueError(f"{flag} is for {' and '.join(having)}, but the experiment is {name}. Leave it out.")


def about_reports(experiment: BiopsyReports, records: Mapping[Task, Record], folder: Path) -> list[Path]:
    """Write tables and pages about the first corpus of reports, beside labels and sub-types; return the files."""
    from mmpca.report import write_report

    task, record = next(iter(records.items()))
    counted = experiment.counted(task["seed"])
    reports, model = counted.reports, experiment.model(counted, record)
    pages = [
        write_report(
            model,
            folder / name,
            X=counted.X,
            labels=known.tolist(),
            texts=reports.texts,
            row_names=reports.names.tolist(),
            search=record["cells"],
            title=f"Synthetic breast-biopsy reports, clusters and known {what}",
        )
        for name, what, known in (
            ("reports.html", "labels", reports.labels),
            ("reports-subtypes.html", "sub-types", reports.subtypes),
        )
    ]
    return [*write_details(experiment, record, folder), *pages]


def _show(console: Console, title: str, summary: dict[str, list[Any]]) -> None:
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left")
    for name, column in summary.items():
        is_text = any(isinstance(value, str) for value in column)
        table.add_column(name, justify="left" if is_text else "right", no_wrap=is_text, min_width=5)
    for row in zip(*summary.values(), strict=True):
        table.add_row(*(_shown(value) for value in row))
    if not console.is_terminal:  # all columns whatever their number: nobody's terminal has to hold them
        console.width = max(console.width, console.measure(table, options=console.options.update(width=1000)).maximum)
    console.print(table)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,.3f}" if isinstance(value, float) else str(value)
