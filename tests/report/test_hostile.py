"""Names and texts from the data are shown as text and never become markup."""

import json

import pytest


@pytest.fixture(scope="module")
def hostile_page(hostile_path, read_page):
    return read_page(hostile_path)


def test_no_name_becomes_an_element_or_an_attribute(hostile_page, study, read_page, full_path):
    honest = read_page(full_path)
    assert len(hostile_page.find("script")) == 2
    assert len(hostile_page.find("style")) == 1
    assert {element.tag for element in hostile_page.elements} == {element.tag for element in honest.elements}
    known = {name for element in honest.elements for name in element.attributes}
    assert {name for element in hostile_page.elements for name in element.attributes} == known


def test_names_are_shown_unchanged(hostile_page, hostile_names):
    shown = {element.words for element in hostile_page.find("bdi")}
    assert {name for name in hostile_names if len(name) < 60 and name.isprintable() and name} <= shown
    assert hostile_page.find("title")[0].words == hostile_names[1]


def test_long_names_are_shortened_and_invalid_characters_replaced(hostile_page):
    shown = {element.words for element in hostile_page.find("bdi")}
    assert "a" * 79 + "…" in shown
    named = [e.words for e in hostile_page.elements if e.tag in ("bdi", "option", "text", "h1", "title")]
    assert not any("a" * 401 in words for words in named)
    assert "nul \N{REPLACEMENT CHARACTER} and \N{REPLACEMENT CHARACTER} half" in shown
    assert "(no name)" in shown


def test_direction_marks_stay_inside_an_isolating_element(hostile_page):
    mark = "\N{RIGHT-TO-LEFT OVERRIDE}"
    isolated = [e for e in hostile_page.elements if e.tag == "bdi" and mark in "".join(e.text)]
    n_in_data = "".join(hostile_page.part("data").text).count(mark)
    n_enclosed = hostile_page.source.count(f"\N{FIRST STRONG ISOLATE}{mark}")
    assert hostile_page.source.count(mark) == len(isolated) + n_in_data + n_enclosed


def test_data_for_the_script_cannot_end_its_element(hostile_page, hostile_names, whole_names):
    text = "".join(hostile_page.part("data").text)
    assert "<" not in text
    assert set(whole_names(json.loads(text)["rows"]["name"])) >= set(hostile_names[:6])
