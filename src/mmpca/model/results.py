r"""Results as tables, and the names of clusters and topics.

**Distinctive features.** One measure ranks the features of clusters and topics in all names, tables, figures and
pages. It is the log-odds ratio of a feature in a group against all other rows, divided by its standard error, with an
informative Dirichlet prior (Monroe, Colaresi and Quinn: Fightin' Words. Political Analysis, 2008). With y counts of
feature v among the n of the group, :math:`y'` among the :math:`n'` elsewhere, and a prior of :math:`a = n p_v` counts,
as many as the group has and composed like all rows,

.. math:: \delta_v = \log\frac{y + a}{2n - y - a} - \log\frac{y' + a}{n' + n - y' - a},
          \qquad \mathrm{se}_v^2 = \frac{1}{r + b} + \frac{1}{r' + b}.

The occurrences of a feature in one row are not independent of each other, so the standard error counts the rows r and
:math:`r'` in which the feature occurs instead of its occurrences, with the prior b in the same proportion to a. If no
feature occurs twice in a row, these are the formulas of the paper. A feature found in a single row of a cluster says
nothing about the other rows, so it is never listed unless there is nothing else.

**Typical rows.** The evidence of a row for its cluster is the mean over its counts of :math:`\log((1 + l_{qv}) / 2)`,
where :math:`l_{qv}` is the lift of the feature, its share in the cluster divided by its share in all rows. Few features
say little, so the mean is shrunk toward that of the cluster: a row with the median number of features goes half way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mmpca.errors import warn
from mmpca.io import CountTable
from mmpca.model import explanation, outliers, prediction
from mmpca.model.dispersion import in_counts

if TYPE_CHECKING:
    from mmpca.counts import Counts
    from mmpca.model.estimator import MMPCA

Array = NDArray[np.float64]
Columns = dict[str, list[Any]]

LEAST_Z = 1.0  # of a feature that is called distinctive
N_NAMING, MOST_NAMING = 3, 6  # features that make an automatic name, and at most if two would be equal
RELEVANCE_WEIGHT = 0.6  # of the log share, the rest of the log lift (Sievert and Shirley: LDAvis, 2014)
SMALLEST = np.finfo(np.float64).tiny
NO_CLUSTER = -1  # of rows without counts


# --- distinctive features ---------------------------------------------------------------------------------------


class FeatureMeasures(NamedTuple):
    """How much each feature distinguishes a cluster or a topic; all arrays have shape (V,).

    Attributes
    ----------
    counts, n_rows : array
        Occurrences in the group, and its rows with the feature; fractional for topics.
    share, lift : array
        Share of the group's counts, and the ratio of that to the share of all counts.
    log_odds, std_error : array
        Log-odds ratio against all other rows, and its standard error; 0 and infinity for features that never occur.
    can_lead : array of bool
        False for features found in a single row.
    """

    counts: Array
    n_rows: Array
    share: Array
    lift: Array
    log_odds: Array
    std_error: Array
    can_lead: NDArray[np.bool_]

    @property
    def z(self) -> Array:
        """The log-odds ratio in standard errors."""
        z: Array = self.log_odds / self.std_error
        return z

    def leading(self, n_features: int | None = None) -> list[int]:
        """Return the features more frequent here than elsewhere by over one standard error, most distinctive first.

        If there are none, as with a single cluster, these are the most frequent ones.
        """
        z = self.z
        for score, least, is_allowed in (
            (z, LEAST_Z, self.can_lead),
            (self.share, 0.0, self.can_lead),
            (self.share, 0.0, True),
        ):
            order = np.lexsort((-self.share, -score))
            listed: list[int] = order[((score > least) & is_allowed)[order]][:n_features].tolist()
            if listed:
                return listed
        return []


def relevance(share: Array, lift: Array, weight: float = RELEVANCE_WEIGHT) -> Array:
    """Return a compromise between the logarithms of share and lift (Sievert and Shirley: LDAvis, 2014).

    The weight is that of the share; a feature without counts has a relevance of minus infinity.

    Examples
    --------
    >>> relevance(np.array([0.5, 0.1, 0.0]), np.array([1.0, 4.0, 0.0]), weight=0.5).round(2)
    array([-0.35, -0.46,  -inf])
    """
    compromise = weight * np.log(np.maximum(share, SMALLEST)) + (1 - weight) * np.log(np.maximum(lift, SMALLEST))
    return np.where(share > 0, compromise, -np.inf)


def measure(counts: Array, n_rows: Array, all_counts: Array, all_rows: Array, can_lead: Any = True) -> FeatureMeasures:
    """Compare the features of a group, (V,), with those of all rows, (V,).

    Examples
    --------
    >>> import numpy as np
    >>> group, every = np.array([8.0, 2.0, 5.0]), np.array([9.0, 20.0, 21.0])
    >>> found = measure(group, group, every, every)
    >>> found.leading(), found.z.round(1)
    ([0], array([ 3.2, -2.3, -0.8]))
    """
    total, all_total = float(counts.sum()), float(all_counts.sum())
    occurs = all_counts > 0
    overall = all_counts / all_total
    share = counts / total if total else np.zeros_like(counts)
    lift = np.divide(share, overall, out=np.zeros_like(share), where=occurs)
    prior = total * overall
    # The group has n counts and n further ones by the prior; all others have N - n and n further ones.
    inside, outside = counts + prior, all_counts - counts + prior
    varies = occurs & (all_counts < all_total) & (total > 0)  # a single feature has no odds
    log_odds = np.where(varies, _log_odds(inside, 2 * total) - _log_odds(outside, all_total), 0.0)
    prior_rows = np.divide(prior * all_rows, all_counts, out=np.zeros_like(prior), where=occurs)
    inverse = [np.divide(1.0, n, out=np.full_like(n, np.inf), where=n > 0)
               for n in (n_rows + prior_rows, all_rows - n_rows + prior_rows)]  # fmt: skip
    std_error = np.sqrt(inverse[0] + inverse[1])
    return FeatureMeasures(counts, n_rows, share, lift, log_odds, std_error, np.broadcast_to(can_lead, share.shape))


def _log_odds(counts: Array, total: float) -> Array:
    odds: Array = np.log(np.maximum(counts, SMALLEST)) - np.log(np.maximum(total - counts, SMALLEST))
    return odds


def cluster_features(model: MMPCA) -> Iterator[FeatureMeasures]:
    """Yield the measures of each cluster, in original counts."""
    counts, n_rows = model.cluster_counts_, _row_counts(model)  # (Q, V)
    all_counts, all_rows = counts.sum(axis=0), n_rows.sum(axis=0)
    for own, own_rows, size in zip(counts, n_rows, model.cluster_sizes, strict=True):
        yield measure(own, own_rows, all_counts, all_rows, (own_rows if size > 1 else all_rows) >= 2)


def topic_features(model: MMPCA) -> Iterator[FeatureMeasures]:
    r"""Yield the measures of each topic, in original counts.

    The counts of cluster q are divided among the topics in proportion to :math:`\theta_{qk} \beta_{kv}`.
    """
    counts, n_rows = model.cluster_counts_, _row_counts(model)  # (Q, V)
    all_counts, all_rows = counts.sum(axis=0), n_rows.sum(axis=0)
    divided = np.zeros((2, *model.components_.shape))  # counts and rows of the topics, (2, K, V)
    for theta, *of_cluster in zip(model.cluster_topics_, counts, n_rows, strict=True):
        joint = theta[:, None] * model.components_  # (K, V)
        total = joint.sum(axis=0)
        joint = np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)
        for of_topics, values in zip(divided, of_cluster, strict=True):
            of_topics += joint * values
    for own, own_rows in zip(*divided, strict=True):
        yield measure(own, own_rows, all_counts, all_rows, all_rows >= 2)


MEASURES = {"cluster": cluster_features, "topic": topic_features}


def _row_counts(model: MMPCA) -> Array:
    """Return the number of rows of each cluster with each feature, (Q, V)."""
    known = getattr(model, "cluster_row_counts_", None)
    if known is None:  # a file of an older version: at most as many rows as occurrences
        return np.minimum(model.cluster_counts_, model.cluster_sizes[:, None])
    return cast("Array", known.astype(np.float64))


# --- names ------------------------------------------------------------------------------------------------------

_UNCHANGED = ("species", "series", "sheep", "fish", "taxa", "people")  # nouns that are their own plural


class Words(NamedTuple):
    """The reader's words for a row and a feature, in the singular, such as article and word, or site and species."""

    row: str = "row"
    feature: str = "feature"

    @property
    def rows(self) -> str:
        """The plural of `row`."""
        return plural(self.row)

    @property
    def features(self) -> str:
        """The plural of `feature`."""
        return plural(self.feature)


