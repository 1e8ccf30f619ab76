"""scikit-learn's own checks of the rivals, behind a door that makes counts of the data that the checks bring."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import validate_data

from mmpca import baselines
from mmpca.counts import as_counts

CHEAP = {
    "n_init": 1,
    "n_init_lda": 1,
    "n_clusters": 2,
    "n_topics": 2,
    "max_iter": 10,
    "covariance": "spherical",
    "lda": LatentDirichletAllocation(max_iter=2, max_doc_update_iter=5),
    "random_state": 0,
}
# Skips itself unless SciPy is told to take any array.
SKIPPED = ("check_array_api_input",)
# A Gaussian mixture refuses one row, and its message is tested elsewhere; blobs around centres are no topics; the
# checks of sparse data take whatever has predict_proba for a classifier.
EXCEPTIONS = {
    "GMMLDA": ("check_fit2d_1sample",),
    "LDAMap": ("check_clustering",),
    "NMFClustering": ("check_clustering",),
    **dict.fromkeys(
        ["MultinomialMixture", "NMFEM", "PoissonMixture"],
        ("check_estimator_sparse_array", "check_estimator_sparse_matrix"),
    ),
}


def on_any_numbers(rival):
    """Return the rival with a door that makes counts of any numbers; all else is its own."""

    class OnAnyNumbers(rival):
        def _counts(self, X, *, reset):
            X = validate_data(self, X, reset=reset, accept_sparse="csr")
            dense = X.toarray() if sparse.issparse(X) else X
            return as_counts(np.rint(100 * np.exp(np.clip(dense, -5, 10))) + 1)

        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.input_tags.positive_only = False
            return tags

    OnAnyNumbers.__name__ = OnAnyNumbers.__qualname__ = rival.__name__
    globals()[rival.__name__] = OnAnyNumbers  # where pickle looks for it
    return OnAnyNumbers


def checks():
    """Yield each rival with each check."""
    for name in baselines.__all__:
        kind = on_any_numbers(getattr(baselines, name))
        known = kind().get_params(deep=False)
        model = kind(**{key: value for key, value in CHEAP.items() if key in known})
        for estimator, check in estimator_checks_generator(model):
            check_name = check.func.__name__
            if check_name not in (*SKIPPED, *EXCEPTIONS.get(name, ())):
                yield pytest.param(estimator, check, id=f"{name}-{check_name}")


@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_passes_scikit_learns_checks_on_counts_made_of_their_data(estimator, check):
    check(estimator)
