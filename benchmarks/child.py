"""Tasks that need their own process: `python child.py TASK [ARGUMENT ...]` prints the results as JSON."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from time import perf_counter, process_time


def first_call() -> dict[str, float]:
    """Time the import, the first fit, which compiles or loads compiled code, and a second fit."""
    start = perf_counter()
    from mmpca import MMPCA
    from mmpca.simulate import paper_design

    X = paper_design(noise=0.2, random_state=0).X
    ends, cpu = [perf_counter()], [process_time()]
    for _ in range(2):
        MMPCA(6, 4, random_state=0).fit(X)
        ends.append(perf_counter())
        cpu.append(process_time())
    return {
        "import": ends[0] - start,
        "fit": ends[1] - ends[0],
        "cpu": cpu[1] - cpu[0],
        "again": ends[2] - ends[1],
    }


def memory(folder: str) -> dict[str, float]:
    """Measure how much a fit of the counts in `folder` raises the peak memory of the process."""
    import numpy as np
    from scipy import sparse

    from mmpca import MMPCA
    from mmpca.simulate import paper_design

    tiny = paper_design(n_samples=60, random_state=0)
    MMPCA(6, 4, topics=tiny.topics, start=np.arange(60) % 6, n_jobs=1).fit(tiny.X)
    X = sparse.load_npz(Path(folder, "X.npz"))
    topics, labels = np.load(Path(folder, "topics.npy")), np.load(Path(folder, "labels.npy"))
    model = MMPCA(labels.max() + 1, len(topics), topics=topics, start=labels, n_jobs=1, refit_topics=True)
    before = current_bytes()
    model.fit(X)
    return {"bytes": peak_bytes() - before}


def read(path: str) -> dict[str, float]:
    """Measure how much reading a file of counts raises the peak memory, and how long it takes."""
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401 - importing it is not measured

    from mmpca.io import read_counts

    before, start = current_bytes(), process_time()
    X = read_counts(path).X
    seconds = process_time() - start
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return {"bytes": peak_bytes() - before, "matrix": size, "seconds": seconds, "entries": X.nnz}


def fit_file(path: str, n_clusters: str, n_topics: str) -> dict[str, float]:
    """Measure the CPU seconds of the fit that `mmpca fit` makes of a file."""
    from mmpca import MMPCA
    from mmpca.io import read_counts

    X = read_counts(path).X
    start = process_time()
    MMPCA(int(n_clusters), int(n_topics), n_jobs=1, random_state=0).fit(X)
    return {"cpu": process_time() - start}


def report(folder: str) -> dict[str, float]:
    """Measure a report on the model in `folder`: time, peak memory without model and counts, size of the page."""
    import numpy as np
    from scipy import sparse

    import mmpca
    from mmpca.report import write_report

    model, X = mmpca.load(Path(folder, "model.mmpca")), sparse.load_npz(Path(folder, "X.npz"))
    labels = [f"class {label}" for label in np.load(Path(folder, "labels.npy"))]
    names = [f"document number {i}" for i in range(X.shape[0])]
    texts = [f"{name}: " + "lorem ipsum " * 100 for name in names]
    before, start = current_bytes(), process_time()
    page = write_report(model, Path(folder, "page.html"), X=X, labels=labels, row_names=names, texts=texts)
    return {"seconds": process_time() - start, "bytes": peak_bytes() - before, "page": page.stat().st_size}


def peak_bytes() -> int:
    """Return the largest resident memory of this process so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return _status_bytes("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def current_bytes() -> int:
    """Return the current resident memory of this process, or its peak so far on systems without /proc."""
    return _status_bytes("VmRSS") or peak_bytes()


def _status_bytes(name: str) -> int | None:
    """Return an entry of /proc/self/status; None on systems other than Linux.

    On Linux, `ru_maxrss` starts at the memory of the parent process, so a large parent would hide the cost of a fit.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    entries = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(entries[name].split()[0]) * 1024


if __name__ == "__main__":
    task, *arguments = sys.argv[1:]
    tasks = {"first-call": first_call, "memory": memory, "read": read, "fit-file": fit_file, "report": report}
    if task not in tasks:
        import scale_tasks

        tasks = {
            "fit-threads": scale_tasks.fit_threads,
            "fit-processes": scale_tasks.fit_processes,
            "fit-corpus": scale_tasks.fit_corpus,
            "task-overhead": scale_tasks.task_overhead,
            "pass-lda": scale_tasks.pass_lda,
            "pass-kmeans": scale_tasks.pass_kmeans,
        }
    print(json.dumps(tasks[task](*arguments)))