TEXT_WORDS = Words("text", "word")


def plural(noun: str) -> str:
    """Return the plural of an English noun.

    Examples
    --------
    >>> [plural(noun) for noun in ("row", "species", "study", "survey", "batch", "tax")]
    ['rows', 'species', 'studies', 'surveys', 'batches', 'taxes']
    """
    if noun.lower().split()[-1:] and noun.lower().split()[-1] in _UNCHANGED:
        return noun
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "z", "ch", "sh")) else f"{noun}s"


def words_of(model: MMPCA) -> Words:
    """Return the nouns for rows and features of a model, set by :meth:`ResultTables.rename`."""
    words: Words = getattr(model, "_words", Words())
    return words


def feature_names(model: MMPCA) -> list[str]:
    """Return the names of the features, or "feature 7" and so on."""
    known, noun = getattr(model, "feature_names_in_", None), words_of(model).feature
    return [f"{noun} {v}" for v in range(model.n_features_in_)] if known is None else [str(name) for name in known]


def group_names(model: MMPCA, kind: str) -> NDArray[np.object_]:
    """Return the names of all clusters or topics: given ones, or else their three most distinctive features.

    If two automatic names would be equal, further features tell them apart, or else their numbers.
    """
    known, given = feature_names(model), given_names(model, kind)
    features = [[known[v] for v in own.leading(MOST_NAMING)] for own in MEASURES[kind](model)]
    names = [given.get(at) or ", ".join(own[:N_NAMING]) for at, own in enumerate(features)]
    for n in range(N_NAMING + 1, MOST_NAMING + 1):
        for at in _repeated(names, given):
            names[at] = ", ".join(features[at][:n])
    for at in _repeated(names, given):
        names[at] += f" ({kind} {at})"
    found = np.empty(len(names), dtype=object)
    found[:] = names
    return found


