"""Everything that cannot be fitted is refused with its place and a remedy, and leaves nothing behind."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from mmpca import MMPCA
from mmpca.errors import CountsError
from mmpca.model.constraints import RULES

NOT_WHOLE = [0, -1, 2.5, "3", True, None, np.nan, np.inf, [2], np.array([1, 2])]


def refuses(X, message, *, kind=ValueError, **parameters):
    """Assert that a fit fails with a message that contains the given pieces in order, and leaves nothing fitted."""
    model = MMPCA(**({"n_clusters": 2, "n_topics": 2} | parameters))
    pieces = [message] if isinstance(message, str) else message
    with pytest.raises(kind, match="(?s)" + ".*".join(map(re.escape, pieces))):
        model.fit(X)
    assert {name for name in vars(model) if name.endswith("_")} <= {"n_features_in_", "feature_names_in_"}


# --- parameters -------------------------------------------------------------------------------------------------


def shown(value):
    return f"an array of shape {np.shape(value)}" if np.ndim(value) else repr(value)


BAD_PARAMETERS = {
    "n_clusters": NOT_WHOLE,
    "n_topics": NOT_WHOLE,
    "topics": ["LDA", "nmf", None, 3, 1.5, {}],
    "topic_prior": [0, -1, 0.0, 1e-7, 1e9, 10**30, np.nan, np.inf, "1", None, True, [1.0, 1.0]],
    "start": ["k-means", None, 3, {}],
    "n_init": [0, -1, 2.5, "3", True, None, "Auto", [1]],
    "algorithm": ["GREEDY", None, 1, ["greedy"]],
    "stabilize": ["log", "SQRT", True, 0, ["sqrt"]],
    "max_epochs": [-1, 2.5, "3", True, None, np.inf],
    "tol": [-1, -1e-12, np.nan, np.inf, "0", None, True],
    "refit_topics": ["yes", 0, 1, None, [True]],
    "n_jobs": [0, 1.5, "2", True, [2]],
    "verbose": [-1, 1.5, "1", None, [1]],
}
EXPECTED = {
    "n_clusters": "a whole number of at least 1",
    "n_topics": "a whole number of at least 1",
    "topics": 'one of "lda", "random", or an array of shape (n_topics, n_features)',
    "topic_prior": "a number from 1e-6 to 1e8",
    "start": 'one of "auto", "random", "kmeans", "anneal", or an array of labels of shape (n_samples,)',
    "n_init": '"auto" or a whole number of at least 1',
    "algorithm": "one of ('greedy', 'exact', 'cvem', 'vbem')",
    "stabilize": 'None or "sqrt"',
    "max_epochs": "a whole number of at least 0",
    "tol": "a finite number of at least 0",
    "refit_topics": "True or False",
    "n_jobs": "None or a whole number but 0",
    "verbose": "a whole number of at least 0",
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD_PARAMETERS.items() for value in values], ids=repr
)
def test_a_parameter_that_breaks_its_rule_is_named_with_its_value(X, name, value):
    refuses(X, f"{name} must be {EXPECTED[name]}, but it is {shown(value)}.", **{name: value})


def test_every_parameter_but_the_seed_has_a_rule_and_a_test():
    assert RULES.keys() == BAD_PARAMETERS.keys() == EXPECTED.keys()
    assert RULES.keys() == MMPCA().get_params().keys() - {"random_state"}


@pytest.mark.parametrize("seed", [-1, "x", 1.5])
def test_a_seed_that_is_none_is_refused(X, seed):
    refuses(X, "Seed must be" if seed == -1 else "cannot be used to seed", random_state=seed)


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_clusters", np.int8(3)), ("n_topics", np.uint64(2)), ("n_init", np.int64(1)), ("max_epochs", np.int32(0)),
     ("tol", 0), ("tol", np.float32(0.5)), ("topic_prior", 1), ("refit_topics", np.True_), ("verbose", True),
     ("n_jobs", -100), ("n_jobs", 1000)],
)  # fmt: skip
def test_unusual_but_sound_values_are_taken(X, name, value):
    model = MMPCA(**({"n_clusters": 2, "n_topics": 2, "n_init": 1, "random_state": 0} | {name: value})).fit(X)
    assert np.isfinite(model.bound_)


@pytest.mark.parametrize("name", ["topics", "start"])
def test_rows_of_different_lengths_are_refused_by_the_name_of_their_parameter(X, name):
    refuses(X, f"{name} must", **{name: [[1.0], [0.5, 0.5]]})


# --- sizes ------------------------------------------------------------------------------------------------------


def test_more_clusters_than_rows_are_refused(X):
    expected = ["n_clusters=6 clusters need as many rows, but n_samples = 5.", "Lower n_clusters or give more rows."]
    refuses(X[:5], expected, n_clusters=6)
    assert MMPCA(5, 2, random_state=0).fit(X[:5]).labels_.max() == 4


def test_one_row_is_too_few_for_the_default_clusters(X):
    refuses(X[:1], ["n_clusters=8 clusters need as many rows, but n_samples = 1."], n_clusters=8)


def test_more_topics_than_features_are_refused(X):
    columns = X[:, :3] + 1
    expected = ["n_topics=4 topics need as many features, but n_features = 3.", "Lower n_topics or give more features."]
    refuses(columns, expected, n_topics=4)
    assert MMPCA(2, 3, random_state=0).fit(columns).components_.shape == (3, 3)


# --- labels to start from ---------------------------------------------------------------------------------------

LABELS = np.arange(80) % 2


def changed(position, value, dtype=int):
    labels = LABELS.astype(dtype)
    labels[position] = value
    return labels


BAD_LABELS = {
    "too short": (LABELS[:-1], ["for each of the 80 rows, but its shape is (79,)", "Give an array of shape (80,)."]),
    "two-dimensional": (LABELS[:, None], ["but its shape is (80, 1)", "Give an array of shape (80,)."]),
    "empty": ([], ["but its shape is (0,)", "Give an array of shape (80,)."]),
    "too high": (changed(7, 2), ["from 0 to 1, but start[7] = 2.", "Renumber the labels or raise n_clusters."]),
    "too low": (changed(9, -1), ["from 0 to 1, but start[9] = -1.", "Renumber the labels"]),
    "too high float": (changed(3, 5.0, float), ["but start[3] = 5.0."]),
    "gap": (
        np.zeros(80, dtype=int),
        ["all 2 clusters, but cluster 1 has no row.", "without gaps or lower n_clusters"],
    ),
    "letters": (
        np.full(80, "a"),
        ["0 to 1, but its type is <U1.", "numpy.unique(labels, return_inverse=True)[1]"],
    ),
    "words": (["sun", "moon"] * 40, ["but its type is <U4.", "Turn names into numbers first"]),
    "None": (np.array([None] * 80), ["but its type is object.", "Turn names into numbers first"]),
    "Boolean": (LABELS.astype(bool), ["but its type is bool."]),
    "fractions": (LABELS + 0.5, ["from 0 to 1, but start[0] = 0.5."]),
    "NaN": (changed(4, np.nan, float), ["from 0 to 1, but start[4] = nan."]),
    "infinite": (changed(4, np.inf, float), ["from 0 to 1, but start[4] = inf."]),
}


@pytest.mark.parametrize(("labels", "message"), BAD_LABELS.values(), ids=BAD_LABELS)
def test_labels_that_are_no_partition_are_refused(X, labels, message):
    refuses(X, ["start must ", *message], start=labels)


# --- given topics -----------------------------------------------------------------------------------------------


def topics_with(k, v, value, data):
    topics = data.topics.copy()
    topics[k, v] = value
    return topics


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.T, ["= (3, 25), but it is (25, 3).", "Pass topics.T."]),
        (lambda t: t[:2], ["(n_topics, n_features) = (3, 25), but it is (2, 25).", "Give one row a topic"]),
        (lambda t: t[:, :9], ["but it is (3, 9).", "one column a feature."]),
        (lambda t: t[0], ["but it is (25,).", "Give one row a topic"]),
        (lambda t: np.empty((0, 0)), ["but it is (0, 0)."]),
        (
            lambda t: 2 * t,
            ["row of topics must sum to one, but row 0 sums to 2.", "Divide: topics / topics.sum("],
        ),
        (lambda t: t * [[1], [1 + 1e-5], [1]], ["must sum to one, but row 1 sums to 1.00001."]),
        (lambda t: 0 * t, ["must sum to one, but row 0 sums to 0."]),
    ],
)
def test_topics_of_another_shape_or_sum_are_refused(data, X, change, message):
    refuses(X, message, n_topics=3, topics=change(data.topics))


@pytest.mark.parametrize("value", [-0.25, np.nan, np.inf, -np.inf])
def test_topics_that_are_no_probabilities_are_refused_with_their_place(data, X, value):
    message = [f"must hold probabilities, but topics[2, 11] = {value}.", "Replace negative and missing values."]
    refuses(X, message, n_topics=3, topics=topics_with(2, 11, value, data))


def test_a_feature_that_occurs_needs_a_topic_that_knows_it(data, X):
    topics = data.topics.copy()
    topics[:, [6, 20]] = 0
    topics /= topics.sum(axis=1, keepdims=True)
    total = X[:, 6].sum()
    message = [f"feature 6 occurs {total} times and has probability zero in all of them (2 such features).", "Smooth"]
    refuses(X, message, n_topics=3, topics=topics)
    without = X.copy()
    without[:, [6, 20]] = 0
    assert (MMPCA(2, 3, topics=topics, random_state=0).fit(without).components_[:, [6, 20]] == 0).all()


def test_topics_a_rounding_error_away_from_one_are_taken(data, X):
    model = MMPCA(2, 3, topics=data.topics * (1 + 5e-7), refit_topics=False, n_init=1, random_state=0).fit(X)
    np.testing.assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-14)


@pytest.mark.parametrize("change", [lambda t: t.astype(str), sparse.csr_array, lambda t: t * (1 + 0j)])
def test_topics_that_are_no_dense_numbers_are_refused_by_name(data, X, change):
    topics = change(data.topics)
    if isinstance(topics, np.ndarray) and topics.dtype.kind == "U":
        topics[0, 0] = "a"
    refuses(X, "topics must", n_topics=3, topics=topics)


# --- counts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-2, ["Negative values in data: X must hold counts", "X[5, 7] = -2.", "Remove or clip negative values"]),
        (0.5, ["(non-negative whole numbers), but X[5, 7] = 0.5.", "Give raw counts", "numpy.rint"]),
        (np.nan, ["but X[5, 7] = NaN.", "Missing values are not supported: drop their rows or columns"]),
        (np.inf, ["but X[5, 7] = inf.", "Infinite values come from", "give the raw counts"]),
        (2.0**31, ["but X[5, 7] = 2147483648.", "The largest possible count is 2147483647: check the unit"]),
        (2.0**63, ["but X[5, 7] = 9.22", "The largest possible count is 2147483647"]),
    ],
)
def test_what_is_no_count_is_refused_with_its_place(X, form, value, message):
    values = X.astype(float)
    values[5, 7] = value
    refuses(form(values), message, kind=CountsError)


@pytest.mark.filterwarnings("ignore::mmpca.errors.OverdispersionWarning")
def test_the_largest_count_is_taken(X):
    values = X.astype(np.int64)
    values[5, 7] = 2**31 - 1
    assert np.isfinite(MMPCA(2, 2, n_init=1, random_state=0).fit(values).bound_)
    values[5, 7] = 2**31
    refuses(values, "X[5, 7] = 2147483648.", kind=CountsError)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "score", "transform"])
def test_what_is_no_count_is_refused_after_the_fit_too(X, model, method):
    values = X.astype(float)
    values[5, 7] = -1
    with pytest.raises(CountsError, match=re.escape("X[5, 7] = -1. Remove or clip negative values")):
        getattr(model, method)(values)


def test_rows_without_counts_are_refused_by_number(X):
    empty = X.copy()
    empty[[4, 9]] = 0
    message = ["X has 2 empty rows (n_samples = 80, n_features = 25): 4, 9.", "drop such rows with X = X["]
    refuses(empty, message, kind=CountsError)
    refuses(sparse.csr_array(empty), message, kind=CountsError)
    remedy = empty[np.asarray(empty.sum(axis=1)).ravel() > 0]
    assert len(MMPCA(2, 2, n_init=1, random_state=0).fit(remedy).labels_) == 78


@pytest.mark.parametrize(
    ("X", "message", "kind"),
    [
        ([1, 2, 3], "Expected 2D array, got 1D array instead", ValueError),
        (5, "Expected 2D array, got scalar array instead", ValueError),
        (np.ones((2, 2, 2)), "dim 3", ValueError),
        (np.ones((0, 3)), "Found array with 0 sample(s)", ValueError),
        (np.ones((3, 0)), "Found array with 0 feature(s)", ValueError),
        (np.ones((3, 2), dtype=complex), "Complex data not supported", ValueError),
        ([["a", "b"], ["c", "d"]], "Convert digits with X.astype(float), and count words with", CountsError),
        (["a text", "another"], "Expected 2D array", ValueError),
        ([[1, None], [2, 3]], "X[0, 1] = NaN. Missing values are not supported", CountsError),
    ],
    ids=["vector", "scalar", "cube", "no rows", "no columns", "complex", "strings", "texts", "None"],
)
def test_what_is_no_matrix_of_numbers_is_refused(X, message, kind):
    refuses(X, message, kind=kind)


# --- a transposed table -----------------------------------------------------------------------------------------

HINT = ["The matrix may be transposed: its 300 rows have far more uneven totals than its 12 columns", "else pass X.T."]


@pytest.fixture(scope="module")
def words_by_texts():
    """Return 300 words in 12 texts, the words as uneven as Zipf has them."""
    shares = 1 / np.arange(1, 301)
    return np.random.default_rng(0).multinomial(4000, shares / shares.sum(), size=12).T


def test_empty_rows_of_a_table_that_looks_transposed_come_with_a_hint(words_by_texts):
    assert (words_by_texts.sum(axis=1) > 0).all()
    table = words_by_texts.copy()
    table[250] = 0
    refuses(table, ["X has 1 empty row", ": 250.", *HINT], kind=CountsError)


@pytest.mark.parametrize(("name", "n"), [("n_clusters", 301), ("n_topics", 13)])
def test_too_many_clusters_or_topics_for_a_table_that_looks_transposed_come_with_a_hint(words_by_texts, name, n):
    refuses(words_by_texts, [f"{name}={n} ", *HINT], **{name: n})


def test_a_table_that_stands_upright_gets_no_hint(words_by_texts, X):
    for table, parameters in ((words_by_texts.T, {"n_clusters": 13}), (X, {"n_topics": 26})):
        with pytest.raises(ValueError, match="need as many") as caught:
            MMPCA(**parameters).fit(table)
        assert "transposed" not in str(caught.value)


# --- after a failure --------------------------------------------------------------------------------------------


def with_negative(X):
    return np.where(np.arange(X.shape[1]) == 3, -1, X)


FAILURES = {
    "bad counts": lambda model, X: model.fit(with_negative(X)),
    "bad parameter": lambda model, X: model.set_params(algorithm="best").fit(X),
    "too few rows": lambda model, X: model.fit(X[:3]),
    "bad topics": lambda model, X: model.set_params(topics=np.ones((3, 25))).fit(X),
    "bad labels": lambda model, X: model.set_params(start=np.zeros(80, dtype=int)).fit(X),
    "no matrix": lambda model, X: model.fit(X[0]),
}
OTHER_WIDTHS = {
    "bad counts": lambda model, X: model.fit(with_negative(X[:, :9])),
    "too few rows": lambda model, X: model.fit(X[:3, :9] + 1),
}


def assert_keeps_the_fit(failure, X, attributes_of):
    model = MMPCA(4, 3, n_init=1, random_state=0).fit(X)
    before, predicted = attributes_of(model), model.predict(X)
    with pytest.raises(ValueError, match=r"\w+"):
        failure(model, X)
    after = attributes_of(model)
    assert after.keys() == before.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)
    np.testing.assert_array_equal(model.predict(X), predicted)


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_a_failed_fit_leaves_an_earlier_one_as_it_was(X, failure, attributes_of):
    assert_keeps_the_fit(failure, X, attributes_of)


@pytest.mark.parametrize("failure", OTHER_WIDTHS.values(), ids=OTHER_WIDTHS)
def test_a_failed_fit_to_fewer_features_leaves_an_earlier_one_as_it_was(X, failure, attributes_of):
    assert_keeps_the_fit(failure, X, attributes_of)


def test_a_failed_first_fit_leaves_the_model_unfitted(X):
    model = MMPCA(2, 2)
    with pytest.raises(CountsError):
        model.fit(with_negative(X))
    with pytest.raises(NotFittedError):
        model.predict(X)
