"""Prediction on data in parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mmpca.counts import Counts
from mmpca.distributed.crews import crew_of
from mmpca.distributed.parts import Parts
from mmpca.distributed.sources import Reading, load
from mmpca.errors import CountsError
from mmpca.model import MMPCA, prediction
from mmpca.model.prediction import Scores
from mmpca.places import ForRows, Rows, joined

Array = NDArray[np.float64]


def predict(model: MMPCA, X: Any, client: Any = None, *, read: Mapping[str, Any] | None = None) -> NDArray[np.int32]:
    """Return the most probable cluster of each row, where the rows are.

    Parameters
    ----------
    model : MMPCA
        A fitted model.
    X, client, read
        As in :func:`fit`. Files and AnnData are brought into the order of the model's features by their names, where
        both have names: features that the model does not know are left out, missing ones are zero. A row without
        counts falls into the largest cluster.

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
    with crew_of(client, effective_n_jobs(model.n_jobs)) as crew:
        parts = load(X, crew, reading_for(model, options=read or {})).parts
        check_features(model, parts)
        labels: NDArray[np.int32] = joined(parts, predict_rows, np.arange(parts.n_rows), shared=[_scores(model)])
    return labels


def reading_for(model: MMPCA, **options: Any) -> Reading:
    """Return how rows are read for a prediction by the model."""
    known = getattr(model, "feature_names_in_", None)
    return Reading(stabilize=model.stabilize, empty_rows="allow", known=known, **options)


def check_features(model: MMPCA, parts: Parts) -> None:
    """Raise CountsError unless rows have as many features as the model."""
    if parts.n_features != model.n_features_in_:
        raise CountsError(
            f"X must have the {model.n_features_in_} features that the model was fitted to, but it has "
            f"{parts.n_features}."
        )


def probabilities(model: MMPCA, parts: Parts) -> Array:
    """Return the probability of each cluster for each row of parts, (N, Q)."""
    found: Array = joined(parts, probabilities_of_rows, np.arange(parts.n_rows), shared=[_scores(model)])
    return found


def best_clusters(model: MMPCA, parts: Parts) -> NDArray[Any]:
    """Return cluster and probability of each row of parts, an array of `prediction.BEST`, (N,)."""
    found: NDArray[Any] = joined(parts, best_of_rows, np.arange(parts.n_rows), shared=[_scores(model)])
    return found


def own_probabilities(model: MMPCA, parts: Parts) -> Array:
    """Return the probability of the own cluster of each row that the model was fitted to, (N,)."""
    found: Array = joined(parts, own_of_rows, np.arange(parts.n_rows), model.labels_, shared=[_scores(model)])
    return found


def _scores(model: MMPCA) -> Scores:
    return prediction.scores_of(model.components_, model.cluster_topics_, model.weights_)


# --- what workers call, of all rows of a part ---------------------------------------------------------------------


def predict_rows(part: Counts, rows: Rows, scores: Scores, for_rows: ForRows) -> NDArray[np.int32]:
    """Return the most probable cluster of each row."""
    labels = np.empty(part.n_rows, dtype=np.int32)
    for piece, joint in prediction.joint_in_pieces(part, scores):
        labels[piece] = joint.argmax(axis=1)
    return labels


def probabilities_of_rows(part: Counts, rows: Rows, scores: Scores, for_rows: ForRows) -> Array:
    """Return the probability of each cluster for each row."""
    return prediction.posterior(prediction.joint_of(part, scores))


def best_of_rows(part: Counts, rows: Rows, scores: Scores, for_rows: ForRows) -> NDArray[Any]:
    """Return the most probable cluster of each row, and its probability."""
    best = np.empty(part.n_rows, dtype=prediction.BEST)
    for piece, joint in prediction.joint_in_pieces(part, scores):
        best[piece] = prediction.best_of(prediction.posterior(joint))
    return best


def own_of_rows(part: Counts, rows: Rows, labels: NDArray[np.int32], scores: Scores, for_rows: ForRows) -> Array:
    """Return the probability of each row's own cluster."""
    own = np.empty(part.n_rows)
    for piece, joint in prediction.joint_in_pieces(part, scores):
        own[piece] = prediction.own_of(prediction.posterior(joint), labels[piece])
    return own