def _repeated(names: Sequence[str], given: Mapping[int, str]) -> set[int]:
    """Return the numbers of automatic names that are not unique."""
    times = Counter(names)
    return {at for at, name in enumerate(names) if at not in given and times[name] > 1}


def given_names(model: MMPCA, kind: str) -> dict[int, str]:
    """Return the names that :meth:`ResultTables.rename` gave to clusters or topics, by number."""
    names: dict[int, str] = getattr(model, f"_{kind}_names", {})
    return names


def set_names(model: MMPCA, clusters: Mapping[int, str | None] | None, topics: Mapping[int, str | None] | None) -> None:
    """Name clusters and topics, in place; see :meth:`ResultTables.rename`."""
    changed = {}
    for kind, given in (("cluster", clusters or {}), ("topic", topics or {})):
        if not isinstance(given, Mapping):
            raise TypeError(
                f"New names of {kind}s must be a mapping from numbers to names, such as {{3: 'rugby'}}, but it is a "
                f"{type(given).__name__}. To name all of them, pass dict(enumerate(names))."
            )
        names, n = dict(given_names(model, kind)), _n(model, kind)
        for number, name in given.items():
            if isinstance(number, bool) or not isinstance(number, int | np.integer) or not 0 <= number < n:
                raise ValueError(f"There is no {kind} {number!r}; {kind}s are numbered from 0 to {n - 1}.")
            if name is None:
                names.pop(int(number), None)
                continue
            if not isinstance(name, str) or not name.strip():
                raise ValueError(f"The name of {kind} {number} must be a string or None, but it is {name!r}.")
            names[int(number)] = name
        changed[kind] = names
    for kind, names in changed.items():  # only now, so that an error changes nothing
        model.__dict__.pop(f"_{kind}_names", None)
        if names:
            model.__dict__[f"_{kind}_names"] = dict(sorted(names.items()))


def shown_names(model: MMPCA, kind: str) -> list[str]:
    """Return the names of all clusters or topics; without names of features, given names or empty ones."""
    if hasattr(model, "feature_names_in_"):
        names: list[str] = group_names(model, kind).tolist()
        return names
    return [given_names(model, kind).get(at, "") for at in range(_n(model, kind))]


def headings(model: MMPCA, kind: str) -> list[str]:
    """Return the numbers of all clusters or topics, with their names."""
    return [f"{at}: {name}" if name else str(at) for at, name in enumerate(shown_names(model, kind))]


def _n(model: MMPCA, kind: str) -> int:
    return len(model.weights_ if kind == "cluster" else model.components_)


# --- rows -------------------------------------------------------------------------------------------------------


class RowResults(NamedTuple):
    """The clusters of rows, and how certain they are; all arrays have shape (N,).

    Attributes
    ----------
    clusters : array of int
        Of the fit for the fitted rows, predicted for others.
    probability : array
        Of this cluster.
    runner_up : array of int
        The most probable other cluster, -1 if there is none.
    margin : array
        Log-odds of the cluster against the runner-up in nats.
    totals : array of int
        Counts of the row.
    fitted : array of int
        Its fitted label, -1 if it was not fitted.
    """

    clusters: NDArray[np.int32]
    probability: Array
    runner_up: NDArray[np.int32]
    margin: Array
    totals: NDArray[np.int64]
    fitted: NDArray[np.int32]

    @property
    def margin_per_count(self) -> Array:
        """The margin divided by the total of the row, which can be compared between short and long rows."""
        return np.divide(self.margin, self.totals, out=np.full(len(self.margin), np.nan), where=self.totals > 0)


