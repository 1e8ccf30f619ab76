"""What the settings of the counting of words may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_settings(settings: Mapping[str, Any]) -> None:
    """Raise unless every setting is known and has a value that it can have."""
    for name, value in settings.items():
        if name not in _RULES:
            raise ValueError(f"Unknown setting of texts {name!r}: expected some of {', '.join(_RULES)}.")
        expected, holds = _RULES[name]
        if not holds(value):
            raise ValueError(f"{name} must be {expected}, got {_shown(value)}.")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _is_frequency(value: Any) -> bool:
    """Tell whether a value is a number of texts from 1 or a share of them."""
    if isinstance(value, Integral):
        return not isinstance(value, bool) and int(value) >= 1
    return isinstance(value, Real) and 0 <= float(value) <= 1


def _is_list_of_words(value: Any) -> bool:
    is_sequence = isinstance(value, (list, tuple, set, frozenset, np.ndarray))
    return is_sequence and all(isinstance(word, str) for word in value)


def _is_vocabulary(value: Any) -> bool:
    return _is_list_of_words(value) and not isinstance(value, (set, frozenset)) and 0 < len(set(value)) == len(value)


def _is_range(value: Any) -> bool:
    is_pair = isinstance(value, (list, tuple)) and len(value) == 2
    return is_pair and all(_is_size(size) for size in value) and value[0] <= value[1] <= 10


def _is_size(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and 1 <= int(value) <= 1000


_FREQUENCY = "a number of texts of at least 1, or a float between 0 and 1 as a share of them"
_VOCABULARY = "a list of at least one word, none repeated"
_RULES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "min_df": (_FREQUENCY, _is_frequency),
    "max_df": (_FREQUENCY, _is_frequency),
    "stop_words": (
        '"english", a list of words or None',
        lambda value: value is None or (isinstance(value, str) and value == "english") or _is_list_of_words(value),
    ),
    "ngram_range": ("two numbers of words from 1 to 10, the smaller first", _is_range),
    "vocabulary": (f"{_VOCABULARY}, or None", lambda value: value is None or _is_vocabulary(value)),
    "strip_accents": ('"unicode", "ascii" or None', lambda value: value is None or value in ("unicode", "ascii")),
    "lowercase": ("True or False", lambda value: isinstance(value, (bool, np.bool_))),
    "min_length": ("a number of characters from 1 to 1000", _is_size),
    "words": (_VOCABULARY, _is_vocabulary),
}
