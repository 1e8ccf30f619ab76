"""Clusters of texts: words are counted, clustered and named in one object."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from reprlib import repr as short_repr
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.utils.validation import check_is_fitted

from mmpca.backend import LocalRows
from mmpca.counts import as_counts, in_memory
from mmpca.engine import MergePath
from mmpca.errors import ModelFileError, warn
from mmpca.model import editing, groups, results
from mmpca.model.estimator import MMPCA
from mmpca.model.explanation import Explanation
from mmpca.model.files import read_model
from mmpca.model.results import NO_CLUSTER
from mmpca.model.rules import check_fit_parameters
from mmpca.text import CountTexts, Texts

N_KEPT = 10  # typical texts of each cluster
EXCERPT_LENGTH = 200  # characters
LONGEST_PATH = 1000  # characters of a text that may be a path
NO_TEXTS = "A loaded model does not have the texts of its fit. Pass texts."


class TextClusters(ClusterMixin, BaseEstimator):
    """Cluster texts by their words.

    The words are counted by :class:`mmpca.text.CountTexts` and clustered by :class:`mmpca.MMPCA`.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_topics : int, default=5
        Number of topics that the clusters share.
    stop_words : str, sequence of str or None, default=None
        Words to ignore: a list, a language such as "english" or "german", or a list of languages.
    counter : CountTexts or None, default=None
        How to count words, with stop words of its own. By default, words that occur in a single text are ignored,
        because they cannot connect two texts: ``CountTexts(stop_words=stop_words, min_df=2)``.
    options : mapping or None, default=None
        Further parameters of :class:`mmpca.MMPCA`, such as ``{"dispersion": "shares"}``.
    n_jobs : int or None, default=None
        Number of threads; -1 uses all cores. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the fit.

    Attributes
    ----------
    labels_ : ndarray of int32, shape (n_texts,)
        Cluster of each text, -1 for texts without words of the vocabulary.
    model_ : MMPCA
        The model fitted to the counts, for figures. Its fitted attributes, such as `weights_`, `cluster_topics_`
        and `bound_`, are attributes of this object, too.
    counter_ : CountTexts
        The fitted vocabulary.
    cluster_names_ : ndarray of str objects, shape (n_clusters,)
        Names of the clusters: their three most distinctive words, or those given by :meth:`rename`.
    topic_names_ : ndarray of str objects, shape (n_topics,)
        Names of the topics, likewise.

    Examples
    --------
    >>> from mmpca import TextClusters
    >>> texts = ["ham and eggs", "eggs, ham and tea", "sun and sea", "the sea, the sun and a boat", "a boat at sea"]
    >>> clusters = TextClusters(2, 2, stop_words="english", random_state=0).fit(texts)
    >>> clusters.labels_.tolist() in ([0, 0, 1, 1, 1], [1, 1, 0, 0, 0])
    True
    >>> clusters.cluster_names_[clusters.predict(["Ham!", "A boat in the sun"])].tolist()
    ['eggs, ham', 'sea']
    """

    labels_: NDArray[np.int32]
    model_: MMPCA
    counter_: CountTexts
    _fitted: tuple[_Input, Any]
    _rows: _TextResults | None

    def __init__(
        self,
        n_clusters: int = 8,
        n_topics: int = 5,
        *,
        stop_words: str | Sequence[str] | None = None,
        counter: CountTexts | None = None,
        options: Mapping[str, Any] | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_topics = n_topics
        self.stop_words = stop_words
        self.counter = counter
        self.options = options
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        texts: Any,
        y: object = None,
        *,
        column: str | None = None,
        ids: Any = None,
        labels: Any = None,
        seed_topics: Mapping[str, Iterable[Any]] | None = None,
    ) -> Self:
        """Count the words of texts and cluster them.

        Parameters
        ----------
        texts : list or column of str, data frame, or Texts
            The texts; a data frame needs `column`, unless it has a single one.
        y : ignored
        column : str, optional
            Column of a data frame that holds the texts.
        ids : sequence or str, optional
            Names of the texts, or the column that holds them. By default the index of a data frame or column, the names
            of :func:`mmpca.text.read_texts`, or numbers from 0.
        labels : array of int or str, shape (n_texts,), or str, optional
            Known clusters of some texts, or the column that holds them, as in :meth:`mmpca.MMPCA.fit`.
        seed_topics : mapping of str to words, optional
            Words that should make up some of the topics, such as ``{"sport": ["match", "coach"]}``.

        Returns
        -------
        self

        Warns
        -----
        UserWarning
            If texts have no words of the vocabulary; their label is -1.
        """
        given = read_input(texts, column, ids)
        if self.counter is not None and self.stop_words is not None:
            raise ValueError("stop_words and counter cannot be combined. Pass counter=CountTexts(stop_words=...).")
        counter = CountTexts(stop_words=self.stop_words, min_df=2) if self.counter is None else clone(self.counter)
        shared: dict[str, Any] = {"n_jobs": self.n_jobs, "random_state": self.random_state}
        model = MMPCA(self.n_clusters, self.n_topics, **shared, **(self.options or {}))
        check_fit_parameters(model.get_params(deep=False))
        X = counter.fit_transform(given.texts)
        filled = np.diff(X.indptr) > 0
        attributes = {"n_features_in_": X.shape[1], "feature_names_in_": counter.get_feature_names_out()}
        known = None if labels is None else known_labels(labels, texts, given)[filled]
        knowledge = editing.check_knowledge(
            model, known, seed_topics, shape=X[filled].shape, feature_names=attributes["feature_names_in_"]
        )
        model.fit_rows(LocalRows(as_counts(X[filled])), attributes=attributes, **knowledge.arguments())
        knowledge.name(model)
        self.model_, self.counter_ = model, counter
        self._set_labels(np.flatnonzero(~filled))
        self._fitted, self._rows = (given, X), None  # tables are made when they are asked for: probabilities take time
        model._empty_rows = np.flatnonzero(~filled).tolist()
        if not filled.all():
            first = given.names[int(np.flatnonzero(~filled)[0])]
            warn(
                f"{(~filled).sum():,} of {len(filled):,} texts, the first of them {first!r}, have no words of the "
                "vocabulary and are in no cluster: their label is -1.",
                UserWarning,
            )
        return self

    def predict(self, texts: Any, *, column: str | None = None, outliers: float | None = None) -> NDArray[np.int32]:
        """Return the most probable cluster of each text, -1 for texts without words of the vocabulary.

        Parameters
        ----------
        texts : list or column of str, data frame, or Texts
        column : str, optional
            Column of a data frame that holds the texts.
        outliers : float, optional
            Level, such as 0.01, below which texts are outliers, as in :meth:`mmpca.MMPCA.predict`; their label is -1.

        Returns
        -------
        labels : ndarray of int32, shape (n_texts,)
        """
        X = self._count(texts, column)
        labels = self.model_.predict(X, outliers=outliers)
        return np.where(np.diff(X.indptr) > 0, labels, NO_CLUSTER).astype(np.int32)

    def outlier_labels(self, level: float = 0.01) -> NDArray[np.int32]:
        """Return the labels of the fitted texts, -1 for outliers and texts without words of the vocabulary.

        Parameters
        ----------
        level : float, default=0.01
            As in :meth:`mmpca.MMPCA.outlier_labels`.

        Returns
        -------
        labels : ndarray of int32, shape (n_texts,)
        """
        check_is_fitted(self)
        labels = self.labels_.copy()
        labels[labels != NO_CLUSTER] = self.model_.outlier_labels(level)
        return labels

    def predict_proba(self, texts: Any, *, column: str | None = None) -> NDArray[np.float64]:
        """Return the probability of each cluster for each text.

        Parameters
        ----------
        texts : list or column of str, data frame, or Texts
        column : str, optional
            Column of a data frame that holds the texts.

        Returns
        -------
        probabilities : ndarray of shape (n_texts, n_clusters)
            Rows sum to one. For texts without known words, these are the relative sizes of the clusters.
        """
        return self.model_.predict_proba(self._count(texts, column))

    def transform(self, texts: Any, *, column: str | None = None) -> NDArray[np.float64]:
        """Return the topic proportions of each text.

        Parameters
        ----------
        texts : list or column of str, data frame, or Texts
        column : str, optional
            Column of a data frame that holds the texts.

        Returns
        -------
        shares : ndarray of shape (n_texts, n_topics)
            Rows sum to one.
        """
        return np.asarray(self.model_.transform(self._count(texts, column)))

    @property
    def cluster_names_(self) -> NDArray[np.object_]:
        """Names of the clusters, (n_clusters,)."""
        check_is_fitted(self)
        return self.model_.cluster_names_

    @property
    def topic_names_(self) -> NDArray[np.object_]:
        """Names of the topics, (n_topics,)."""
        check_is_fitted(self)
        return self.model_.topic_names_

    def rename(
        self, clusters: Mapping[int, str | None] | None = None, topics: Mapping[int, str | None] | None = None
    ) -> Self:
        """Name clusters and topics; see :meth:`mmpca.MMPCA.rename`.

        Parameters
        ----------
        clusters, topics : mapping of int to str or None, optional
            New names by number; None restores the automatic name.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self.model_.rename(clusters, topics)
        return self

    def __getattr__(self, name: str) -> Any:
        # Fitted attributes of the model, such as weights_; called only for names that this object does not have.
        if name.endswith("_") and not name.startswith("_") and "model_" in vars(self):
            return getattr(self.model_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def theta_interval(
        self, level: float = 0.95, *, random_state: int | np.random.RandomState | None = 0
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return intervals for the topic proportions of clusters; see :meth:`mmpca.MMPCA.theta_interval`.

        Parameters
        ----------
        level : float, default=0.95
            Fraction of intervals that should contain the true value.
        random_state : int, RandomState instance or None, default=0
            Seed of the simulated rows.

        Returns
        -------
        lower, upper : ndarray of shape (n_clusters, n_topics)
        """
        check_is_fitted(self)
        return self.model_.theta_interval(level, random_state=random_state)

    def edit(
        self,
        texts: Any = None,
        *,
        column: str | None = None,
        ids: Any = None,
        merge: Sequence[Any] = (),
        split: Sequence[int] = (),
        move: Mapping[Any, int] | None = None,
        noise: Sequence[int] = (),
        refit: bool = True,
    ) -> editing.EditReport:
        """Merge, split or mark clusters, or move texts, then continue the search from there, in place.

        Parameters
        ----------
        texts, column, ids
            As in :meth:`fit`: the texts of the fit, in their order. Only a loaded model needs them.
        merge, split, noise, refit
            As in :meth:`mmpca.MMPCA.edit`.
        move : mapping of int or str to int, optional
            Texts to move, by position or by an id that is a string, with their new clusters.

        Returns
        -------
        EditReport
            As in :meth:`mmpca.MMPCA.edit`.

        Examples
        --------
        >>> from mmpca import TextClusters
        >>> texts = ["ham eggs", "eggs ham", "sun sea", "sea sun", "tea milk", "milk tea"]
        >>> clusters = TextClusters(3, 3, random_state=0).fit(texts)
        >>> clusters.edit(merge=[0, 1]).n_moved, len(clusters.cluster_names_)
        (0, 2)
        """
        check_is_fitted(self)
        given, X = self._texts_and_counts(texts, column, ids)
        moved = results.positions(list(move or {}), given.names)
        report = self.model_.edit(
            X,
            merge=merge,
            split=split,
            move=dict(zip(moved, (move or {}).values(), strict=True)),
            noise=noise,
            refit=refit,
        )
        self.n_clusters, self._rows = len(self.model_.weights_), None
        self._set_labels(np.array(getattr(self.model_, "_empty_rows", []), dtype=np.intp))
        return report

    def merge_path(self) -> MergePath:
        """Merge the clusters pairwise down to one; see :meth:`mmpca.MMPCA.merge_path`.

        Returns
        -------
        MergePath
        """
        check_is_fitted(self)
        return self.model_.merge_path()

    def explain(
        self,
        texts: Any = None,
        rows: Any = None,
        *,
        column: str | None = None,
        n_features: int = 10,
        gains: bool | None = None,
    ) -> list[Explanation]:
        """Explain why texts are in their clusters, word by word.

        Parameters
        ----------
        texts, column
            As in :meth:`fit`; by default the texts of the fit. A loaded model does not have them.
        rows : array of int or str, optional
            Texts to explain: positions, or ids that are strings; by default all that have words of the vocabulary.
        n_features : int, default=10
            Maximum number of words to list on each side.
        gains : bool, optional
            As in :meth:`mmpca.MMPCA.explain`.

        Returns
        -------
        list of Explanation
            As in :meth:`mmpca.MMPCA.explain`.

        Raises
        ------
        ValueError
            If a chosen text has no words of the vocabulary, so there is nothing to explain.

        Examples
        --------
        >>> from mmpca import TextClusters
        >>> texts = ["ham and eggs", "eggs and ham", "sun and sea", "sea and sun"]
        >>> clusters = TextClusters(2, 2, stop_words="english", random_state=0).fit(texts)
        >>> why = clusters.explain(["ham, more ham"])[0]
        >>> [part.name for part in why.evidence_for]
        ['ham']
        """
        check_is_fitted(self)
        given, X = self._texts_and_counts(texts, column, None)
        filled = np.diff(X.indptr) > 0
        if rows is not None:
            rows = results.positions(rows, given.names)
            for i in rows:
                if 0 <= i < len(filled) and not filled[i]:
                    raise ValueError(
                        f"Text {given.names[i]!r} has no words of the vocabulary, so there is nothing to explain."
                    )
        elif not filled.all():
            rows = np.flatnonzero(filled)
            gains = bool(gains)
        return self.model_.explain(X, rows, n_features=n_features, gains=gains)

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        texts: Any = None,
        *,
        column: str | None = None,
        ids: Any = None,
        labels: Sequence[object] | None = None,
        title: str | None = None,
    ) -> Any:
        """Make a self-contained HTML page about the clusters and their texts, to read and to share.

        Parameters
        ----------
        path : path, optional
            File to write, usually ending in ``.html``. Without it, a notebook displays the page.
        texts, column, ids
            As in :meth:`fit`: texts to show, by default those of the fit. Without them, the page of a loaded model
            shows clusters and topics only.
        labels : sequence of length n_texts, optional
            Known class of each text, for a table of classes against clusters.
        title : str, optional
            Heading of the page.

        Returns
        -------
        Report
            The page; see :class:`mmpca.report.Report`.

        Examples
        --------
        >>> import tempfile
        >>> from mmpca import TextClusters
        >>> clusters = TextClusters(2, 2, random_state=0).fit(["ham eggs", "eggs ham", "sun sea", "sea sun"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     clusters.report(f"{folder}/texts.html", title="Breakfast")
        Report('Breakfast')
        """
        from mmpca.report import Report  # the layer above, needed for this alone

        check_is_fitted(self)
        shown: dict[str, Any] = {}
        if texts is not None or hasattr(self, "_fitted"):
            given, X = self._texts_and_counts(texts, column, ids)
            rows = np.flatnonzero(np.diff(X.indptr)).tolist()  # others are in no cluster
            if labels is not None and len(labels) != len(given.texts):
                raise ValueError(
                    f"labels must have one entry for each of {len(given.texts):,} texts, not {len(labels):,}."
                )
            shown = {
                "X": X[rows],
                "texts": [given.texts[i] for i in rows],
                "row_names": [given.names[i] for i in rows],
                "labels": None if labels is None else [list(labels)[i] for i in rows],
            }
        report = Report(self.model_, title=title, **shown)
        if path is not None:
            report.save(path)
        return report

    # --- tables -------------------------------------------------------------------------------------------------

    def clusters_frame(
        self,
        texts: Any = None,
        *,
        column: str | None = None,
        ids: Any = None,
        stability: Any = None,
        n_features: int = 10,
        n_rows: int = 3,
        backend: str = "pandas",
    ) -> Any:
        """Return a table of the clusters, with their most distinctive words and most typical texts.

        Parameters
        ----------
        texts, column, ids
            As in :meth:`fit`: texts from which typical ones are chosen, by default those of the fit. A loaded model
            does not have them.
        stability, n_features, n_rows, backend
            As in :meth:`mmpca.MMPCA.clusters_frame`; `n_rows` is at most 10.

        Returns
        -------
        DataFrame
            Columns cluster, name, size, share, features, representative_rows (the ids of texts) and excerpts.
        """
        check_is_fitted(self)
        kept = self._results(texts, column, ids)
        typical = None if kept is None else [rows[:n_rows] for rows in kept.typical]
        columns = results.cluster_columns(self.model_, typical, stability, n_features)
        if kept is not None:
            columns["excerpts"] = [texts[:n_rows] for texts in kept.excerpts]
        return results.as_frame(columns, backend)

    def rows_frame(
        self, texts: Any = None, *, column: str | None = None, ids: Any = None, backend: str = "pandas"
    ) -> Any:
        """Return a table of texts, with their clusters and how certain these are.

        Parameters
        ----------
        texts, column, ids
            As in :meth:`fit`; by default the texts of the fit. A loaded model does not have them.
        backend : {"pandas", "polars"}, default="pandas"

        Returns
        -------
        DataFrame
            Columns as in :meth:`mmpca.MMPCA.rows_frame`. The cluster of texts without known words is -1.
        """
        check_is_fitted(self)
        kept = self._results(texts, column, ids)
        if kept is None:
            raise ValueError(NO_TEXTS)
        names = results.names_of_clusters(self.model_, kept.columns["cluster"])  # they may have changed since
        return results.as_frame(kept.columns | {"cluster_name": names}, backend)

    def topics_frame(self, *, n_features: int = 10, backend: str = "pandas") -> Any:
        """Return a table of the topics; see :meth:`mmpca.MMPCA.topics_frame`.

        Parameters
        ----------
        n_features : int, default=10
            Maximum number of words to list for each topic.
        backend : {"pandas", "polars"}, default="pandas"
            Library of the table.

        Returns
        -------
        DataFrame
            One row for each topic.
        """
        check_is_fitted(self)
        return self.model_.topics_frame(n_features=n_features, backend=backend)

    def features_frame(self, *, n_features: int | None = 10, backend: str = "pandas") -> Any:
        """Return a table of the most distinctive words; see :meth:`mmpca.MMPCA.features_frame`.

        Parameters
        ----------
        n_features : int or None, default=10
            Maximum number of words for each cluster and topic; None lists all of them.
        backend : {"pandas", "polars"}, default="pandas"
            Library of the table.

        Returns
        -------
        DataFrame
            One row for each word of a cluster or topic.
        """
        check_is_fitted(self)
        return self.model_.features_frame(n_features=n_features, backend=backend)

    def clusters_over(
        self,
        values: Any,
        texts: Any = None,
        *,
        column: str | None = None,
        bins: str | int | None = None,
        n_features: int = 5,
        level: float = 0.95,
        backend: str = "pandas",
    ) -> Any:
        """Return a table of the clusters over time or by group; :func:`mmpca.plots.clusters_over` draws it.

        Parameters
        ----------
        values : array-like of length n_texts, or str
            Date, number or group of each text, or the column of `texts` that holds them.
        texts, column
            As in :meth:`fit`; by default the texts of the fit. Without them, the table of a loaded model has sizes
            only.
        bins, n_features, level, backend
            As in :meth:`mmpca.MMPCA.clusters_over`.

        Returns
        -------
        DataFrame
            As in :meth:`mmpca.MMPCA.clusters_over`; texts without known words are left out.

        Examples
        --------
        >>> from mmpca import TextClusters
        >>> texts = ["ham eggs", "eggs ham", "sun sea", "sea sun"]
        >>> table = TextClusters(2, 2, random_state=0).fit(texts).clusters_over([2023, 2023, 2023, 2024])
        >>> sorted(table.loc[(table["kind"] == "cluster") & (table["group"] == 2023), "size"].astype(int).tolist())
        [1, 2]
        """
        check_is_fitted(self)
        if isinstance(values, str):
            values = _values_of(texts, values, "values")
        X = self._texts_and_counts(texts, column, None)[1] if texts is not None or hasattr(self, "_fitted") else None
        filled = self.labels_ != NO_CLUSTER if X is None else np.diff(X.indptr) > 0
        series = groups.series_of(editing.in_order_of(values, texts))
        if len(series) != len(filled):
            raise ValueError(f"values must have one entry for each of {len(filled):,} texts, not {len(series):,}.")
        kept, counts = series[filled], None if X is None else X[filled]
        return self.model_.clusters_over(kept, counts, bins=bins, n_features=n_features, level=level, backend=backend)

    # --- files --------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write model, vocabulary and names to a file that :meth:`load` and the command line read.

        Parameters
        ----------
        path : path
            By convention ending in ``.mmpca``. The texts are not in the file.
        """
        check_is_fitted(self)
        self.model_.save(path, text=self.counter_.settings())

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, tokenizer: Callable[[str], Iterable[str]] | None = None
    ) -> TextClusters:
        """Load a text model from a file written by :meth:`save` or ``mmpca fit``.

        Parameters
        ----------
        path : path
        tokenizer : callable, optional
            The tokenizer of the counter, if it had one.

        Returns
        -------
        TextClusters

        Raises
        ------
        ModelFileError
            If the file is damaged, or is a model of counts.

        Examples
        --------
        >>> import tempfile
        >>> from mmpca import TextClusters
        >>> clusters = TextClusters(2, 2, random_state=0).fit(["ham eggs", "eggs ham", "sun sea", "sea sun"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     clusters.save(f"{folder}/texts.mmpca")
        ...     loaded = TextClusters.load(f"{folder}/texts.mmpca")
        >>> loaded.predict(["ham", "sea", "snow"]).tolist() == clusters.predict(["ham", "sea", "snow"]).tolist()
        True
        """
        file = read_model(path)
        if file.text is None:
            raise ModelFileError(f"{os.fspath(path)}: this is a model of counts. Load it with mmpca.load.", path=path)
        counter = CountTexts.from_settings(file.text, tokenizer=tokenizer)
        model = file.model
        if counter.settings().get("words") != results.feature_names(model):
            raise ModelFileError(
                f"{os.fspath(path)}: the vocabulary does not match the model. Fit it again.", path=path
            )
        options = model.get_params(deep=False)
        own = {name: options.pop(name) for name in ("n_clusters", "n_topics", "n_jobs", "random_state")}
        loaded = cls(**own, counter=counter, options=options)
        loaded.model_, loaded.counter_ = model, counter
        loaded._set_labels(np.array(getattr(model, "_empty_rows", []), dtype=np.intp))
        return loaded

    # --- inside -------------------------------------------------------------------------------------------------

    def _set_labels(self, empty: NDArray[np.intp]) -> None:
        """Set the labels of all texts from those of the model, which has no row for an empty text."""
        self.labels_ = np.full(len(self.model_.labels_) + len(empty), NO_CLUSTER, dtype=np.int32)
        self.labels_[np.setdiff1d(np.arange(len(self.labels_)), empty)] = self.model_.labels_

    def _count(self, texts: Any, column: str | None) -> Any:
        check_is_fitted(self)
        return self.counter_.transform(read_input(texts, column, None).texts)

    def _results(self, texts: Any, column: str | None, ids: Any) -> _TextResults | None:
        """Return the results of given texts, or of those of the fit."""
        if texts is not None:
            return self._tables(*self._texts_and_counts(texts, column, ids))
        if hasattr(self, "_fitted") and self._rows is None:
            self._rows = self._tables(*self._fitted)
        return getattr(self, "_rows", None)

    def _texts_and_counts(self, texts: Any, column: str | None, ids: Any) -> tuple[_Input, Any]:
        """Return given texts, or those of the fit, and their counts."""
        if texts is None:
            if not hasattr(self, "_fitted"):
                raise ValueError(NO_TEXTS)
            return self._fitted
        given = read_input(texts, column, ids)
        return given, self.counter_.transform(given.texts)

    def _tables(self, given: _Input, X: Any) -> _TextResults:
        columns, typical = results.row_tables(self.model_, X, range(len(given.texts)), N_KEPT)
        return _TextResults(
            columns | {"row": given.names},
            [[given.names[i] for i in rows] for rows in typical],
            [[excerpt(given.texts[i]) for i in rows] for rows in typical],
        )


class _TextResults(NamedTuple):
    """The table of texts, and the ids and excerpts of the most typical ones of each cluster."""

    columns: results.Columns
    typical: list[list[Any]]
    excerpts: list[list[str]]


class _Input(NamedTuple):
    """Texts and their names."""

    texts: list[Any]
    names: list[Any]


def read_input(texts: Any, column: str | None, ids: Any) -> _Input:
    """Return the texts of a list, a column, a data frame, or :func:`mmpca.text.read_texts`, with their names."""
    texts = source = in_memory(texts)
    if isinstance(texts, Texts):
        texts, names = texts.texts, texts.names
    elif isinstance(texts, str | os.PathLike):
        remedy = "Put it in a list: [text]."
        if isinstance(texts, os.PathLike) or (len(texts) < LONGEST_PATH and os.path.exists(texts)):
            remedy = f"If it is a path, read its texts first: mmpca.text.read_texts({str(texts)!r})."
        raise ValueError(f"Expected a list of texts, but found {short_repr(str(texts))}. {remedy}")
    else:
        names = getattr(texts, "index", None) if hasattr(texts, "dtype") or hasattr(texts, "columns") else None
        if hasattr(texts, "columns"):
            texts = texts[_choose_column(_titles(texts), column)]
        elif column is not None:
            raise ValueError(f"There is no column {column!r}, because the texts are not in a data frame. Omit column.")
    listed = texts.to_pylist() if hasattr(texts, "to_pylist") else list(texts)  # pyarrow has scalars of its own
    if isinstance(ids, str):
        ids = _values_of(source, ids, "ids")
    names = names if ids is None else ids
    named = results.row_names_of(None, None if names is None else list(names), len(listed))
    for name, text in zip(named, listed, strict=True):
        if not isinstance(text, str):
            remedy = 'Drop missing texts, as with data.dropna(subset=["text"]), or replace them, as with fillna("").'
            is_missing = text is None or text != text
            raise TypeError(
                f"Expected texts, but the text of {name!r} is {'missing' if is_missing else short_repr(text)}. "
                f"{remedy if is_missing else 'Convert it to a string, or leave it out.'}"
            )
    return _Input(listed, named)


def known_labels(labels: Any, texts: Any, given: _Input) -> NDArray[np.object_]:
    """Return known labels of texts, or those in a column of a data frame, in the order of the texts."""
    labels = _values_of(in_memory(texts), labels, "labels") if isinstance(labels, str) else labels
    labels = labels.to_pylist() if hasattr(labels, "to_pylist") else editing.in_order_of(labels, texts)
    if len(labels) != len(given.texts):
        raise ValueError(f"labels must have one entry for each of {len(given.texts):,} texts, not {len(labels):,}.")
    return np.array([*labels, None], dtype=object)[:-1]  # one dimension, whatever the labels are


def _titles(table: Any) -> list[Any]:
    return list(getattr(table, "column_names", table.columns))


def _values_of(table: Any, column: str, argument: str) -> Any:
    """Return values that are not the texts: a column of the data frame if a name is given."""
    table = in_memory(table)
    if not hasattr(table, "columns"):
        raise ValueError(f"There is no column {column!r} with {argument}, because the texts are not in a data frame.")
    values = table[_choose_column(_titles(table), column, argument)]
    return values.to_pylist() if hasattr(values, "to_pylist") else values


def _choose_column(columns: Sequence[Any], column: str | None, argument: str = "column") -> Any:
    """Return the name of the column with the texts, or with their ids."""
    if column is None and len(columns) == 1:
        return columns[0]
    if column not in columns:
        shown = ", ".join(repr(name) for name in columns[:20])
        wanted = "the name of the column with the texts" if column is None else f"a column {column!r}"
        raise ValueError(f"Expected {wanted}, but the columns are {shown}. Pass one of them as {argument}.")
    return column


def excerpt(text: str) -> str:
    """Return the beginning of a text in one line."""
    line = " ".join(text[: 4 * EXCERPT_LENGTH].split())
    return line if len(line) <= EXCERPT_LENGTH else line[: EXCERPT_LENGTH - 1] + "…"