def row_results(model: MMPCA, counts: Counts) -> RowResults:
    """Return the clusters of rows and how certain they are, as in :meth:`mmpca.MMPCA.explain`."""
    rows = model.units.convert(counts)
    fitted = explanation.fitted_labels(rows, model)
    clusters, runner_up = np.empty(rows.n_rows, np.int32), np.full(rows.n_rows, -1, np.int32)
    probability, margin = np.empty(rows.n_rows), np.empty(rows.n_rows)
    for part, joint in prediction.joint_in_blocks(rows, prediction.scores_of(model.mixture()), fitted):
        joint /= model.temperature_  # (n, Q)
        every, own = np.arange(len(joint)), fitted[part]
        own = clusters[part] = np.where(own == explanation.NOT_FITTED, joint.argmax(axis=1), own)
        probability[part] = prediction.own_probability(prediction.posterior(joint), own)
        of_own = joint[every, own]
        joint[every, own] = -np.inf
        if joint.shape[1] > 1:
            runner_up[part] = joint.argmax(axis=1)
        margin[part] = of_own - joint.max(axis=1)
    return RowResults(clusters, probability, runner_up, margin, counts.row_totals(), fitted)


def typical_rows(model: MMPCA, counts: Counts, clusters: NDArray[Any], n_rows: int) -> list[list[int]]:
    """Return the rows of each cluster that are most typical of it, best first; clusters: (N,)."""
    sizes = np.diff(counts.indptr)
    found: list[list[int]] = []
    for q, own in enumerate(cluster_features(model)):
        evidence = np.where(own.can_lead, np.log((1 + own.lift) / 2), 0.0)  # (V,)
        members = np.flatnonzero((clusters == q) & (sizes > 0))
        if not len(members):
            found.append([])
            continue
        rows = counts.take(members)
        means, weights = rows.to_csr() @ evidence / rows.row_totals(), sizes[members]
        prior = np.median(weights)
        typical = (weights * means + prior * means.mean()) / (weights + prior)
        found.append(members[np.argsort(-typical, kind="stable")[:n_rows]].tolist())
    return found


def row_names_of(X: Any, given: Sequence[object] | NDArray[Any] | None, n_rows: int) -> list[Any]:
    """Return the names of rows: those given, those of a table, the index of a data frame, or numbers from 0."""
    if given is None and isinstance(X, CountTable):
        given = X.row_names
    if given is None and hasattr(X, "columns") and hasattr(X, "index"):
        given = X.index
    if given is None and type(X).__module__.partition(".")[0] == "xarray":
        given = X.indexes.get(X.dims[0])
    if given is None:
        return list(range(n_rows))
    if len(given) != n_rows:
        raise ValueError(f"row_names must have one entry for each of the {n_rows:,} rows, but has {len(given):,}.")
    return np.asarray(given, dtype=object).tolist()


def positions(rows: Any, names: Sequence[object]) -> list[Any]:
    """Return the positions of rows; integers are positions already, and texts are names.

    Examples
    --------
    >>> positions(["b", 0], ["a", "b"])
    [1, 0]
    """
    wanted = list(np.atleast_1d(np.asarray(rows, dtype=object)))
    texts = [row for row in wanted if isinstance(row, str)]
    if not texts:
        return wanted
    at: dict[str, int] = {}
    repeated = set[str]()
    for i, name in enumerate(map(str, names)):
        if at.setdefault(name, i) != i:
            repeated.add(name)
    for row in texts:
        if row not in at or row in repeated:
            problem = "several rows are" if row in repeated else "no row is"
            raise ValueError(f"{problem} named {row!r}. Pass positions, or names of rows such as {str(names[0])!r}.")
    return [at[row] if isinstance(row, str) else row for row in wanted]


# --- tables -----------------------------------------------------------------------------------------------------


def as_frame(columns: Columns, backend: str) -> Any:
    """Return columns as a data frame of pandas or polars."""
    if backend == "pandas":
        try:
            import pandas as pd
        except ImportError:
            raise ImportError('Tables need pandas: pip install "mmpca[tables]". Or pass backend="polars".') from None
        return pd.DataFrame(columns)
    if backend == "polars":
        try:
            import polars as pl
        except ImportError:
            raise ImportError('backend="polars" needs polars: pip install polars') from None
        return pl.DataFrame(columns, strict=False)
    raise ValueError(f"backend must be 'pandas' or 'polars', but is {backend!r}.")


