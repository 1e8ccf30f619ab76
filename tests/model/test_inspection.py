"""Inspection of counts: sound ones raise no finding, and every kind of problem raises its own."""

import numpy as np
import pandas as pd
import pytest

from mmpca import MMPCA, MMPCASearch
from mmpca.counts import as_counts
from mmpca.distributed import fit as fit_blocks
from mmpca.errors import SuspiciousCountsWarning
from mmpca.evaluation import compare
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
    ("name", "values"),
    [
        ("year", lambda n: 1500 + shuffled(n) * 8),
        ("Year of birth", lambda n: np.where(shuffled(n) % 2, 1950, 1951)),
        ("age", lambda n: 200 + shuffled(n) % 7),
        ("week", lambda n: np.arange(n) // 4),
        ("sex", lambda n: shuffled(n) % 2 + 1),
        ("Batch", lambda n: shuffled(n) % 4 + 1),
        ("weight_kg", shuffled),
    ],
)
def test_a_description_of_the_rows_is_found_by_name_and_values(trees, name, values):
    X, features = named(name, values)(trees)
    assert misread(X, features) == {"metadata"}


@pytest.mark.parametrize("name", ["year", "birth_year", "age", "sex", "Batch", "visit date", "subject", "id", "total"])
def test_a_name_alone_is_a_note_of_inspect_at_most(trees, name):
    X, features = named(name, lambda n: trees[:, ::-1][:n, 0])(trees)
    assert misread(X, features) == set()
    assert levels(X, feature_names=features).get("suspicious names") == (None if name == "total" else "note")
    assert "suspicious names" not in levels(X, feature_names=["willow", *TREES])


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


@pytest.mark.parametrize("place", [0, -1])
def test_totals_of_few_and_rare_features_are_found(place):
    rare = np.array([9, 11, 9, 12, 9, 8, 8, 7, 5, 4, 10, 7, 8, 4])
    X = np.column_stack([rare, np.arange(14) % 3, np.arange(14) % 5 == 2, np.zeros(14)]).astype(int)
    assert misread(np.insert(X, place % 15, X.sum(axis=0), axis=0)) == {"totals row"}
    assert misread(np.insert(X, place % 15, X.sum(axis=0) + [1, 0, 0, 0], axis=0)) == set()


def test_a_row_in_a_small_table_may_be_the_sum_of_the_others_by_chance():
    rng = np.random.default_rng(0)
    n_tables = n_sums = n_found = 0
    while n_tables < 3000:
        n_rows, n_features = rng.integers(3, 9), rng.integers(1, 4)
        X = rng.poisson(rng.lognormal(0, 1.5, (n_rows, 1)) * rng.gamma(1, 2, n_features))
        if X.any(axis=1).all():
            n_tables += 1
            n_sums += (X.sum(axis=0) == 2 * X).all(axis=1).any()
            n_found += "totals row" in misread(X)
    assert n_sums >= 20
    assert n_found <= 3  # a chance of one in a thousand


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


WORDS = ["year", "total", "subject", "id", "age", "time", "sample", "case", "group", "index", "number", "all"]


@pytest.mark.parametrize("n_words", [12, 30, 400])
@pytest.mark.parametrize("n_texts", [3, 12, 60])
@pytest.mark.parametrize("length", [8, 60, 3000])
def test_words_that_are_also_titles_of_columns_raise_no_warning(n_words, n_texts, length):
    rng = np.random.default_rng([n_words, n_texts, length])
    for _ in range(10):
        words = rng.permutation([*WORDS, *(f"word{v}" for v in range(n_words - len(WORDS)))])
        shares = rng.permutation(1 / (np.arange(n_words) + 2.7))  # Zipf and Mandelbrot
        texts = rng.dirichlet(30 * n_words * shares / shares.sum(), n_texts)
        X = rng.multinomial(rng.poisson(length, n_texts) + 1, texts)
        assert misread(X, words) == set()


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


def test_a_frequent_feature_is_no_identifier():
    rng = np.random.default_rng(0)
    X = rng.poisson(rng.gamma(3, 1, (30, 1)) * [2000, *(8 * [100])])
    assert len(set(X[:, 0])) == 30
    assert misread(X) == set()
    assert misread(rng.poisson(2000, (12, 5))) == set()  # no years


def test_a_table_too_small_to_tell_is_not_suspected():
    assert misread(np.tile([3, 1, 0, 2], (40, 1))) == misread(np.tile([[20, 1, 9], [20, 8, 3]], (40, 1))) == set()
    assert misread([[2, 1, 1], [1, 1, 0], [3, 1, 2], [2, 0, 2]]) == set()
    assert misread([[1, 2], [3, 1], [4, 3]]) == set()
    assert misread([[1, 2], [2, 1], [3, 4], [4, 1], [5, 2]], ["subject", "oak"]) == set()


