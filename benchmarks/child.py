"""Tasks that need a process of their own: `python child.py TASK [ARGUMENT ...]` prints its numbers as JSON."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time


def first_call() -> dict[str, float]:
    """Time the import, the first fit, which compiles or reads what was compiled, and a second one."""
    start = perf_counter()
    from mmpca import MMPCA
    from mmpca.simulate import paper_design

    X = paper_design(noise=0.2, random_state=0).X
    ends, processor = [perf_counter()], [process_time()]
    for _ in range(2):
        MMPCA(6, 4, random_state=0).fit(X)
        ends.append(perf_counter())
        processor.append(process_time())
    return {
        "import": ends[0] - start,
        "fit": ends[1] - ends[0],
        "fit_processor": processor[1] - processor[0],
        "again": ends[2] - ends[1],
    }


def memory(folder: str) -> dict[str, float]:
    """Measure by how much a fit of the counts in `folder` raises the memory of the process at its peak."""
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
    """Measure by how much reading a file of counts raises the memory at its peak, and how long it takes."""
    from importlib import import_module

    from mmpca.io import read_counts

    for module in ("pyarrow.csv", "pyarrow.parquet", "mmpca.io.matrix_market", "mmpca.io.triples", "mmpca.io.parquet"):
        import_module(module)  # not measured
    before, start = current_bytes(), process_time()
    X = read_counts(path).X
    seconds = process_time() - start
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return {"bytes": peak_bytes() - before, "matrix": size, "seconds": seconds, "entries": X.nnz}


def command(*arguments: str) -> dict[str, float]:
    """Run a command of the command line; return the seconds of the processor that its fit takes."""
    import contextlib
    import io

    from mmpca.cli import guard, main

    go_on, seconds = guard.raise_interrupts, list[float]()

    def watch_and_go_on() -> None:
        from mmpca.model import MMPCA  # not before: the command decides what is imported, and how

        MMPCA.fit = timed(MMPCA.fit, seconds)
        go_on()

    guard.raise_interrupts = watch_and_go_on  # called when all that the command needs is imported
    sys.argv = ["mmpca", *arguments]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main()
    return {"fit": sum(seconds)}


def timed(call: Callable[..., object], seconds: list[float]) -> Callable[..., object]:
    """Return the call with its seconds of the processor added to a list."""

    def timed_call(*arguments: object, **options: object) -> object:
        start = process_time()
        answer = call(*arguments, **options)
        seconds.append(process_time() - start)
        return answer

    return timed_call


def report(folder: str) -> dict[str, float]:
    """Measure a report on the model in `folder`: time, memory at its peak above model and counts, size of the page."""
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
    """Return the resident memory of this process now where the system tells it, or else its peak so far."""
    return _status_bytes("VmRSS") or peak_bytes()


def _status_bytes(name: str) -> int | None:
    """Return an entry of Linux's account of this process; None on other systems.

    `ru_maxrss` would not do there: it begins with the memory of the process that started this one, and so hides what
    a fit takes behind a large parent.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    entries = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(entries[name].split()[0]) * 1024


if __name__ == "__main__":
    task, *arguments = sys.argv[1:]
    tasks = {"first-call": first_call, "memory": memory, "read": read, "command": command, "report": report}
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
