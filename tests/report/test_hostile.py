"""Names and texts of strangers are shown, never obeyed."""

import json

import numpy as np
import pytest

from mmpca.report import write_report

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "' autofocus onfocus='alert(1)",
    "<!-- --> ]]> {{ 7 * 7 }} {% raw %}",
    "\N{RIGHT-TO-LEFT OVERRIDE}gnp.exe",
    "a" * 10_000,
    "\N{GRINNING FACE}\N{ZERO WIDTH JOINER}\N{GRINNING FACE}",
    "nul \x00 and \ud800 half",
    "",
    "javascript:alert(1)",
]


@pytest.fixture(scope="module")
def hostile_page(study, read_page, tmp_path_factory):
    names = (HOSTILE * 10)[:120]
    honest = study.model.feature_names_in_
    study.model.feature_names_in_ = np.array((HOSTILE * (len(honest) // len(HOSTILE) + 1))[: len(honest)], dtype=object)
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    try:
        given = {"labels": names, "texts": names, "row_names": names, "title": HOSTILE[1]}
        return read_page(write_report(study.model, path, X=study.X, **given))
    finally:
        study.model.feature_names_in_ = honest


def test_no_name_becomes_an_element_or_an_attribute(hostile_page, study, read_page, tmp_path):
    honest = read_page(write_report(study.model, tmp_path / "page.html", X=study.X, labels=study.labels))
    assert len(hostile_page.find("script")) == 2
    assert len(hostile_page.find("style")) == 1
    assert {element.tag for element in hostile_page.elements} == {element.tag for element in honest.elements}
    known = {name for element in honest.elements for name in element.attributes}
    assert {name for element in hostile_page.elements for name in element.attributes} == known


def test_names_are_shown_as_they_are(hostile_page):
    told = {element.words for element in hostile_page.find("bdi")}
    assert {name for name in HOSTILE if len(name) < 60 and name.isprintable() and name} <= told
    assert hostile_page.find("title")[0].words == HOSTILE[1]


def test_long_names_are_cut_and_broken_characters_replaced(hostile_page):
    told = {element.words for element in hostile_page.find("bdi")}
    assert "a" * 79 + "…" in told
    assert "a" * 500 not in hostile_page.source
    assert "nul \N{REPLACEMENT CHARACTER} and \N{REPLACEMENT CHARACTER} half" in told
    assert "(no name)" in told


def test_marks_of_direction_stay_inside_an_element_that_isolates_them(hostile_page):
    mark = "\N{RIGHT-TO-LEFT OVERRIDE}"
    open_marks = [e for e in hostile_page.elements if e.tag == "bdi" and mark in "".join(e.text)]
    n_in_data = "".join(hostile_page.part("data").text).count(mark)
    assert hostile_page.source.count(mark) == len(open_marks) + n_in_data


def test_data_for_the_script_cannot_end_its_element(hostile_page):
    text = "".join(hostile_page.part("data").text)
    assert "<" not in text
    assert {row[0] for row in json.loads(text)["rows"]} >= set(HOSTILE[:6])
