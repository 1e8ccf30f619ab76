"""``mmpca demo``: simulate the paper's design, fit it and show the result."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mmpca.cli import console, options
from mmpca.cli.fit import topic_table
from mmpca.cli.progress import progress_display
from mmpca.cli.tables import console_table

if TYPE_CHECKING:
    from numba.core.event import TimingListener

    from mmpca.model import MMPCA
    from mmpca.monitor import Callback, Progress
    from mmpca.simulate import Simulation

BAR_WIDTH = 4
LEAST_WIDTH = 77  # columns of a terminal that shows bars beside the numbers
NEXT = (
    ("mmpca inspect FOLDER", "see whether the counts suit the model"),
    ("mmpca select FOLDER --model best.mmpca", "choose the numbers of clusters and topics, and fit"),
    ("mmpca report best.mmpca --data FOLDER", "write a page about the result, to read and to share"),
)
STAGES = {"topics": "topics", "shares": "search", "starts": "search"}  # of a fit of a small matrix; others are short


def demo(
    noise: options.Noise = 0.2,
    balance: options.Balance = 1.0,
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
) -> None:
    """Simulate the paper's design, fit it, and compare clusters and topics with the truth.

    The design has 400 documents of 250 words, in six clusters that mix the topics of four articles.

    Example: mmpca demo --noise 0.4 --balance 0.7
    """
    run_demo(console.out(), noise=noise, balance=balance, seed=seed, jobs=jobs)


def run_demo(out: Console, *, noise: float, balance: float, seed: int, jobs: int) -> None:
    """Simulate, fit, and print the result to a console."""
    from numba.core.event import TimingListener, install_listener
    from sklearn.metrics import adjusted_rand_score

    from mmpca.model import MMPCA
    from mmpca.simulate import paper_design

    data = paper_design(noise=noise, balance=balance, random_state=seed)
    n_clusters, n_topics = data.cluster_topics.shape
    out.print(
        f"\nmmpca demo: {data.X.shape[0]} documents of 250 words, {data.X.shape[1]} distinct words, "
        f"{n_clusters} clusters that mix {n_topics} topics, noise {noise:g}, balance {balance:g}, seed {seed}"
    )
    model = MMPCA(n_clusters, n_topics, n_jobs=jobs, random_state=seed)
    with progress_display() as show, install_listener("numba:compiler_lock", TimingListener()) as compiler:
        times = StageTimes(show, compiler)
        model.fit(data.X, callback=times).rename(row="document", feature="word")
    ari = adjusted_rand_score(data.labels, model.labels_)
    ending = "converged" if model.converged_ else "not converged"
    out.print(
        f"bound {model.bound_:,.1f} after {model.n_epochs_} epochs ({ending}), ICL {model.icl_:,.1f}, "
        f"fitted in {sum(times.seconds.values()):.1f} s "
        f"({', '.join(f'{part} {seconds:.1f} s' for part, seconds in times.seconds.items())})"
    )
    out.print(f"agreement with the true clusters: adjusted Rand index {ari:.3f} (1 is perfect)\n")
    out.print(_cluster_table(model, data, with_bars=out.width >= LEAST_WIDTH))
    out.print(topic_table(model, data.feature_names.tolist()))
    out.print("Next, with your own texts (a folder of .txt files) or counts (a table, .mtx, .h5ad, ...):")
    for command, purpose in NEXT:
        out.print(Text(f"  {command}", style="bold"), soft_wrap=True)  # unwrapped, so that it can be copied
        out.print(Padding(purpose, (0, 0, 0, 6)))


class StageTimes:
    """A callback that adds up the seconds of each part of a fit, and passes its reports on.

    `compiler` is a listener of numba with the time spent compiling so far; that time is no part of the stages.
    """

    def __init__(self, show: Callback, compiler: TimingListener) -> None:
        self.seconds = {"compilation": 0.0, "topics": 0.0, "search": 0.0, "rest": 0.0}
        self._show, self._compiler, self._stage = show, compiler, "rest"
        self._now, self._compiled = perf_counter(), 0.0

    def __call__(self, progress: Progress) -> object:
        """Add the time since the last report to the stage that was running."""
        now, compiled = perf_counter(), self._compiler.duration if self._compiler.done else 0.0
        self.seconds["compilation"] += compiled - self._compiled
        self.seconds[STAGES.get(self._stage, "rest")] += now - self._now - (compiled - self._compiled)
        self._now, self._compiled, self._stage = now, compiled, progress.stage
        return self._show(progress)


def _cluster_table(model: MMPCA, data: Simulation, *, with_bars: bool) -> Table:
    """Return the size, true cluster and topic proportions of each cluster."""
    import numpy as np

    table = console_table(
        "Clusters: size, most frequent true cluster, proportions of the topics", right=["cluster", "size", "truth"]
    )
    for k in range(len(model.components_)):
        table.add_column(f"topic {k}" if with_bars else str(k), no_wrap=True)
    for q, shares in enumerate(model.cluster_topics_):
        members = model.labels_ == q
        truth = np.bincount(data.labels[members], minlength=len(data.weights))
        bars = [_bar(share) if with_bars else f"{share:.2f}" for share in shares]
        table.add_row(str(q), str(members.sum()), f"{truth.argmax()} ({truth.max() / truth.sum():.0%})", *bars)
    return table


def _bar(share: float) -> Text:
    """Return a share as a number and a bar, drawn in eighths of a character."""
    n_eighths = round(share * BAR_WIDTH * 8)
    bar = "█" * (n_eighths // 8) + " ▏▎▍▌▋▊▉"[n_eighths % 8].strip()
    return Text.assemble(f"{share:.2f} ", (f"{bar:<{BAR_WIDTH}}", "cyan"))
