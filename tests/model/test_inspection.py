"""Inspection of counts: sound ones raise no finding, and every kind of problem raises its own."""

import numpy as np
import pytest

from mmpca.counts import as_counts
from mmpca.model.inspection import inspect_counts, misread_columns
from mmpca.simulate import paper_design


@pytest.fixture(scope="module")
def sound():
    return paper_design(120, noise=0.2, random_state=0).X.toarray()


def inspect(X, **options):
    return inspect_counts(as_counts(X, empty_rows="allow"), **({"n_clusters": 2, "n_topics": 2} | options))


def levels(X, **options):
    return {finding.code: finding.level for finding in inspect(X, **options).findings}


# --- findings ---------------------------------------------------------------------------------------------------


def with_scale(X):
    rng = np.random.default_rng(0)
    return np.rint(X / X.sum(axis=1, keepdims=True) * (10_000 + rng.integers(-20, 20, (len(X), 1)))).astype(int)


def with_features_in_one_row(X):
    return np.column_stack([X, sum(np.eye(len(X), 400, k=k, dtype=int) for k in (0, 120, 240))])


PROBLEMS = {
    "few rows": ("error", lambda X: X, {"n_clusters": 121}),
    "few features": ("error", lambda X: X, {"n_topics": 1000}),
    "empty rows": ("error", lambda X: np.where(np.arange(len(X))[:, None] == 3, 0, X), {}),
    "empty features": ("note", lambda X: np.column_stack([X, np.zeros(len(X), dtype=int)]), {}),
    "transposed": ("warning", lambda X: np.ascontiguousarray((X[:40, X[:40].sum(axis=0) > 0] ** 2).T), {}),
    "identifier": ("warning", lambda X: np.column_stack([np.arange(len(X)), X]), {}),
    "metadata": ("warning", lambda X: np.column_stack([X, np.full(len(X), 77)]), {}),
    "totals feature": ("warning", lambda X: np.column_stack([X, X.sum(axis=1)]), {}),
    "totals row": ("warning", lambda X: np.vstack([X, X.sum(axis=0)]), {}),
    "scaled rows": ("warning", with_scale, {}),
    "common factor": ("warning", lambda X: 3 * X, {}),
    "duplicate rows": ("warning", lambda X: np.vstack([X, X[:5]]), {}),
    "short rows": ("warning", lambda X: X[:, :20], {}),
    "uneven rows": ("warning", lambda X: np.vstack([X, 2000 * X[0] + 1]), {}),
    "dominant feature": ("warning", lambda X: np.column_stack([X, X.sum(axis=1)]), {}),
    "overdispersion": ("note", lambda X: 7 * X + 1, {}),
    "rare features": ("note", with_features_in_one_row, {}),
    "presences": ("note", lambda X: (X > 0).astype(int), {}),
    "duplicate feature names": ("warning", lambda X: X, {"feature_names": ["a"] * 917}),
    "duplicate row names": ("note", lambda X: X, {"row_names": ["a"] * 120}),
}


@pytest.mark.parametrize("code", PROBLEMS)
def test_a_problem_is_found(sound, code):
    level, spoil, options = PROBLEMS[code]
    assert code not in levels(sound)
    assert levels(spoil(sound), **options).get(code) == level


def test_sound_counts_raise_no_finding(sound):
    found = inspect(sound[:, sound.sum(axis=0) > 0])
    assert found.findings == ()
    assert found.can_fit


def test_only_errors_rule_out_a_fit(sound):
    for code, (level, spoil, options) in PROBLEMS.items():
        found = inspect(spoil(sound), **options)
        assert found.can_fit == all(finding.level != "error" for finding in found.findings)
        assert not (found.can_fit and level == "error"), code


def test_findings_name_the_row_or_feature_they_are_about(sound):
    X = np.vstack([sound, 2000 * sound[0] + 1])
    names = [f"site {i}" for i in range(120)] + ["total"]
    assert any("'total'" in finding.message for finding in inspect(X, row_names=names).findings)
    assert any("Row 120 " in finding.message for finding in inspect(X).findings)


# --- columns and rows that are no counts ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trees():
    """Return counts of few features in rows of uneven size."""
    return np.random.default_rng(0).poisson(np.random.default_rng(1).gamma(2, 5, (60, 1)) * np.ones((1, 8))) + 1


TREES = ["oak", "elm", "fir", "yew", "ash", "box", "larch", "lime"]


def misread(X, features=None, rows=None):
    return {finding.code for finding in misread_columns(as_counts(X), feature_names=features, row_names=rows)}


def named(name, values):
    """Return a function that puts a column before the others."""
    return lambda X: (np.column_stack([values(len(X)), X]), [name, *TREES])


def shuffled(n):
    return np.random.default_rng(2).permutation(n) + 1


