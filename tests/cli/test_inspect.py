"""The doctor: what it says of sound counts, and of each ailment."""

import re

import numpy as np
import pytest

from mmpca.counts import as_counts
from mmpca.io import CountTable, write_counts
from mmpca.model.inspection import inspect_counts
from mmpca.simulate import paper_design


@pytest.fixture(scope="module")
def sound():
    return paper_design(120, noise=0.2, random_state=0).X.toarray()


def codes(X, **sizes):
    found = inspect_counts(as_counts(X, empty_rows="allow"), **({"n_clusters": 2, "n_topics": 2} | sizes))
    return {finding.code: finding.level for finding in found.findings}


def test_nothing_is_said_of_sound_counts(sound):
    assert codes(sound[:, sound.sum(axis=0) > 0]) == {}


def test_the_first_names_of_both_sides_are_shown(mmpca_command, tmp_path):
    path = tmp_path / "sites.csv"
    path.write_text("site,oak,[b]ash[/],fir,yew,elm,box\nhill,3,1,0,1,1,1\nlake,0,2,5,1,1,1\nbog,4,1,0,1,1,1\n")
    shown = mmpca_command("inspect", path, "-q", 2, "-k", 2).out
    assert re.search(r"rows +hill, lake, bog *\n", shown)
    assert re.search(r"features +oak, \[b\]ash\[/\], fir, yew, elm, … *\n", shown)
    document = mmpca_command("inspect", path, "-q", 2, "-k", 2, "--json").json
    assert document["first_rows"] == ["hill", "lake", "bog"]
    path.write_text("3,1\n0,2\n")
    assert re.search(r"rows +have no names", mmpca_command("inspect", path, "-q", 2, "-k", 2).out)


def test_without_numbers_a_small_table_is_judged_by_what_it_can_have(mmpca_command, tmp_path):
    path = tmp_path / "sites.csv"
    path.write_text("site,oak,ash\nhill,3,1\nlake,0,12\nbog,14,1\n")
    done = mmpca_command("inspect", path)
    assert done.code == 0, done.out
    assert "with 3 clusters and 2 topics" in done.out
    asked = mmpca_command("inspect", path, "-q", 8)
    assert asked.code == 1
    assert "8 clusters need as many rows" in asked.out


def test_a_table_of_three_columns_is_told_to_be_read_as_triples(mmpca_command, tmp_path):
    path = tmp_path / "sites.csv"
    path.write_text("site,habitat,oak\ns1,wood,3\ns2,wood,12\n")
    told = mmpca_command("inspect", path).out
    assert "Read as triples" in told
    assert "'habitat' for the feature" in told
    assert "cannot be told" in told


def with_scale(X):
    rng = np.random.default_rng(0)
    return np.rint(X / X.sum(axis=1, keepdims=True) * (10_000 + rng.integers(-20, 20, (len(X), 1)))).astype(int)


def with_total(X):
    return np.vstack([X, 2000 * X[0] + 1])


AILMENTS = {
    "few rows": ("error", lambda X: X, {"n_clusters": 121}),
    "few features": ("error", lambda X: X, {"n_topics": 1000}),
    "empty rows": ("error", lambda X: np.where(np.arange(len(X))[:, None] == 3, 0, X), {}),
    "empty features": ("note", lambda X: np.column_stack([X, np.zeros(len(X), dtype=int)]), {}),
    "transposed": ("warning", lambda X: np.ascontiguousarray((X[:40, X[:40].sum(axis=0) > 0] ** 2).T), {}),
    "scaled rows": ("warning", with_scale, {}),
    "common factor": ("warning", lambda X: 3 * X, {}),
    "duplicate rows": ("warning", lambda X: np.vstack([X, X[:5]]), {}),
    "short rows": ("warning", lambda X: X[:, :20], {}),
    "uneven rows": ("warning", with_total, {}),
    "dominant feature": ("warning", lambda X: np.column_stack([X, X.sum(axis=1)]), {}),
    "overdispersion": ("note", lambda X: 7 * X + 1, {}),
    "rare features": (
        "note",
        lambda X: np.column_stack(
            [
                X,
                np.eye(len(X), 400, dtype=int)
                + np.eye(len(X), 400, k=120, dtype=int)
                + np.eye(len(X), 400, k=240, dtype=int),
            ]
        ),
        {},
    ),
    "presences": ("note", lambda X: (X > 0).astype(int), {}),
}


