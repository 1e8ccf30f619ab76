"""Fit on data in parts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from mmpca.distributed.crews import crew_of
from mmpca.distributed.sources import Loaded, Reading, load
from mmpca.model import MMPCA, constraints
from mmpca.model.checkpoints import Checkpoint
from mmpca.model.starts import Callback
from mmpca.stages import Listener


def fit(
    model: MMPCA,
    X: Any,
    client: Any = None,
    *,
    read: Mapping[str, Any] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    callback: Callback | None = None,
    on_stage: Listener | None = None,
) -> MMPCA:
    """Cluster rows that are spread over threads, processes or machines; the result is that of `model.fit`.

    Most rows stay where they are. The client sees those that move from cluster to cluster. Random samples are brought
    together on workers, where topics are learned, starts are tried and clusters are split on trial; of few rows, such
    a sample has all.

    Parameters
    ----------
    model : MMPCA
        With ``algorithm="greedy"``; it is fitted in place.
    X : dask array, list of blocks, of delayed blocks or of files, or AnnData
        Blocks of rows, all of the same features: sparse or dense matrices, or files of any format that
        :func:`mmpca.io.read_counts` knows, which the workers read. Of an AnnData object, `X` has to be a dask array,
        as ``anndata.experimental.read_lazy`` (which needs xarray) makes it of an ``.h5ad`` or ``.zarr`` file, and
        ``read_elem_lazy`` of a part of one. Blocks that are at hand are sent through the scheduler, which keeps a copy,
        so as to send them again if a worker dies; large ones are better read by the workers.
    client : distributed.Client or str, optional
        A client, or the address of a scheduler. By default threads of this process do the work, `model.n_jobs` of them.
    read : mapping, optional
        Options of :func:`mmpca.io.read_counts` for files, such as ``{"layer": "counts"}``.
    checkpoint : path, optional
        A file for the topics, and of a greedy search of more than 50,000 rows for the labels after each epoch. If it
        is there already, the fit goes on from it: to a maximum of the bound, if by another way than without a break.
        The file of other data or parameters is refused.
    callback, on_stage : callable, optional
        As in :meth:`mmpca.MMPCA.fit`; what a worker does alone is told when it begins.

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
    check_model(model)
    with crew_of(client, effective_n_jobs(model.n_jobs)) as crew:
        loaded = load(X, crew, Reading(stabilize=model.stabilize, options=read or {}))
        return fit_loaded(model, loaded, checkpoint=checkpoint, callback=callback, on_stage=on_stage)


def check_model(model: MMPCA) -> None:
    """Raise an error unless a model can be fitted to rows in parts."""
    if not isinstance(model, MMPCA):
        told = f"the class {model.__name__} itself" if isinstance(model, type) else type(model).__name__
        raise TypeError(f"model must be an MMPCA such as MMPCA(8, 5), but it is {told}.")
    constraints.check_parameters(model.get_params(deep=False))
    if model.algorithm != "greedy":
        raise ValueError(
            f"algorithm must be 'greedy' for rows in parts, but it is {model.algorithm!r}. Leave it out, or join the "
            "parts."
        )


def fit_loaded(
    model: MMPCA,
    loaded: Loaded,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    callback: Callback | None = None,
    on_stage: Listener | None = None,
) -> MMPCA:
    """Fit a model that was checked to data that a crew holds."""
    parts = loaded.parts
    constraints.check_sizes(parts, model.n_clusters, model.n_topics)
    attributes: dict[str, Any] = {"n_features_in_": parts.n_features}
    if loaded.feature_names is not None:
        attributes["feature_names_in_"] = np.asarray(loaded.feature_names, dtype=object)
    kept = None
    if checkpoint is not None:
        kept = Checkpoint.of_fit(checkpoint, model.get_params(deep=False), parts)
    return model.fit_at(parts, attributes=attributes, callback=callback, checkpoint=kept, on_stage=on_stage)
