"""Tables as files (CSV, TSV, JSON or Parquet, by the file's ending) and on the console."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from mmpca.cli import console

Columns = Mapping[str, Sequence[Any]]


# A spreadsheet evaluates a cell that begins like this as a formula, which may send data elsewhere or start programs.
_FORMULA = re.compile(r"[\t\r ]*[=+@-]")


def write_table(path: Path, table: Columns, *, safe: bool = False) -> None:
    """Write columns of numbers and strings as .csv, .tsv, .json (a list of objects) or .parquet, atomically.

    In a .csv or .tsv file, a text that a spreadsheet would evaluate is written unchanged, with a note, or with an
    apostrophe before it if `safe` is true. Spreadsheets show such a cell as text; other programs see the apostrophe.
    """
    from mmpca.io.delimited import format_columns
    from mmpca.store import write_atomically

    if path.suffix == ".parquet":
        content = _parquet(table)
    elif path.suffix == ".json":
        document = json.dumps(console.json_value(records(table)), indent=1, ensure_ascii=False)
        content = f"{document}\n".encode()
    else:
        first = next((value for column in table.values() for value in column if is_formula(value)), None)
        if first is not None and safe:
            table = {name: [f"'{x}" if is_formula(x) else x for x in column] for name, column in table.items()}
        elif first is not None:
            text = f"{path}: a spreadsheet would evaluate {first!r} as a formula. Add --safe-csv to prevent that."
            console.notes([text])
        content = format_columns(table, "\t" if path.suffix == ".tsv" else ",")

    write_atomically(path, lambda file: file.write(content))


def write_labels(path: Path, table: Columns, inputs: Sequence[Path], *, safe: bool = False) -> None:
    """Write labels as a table, or into `obs` of a copy of the input if the file ends in .h5ad."""
    if path.suffix != ".h5ad":
        write_table(path, table, safe=safe)
        return
    if len(inputs) != 1 or inputs[0].suffix != ".h5ad":
        raise ValueError(f"{path}: labels can be written to .h5ad only if the input is one .h5ad file. Choose .csv.")
    try:
        import h5py
        import pandas as pd
        from anndata.io import read_elem, write_elem
    except ImportError:
        raise ImportError("AnnData files need anndata, which is not installed: pip install 'mmpca[anndata]'") from None
    part = path.with_name(f".{path.name}.part")
    try:
        shutil.copyfile(inputs[0], part)
        with h5py.File(part, "r+") as file:
            obs = read_elem(file["obs"])
            own = pd.DataFrame({name: list(column) for name, column in table.items() if name != "row"})
            own.index = pd.Index([str(name) for name in table["row"]])
            if own.index.is_unique:  # rows without counts may have been left out
                own = own.reindex(obs.index.astype(str))
            elif len(own) != len(obs):
                raise ValueError(f"{inputs[0]}: observation names are not unique, so labels cannot be matched to them.")
            clusters = own["cluster"].fillna(-1).astype(int)
            obs["mmpca"] = pd.Categorical([None if q < 0 else str(q) for q in clusters])
            obs["mmpca_name"] = pd.Categorical(own["cluster_name"].to_numpy())
            for name in own.columns.drop(["cluster", "cluster_name"]):
                obs[f"mmpca_{name}"] = own[name].to_numpy(dtype=float)
            del file["obs"]
            write_elem(file, "obs", obs)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def is_formula(value: Any) -> bool:
    """Return True for a text, other than a number, that a spreadsheet would evaluate."""
    if not (isinstance(value, str) and _FORMULA.match(value)):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False


def records(table: Columns) -> list[dict[str, Any]]:
    """Return a table as a list of objects."""
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def _parquet(table: Columns) -> bytes:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ImportError("Parquet needs pyarrow, which is not installed: pip install 'mmpca[parquet]'") from None
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({name: list(column) for name, column in table.items()}), buffer)
    return buffer.getvalue()


def columns_table(
    table: Columns, title: str | None = None, *, decimals: Mapping[str, int] | None = None, wrap: bool = True
) -> Table:
    """Return columns as they are shown: text to the left, numbers to the right, fractions with three decimals."""
    shown, n_digits = console_table(title), dict.fromkeys(table, 3) | dict(decimals or {})
    for name, column in table.items():
        is_text = any(isinstance(value, str) for value in column)
        shown.add_column(name, justify="left" if is_text else "right", no_wrap=is_text and not wrap, min_width=5)
    for row in records(table):
        cells = (f"{x:,.{n_digits[name]}f}" if isinstance(x, float) else x for name, x in row.items())
        shown.add_row(*("" if cell is None else str(cell) for cell in cells))
    return shown


def console_table(title: str | None = None, *, right: Iterable[str] = (), left: Iterable[str] = ()) -> Table:
    """Return an empty table with the given columns, right-aligned ones first."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    for name in left:
        table.add_column(name)
    return table


def print_across(names: Sequence[str], lines: Sequence[Sequence[str]], *, marked: str | None = None) -> None:
    """Print right-aligned columns, in several tables if the console is too narrow; each repeats the first column.

    Cells equal to `marked` are highlighted.
    """
    out = console.out()
    columns = list(zip(names, *lines, strict=True))
    widths = [max(map(len, column)) + 3 for column in columns]  # including the space between columns
    head, parts, room = columns[0], [[columns[0]]], out.width - widths[0] - 1
    left = room
    for column, width in zip(columns[1:], widths[1:], strict=True):
        if width > left and len(parts[-1]) > 1:
            parts.append([head])
            left = room
        parts[-1].append(column)
        left -= width
    for part in parts:
        table = console_table(right=[name for name, *_ in part])
        for cells in zip(*(column[1:] for column in part), strict=True):
            table.add_row(*(Text(cell, "bold green" if cell == marked else "") for cell in cells))
        out.print(table)
