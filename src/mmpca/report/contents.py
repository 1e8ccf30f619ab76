"""The contents of the page: clusters, topics and labels; summary, checks, data, search and provenance."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from mmpca.counts import as_counts
from mmpca.evaluation import Summary, summarize
from mmpca.evaluation.partitions import DISSOLVED, STABLE
from mmpca.model import MMPCA
from mmpca.model.dispersion import LARGE_INDEX, advice_on, in_counts
from mmpca.model.explanation import VERDICTS
from mmpca.model.inspection import inspect_counts
from mmpca.model.results import Words, cluster_features, relevance, topic_features
from mmpca.plots.selection import shortfall
from mmpca.plots.style import LABEL_COLORS, PAGE_COLORS
from mmpca.report.charts import (
    Dots,
    NumberCurves,
    Splits,
    Strip,
    bound_curve,
    certainty_strip,
    compare_numbers,
    draw_splits,
    marker_dots,
    merge_tree,
)
from mmpca.report.context import (
    FEATURE_NAME_LENGTH,
    TEXT_SIZE,
    Context,
    Margins,
    feature_descriptions,
    in_reader_words,
    packed,
    representative_rows,
    script_rows,
)
from mmpca.report.formatting import clean, count, decimals, isolated, number, percent
from mmpca.selection import MMPCASearch
from mmpca.selection.criteria import reason

Array = NDArray[np.float64]

N_FEATURES = 10
WEIGHT = 0.3  # initial position of the page's slider: weight of the share; the lift has the rest
MAX_PARTS = 6  # known labels drawn in the strip of a cluster; the rest is left gray
OWN_TOPIC = 0.8  # share of its largest topic from which a cluster is said to have a topic of its own
N_WORDS, MAX_WORDS = 25, 1500  # features of each cluster that each ranking contributes, and of all clusters
MAX_COMPARED = 40  # clusters up to which any two can be compared
MIN_SHARE = 0.1  # a cluster uses a topic if its share is at least this large, and at least as large as in all rows
MAX_LABELS = 60

Check = tuple[str, str]  # "fine", "care" or "note", and a sentence

DEFAULT_WORDS = Words()
EQUAL_BOUNDS = 1.0  # nats within which two starts count as equally good
MIN_DIVERSITY = 0.5
AGREEMENT = ((0.9, "very well"), (0.6, "well"), (0.2, "partly"))  # smallest adjusted Rand index, and adverb
STABILITY = ((STABLE, "stable"), (DISSOLVED, "doubtful"), (0.0, "dissolved"))  # smallest similarity in refits
IN_REFITS = {"stable": "found again in refits", "doubtful": "partly found again", "dissolved": "not found again"}
GOLDEN_ANGLE = 137.5  # between hues, if there are more clusters or labels than colors in the palette
MAX_NAMED = 6  # clusters listed in a sentence of the summary
MAX_ALSO = 40  # clusters up to which the page shows which other clusters their rows could belong to

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
    context: Context,
    margins: Margins | None,
    search: Any,
    title: str | None,
    *,
    served: bool = False,
    edits: bool = False,
    positions: Array | None = None,
    text_size: int = TEXT_SIZE,
) -> dict[str, Any]:
    """Return the variables of the report template.

    A served page leaves searching to the server; `positions` places its rows on the map.
    """
    model = context.model
    # Coherence compares features, so there must be two of them.
    has_quality = context.X is not None and context.is_fitted_data and model.n_features_in_ > 1
    quality = summarize(model, context.X) if has_quality else None
    rows = [] if margins is None else representative_rows(context, margins)
    history = getattr(model, "search_", None)
    choice = describe_choice(history if search is None else search, model, context.words)
    labels, tree = label_table(context), merge_tree(model)
    bounds = np.asarray(model.bound_history_ if history is None else history["bounds"], dtype=float)
    dots = marker_dots(context, tree.order)
    n_labels = 0 if context.labels is None else len(set(context.labels))
    colors = {"cluster": palette(len(model.weights_)), "label": palette(n_labels, LABEL_COLORS)}
    clusters, topics = cluster_cards(context, margins, quality), topic_cards(context, quality)
    on_page = {row.number for row in rows}
    script = script_rows(context, margins, on_page, None if served else text_size, positions)
    words = script_words(context)
    named = _named_features(script, words, model.n_features_in_)
    on_cards = [feature.number for card in clusters for feature in card.features]
    on_cards += [feature.number for card in topics for feature in card.features]
    return {
        "title": heading(title, context.words),
        "served": served,
        "noun": context.words,
        "model": model,
        "summary": summary_sentences(context, margins, choice, labels, has_own_topics(clusters)),
        "certainty": count_verdicts(margins),
        "checks": [
            (level, in_reader_words(sentence, context.words))
            for level, sentence in fit_checks(model, quality, context.words)
        ],
        "counts": describe_counts(context),
        "clusters": clusters,
        "topics": topics,
        "rows": rows,
        "has_margins": margins is not None,
        "n_rows": context.n_rows,
        "labels": labels,
        "curve": bound_curve(bounds),
        "choice": choice,
        **provenance(model),
        "own_topics": has_own_topics(clusters),
        "tree": tree,
        "dots": dots,
        "also": also_table(margins, clusters),
        "relevance": WEIGHT,
        "colors": colors["cluster"],
        "in_refits": IN_REFITS,
        "label_colors": colors["label"],
        "line_colors": ("var(--accent)", *PAGE_COLORS[1:6]),
        "data": {
            "rows": script,
            "served": served,
            "edits": edits,
            "noun": {name: getattr(context.words, name) for name in ("row", "rows", "feature", "features")},
            "topics": {cluster.number: cluster.topics for cluster in clusters},
            "names": [cluster.name for cluster in clusters],
            "colors": colors,
            "features": [clean(context.feature_name(v), FEATURE_NAME_LENGTH) for v in named],
            "about": feature_descriptions(context, [*named, *on_cards]),
            "words": words,
            "tables": script_tables(context, margins, clusters, dots, choice, bounds),
        },
    }


def script_tables(
    context: Context,
    margins: Margins | None,
    clusters: list[ClusterCard],
    dots: Dots | None,
    choice: GridSummary | None,
    bounds: Array,
) -> dict[str, list[list[Any]]]:
    """Return the values behind the figures, as tables that readers can save; the first line is the header."""
    n_labels = max(len(cluster.labels) for cluster in clusters)
    levels = np.linspace(0, 1, 11)
    head = ["cluster", context.words.rows, "mean_probability", *VERDICTS, "stability", "stability_verdict"]
    head += [f"certainty_quantile_{level:.1f}" for level in levels] if margins is not None else []
    head += [f"{name}_{n + 1}" for n in range(n_labels) for name in ("label", "share_of_label")]
    lines: list[list[Any]] = []
    for cluster in clusters:
        verdicts, members = cluster.verdicts or {}, context.clusters == cluster.number
        line: list[Any] = [
            cluster.number,
            cluster.n_rows,
            cluster.certainty,
            *(verdicts.get(name) for name in VERDICTS),
        ]
        line += [cluster.stability, cluster.stability_verdict]
        if margins is not None:
            line += np.quantile(margins.certainty[members], levels).tolist() if members.any() else [None] * len(levels)
        for n in range(n_labels):
            line += cluster.labels[n][:2] if n < len(cluster.labels) else (None, None)
        lines.append(line)
    tables: dict[str, list[list[Any]]] = {
        "clusters": [head, *lines],
        "bound": [["epoch", "bound"], *map(list, enumerate(bounds.tolist()))],
    }
    if dots is not None:
        of_feature = [f"share_of_{context.words.rows}", "relative_frequency"]
        tables["dots"] = [["cluster", context.words.feature, *of_feature]] + [
            [q, name, *values] for q, cells in dots.lines for name, values in zip(dots.features, cells, strict=True)
        ]
    if choice is not None:
        for chart in choice.charts:
            head = [f"{chart.noun}s", "line", "below_the_best", "standard_error"]
            tables[f"numbers-{chart.noun}"] = [head, *map(list, chart.table)]
        if choice.splits is not None:
            head = ["clusters", "cluster", "next_clusters", "next_cluster", context.words.rows]
            tables["splits"] = [head, *map(list, choice.splits.table)]
    return {name: [[_short(value) for value in line] for line in table] for name, table in tables.items()}


def _short(value: Any) -> Any:
    """Round a number in a table to six significant digits below 1, otherwise to three decimals; None becomes empty."""
    if not isinstance(value, float):
        return "" if value is None else value
    return float(f"{value:.6g}") if abs(value) < 1 else round(value, 3)


def _named_features(rows: dict[str, Any], words: dict[str, Any], n_features: int) -> list[int]:
    """Return the features named in the page's script, and replace them there, in place, by positions among these."""
    named = sorted({*words.pop("features"), *np.unique(rows.get("features", [])).tolist()})
    place = np.zeros(n_features, dtype=np.intp)
    place[named] = np.arange(len(named))
    words["own"] = [place[own].tolist() for own in words["own"]]
    if "features" in rows:
        rows["features"] = packed(place[rows["features"]])
    return named


