"""Costs that only a fresh process shows: memory, the first call, reading files, the command line, and reports."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from scipy import sparse
from scipy.io import mmread

from measure import Limits, Row, in_fresh_process
from mmpca import MMPCA
from mmpca.io import CountTable, write_counts
from problems import FULL, QUICK, TEXTS, Sizes, corpus, simulated_text, start_labels

MEGABYTE = 2**20


# --- memory and first call --------------------------------------------------------------------------------------

FIT_MEGABYTES = 100  # that a fit may take at any size


def memory_rows(quick: bool, repeats: int) -> list[Row]:
    """Measure the peak memory of a fit, without its input, against the size of five sets of tables."""
    sizes = QUICK if quick else FULL
    problem = corpus(sizes)
    with tempfile.TemporaryDirectory() as folder:
        sparse.save_npz(Path(folder, "X.npz"), problem.X, compressed=False)
        np.save(Path(folder, "topics.npy"), problem.beta)
        np.save(Path(folder, "labels.npy"), start_labels(sizes, "k-means, 5 % perturbed"))
        used = min(in_fresh_process("memory", folder)["bytes"] for _ in range(repeats))
    allowed = 5 * (sizes.n_clusters + sizes.n_topics) * sizes.n_features * 8 + FIT_MEGABYTES * MEGABYTE
    note = f"{used / MEGABYTE:.0f} MB / {allowed / MEGABYTE:.0f} MB"
    measure = f"corpus: peak memory of fit without its input / (5 (Q + K) V doubles + {FIT_MEGABYTES} MB)"
    return [Row("memory", measure, used / allowed, None if quick else Limits(at_most=1), note)]


def first_call_rows(quick: bool, repeats: int) -> list[Row]:
    """Time a fit of the paper's design in a process that must compile, and in the next one."""
    pairs = [first_and_next_process() for _ in range(repeats)]
    first, second = (min(numbers, key=lambda each: each["fit"]) for numbers in zip(*pairs, strict=True))
    return [
        Row("first-call", "paper's design: first fit ever, seconds", first["fit"], Limits(at_most=30), _times(first)),
        Row("first-call", "the same in the next process, seconds", second["fit"], None, _times(second)),
    ]


def first_and_next_process() -> tuple[dict[str, float], dict[str, float]]:
    """Fit in a process with an empty cache, then in one that finds the compiled code."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"NUMBA_CACHE_DIR": folder, "MMPCA_CACHE": "1", "NUMBA_DISABLE_JIT": "0"}
        first = in_fresh_process("first-call", environment=environment)
        return first, in_fresh_process("first-call", environment=environment)


def _times(numbers: dict[str, float]) -> str:
    return f"{numbers['cpu']:.1f} CPU s; import {numbers['import']:.1f} s, a second fit {numbers['again']:.2f} s"


# --- files ------------------------------------------------------------------------------------------------------

READ_MEGABYTES = 150  # blocks in flight, and what PyArrow keeps
LINES_PER_WRITE = 10**6


def file_rows(quick: bool, repeats: int) -> list[Row]:
    """Read the same counts from Matrix Market, by row and by column, from triples in CSV, and from Parquet."""
    X = random_counts(20_000 if quick else 200_000, 30_000, 1_000_000 if quick else 20_000_000)
    with tempfile.TemporaryDirectory() as folder:
        paths = write_files(Path(folder), X)
        measured = {name: in_fresh_process("read", str(path)) for name, path in paths.items()}
        rows = [_memory_row(name, numbers, quick) for name, numbers in measured.items()]
        start = process_time()
        mmread(paths["mtx by row"]).tocsr()
        seconds = process_time() - start
    read = measured["mtx by row"]["seconds"]
    measure = "CPU time for mtx by row / SciPy's mmread and tocsr"
    return [*rows, Row("files", measure, read / seconds, None, f"{read:.1f} s / {seconds:.1f} s")]


def _memory_row(name: str, numbers: dict[str, float], quick: bool) -> Row:
    allowed = 2 * numbers["matrix"] + READ_MEGABYTES * MEGABYTE
    note = (
        f"{numbers['bytes'] / MEGABYTE:.0f} MB for a matrix of {numbers['matrix'] / MEGABYTE:.0f} MB "
        f"({numbers['bytes'] / numbers['matrix']:.2f} times); "
        f"{numbers['entries'] / numbers['seconds'] / 1e6:.1f} million entries per second"
    )
    measure = f"{name}: peak memory of reading / (2 CSR + {READ_MEGABYTES} MB)"
    return Row("files", measure, numbers["bytes"] / allowed, None if quick else Limits(at_most=1), note)


def random_counts(n_rows: int, n_features: int, n_entries: int) -> sparse.csr_array:
    """Return counts with features of very different frequencies."""
    rng = np.random.default_rng(0)
    rows = rng.integers(n_rows, size=n_entries, dtype=np.int32)
    columns = (n_features * rng.random(n_entries) ** 2).astype(np.int32)
    counts = rng.geometric(0.5, n_entries).astype(np.int32)
    return sparse.csr_array((counts, (rows, columns)), shape=(n_rows, n_features))


def write_files(folder: Path, X: sparse.csr_array) -> dict[str, Path]:
    """Write the same counts in several formats; return their paths."""
    header = f"%%MatrixMarket matrix coordinate integer general\n{X.shape[0]} {X.shape[1]} {X.nnz}\n"
    by_row, by_column = X.tocoo(), X.tocsc().tocoo()
    names = ("by_row.mtx", "by_column.mtx", "triples.csv", "triples.parquet")
    paths = dict(zip(("mtx by row", "mtx by column", "csv", "parquet"), (folder / name for name in names), strict=True))
    _write_lines(paths["mtx by row"], header, "%d %d %d\n", by_row)
    _write_lines(paths["mtx by column"], header, "%d %d %d\n", by_column)
    _write_lines(paths["csv"], "document,word,count\n", "d%d,w%d,%d\n", by_row)
    words = pa.array([f"w{v + 1}" for v in range(X.shape[1])]).take(pa.array(by_row.col))
    parquet.write_table(pa.table({"document": by_row.row, "word": words, "count": by_row.data}), paths["parquet"])
    return paths


def _write_lines(path: Path, header: str, line: str, entries: sparse.coo_array) -> None:
    with path.open("w") as stream:
        stream.write(header)
        for start in range(0, entries.nnz, LINES_PER_WRITE):
            some = slice(start, start + LINES_PER_WRITE)
            triples = np.column_stack([entries.row[some] + 1, entries.col[some] + 1, entries.data[some]])  # (n, 3)
            stream.write(line * len(triples) % tuple(triples.ravel().tolist()))


# --- the command line -------------------------------------------------------------------------------------------

COMMAND_SIZES = ((8, 5), (8, 16))  # clusters and topics: the estimator's defaults, and a larger fit
MAX_OUTSIDE = 0.2
MAX_HELP_SECONDS = 0.5
INSTALLED = {"PYTHONDONTWRITEBYTECODE": ""}  # bytecode is cached, as in an installed package


def command_rows(quick: bool, repeats: int, data: Path | None = None) -> list[Row]:
    """Measure the overhead of `mmpca fit` on each text set in the folder `data`, or on simulated text."""
    with tempfile.TemporaryDirectory() as folder:
        paths = text_files(Path(folder), data)
        sizes = COMMAND_SIZES[:1] if quick else COMMAND_SIZES
        rows = [overhead_row(name, path, *size, folder, repeats) for name, path in paths.items() for size in sizes]
    return [*(row._replace(required=None) if quick else row for row in rows), help_row(repeats)]


def text_files(folder: Path, data: Path | None) -> dict[str, Path]:
    """Return the Matrix Market files of the text sets; simulated text is written to `folder`."""
    found = {} if data is None else {name: Path(data, name, "counts.mtx.gz") for name in TEXTS}
    found = {name: path for name, path in found.items() if path.exists()}
    if not found:
        found = {"simulated text": folder / "counts.mtx.gz"}
        write_counts(found["simulated text"], CountTable(simulated_text(), None, None, []))
    return found


def overhead_row(name: str, path: Path, n_clusters: int, n_topics: int, folder: str, repeats: int) -> Row:
    """Return the share of the command's CPU time that the same fit in Python does not need."""
    sizes = (str(n_clusters), str(n_topics))
    command = ("fit", str(path), "-q", sizes[0], "-k", sizes[1], "--jobs", "1", "--labels", f"{folder}/labels.csv")
    cpu_seconds(*command)  # from now on, compiled code is on disk
    whole = min(cpu_seconds(*command)[0] for _ in range(repeats))
    fit = min(in_fresh_process("fit-file", str(path), *sizes, environment=INSTALLED)["cpu"] for _ in range(repeats))
    measure = (
        f"{name}, Q = {n_clusters}, K = {n_topics}: share of `mmpca fit` from .mtx.gz to labels.csv outside the fit"
    )
    note = f"{whole:.2f} CPU s in all, {fit:.2f} CPU s for the fit"
    return Row("command", measure, 1 - fit / whole, Limits(at_most=MAX_OUTSIDE), note)


