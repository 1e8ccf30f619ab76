"""Fit and predict on data in parts."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mmpca.counts import Counts
from mmpca.distributed.crews import crew_of
from mmpca.distributed.parts import Parts
from mmpca.distributed.sources import load
from mmpca.model import MMPCA, constraints, prediction
from mmpca.model.checkpoints import Checkpoint
from mmpca.model.starts import Callback
from mmpca.places import ForRows, Rows, column_totals, joined

Array = NDArray[np.float64]


def fit(
    model: MMPCA,
    X: Any,
    client: Any = None,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    callback: Callback | None = None,
) -> MMPCA:
    """Cluster rows that are spread over threads, processes or machines; the result is that of `model.fit`.

    Rows stay where they are, but for those that move from cluster to cluster, which the client sees, and for random
    parts of them, which one worker sees: there topics are learned and starts are tried.

    Parameters
    ----------
    model : MMPCA
        With ``algorithm="greedy"``; it is fitted in place.
    X : dask array, list of blocks, of delayed blocks or of files
        Blocks of rows, all of the same features: sparse or dense matrices, or files of any format that
        :func:`mmpca.io.read_counts` knows, which the workers read.
    client : distributed.Client or str, optional
        A client, or the address of a scheduler. By default threads of this process do the work, `model.n_jobs` of them.
    checkpoint : path, optional
        A file for the topics and the labels after each epoch. If it is there already, the fit goes on from it: to a
        maximum of the bound, if by another way than without a break.
    callback : callable, optional
        As in :meth:`mmpca.MMPCA.fit`.

    Returns
    -------
    MMPCA
        The model.

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
    parameters = model.get_params(deep=False)
    constraints.check_parameters(parameters)
    if model.algorithm != "greedy":
        raise ValueError(f"algorithm must be 'greedy' for rows in parts, but it is {model.algorithm!r}.")
    with crew_of(client, effective_n_jobs(model.n_jobs)) as crew:
        parts, names = load(X, crew, stabilize=model.stabilize)
        constraints.check_sizes(parts, model.n_clusters, model.n_topics)
        attributes: dict[str, Any] = {"n_features_in_": parts.n_features}
        if names is not None:
            attributes["feature_names_in_"] = np.asarray(names, dtype=object)
        kept = None if checkpoint is None else _checkpoint(checkpoint, model, parts)
        return model.fit_at(parts, attributes=attributes, callback=callback, checkpoint=kept)


def _checkpoint(path: str | os.PathLike[str], model: MMPCA, parts: Parts) -> Checkpoint:
    """Return the checkpoint of a fit; how it is run, in how many threads, does not matter."""
    names = ("n_clusters", "n_topics", "topics", "topic_prior", "start", "n_init", "stabilize", "tol", "random_state")
    belongs_to = {name: getattr(model, name) for name in names} | {"n_rows": parts.n_rows}
    totals = parts.total(column_totals, np.arange(parts.n_rows))
    return Checkpoint(path, belongs_to, totals)


def predict(model: MMPCA, X: Any, client: Any = None) -> NDArray[np.int32]:
    """Return the most probable cluster of each row, where the rows are.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    X, client
        As in :func:`fit`.

    Returns
    -------
    labels : ndarray of int32, shape (n_samples,)
    """
    check_is_fitted(model)
    with crew_of(client, effective_n_jobs(model.n_jobs)) as crew:
        parts, _ = load(X, crew, stabilize=model.stabilize, allow_empty_rows=True)
        if parts.n_features != model.n_features_in_:
            raise ValueError(
                f"X must have the {model.n_features_in_} features that the model was fitted to, but it has "
                f"{parts.n_features}."
            )
        shared = (model.components_, model.cluster_topics_, model.weights_)
        labels: NDArray[np.int32] = joined(parts, predict_rows, np.arange(parts.n_rows), shared=shared)
    return labels


def predict_rows(
    part: Counts, rows: Rows, topics: Array, cluster_topics: Array, weights: Array, for_rows: ForRows
) -> NDArray[np.int32]:
    """Return the most probable cluster of each row of a part."""
    joint = prediction.joint_log_likelihood(part, topics, cluster_topics, weights)
    return joint.argmax(axis=1).astype(np.int32)
