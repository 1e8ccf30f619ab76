"""A model file becomes a page."""

import csv
import re

import numpy as np
import pytest

import mmpca
from mmpca.cli.report import read_labels


@pytest.fixture
def page(mmpca_command, studio, tmp_path):
    """Return a function that makes the page of a model and returns its text."""

    def make(*options, model=studio / "X.mmpca"):
        target = tmp_path / "page.html"
        done = mmpca_command("report", model, "-o", target, *options)
        assert done.code == 0, done.err
        assert f"written to {target}" in done.out
        return target.read_text(encoding="utf-8")

    return make


def test_a_model_alone_becomes_a_page(page):
    text = page("--title", "Sites & <species>")
    assert "<title>Sites &amp; &lt;species&gt;</title>" in text
    assert 'class="group"' not in text


def test_with_its_data_and_labels_the_page_has_rows_and_the_agreement(page, studio):
    text = page("--data", studio / "X.mtx", "--labels", studio / "truth.csv")
    assert "not those that were fitted" not in text
    assert text.count('class="group"') == 6
    assert 'id="confusion"' in text


def test_labels_of_a_table_are_matched_by_the_names_of_rows(studio, tmp_path):
    with open(studio / "truth.csv", newline="") as file:
        head, *rows = csv.reader(file)
    shuffled = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))]
    with open(tmp_path / "shuffled.csv", "w", newline="") as file:
        csv.writer(file).writerows([head, *shuffled])
    names = [str(i) for i in range(len(rows))]
    assert read_labels(tmp_path / "shuffled.csv", names) == read_labels(studio / "truth.csv", names)
    assert read_labels(tmp_path / "shuffled.csv", None) == [row[head.index("cluster")] for row in shuffled]


def test_labels_may_stand_on_lines(page, studio, tmp_path):
    labels = tmp_path / "labels.txt"
    labels.write_text("\n".join(f"kind {i % 3}" for i in range(120)))
    assert "<bdi>kind 2</bdi>" in page("--data", studio / "X.mtx", "--labels", labels)


def test_the_choice_of_a_search_is_told(page, tmp_path):
    cells = tmp_path / "cells.csv"
    cells.write_text("n_clusters,n_topics,predictive,kind\n5,4,-130.0,random\n6,4,-100.0,kmeans\n")
    text = page("--results", cells)
    assert 'id="choice"' in text
    assert "6 clusters and 4 topics, by the criterion predictive" in text


def test_a_choice_is_no_clearer_on_the_page_than_the_search_said(page, tmp_path):
    cells = tmp_path / "cells.csv"
    head = "n_clusters,n_topics,predictive,predictive_error"
    cells.write_text(f"{head}\n6,3,-140.0,30.0\n6,4,-100.0,0.0\n")
    text = page("--results", cells)
    assert "the number of topics is likely: 3 topics are 40 nats (standard error 30) worse" in text


def test_new_rows_are_predicted(page, mmpca_command, studio, tmp_path):
    assert mmpca_command("simulate", tmp_path / "new.mtx", "--rows", 15, "--seed", 9).code == 0
    assert "not those that were fitted" in page("--data", tmp_path / "new.mtx")


def test_texts_that_were_counted_are_shown_and_empty_ones_left_out(page, mmpca_command, tmp_path):
    words = [("wave tide ship", "sea"), ("flour oven dough", "bread")]
    lines = [f"{words[i % 2][0]} {words[i % 2][0]}" for i in range(20)] + ["!!!"]
    (tmp_path / "texts.txt").write_text("\n".join(lines))
    given = ("--clusters", 2, "--topics", 2, "--n-init", 1, "--drop-empty", "-m", tmp_path / "texts.mmpca")
    done = mmpca_command("fit", tmp_path / "texts.txt", "--text", *given)
    assert done.code == 0, done.err
    text = page("--data", tmp_path / "texts.txt", "--text", model=tmp_path / "texts.mmpca")
    assert "flour oven dough flour oven dough" in text
    assert "not those that were fitted" not in text
    assert "!!!" not in text


@pytest.mark.parametrize(
    ("option", "name", "content", "told"),
    [
        ("--labels", "few.txt", "a\nb\n", "there are 2 entries, but 120 rows"),
        ("--labels", "odd.csv", "row,label\n1\n", "record 2 has 1 fields, but the header has 2"),
        ("--labels", "none.csv", "", "the table needs a header"),
        ("--labels", "latin.csv", "row,label\n1,\xe9\n", "no table of text in UTF-8"),
        ("--results", "cells.csv", "a,b\n1,2\n", "no column 'n_clusters'"),
        ("--results", "cells.csv", "n_clusters,n_topics\nsix,4\n", "something else than numbers"),
        ("--results", "cells.txt", "a", "must end in .csv or .tsv"),
        ("--texts", "few.txt", "a\nb\n", "there are 2 entries, but 120 rows"),
        ("--data", "missing.mtx", None, "missing.mtx"),
    ],
)
def test_files_that_do_not_fit_are_refused(mmpca_command, studio, tmp_path, option, name, content, told):
    if content is not None:
        (tmp_path / name).write_bytes(content.encode("latin-1"))
    done = mmpca_command("report", studio / "X.mmpca", "-o", tmp_path / "page.html", option, tmp_path / name)
    assert done.code == 1
    assert told in done.err
    assert not (tmp_path / "page.html").exists()


def test_a_folder_that_does_not_exist_is_wrong_usage(mmpca_command, studio, tmp_path):
    done = mmpca_command("report", studio / "X.mmpca", "-o", tmp_path / "no" / "page.html")
    assert done.code == 2
    assert re.search(r"does\s+not\s+exist", done.err.replace("│", " "))


def test_the_page_of_python_is_that_of_the_command_line(page, studio, tmp_path):
    from mmpca.io import read_counts
    from mmpca.report import write_report

    table = read_counts(studio / "X.mtx")
    here = write_report(mmpca.load(studio / "X.mmpca"), tmp_path / "here.html", X=table.X, row_names=table.row_names)
    assert page("--data", studio / "X.mtx") == here.read_text(encoding="utf-8")
