"""What only a fresh process shows: the memory of a fit, and the first call before anything is compiled."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from scipy import sparse

from measure import Limits, Row, in_fresh_process
from problems import corpus, start_labels
from speed import corpus_sizes

MEGABYTE = 2**20
FIXED_MEGABYTES = 100


def memory_rows(quick: bool, repeats: int) -> list[Row]:
    """Measure the peak memory of a fit above its input against what five states' worth of tables take."""
    sizes = corpus_sizes(quick)
    problem = corpus(sizes)
    with tempfile.TemporaryDirectory() as folder:
        sparse.save_npz(Path(folder, "X.npz"), problem.X, compressed=False)
        np.save(Path(folder, "topics.npy"), problem.beta)
        np.save(Path(folder, "labels.npy"), start_labels(sizes, "k-means, 5 % perturbed"))
        used = min(in_fresh_process("memory", folder)["bytes"] for _ in range(repeats))
    allowed = 5 * (sizes.n_clusters + sizes.n_topics) * sizes.n_features * 8 + FIXED_MEGABYTES * MEGABYTE
    note = f"{used / MEGABYTE:.0f} MB / {allowed / MEGABYTE:.0f} MB"
    measure = f"corpus: peak memory of fit above its input / (5 (Q + K) V doubles + {FIXED_MEGABYTES} MB)"
    return [Row("memory", measure, used / allowed, None if quick else Limits(at_most=1), note)]


def first_call_rows(quick: bool, repeats: int) -> list[Row]:
    """Time a fit of the paper's design in a process that has to compile, and in the next one."""
    pairs = [first_and_next_process() for _ in range(repeats)]
    first, second = (min(numbers, key=lambda each: each["fit"]) for numbers in zip(*pairs, strict=True))
    return [
        Row("first-call", "paper's design: first fit ever, seconds", first["fit"], Limits(at_most=30), _note(first)),
        Row("first-call", "the same in the next process, seconds", second["fit"], None, _note(second)),
    ]


def first_and_next_process() -> tuple[dict[str, float], dict[str, float]]:
    """Fit in a process that finds nothing compiled, then in one that finds what the first left."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"NUMBA_CACHE_DIR": folder, "MMPCA_CACHE": "1", "NUMBA_DISABLE_JIT": "0"}
        first = in_fresh_process("first-call", environment=environment)
        return first, in_fresh_process("first-call", environment=environment)


def _note(numbers: dict[str, float]) -> str:
    return (
        f"{numbers['fit_processor']:.1f} s of the processor; "
        f"import {numbers['import']:.1f} s, a second fit {numbers['again']:.2f} s"
    )
