"""The page in a real browser, from the file, as a reader has it."""

import io

import numpy as np
import pypdf
import pytest
from selenium.webdriver.common.keys import Keys

from mmpca import MMPCA
from mmpca.report import write_report
from mmpca.report.clusters import used_topics

WIDTHS = pytest.mark.parametrize("width", [1280, 400])
# Heads as they stand on paper, each with how its section begins: some of them are heads of columns as well.
SECTIONS = {
    "Overview": "120 rows with counts",
    "Clusters": "The features that set",
    "Topics": "The most probable",
    "Rows": "Typical rows are",
    "Known labels": "How many rows",
    "How it was found": "Checks",
    "About": "Parameters and seed",
}


@pytest.fixture
def page(window, full_path):
    return window.open(full_path)


def test_it_opens_without_a_message_and_without_a_request(page, full_path):
    assert page.driver.title == "Letters"
    assert page.messages() == []
    assert page.requests() == [full_path.as_uri()]


def test_a_page_that_errs_or_asks_would_be_noticed(window, tmp_path):
    broken = tmp_path / "broken.html"
    broken.write_text("<!doctype html><img src='missing.png'><script>throw new Error('no')</script>")
    window.open(broken)
    assert any("no" in message for message in window.messages())
    assert (tmp_path / "missing.png").as_uri() in window.requests()


def test_a_click_on_a_cluster_leaves_its_card_and_rows_and_marks_its_topics(page, study):
    page.click("#heat [data-pick='2']")
    assert [text.splitlines()[0] for text in page.shown("#clusters .card")] == ["Cluster 2"]
    assert page.shown("#rows .group h3") == ["Rows of cluster 2"]
    topics = [str(k) for k in sorted(used_topics(study.model)[2])]
    assert [element.get_attribute("data-topic") for element in page.find(".card.topic.marked")] == topics
    assert [element.get_attribute("data-topic") for element in page.find("#heat th.marked")] == topics
    assert "Only cluster 2" in page.shown("#now")[0]
    page.click("#show-all")
    assert len(page.shown("#clusters .card")) == 6
    assert page.find(".marked") == []


def test_a_click_on_a_topic_leaves_its_card_and_marks_the_clusters_that_use_it(page, study):
    page.click("[data-pick-topic='1']")
    assert [text.splitlines()[0] for text in page.shown("#topics .card")] == ["Topic 1"]
    clusters = [str(q) for q, topics in enumerate(used_topics(study.model)) if 1 in topics]
    assert [element.get_attribute("data-cluster") for element in page.find("#clusters .marked")] == clusters
    assert [element.get_attribute("data-cluster") for element in page.find("#heat tr.marked")] == clusters
    page.click("[data-pick-topic='1']")
    assert page.find(".marked") == []


def test_the_search_finds_a_row_by_a_part_of_its_name(page, study):
    page.find("#find")[0].send_keys("ETTER 117")
    assert page.shown("#found-status") == ["1 row"]
    cluster = study.model.labels_[117]
    assert f"letter 117\nCluster {cluster}" in page.shown("#found li")[0]
    page.click("#found .pick")
    assert page.shown("#rows .group h3") == [f"Rows of cluster {cluster}"]
    page.find("#find")[0].send_keys(" and more")
    assert page.shown("#found-status") == ["No row has such a name."]


def test_a_found_row_that_is_on_the_page_leads_to_its_reasons(page):
    name = page.shown("#rows .name")[0]
    page.find("#find")[0].send_keys(name)
    page.click("#found a")
    opened = [element.text for element in page.find("#rows details[open]")]
    assert len(opened) == 1
    assert opened[0].startswith(name)
    assert "together" in opened[0]


def test_evidence_against_leans_to_the_other_side_in_another_colour(page):
    page.run("for (const part of document.querySelectorAll('#rows details')) part.open = true")
    bars = page.run(
        """return [...document.querySelectorAll(".lean i")].map((bar) => {
             const own = bar.getBoundingClientRect(), cell = bar.parentElement.getBoundingClientRect();
             const told = bar.parentElement.previousElementSibling.textContent;
             return [told, own.left - (cell.left + cell.width / 2), own.right - (cell.left + cell.width / 2),
                     getComputedStyle(bar).backgroundColor];
           })"""
    )
    against = [bar for bar in bars if bar[0].startswith("\N{MINUS SIGN}")]
    favour = [bar for bar in bars if bar[0].startswith("+")]
    assert len(against) + len(favour) == len(bars)
    assert all(left < 0.5 and right <= 0.5 for _, left, right, _ in against)
    assert all(left >= -0.5 and right > -0.5 for _, left, right, _ in favour)
    assert len({bar[3] for bar in against}) == len({bar[3] for bar in favour}) == 1
    assert against[0][3] != favour[0][3]


