"""``mmpca convert``: counts of any format to Matrix Market or npz."""

from __future__ import annotations

from pathlib import Path

from mmpca.cli import screen
from mmpca.cli.inputs import read_data
from mmpca.cli.options import InputOptions, TextOptions
from mmpca.io import write_counts


def run(path: Path, output: Path, *, compress: bool, as_json: bool, how: InputOptions, counting: TextOptions) -> None:
    """Read and write."""
    data = read_data(path, how, counting)
    screen.notes(data.table.notes)
    write_counts(output, data.table, compress=compress)
    n_rows, n_features = data.X.shape
    if as_json:
        notes = data.table.notes
        screen.print_json({"rows": n_rows, "features": n_features, "output": str(output), "notes": notes})
        return
    told = f"{n_rows:,} rows x {n_features:,} features written to {output}"
    screen.out().print(told, highlight=False, markup=False, soft_wrap=True)
