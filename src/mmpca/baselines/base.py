"""What all rivals share: the door for data and parameters, and nothing of the engine that they are measured against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import validate_data

from mmpca.baselines.checks import SEARCH_RULES, Rule, check_enough_rows, check_parameters
from mmpca.counts import Counts, as_counts

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
RandomState = int | np.random.RandomState | None


class CountClusterer(ClusterMixin, BaseEstimator):
    """A clusterer of counts: checks parameters and data, then leaves the fit to `_fit` of the class."""

    n_clusters: Any  # a number; one class takes "auto" as well
    random_state: RandomState
    labels_: Labels
    n_features_in_: int

    _rules: ClassVar[Mapping[str, Rule]] = SEARCH_RULES

    def fit(self, X: Any, y: object = None) -> Self:
        """Cluster the rows of a count matrix.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            Non-negative whole numbers, no row without any.
        y : ignored

        Returns
        -------
        self
        """
        check_parameters(self.get_params(deep=False), self._rules)
        rows = self._counts(X, reset=True)
        self._fit(rows, check_random_state(self.random_state))
        return self

    def _fit(self, rows: Counts, rng: np.random.RandomState) -> None:
        """Cluster checked rows and set the attributes, in place."""
        raise NotImplementedError

    def _counts(self, X: Any, *, reset: bool) -> Counts:
        """Return X as counts; in fitting, refuse empty rows and too few of them."""
        rows = as_counts(X, empty_rows="error" if reset else "allow")
        if reset:
            self._check_rows(rows)
        # Last, so that a refusal leaves an earlier fit as it was.
        validate_data(self, X, reset=reset, skip_check_array=True)
        return rows

    def _check_rows(self, rows: Counts) -> None:
        """Refuse rows that cannot be fitted with these parameters; nothing is set here."""
        if not isinstance(self.n_clusters, str):
            check_enough_rows(rows, self.n_clusters)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


def child_seeds(rng: np.random.RandomState, n_seeds: int) -> list[int]:
    """Return seeds of independent runs."""
    seeds: list[int] = rng.randint(np.iinfo(np.int32).max, size=n_seeds).tolist()
    return seeds
