"""Texts become counts of words."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mmpca.cli.options import InputOptions, TextOptions
from mmpca.errors import CountsError, InputFileError, ModelFileError
from mmpca.io import CountTable
from mmpca.io.streams import read_lines
from mmpca.text import CountTexts, read_texts


def count_words(path: Path, how: InputOptions, counting: TextOptions) -> tuple[CountTable, dict[str, Any]]:
    """Return the counts of words in texts, and the settings that count those of others in the same way."""
    counter = CountTexts(
        min_df=counting.min_rows,
        max_df=counting.max_share,
        stop_words=_stop_words(counting.stop_words),
        ngram_range=(1, counting.ngrams),
        vocabulary=None if counting.words is None else _read_words(counting.words),
    )
    read = read_texts(path, column=how.text_column)
    with warnings.catch_warnings(record=True) as caught:  # words of a list that no text can contain
        warnings.simplefilter("always")
        try:
            X = counter.fit_transform(read.texts)
        except CountsError as error:
            raise InputFileError(
                f"{path}: no word of the {len(read.texts)} texts is left with --min-rows {counting.min_rows}, "
                f"--max-share {counting.max_share:g} and the stop words; words have two letters or digits at least. "
                "Lower the first, raise the second, or leave out fewer words."
            ) from error
    remarks = [str(warning.message) for warning in caught]
    return CountTable(X, read.names, counter.get_feature_names_out(), remarks), counter.settings()


def count_known_words(path: Path, how: InputOptions, settings: Mapping[str, Any], known: list[str]) -> CountTable:
    """Return the counts of the words that a model knows, and a note on those that it does not."""
    try:
        counter = CountTexts.from_settings(settings)
        words = counter.get_feature_names_out()
    except (ValueError, TypeError) as error:
        raise ModelFileError(f"How the model counts words cannot be read ({error}). Fit it again.") from error
    if words.tolist() != known:
        raise ModelFileError("The words that the model counts are not its features. Fit it again.")
    read = read_texts(path, column=how.text_column)
    counts = counter.count(read.texts)
    n_unseen, n_known = int(counts.n_unseen.sum()), int(counts.X.sum())
    remarks = []
    if n_unseen:
        remarks.append(f"{n_unseen:,} of {n_unseen + n_known:,} words are not known to the model and were passed over.")
    return CountTable(counts.X, read.names, words, remarks)


def _stop_words(given: str | None) -> str | list[str] | None:
    """Return the name of a built-in list as it is, and the words of a file."""
    if given is None or given == "english":
        return given
    if not Path(given).exists():
        raise InputFileError(
            f"--stop-words {given}: there is neither such a list nor such a file. Give english, or a file with a word "
            "on each line."
        )
    return _read_words(Path(given))


def _read_words(path: Path) -> list[str]:
    is_empty = path.is_file() and not path.stat().st_size  # a list of no words is one
    lines = [] if is_empty else read_lines(path)
    return list(dict.fromkeys(line.strip() for line in lines if line.strip()))