def cluster_columns(
    model: MMPCA, representatives: Sequence[Sequence[Any]] | None, stability: Any, n_features: int
) -> Columns:
    """Return the table of clusters."""
    known, sizes = feature_names(model), model.cluster_sizes
    columns: Columns = {
        "cluster": list(range(len(sizes))),
        "name": group_names(model, "cluster").tolist(),
        "size": sizes.tolist(),
        "share": (sizes / sizes.sum()).tolist(),
    }
    stability = getattr(model, "cluster_stability_", None) if stability is None else stability
    if stability is not None:
        columns["stability"] = np.asarray(getattr(stability, "clusters", stability), dtype=float).tolist()
    columns["features"] = [[known[v] for v in own.leading(n_features)] for own in cluster_features(model)]
    if representatives is not None:
        columns["representative_rows"] = [list(rows) for rows in representatives]
    return columns


def row_columns(model: MMPCA, found: RowResults, names: Sequence[Any], outlier_scores: Array) -> Columns:
    """Return the table of rows; those without counts are in no cluster."""
    filled = found.totals > 0
    clusters = np.where(filled, found.clusters, NO_CLUSTER)
    return {
        "row": list(names),
        "cluster": clusters.tolist(),
        "cluster_name": names_of_clusters(model, clusters),
        "probability": np.where(filled, found.probability, np.nan).tolist(),
        "runner_up": [None if q < 0 else q for q in np.where(filled, found.runner_up, -1).tolist()],
        "margin": np.where(filled, found.margin, np.nan).tolist(),
        "margin_per_count": found.margin_per_count.tolist(),
        "outlier_score": np.where(filled, outlier_scores, np.nan).tolist(),
    }


def names_of_clusters(model: MMPCA, clusters: Iterable[int]) -> list[str | None]:
    """Return the name of the cluster of each row; None for rows in no cluster."""
    names = [*group_names(model, "cluster"), None]  # NO_CLUSTER is the last
    return [names[q] for q in clusters]


def topic_columns(model: MMPCA, n_features: int) -> Columns:
    """Return the table of topics."""
    known, measures = feature_names(model), list(topic_features(model))
    totals, shares = np.array([own.counts.sum() for own in measures]), in_counts(model).cluster_topics
    return {
        "topic": list(range(len(measures))),
        "name": group_names(model, "topic").tolist(),
        "share": (totals / totals.sum()).tolist(),
        "features": [[known[v] for v in own.leading(n_features)] for own in measures],
        "largest_in": shares.argmax(axis=0).tolist(),
    }


def feature_columns(model: MMPCA, n_features: int | None) -> Columns:
    """Return the table of the features of all clusters, then of all topics."""
    known = feature_names(model)
    lines: list[tuple[Any, ...]] = []
    listed: list[int] = []  # the feature of each line
    for kind, measures in MEASURES.items():
        names = group_names(model, kind)
        for number, own in enumerate(measures(model)):
            order = np.lexsort((-own.share, -own.z)).tolist() if n_features is None else own.leading(n_features)
            arrays = (
                own.counts,
                own.n_rows,
                own.share,
                own.lift,
                relevance(own.share, own.lift),
                own.log_odds,
                own.std_error,
                own.z,
            )
            lines += [(kind, number, names[number], known[v], *(float(values[v]) for values in arrays)) for v in order]
            listed += order
    columns = ("kind", "number", "name", "feature", "count", "rows", "share", "lift", "relevance", "log_odds",
               "std_error", "z")  # fmt: skip
    table = {name: [line[at] for line in lines] for at, name in enumerate(columns)}
    for title, descriptions in getattr(model, "feature_annotations_", {}).items():
        table[f"feature_{title}" if title in table else title] = [str(descriptions[v]) for v in listed]
    return table


def row_tables(model: MMPCA, X: Any, row_names: Any = None, n_rows: int = 3) -> tuple[Columns, list[list[Any]]]:
    """Return the table of rows, and the names of the most typical rows of each cluster."""
    counts = model._counts(X, reset=False)
    names, found = row_names_of(X, row_names, counts.n_rows), row_results(model, counts)
    scores = outliers.outlier_scores(model, counts, found.fitted, found.clusters)
    return row_columns(model, found, names, scores), _typical_names(model, counts, found, names, n_rows)


def typical_row_names(model: MMPCA, X: Any, row_names: Any, n_rows: int) -> list[list[Any]]:
    """Return the names of the most typical rows of each cluster."""
    counts = model._counts(X, reset=False)
    return _typical_names(model, counts, row_results(model, counts), row_names_of(X, row_names, counts.n_rows), n_rows)


def _typical_names(
    model: MMPCA, counts: Counts, found: RowResults, names: Sequence[Any], n_rows: int
) -> list[list[Any]]:
    # A row that another cluster explains better is not typical of its own.
    clusters = np.where(found.margin >= 0, found.clusters, -1)
    return [[names[i] for i in rows] for rows in typical_rows(model, counts, clusters, n_rows)]


