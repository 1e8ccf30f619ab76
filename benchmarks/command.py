"""What the command line takes beyond the work it is asked for: `mmpca fit` outside of its fit, and `mmpca --help`."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from lda import TEXTS, simulated_text
from measure import Limits, Row, in_fresh_process
from mmpca.io import CountTable, write_counts

SIZES = ((8, 5), (8, 16))  # clusters and topics: the estimator's defaults, and a larger fit
MOST_OUTSIDE = 0.2
MOST_HELP_SECONDS = 0.5
INSTALLED = {"PYTHONDONTWRITEBYTECODE": ""}  # modules are compiled once, as where a package is installed


def command_rows(quick: bool, repeats: int, data: Path | None = None) -> list[Row]:
    """Measure on each text set of the folder `data`, or on simulated text without it."""
    with tempfile.TemporaryDirectory() as folder:
        paths = text_files(Path(folder), data)
        sizes = SIZES[:1] if quick else SIZES
        rows = [share_row(name, path, *size, folder, repeats) for name, path in paths.items() for size in sizes]
    return [row._replace(required=None) for row in rows] + [help_row(repeats)] if quick else [*rows, help_row(repeats)]


def text_files(folder: Path, data: Path | None) -> dict[str, Path]:
    """Return the Matrix Market files of the text sets; a simulated one is written into the folder."""
    found = {} if data is None else {name: Path(data, name, "counts.mtx.gz") for name in TEXTS}
    found = {name: path for name, path in found.items() if path.exists()}
    if not found:
        found = {"simulated text": folder / "counts.mtx.gz"}
        write_counts(found["simulated text"], CountTable(simulated_text(), None, None, []))
    return found


def share_row(name: str, path: Path, n_clusters: int, n_topics: int, folder: str, repeats: int) -> Row:
    """Return the share of the whole process, from its start to its end, that is spent outside of the fit."""
    labels = str(Path(folder, "labels.csv"))
    arguments = ("fit", str(path), "-q", str(n_clusters), "-k", str(n_topics), "--jobs", "1", "--labels", labels)
    in_fresh_process("command", *arguments, environment=INSTALLED)  # compiled code is on disk from now on
    measured = [_one_command(arguments) for _ in range(repeats)]
    outside, fit = min(outside for outside, _ in measured), min(fit for _, fit in measured)
    measure = (
        f"{name}, Q = {n_clusters}, K = {n_topics}: share of `mmpca fit` from .mtx.gz to labels.csv outside the fit"
    )
    note = f"{outside:.2f} s of the processor outside, {fit:.2f} s in it"
    return Row("command", measure, outside / (outside + fit), Limits(at_most=MOST_OUTSIDE), note)


def _one_command(arguments: tuple[str, ...]) -> tuple[float, float]:
    """Return the seconds of the processor outside of the fit and in it."""
    before = _children_seconds()
    fit = in_fresh_process("command", *arguments, environment=INSTALLED)["fit"]
    return _children_seconds() - before - fit, fit


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def help_row(repeats: int) -> Row:
    """Time `mmpca --help` in a fresh process."""
    command = [sys.executable, "-c", "from mmpca.cli import main; main()", "--help"]
    seconds, clock = [], []
    for _ in range(max(3, repeats)):
        before, start = _children_seconds(), perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=os.environ | INSTALLED)
        seconds.append(_children_seconds() - before)
        clock.append(perf_counter() - start)
    limits = Limits(at_most=MOST_HELP_SECONDS)
    return Row(
        "command", "`mmpca --help`, seconds of the processor", min(seconds), limits, f"{min(clock):.2f} s in all"
    )