def heading(title: str | None, words: Words) -> str:
    """Return the heading of the page."""
    return f"Clusters of {words.rows}" if title is None else clean(title)


# --- clusters, topics and labels --------------------------------------------------------------------------------


class FeatureShare(NamedTuple):
    """A feature in a cluster or topic: its share there, and the ratio of that to its share of all counts."""

    number: int
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
    labels: list[tuple[str, float, int]]  # most frequent known labels of its rows, with their share and number
    certainty: float | None  # mean probability of its rows
    stability: float | None  # similarity to its match in refits
    stability_verdict: str
    strip: Strip | None
    also: list[tuple[int, float]]  # other clusters that its rows could belong to, with their mean probability
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
    refits = getattr(model, "cluster_stability_", np.full(len(sizes), np.nan)) if context.is_fitted_data else None
    leading = [
        _features(context, _relevant(found, profile, overall), profile, overall)
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
            stability=None if refits is None or np.isnan(refits[q]) else float(refits[q]),
            stability_verdict="" if refits is None else judge_stability(float(refits[q])),
            strip=None if margins is None else certainty_strip(margins, np.flatnonzero(context.clusters == q)),
            also=[] if margins is None or not sizes[q] else _also(margins.also[q], q),
            shares=shown.cluster_topics[q].tolist(),
            topics=used[q],
            features=features,
        )
        for q, features in enumerate(leading)
    ]


