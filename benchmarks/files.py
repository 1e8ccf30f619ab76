"""What reading files takes: memory against the matrix that is read, time against SciPy's reader of whole files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet
from scipy import sparse
from scipy.io import mmread

from measure import Limits, Row, in_fresh_process

MEGABYTE = 2**20
FIXED_MEGABYTES = 150  # blocks on their way, and what PyArrow keeps
_LINES_AT_ONCE = 10**6


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
    measure = "seconds of the processor for mtx by row / SciPy's mmread and tocsr"
    read = measured["mtx by row"]["seconds"]
    return [*rows, Row("files", measure, read / seconds, None, f"{read:.1f} s / {seconds:.1f} s")]


def _memory_row(name: str, numbers: dict[str, float], quick: bool) -> Row:
    allowed = 2 * numbers["matrix"] + FIXED_MEGABYTES * MEGABYTE
    note = (
        f"{numbers['bytes'] / MEGABYTE:.0f} MB for a matrix of {numbers['matrix'] / MEGABYTE:.0f} MB: "
        f"{numbers['bytes'] / numbers['matrix']:.2f} of it; "
        f"{numbers['entries'] / numbers['seconds'] / 1e6:.1f} million entries a second"
    )
    measure = f"{name}: peak memory of reading / (2 CSR + {FIXED_MEGABYTES} MB)"
    return Row("files", measure, numbers["bytes"] / allowed, None if quick else Limits(at_most=1), note)


def random_counts(n_rows: int, n_features: int, n_entries: int) -> sparse.csr_array:
    """Return counts whose features differ much in how often they occur."""
    rng = np.random.default_rng(0)
    rows = rng.integers(n_rows, size=n_entries, dtype=np.int32)
    columns = (n_features * rng.random(n_entries) ** 2).astype(np.int32)
    counts = rng.geometric(0.5, n_entries).astype(np.int32)
    return sparse.csr_array((counts, (rows, columns)), shape=(n_rows, n_features))


def write_files(folder: Path, X: sparse.csr_array) -> dict[str, Path]:
    """Write the same counts in several forms; return their paths."""
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
        for triples in _parts(entries):
            stream.write(line * len(triples) % tuple(triples.ravel().tolist()))


def _parts(entries: sparse.coo_array) -> Iterator[NDArray[np.int32]]:
    for start in range(0, entries.nnz, _LINES_AT_ONCE):
        part = slice(start, start + _LINES_AT_ONCE)
        yield np.column_stack([entries.row[part] + 1, entries.col[part] + 1, entries.data[part]])  # (n, 3)