class ResultTables:
    """The names and tables of a fitted MMPCA; see :class:`mmpca.MMPCA`."""

    @property
    def cluster_names_(self) -> NDArray[np.object_]:
        """Names of the clusters, (Q,): their three most distinctive features, or those given by :meth:`rename`."""
        check_is_fitted(self)
        return group_names(self._model, "cluster")

    @property
    def topic_names_(self) -> NDArray[np.object_]:
        """Names of the topics, (K,): their three most distinctive features, or those given by :meth:`rename`."""
        check_is_fitted(self)
        return group_names(self._model, "topic")

    @property
    def _model(self) -> MMPCA:
        return cast("MMPCA", self)

    def rename(
        self,
        clusters: Mapping[int, str | None] | None = None,
        topics: Mapping[int, str | None] | None = None,
        *,
        row: str | None = None,
        feature: str | None = None,
    ) -> Self:
        """Name clusters and topics, and choose the words for rows and features.

        The names appear in tables, figures, pages and files of labels, and are saved with the model.

        Parameters
        ----------
        clusters, topics : mapping of int to str, optional
            New names by number; None restores the automatic name. Others keep their names.
        row, feature : str, optional
            Words for a row and a feature in figures and pages, in the singular, such as "article" and "word", or
            "site" and "species".

        Returns
        -------
        self

        Warns
        -----
        UserWarning
            If two clusters, or two topics, have the same name afterwards.

        Examples
        --------
        >>> from mmpca import MMPCA
        >>> model = MMPCA(2, 2, random_state=0).fit([[5, 1, 0], [6, 1, 0], [0, 2, 7], [0, 1, 9]])
        >>> model.rename({int(model.labels_[0]): "rugby"}).cluster_names_[model.labels_].tolist()
        ['rugby', 'rugby', 'feature 2', 'feature 2']
        """
        check_is_fitted(self)
        for noun in (row, feature):
            if noun is not None and (not isinstance(noun, str) or not noun.strip()):
                raise ValueError(f"The word for a row or a feature must be a string, but it is {noun!r}.")
        set_names(self._model, clusters, topics)
        for kind in MEASURES:
            numbers: dict[str, list[str]] = {}
            for number, name in given_names(self._model, kind).items():
                numbers.setdefault(name, []).append(str(number))
            for name, equal in numbers.items():
                if len(equal) > 1:
                    text = f"The {kind}s {', '.join(equal)} have the same name, {name!r}. Use their numbers instead."
                    warn(text, UserWarning)
        before = words_of(self._model)
        words = Words(row or before.row, feature or before.feature)
        if words != before:
            self._words = words
        return self

    def keep_stability(self, found: Any) -> Self:
        """Store the result of refits in the model, which saves it.

        Afterwards, :meth:`explain` takes the refits into account: a row that often leaves its cluster is not called a
        clear member, however high its probability. Tables and pages show the stability of each cluster.

        Parameters
        ----------
        found : Stability
            From :func:`mmpca.evaluation.stability`, for the fitted rows.

        Returns
        -------
        self
            With `cluster_stability_` and `row_stability_`.

        Examples
        --------
        >>> from mmpca import MMPCA
        >>> from mmpca.evaluation import stability
        >>> from mmpca.simulate import paper_design
        >>> X = paper_design(n_samples=100, random_state=0).X
        >>> model = MMPCA(6, 4, n_init=1, random_state=0).fit(X)
        >>> model = model.keep_stability(stability(model, X, n_refits=2, random_state=0))
        >>> model.row_stability_.shape
        (100,)
        """
        check_is_fitted(self)
        clusters, rows = (np.asarray(values, dtype=np.float64) for values in (found.clusters, found.rows))
        expected = (len(self._model.weights_),), (len(self._model.labels_),)
        if (clusters.shape, rows.shape) != expected:
            raise ValueError(
                f"The refits are about {len(clusters)} clusters and {len(rows)} rows, but the model has "
                f"{expected[0][0]} and {expected[1][0]}. Pass the stability of this model."
            )
        self.cluster_stability_, self.row_stability_ = clusters, rows
        return self

    def name_features(self, names: Any) -> Self:
        """Name the features of a model that was fitted to a matrix without names.

        Parameters
        ----------
        names : array-like of str, shape (n_features,), fitted transformer or pipeline, or CountTable
            The names; or a transformer such as a `CountVectorizer`, whose output was fitted; or a pipeline whose last
            step is this model; or the table from :func:`mmpca.io.read_counts`, with annotations such as a taxonomy.

        Returns
        -------
        self
            With `feature_names_in_`, which tables, figures, pages and model files use.

        Examples
        --------
        >>> from sklearn.feature_extraction.text import CountVectorizer
        >>> from sklearn.pipeline import make_pipeline
        >>> from mmpca import MMPCA
        >>> pipeline = make_pipeline(CountVectorizer(), MMPCA(2, 2, random_state=0))
        >>> pipeline = pipeline.fit(["ham ham eggs", "eggs ham", "sun sea sun", "sea sun"])
        >>> pipeline[-1].name_features(pipeline).feature_names_in_.tolist()
        ['eggs', 'ham', 'sea', 'sun']
        """
        check_is_fitted(self)
        if hasattr(names, "steps") and len(names.steps) > 1 and names.steps[-1][1] is self:
            names = names[:-1]  # the transformers before this model
        if hasattr(names, "get_feature_names_out"):
            names = names.get_feature_names_out()
        annotations = None
        if isinstance(names, CountTable):
            names, annotations = (() if names.feature_names is None else names.feature_names), names.feature_annotations
        found, n_features = np.array([str(name) for name in names], dtype=object), self._model.n_features_in_
        if len(found) != n_features:
            raise ValueError(
                f"names must hold one name for each of the {n_features} features, but there are {len(found)}. Pass the "
                "names in the order of the columns of X."
            )
        self.feature_names_in_ = found
        self.__dict__.pop("feature_annotations_", None)
        if annotations:
            self.feature_annotations_ = annotations
        self._is_named_later = True
        return self

    def clusters_frame(
        self,
        X: Any = None,
        *,
        row_names: Sequence[object] | NDArray[Any] | None = None,
        stability: Any = None,
        n_features: int = 10,
        n_rows: int = 3,
        backend: str = "pandas",
    ) -> Any:
        """Return a table of the clusters.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features), optional
            Rows from which typical ones are chosen, usually those of the fit.
        row_names : sequence of length n_samples, optional
            Their names; by default the index of a data frame, or numbers from 0.
        stability : Stability or array of shape (n_clusters,), optional
            From :func:`mmpca.evaluation.stability`; adds a column. By default that of :meth:`keep_stability`.
        n_features, n_rows : int, default=10 and 3
            Maximum numbers of features and of typical rows to list.
        backend : {"pandas", "polars"}, default="pandas"
            Library of the table.

        Returns
        -------
        DataFrame
            Columns cluster, name, size, share, features (the most distinctive ones first, see :meth:`features_frame`)
            and, with X, representative_rows: the rows with the strongest evidence per count for their cluster.

        Examples
        --------
        >>> from mmpca import MMPCA
        >>> import pandas as pd
        >>> X = pd.DataFrame({"ham": [5, 6, 0, 0], "tea": [1, 1, 2, 1], "sun": [0, 0, 7, 9]}, index=list("abcd"))
        >>> table = MMPCA(2, 2, random_state=0).fit(X).clusters_frame(X, n_rows=1)
        >>> table.sort_values("name")[["name", "size", "features", "representative_rows"]].values.tolist()
        [['ham', 2, ['ham'], ['b']], ['sun', 2, ['sun'], ['d']]]
        """
        check_is_fitted(self)
        model = self._model
        representatives = None if X is None else typical_row_names(model, X, row_names, n_rows)
        return as_frame(cluster_columns(model, representatives, stability, n_features), backend)

    def rows_frame(
        self, X: Any, *, row_names: Sequence[object] | NDArray[Any] | None = None, backend: str = "pandas"
    ) -> Any:
        """Return a table of rows, with their clusters and how certain these are.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The fitted rows in their order, which keep their labels; or other rows, whose clusters are predicted.
        row_names : sequence of length n_samples, optional
            Their names; by default the index of a data frame, or numbers from 0.
        backend : {"pandas", "polars"}, default="pandas"
            Library of the table.

        Returns
        -------
        DataFrame
            Columns row, cluster, cluster_name, probability (as in :meth:`explain`), runner_up (the most probable
            other cluster), margin (the log-odds between the two, in nats), margin_per_count (the same divided by the
            total of the row, to compare rows whose probabilities are all close to 1) and outlier_score (the tail
            probability of :meth:`mmpca.MMPCA.outlier_scores`, small for rows that no cluster explains). Rows without
            counts are in no cluster: -1.

        Examples
        --------
        >>> from mmpca import MMPCA
        >>> X = [[5, 1, 0], [6, 1, 0], [0, 2, 7], [0, 1, 9]]
        >>> table = MMPCA(2, 2, random_state=0).fit(X).rows_frame(X, row_names=list("abcd"))
        >>> table["row"].tolist(), bool((table["margin"] > 0).all())
        (['a', 'b', 'c', 'd'], True)
        """
        check_is_fitted(self)
        return as_frame(row_tables(self._model, X, row_names)[0], backend)

    def topics_frame(self, *, n_features: int = 10, backend: str = "pandas") -> Any:
        """Return a table of the topics.

        Parameters
        ----------
        n_features : int, default=10
            Maximum number of features to list.
        backend : {"pandas", "polars"}, default="pandas"
            Library of the table.

        Returns
        -------
        DataFrame
            Columns topic, name, share (of all counts), features (the most distinctive ones first) and largest_in, the
            cluster with the largest share of the topic.

        Examples
        --------
        >>> from mmpca import MMPCA
        >>> model = MMPCA(2, 2, random_state=0).fit([[5, 1, 0], [6, 1, 0], [0, 2, 7], [0, 1, 9]])
        >>> model.topics_frame()["features"].sort_values().tolist()
        [['feature 0'], ['feature 2']]
        """
        check_is_fitted(self)
        return as_frame(topic_columns(self._model, n_features), backend)

    def features_frame(self, *, n_features: int | None = 10, backend: str = "pandas") -> Any:
        """Return a table of the most distinctive features of each cluster and each topic.

        Parameters
        ----------
        n_features : int or None, default=10
            Maximum number for each cluster and topic; None lists all features, the most distinctive ones first.
        backend : {"pandas", "polars"}, default="pandas"
            Library of the table.

        Returns
        -------
        DataFrame
            Columns kind ("cluster" or "topic"), number, name, feature, count, rows (of the group, with the feature; for
            a topic, count and rows are fractional), share (of the group's counts), lift (the share divided by that of
            all counts), relevance (0.6 log share + 0.4 log lift), log_odds (against all other rows, with an informative
            prior), std_error, and z, their ratio, which decides the order (:mod:`mmpca.model.results`); then those of
            `feature_annotations_`, such as taxonomy.

        Examples
        --------
        >>> from mmpca import MMPCA
        >>> model = MMPCA(2, 2, random_state=0).fit([[5, 1, 0], [6, 1, 0], [0, 2, 7], [0, 1, 9]])
        >>> table = model.features_frame(n_features=1)
        >>> table[["kind", "feature"]].sort_values(["kind", "feature"]).values.tolist()
        [['cluster', 'feature 0'], ['cluster', 'feature 2'], ['topic', 'feature 0'], ['topic', 'feature 2']]
        """
        check_is_fitted(self)
        return as_frame(feature_columns(self._model, n_features), backend)

    def clusters_over(
        self,
        values: Any,
        X: Any = None,
        *,
        bins: str | int | None = None,
        n_features: int = 5,
        level: float = 0.95,
        backend: str = "pandas",
    ) -> Any:
        """Return a table of the clusters over time or by group: sizes, topic shares and words, with intervals.

        :func:`mmpca.plots.clusters_over` draws it.

        Parameters
        ----------
        values : array-like of length n_samples
            Date, number or group of each row. Rows with a missing value are left out.
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features), optional
            The fitted rows in their order, for topic shares and words; or other rows, whose clusters are predicted.
        bins : str or int, optional
            For dates, a period of pandas: "D", "W", "M", "Q" or "Y"; values may then be texts such as "2024-03-01".
            By default the finest of these with at most 24 periods. For numbers, the number of bins with about equally
            many rows; by default each number is a group, or 10 bins if there are more than 24.
        n_features : int, default=5
            Maximum number of features to list.
        level : float, default=0.95
            Confidence level of the intervals, between 0 and 1.
        backend : {"pandas", "polars"}, default="pandas"
            Library of the table.

        Returns
        -------
        DataFrame
            Columns kind ("cluster" or, with X, "topic"), number, name, group, group_rows (rows of the group), size
            (rows of the cluster in the group, or counts of the topic), share (of the rows or counts of the group),
            lower and upper (of an interval of the share: Wilson's for clusters; for topics, from the variation between
            rows) and, with X, features: those more frequent in the cluster's rows of this group than in its other rows.

        Examples
        --------
        >>> from mmpca import MMPCA
        >>> X = [[5, 1, 0], [6, 1, 0], [0, 2, 7], [0, 1, 9]]
        >>> table = MMPCA(2, 2, random_state=0).fit(X).clusters_over([2023, 2023, 2023, 2024])
        >>> sorted(table.loc[table["group"] == 2023, "size"].tolist())
        [1, 2]
        """
        check_is_fitted(self)
        from mmpca.model import editing, groups  # these import this module

        options: dict[str, Any] = {"bins": bins, "n_features": n_features, "level": level}
        return as_frame(groups.over_columns(self._model, editing.in_order_of(values, X), X, **options), backend)