def _relevant(found: Any, profile: Array, overall: Array) -> list[int]:
    """Return the features that the slider of the page lists first: the most relevant ones."""
    score = np.where(found.can_lead & (overall > 0), relevance(profile, _lift(profile, overall), WEIGHT), -np.inf)
    top = np.argsort(-score, kind="stable")[:N_FEATURES]
    listed: list[int] = top[np.isfinite(score[top])].tolist()
    return listed or found.leading(N_FEATURES)


def _also(probabilities: Array, own: int) -> list[tuple[int, float]]:
    """Return the most probable other clusters; those with less than half a percent are left out."""
    order = np.argsort(-probabilities, kind="stable")
    return [(int(q), float(probabilities[q])) for q in order if q != own and probabilities[q] >= 0.005][:3]


def judge_stability(similarity: float) -> str:
    """Return the verdict on a cluster whose match in refits has this Jaccard similarity; nothing for NaN.

    Examples
    --------
    >>> [judge_stability(value) for value in (0.9, 0.6, 0.2, float("nan"))]
    ['stable', 'doubtful', 'dissolved', '']
    """
    if np.isnan(similarity):
        return ""
    return next(verdict for least, verdict in STABILITY if similarity >= least)


def also_table(margins: Margins | None, clusters: list[ClusterCard]) -> list[tuple[ClusterCard, list[float]]] | None:
    """Return the probability of each cluster among the rows of each cluster; None without data or with too many."""
    if margins is None or not 1 < len(clusters) <= MAX_ALSO:
        return None
    return [(cluster, line) for cluster, line in zip(clusters, margins.also.tolist(), strict=True)]


def palette(n: int, colors: Sequence[str] = PAGE_COLORS) -> list[str]:
    """Return a color for each of n clusters or labels, as CSS; the page also uses them on the map."""
    if n <= len(colors):
        return list(colors[:n])
    return [f"hsl({i * GOLDEN_ANGLE % 360:g} 65% var(--light))" for i in range(n)]


def count_verdicts(margins: Margins | None) -> dict[str, float] | None:
    """Return the share of all rows with each verdict; None without data."""
    if margins is None:
        return None
    return {name: margins.verdict.count(name) / len(margins.verdict) for name in VERDICTS}


