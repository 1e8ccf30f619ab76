"""Tables to files: CSV, TSV, JSON or Parquet, by the ending of the path."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

Table = Mapping[str, Sequence[Any]]
ENDINGS = (".csv", ".tsv", ".json", ".parquet")


def write_table(path: Path, table: Table) -> None:
    """Write columns of equal length, whole or not at all; an older file of that name is replaced.

    Parameters
    ----------
    path : Path
        Ending in .csv, .tsv, .json (a list of objects) or .parquet.
    table : mapping from names to columns
        Columns hold Python's own numbers and strings.
    """
    from mmpca.io.columns import delimited
    from mmpca.model.archive import write_atomically

    if path.suffix == ".parquet":
        content = _parquet(table)
    elif path.suffix == ".json":
        content = (json.dumps(records(table), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
    else:
        content = delimited(table, "\t" if path.suffix == ".tsv" else ",")

    def write(file: IO[bytes]) -> None:
        file.write(content)

    write_atomically(path, write)


def records(table: Table) -> list[dict[str, Any]]:
    """Return a table as a list of objects; what is no number in JSON becomes None."""
    return [
        {name: _plain(value) for name, value in zip(table, row, strict=True)}
        for row in zip(*table.values(), strict=True)
    ]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _parquet(table: Table) -> bytes:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError("Parquet needs pyarrow, which is not installed: pip install 'mmpca[parquet]'") from None
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({name: list(column) for name, column in table.items()}), buffer)
    return buffer.getvalue()
