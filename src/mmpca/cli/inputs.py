"""Inputs of all kinds become counts with names."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmpca.cli.options import InputOptions, TextOptions
from mmpca.errors import CountsError
from mmpca.io import CountTable, read_counts
from mmpca.io.streams import check_file
from mmpca.model import MMPCA, ModelFile
from mmpca.model.alignment import align_features

# Read as texts where nothing else is said, because no format of counts has these endings.
TEXT_ENDINGS = (".jsonl", ".ndjson")


class Data(NamedTuple):
    """Counts, and how texts became counts where they did."""

    table: CountTable
    text: dict[str, Any] | None = None

    @property
    def X(self) -> sparse.csr_array:
        """The counts, (n_rows, n_features)."""
        return self.table.X

    def row_names(self) -> list[str]:
        """Return a name for each row: its own, or its number."""
        names = self.table.row_names
        return [str(i) for i in range(self.X.shape[0])] if names is None else [str(name) for name in names]

    def take(self, rows: NDArray[np.intp]) -> Data:
        """Return some of the rows."""
        names = self.table.row_names
        kept = self.table._replace(X=self.X[rows], row_names=None if names is None else names[rows])
        return self._replace(table=kept)


def read_data(path: Path, how: InputOptions, counting: TextOptions) -> Data:
    """Read counts, or texts whose words are counted."""
    if not is_text(path, how):
        check_file(path)
        check_unused(path, counting)
        return Data(_read_table(path, how))
    from mmpca.cli import texts  # only who counts words pays for it

    return Data(*texts.count_words(path, how, counting))


def check_unused(path: Path, counting: TextOptions) -> None:
    """Refuse options of texts for an input of counts, which they would not change."""
    usual = TextOptions()
    for name, value in counting._asdict().items():
        if value != getattr(usual, name):
            raise CountsError(
                f"{path}: --{name.replace('_', '-')} is for texts, but this is read as counts. Leave it out; if these "
                "are texts, add --text."
            )


def read_for_model(path: Path, how: InputOptions, file: ModelFile) -> Data:
    """Read counts or texts, with the features of a model as columns."""
    if not is_text(path, how, has_text=file.text is not None):
        return Data(_aligned(path, _read_table(path, how), file.model))
    if file.text is None:
        raise CountsError(
            f"{path}: texts were given, but the model was fitted to counts and knows no words. Give counts, or fit "
            "a model to texts."
        )
    from mmpca.cli import texts

    known = [str(name) for name in getattr(file.model, "feature_names_in_", ())]
    return Data(texts.count_known_words(path, how, file.text, known))


def _aligned(path: Path, table: CountTable, model: MMPCA) -> CountTable:
    """Return counts with the features of the model as columns, by name where both have names."""
    known = getattr(model, "feature_names_in_", None)
    n_features = model.n_features_in_
    if known is None or table.feature_names is None:
        if table.X.shape[1] != n_features:
            whose = "the model" if known is None else "the input"
            raise CountsError(
                f"{path}: there are {table.X.shape[1]} features, but the model has {n_features}, and {whose} has no "
                "names to match them by. Give names with --feature-names, or the same columns as in the fit."
            )
        return table
    aligned = align_features(table.X, table.feature_names, known)
    if aligned.n_missing == n_features:
        raise CountsError(f"{path}: none of the features has a name that the model knows. Is this the right input?")
    return table._replace(X=aligned.X, feature_names=known, notes=[*table.notes, *aligned.notes()])


def is_text(path: Path, how: InputOptions, *, has_text: bool = False) -> bool:
    """Tell whether an input is read as texts; `has_text` says whether a model counts words."""
    if how.text or how.text_column is not None or path.is_dir():
        return True
    if how.format is not None:
        return False
    return path.suffix in TEXT_ENDINGS or (has_text and path.suffix in (".txt", ""))


def _read_table(path: Path, how: InputOptions) -> CountTable:
    return read_counts(
        path,
        format=None if how.format is None else str(how.format),
        row_names=how.row_names,
        feature_names=how.feature_names,
        transpose=how.transpose,
        layer=how.layer,
    )
