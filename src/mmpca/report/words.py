"""Numbers and names of strangers as a reader can bear them. What is dangerous in HTML is the template's business."""

from __future__ import annotations

import unicodedata

import numpy as np

NAME_LENGTH, TEXT_LENGTH = 80, 400
MINUS, TIMES = "\N{MINUS SIGN}", "\N{MULTIPLICATION SIGN}"  # hyphens break lines and look short


def shown(name: object, length: int = NAME_LENGTH) -> str:
    r"""Return a name or text on one line, cut to a length, without control characters and broken halves of characters.

    Examples
    --------
    >>> shown("two\nlines")
    'two lines'
    >>> shown("a" * 200, 5)
    'aaaa…'
    >>> shown("")
    '(no name)'
    """
    # Cut first: what is left out need not be looked at, however long it is.
    start = str(name)[: 4 * length]
    plain = "".join(_plain(character) for character in start)
    words = " ".join(plain.split())
    if not words:
        return "(no name)"
    return words if len(words) <= length and len(str(name)) <= len(start) else words[: length - 1].rstrip() + "…"


def _plain(character: str) -> str:
    if character.isspace():
        return " "
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(character) in ("Cc", "Cs") else character


def count(number: int, what: str) -> str:
    """Return a number of things in words: "1 row", "2,000 rows"."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def percent(share: float) -> str:
    """Return a share in per cent; never 0 % or 100 % for what is a little more or less.

    Examples
    --------
    >>> percent(0.25), percent(0.0004), percent(0.9999), percent(1.0)
    ('25 %', '< 0.1 %', '> 99.9 %', '100 %')
    """
    if 0 < share < 0.0005:
        return "< 0.1 %"
    if 0.9995 <= share < 1:
        return "> 99.9 %"
    return f"{100 * share:.0f} %" if share in (0, 1) or 0.0995 <= share < 0.9895 else f"{100 * share:.1f} %"


def whole_percent(share: float) -> str:
    """Return a share in whole per cent, for tables in which only large differences count.

    Examples
    --------
    >>> whole_percent(0.256), whole_percent(0.004), whole_percent(0.0)
    ('26 %', '< 1 %', '0 %')
    """
    return "< 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def number(value: float) -> str:
    """Return a number with three digits that count, thousands apart.

    Examples
    --------
    >>> number(123456.7), number(12.345), number(0.01234), number(float("nan"))
    ('123,457', '12.3', '0.0123', 'not known')
    """
    if np.isnan(value):
        return "not known"
    if np.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    told = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return told.replace("-", MINUS)


def nats(value: float) -> str:
    """Return evidence with its sign."""
    if np.isinf(value):
        return number(value)
    return f"{value:+,.0f}".replace("-", MINUS) if abs(value) >= 100 else f"{value:+.1f}".replace("-", MINUS)


def exact(value: float) -> str:
    """Return a bound with one decimal, in which bounds differ."""
    return f"{value:,.1f}".replace("-", MINUS)
