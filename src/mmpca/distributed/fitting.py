"""Fit and predict rows in blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mmpca.backend import RowBackend, Rows, Threads, map_rows
from mmpca.counts import Counts
from mmpca.distributed.sources import Loaded, Reading, load
from mmpca.distributed.workers import open_workers
from mmpca.errors import CountsError, warn
from mmpca.model import MMPCA, prediction
from mmpca.model.editing import Knowledge
from mmpca.model.inspection import warn_of_misread_columns
from mmpca.model.prediction import Scores
from mmpca.model.rules import check_fit_parameters
from mmpca.monitor import Callback, Monitor

Array = NDArray[np.float64]


def fit(
    model: MMPCA,
    X: Any,
    client: Any = None,
    *,
    read: Mapping[str, Any] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    callback: Callback | None = None,
) -> MMPCA:
    """Cluster rows that are spread over blocks, files or machines; the result is that of `model.fit`.

    On a cluster, most rows stay on their workers; the client sees those that move between clusters. Random samples are
    collected on single workers to learn topics, try starts and split clusters.

    Parameters
    ----------
    model : MMPCA
        With ``algorithm="greedy"``; it is fitted in place.
    X : dask array, list of blocks, of delayed blocks or of files, or AnnData
        Blocks of rows, all with the same features: sparse or dense matrices, or files of any format that
        :func:`mmpca.io.read_counts` reads. The `X` of an AnnData object must be a dask array, as returned by
        ``anndata.experimental.read_lazy`` (which needs xarray) and ``read_elem_lazy`` for ``.h5ad`` and ``.zarr``
        files. Matrices in memory are sent through the scheduler, which keeps a copy in case a worker dies; large ones
        should be read by the workers instead. Data frames must have the same columns in the same order.
    client : distributed.Client or str, optional
        A client, or the address of a scheduler. By default, `model.n_jobs` threads read the blocks and fit the model in
        the memory of this process.
    read : mapping, optional
        Options of :func:`mmpca.io.read_counts` for files, such as ``{"layer": "counts"}``.
    checkpoint : path, optional
        As in :meth:`mmpca.MMPCA.fit`.
    callback : callable, optional
        As in :meth:`mmpca.MMPCA.fit`. Each block that is read is reported as well, possibly from another thread; work
        on a single worker is reported when it begins.

    Returns
    -------
    MMPCA
        The model.

    Raises
    ------
    CountsError
        If blocks do not contain counts or have different features.
    ClusterError
        If the scheduler is lost, or if a call kills all workers that try it.

    Warns
    -----
    SuspiciousCountsWarning
        As in :meth:`mmpca.MMPCA.fit`, from up to 10,000 of the rows.

    Examples
    --------
    >>> from mmpca import MMPCA
    >>> from mmpca.distributed import fit
    >>> from mmpca.simulate import paper_design
    >>> X = paper_design(n_samples=120, random_state=0).X
    >>> model = fit(MMPCA(6, 4, n_init=2, random_state=0), [X[:50], X[50:]])
    >>> bool((model.labels_ == MMPCA(6, 4, n_init=2, random_state=0).fit(X).labels_).all())
    True
    """
    check_model(model)
    reading = Reading(options=read or {})
    with open_workers(client) as workers:
        loaded = load(X, workers, reading, n_threads=effective_n_jobs(model.n_jobs), monitor=Monitor(callback))
        counts, names = sampled_rows(loaded)
        warn_of_misread_columns(counts, **names)
        return fit_loaded(model, loaded, checkpoint=checkpoint, callback=callback)


def sampled_rows(loaded: Loaded, max_rows: int = 10_000) -> tuple[Counts, dict[str, Any]]:
    """Return evenly spaced rows, with their names and those of the features, to inspect them."""
    n_rows = loaded.backend.n_rows
    rows = np.unique(np.linspace(0, n_rows - 1, min(n_rows, max_rows)).astype(np.int64))
    row_names = None if loaded.row_names is None else [loaded.row_names[i] for i in rows]
    return loaded.backend.take(rows), {"row_names": row_names, "feature_names": loaded.feature_names}


def check_model(model: MMPCA) -> None:
    """Raise an error unless a model can be fitted to rows in blocks."""
    if not isinstance(model, MMPCA):
        given = f"the class {model.__name__} itself" if isinstance(model, type) else type(model).__name__
        raise TypeError(f"model must be an MMPCA such as MMPCA(8, 5), but it is {given}.")
    check_fit_parameters(model.get_params(deep=False))
    if model.algorithm != "greedy":
        raise ValueError(
            f"algorithm must be 'greedy' for rows in blocks, but it is {model.algorithm!r}. Use the default, or join "
            "the blocks and call fit."
        )


def fit_loaded(
    model: MMPCA,
    loaded: Loaded,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    callback: Callback | None = None,
    knowledge: Knowledge | None = None,
) -> MMPCA:
    """Fit a valid model to rows that were loaded."""
    backend = loaded.backend
    attributes: dict[str, Any] = {"n_features_in_": backend.n_features}
    if loaded.feature_names is not None:
        attributes["feature_names_in_"] = np.asarray(loaded.feature_names, dtype=object)
    knowledge = Knowledge() if knowledge is None else knowledge
    model.fit_rows(backend, attributes=attributes, callback=callback, checkpoint=checkpoint, **knowledge.arguments())
    return knowledge.name(model)


# --- prediction -------------------------------------------------------------------------------------------------


def predict(model: MMPCA, X: Any, client: Any = None, *, read: Mapping[str, Any] | None = None) -> NDArray[np.int32]:
    """Return the most probable cluster of each row, without moving the rows.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    X, client, read
        As in :func:`fit`. The features of files, data frames and AnnData are matched to those of the model by name, if
        both have names: unknown features are dropped, missing ones are zero, both with a warning. A row without counts
        is assigned to the largest cluster.

    Returns
    -------
    labels : ndarray of int32, shape (n_samples,)

    Examples
    --------
    >>> from mmpca import MMPCA
    >>> from mmpca.distributed import predict
    >>> from mmpca.simulate import paper_design
    >>> X = paper_design(n_samples=120, random_state=0).X
    >>> model = MMPCA(6, 4, n_init=2, random_state=0).fit(X)
    >>> bool((predict(model, [X[:50], X[50:]]) == model.predict(X)).all())
    True
    """
    check_is_fitted(model)
    reading = reading_for(model)._replace(options=read or {})
    with open_workers(client) as workers:
        loaded = load(X, workers, reading, n_threads=effective_n_jobs(model.n_jobs))
        check_features(model, loaded.backend)
        is_model_named = hasattr(model, "feature_names_in_")
        unmatched = [] if is_model_named else prediction.note_on_positions(False, loaded.feature_names is not None)
        for note in [*loaded.notes, *unmatched]:
            warn(note, UserWarning)
        labels: NDArray[np.int32] = score_rows(predict_rows, model, loaded.backend)
    return labels


def reading_for(model: MMPCA) -> Reading:
    """Return the options for reading rows that a model will predict."""
    return Reading(empty_rows="allow", known=getattr(model, "feature_names_in_", None))


def check_features(model: MMPCA, backend: RowBackend) -> None:
    """Raise CountsError unless rows have as many features as the model."""
    if backend.n_features != model.n_features_in_:
        raise CountsError(
            f"X must have the {model.n_features_in_} features that the model was fitted to, but it has "
            f"{backend.n_features}."
        )


def score_rows(
    call: Callable[..., Any], model: MMPCA, backend: RowBackend, labels: NDArray[np.int32] | None = None
) -> Any:
    """Return the results of one of the functions below for all rows.

    Rows are treated as new unless their fitted `labels` (N,) are given; fitted rows are judged without their own
    contribution.
    """
    temperature = 1.0 if call is predict_rows else model.temperature_  # no predicted cluster depends on it
    scores = prediction.scores_of(model.mixture(), model.units, temperature)
    if labels is None:
        labels = np.full(backend.n_rows, -1, dtype=np.int32)
    return map_rows(backend, call, np.arange(backend.n_rows), labels, shared=[scores])


# Functions of a block. They score some rows at a time, because all scores may take more memory than the counts. Fitted
# rows have labels, other rows -1.


def predict_rows(
    block: Counts, rows: Rows, labels: NDArray[np.int32], scores: Scores, threads: Threads
) -> NDArray[np.int32]:
    """Return the most probable cluster of some rows of a block."""
    found = np.empty(len(rows), dtype=np.int32)
    for part, joint in prediction.joint_in_blocks(block.take(rows), scores, labels, threads):
        found[part] = joint.argmax(axis=1)
    return found


def probability_rows(block: Counts, rows: Rows, labels: NDArray[np.int32], scores: Scores, threads: Threads) -> Array:
    """Return the probability of each cluster for some rows of a block, (n, Q)."""
    return prediction.posterior(prediction.joint_of(block.take(rows), scores, labels, threads), scores.temperature)


def best_rows(block: Counts, rows: Rows, labels: NDArray[np.int32], scores: Scores, threads: Threads) -> NDArray[Any]:
    """Return the most probable cluster of some rows of a block and its probability, an array of `prediction.BEST`."""
    best = np.empty(len(rows), dtype=prediction.BEST)
    for part, joint in prediction.joint_in_blocks(block.take(rows), scores, labels, threads):
        best[part] = prediction.most_probable(prediction.posterior(joint, scores.temperature))
    return best


def own_rows(block: Counts, rows: Rows, labels: NDArray[np.int32], scores: Scores, threads: Threads) -> Array:
    """Return the probability of each fitted row's own cluster, for some rows of a block."""
    own = np.empty(len(rows))
    for part, joint in prediction.joint_in_blocks(block.take(rows), scores, labels, threads):
        own[part] = prediction.own_probability(prediction.posterior(joint, scores.temperature), labels[part])
    return own