def test_tables_are_sorted_by_a_click_on_a_head_and_back_by_another(page, study):
    sizes = np.bincount(study.model.labels_)
    page.click("#heat thead th:nth-child(2) button")
    told = [int(text) for text in page.shown("#heat tbody td:nth-child(2)")]
    assert told == sorted(sizes.tolist(), reverse=True)
    page.click("#heat thead th:nth-child(2) button")
    assert page.find("#heat thead th:nth-child(2)")[0].get_attribute("aria-sort") == "ascending"
    assert [int(text) for text in page.shown("#heat tbody td:nth-child(2)")] == sorted(sizes.tolist())


def test_cells_and_words_explain_themselves(page):
    hover = "arguments[0].dispatchEvent(new MouseEvent('mouseover', {bubbles: true}))"
    cell = page.find("#heat tbody tr:nth-child(3) td")[2]
    page.run(hover, cell)
    told = page.shown("#tip")[0]
    assert told.startswith("Cluster 2, Topic 1 (")
    assert round(float(told.split("): ")[1].removesuffix(" %"))) == int(cell.text.removesuffix(" %"))
    page.run("document.querySelector('abbr').focus()")
    assert "distribution over the features" in page.shown("#tip")[0]
    page.press(Keys.ESCAPE)
    assert page.shown("#tip") == []


def test_the_tip_stays_inside_of_a_small_window(window, full_path):
    window.open(full_path, width=400)
    for word in window.find("abbr"):
        window.run("arguments[0].scrollIntoView({block: 'center'}); arguments[0].focus()", word)
        left, right = window.run(
            "const r = document.getElementById('tip').getBoundingClientRect(); return [r.left, r.right]"
        )
        assert left >= 0
        assert right <= 400


@WIDTHS
def test_nothing_overlaps_or_is_cut_off(window, full_path, width):
    window.open(full_path, width=width)
    assert window.faults() == []
    window.run("for (const part of document.querySelectorAll('details')) part.open = true")
    window.run("document.querySelector('[data-pick]').click()")
    assert window.faults() == []


@pytest.fixture(scope="module")
def large_path(study, tmp_path_factory):
    start = {"start": "random", "topics": "random", "max_epochs": 0}
    model = MMPCA(20, 30, n_init=1, random_state=0, **start).fit(study.X)
    return write_report(model, tmp_path_factory.mktemp("large") / "page.html", X=study.X[:20], labels=study.labels[:20])


@WIDTHS
def test_many_clusters_and_topics_fit(window, large_path, width):
    window.open(large_path, width=width)
    assert window.faults() == []
    within = "const part = document.getElementById('heat').parentElement; return part.scrollWidth <= part.clientWidth"
    assert window.run(within) == (width == 1280)  # a phone has to scroll so many topics


@pytest.mark.parametrize(
    ("style", "fault"),
    [
        ("main > section { width: 1400px }", "the page scrolls sideways"),
        ("#clusters { margin-top: -6rem; position: relative }", "neighbours overlap"),
        (".summary { height: 1.2em; overflow: hidden }", "text is cut off"),
        ("h1 { width: 2rem; overflow-wrap: normal; word-break: keep-all }", "text spills out of its box"),
        (".card .facts { line-height: .2 }", "texts overlap"),
    ],
)
def test_what_is_broken_would_be_noticed(page, style, fault):
    page.run("const s = document.createElement('style'); s.textContent = arguments[0]; document.head.append(s)", style)
    assert any(found.startswith(fault) for found in page.faults())


def test_all_of_it_can_be_reached_and_used_by_keyboard(page):
    page.press(Keys.TAB)
    assert page.driver.switch_to.active_element.text == "Skip to the results"
    page.press(Keys.ENTER)
    assert page.driver.switch_to.active_element.get_attribute("id") == "main"
    page.run("document.querySelector('.toolbar [data-pick=\"3\"]').focus()")
    page.press(Keys.SPACE)
    assert page.shown("#rows .group h3") == ["Rows of cluster 3"]
    page.press(Keys.ESCAPE)
    assert len(page.shown("#rows .group h3")) == 6
    page.run("document.querySelector('#rows summary').focus()")
    page.press(Keys.ENTER)
    assert len(page.find("#rows details[open]")) == 1
    page.run("document.querySelector('#heat th:nth-child(2) button').focus()")
    page.press(Keys.ENTER)
    assert page.find("#heat th:nth-child(2)")[0].get_attribute("aria-sort") == "descending"


