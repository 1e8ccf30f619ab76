"""``mmpca reproduce``: run one of the paper's experiments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmpca.cli import console, options
from mmpca.cli.options import ExperimentName
from mmpca.cli.progress import progress_display
from mmpca.cli.tables import columns_table

if TYPE_CHECKING:
    from mmpca.paper import Record, Task
    from mmpca.paper.reports import BiopsyReports


def reproduce(
    name: Annotated[ExperimentName, typer.Argument(help="The experiment.", show_default=False)],
    replicates: Annotated[
        int | None,
        typer.Option("--replicates", "-r", min=1, help="Number of data sets.", show_default="as in the paper"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the results.", show_default="mmpca-NAME")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Run a small version, in less than two minutes.")] = False,
    levels: Annotated[
        Any,
        options.list_option(
            "--levels", parser=options.share_list, help="noise: levels such as 0,0.2,0.4.", show_default=False
        ),
    ] = None,
    methods: Annotated[
        Any,
        options.list_option(
            "--methods",
            parser=options.name_list,
            help="noise, sample-size: some of ceiling, mmpca, lda-space, lda-space-mmpca, lda, lda-mmpca, nmf-em, "
            "mixtures, htscluster, integrated, polya, gsdmm, directions.",
            show_default="all",
        ),
    ] = None,
    noise: Annotated[
        float | None,
        typer.Option(
            "--noise",
            min=0.0,
            max=1.0,
            help="intro, selection, sample-size, runtime: noise level.",
            show_default="as in the paper",
        ),
    ] = None,
    balance: Annotated[
        float | None,
        typer.Option(
            "--balance",
            min=0.01,
            max=1.0,
            help="intro, sample-size, runtime: balance of cluster sizes.",
            show_default="as in the paper",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", min=0, max=options.LARGEST_SEED, help="Random seed of the first data set.", show_default="1000"
        ),
    ] = None,
    jobs: options.Jobs = -1,
) -> None:
    """Run one of the paper's experiments, and write its table and figure.

    design: the true topics. intro: bound and agreement during a fit.
    noise: all methods under noise and unequal clusters. selection: the numbers of clusters and topics.
    sample-size: all methods with few and many rows.
    runtime: time against the number of rows. reports: synthetic medical reports, with a page about their clusters.

    Finished tasks are saved; after an interruption or a crash, the same command resumes.

    For example:

      mmpca reproduce noise --quick

      mmpca reproduce noise --replicates 10 --levels 0,0.2,0.4,0.6 --out noise --jobs 2
    """
    from mmpca.paper import make, run_tasks, write_output
    from mmpca.paper.reports import BiopsyReports
    from mmpca.plots.style import check_matplotlib

    check_matplotlib()  # now, not after hours
    given = {
        "replicates": replicates,
        "seed": seed,
        "levels": levels,
        "families": methods,
        "noise": noise,
        "balance": balance,
    }
    _check_options(name.value, given)
    folder = out or Path(f"mmpca-{name.value}{'-quick' if quick else ''}")
    experiment = make(name.value, quick=quick, **given)
    try:
        with progress_display() as show:
            records = run_tasks(experiment, folder, n_jobs=jobs, callback=show)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"Finished tasks are in {folder}; the same command resumes there.") from None
    table, files = write_output(experiment, records, folder)
    if isinstance(experiment, BiopsyReports):
        files += write_reports(experiment, records, folder)
    _show(experiment.name, experiment.summary(table))
    gaps = experiment.gaps(table)
    if gaps is not None:
        _show(f"{experiment.name}: difference from MMPCA on the same data, mean (standard error)", gaps)
    console.line(f"written: {', '.join(str(path) for path in files)}")


def _check_options(name: str, given: Mapping[str, Any]) -> None:
    """Raise an error if an option does not apply to the experiment."""
    from mmpca.paper import EXPERIMENTS

    flags = {"levels": "--levels", "families": "--methods", "noise": "--noise", "balance": "--balance"}
    for option, flag in flags.items():
        valid = [other for other, kind in EXPERIMENTS.items() if option in {field.name for field in fields(kind)}]
        if given.get(option) is not None and name not in valid:
            raise ValueError(f"{flag} applies to {' and '.join(valid)}, but the experiment is {name}. Remove it.")


def write_reports(experiment: BiopsyReports, records: Mapping[Task, Record], folder: Path) -> list[Path]:
    """Write tables and pages about the first corpus of reports, with known labels and subtypes; return the files."""
    from mmpca.paper.reports import write_details
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
            title=f"Synthetic breast-biopsy reports: clusters and known {kind}",
        )
        for name, kind, known in (
            ("reports.html", "labels", reports.labels),
            ("reports-subtypes.html", "subtypes", reports.subtypes),
        )
    ]
    return [*write_details(experiment, record, folder), *pages]


def _show(title: str, summary: dict[str, list[Any]]) -> None:
    """Print a table of results."""
    out, table = console.out(), columns_table(summary, title, wrap=False)
    if not out.is_terminal:  # a pipe has room for all columns
        out.width = max(out.width, out.measure(table, options=out.options.update(width=1000)).maximum)
    out.print(table)