def leading_labels(context: Context) -> list[list[tuple[str, float, int]]]:
    """Return the most frequent known labels of each cluster with the share of its rows, largest first."""
    if context.labels is None:
        return [[] for _ in context.model.weights_]
    names, table, _ = _count_labels(context)
    top = np.argsort(-table, axis=0, kind="stable")[:MAX_PARTS]  # (labels, Q)
    return [
        [(clean(names[c]), float(counts[c] / counts.sum()), c) for c in leading if counts[c]]
        for counts, leading in zip(table.T, top.T.tolist(), strict=True)
    ]


def _count_labels(context: Context) -> tuple[NDArray[Any], NDArray[np.intp], NDArray[np.intp]]:
    """Return the known labels, the number of rows of each in each cluster, and the code of each row's label."""
    names, codes = np.unique(np.array(context.labels, dtype=object), return_inverse=True)
    table = np.zeros((len(names), len(context.model.weights_)), dtype=np.intp)
    np.add.at(table, (codes, context.clusters), 1)
    return names, table, codes


def has_own_topics(clusters: list[ClusterCard]) -> bool:
    """Return True if every cluster is made up mostly of a topic that no other cluster is made up of."""
    largest = [(max(cluster.shares), cluster.topics[0]) for cluster in clusters]
    n_topics = len(clusters[0].shares)
    is_own = len({topic for _, topic in largest}) == len(clusters) == n_topics > 1
    return is_own and min(largest)[0] >= OWN_TOPIC


