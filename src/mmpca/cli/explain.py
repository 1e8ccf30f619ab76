"""``mmpca explain``: why rows are in their clusters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mmpca.cli import console, options
from mmpca.cli.inputs import InputData, choose_words, read_for_model
from mmpca.cli.options import ReadOptions
from mmpca.cli.tables import console_table, write_table

if TYPE_CHECKING:
    from mmpca.model import MMPCA
    from mmpca.model.explanation import Evidence, Explanation
    from mmpca.model.results import Words

N_LEAST_CERTAIN = 3
ALTERNATIVES_SHOWN = 4
MAX_DIGITS = 18  # of a row number
SHOWN_DIGITS = 3  # of a probability
BAR_WIDTH = 12  # on each side
STYLES = {"clear": "green", "likely": "yellow", "borderline": "red"}


def explain(
    model: options.Model,
    input: options.Input,
    row: Annotated[
        list[str] | None,
        typer.Option(
            "--row",
            "-r",
            help="Name of a row, or its number from 0 if no name is a number; can be repeated.",
            show_default=f"the {N_LEAST_CERTAIN} least certain rows",
        ),
    ] = None,
    n_features: Annotated[
        int, typer.Option("--features", "-n", min=0, help="Number of features to list on each side.")
    ] = 8,
    output: options.TableOutput = None,
    safe_csv: options.SafeCsv = False,
    json: options.Json = False,
    read: ReadOptions = ReadOptions(),
) -> None:
    """Explain why rows are in their clusters: how certain that is, and the evidence of each feature.

    Without --row, the rows with the lowest probabilities are explained or, if all are close to 1, those with the
    smallest evidence per count. Features found in a single row of the fit are not listed. Evidence is measured in nats;
    one nat multiplies the odds by 2.7. For the data of the fit, the gain of another cluster is the change in the bound
    when the row moves there; for other rows, the change when the row is added there instead.

    For example:

      mmpca explain counts.mmpca counts.mtx --row 17 --row 23

      mmpca explain reports.mmpca reports/ --row letter_04 --features 5 -o why.csv
    """
    from mmpca.model import read_model, results

    file = read_model(model)
    words = choose_words(file.model, None, None, is_text=file.text is not None)
    data = read_for_model(input, read, file)
    names, has_names = data.row_names(), data.table.row_names is not None
    with console.ignored_name_warnings():
        numbers = find_rows(row, names, has_names=has_names) if row else _least_certain(file.model, data)
        whole = file.model.explain(data.X, numbers, n_features=file.model.n_features_in_)
    explanations = [shortened(why, file.model, n_features) for why in whole]
    console.notes(data.table.notes)
    if output is not None:
        write_table(output, evidence_columns(explanations, names), safe=safe_csv)
    if json:
        console.print_json([{"name": names[why.row], **why._asdict()} for why in explanations])
    elif output is not None:
        console.line(f"{len(explanations):,} explanations written to {output}")
    else:
        clusters = results.shown_names(file.model, "cluster")
        for why in explanations:
            name = names[why.row] if has_names else f"{words.row} {why.row}"
            _show(console.out(), why, name, clusters[why.cluster], words)


def find_rows(wanted: Sequence[str], names: Sequence[str], *, has_names: bool = True) -> list[int]:
    """Return the numbers of rows given by name; numbers are accepted too, unless a name is a number."""
    numbers: dict[str, int] = {}
    for i, name in enumerate(names):
        numbers.setdefault(name, i)
    accepts_numbers = not has_names or not any(name.isdecimal() for name in numbers)
    expected = [f"a name, {names[0]!r} to {names[-1]!r}"] if has_names else []
    expected += [f"a number from 0 to {len(names) - 1}"] if accepts_numbers else []
    found = []
    for word in wanted:
        is_number = accepts_numbers and word.isdecimal() and len(word) <= MAX_DIGITS
        number = numbers.get(word, int(word) if is_number else -1)
        if not 0 <= number < len(names):
            raise ValueError(f"There is no row {word!r}. Give {', or '.join(expected)}.")
        found.append(number)
    return found


def _least_certain(model: MMPCA, data: InputData) -> list[int]:
    """Return the rows with the lowest probabilities; if these are equal, those with the smallest margins per count."""
    import numpy as np

    from mmpca.counts import as_counts
    from mmpca.model.results import row_results

    found = row_results(model, as_counts(data.X, empty_rows="allow"))
    # Rows without counts, about which there is nothing to explain, come last.
    keys = (found.margin_per_count, found.probability.round(SHOWN_DIGITS), found.totals == 0)
    least: list[int] = np.lexsort(keys)[:N_LEAST_CERTAIN].tolist()
    return least


def shortened(why: Explanation, model: MMPCA, n_features: int) -> Explanation:
    """Return an explanation with only the strongest evidence, without features of a single fitted row.

    Such a feature says a lot about its row and nothing about others. Evidence not listed is part of `from_others`.
    """
    n_rows = getattr(model, "cluster_row_counts_", None)  # older files do not have it

    def kept(parts: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
        """Return the strongest evidence from features found in more than one row."""
        return tuple(part for part in parts if n_rows is None or n_rows[:, part.feature].sum() != 1)[:n_features]

    for_it, against_it = kept(why.evidence_for), kept(why.evidence_against)
    others = sum(part.nats for part in why.evidence_for + why.evidence_against)
    others += why.from_others - sum(part.nats for part in for_it + against_it)
    return why._replace(evidence_for=for_it, evidence_against=against_it, from_others=others)


def evidence_columns(explanations: Sequence[Explanation], names: Sequence[str]) -> dict[str, list[Any]]:
    """Return a table with one line per listed feature, and two for other features and cluster sizes."""
    lines: list[dict[str, Any]] = []
    for why in explanations:
        gain = next((other.gain for other in why.alternatives if other.cluster == why.runner_up), None)
        head = {
            "row": names[why.row],
            "cluster": why.cluster,
            "verdict": why.verdict,
            "probability": round(why.probability, 6),
            "against": why.runner_up,
            "log_odds": console.json_value(-why.margin),
            "gain": console.json_value(gain),
        }
        evidence: list[tuple[str, int | None, float, str]] = [
            (part.name, part.occurrences, part.nats, part.annotation)
            for part in why.evidence_for + why.evidence_against
        ]
        evidence += [(name, None, nats, "") for name, nats in why.other_terms]
        titles = ("feature", "count", "nats", "annotation")
        lines += [head | dict(zip(titles, part, strict=True)) for part in evidence]
    columns = {name: [line[name] for line in lines] for name in lines[0]} if lines else {}
    if not any(columns.get("annotation", ())):
        columns.pop("annotation", None)
    return columns


def _show(out: Console, why: Explanation, name: str, cluster_name: str, words: Words) -> None:
    verb = "is in" if why.is_fitted else "would join"
    head = (
        (f"\n{name}", "bold"),
        f" {verb} cluster ",
        (f"{why.cluster}", "bold"),
        f" ({console.literal(cluster_name)}): " if cluster_name else ": ",
        (why.verdict, STYLES[why.verdict]),
    )
    refits = "" if why.stability is None else f", {why.stability:.0%} of the refits agree"
    out.print(Text.assemble(*head, f", probability {why.probability:.{SHOWN_DIGITS}f}{refits}"))
    if why.runner_up is None:
        out.print("There is no other cluster.")
        return
    if why.is_held_by_itself:
        out.print(
            f"Without its own contribution, cluster {why.runner_up} is more probable: the {words.row} has pulled "
            f"cluster {why.cluster} toward itself, so moving it would not raise the bound."
        )
    out.print(_evidence_table(why, words))
    out.print("Other clusters: log-odds, and gain in the bound, in nats", style="italic")
    table = console_table(right=["cluster", "log-odds", "gain"])
    for other in why.alternatives[:ALTERNATIVES_SHOWN]:
        gain = "" if other.gain is None else f"{other.gain:+.2f}" if math.isfinite(other.gain) else f"only {words.row}"
        table.add_row(str(other.cluster), f"{other.log_odds:+.2f}", gain)
    out.print(table)
    margin = why.bound_margin
    if margin is not None and math.isfinite(margin.total):
        out.print(
            f"The bound prefers cluster {why.cluster} to cluster {why.runner_up} by {margin.total:+.2f} nats: "
            f"{margin.from_features:+.2f} from {words.features} to first order, {margin.from_sizes:+.2f} from cluster "
            f"sizes, {margin.remainder:+.2f} because clusters adapt to the {words.row}.",
            highlight=False,
            style="dim",
        )


def _evidence_table(why: Explanation, words: Words) -> Table:
    table = console_table(
        f"Evidence for cluster {why.cluster} against cluster {why.runner_up}: {why.margin:+.1f} nats",
        left=[words.feature],
    )
    table.add_column("count", justify="right")
    table.add_column("nats", justify="right")
    table.add_column("", no_wrap=True, min_width=2 * BAR_WIDTH + 1)
    listed = why.evidence_for + why.evidence_against
    is_annotated = any(part.annotation for part in listed)
    if is_annotated:
        table.add_column("annotation")
    largest = max((abs(part.nats) for part in listed), default=1.0)
    for part in listed:
        cells = (part.name, str(part.occurrences), f"{part.nats:+.2f}", _bar(part.nats, largest))
        table.add_row(*cells, *([_last_rank(part.annotation)] if is_annotated else []))
    for name, nats in why.other_terms:
        shown = name.replace("features", words.features).replace("rows", words.rows)
        table.add_row(Text(shown, style="dim"), "", f"{nats:+.2f}", "")
    return table


def _last_rank(taxonomy: str) -> str:
    """Return the last rank of a taxonomy with a name: "g__Lactobacillus" for "k__Bacteria; g__Lactobacillus; s__"."""
    ranks = [rank.strip() for rank in taxonomy.split(";")]
    return next((rank for rank in reversed(ranks) if rank and not rank.endswith("__")), taxonomy)


def _bar(nats: float, largest: float) -> Text:
    """Return a bar to the right for positive evidence, to the left for negative evidence."""
    bar = "█" * round(abs(nats) / largest * BAR_WIDTH)
    if nats > 0:
        return Text.assemble(" " * BAR_WIDTH, "│", (bar, "green"))
    return Text.assemble(" " * (BAR_WIDTH - len(bar)), (bar, "red"), "│")
