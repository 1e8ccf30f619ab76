"""scikit-learn's own estimator checks, with the data of the checks converted to counts."""

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
    "n_iter": 10,
    "covariance": "spherical",
    "lda": LatentDirichletAllocation(max_iter=2, max_doc_update_iter=5),
    "random_state": 0,
}
# Skips itself unless SciPy's array API is enabled.
SKIPPED = ("check_array_api_input",)
# A Gaussian mixture needs two rows, which is tested elsewhere; blobs around centers are not topics; the checks of
# sparse data treat every estimator with predict_proba as a classifier.
EXCEPTIONS = {
    "GMMLDA": ("check_fit2d_1sample",),
    "LDAMap": ("check_clustering",),
    "NMFClustering": ("check_clustering",),
    **dict.fromkeys(
        ["GSDMM", "MultinomialMixture", "NMFEM", "PoissonMixture", "PolyaMixture"],
        ("check_estimator_sparse_array", "check_estimator_sparse_matrix"),
    ),
}


def on_any_numbers(baseline):
    """Return a subclass of the baseline that converts any numbers to counts."""

    class OnAnyNumbers(baseline):
        def _counts(self, X, *, reset):
            X = validate_data(self, X, reset=reset, accept_sparse="csr")
            dense = X.toarray() if sparse.issparse(X) else X
            return as_counts(np.rint(100 * np.exp(np.clip(dense, -5, 10))) + 1)

        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.input_tags.positive_only = False
            return tags

    OnAnyNumbers.__name__ = OnAnyNumbers.__qualname__ = baseline.__name__
    globals()[baseline.__name__] = OnAnyNumbers  # where pickle looks it up
    return OnAnyNumbers


def checks():
    """Yield each baseline with each check."""
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
