"""Known classes against clusters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.metrics import adjusted_rand_score

from mmpca.report.clusters import Cell, cell
from mmpca.report.subject import Subject
from mmpca.report.words import shown

MOST_CLASSES = 60


class Confusion(NamedTuple):
    """How many rows of each class are in each cluster."""

    lines: list[tuple[str, int, list[Cell]]]  # class, its rows, its cells
    rand_index: float  # to two decimals, and no -0.0
    n_left_out: int  # classes that are not shown


def confusion_of(subject: Subject) -> Confusion | None:
    """Return the table of classes and clusters, the largest classes first; None without classes."""
    if subject.labels is None:
        return None
    names, codes = np.unique(np.array(subject.labels, dtype=object), return_inverse=True)
    table = np.zeros((len(names), subject.model.n_clusters), dtype=int)
    np.add.at(table, (codes, subject.clusters), 1)
    totals = table.sum(axis=1)
    order = np.argsort(-totals, kind="stable")[:MOST_CLASSES]
    lines = [
        (shown(names[c]), int(totals[c]), [cell(n / int(totals[c]), told=f"{n:,}" if n else "") for n in row])
        for c, row in ((c, table[c].tolist()) for c in order)
    ]
    return Confusion(
        lines, round(float(adjusted_rand_score(codes, subject.clusters)), 2) + 0.0, len(names) - len(order)
    )
