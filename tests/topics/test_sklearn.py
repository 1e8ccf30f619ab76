"""scikit-learn's checks of `LDA`, on their own data, which are not counts, and on counts made from these."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator
from sklearn.utils.validation import validate_data

from mmpca.counts import as_counts
from mmpca.topics import LDA

NOT_COUNTS = "the data of the check are fractional or negative"
EXPECTED_FAILURES = dict.fromkeys(
    [
        "check_dict_unchanged",
        "check_dont_overwrite_parameters",
        "check_dtype_object",
        "check_estimator_sparse_array",
        "check_estimator_sparse_matrix",
        "check_estimator_sparse_tag",
        "check_estimators_dtypes",
        "check_estimators_fit_returns_self",
        "check_estimators_nan_inf",
        "check_estimators_overwrite_params",
        "check_estimators_pickle",
        "check_f_contiguous_array_estimator",
        "check_fit2d_1feature",
        "check_fit2d_1sample",
        "check_fit2d_predict1d",
        "check_fit_check_is_fitted",
        "check_fit_idempotent",
        "check_fit_score_takes_y",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_n_features_in",
        "check_n_features_in_after_fitting",
        "check_pipeline_consistency",
        "check_readonly_memmap_input",
        "check_transformer_data_not_an_array",
        "check_transformer_general",
        "check_transformer_preserve_dtypes",
    ],
    NOT_COUNTS,
)


class OnAnyNumbers(LDA):
    """LDA that first converts any numbers to counts."""

    def _counts(self, X, *, reset):
        X = validate_data(self, X, reset=reset, accept_sparse="csr")
        dense = X.toarray() if sparse.issparse(X) else X
        return as_counts(np.rint(100 * np.exp(np.clip(dense, -5, 10))) + 1)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = False
        return tags


@pytest.mark.filterwarnings("ignore:Estimator's parameters changed:FutureWarning")
def test_only_checks_whose_data_are_not_counts_fail():
    results = check_estimator(LDA(2), expected_failed_checks=EXPECTED_FAILURES, on_skip=None, on_fail=None)
    failed = {result["check_name"] for result in results if result["status"] in ("xfail", "failed")}
    assert failed == set(EXPECTED_FAILURES)
    assert sum(result["status"] == "passed" for result in results) >= 15


def checks_on_counts():
    """Yield the checks except that of array API input, which is skipped unless SciPy is configured for it."""
    for estimator, check in estimator_checks_generator(OnAnyNumbers(2, n_init=1, max_passes=30)):
        if check.func.__name__ != "check_array_api_input":
            yield pytest.param(estimator, check, id=check.func.__name__)


@pytest.mark.parametrize(("estimator", "check"), list(checks_on_counts()))
def test_all_checks_pass_on_counts(estimator, check):
    check(estimator)
