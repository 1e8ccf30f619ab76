"""``mmpca select``: from counts to the best numbers of clusters and topics."""

import csv
import re

import pytest

import mmpca

GRID = ("--clusters", "5-7", "--topics", "3,4", "--jobs", 1)


@pytest.fixture(scope="module")
def selected(mmpca_command, studio):
    """Return the outcome of a search with everything that can be written."""
    outputs = ("--model", studio / "best.mmpca", "--labels", studio / "best.csv", "--results", studio / "cells.csv")
    return mmpca_command("select", studio / "X.mtx", *GRID, "--store", studio / "store", *outputs)


def test_the_choice_is_shown_as_a_table_and_in_words(selected):
    assert selected.code == 0, selected.err
    assert "predictive: nats behind the best cell" in selected.out
    assert "6 clusters and 4 topics, by the criterion predictive; the number of clusters is" in selected.out
    assert "best" in selected.out


def test_model_labels_and_cells_are_written(selected, studio):
    model = mmpca.load(studio / "best.mmpca")
    assert (model.n_clusters, model.n_topics) == (6, 4)
    cells = list(csv.DictReader((studio / "cells.csv").read_text().splitlines()))
    assert [(cell["n_topics"], cell["n_clusters"]) for cell in cells] == [
        ("3", "5"), ("3", "6"), ("3", "7"), ("4", "5"), ("4", "6"), ("4", "7")
    ]  # fmt: skip
    labels = [int(row["cluster"]) for row in csv.DictReader((studio / "best.csv").read_text().splitlines())]
    assert labels == model.labels_.tolist()


def test_a_second_run_goes_on_from_the_store_and_speaks_to_machines(selected, mmpca_command, studio):
    again = mmpca_command("select", studio / "X.mtx", *GRID, "--store", studio / "store", "--json")
    assert again.code == 0, again.err
    document = again.json
    assert (document["n_clusters"], document["n_topics"]) == (6, 4)
    assert len(document["cells"]) == 6
    assert document["reason"] in selected.out
    assert len(document["labels"]) == 120


def test_progress_is_told_line_by_line_in_a_pipe(selected, mmpca_command, studio, monkeypatch):
    monkeypatch.setattr("mmpca.cli.lines.SECONDS_BETWEEN_LINES", 0.0)
    told = mmpca_command("select", studio / "X.mtx", *GRID, "--store", studio / "store").err.splitlines()
    assert told[0] == "topics: 0 of 10 parts"
    assert re.fullmatch(r"cells: 4 of 10 parts, about \d+ s left", told[5])
    assert told[-1] == "neighbours: 10 of 10 parts, about 0 s left"


@pytest.mark.parametrize("has_store", [False, True])
def test_an_interruption_before_the_first_cell_says_what_is_kept(
    mmpca_command, studio, tmp_path, monkeypatch, has_store
):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("mmpca.selection.grid.learn", interrupted)
    store = ("--store", tmp_path / "cells") if has_store else ()
    outcome = mmpca_command("select", studio / "X.mtx", *GRID, *store)
    assert outcome.code == 130
    kept = f" but finished parts, to {tmp_path / 'cells'}: the same command goes on there" if has_store else ""
    assert outcome.err == f"interrupted: Nothing was written{kept}.\n"


def test_a_store_of_another_seed_is_refused(selected, mmpca_command, studio):
    other = mmpca_command("select", studio / "X.mtx", *GRID, "--store", studio / "store", "--seed", 5)
    assert other.code == 1
    assert "belongs to another search: it was made with another random_state" in other.err


def test_the_usual_grid_goes_as_far_as_the_data(mmpca_command, tmp_path):
    path = tmp_path / "sites.csv"
    path.write_text("site,oak,ash,fir\na,9,1,0\nb,8,0,1\nc,1,9,2\nd,0,7,1\ne,1,0,9\n")
    done = mmpca_command("select", path, "--json", "--jobs", 1)
    assert done.code == 0, done.err
    cells = {(cell["n_clusters"], cell["n_topics"]) for cell in done.json["cells"]}
    assert cells == {(q, k) for q in (2, 3, 4, 5) for k in (2, 3)}


@pytest.mark.parametrize("numbers", ["", "2-", "x", "8-2", "2;4", "-3"])
def test_what_is_no_grid_is_wrong_usage(mmpca_command, studio, numbers):
    outcome = mmpca_command("select", studio / "X.mtx", f"--clusters={numbers}")
    assert outcome.code == 2
    assert "neither a range such as 2-8 nor a list such as 2,4,8" in outcome.err


@pytest.mark.parametrize(
    ("numbers", "message"), [("4,2", "must be ascending"), ("0-2", "at least 1"), ("2-500", "500")]
)
def test_a_grid_that_cannot_be_fitted_is_refused_with_a_reason(mmpca_command, studio, numbers, message):
    outcome = mmpca_command("select", studio / "X.mtx", "--clusters", numbers, "--topics", "2")
    assert outcome.code == 1
    assert message in outcome.err