@pytest.mark.parametrize(
    "name", ["patient_id", "user_id", "PatientID", "userId", "patientid", "subject", "participant", "Unnamed: 0", "ID",
             "Sample No.", "index", "row", "subject_number"]
)  # fmt: skip
def test_an_identifier_is_found_by_its_name(trees, name):
    for values in (shuffled, lambda n: np.arange(n), lambda n: np.arange(n) // 3 + 1):
        X, features = named(name, values)(trees)
        assert misread(X, features) == {"identifier"}
    X = np.column_stack([shuffled(60), np.repeat(trees, 20, axis=1)])  # 160 features may be words
    assert misread(X, [name, *(f"word{v}" for v in range(160))]) == {"identifier"}


@pytest.mark.parametrize(
    "name", ["year", "Year of birth", "birth_year", "age", "sex", "Batch", "visit date", "weight_kg"]
)
def test_a_description_of_the_rows_is_found_by_its_name(trees, name):
    X, features = named(name, lambda n: np.arange(n) % 2)(trees)
    assert misread(X, features) == {"metadata"}


@pytest.mark.parametrize(
    ("values", "code"),
    [
        (lambda n: np.arange(n), "identifier"),
        (lambda n: np.arange(n) * 7 + 100_000, "identifier"),
        (lambda n: np.random.default_rng(3).choice(10**6, n, replace=False), "identifier"),
        (lambda n: 1990 + shuffled(n) % 30, "metadata"),
        (lambda n: np.full(n, 2020), "metadata"),
    ],
)
def test_a_column_without_a_telling_name_is_found_by_its_values(trees, values, code):
    X = np.column_stack([trees[:, :3], values(len(trees)), trees[:, 3:]])
    assert misread(X) == misread(X, ["oak", "elm", "fir", "what", *TREES[3:]]) == {code}


@pytest.mark.parametrize("place", [0, 4, 8])
def test_totals_are_found_by_their_values(trees, place):
    X = np.insert(trees, place, trees.sum(axis=1), axis=1)
    assert misread(X) == {"totals feature"}
    assert misread(np.insert(trees, place, trees.sum(axis=0), axis=0)) == {"totals row"}
    assert misread(np.vstack([X, X.sum(axis=0)])) == {"totals feature", "totals row"}


def test_totals_are_found_beside_an_identifier(trees):
    X = np.column_stack([shuffled(60), trees, trees.sum(axis=1)])
    X = np.vstack([X, [1, *X[:, 1:].sum(axis=0)]])
    found = misread(X, ["patient_id", *TREES, "n"], [*(f"r{i}" for i in range(60)), "last"])
    assert found == {"identifier", "totals feature", "totals row"}


@pytest.mark.parametrize("name", ["Total", "row_sum", "Grand Total", "total counts", "nCount_RNA", "library size"])
def test_totals_of_more_than_the_table_are_found_by_their_names(trees, name):
    X = np.column_stack([trees, trees.sum(axis=1) + 5])
    assert misread(X, [*TREES, name]) == {"totals feature"}
    assert misread(X, [*TREES, "larger"]) == set()
    X = np.vstack([trees, trees.sum(axis=0) + 5])
    assert misread(X, rows=[*(f"r{i}" for i in range(60)), name]) == {"totals row"}


def test_words_in_texts_are_no_descriptions(sound):
    words = [f"word{v}" for v in range(917)]
    for v, word in zip([0, 1, 500, 916], ["year", "subject", "total", "age"], strict=True):
        words[v] = word
    frequent = sound.copy()
    frequent[:, 500] += 1
    assert misread(sound, words) == misread(frequent, words) == misread(frequent[:5] + 1, words) == set()
    X = np.column_stack([np.arange(120) + 1, sound])
    found = {finding.code for finding in inspect(X, feature_names=["patient_id", *words], counts_words=True).findings}
    assert "identifier" not in found


def test_ordinary_counts_are_not_suspected(trees, sound):
    for X in (trees, sound, trees[:3], trees[:, :2], trees[np.argsort(-trees[:, 0])]):
        assert misread(X) == set()
    assert misread(trees, TREES, ["total", *(f"r{i}" for i in range(59))]) == set()


# --- facts ------------------------------------------------------------------------------------------------------


def test_sizes_and_totals_are_right(sound):
    found = inspect(sound)
    assert (found.n_rows, found.n_features) == sound.shape
    assert found.n_entries == np.count_nonzero(sound)
    assert found.density == pytest.approx(np.count_nonzero(sound) / sound.size)
    assert found.total == sound.sum()
    assert found.row_totals == (250, 250.0, 250)
    assert found.largest_count == sound.max()
    assert 0.9 < found.overdispersion < 1.5


def test_facts_carry_the_same_numbers(sound):
    found = inspect(sound, row_names=[f"row{i}" for i in range(120)])
    numbers = {name: value for fact in found.facts for name, value in fact.numbers.items()}
    assert (numbers["rows"], numbers["features"], numbers["total"]) == (120, 917, found.total)
    assert numbers["expected"] == {"seconds": found.seconds, "megabytes": found.megabytes}
    assert numbers["first_rows"] == ["row0", "row1", "row2", "row3", "row4"]
    assert numbers["first_features"] is None
    assert len({fact.label for fact in found.facts}) == len(found.facts)


def test_expected_costs_grow_with_everything(sound):
    small = inspect(sound)
    for other in (inspect(sound, n_clusters=20), inspect(sound, n_topics=20), inspect(np.vstack([sound, sound]))):
        assert other.seconds > small.seconds
        assert other.megabytes > small.megabytes


def test_a_single_row_or_cell_can_be_inspected():
    assert inspect([[3]], n_clusters=1, n_topics=1).total == 3
    assert np.isnan(inspect([[3, 1]], n_clusters=1, n_topics=1).overdispersion)
    assert not inspect([[0]]).can_fit