def test_the_focus_goes_through_the_page_in_order_and_can_be_seen(page):
    n_stops = page.run(
        """const all = [...document.querySelectorAll("a, button, input, summary, [tabindex='0']")];
           return all.filter((one) => one.checkVisibility()).length"""
    )
    page.run(
        """window.stops = [];
           document.addEventListener("focusin", (event) => {
             window.stops.push(event.target);
             window.isSeen = (window.isSeen ?? true) && getComputedStyle(event.target).outlineStyle !== "none";
           })"""
    )
    page.press(Keys.TAB * n_stops)
    n_seen, is_in_order, is_seen = page.run(
        """const follows = (a, b) => a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING;
           return [new Set(stops).size, stops.every((one, i) => i === 0 || follows(stops[i - 1], one) !== 0), isSeen]"""
    )
    assert n_seen == n_stops
    assert is_in_order
    assert is_seen
    assert page.driver.switch_to.active_element.get_attribute("href").startswith("https://doi.org/")


@pytest.mark.parametrize("is_chosen", [False, True])
def test_on_paper_all_sections_and_rows_are_there_and_the_reasons_that_were_opened(page, study, is_chosen):
    page.click("#rows summary")
    if is_chosen:
        page.click("[data-pick='2']")
        page.click("[data-pick-topic='1']")
    sheets = pypdf.PdfReader(io.BytesIO(page.pdf())).pages
    text = "\n".join(sheet.extract_text() for sheet in sheets)
    lines = [line.strip() for line in text.splitlines()]
    places = [text.find(f"{head}\n{begin}") for head, begin in SECTIONS.items()]
    assert -1 not in places
    assert places == sorted(places)
    assert all(f"Rows of cluster {q}" in lines for q in range(6))
    assert all(f"Topic {k}" in lines for k in range(4))
    assert text.count("the text of letter") == len(page.find("#rows .text"))
    assert text.count("What speaks for") == 1
    assert "The numbers" in text
    assert "Find a row" not in text
    assert "Only cluster" not in text
    assert len(sheets) < 20


@pytest.fixture(scope="module")
def short_path(study, tmp_path_factory):
    """Return a page with every kind of element, but few rows: axe-core looks at each element many times."""
    few = slice(0, 12)
    given = {"labels": study.labels[few], "texts": ["a text"] * 12, "row_names": [f"letter {i}" for i in range(12)]}
    search = {"n_clusters": np.array([5, 6]), "n_topics": np.array([4, 4]), "predictive": np.array([-9.0, -1.0])}
    path = tmp_path_factory.mktemp("short") / "page.html"
    return write_report(study.model, path, X=study.X[few], search=search, **given)


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_on_a_page_in_use(window, short_path, axe, is_dark):
    window.open(short_path, is_dark=is_dark)
    window.run("for (const part of document.querySelectorAll('details')) part.open = true")
    window.run("document.querySelector('[data-pick=\"1\"]').click()")
    window.find("#find")[0].send_keys("letter 1")
    window.run("document.querySelector('abbr').focus()")
    found = look_with_axe(window, axe)
    assert {"color-contrast", "landmark-one-main", "region", "page-has-heading-one"} <= set(found["passed"])
    assert found["violated"] == []


def test_axe_would_find_pale_text(page, axe):
    page.run("document.querySelector('.summary').style.color = '#aaa'")
    assert look_with_axe(page, axe, ".summary")["violated"][0].startswith("color-contrast")


def look_with_axe(window, axe, part="html"):
    """Return the rules of axe-core that passed, and those that were violated with the first place of each."""
    window.run(axe)
    return window.driver.execute_async_script(
        """const done = arguments[arguments.length - 1];
           axe.run(arguments[0]).then((found) => done({
             passed: found.passes.map((rule) => rule.id),
             violated: found.violations.map((rule) => `${rule.id}: ${rule.nodes.length} x ${rule.nodes[0].html}`),
           }), (error) => done({ passed: [], violated: [String(error)] }))""",
        part,
    )


@WIDTHS
def test_hostile_names_are_inert_and_do_not_break_the_page(window, hostile_path, hostile_names, width):
    window.open(hostile_path, width=width)
    window.run("for (const part of document.querySelectorAll('details')) part.open = true")
    window.find("#find")[0].send_keys("a")
    assert window.messages() == []
    assert window.requests() == [hostile_path.as_uri()]
    assert window.driver.title == hostile_names[1]
    assert window.run("return document.scripts.length") == 2
    assert window.run("return document.querySelectorAll('img, [onerror], [onfocus], [onmouseover]').length") == 0
    assert window.faults() == []


def test_hostile_names_are_found_and_shown_as_text(window, hostile_path, hostile_names):
    window.open(hostile_path)
    window.find("#find")[0].send_keys(hostile_names[2])
    assert {element.text for element in window.find("#found bdi")} == {hostile_names[2]}


def test_without_the_script_all_is_shown(window, full_path, tmp_path):
    source = full_path.read_text(encoding="utf-8")
    plain = tmp_path / "plain.html"
    plain.write_text(source[: source.rindex("<script>")] + "</body></html>", encoding="utf-8")
    window.open(plain)
    assert len(window.shown("#clusters .card")) == 6
    assert window.shown(".toolbar, .finder, .now") == []
