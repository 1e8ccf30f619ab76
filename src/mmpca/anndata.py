"""Clustering of AnnData objects, following the conventions of scverse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from mmpca.counts import in_memory
from mmpca.errors import CountsError, warn
from mmpca.model import MMPCA
from mmpca.selection import MMPCASearch

if TYPE_CHECKING:
    from anndata import AnnData

__all__ = ["cluster"]

N_MARKERS = 25  # for each cluster
BATCH_AGREEMENT = 0.5  # adjusted mutual information above which clusters are said to follow the batches
CHECKED_VALUES = 10_000  # values read to recognize a layer of counts


def cluster(
    adata: AnnData,
    n_clusters: int | None = None,
    n_topics: int | None = None,
    *,
    layer: str | None = None,
    use_raw: bool = False,
    mask_var: str | NDArray[np.bool_] | None = None,
    batch_key: str | None = None,
    key_added: str = "mmpca",
    copy: bool = False,
    **options: Any,
) -> Any:
    """Cluster the observations of an AnnData object.

    Parameters
    ----------
    adata : AnnData
        Annotated data matrix with raw counts: observations in rows, variables in columns. It may be backed or lazy; the
        counts are then read into memory, and results are added to the object, not to its file.
    n_clusters, n_topics : int, optional
        Numbers of clusters and topics; :class:`~mmpca.MMPCASearch` chooses those that are not given.
    layer : str, optional
        Layer with the counts; by default, `adata.X`.
    use_raw : bool, default=False
        Whether to take the counts from `adata.raw`.
    mask_var : str or array of bool, optional
        Variables to use, or a boolean column of `adata.var` such as "highly_variable"; all by default.
    batch_key : str, optional
        Column of `adata.obs` with batches. Batches are not corrected for, but the result has a table of clusters by
        batches, and there is a warning if the clusters follow them.
    key_added : str, default="mmpca"
        Key under which the results are added.
    copy : bool, default=False
        Return a copy with the results instead of adding them to `adata`.
    **options
        Other parameters of :class:`~mmpca.MMPCA`, such as `random_state`.

    Returns
    -------
    MMPCA or AnnData
        The fitted model, or the copy if `copy` is true. These fields are set:

        - ``.obs[key_added]``: cluster of each observation, categorical ("0", "1", ...); missing for observations
          without counts, with a warning
        - ``.obs[key_added + "_probability"]``: its probability
        - ``.obsm["X_" + key_added]``: topic proportions, shape (n_obs, n_topics)
        - ``.varm[key_added + "_topics"]``: topics, shape (n_vars, n_topics); unused variables are zero, and columns sum
          to one unless variables of `adata.raw` are missing
        - ``.uns[key_added]``: "params", "names" and "weights", both of shape (n_clusters,), "markers", a data frame of
          the most distinctive variables of each cluster, "bound", "icl", "converged", "overdispersion", and
          "cluster_topics", shape (n_clusters, n_topics); "batches", a data frame, with `batch_key`; "reason", if
          numbers were chosen

    Raises
    ------
    ValueError
        If the layer, the mask or the batches do not exist, or there are no counts.
    CountsError
        If the values are not counts, for example after ``scanpy.pp.log1p``; the message names the layer to use.

    Warns
    -----
    UserWarning
        If variable names are not unique, observations have no counts, or the clusters follow the batches.

    Examples
    --------
    >>> from anndata import AnnData
    >>> from mmpca.anndata import cluster
    >>> from mmpca.simulate import paper_design
    >>> adata = AnnData(paper_design(n_samples=60, random_state=0).X.astype("float32"))
    >>> model = cluster(adata, n_clusters=6, n_topics=4, n_init=1, random_state=0)
    >>> adata.obs["mmpca"].cat.categories.to_list()
    ['0', '1', '2', '3', '4', '5']
    >>> adata.obsm["X_mmpca"].shape, adata.uns["mmpca"]["markers"].columns.to_list()[:3]
    ((60, 4), ['cluster', 'variable', 'count'])
    """
    counts, names = _counts(adata, layer, use_raw)
    kept = np.ones(len(names), dtype=bool) if mask_var is None else _mask(adata, mask_var, names)
    batches = None if batch_key is None else _batches(adata, batch_key)
    target = adata
    if copy:
        target = adata.copy() if not adata.isbacked and isinstance(adata.obs, pd.DataFrame) else adata.to_memory()
    try:
        rows = sparse.csr_array(counts)[:, kept]
        rows.eliminate_zeros()
        filled = np.flatnonzero(np.diff(rows.indptr))
        model, reason = _fit(rows[filled], n_clusters, n_topics, options)
    except CountsError as error:
        others = [f"layer={name!r}" for name in target.layers if name != layer and _holds_counts(target.layers[name])]
        others += ["use_raw=True"] if not use_raw and target.raw is not None and _holds_counts(target.raw.X) else []
        others += ["layer=None"] if (layer or use_raw) and target.X is not None and _holds_counts(target.X) else []
        advice = f"Counts are in {' or '.join(others)}." if others else "No layer holds counts."
        text = f"{error} These are the values of {_described(layer, use_raw)}. {advice}"
        raise CountsError(text, row=error.row, column=error.column) from error
    model.name_features(names[kept])
    if use_raw or layer is not None:
        model._layer = "raw" if use_raw else layer  # where the command line finds the counts
    if len(set(names[kept])) < kept.sum():
        repeated = pd.Index(names[kept]).value_counts().index[0]
        warn(
            f"Variable names are not unique, such as {str(repeated)!r}; new data cannot be matched to the model by "
            "name. Call adata.var_names_make_unique() first.",
            UserWarning,
        )
    if len(filled) < rows.shape[0]:
        warn(f"{rows.shape[0] - len(filled):,} observations have no counts and belong to no cluster.", UserWarning)
    _add_results(target, model, rows, filled, names[kept], key_added)
    summary = _summary(model, layer)
    if reason is not None:
        summary["reason"] = reason
    if batches is not None:
        clusters = np.full(rows.shape[0], -1)
        clusters[filled] = model.labels_
        summary["batches"] = _compare_batches(clusters, batches)
    target.uns[key_added] = summary
    return target if copy else model


def _described(layer: str | None, use_raw: bool) -> str:
    return "adata.raw" if use_raw else "adata.X" if layer is None else f"the layer {layer!r}"


def _counts(adata: AnnData, layer: str | None, use_raw: bool) -> tuple[Any, NDArray[np.object_]]:
    """Return the matrix of counts in memory, and the names of its variables."""
    if use_raw and layer is not None:
        raise ValueError("layer and use_raw are mutually exclusive. Pass only one of them.")
    if use_raw and adata.raw is None:
        raise ValueError("use_raw=True, but adata.raw is None. Pass the layer with the counts, or neither.")
    if layer is not None and layer not in adata.layers:
        raise ValueError(f"layer must be one of {sorted(adata.layers)}, or None for adata.X, but it is {layer!r}.")
    source = adata.raw if use_raw else adata
    matrix = _loaded(source.X if layer is None else adata.layers[layer])
    if matrix is None:
        raise ValueError(f"adata.X is None. Pass the layer with the counts, one of {sorted(adata.layers)}.")
    return matrix, np.array([str(name) for name in source.var_names], dtype=object)


def _loaded(matrix: Any) -> Any:
    """Return a matrix in memory; backed objects have HDF5 datasets, lazy ones Dask arrays."""
    matrix = in_memory(matrix)
    if type(matrix).__module__.partition(".")[0] == "h5py":
        return matrix[()]
    return matrix.compute() if hasattr(matrix, "compute") else matrix


def _holds_counts(matrix: Any) -> bool:
    """Return True if the first values of a matrix are whole numbers."""
    first = _loaded(matrix[: max(1, CHECKED_VALUES // max(1, matrix.shape[1]))])
    values = sparse.csr_array(first).data
    return bool(values.size and (values >= 0).all() and (values % 1 == 0).all() and values.any())


def _mask(adata: AnnData, mask: str | NDArray[np.bool_], names: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Return which variables to use, (n_vars,)."""
    if isinstance(mask, str):
        if mask not in adata.var:
            raise ValueError(f"mask_var must be a column of adata.var, {sorted(adata.var)}, but it is {mask!r}.")
        chosen = set(np.asarray(adata.var_names)[np.asarray(adata.var[mask], dtype=bool)])
        return np.array([name in chosen for name in names])
    kept = np.asarray(mask)
    if kept.shape != names.shape or kept.dtype != bool:
        raise ValueError(f"mask_var must be a column of adata.var or {len(names)} booleans, one for each variable.")
    return kept