def help_row(repeats: int) -> Row:
    """Time `mmpca --help`."""
    seconds = [cpu_seconds("--help") for _ in range(max(3, repeats))]
    cpu, clock = (min(values) for values in zip(*seconds, strict=True))
    return Row("command", "`mmpca --help`, CPU s", cpu, Limits(at_most=MAX_HELP_SECONDS), f"wall time {clock:.2f} s")


def cpu_seconds(*arguments: str) -> tuple[float, float]:
    """Run mmpca in a fresh process; return its CPU seconds and wall time."""
    command = [sys.executable, "-c", "from mmpca.cli import main; main()", *arguments]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=os.environ | INSTALLED)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, perf_counter() - start


# --- reports ----------------------------------------------------------------------------------------------------

REPORT = Sizes(n_samples=10_000, n_features=20_000, n_clusters=20, n_topics=30)
QUICK_REPORT = Sizes(n_samples=2_000, n_features=4_000, n_clusters=20, n_topics=30)


def report_rows(quick: bool, repeats: int) -> list[Row]:
    """Measure the report of a large model, with names, texts and labels of all rows."""
    sizes = QUICK_REPORT if quick else REPORT
    problem = corpus(sizes)
    start = start_labels(sizes, "truth")
    model = MMPCA(sizes.n_clusters, sizes.n_topics, topics=problem.beta, start=start, max_epochs=0).fit(problem.X)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "model.mmpca"))
        sparse.save_npz(Path(folder, "X.npz"), problem.X, compressed=False)
        np.save(Path(folder, "labels.npy"), start)
        runs = [in_fresh_process("report", folder) for _ in range(repeats)]
    best = {name: min(run[name] for run in runs) for name in runs[0]}
    what = f"Q = {sizes.n_clusters}, K = {sizes.n_topics}, N = {sizes.n_samples:,}, V = {sizes.n_features:,}"
    rows = [
        Row("report", f"{what}: CPU s for a report", best["seconds"], Limits(at_most=15)),
        Row("report", "peak memory without model and counts, MB", best["bytes"] / 1e6, Limits(at_most=1000)),
        Row("report", "size of the page, MB", best["page"] / 1e6, Limits(at_most=3)),
    ]
    return [row._replace(required=None) for row in rows] if quick else rows
