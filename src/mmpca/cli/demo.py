"""``mmpca demo``: the paper's design, simulated, fitted and shown."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text
from sklearn.metrics import adjusted_rand_score

import mmpca.engine
from mmpca.model import MMPCA
from mmpca.simulate import Simulation, paper_design

BAR_WIDTH = 4
WORDS_PER_TOPIC = 8


def run(*, noise: float, balance: float, seed: int, jobs: int, console: Console | None = None) -> None:
    """Simulate, fit and show."""
    console = console or Console()
    data = paper_design(noise=noise, balance=balance, random_state=seed)
    n_clusters, n_topics = data.cluster_topics.shape
    console.print(
        f"\n[bold]mmpca demo[/]: {data.X.shape[0]} documents of 250 words, {data.X.shape[1]} distinct words, "
        f"{n_clusters} clusters that mix {n_topics} topics, noise {noise:g}, balance {balance:g}, seed {seed}"
    )
    model = MMPCA(n_clusters, n_topics, n_jobs=jobs, random_state=seed)
    seconds = _fit(console, model, data)
    _show_summary(console, model, data, seconds)
    console.print(_cluster_table(model, data))
    console.print(_topic_table(model, data.feature_names))
    console.print("Each word is listed with its share of the topic, in per cent.\n", style="dim")


def _fit(console: Console, model: MMPCA, data: Simulation) -> float:
    """Fit with a progress bar for the starts; return the seconds it took."""
    if not console.is_terminal:  # no bar is seen there
        console.print("fitting; the first fit on a machine compiles for half a minute or longer")
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=not console.is_terminal) as progress:
        task = progress.add_task("fitting", total=None, state="compiling and learning topics")
        started = time.perf_counter()
        model.fit(data.X, callback=_Starts(progress, task))
        seconds = time.perf_counter() - started
        progress.update(task, total=1, completed=1, state="done")
    return seconds


class _Starts:
    """Turns the search's progress into that of the bar."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self.progress, self.task = progress, task
        self.epochs: dict[int, int] = {}

    def __call__(self, number: int, now: mmpca.engine.Progress) -> None:
        self.epochs[number] = now.epoch
        state = f"start {len(self.epochs)}, epoch {now.epoch}, {now.n_moves} moves, bound {now.bound:,.1f}"
        self.progress.update(self.task, state=state)


def _show_summary(console: Console, model: MMPCA, data: Simulation, seconds: float) -> None:
    ari = adjusted_rand_score(data.labels, model.labels_)
    ending = "no single move improves it" if model.converged_ else "stopped early"
    console.print(
        f"bound [bold]{model.bound_:,.1f}[/] after {model.n_epochs_} epochs ({ending}), "
        f"ICL [bold]{model.icl_:,.1f}[/], fitted in {seconds:.1f} s"
    )
    console.print(f"agreement with the true clusters: adjusted Rand index [bold]{ari:.3f}[/] (1 is perfect)\n")


def _cluster_table(model: MMPCA, data: Simulation) -> Table:
    """Return cluster sizes and topic shares with bars."""
    table = Table(
        title="Clusters: size, main true cluster, shares of the topics", title_justify="left", box=SIMPLE_HEAD
    )
    for name in ("cluster", "rows", "truth"):
        table.add_column(name, justify="right", no_wrap=True)
    for k in range(len(model.components_)):
        table.add_column(f"topic {k}", no_wrap=True)
    for q, shares in enumerate(model.cluster_topics_):
        members = model.labels_ == q
        truth = np.bincount(data.labels[members], minlength=len(data.weights))
        cells = [_bar(share) for share in shares]
        table.add_row(str(q), str(members.sum()), f"{truth.argmax()} ({truth.max() / truth.sum():.0%})", *cells)
    return table


def _bar(share: float) -> Text:
    """Return a share as a bar of eighths of a cell, with its number."""
    eighths = round(share * BAR_WIDTH * 8)
    bar = "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
    return Text.assemble(f"{share:.2f} ", (f"{bar:<{BAR_WIDTH}}", "cyan"))


def _topic_table(model: MMPCA, words: NDArray[np.str_]) -> Table:
    """Return the most probable words of each topic."""
    table = Table(title="Topics: most probable words", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("topic", justify="right")
    table.add_column("words")
    for k, topic in enumerate(model.components_):
        top = np.argsort(-topic, kind="stable")[:WORDS_PER_TOPIC]
        table.add_row(str(k), ", ".join(f"{words[v]} {100 * topic[v]:.1f}" for v in top))
    return table
