"""Options of ``mmpca demo``."""

from __future__ import annotations

from typing import Annotated

import typer

from mmpca.cli import options


def demo(
    noise: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of words whose topic is drawn blindly.")] = 0.2,
    balance: Annotated[float, typer.Option(min=0.01, max=1.0, help="1 for clusters of equal size.")] = 1.0,
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
) -> None:
    """Simulate the paper's design, fit it, and show clusters and topics beside the truth.

    400 documents of 250 words, in six clusters that mix the topics of four articles.

    Example: mmpca demo --noise 0.4 --balance 0.7
    """
    from mmpca.cli.demo import run

    run(noise=noise, balance=balance, seed=seed, jobs=jobs)