@pytest.mark.parametrize("code", AILMENTS)
def test_an_ailment_is_found(sound, code):
    level, spoil, sizes = AILMENTS[code]
    assert code not in codes(sound)
    assert codes(spoil(sound), **sizes).get(code) == level


def test_every_finding_has_one_remedy(sound):
    for _, spoil, sizes in AILMENTS.values():
        found = inspect_counts(
            as_counts(spoil(sound), empty_rows="allow"), **({"n_clusters": 2, "n_topics": 2} | sizes)
        )
        for finding in found.findings:
            assert finding.message.endswith(".")
            assert finding.remedy.endswith(".")


def test_sizes_and_totals_are_right(sound):
    found = inspect_counts(as_counts(sound))
    assert (found.n_rows, found.n_features) == sound.shape
    assert found.n_entries == np.count_nonzero(sound)
    assert found.density == pytest.approx(np.count_nonzero(sound) / sound.size)
    assert found.total == sound.sum()
    assert found.row_totals == (250, 250.0, 250)
    assert found.largest_count == sound.max()
    assert 0.9 < found.overdispersion < 1.5


def test_expected_costs_grow_with_everything(sound):
    small = inspect_counts(as_counts(sound), n_clusters=2, n_topics=2)
    for other in (
        inspect_counts(as_counts(sound), n_clusters=20, n_topics=2),
        inspect_counts(as_counts(sound), n_clusters=2, n_topics=20),
        inspect_counts(as_counts(np.vstack([sound, sound])), n_clusters=2, n_topics=2),
    ):
        assert other.seconds > small.seconds
        assert other.megabytes > small.megabytes


def test_a_single_row_or_cell_can_be_inspected():
    assert inspect_counts(as_counts([[3]]), n_clusters=1, n_topics=1).total == 3
    assert np.isnan(inspect_counts(as_counts([[3, 1]]), n_clusters=1, n_topics=1).overdispersion)
    assert inspect_counts(as_counts([[0]], empty_rows="allow")).is_refused


# --- the command ------------------------------------------------------------------------------------------------


def test_the_command_shows_size_costs_and_that_a_fit_is_possible(mmpca_command, studio):
    done = mmpca_command("inspect", studio / "X.mtx", "-q", 6, "-k", 4)
    assert done.code == 0
    assert "120 rows x 917 features" in done.out
    assert "with 6 clusters and 4 topics: about" in done.out
    assert "fit" in done.out


def test_the_command_names_ailment_and_remedy_and_leaves_with_1(mmpca_command, tmp_path):
    (tmp_path / "sites.csv").write_text("site,a,b,c\nhill,3,1,0\nsea,0,0,0\nlake,0,2,5\n")
    done = mmpca_command("inspect", tmp_path / "sites.csv", "-q", 2, "-k", 2)
    assert done.code == 1
    assert "error: Row 'sea' has no counts: no cluster fits" in done.out
    assert "→ Leave them out: mmpca fit --drop-empty." in done.out
    assert "A fit would be refused." in done.out


def test_the_json_says_the_same(mmpca_command, tmp_path):
    (tmp_path / "sites.csv").write_text("site,a,b,c\nhill,3,1,0\nsea,0,0,0\nlake,0,2,5\n")
    done = mmpca_command("inspect", tmp_path / "sites.csv", "-q", 2, "-k", 2, "--json")
    assert done.code == 1
    assert done.json["rows"] == 3
    assert done.json["refused"] is True
    assert done.json["findings"][0]["code"] == "empty rows"


def test_doubled_names_are_found(mmpca_command, tmp_path):
    names = np.array(["a", "b", "a"], dtype=object)
    rows = np.array(["x", "x", "y"], dtype=object)
    write_counts(tmp_path / "X.npz", CountTable(np.array([[3, 1, 2], [1, 2, 9], [8, 3, 1]]), rows, names, []))
    done = mmpca_command("inspect", tmp_path / "X.npz", "-q", 2, "-k", 2, "--json")
    assert [finding["code"] for finding in done.json["findings"][-2:]] == [
        "doubled names of features",
        "doubled names of rows",
    ]