def script_words(context: Context) -> dict[str, Any]:
    """Return the features that some ranking of a cluster puts first, with their shares, for the script of the page.

    Features of a single row are left out: lift alone would put them first. Shares are in millionths.
    """
    shown = in_counts(context.model)
    profiles, overall = shown.profiles, shown.overall  # (Q, V), (V,)
    usable = overall > 0
    if context.X is not None:
        usable &= np.bincount(context.X.indices, minlength=len(overall)) > 1
    n_each = max(1, min(N_WORDS, MAX_WORDS // len(profiles)))
    own: list[list[int]] = []
    for q in range(len(profiles)):
        ranked: set[int] = set()
        for weight in (0.0, 0.3, 0.6, 1.0):
            score = np.where(usable, relevance(profiles[q], _lift(profiles[q], overall), weight), -np.inf)
            top = np.argsort(-score, kind="stable")[:n_each]
            ranked |= set(top[np.isfinite(score[top])].tolist())
        own.append(sorted(ranked))
    is_compared = len(profiles) <= MAX_COMPARED
    millionths = 1e6 * profiles
    return {
        "features": set().union(*own),
        "own": own,
        "overall": [packed(1e6 * overall[ranked], "f4") for ranked in own],
        # Shares in the other clusters as well, unless there are too many.
        "share": [
            [packed(row[ranked], "f4") for row in (millionths if is_compared else millionths[[q]])]
            for q, ranked in enumerate(own)
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
    names, table, codes = _count_labels(context)
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
    return [FeatureShare(v, clean(context.feature_name(v)), float(profile[v]), float(lift[v])) for v in features]


# --- summary and checks -----------------------------------------------------------------------------------------


def summary_sentences(
    context: Context,
    margins: Margins | None,
    choice: GridSummary | None,
    labels: LabelTable | None,
    own_topics: bool,
) -> list[str]:
    """Return a short summary of the results."""
    model, noun = context.model, context.words
    features, n_topics = count(model.n_features_in_, noun.feature), len(model.components_)
    sentences = [
        f"{count(context.n_rows, noun.row)} {'is' if context.n_rows == 1 else 'are'} grouped into "
        f"{count(len(model.weights_), 'cluster')}{_sizes(context)} by their counts of {features}."
    ]
    if n_topics > 1:
        how = f"the {noun.rows} of a cluster mix these topics in similar proportions"
        sentences.append(
            f"{noun.features.capitalize()} that tend to occur together form {count(n_topics, 'topic')}; "
            f"{'each cluster has its own topic' if own_topics else how}."
        )
    if margins is not None:
        sentences += _unstable(context, is_resampled=choice is not None and choice.is_resampled)
    if choice is not None:
        sentences.append(
            f"A search over several numbers of clusters and topics favored {_first_sentence(choice.reason)}"
        )
        if choice.best != (len(model.weights_), len(model.components_)):
            sentences.append("Note that this page shows a different model from the one that the search favored.")
        sentences += choice.edges
    if labels is not None:
        sentences.append(_agreement(context, labels))
    if not context.is_fitted_data:
        sentences.append(
            f"The {noun.rows} on this page are not those that were fitted; their clusters are predictions."
        )
    return sentences


def _first_sentence(text: str) -> str:
    """Return the first sentence of a text.

    Examples
    --------
    >>> _first_sentence("3 topics, by 2.5 units. More do no harm.")
    '3 topics, by 2.5 units.'
    """
    return text.split(". ")[0].removesuffix(".") + "."


def _agreement(context: Context, labels: LabelTable) -> str:
    """Return a sentence on how well the clusters agree with the known labels."""
    names, table, _ = _count_labels(context)
    n_same = int(table.max(axis=0).sum())
    adverb = next((adverb for least, adverb in AGREEMENT if labels.rand_index >= least), "only weakly")
    spread = [name for name, own in zip(names, table, strict=True) if 2 * own.max() < own.sum()]  # no cluster has most
    which = isolated(clean(spread[0])) if len(spread) == 1 else f"{len(spread)} labels"
    verb = "is" if len(spread) == 1 else "are"
    return (
        f"The clusters agree {adverb} with the known labels: {percent(n_same / context.n_rows)} of the "
        f"{context.words.rows} have the most frequent label of their cluster"
        f"{f', and {which} {verb} spread over several clusters' if spread else ''} (adjusted Rand index "
        f"{decimals(labels.rand_index, 2)}; 1 is perfect, 0 is chance)."
    )


def _unstable(context: Context, *, is_resampled: bool) -> list[str]:
    """Return a sentence on the stability of the clusters in refits, or on the lack of refits."""
    found = getattr(context.model, "cluster_stability_", None)
    if not context.is_fitted_data or (found is None and is_resampled):  # the reason for the choice covers this
        return []
    if found is None:
        return [f"It is unknown whether fits to random subsets of the {context.words.rows} find these clusters again."]
    verdicts = [judge_stability(float(value)) for value in found]
    if all(verdict == "stable" for verdict in verdicts):
        return [f"Fits to random subsets of the {context.words.rows} find all clusters again."]
    stable, doubtful, dissolved = (
        _listed([q for q, own in enumerate(verdicts) if own == name]) for _, name in STABILITY
    )
    subsets = f"Fits to random subsets of the {context.words.rows}"
    if not stable and not doubtful:
        return [f"{subsets} find none of the clusters again; do not rely on them."]
    parts = [f"{names} {how}" for names, how in ((stable, "again"), (doubtful, "only in part")) if names]
    lost = f", but not {dissolved}; do not rely on {'it' if dissolved.startswith('cluster ') else 'these'}"
    return [f"{subsets} find {', '.join(parts)}{lost if dissolved else ''}."]


def _listed(clusters: list[int]) -> str:
    """Return a phrase that lists the clusters; "" for none."""
    if not clusters:
        return ""
    if len(clusters) > MAX_NAMED:
        return f"{len(clusters)} clusters"
    if len(clusters) == 1:
        return f"cluster {clusters[0]}"
    return f"clusters {', '.join(map(str, clusters[:-1]))} and {clusters[-1]}"


def fit_checks(model: MMPCA, quality: Summary | None, noun: Words) -> list[Check]:
    """Return the results of the checks of the fit."""
    checks = [_check_convergence(model), _check_starts(model), _check_dispersion(model)]
    return checks if quality is None else [*checks, _check_diversity(quality, noun)]


def _sizes(context: Context) -> str:
    """Return a phrase for the sizes of the clusters, such as " of 20 to 35 rows"."""
    sizes = np.bincount(context.clusters, minlength=len(context.model.weights_))
    if len(sizes) == 1:
        return ""
    smallest, largest = int(sizes.min()), int(sizes.max())
    if smallest == largest:
        return f" of {count(largest, context.words.row)} each"
    return f" of {smallest:,} to {count(largest, context.words.row)}"


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
    if len(bounds) < 2 and model.starts_[0].kind == "shares":
        return "fine", (
            "The search started from the clusters that were found when the number of clusters was chosen. Those had "
            "been fitted from several starts."
        )
    if len(bounds) < 2:
        return "note", "The search had a single start, so it is unknown whether other starts lead to the same clusters."
    n_equal = int((bounds >= bounds.max() - EQUAL_BOUNDS).sum())
    if n_equal == 1:
        others = "The other start" if len(bounds) == 2 else f"None of the other {len(bounds) - 1} starts"
        verb = "did not reach" if len(bounds) == 2 else "reached"
        return "care", f"{others} {verb} the bound of the best one. More starts may find better clusters."
    return "fine", f"{n_equal} of {len(bounds)} starts reached the best bound (up to rounding)."


def _check_dispersion(model: MMPCA) -> Check:
    index = float(model.overdispersion_)
    if np.isnan(index):
        return "note", "There are too few rows to compare how much counts vary with what the model expects."
    if (warning := advice_on(model)) is not None:
        return "care", warning
    how_much = f"Within clusters, counts vary {index:.2f} times as much as the model expects (ideally 1)."
    return "note" if index > LARGE_INDEX else "fine", how_much


def _check_diversity(quality: Summary, noun: Words) -> Check:
    distinct = f"{percent(quality.diversity)} of the 25 leading {noun.features} of each topic are distinct"
    if quality.diversity >= MIN_DIVERSITY:
        return "fine", f"The topics differ: {distinct}."
    return "care", (
        f"The topics share many {noun.features}: only {distinct}. Those that occur in all {noun.rows} lead several "
        "topics; look at the lift to see what distinguishes them."
    )


# --- data, choice and history -----------------------------------------------------------------------------------


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
    edges: list[str]  # warnings about numbers at the edge of those that were tried
    charts: list[NumberCurves]
    splits: Splits | None
    is_resampled: bool  # whether subsets of the rows were clustered again


def describe_counts(context: Context) -> dict[str, Any] | None:
    """Return facts about the counts, and findings with a remedy each; None without data."""
    if context.X is None:
        return None
    # New rows may be fewer than the clusters, which is nothing to report.
    n_clusters = min(len(context.model.weights_), context.n_rows)
    counts = as_counts(context.X, empty_rows="allow")
    found = inspect_counts(counts, n_clusters=n_clusters, n_topics=len(context.model.components_))
    smallest, median, largest = found.row_totals
    noun = context.words
    facts = [
        (f"Number of {noun.rows}", f"{found.n_rows:,}"),
        (f"Number of {noun.features}", f"{found.n_features:,}"),
        ("Total count", f"{found.total:,}, in {percent(found.density)} of the table's cells"),
        (f"Counts per {noun.row}", f"{smallest:,} to {largest:,}, with a median of {median:,.0f}"),
        ("Largest count", f"{found.largest_count:,}"),
        (
            "Variation before clustering",
            f"{number(found.overdispersion)} times that expected if all {noun.rows} were alike",
        ),
    ]
    # The checks report overdispersion within clusters, which is what matters after a fit.
    findings = [
        finding._replace(message=in_reader_words(finding.message, noun), remedy=in_reader_words(finding.remedy, noun))
        for finding in found.findings
        if finding.code != "overdispersion"
    ]
    return {"facts": facts, "findings": findings}


def describe_choice(
    search: MMPCASearch | Mapping[str, Any] | None, model: MMPCA | None = None, words: Words = DEFAULT_WORDS
) -> GridSummary | None:
    """Return how a fitted search, a table of its results, or the record in its best model chose the numbers."""
    if search is None:
        return None
    best_model = getattr(search, "best_estimator_", None)
    record = getattr(best_model, "search_", None) or (search if isinstance(search, Mapping) else None)
    if record is None:
        raise TypeError(f"search must be a fitted MMPCASearch or its results_, but is a {type(search).__name__}.")
    is_record = "results" in record
    results = record["results"] if is_record else record
    criterion, n_clusters, n_topics, behind = shortfall(
        results, record["criterion"] if is_record else None, name="search"
    )
    table = {name: np.asarray(column) for name, column in results.items()}
    # Not always the best value: resamples may not find all of its clusters again.
    best = int(np.asarray(table["chosen"], dtype=float).argmax()) if "chosen" in table else int(behind.argmin())
    # A few nats decide, yet distant cells are thousands behind; a logarithmic scale shows both.
    closeness = 1 - np.log1p(behind) / (np.log1p(behind).max() or 1.0)
    cells = {(int(q), int(k)): cell for q, k, *cell in zip(n_clusters, n_topics, behind, closeness, strict=True)}
    columns = np.unique(n_clusters).tolist()
    wins = np.asarray(table.get("wins", np.zeros(len(behind))), dtype=float)
    chosen = (int(n_clusters[best]), int(n_topics[best]))
    by_topics = {name: np.asarray(column) for name, column in record["topics"].items()} if is_record else {}
    most = (np.inf, np.inf) if model is None else (len(model.labels_), model.n_features_in_)
    splits = draw_splits(record["splits"], chosen[0]) if is_record else None
    if splits is not None:
        splits = splits._replace(sentences=[in_reader_words(sentence, words) for sentence in splits.sentences])
    return GridSummary(
        reason=in_reader_words(record["reason"] if is_record else reason(table, criterion), words),
        criterion=criterion,
        n_clusters=columns,
        lines=[(k, [cells.get((q, k)) for q in columns]) for k in np.unique(n_topics).tolist()],
        best=chosen,
        wins=[(int(n_clusters[c]), int(n_topics[c]), float(wins[c])) for c in np.argsort(-wins) if wins[c] > 0],
        edges=[
            *_edge("cluster", chosen[0], n_clusters[n_topics == chosen[1]], most[0]),
            *_edge("topic", chosen[1], by_topics.get("n_topics", n_topics), most[1]),
        ],
        charts=_choice_charts(table, by_topics, n_clusters, n_topics, behind),
        splits=splits,
        is_resampled=bool(np.nanmax(np.asarray(table.get("n_resamples", [0]), dtype=float), initial=0) > 0),
    )


def _edge(noun: str, chosen: int, tried: NDArray[Any], most: float) -> list[str]:
    """Return a warning if a number is the largest or the smallest that was tried, and others are possible."""
    numbers = np.unique(tried)
    if len(numbers) < 2 or (numbers[0] < chosen < numbers[-1]) or chosen in (1, most):
        return []
    which, more = ("largest", "more") if chosen == numbers[-1] else ("smallest", "fewer")
    return [
        f"{count(chosen, noun)} is the {which} number that was tried, so {more} {noun}s may fit better: search again "
        f"with {more}."
    ]


def _choice_charts(
    table: Mapping[str, NDArray[Any]],
    by_topics: Mapping[str, NDArray[Any]],
    n_clusters: Any,
    n_topics: Any,
    behind: Array,
) -> list[NumberCurves]:
    """Return curves over numbers of clusters and topics, with standard errors where they are known."""
    charts = []
    none = np.zeros(len(behind))
    errors, of_clusters = (np.asarray(table.get(f"{of}_error", none), dtype=float) for of in ("predictive", "shares"))
    if len(np.unique(n_clusters)) > 1:
        lines = {
            count(int(k), "topic"): (
                n_clusters[n_topics == k],
                behind[n_topics == k],
                of_clusters[n_topics == k],
            )
            for k in np.unique(n_topics)
        }
        charts.append(compare_numbers("cluster", lines))
    if len(by_topics.get("n_topics", ())) > 1:
        loss = by_topics["loss"] - by_topics["loss"].min()
        charts.append(compare_numbers("topic", {"held-out data": (by_topics["n_topics"], loss, by_topics["error"])}))
    elif len(np.unique(n_topics)) > 1:
        known = np.unique(n_topics)
        least = np.array([behind[n_topics == k].min() for k in known])
        error = np.array([errors[n_topics == k].max() for k in known])
        charts.append(compare_numbers("topic", {"best number of clusters": (known, least, error)}))
    return charts


# --- provenance -------------------------------------------------------------------------------------------------


def provenance(model: MMPCA) -> dict[str, Any]:
    """Return parameters, versions and citation."""
    found = "found by the search" if hasattr(model, "search_") else None
    return {
        "parameters": [
            (name, found if found and name in ("topics", "start") else _in_words(value))
            for name, value in model.get_params(deep=False).items()
        ],
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