def _batches(adata: AnnData, key: str) -> NDArray[np.object_]:
    if key not in adata.obs:
        raise ValueError(f"batch_key must be a column of adata.obs, {sorted(adata.obs)}, but it is {key!r}.")
    return np.array([str(value) for value in np.asarray(adata.obs[key])], dtype=object)


def _fit(
    rows: sparse.csr_array, n_clusters: int | None, n_topics: int | None, options: dict[str, Any]
) -> tuple[MMPCA, str | None]:
    """Return a fitted model, and the reason for its numbers if they were chosen."""
    if n_clusters is not None and n_topics is not None:
        return MMPCA(n_clusters, n_topics, **options).fit(rows), None
    search = MMPCASearch(
        "auto" if n_clusters is None else [n_clusters], "auto" if n_topics is None else [n_topics], **options
    ).fit(rows)
    return search.best_estimator_, search.reason_


def _add_results(
    target: AnnData,
    model: MMPCA,
    rows: sparse.csr_array,
    filled: NDArray[np.intp],
    names: NDArray[np.object_],
    key: str,
) -> None:
    """Add labels, probabilities, topic proportions and topics to an object, in place."""
    n_obs, n_topics = rows.shape[0], len(model.components_)
    codes, probability = np.full(n_obs, -1), np.full(n_obs, np.nan)
    shares = np.full((n_obs, n_topics), np.nan)
    codes[filled], shares[filled] = model.labels_, model.transform(rows[filled])
    probability[filled] = model.leave_one_out_proba(rows[filled])[np.arange(len(filled)), model.labels_]
    labels = pd.Categorical.from_codes(codes, categories=pd.Index([str(q) for q in range(len(model.weights_))]))
    target.obs[key] = pd.Series(labels, index=target.obs_names)
    target.obs[f"{key}_probability"] = pd.Series(probability, index=target.obs_names)
    target.obsm[f"X_{key}"] = shares
    topics = np.zeros((target.n_vars, n_topics))
    places: dict[str, list[int]] = {}
    for v, name in enumerate(target.var_names):
        places.setdefault(str(name), []).append(v)
    for v, name in enumerate(names):
        if places.get(name):
            topics[places[name].pop(0)] = model.components_[:, v]
    target.varm[f"{key}_topics"] = topics


