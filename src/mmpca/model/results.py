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

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mmpca.model import explanation, prediction
from mmpca.model.dispersion import in_counts

if TYPE_CHECKING:
    from mmpca.counts import Counts
    from mmpca.model.estimator import MMPCA

Array = NDArray[np.float64]
Columns = dict[str, list[Any]]

LEAST_Z = 1.0  # of a feature that is called distinctive
N_NAMING = 3  # features that make an automatic name
RELEVANCE_WEIGHT = 0.6  # of the log share, the rest of the log lift (Sievert and Shirley: LDAvis, 2014)
SMALLEST = np.finfo(np.float64).tiny


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

    @property
    def relevance(self) -> Array:
        """A compromise between the logarithms of share and lift; minus infinity for features without counts."""
        share, lift = np.maximum(self.share, SMALLEST), np.maximum(self.lift, SMALLEST)
        relevance = RELEVANCE_WEIGHT * np.log(share) + (1 - RELEVANCE_WEIGHT) * np.log(lift)
        return np.where(self.counts > 0, relevance, -np.inf)

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
    for own, own_rows, size in zip(counts, n_rows, _sizes(model), strict=True):
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


def _sizes(model: MMPCA) -> NDArray[np.intp]:
    return np.bincount(model.labels_, minlength=len(model.weights_))


def _row_counts(model: MMPCA) -> Array:
    """Return the number of rows of each cluster with each feature, (Q, V)."""
    known = getattr(model, "cluster_row_counts_", None)
    if known is None:  # a file of an older version: at most as many rows as occurrences
        return np.minimum(model.cluster_counts_, _sizes(model)[:, None])
    return cast("Array", known.astype(np.float64))


# --- names ------------------------------------------------------------------------------------------------------


def feature_names(model: MMPCA) -> list[str]:
    """Return the names of the features, or "feature 7" and so on."""
    known = getattr(model, "feature_names_in_", None)
    return [f"feature {v}" for v in range(model.n_features_in_)] if known is None else [str(name) for name in known]


def group_names(model: MMPCA, kind: str) -> NDArray[np.object_]:
    """Return the names of all clusters or topics: given ones, or else their three most distinctive features."""
    known, given = feature_names(model), given_names(model, kind)
    measures = MEASURES[kind](model)
    names = [given.get(at) or ", ".join(known[v] for v in own.leading(N_NAMING)) for at, own in enumerate(measures)]
    found = np.empty(len(names), dtype=object)
    found[:] = names
    return found


