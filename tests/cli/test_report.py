"""``mmpca report``."""

import pytest

import mmpca
from mmpca.cli.report import read_results
from mmpca.errors import InputFileError
from mmpca.io import read_counts
from mmpca.report import write_report


@pytest.fixture
def page(mmpca_command, studio, tmp_path):
    """Return a function that makes the page of a model and returns its text."""

    def make(*options, model=studio / "X.mmpca"):
        target = tmp_path / "page.html"
        done = mmpca_command("report", model, "-o", target, *options)
        assert done.code == 0, done.err
        assert str(target) in done.out
        return target.read_text(encoding="utf-8")

    return make


def test_a_model_alone_becomes_a_page(page):
    text = page("--title", "Sites & <species>")
    assert "<title>Sites &amp; &lt;species&gt;</title>" in text
    assert 'class="group"' not in text


def test_data_and_labels_add_rows_and_agreement(page, studio):
    text = page("--data", studio / "X.mtx", "--labels", studio / "truth.csv")
    assert text.count('class="group"') == 6
    assert 'id="confusion"' in text


def test_labels_may_stand_on_lines(page, studio, tmp_path):
    labels = tmp_path / "labels.txt"
    labels.write_text("\n".join(f"kind {i % 3}" for i in range(120)))
    assert "<bdi>kind 2</bdi>" in page("--data", studio / "X.mtx", "--labels", labels)


def test_results_of_select_add_the_choice(page, tmp_path):
    cells = tmp_path / "cells.csv"
    cells.write_text("n_clusters,n_topics,predictive,kind\n5,4,-130.0,random\n6,4,-100.0,kmeans\n")
    assert 'id="choice"' in page("--results", cells)


def test_counted_texts_are_shown_and_empty_ones_dropped(page, mmpca_command, tmp_path):
    lines = [("wave tide ship", "flour oven dough")[i % 2] + " now" for i in range(20)] + ["!!!"]
    path, model = tmp_path / "texts.txt", tmp_path / "texts.mmpca"
    path.write_text("\n".join(lines))
    given = ("--clusters", 2, "--topics", 2, "--n-init", 1, "--drop-empty", "-m", model)
    assert mmpca_command("fit", path, "--text", *given).code == 0
    text = page("--data", path, "--text", model=model)
    assert "flour oven dough now" in text
    assert "!!!" not in text


def test_words_given_to_fit_are_used_on_the_terminal_and_on_the_page(page, mmpca_command, studio, tmp_path):
    model, words = tmp_path / "sites.mmpca", ("--row-word", "site", "--feature-word", "species")
    given = ("--clusters", 2, "--topics", 2, "--n-init", 1, "--jobs", 1, "-m", model)
    done = mmpca_command("fit", studio / "X.mtx", *given, *words)
    assert "most distinctive species" in done.out
    assert " sites " in done.out
    text = page("--data", studio / "X.mtx", model=model)
    assert "<h1><bdi>Clusters of sites</bdi></h1>" in text
    assert "moving any single site to another cluster" in text


@pytest.mark.parametrize(
    ("option", "name", "content"),
    [
        ("--labels", "few.txt", "a\nb\n"),
        ("--labels", "part.csv", "row,label\n" + "".join(f"{i},x\n" for i in range(1, 120))),
        ("--results", "cells.csv", "a,b\n1,2\n"),
        ("--texts", "few.txt", "a\nb\n"),
        ("--data", "missing.mtx", None),
    ],
)
def test_a_file_that_does_not_match_is_named(mmpca_command, studio, tmp_path, option, name, content):
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    data = () if option == "--data" else ("--data", studio / "X.mtx")
    done = mmpca_command("report", studio / "X.mmpca", "-o", tmp_path / "page.html", *data, option, path)
    assert done.code == 1
    assert str(path) in done.error
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("content", ["n_clusters,predictive\n6,-1.0\n", "n_clusters,n_topics\nsix,4\n"])
def test_results_without_numbers_are_an_error(tmp_path, content):
    path = tmp_path / "cells.csv"
    path.write_text(content)
    with pytest.raises(InputFileError) as caught:
        read_results(path)
    assert caught.value.path == path


def test_the_page_equals_that_of_python(page, studio, tmp_path):
    table = read_counts(studio / "X.mtx")
    here = write_report(mmpca.load(studio / "X.mmpca"), tmp_path / "here.html", X=table.X, row_names=table.row_names)
    assert page("--data", studio / "X.mtx") == here.read_text(encoding="utf-8")
