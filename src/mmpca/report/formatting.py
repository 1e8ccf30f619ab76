"""Numbers, names and texts as the page shows them; the templates use these functions as filters.

Names and texts come from the data and may contain anything. Escaping HTML is left to the templates.
"""

from __future__ import annotations

import unicodedata

import numpy as np

from mmpca.model.results import plural

NAME_LENGTH, TEXT_LENGTH = 80, 200
MINUS = "\N{MINUS SIGN}"  # a hyphen is shorter, and lines may break after it


def clean(name: object, length: int = NAME_LENGTH) -> str:
    r"""Return a name or text on one line, shortened, without control characters and unpaired surrogates.

    Examples
    --------
    >>> clean("two\nlines")
    'two lines'
    >>> clean("a" * 200, 5)
    'aaaa…'
    >>> clean("")
    '(no name)'
    """
    start = str(name)[: 4 * length]  # a text may be huge, and only its beginning is shown
    if not (start.isascii() and start.isprintable()):
        start = "".join(map(_printable, start))
    words = " ".join(start.split())
    if not words:
        return "(no name)"
    return words if len(words) <= length and len(str(name)) <= len(start) else words[: length - 1].rstrip() + "…"


def isolated(name: str) -> str:
    """Return a name whose direction marks end with it, for places where an isolating element is not allowed.

    Examples
    --------
    >>> isolated("oak") == "\N{FIRST STRONG ISOLATE}oak\N{POP DIRECTIONAL ISOLATE}"
    True
    """
    return f"\N{FIRST STRONG ISOLATE}{name}\N{POP DIRECTIONAL ISOLATE}"


def clean_text(text: object, size: int | None = None) -> str:
    r"""Return a text with its paragraphs, without control characters and unpaired surrogates.

    Examples
    --------
    >>> clean_text("one  line\n\n\nanother\x00")
    'one line\nanother\ufffd'
    """
    start = str(text) if size is None else str(text)[:size]
    lines = (" ".join("".join(map(_printable, line)).split()) for line in start.splitlines())
    return "\n".join(line for line in lines if line)


def _printable(character: str) -> str:
    if character.isspace():
        return " "
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(character) in ("Cc", "Cs") else character


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> count(1, "row"), count(2000, "species")
    ('1 row', '2,000 species')
    """
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def percent(share: float) -> str:
    """Return a share in percent; only exact values are shown as 0% and 100%.

    Examples
    --------
    >>> percent(0.25), percent(0.0004), percent(0.988), percent(0.9999), percent(1.0), percent(float("nan"))
    ('25%', '< 0.1%', '98.8%', '> 99.9%', '100%', 'unknown')
    """
    if np.isnan(share):
        return "unknown"
    if 0 < share < 0.0005:
        return "< 0.1%"
    if 0.9995 <= share < 1:
        return "> 99.9%"
    return f"{100 * share:.0f}%" if share in (0, 1) or 0.0995 <= share < 0.985 else f"{100 * share:.1f}%"


def whole_percent(share: float) -> str:
    """Return a share in whole percent.

    Examples
    --------
    >>> whole_percent(0.256), whole_percent(0.004), whole_percent(0.0)
    ('26%', '< 1%', '0%')
    """
    return "< 1%" if 0 < share < 0.005 else f"{100 * share:.0f}%"


def number(value: float) -> str:
    """Return a number with three significant digits, or without decimals from 100 on.

    Examples
    --------
    >>> number(123456.7), number(12.345), number(0.01234), number(float("nan"))
    ('123,457', '12.3', '0.0123', 'unknown')
    """
    if np.isnan(value):
        return "unknown"
    if np.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    return (f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}").replace("-", MINUS)


def decimals(value: float, n_digits: int = 1) -> str:
    """Return a number with a fixed number of decimals.

    Examples
    --------
    >>> decimals(1234.56), decimals(-0.001, 2), decimals(float("nan"))
    ('1,234.6', '0.00', 'unknown')
    """
    rounded = round(float(value), n_digits) + 0.0  # never -0.0
    return "unknown" if np.isnan(value) else f"{rounded:,.{n_digits}f}".replace("-", MINUS)


def shade(share: float) -> int:
    """Return the shade of a heat-map cell, from 0 to 9."""
    return min(9, int(10 * share))
