"""The contents of the page: clusters, topics and labels; summary, checks, data, search and provenance."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import adjusted_rand_score

from mmpca.counts import as_counts
from mmpca.evaluation import Summary, summarize
from mmpca.model import MMPCA
from mmpca.model.dispersion import LARGE_INDEX, advice_on, in_counts
from mmpca.model.inspection import inspect_counts
from mmpca.model.results import cluster_features, topic_features
from mmpca.plots.selection import shortfall
from mmpca.report.context import VERDICTS, Context, Margins, representative_rows, script_rows
from mmpca.report.formatting import clean, count, decimals, number, percent
from mmpca.selection import MMPCASearch
from mmpca.selection.criteria import reason

Array = NDArray[np.float64]

N_FEATURES = 10
N_LABELS = 2  # known labels in the strip of a cluster
OWN_TOPIC = 0.8  # share of its largest topic from which a cluster is said to have a topic of its own
N_WORDS, MAX_WORDS = 25, 1500  # features of each cluster that each ranking contributes, and of all clusters
MAX_COMPARED = 40  # clusters up to which any two can be compared
MIN_SHARE = 0.1  # a cluster uses a topic if its share is at least this large, and at least as large as in all rows
MAX_LABELS = 60

Check = tuple[str, str]  # "fine", "care" or "note", and a sentence

EQUAL_BOUNDS = 1.0  # nats within which two starts count as equally good
MIN_DIVERSITY = 0.5
AGREEMENT = ((0.9, "very well"), (0.6, "well"), (0.2, "partly"))  # smallest adjusted Rand index, and adverb
MAX_EPOCHS = 200  # in the table below the curve
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 220, 112, 12, 12, 36  # size and margins of the curve, in SVG units

PACKAGES = ("mmpca", "numpy", "scipy", "scikit-learn", "numba")
PAPER = (
    "N. Jouvin, P. Latouche, C. Bouveyron, G. Bataillon, A. Livartowski (2021): Greedy clustering of count data "
    "through a mixture of multinomial PCA. Computational Statistics 36, 1\N{EN DASH}33."
)
DOI = "10.1007/s00180-020-01008-9"

_CONVERGED = {
    "cvem": "no row fits another cluster better, given the current clusters",
    "vbem": "another iteration would not raise the bound",
}


def report_contents(
    context: Context, margins: Margins | None, search: Any, title: str | None, *, served: bool = False
) -> dict[str, Any]:
    """Return the variables of the report template; a served page leaves searching to the server."""
    model = context.model
    # Coherence compares features, so there must be two of them.
    has_quality = context.X is not None and context.is_fitted_data and model.n_features_in_ > 1
    quality = summarize(model, context.X) if has_quality else None
    rows = [] if margins is None else representative_rows(context, margins)
    choice, labels = describe_choice(search), label_table(context)
    clusters = cluster_cards(context, margins, quality)
    on_page = {row.number for row in rows}
    return {
        "title": heading(title),
        "served": served,
        "model": model,
        "summary": summary_sentences(context, margins, choice, labels),
        "checks": fit_checks(model, quality),
        "counts": describe_counts(context),
        "clusters": clusters,
        "topics": topic_cards(context, quality),
        "rows": rows,
        "n_rows": context.n_rows,
        "labels": labels,
        "curve": bound_curve(model),
        "choice": choice,
        **provenance(model),
        "own_topics": has_own_topics(clusters),
        "data": {
            "rows": script_rows(context, margins, on_page),
            "onPage": sorted(on_page),
            "topics": {cluster.number: cluster.topics for cluster in clusters},
            "names": [cluster.name for cluster in clusters],
            "words": script_words(context),
        },
    }


def heading(title: str | None) -> str:
    """Return the heading of the page."""
    return "Clusters of count data" if title is None else clean(title)


# --- clusters, topics and labels --------------------------------------------------------------------------------


class FeatureShare(NamedTuple):
    """A feature in a cluster or topic: its share there, and the ratio of that to its share of all counts."""

    name: str
    share: float
    lift: float


class ClusterCard(NamedTuple):
    """One cluster."""

    number: int
    name: str
    n_rows: int
    weight: float
    overdispersion: float
    verdicts: dict[str, float] | None  # share of its rows with each verdict
    labels: list[tuple[str, float]]  # most frequent known labels of its rows, with their share
    certainty: float | None  # mean probability of its rows
    shares: list[float]  # of each topic
    topics: list[int]  # that it uses, largest share first
    features: list[FeatureShare]


class TopicCard(NamedTuple):
    """One topic."""

    number: int
    name: str
    weight: float
    coherence: float | None
    clusters: list[tuple[int, float]]  # that use it, and its share in each, largest first
    features: list[FeatureShare]


class LabelTable(NamedTuple):
    """Number of rows of each known label in each cluster."""

    lines: list[tuple[str, int, list[int]]]  # label, its rows, its rows in each cluster
    rand_index: float
    n_left_out: int


def cluster_cards(context: Context, margins: Margins | None, quality: Summary | None) -> list[ClusterCard]:
    """Return the clusters, with the features that distinguish each one."""
    model, shown = context.model, in_counts(context.model)
    overall = shown.overall
    sizes = np.bincount(context.clusters, minlength=len(model.weights_))
    used, known = used_topics(model), leading_labels(context)
    verdicts = None if margins is None else np.array(margins.verdict)
    leading = [
        _features(context, found.leading(N_FEATURES), profile, overall)
        for found, profile in zip(cluster_features(model), shown.profiles, strict=True)
    ]
    return [
        ClusterCard(
            number=q,
            name=context.cluster_names[q],
            n_rows=int(sizes[q]),
            weight=float(model.weights_[q]),
            overdispersion=float(model.cluster_overdispersion_[q]),
            verdicts=None
            if verdicts is None or sizes[q] == 0
            else {name: float(np.mean(verdicts[context.clusters == q] == name)) for name in VERDICTS},
            labels=known[q],
            certainty=None if quality is None else float(quality.certainty[q]),
            shares=shown.cluster_topics[q].tolist(),
            topics=used[q],
            features=features,
        )
        for q, features in enumerate(leading)
    ]


def leading_labels(context: Context) -> list[list[tuple[str, float]]]:
    """Return the most frequent known labels of each cluster with the share of its rows, largest first."""
    n_clusters = len(context.model.weights_)
    if context.labels is None:
        return [[] for _ in range(n_clusters)]
    names, codes = np.unique(np.array(context.labels, dtype=object), return_inverse=True)
    found = []
    for q in range(n_clusters):
        counts = np.bincount(codes[context.clusters == q], minlength=len(names))
        top = np.argsort(-counts, kind="stable")[:N_LABELS]
        found.append([(clean(names[c]), float(counts[c] / counts.sum())) for c in top.tolist() if counts[c]])
    return found


def has_own_topics(clusters: list[ClusterCard]) -> bool:
    """Return True if every cluster is made up mostly of a topic that no other cluster is made up of."""
    largest = [(max(cluster.shares), cluster.topics[0]) for cluster in clusters]
    n_topics = len(clusters[0].shares)
    is_own = len({topic for _, topic in largest}) == len(clusters) == n_topics > 1
    return is_own and min(largest)[0] >= OWN_TOPIC


def script_words(context: Context) -> dict[str, Any]:
    """Return the features that some ranking of a cluster puts first, with their shares, for the script of the page.

    The relevance of a feature to a cluster is a weighted mean of the logarithms of its share and of its lift (Sievert
    and Shirley 2014). Features of a single row are left out: lift alone would put them first. Shares are in millionths.
    """
    shown = in_counts(context.model)
    profiles, overall = shown.profiles, shown.overall  # (Q, V), (V,)
    usable = overall > 0
    if context.X is not None:
        usable &= np.bincount(context.X.indices, minlength=len(overall)) > 1
    log_shares = np.log(np.maximum(profiles, 1e-300))
    log_lifts = log_shares - np.log(np.maximum(overall, 1e-300))
    n_each = max(1, min(N_WORDS, MAX_WORDS // len(profiles)))
    own: list[list[int]] = []
    for q in range(len(profiles)):
        ranked: set[int] = set()
        for weight in (0.0, 0.3, 0.6, 1.0):
            score = np.where(usable, weight * log_shares[q] + (1 - weight) * log_lifts[q], -np.inf)
            top = np.argsort(-score, kind="stable")[:n_each]
            ranked |= set(top[np.isfinite(score[top]) & (profiles[q, top] > 0)].tolist())
        own.append(sorted(ranked))
    features = sorted(set().union(*own))
    place = {v: number for number, v in enumerate(features)}
    millionths = np.round(1e6 * profiles[:, features], 2)
    return {
        "name": [clean(context.feature_name(v)) for v in features],
        "overall": np.round(1e6 * overall[features], 2).tolist(),
        "own": [[place[v] for v in ranked] for ranked in own],
        # Shares in the other clusters as well, unless there are too many.
        "share": [
            row.tolist() if len(profiles) <= MAX_COMPARED else row[[place[v] for v in own[q]]].tolist()
            for q, row in enumerate(millionths)
        ],
    }


def topic_cards(context: Context, quality: Summary | None) -> list[TopicCard]:
    """Return the topics, with the features that distinguish each one."""
    model, shown = context.model, in_counts(context.model)
    shares, used = shown.cluster_topics, used_topics(model)
    weights, overall = model.weights_ @ shares, shown.overall  # (K,), (V,)
    return [
        TopicCard(
            number=k,
            name=context.topic_names[k],
            weight=float(weights[k]),
            coherence=None if quality is None else float(quality.npmi[k]),
            clusters=[(int(q), float(shares[q, k])) for q in np.argsort(-shares[:, k]) if k in used[q]],
            features=_features(context, found.leading(N_FEATURES), topic, overall),
        )
        for k, (topic, found) in enumerate(zip(shown.topics, topic_features(model), strict=True))
    ]


def used_topics(model: MMPCA) -> list[list[int]]:
    """Return the topics that each cluster uses, largest share first; every cluster uses at least one."""
    shares = in_counts(model).cluster_topics
    least = np.maximum(MIN_SHARE, model.weights_ @ shares - 1e-9)  # (K,); tolerates rounding of equal shares
    order = np.argsort(-shares, axis=1, kind="stable")
    used = [[int(k) for k in order[q] if shares[q, k] >= least[k]] for q in range(len(shares))]
    return [topics or [int(order[q, 0])] for q, topics in enumerate(used)]


def label_table(context: Context) -> LabelTable | None:
    """Return the table of known labels and clusters, largest labels first; None without labels."""
    if context.labels is None:
        return None
    names, codes = np.unique(np.array(context.labels, dtype=object), return_inverse=True)
    table = np.zeros((len(names), len(context.model.weights_)), dtype=int)
    np.add.at(table, (codes, context.clusters), 1)
    totals = table.sum(axis=1)
    order = np.argsort(-totals, kind="stable")[:MAX_LABELS]
    lines = [(clean(names[c]), int(totals[c]), table[c].tolist()) for c in order]
    return LabelTable(lines, float(adjusted_rand_score(codes, context.clusters)), len(names) - len(order))


def _lift(profile: Array, overall: Array) -> Array:
    """Return the lift of each feature, 1 for features that never occur; (V,)."""
    lift: Array = np.divide(profile, overall, out=np.ones_like(profile), where=(overall > 0) & (profile > 0))
    return lift


def _features(context: Context, features: list[int], profile: Array, overall: Array) -> list[FeatureShare]:
    """Return some features of a cluster or topic; profile, overall: (V,)."""
    lift = _lift(profile, overall)
    return [FeatureShare(clean(context.feature_name(v)), float(profile[v]), float(lift[v])) for v in features]


# --- summary and checks -----------------------------------------------------------------------------------------


def summary_sentences(
    context: Context, margins: Margins | None, choice: GridSummary | None, labels: LabelTable | None
) -> list[str]:
    """Return a short summary of the results."""
    model = context.model
    sentences = [
        f"{count(context.n_rows, 'row')} with counts of {count(model.n_features_in_, 'feature')} are grouped into "
        f"{count(len(model.weights_), 'cluster')} that share {count(len(model.components_), 'topic')}.",
        _sizes(context),
    ]
    if margins is not None:
        shares = {verdict: margins.verdict.count(verdict) / context.n_rows for verdict in VERDICTS}
        if shares["clear"] == 1:
            sentences.append("All rows clearly belong to their cluster.")
        else:
            clear, likely, borderline = (percent(share) for share in shares.values())
            sentences.append(
                f"{clear} of the rows clearly belong to their cluster, {likely} probably do, and {borderline} are "
                "borderline cases."
            )
    if choice is not None:
        sentences.append(f"A search over several numbers of clusters and topics favored {choice.reason}")
        if choice.best != (len(model.weights_), len(model.components_)):
            sentences.append("Note that this page shows a different model from the one that the search favored.")
    if labels is not None:
        adverb = next((adverb for least, adverb in AGREEMENT if labels.rand_index >= least), "only weakly")
        sentences.append(
            f"The clusters agree {adverb} with the known labels (adjusted Rand index {decimals(labels.rand_index, 2)}, "
            "where 1 is perfect agreement and 0 is chance)."
        )
    if not context.is_fitted_data:
        sentences.append("The rows on this page are not those that were fitted; their clusters are predictions.")
    return sentences


def fit_checks(model: MMPCA, quality: Summary | None) -> list[Check]:
    """Return the results of the checks of the fit."""
    checks = [_check_convergence(model), _check_starts(model), _check_dispersion(model)]
    return checks if quality is None else [*checks, _check_diversity(quality)]


def _sizes(context: Context) -> str:
    sizes = np.bincount(context.clusters, minlength=len(context.model.weights_))
    largest, smallest = int(sizes.argmax()), int(sizes.argmin())
    if sizes[largest] == sizes[smallest]:
        return "All clusters have the same number of rows." if len(sizes) > 1 else "There is only one cluster."
    return (
        f"The largest is cluster {largest} with {count(int(sizes[largest]), 'row')}; the smallest is cluster "
        f"{smallest} with {count(int(sizes[smallest]), 'row')}."
    )


def _check_convergence(model: MMPCA) -> Check:
    epochs = count(model.n_epochs_, "epoch")
    if not model.converged_:
        return "care", (
            f"The search stopped after {epochs}, before it converged. A fit with a larger max_epochs may find better "
            "clusters."
        )
    reason = _CONVERGED.get(model.algorithm, "moving any single row to another cluster would not raise the bound")
    return "fine", f"The search converged after {epochs}: {reason}."


def _check_starts(model: MMPCA) -> Check:
    bounds = np.array([start.bound for start in model.starts_])
    if len(bounds) < 2:
        return "note", "The search had a single start, so it is unknown whether other starts lead to the same clusters."
    n_equal = int((bounds >= bounds.max() - EQUAL_BOUNDS).sum())
    if n_equal == 1:
        others = "The other start" if len(bounds) == 2 else f"None of the other {len(bounds) - 1} starts"
        verb = "did not reach" if len(bounds) == 2 else "reached"
        return "care", f"{others} {verb} the bound of the best one. More starts may find better clusters."
    return "fine", f"{n_equal} of {len(bounds)} starts reached the best bound (to within {EQUAL_BOUNDS:g} nat)."


def _check_dispersion(model: MMPCA) -> Check:
    index = float(model.overdispersion_)
    if np.isnan(index):
        return "note", "There are too few rows to compare how much counts vary with what the model expects."
    if (warning := advice_on(model)) is not None:
        return "care", warning
    how_much = f"Within clusters, counts vary {index:.2f} times as much as the model expects (ideally 1)."
    return "note" if index > LARGE_INDEX else "fine", how_much


def _check_diversity(quality: Summary) -> Check:
    distinct = f"{percent(quality.diversity)} of the 25 leading features of each topic are distinct"
    if quality.diversity >= MIN_DIVERSITY:
        return "fine", f"The topics differ: {distinct}."
    return "care", (
        f"The topics share many features: only {distinct}. Features that occur in all rows lead several topics; look "
        "at the lift to see what distinguishes them."
    )


# --- data, choice and history -----------------------------------------------------------------------------------


class Curve(NamedTuple):
    """The bound after each epoch, as the points of an SVG drawing."""

    points: list[tuple[float, float]]
    y_ticks: list[tuple[float, str]]
    x_ticks: list[tuple[float, str]]
    table: list[tuple[int, str, str]]  # epoch, bound, increase
    n_left_out: int
    size: tuple[int, int, int, int, int] = (WIDTH, HEIGHT, LEFT, RIGHT, BOTTOM)


class GridSummary(NamedTuple):
    """How the numbers of clusters and topics were chosen."""

    reason: str
    criterion: str
    n_clusters: list[int]
    # For each number of topics, a cell for each number of clusters: nats below the best, and closeness to it from 0 to
    # 1; None where there is no fit.
    lines: list[tuple[int, list[list[float] | None]]]
    best: tuple[int, int]
    wins: list[tuple[int, int, float]]


def describe_counts(context: Context) -> dict[str, Any] | None:
    """Return facts about the counts, and findings with a remedy each; None without data."""
    if context.X is None:
        return None
    # New rows may be fewer than the clusters, which is nothing to report.
    n_clusters = min(len(context.model.weights_), context.n_rows)
    counts = as_counts(context.X, empty_rows="allow")
    found = inspect_counts(counts, n_clusters=n_clusters, n_topics=len(context.model.components_))
    smallest, median, largest = found.row_totals
    facts = [
        ("Rows", f"{found.n_rows:,}"),
        ("Features", f"{found.n_features:,}"),
        ("Total count", f"{found.total:,}, in {percent(found.density)} of the table's cells"),
        ("Counts per row", f"{smallest:,} to {largest:,}, with a median of {median:,.0f}"),
        ("Largest count", f"{found.largest_count:,}"),
        ("Variation before clustering", f"{number(found.overdispersion)} times that expected if all rows were alike"),
    ]
    # The checks report overdispersion within clusters, which is what matters after a fit.
    return {"facts": facts, "findings": [finding for finding in found.findings if finding.code != "overdispersion"]}


def describe_choice(search: MMPCASearch | Mapping[str, ArrayLike] | None) -> GridSummary | None:
    """Return how a fitted search, or a table of its results, chose the numbers of clusters and topics."""
    if search is None:
        return None
    results, used = getattr(search, "results_", search), getattr(search, "criterion", None)
    if not isinstance(results, Mapping):
        raise TypeError(f"search must be a fitted MMPCASearch or its results_, but is a {type(search).__name__}.")
    criterion, n_clusters, n_topics, behind = shortfall(results, used, name="search")
    table = {name: np.asarray(column) for name, column in results.items()}
    # Not always the best value: resamples may not find all of its clusters again.
    best = int(np.asarray(table["chosen"], dtype=float).argmax()) if "chosen" in table else int(behind.argmin())
    # A few nats decide, yet distant cells are thousands behind; a logarithmic scale shows both.
    closeness = 1 - np.log1p(behind) / (np.log1p(behind).max() or 1.0)
    cells = {(int(q), int(k)): cell for q, k, *cell in zip(n_clusters, n_topics, behind, closeness, strict=True)}
    columns = np.unique(n_clusters).tolist()
    wins = np.asarray(table.get("wins", np.zeros(len(behind))), dtype=float)
    return GridSummary(
        reason=getattr(search, "reason_", None) or reason(table, criterion),
        criterion=criterion,
        n_clusters=columns,
        lines=[(k, [cells.get((q, k)) for q in columns]) for k in np.unique(n_topics).tolist()],
        best=(int(n_clusters[best]), int(n_topics[best])),
        wins=[(int(n_clusters[c]), int(n_topics[c]), float(wins[c])) for c in np.argsort(-wins) if wins[c] > 0],
    )


def bound_curve(model: MMPCA) -> Curve:
    """Return the bound after each epoch of the best start."""
    bounds = np.asarray(model.bound_history_, dtype=float)
    low, high = float(bounds.min()), float(bounds.max())
    height, n_steps = HEIGHT - BOTTOM - TOP, max(len(bounds) - 1, 1)
    x = LEFT + (WIDTH - LEFT - RIGHT) * np.arange(len(bounds)) / n_steps
    y = TOP + height * (high - bounds) / (high - low or 1.0)
    increases = ["", *(f"+{max(step, 0.0):,.1f}" for step in np.diff(bounds).tolist())]
    shown = range(min(len(bounds), MAX_EPOCHS))
    return Curve(
        points=list(zip(x.tolist(), y.tolist(), strict=True)),
        y_ticks=[(float(TOP), decimals(high))] + ([(float(TOP + height), decimals(low))] if high > low else []),
        x_ticks=[
            (float(x[epoch]), str(epoch)) for epoch in np.unique(np.linspace(0, len(x) - 1, 5).round().astype(int))
        ],
        table=[(epoch, decimals(float(bounds[epoch])), increases[epoch]) for epoch in shown],
        n_left_out=len(bounds) - len(shown),
    )


# --- provenance -------------------------------------------------------------------------------------------------


def provenance(model: MMPCA) -> dict[str, Any]:
    """Return parameters, versions and citation."""
    return {
        "parameters": [(name, _in_words(value)) for name, value in model.get_params(deep=False).items()],
        "versions": [("Python", platform.python_version()), *((name, version(name)) for name in PACKAGES)],
        "paper": PAPER,
        "doi": DOI,
    }


def _in_words(value: Any) -> str:
    """Return the value of a parameter as text; arrays and generators are only described."""
    if value is None or isinstance(value, str | int | float | np.number):
        return clean(value)
    if isinstance(value, np.random.RandomState):
        return "a random number generator"
    return f"an array of shape {np.shape(value)}"
