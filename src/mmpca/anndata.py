"""Clustering of AnnData objects, by the conventions of the scverse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mmpca.model import MMPCA

if TYPE_CHECKING:
    from anndata import AnnData

__all__ = ["cluster"]


def cluster(
    adata: AnnData,
    *,
    n_clusters: int,
    n_topics: int,
    layer: str | None = None,
    key_added: str = "mmpca",
    copy: bool = False,
    **options: Any,
) -> AnnData | None:
    """Cluster the observations of an AnnData object.

    Parameters
    ----------
    adata : AnnData
        Observations by variables, with raw counts.
    n_clusters : int
        Number of clusters.
    n_topics : int
        Number of topics.
    layer : str, optional
        The layer that holds the counts; by default `adata.X`.
    key_added : str, default="mmpca"
        Under which names results are stored.
    copy : bool, default=False
        Return a changed copy instead of changing `adata`.
    **options
        Of `mmpca.MMPCA`, such as `random_state`.

    Returns
    -------
    AnnData or None
        None, unless `copy`. These fields are set:

        - ``.obs[key_added]``: cluster of each observation, categorical ("0", "1", ...)
        - ``.obsm["X_" + key_added]``: topic shares, shape (n_obs, n_topics)
        - ``.varm[key_added + "_topics"]``: topics, shape (n_vars, n_topics); columns sum to one
        - ``.uns[key_added]``: parameters ("params"), "bound", "icl", "converged", "overdispersion", the clusters'
          "weights" and their "cluster_topics", shape (n_clusters, n_topics)

    Examples
    --------
    >>> from anndata import AnnData
    >>> from mmpca.anndata import cluster
    >>> from mmpca.simulate import paper_design
    >>> adata = AnnData(paper_design(n_samples=60, random_state=0).X.astype("float32"))
    >>> cluster(adata, n_clusters=6, n_topics=4, n_init=1, random_state=0)
    >>> adata.obs["mmpca"].cat.categories.to_list()
    ['0', '1', '2', '3', '4', '5']
    >>> adata.obsm["X_mmpca"].shape
    (60, 4)
    """
    if layer is not None and layer not in adata.layers:
        raise ValueError(f"layer must be one of {sorted(adata.layers)}, or None for X, got {layer!r}.")
    target = adata.copy() if copy else adata
    counts = target.X if layer is None else target.layers[layer]
    if counts is None:
        raise ValueError(f"X is empty. Give the layer that holds the counts, one of {sorted(adata.layers)}.")
    model = MMPCA(n_clusters, n_topics, **options).fit(counts)
    shares = model.transform(counts)
    labels = pd.Categorical.from_codes(model.labels_, categories=pd.Index([str(q) for q in range(n_clusters)]))
    target.obs[key_added] = pd.Series(labels, index=target.obs_names)
    target.obsm[f"X_{key_added}"] = shares
    target.varm[f"{key_added}_topics"] = model.components_.T.copy()
    target.uns[key_added] = _summary(model, layer)
    return target if copy else None


def _summary(model: MMPCA, layer: str | None) -> dict[str, Any]:
    """Return parameters and what was found, in types that `.h5ad` files can hold."""
    parameters = model.get_params(deep=False) | {"layer": layer}
    return {
        # HDF5 has no None: such parameters were left at their defaults.
        "params": {name: _storable(value) for name, value in parameters.items() if value is not None},
        "bound": model.bound_,
        "icl": model.icl_,
        "converged": bool(model.converged_),
        "overdispersion": model.overdispersion_,
        "weights": model.weights_,
        "cluster_topics": model.cluster_topics_,
    }


def _storable(value: Any) -> Any:
    """Return numbers, words and arrays as they are, and anything else in words."""
    if isinstance(value, (bool, int, float, str, np.generic, np.ndarray)):
        return value
    return np.asarray(value) if isinstance(value, (list, tuple)) else repr(value)