def test_ordinary_counts_are_not_suspected(trees, sound):
    for X in (trees, sound, trees[:3], trees[:, :2], trees[np.argsort(-trees[:, 0])]):
        assert misread(X) == set()
    assert misread(trees, TREES, ["total", *(f"r{i}" for i in range(59))]) == set()


# --- warnings of fits in Python -------------------------------------------------------------------------------------

FITS = {
    "MMPCA": lambda frame: MMPCA(2, 2, topics="lda", n_init=1, random_state=0).fit(frame),
    "square roots": lambda frame: MMPCA(2, 2, topics="lda", n_init=1, stabilize="sqrt", random_state=0).fit(frame),
    "MMPCASearch": lambda frame: MMPCASearch([1, 2], [2], n_init=1, n_folds=2, random_state=0).fit(frame),
    "compare": lambda frame: compare(frame, 2, 2, methods=["MMPCA", "NMF"], measure_memory=False, random_state=0),
}


def frame_of(X, name=None, values=None):
    frame = pd.DataFrame(X, columns=TREES)
    if name is not None:
        frame.insert(0, name, values)
    return frame


@pytest.mark.filterwarnings("ignore::mmpca.errors.OverdispersionWarning")
@pytest.mark.parametrize("fit", FITS)
def test_a_fit_warns_once_and_at_the_line_that_called_it(trees, fit):
    with pytest.warns(SuspiciousCountsWarning, match="'patient_id'") as caught:
        FITS[fit](frame_of(trees, "patient_id", shuffled(60)))
    (one,) = (w for w in caught if issubclass(w.category, SuspiciousCountsWarning))
    assert one.filename == __file__


@pytest.mark.filterwarnings("ignore::mmpca.errors.OverdispersionWarning")
@pytest.mark.parametrize(
    ("name", "values"),
    [
        *((name, shuffled) for name in ("user_id", "PatientID", "subject", "participant", "Unnamed: 0")),
        ("Unnamed: 0", np.arange),
        ("subject", lambda n: 1000 + 37 * np.arange(n) % 400),
        ("year", lambda n: 1990 + shuffled(n) % 30),
        ("age", lambda n: 100 + shuffled(n)),
        ("Total", None),
    ],
)
def test_a_fit_of_a_data_frame_warns_of_what_is_no_count(trees, name, values):
    frame = frame_of(trees, name, trees.sum(axis=1) if values is None else values(60))
    model = MMPCA(2, 2, topics="random", dispersion="multinomial", n_init=1, random_state=0)
    with pytest.warns(SuspiciousCountsWarning, match=f"'{name}'"):
        model.fit(frame)
    model.fit(frame.drop(columns=name))  # warnings are errors
    assert model.feature_names_in_.tolist() == TREES


@pytest.mark.filterwarnings("ignore::mmpca.errors.OverdispersionWarning")
def test_a_fit_warns_of_a_row_of_totals_by_the_index_of_the_data_frame(trees):
    frame = frame_of(trees)
    frame.loc["Sum of sites"] = frame.sum()
    with pytest.warns(SuspiciousCountsWarning, match="'Sum of sites'"):
        MMPCA(2, 2, topics="lda", n_init=1, random_state=0).fit(frame)


@pytest.mark.filterwarnings("ignore::mmpca.errors.OverdispersionWarning")
def test_a_fit_of_an_array_warns_of_a_column_by_its_number(trees):
    with pytest.warns(SuspiciousCountsWarning, match="Feature 0 "):
        MMPCA(2, 2, topics="lda", n_init=1, random_state=0).fit(np.column_stack([np.arange(60), trees]))


@pytest.mark.filterwarnings("ignore::mmpca.errors.OverdispersionWarning")
def test_rows_in_blocks_raise_the_same_warning(trees):
    X = np.column_stack([np.arange(60), trees])
    with pytest.warns(SuspiciousCountsWarning, match="Feature 0 ") as caught:
        fit_blocks(MMPCA(2, 2, topics="lda", n_init=1, random_state=0), [X[:20], X[20:]])
    assert caught[0].filename == __file__


def test_a_refused_fit_leaves_the_model_unchanged_if_the_warning_is_an_error(trees):
    model = MMPCA(2, 2, topics="lda", n_init=1, random_state=0)
    with pytest.raises(SuspiciousCountsWarning):
        model.fit(np.column_stack([np.arange(60), trees]))
    assert not hasattr(model, "labels_")


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
