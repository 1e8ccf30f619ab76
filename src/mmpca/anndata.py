"""Clustering of AnnData objects, following the conventions of scverse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mmpca.counts import in_memory
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
        Annotated data matrix with raw counts: observations in rows, variables in columns.
    n_clusters : int
        Number of clusters.
    n_topics : int
        Number of topics.
    layer : str, optional
        Layer with the counts; by default, `adata.X`.
    key_added : str, default="mmpca"
        Key under which the results are added.
    copy : bool, default=False
        Return a copy with the results instead of adding them to `adata`.
    **options
        Other parameters of :class:`~mmpca.MMPCA`, such as `random_state`.

    Returns
    -------
    AnnData or None
        The copy if `copy` is true, otherwise None. These fields are set:

        - ``.obs[key_added]``: cluster of each observation, categorical ("0", "1", ...)
        - ``.obsm["X_" + key_added]``: topic proportions, shape (n_obs, n_topics)
        - ``.varm[key_added + "_topics"]``: topics, shape (n_vars, n_topics); columns sum to one
        - ``.uns[key_added]``: "params", "bound", "icl", "converged", "overdispersion", "weights", shape
          (n_clusters,), and "cluster_topics", shape (n_clusters, n_topics)

    Raises
    ------
    ValueError
        If the layer does not exist, or there are no counts.
    CountsError
        If the values are not counts, for example after ``scanpy.pp.log1p``.

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
        raise ValueError(f"layer must be one of {sorted(adata.layers)}, or None for adata.X, but it is {layer!r}.")
    target = adata
    if copy:
        target = adata.to_memory() if adata.isbacked else adata.copy()
    counts = in_memory(target.X if layer is None else target.layers[layer])
    if counts is None:
        raise ValueError(f"adata.X is None. Pass the layer with the counts, one of {sorted(adata.layers)}.")
    model = MMPCA(n_clusters, n_topics, **options).fit(counts)
    shares = model.transform(counts)
    labels = pd.Categorical.from_codes(model.labels_, categories=pd.Index([str(q) for q in range(n_clusters)]))
    target.obs[key_added] = pd.Series(labels, index=target.obs_names)
    target.obsm[f"X_{key_added}"] = shares
    target.varm[f"{key_added}_topics"] = model.components_.T.copy()
    target.uns[key_added] = _summary(model, layer)
    return target if copy else None


def _summary(model: MMPCA, layer: str | None) -> dict[str, Any]:
    """Return the parameters and results, in types that can be written to `.h5ad` files."""
    parameters = model.get_params(deep=False) | {"layer": layer}
    return {
        # HDF5 has no None; a parameter that is None has its default.
        "params": {name: _storable(value) for name, value in parameters.items() if value is not None},
        "bound": model.bound_,
        "icl": model.icl_,
        "converged": bool(model.converged_),
        "overdispersion": model.overdispersion_,
        "weights": model.weights_,
        "cluster_topics": model.cluster_topics_,
    }


def _storable(value: Any) -> Any:
    """Return numbers, strings and arrays unchanged, sequences as arrays, and anything else as its repr."""
    if isinstance(value, (bool, int, float, str, np.generic, np.ndarray)):
        return value
    return np.asarray(value) if isinstance(value, (list, tuple)) else repr(value)
