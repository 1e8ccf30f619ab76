"""scikit-learn's own checks: on their data, which are not counts, and on counts made from them."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator
from sklearn.utils.validation import validate_data

from mmpca import MMPCA, MMPCASearch
from mmpca.counts import as_counts
from mmpca.errors import InterruptedSearchWarning

# Most of their data are far from a mixture of multinomial distributions, which the model warns about.
pytestmark = pytest.mark.filterwarnings("ignore::mmpca.errors.OverdispersionWarning")

NOT_COUNTS = "the check's data are fractional or negative, which MMPCA rejects"
EXPECTED_FAILURES = dict.fromkeys(
    [
        "check_clustering",
        "check_dict_unchanged",
        "check_dont_overwrite_parameters",
        "check_dtype_object",
        "check_estimator_sparse_tag",
        "check_estimators_dtypes",
        "check_estimators_fit_returns_self",
        "check_estimators_partial_fit_n_features",
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
NO_CLASSIFIER = "the check reads classifier tags of any estimator that accepts sparse data and has predict_proba"
CHECK_ERRORS = dict.fromkeys(["check_estimator_sparse_array", "check_estimator_sparse_matrix"], NO_CLASSIFIER)


class OnAnyNumbers(MMPCA):
    """MMPCA that turns any numbers into counts first; everything else is the estimator's own."""

    def _counts(self, X, *, reset):
        X = validate_data(self, X, reset=reset, accept_sparse=True, ensure_min_samples=2 if reset else 1)
        dense = X.toarray() if sparse.issparse(X) else X
        return as_counts(np.rint(100 * np.exp(np.clip(dense, -5, 10))) + 1)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = False
        return tags


@pytest.mark.filterwarnings("ignore:Estimator's parameters changed:FutureWarning")
def test_fails_scikit_learns_checks_only_where_their_data_are_not_counts():
    expected = EXPECTED_FAILURES | CHECK_ERRORS
    results = check_estimator(MMPCA(2, 2), expected_failed_checks=expected, on_skip=None)
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert failed == set(expected)
    assert sum(result["status"] == "passed" for result in results) >= 15


def checks_on_counts():
    """Yield the checks, except the one for array API input, which skips itself unless SciPy is configured for it."""
    # Most of their data are overdispersed, so each fit would compare units again.
    quick = OnAnyNumbers(2, 2, topics="lda", dispersion="multinomial", n_init=1)
    generator = estimator_checks_generator(quick, expected_failed_checks=CHECK_ERRORS, mark="xfail")
    for case in generator:
        estimator, check = getattr(case, "values", case)
        if check.func.__name__ != "check_array_api_input":
            yield pytest.param(estimator, check, marks=getattr(case, "marks", ()), id=check.func.__name__)


@pytest.mark.parametrize(("estimator", "check"), list(checks_on_counts()))
def test_passes_scikit_learns_checks_on_counts_made_from_their_data(estimator, check):
    check(estimator)


# --- callbacks --------------------------------------------------------------------------------------------------


class Tasks:
    """Records the tasks of a fit, and asks it to stop when one of them ends."""

    def __init__(self, last=None):
        self.log, self.last = [], last

    def setup(self, estimator, context):
        self.log.append(("setup", context.task_name))

    def on_fit_task_begin(self, estimator, context):
        self.log.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context):
        self.log.append(("end", context.task_name))
        return context.task_name == self.last

    def teardown(self, estimator, context):
        self.log.append(("teardown", context.task_name))


needs_callbacks = pytest.mark.skipif(not hasattr(MMPCA, "set_callbacks"), reason="requires scikit-learn 1.9")


@needs_callbacks
@pytest.mark.parametrize(
    "estimator",
    [
        MMPCA(4, 3, topics="lda", n_init=1, random_state=0),
        MMPCASearch([3, 4], [3], criterion="icl", n_init=1, random_state=0),
        MMPCASearch([3, 4], [3], random_state=0),
    ],
)
def test_every_task_that_callbacks_see_ends_within_the_fit(X, estimator):
    tasks, plain = Tasks(), clone(estimator).fit(X)
    fitted = clone(estimator).set_callbacks(tasks).fit(X)
    np.testing.assert_array_equal(fitted.predict(X), plain.predict(X))
    assert tasks.log[:2] == [("setup", "fit"), ("begin", "fit")]
    assert tasks.log[-2:] == [("end", "fit"), ("teardown", "fit")]
    stages = [(when, name) for when, name in tasks.log[2:-2] if name != "percent"]
    assert len(stages) >= 6
    assert [("end", name) for when, name in stages[::2]] == stages[1::2]
    assert all(when == "begin" for when, _ in stages[::2])
    assert tasks.log.count(("begin", "percent")) == tasks.log.count(("end", "percent")) > 0


@needs_callbacks
def test_a_callback_can_stop_a_fit_and_is_closed_after_an_error(X):
    with pytest.warns(InterruptedSearchWarning):
        MMPCA(4, 3, random_state=0).set_callbacks(Tasks("topics")).fit(X)
    tasks = Tasks()

    def fail(estimator, context):
        raise RuntimeError("a broken callback")

    tasks.on_fit_task_end = fail
    with pytest.raises(RuntimeError, match="broken"):
        MMPCA(4, 3, random_state=0).set_callbacks(tasks).fit(X)
    assert tasks.log[-1] == ("teardown", "fit")
