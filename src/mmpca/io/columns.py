"""Columns of names, numbers and words as the content of a CSV or TSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any


def delimited(columns: Mapping[str, Sequence[Any]], delimiter: str = ",") -> bytes:
    r"""Return columns of equal length with a header, in UTF-8; bytes of names that are not UTF-8 stay what they were.

    Examples
    --------
    >>> delimited({"row": ["a,b", "c"], "cluster": [0, 1]})
    b'row,cluster\n"a,b",0\nc,1\n'
    """
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return buffer.getvalue().encode("utf-8", errors="surrogateescape")
