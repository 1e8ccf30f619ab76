"""Clusters of texts: words are counted, clustered and named in one object."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.utils.validation import check_is_fitted

from mmpca.backend import LocalRows
from mmpca.counts import as_counts
from mmpca.errors import ModelFileError, warn
from mmpca.model import results
from mmpca.model.estimator import MMPCA
from mmpca.model.files import read_model
from mmpca.model.rules import check_fit_parameters
from mmpca.text import CountTexts, Texts

NO_CLUSTER = -1  # of a text without known words
N_KEPT = 10  # typical texts of each cluster
EXCERPT_LENGTH = 200  # characters


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
        Words to ignore: a list, or a language such as "english" or "german".
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
        Cluster of each text, -1 for texts without words of the vocabulary; after :meth:`load`, such texts are missing.
    model_ : MMPCA
        The fitted model of the counts, for figures, reports and explanations.
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
    _fitted: tuple[_Input, Any] | None
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

    def fit(self, texts: Any, y: object = None, *, column: str | None = None, ids: Any = None) -> Self:
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
        model.fit_rows(LocalRows(as_counts(X[filled])), attributes=attributes)
        self.model_, self.counter_ = model, counter
        self.labels_ = np.full(len(filled), NO_CLUSTER, dtype=np.int32)
        self.labels_[filled] = model.labels_
        self._fitted, self._rows = (given, X), None  # tables are made when they are asked for: probabilities take time
        if not filled.all():
            first = given.names[int(np.flatnonzero(~filled)[0])]
            warn(
                f"{(~filled).sum():,} of {len(filled):,} texts, the first of them {first!r}, have no words of the "
                "vocabulary and are in no cluster: their label is -1.",
                UserWarning,
            )
        return self

    def predict(self, texts: Any, *, column: str | None = None) -> NDArray[np.int32]:
        """Return the most probable cluster of each text, -1 for texts without words of the vocabulary.

        Parameters
        ----------
        texts : list or column of str, data frame, or Texts
        column : str, optional
            Column of a data frame that holds the texts.

        Returns
        -------
        labels : ndarray of int32, shape (n_texts,)
        """
        X = self._count(texts, column)
        return np.where(np.diff(X.indptr) > 0, self.model_.predict(X), NO_CLUSTER).astype(np.int32)

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
        """Name clusters and topics; see :meth:`mmpca.MMPCA.rename`."""
        check_is_fitted(self)
        self.model_.rename(clusters, topics)
        return self

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
            raise ValueError("A loaded model does not have the texts of its fit. Pass texts.")
        names = self.cluster_names_  # they may have changed since
        clusters = kept.columns["cluster"]
        columns = kept.columns | {"cluster_name": [None if q == NO_CLUSTER else names[q] for q in clusters]}
        return results.as_frame(columns, backend)

    def topics_frame(self, *, n_features: int = 10, backend: str = "pandas") -> Any:
        """Return a table of the topics; see :meth:`mmpca.MMPCA.topics_frame`."""
        check_is_fitted(self)
        return self.model_.topics_frame(n_features=n_features, backend=backend)

    def features_frame(self, *, n_features: int | None = 10, backend: str = "pandas") -> Any:
        """Return a table of the most distinctive words; see :meth:`mmpca.MMPCA.features_frame`."""
        check_is_fitted(self)
        return self.model_.features_frame(n_features=n_features, backend=backend)

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
        loaded.model_, loaded.counter_, loaded.labels_ = model, counter, model.labels_
        return loaded

    # --- inside -------------------------------------------------------------------------------------------------

    def _count(self, texts: Any, column: str | None) -> Any:
        check_is_fitted(self)
        return self.counter_.transform(read_input(texts, column, None).texts)

    def _results(self, texts: Any, column: str | None, ids: Any) -> _TextResults | None:
        """Return the results of given texts, or of those of the fit."""
        if texts is None:
            if (fitted := getattr(self, "_fitted", None)) is not None:
                self._fitted, self._rows = None, self._tables(*fitted)
            return getattr(self, "_rows", None)
        given = read_input(texts, column, ids)
        return self._tables(given, self.counter_.transform(given.texts))

    def _tables(self, given: _Input, X: Any) -> _TextResults:
        columns, typical = results.row_tables(self.model_, X, range(len(given.texts)), N_KEPT)
        for i in np.flatnonzero(np.diff(X.indptr) == 0).tolist():
            columns["cluster"][i], columns["runner_up"][i] = NO_CLUSTER, None
            for name in ("probability", "margin", "margin_per_count"):
                columns[name][i] = float("nan")
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
    source = texts
    if isinstance(texts, Texts):
        texts, names = texts.texts, texts.names
    elif isinstance(texts, str):
        raise ValueError("Expected a list of texts, but found a single text. Put it into a list: [text].")
    else:
        names = getattr(texts, "index", None) if hasattr(texts, "dtype") or hasattr(texts, "columns") else None
        if hasattr(texts, "columns"):
            texts = texts[_choose_column(list(getattr(texts, "column_names", texts.columns)), column)]
        elif column is not None:
            raise ValueError(f"There is no column {column!r}, because the texts are not in a data frame. Omit column.")
    listed = texts.to_pylist() if hasattr(texts, "to_pylist") else list(texts)  # pyarrow has scalars of its own
    if isinstance(ids, str):
        if not hasattr(source, "columns"):
            raise ValueError(f"There is no column {ids!r} with ids, because the texts are not in a data frame.")
        ids = source[ids]
        ids = ids.to_pylist() if hasattr(ids, "to_pylist") else ids
    names = names if ids is None else ids
    return _Input(listed, results.row_names_of(None, None if names is None else list(names), len(listed)))


def _choose_column(columns: Sequence[Any], column: str | None) -> Any:
    """Return the name of the column with the texts."""
    if column is None and len(columns) == 1:
        return columns[0]
    if column not in columns:
        shown = ", ".join(repr(name) for name in columns[:20])
        wanted = "the name of the column with the texts" if column is None else f"a column {column!r}"
        raise ValueError(f"Expected {wanted}, but the columns are {shown}. Pass one of them as column.")
    return column


def excerpt(text: str) -> str:
    """Return the beginning of a text in one line."""
    line = " ".join(text[: 4 * EXCERPT_LENGTH].split())
    return line if len(line) <= EXCERPT_LENGTH else line[: EXCERPT_LENGTH - 1] + "…"
