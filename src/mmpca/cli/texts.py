"""Texts become counts of words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mmpca.cli.options import InputOptions, TextOptions
from mmpca.errors import ModelFileError
from mmpca.io import CountTable
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
    texts = read_texts(path, column=how.text_column)
    X = counter.fit_transform(texts.texts)
    table = CountTable(X, texts.row_names, counter.get_feature_names_out(), [*texts.notes])
    return table, counter.settings()


def count_known_words(path: Path, how: InputOptions, settings: Mapping[str, Any]) -> CountTable:
    """Return the counts of the words that a model knows."""
    try:
        counter = CountTexts.from_settings(settings)
    except (ValueError, TypeError, KeyError) as error:
        raise ModelFileError(f"How the model counts words cannot be read ({error}). Fit it again.") from error
    texts = read_texts(path, column=how.text_column)
    X = counter.transform(texts.texts)
    return CountTable(X, texts.row_names, counter.get_feature_names_out(), [*texts.notes])


def _stop_words(given: str | None) -> str | list[str] | None:
    """Return the name of a built-in list as it is, and the words of a file."""
    return given if given is None or given == "english" else _read_words(Path(given))


def _read_words(path: Path) -> list[str]:
    words = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    return list(dict.fromkeys(word for word in words if word))