def given_names(model: MMPCA, kind: str) -> dict[int, str]:
    """Return the names that :meth:`ResultTables.rename` gave to clusters or topics, by number."""
    names: dict[int, str] = getattr(model, f"_{kind}_names", {})
    return names


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
    """

    clusters: NDArray[np.int32]
    probability: Array
    runner_up: NDArray[np.int32]
    margin: Array
    totals: NDArray[np.int64]

    @property
    def margin_per_count(self) -> Array:
        """The margin divided by the total of the row, which can be compared between short and long rows."""
        return np.divide(self.margin, self.totals, out=np.full(len(self.margin), np.nan), where=self.totals > 0)


def score_rows(model: MMPCA, counts: Counts) -> RowResults:
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
    return RowResults(clusters, probability, runner_up, margin, totals=counts.row_totals())


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
    """Return the names of rows: those given, the index of a data frame, or numbers from 0."""
    if given is None and hasattr(X, "columns") and hasattr(X, "index"):
        given = X.index
    if given is None:
        return list(range(n_rows))
    if len(given) != n_rows:
        raise ValueError(f"row_names must have one entry for each of the {n_rows:,} rows, but has {len(given):,}.")
    return np.asarray(given, dtype=object).tolist()


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
    known, sizes = feature_names(model), _sizes(model)
    columns: Columns = {
        "cluster": list(range(len(sizes))),
        "name": group_names(model, "cluster").tolist(),
        "size": sizes.tolist(),
        "share": (sizes / sizes.sum()).tolist(),
    }
    if stability is not None:
        columns["stability"] = np.asarray(getattr(stability, "clusters", stability), dtype=float).tolist()
    columns["features"] = [[known[v] for v in own.leading(n_features)] for own in cluster_features(model)]
    if representatives is not None:
        columns["representative_rows"] = [list(rows) for rows in representatives]
    return columns


def row_columns(model: MMPCA, found: RowResults, names: Sequence[Any]) -> Columns:
    """Return the table of rows."""
    return {
        "row": list(names),
        "cluster": found.clusters.tolist(),
        "cluster_name": group_names(model, "cluster")[found.clusters].tolist(),
        "probability": found.probability.tolist(),
        "runner_up": [None if q < 0 else q for q in found.runner_up.tolist()],
        "margin": found.margin.tolist(),
        "margin_per_count": found.margin_per_count.tolist(),
    }


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
    for kind, measures in MEASURES.items():
        names = group_names(model, kind)
        for number, own in enumerate(measures(model)):
            order = np.lexsort((-own.share, -own.z)).tolist() if n_features is None else own.leading(n_features)
            arrays = (own.counts, own.n_rows, own.share, own.lift, own.relevance, own.log_odds, own.std_error, own.z)
            lines += [(kind, number, names[number], known[v], *(float(values[v]) for values in arrays)) for v in order]
    columns = ("kind", "number", "name", "feature", "count", "rows", "share", "lift", "relevance", "log_odds",
               "std_error", "z")  # fmt: skip
    return {name: [line[at] for line in lines] for at, name in enumerate(columns)}


def row_tables(model: MMPCA, X: Any, row_names: Any = None, n_rows: int = 3) -> tuple[Columns, list[list[Any]]]:
    """Return the table of rows, and the names of the most typical rows of each cluster."""
    counts = model._counts(X, reset=False)
    names, found = row_names_of(X, row_names, counts.n_rows), score_rows(model, counts)
    # A row that another cluster explains better is not typical of its own.
    clusters = np.where(found.margin >= 0, found.clusters, -1)
    typical = [[names[i] for i in rows] for rows in typical_rows(model, counts, clusters, n_rows)]
    return row_columns(model, found, names), typical


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
        self, clusters: Mapping[int, str | None] | None = None, topics: Mapping[int, str | None] | None = None
    ) -> Self:
        """Name clusters and topics.

        The names appear in tables, figures, pages and files of labels, and are saved with the model.

        Parameters
        ----------
        clusters, topics : mapping of int to str, optional
            New names by number; None restores the automatic name. Others keep their names.

        Returns
        -------
        self

        Examples
        --------
        >>> from mmpca import MMPCA
        >>> model = MMPCA(2, 2, random_state=0).fit([[5, 1, 0], [6, 1, 0], [0, 2, 7], [0, 1, 9]])
        >>> model.rename({int(model.labels_[0]): "rugby"}).cluster_names_[model.labels_].tolist()
        ['rugby', 'rugby', 'feature 2', 'feature 2']
        """
        check_is_fitted(self)
        changed = {}
        for kind, given in (("cluster", clusters or {}), ("topic", topics or {})):
            names, n = dict(given_names(self._model, kind)), _n(self._model, kind)
            for number, name in given.items():
                if isinstance(number, bool) or not isinstance(number, int | np.integer) or not 0 <= number < n:
                    raise ValueError(f"There is no {kind} {number!r}: numbers are from 0 to {n - 1}.")
                if name is None:
                    names.pop(int(number), None)
                    continue
                if not isinstance(name, str) or not name.strip():
                    raise ValueError(f"The name of {kind} {number} must be a text or None, but it is {name!r}.")
                names[int(number)] = name
            changed[kind] = names
        for kind, names in changed.items():  # only now, so that an error changes nothing
            self.__dict__.pop(f"_{kind}_names", None)
            if names:
                self.__dict__[f"_{kind}_names"] = dict(sorted(names.items()))
        return self

    def name_features(self, names: Any) -> Self:
        """Name the features of a model that was fitted to a matrix without names.

        Parameters
        ----------
        names : array-like of str, shape (n_features,), or fitted transformer or pipeline
            The names; or a transformer such as a `CountVectorizer`, whose output was fitted; or a pipeline whose last
            step is this model.

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
        found, n_features = np.array([str(name) for name in names], dtype=object), self._model.n_features_in_
        if len(found) != n_features:
            raise ValueError(
                f"names must hold one name for each of the {n_features} features, but there are {len(found)}. Pass the "
                "names in the order of the columns of X."
            )
        self.feature_names_in_ = found
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
            From :func:`mmpca.evaluation.stability`; adds a column.
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
        representatives = None if X is None else row_tables(model, X, row_names, n_rows)[1]
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
            other cluster), margin (the log-odds between the two, in nats) and margin_per_count (the same divided by the
            total of the row, to compare rows whose probabilities are all close to 1).

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
            prior), std_error, and z, their ratio, which decides the order (:mod:`mmpca.model.results`).

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