def _compare_batches(clusters: NDArray[Any], batches: NDArray[np.object_]) -> pd.DataFrame:
    """Return a table of clusters by batches; warn if clusters follow batches."""
    from sklearn.metrics import adjusted_mutual_info_score

    filled = clusters >= 0
    agreement = adjusted_mutual_info_score(batches[filled], clusters[filled])
    if agreement > BATCH_AGREEMENT:
        warn(
            f"The clusters follow the batches (adjusted mutual information {agreement:.2f}). Cluster each batch "
            "separately, or leave out variables that differ between batches.",
            UserWarning,
        )
    table = pd.crosstab(clusters[filled], batches[filled])
    table.index, table.columns = table.index.astype(str), table.columns.astype(str)
    table.index.name, table.columns.name = "cluster", None
    return table


def _summary(model: MMPCA, layer: str | None) -> dict[str, Any]:
    """Return the parameters and results, in types that can be written to `.h5ad` files."""
    parameters = model.get_params(deep=False) | {"layer": layer}
    markers = model.features_frame(n_features=N_MARKERS)
    markers = markers[markers["kind"] == "cluster"].drop(columns=["kind", "name"])
    markers = markers.rename(columns={"number": "cluster", "feature": "variable"}).reset_index(drop=True)
    markers.index = markers.index.astype(str)
    return {
        # HDF5 has no None; a parameter that is None has its default.
        "params": {name: _storable(value) for name, value in parameters.items() if value is not None},
        "names": model.cluster_names_.astype(str),
        "markers": markers.astype({"cluster": str}),
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
