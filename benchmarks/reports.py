"""What a report takes beyond the fit: seconds, memory, and the size of the page."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from scipy import sparse

from measure import Limits, Row, in_fresh_process
from mmpca import MMPCA
from problems import Sizes, corpus, start_labels

MEGABYTE = 10**6
FULL = Sizes(n_samples=10_000, n_features=20_000, n_clusters=20, n_topics=30)
QUICK = Sizes(n_samples=2_000, n_features=4_000, n_clusters=20, n_topics=30)
LIMITS = {"seconds": Limits(at_most=15), "megabytes": Limits(at_most=1000), "page": Limits(at_most=3)}


def report_rows(quick: bool, repeats: int) -> list[Row]:
    """Write the page of a large model, with names, texts and labels of all rows, in a process of its own."""
    sizes = QUICK if quick else FULL
    problem = corpus(sizes)
    start = start_labels(sizes, "truth")
    model = MMPCA(sizes.n_clusters, sizes.n_topics, topics=problem.beta, start=start, max_epochs=0).fit(problem.X)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "model.mmpca"))
        sparse.save_npz(Path(folder, "X.npz"), problem.X, compressed=False)
        np.save(Path(folder, "labels.npy"), start)
        runs = [in_fresh_process("report", folder) for _ in range(repeats)]
    what = f"Q = {sizes.n_clusters}, K = {sizes.n_topics}, N = {sizes.n_samples:,}, V = {sizes.n_features:,}"
    best = {name: min(run[name] for run in runs) for name in runs[0]}
    return [
        Row("report", f"{what}: seconds of the processor for a page", best["seconds"], _limit("seconds", quick)),
        Row("report", "peak memory above model and counts, MB", best["bytes"] / MEGABYTE, _limit("megabytes", quick)),
        Row("report", "the page, MB", best["page"] / MEGABYTE, _limit("page", quick)),
    ]


def _limit(name: str, quick: bool) -> Limits | None:
    return None if quick else LIMITS[name]
