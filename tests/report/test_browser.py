"""The page in a real browser, opened from the file."""

import copy
import csv
import io
from itertools import product
from xml.etree import ElementTree

import numpy as np
import pypdf
import pytest
from PIL import Image
from selenium.webdriver.common.keys import Keys

from mmpca.report import Report, write_report
from mmpca.report.contents import used_topics

WIDTHS = pytest.mark.parametrize("width", [1440, 900, 390])
SHOW_ALL_EVIDENCE = "for (const part of document.querySelectorAll('details')) part.open = true"


@pytest.fixture
def page(window, full_path):
    return window.open(full_path)


def test_the_page_opens_without_console_messages_and_without_requests(page, full_path):
    assert page.driver.title == "Letters"
    assert page.messages() == []
    assert page.requests() == [full_path.as_uri()]


def test_console_messages_and_requests_would_be_noticed(window, tmp_path):
    broken = tmp_path / "broken.html"
    broken.write_text("<!doctype html><img src='missing.png'><script>throw new Error('no')</script>")
    window.open(broken)
    assert any("no" in message for message in window.messages())
    assert (tmp_path / "missing.png").as_uri() in window.requests()


def test_choosing_a_cluster_shows_its_card_and_rows_and_highlights_its_topics(page, study):
    page.click("#heat [data-pick='2']")
    assert page.visible("data-cluster", "#clusters .card") == ["2"]
    assert page.visible("data-cluster", "#rows .group") == ["2"]
    topics = [str(k) for k in sorted(used_topics(study.model)[2])]
    assert [element.get_attribute("data-topic") for element in page.find(".card.topic.marked")] == topics
    assert [element.get_attribute("data-topic") for element in page.find("#heat th.marked")] == topics
    assert "cluster 2" in page.shown("#now")[0]
    page.click("#show-all")
    assert len(page.shown("#clusters .card")) == 6
    assert page.find(".marked") == []


def test_choosing_a_topic_shows_its_card_and_highlights_the_clusters_that_use_it(page, study):
    page.click("[data-pick-topic='1']")
    assert page.visible("data-topic", "#topics .card") == ["1"]
    clusters = [str(q) for q, topics in enumerate(used_topics(study.model)) if 1 in topics]
    assert [element.get_attribute("data-cluster") for element in page.find("#clusters .marked")] == clusters
    assert [element.get_attribute("data-cluster") for element in page.find("#heat tr.marked")] == clusters
    page.click("[data-pick-topic='1']")
    assert page.find(".marked") == []


def test_a_row_is_found_by_part_of_its_name_in_any_case(page, study):
    page.find("#find")[0].send_keys("ETTER 117")
    assert page.shown("#found .name") == ["letter 117"]
    cluster = str(study.model.labels_[117])
    assert page.visible("data-pick", "#found .pick") == [cluster]
    page.click("#found .pick")
    assert page.visible("data-cluster", "#rows .group") == [cluster]
    page.find("#find")[0].send_keys(" and more")
    assert page.find("#found li") == []
    assert page.shown("#found-status") != [""]


def test_a_found_row_opens_with_its_text_its_verdict_and_evidence_that_adds_up(page, study):
    page.find("#find")[0].send_keys("letter 17")
    page.click("#found summary")
    [opened] = page.find("#rows details[open]")
    [why] = study.model.explain(study.X, [17], labels=study.model.labels_)
    line = opened.find_element("css selector", ".verdict-line").text
    assert f"cluster {why.cluster} " in line
    assert f" {why.verdict}, " in line
    assert len(opened.find_elements("css selector", ".move")) == 1
    strongest = max((*why.evidence_for, *why.evidence_against), key=lambda part: abs(part.nats))
    assert strongest.name in opened.find_element("css selector", ".because").text
    assert "the text of letter 17" in opened.find_element("css selector", ".whole").text
    texts = page.texts("#found details[open] tbody td:nth-child(3)")
    *parts, total = [float(text.replace("\N{MINUS SIGN}", "-").replace(",", "")) for text in texts]
    assert total == pytest.approx(why.margin, abs=0.06)
    assert sum(parts) == pytest.approx(total, abs=0.05 * len(parts) + 0.1)


def test_words_of_the_text_are_shaded_for_and_against_the_cluster(window, study, tmp_path):
    names = study.model.feature_names_in_
    texts = [f"{names[a]}, and {names[b].upper()}!" for a, b in zip(*strongest(study), strict=True)]
    path = write_report(study.model, tmp_path / "page.html", X=study.X, texts=texts, row_word="letter")
    window.open(path)
    window.find("#find")[0].send_keys("letter 3")
    window.click("#found summary")
    window.driver.execute_async_script("setTimeout(arguments[0], 100)")
    for_it, against_it = strongest(study)
    assert window.texts("#found .whole mark.for") == [names[for_it[3]]]
    assert window.texts("#found .whole mark.against") == [names[against_it[3]].upper()]


def strongest(study):
    """Return the features with the strongest evidence for and against the cluster of each row."""
    explained = study.model.explain(study.X, labels=study.model.labels_, n_features=1)
    return [[getattr(why, name)[0].feature for why in explained] for name in ("evidence_for", "evidence_against")]


def test_a_search_finds_words_in_texts_and_shows_what_is_around_them(page):
    page.find("#find")[0].send_keys("TEXT OF letter 9")
    assert page.shown("#found .name") == ["letter 9", *(f"letter {i}" for i in range(90, 100))]
    assert page.texts("#found .text mark") == ["text of letter 9"] * 11
    assert page.texts("#found .text")[1] == "the text of letter 90"


def test_rows_are_filtered_by_cluster_label_and_certainty_and_sorted(page, study):
    labels = np.array([f"class {label}" for label in study.labels])
    verdicts = np.array([why.verdict for why in study.model.explain(study.X)])
    choose = (
        "const s = document.getElementById(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event('change'))"
    )
    page.run(choose, "by-label", "2")
    page.run(choose, "by-verdict", "0")
    wanted = np.flatnonzero((labels == "class 2") & (verdicts == "clear"))
    assert page.shown("#found .name") == [f"letter {i}" for i in wanted[:20]]
    cluster = study.model.labels_[wanted[0]]
    page.run(choose, "by-cluster", str(cluster))
    wanted = wanted[study.model.labels_[wanted] == cluster]
    assert page.shown("#found .name") == [f"letter {i}" for i in wanted[:20]]
    page.run("document.getElementById('show-all').click()")
    page.run(choose, "by-order", "least")
    margins = np.array([why.probability for why in study.model.explain(study.X)])
    assert page.shown("#found .name")[0] == f"letter {margins.argmin()}"
    page.click("#more")
    assert len(page.shown("#found .name")) == 60


def test_choosing_a_cell_of_the_label_table_shows_its_rows(page, study):
    cell = page.find("#confusion button.cell")[0]
    n_rows = int(cell.text)
    page.run("arguments[0].focus()", cell)
    page.press(Keys.ENTER)
    assert page.shown("#found-status")[0].startswith(f"{n_rows} ")
    label = page.texts("#confusion tbody th")[0]
    shown = {text.split(" ", 2)[2] for text in page.texts("#found .label")}
    assert shown == {label}


def test_evidence_against_points_to_the_other_side_in_another_color(page):
    page.run(SHOW_ALL_EVIDENCE)
    page.driver.execute_async_script("setTimeout(arguments[0], 100)")
    bars = page.run(
        """return [...document.querySelectorAll(".lean i")].map((bar) => {
             const own = bar.getBoundingClientRect(), cell = bar.parentElement.getBoundingClientRect();
             const nats = bar.parentElement.previousElementSibling.textContent;
             return [nats, own.left - (cell.left + cell.width / 2), own.right - (cell.left + cell.width / 2),
                     getComputedStyle(bar).backgroundColor];
           })"""
    )
    against = [bar for bar in bars if bar[0].startswith("\N{MINUS SIGN}")]
    favor = [bar for bar in bars if bar[0].startswith("+")]
    assert len(against) + len(favor) == len(bars)
    assert all(left < 0.5 and right <= 0.5 for _, left, right, _ in against)
    assert all(left >= -0.5 and right > -0.5 for _, left, right, _ in favor)
    assert len({bar[3] for bar in against}) == len({bar[3] for bar in favor}) == 1
    assert against[0][3] != favor[0][3]


def test_clicking_a_column_head_sorts_and_clicking_again_reverses(page, study):
    sizes = np.bincount(study.model.labels_)
    assert page.run("return getComputedStyle(document.querySelector('#heat .tree')).display") != "none"
    page.click("#heat thead th:nth-child(2) button")
    shown = [int(text) for text in page.shown("#heat tbody td:nth-child(2)")]
    assert shown == sorted(sizes.tolist(), reverse=True)
    page.click("#heat thead th:nth-child(2) button")
    assert page.find("#heat thead th:nth-child(2)")[0].get_attribute("aria-sort") == "ascending"
    assert [int(text) for text in page.shown("#heat tbody td:nth-child(2)")] == sorted(sizes.tolist())


def test_cells_and_terms_have_tooltips(page):
    hover = "arguments[0].dispatchEvent(new MouseEvent('mouseover', {bubbles: true}))"
    cell = page.find("#heat tbody tr[data-cluster='2'] td")[2]
    page.run(hover, cell)
    [tip] = page.shown("#tip")
    assert "Cluster 2" in tip
    assert "Topic 1" in tip
    assert round(float(tip.split()[-1].removesuffix("%"))) == int(cell.text.removesuffix("%"))
    page.run("document.querySelector('abbr').focus()")
    page.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert page.shown("#tip") == [page.find("abbr")[0].get_attribute("data-tip")]
    page.press(Keys.ESCAPE)
    assert page.shown("#tip") == []


def test_tooltips_stay_inside_a_small_window(window, full_path):
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
    assert window.layout_errors() == []
    window.run(SHOW_ALL_EVIDENCE)
    window.driver.execute_async_script("setTimeout(arguments[0], 100)")
    window.run("document.querySelector('[data-pick]').click()")
    assert window.layout_errors() == []


@WIDTHS
def test_many_clusters_and_topics_fit_into_the_window(window, large_path, width):
    window.open(large_path, width=width)
    assert window.layout_errors() == []
    within = "const part = document.getElementById('heat').parentElement; return part.scrollWidth <= part.clientWidth"
    assert window.run(within) == (width == 1440)  # thirty topics need scrolling in small windows
    names = "return [...document.querySelectorAll('#heat thead small')].filter((name) => name.checkVisibility()).length"
    assert window.run(names) == (0 if width == 390 else 30)


CHOOSE = """const part = document.getElementById(arguments[0]);
            part.value = arguments[1];
            for (const kind of ["input", "change"]) part.dispatchEvent(new Event(kind, { bubbles: true }))"""


@pytest.mark.parametrize(
    ("name", "width", "is_dark"),
    [*product(["news_path"], [1440, 900, 390], [False, True]), ("large_path", 900, False)],
)
def test_large_pages_can_be_used_in_every_way(window, request, name, width, is_dark):
    path = request.getfixturevalue(name)
    window.open(path, width=width, is_dark=is_dark)

    def found():
        return int(window.texts("#found-status")[0].split()[0].replace("No", "0").replace(",", ""))

    def after(*chosen):
        window.run(CHOOSE, *chosen)
        return found()

    window.click(".strips [data-pick='2']")
    n_members = found()
    assert 0 <= after("by-verdict", "0") <= n_members
    window.click("#show-all")
    assert 0 < after("by-label", "2") < 2100
    window.run(CHOOSE, "by-label", "")
    assert 0 < after("find", "1") <= 21_000
    window.run(CHOOSE, "find", "")
    assert after("by-order", "least") >= 2000
    window.click("#found summary")
    window.driver.execute_async_script("setTimeout(arguments[0], 100)")
    assert len(window.shown("#found details[open] .evidence")) == 1
    before = window.texts("#clusters .card tbody th")
    window.run(CHOOSE, "relevance", "1")
    by_share = window.texts("#clusters .card tbody th")
    window.run(CHOOSE, "compared", "1")
    assert before != by_share
    window.run(CHOOSE, "relevance", "0")
    assert window.texts("#clusters .card tbody th") != by_share
    window.run("document.getElementById('map').scrollIntoView({block: 'start', behavior: 'instant'})")
    for color, n_named in (("certainty", 3), ("label", 5 if name == "news_path" else 13), ("cluster", 0)):
        window.click(f"[data-color='{color}']")
        assert len(window.shown("#map-legend li")) == n_named
    left, top, wide, tall, _ = window.run(POINTS)
    drag(
        window, [(left + x * wide, top + y * tall) for x, y in ((0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98))]
    )
    assert int(window.shown("#map-status")[0].split()[0].replace(",", "")) > 1900
    window.run("document.getElementById('canvas').focus()")
    window.press(Keys.ARROW_RIGHT, Keys.ARROW_LEFT, Keys.ENTER)
    assert len(window.texts("#picked li")) == 1
    window.run("document.querySelector('#confusion button.cell').click()")
    assert 0 < found() <= 21_000
    assert window.layout_errors() == []
    assert window.messages() == []
    assert window.requests() == [path.as_uri()]


@pytest.mark.parametrize(
    ("style", "error"),
    [
        ("main > section { width: 1400px }", "the page scrolls sideways"),
        ("#clusters { margin-top: -6rem; position: relative }", "neighbors overlap"),
        (".summary { height: 1.2em; overflow: hidden }", "text is cut off"),
        ("h1 { width: 2rem; overflow-wrap: normal; word-break: keep-all }", "text spills out of its box"),
        (".card .facts { line-height: .2 }", "texts overlap"),
        (".rows summary { width: 3rem; flex-wrap: nowrap } .rows .name { flex: 1 1 0 }", "text is squeezed"),
    ],
)
def test_a_broken_layout_would_be_noticed(page, style, error):
    page.run("const s = document.createElement('style'); s.textContent = arguments[0]; document.head.append(s)", style)
    assert any(found.startswith(error) for found in page.layout_errors())


def test_the_page_can_be_used_by_keyboard(page):
    page.press(Keys.TAB)
    assert "skip" in page.driver.switch_to.active_element.get_attribute("class")
    page.press(Keys.ENTER)
    assert page.driver.switch_to.active_element.get_attribute("id") == "main"
    page.run("document.querySelector('.strips [data-pick=\"3\"]').focus()")
    page.press(Keys.SPACE)
    assert page.visible("data-cluster", "#rows .group") == ["3"]
    page.press(Keys.ESCAPE)
    assert len(page.shown("#rows .group h3")) == 6
    page.run("document.querySelector('#rows summary').focus()")
    page.press(Keys.ENTER)
    assert len(page.find("#rows details[open]")) == 1
    page.run("document.querySelector('#heat th:nth-child(2) button').focus()")
    page.press(Keys.ENTER)
    assert page.find("#heat th:nth-child(2)")[0].get_attribute("aria-sort") == "descending"


def test_the_focus_moves_through_the_page_in_order_and_is_visible(page):
    n_stops = page.run(
        """const all = [...document.querySelectorAll("a, button, input, select, summary, [tabindex='0']")];
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


@pytest.mark.parametrize("name", ["full_path", "news_path", "large_path"])
def test_every_page_prints_on_four_sheets(window, request, name):
    window.open(request.getfixturevalue(name))
    assert len(pypdf.PdfReader(io.BytesIO(window.pdf())).pages) <= 4


def test_the_rows_that_were_opened_are_printed(page):
    assert len(pypdf.PdfReader(io.BytesIO(page.pdf())).pages) <= 4
    page.find("#find")[0].send_keys("letter 17")
    page.click("#found summary")
    page.driver.execute_async_script("setTimeout(arguments[0], 100)")
    sheets = pypdf.PdfReader(io.BytesIO(page.pdf())).pages
    text = "\n".join(sheet.extract_text() for sheet in sheets)
    assert len(sheets) <= 5
    shown = "#overview h2, #clusters h2, #recipes h2, #sure h2, #labels h2, #many h2"
    positions = [text.find(head) for head in page.texts(shown)]
    assert len(positions) == 6
    assert -1 not in positions
    assert all(name.split(", ")[0] in text for name in page.texts(".strip-name"))
    assert "the text of letter 17" in text
    assert "the text of letter 18" not in text
    assert page.texts(".finder label")[0] not in text


@pytest.fixture(scope="module")
def short_path(study, tmp_path_factory):
    """Return a page with every kind of element but few rows, because axe-core checks each element many times."""
    few = slice(0, 12)
    given = {"labels": study.labels[few], "texts": ["a text"] * 12, "row_names": [f"letter {i}" for i in range(12)]}
    search = {"n_clusters": np.array([5, 6]), "n_topics": np.array([4, 4]), "predictive": np.array([-9.0, -1.0])}
    path = tmp_path_factory.mktemp("short") / "page.html"
    return write_report(study.model, path, X=study.X[few], search=search, **given)


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_axe_finds_no_accessibility_problem_on_a_page_in_use(window, short_path, axe, is_dark):
    window.open(short_path, is_dark=is_dark)
    window.run(SHOW_ALL_EVIDENCE)
    window.driver.execute_async_script("setTimeout(arguments[0], 100)")
    window.run("document.querySelector('[data-pick=\"1\"]').click()")
    window.find("#find")[0].send_keys("letter 1")
    window.run("document.querySelector('abbr').focus()")
    if is_dark:  # the same page in other colors
        found, expected = run_axe(window, axe, runOnly=["color-contrast"]), {"color-contrast"}
    else:
        found = run_axe(window, axe)
        expected = {"color-contrast", "landmark-one-main", "region", "page-has-heading-one"}
    assert expected <= set(found["passed"])
    assert found["violated"] == []


def test_axe_would_notice_pale_text(page, axe):
    page.run("document.querySelector('.summary').style.color = '#aaa'")
    assert run_axe(page, axe, ".summary")["violated"][0].startswith("color-contrast")


def run_axe(window, axe, part="html", **options):
    """Return the rules of axe-core that passed, and those that were violated with the first element of each."""
    window.run(axe)
    return window.driver.execute_async_script(
        """const done = arguments[arguments.length - 1];
           axe.run(arguments[0], arguments[1]).then((found) => done({
             passed: found.passes.map((rule) => rule.id),
             violated: found.violations.map((rule) => `${rule.id}: ${rule.nodes.length} x ${rule.nodes[0].html}`),
           }), (error) => done({ passed: [], violated: [String(error)] }))""",
        part,
        options,
    )


@WIDTHS
def test_hostile_names_do_nothing_and_do_not_break_the_page(window, hostile_path, hostile_names, width):
    window.open(hostile_path, width=width)
    window.run(SHOW_ALL_EVIDENCE)
    window.find("#find")[0].send_keys("a")
    assert window.messages() == []
    assert window.requests() == [hostile_path.as_uri()]
    assert window.driver.title == hostile_names[1]
    assert window.run("return document.scripts.length") == 2
    assert window.run("return document.querySelectorAll('img, [onerror], [onfocus], [onmouseover]').length") == 0
    assert window.layout_errors() == []


def test_hostile_names_are_found_and_shown_as_text(window, hostile_path, hostile_names):
    window.open(hostile_path)
    window.find("#find")[0].send_keys(hostile_names[2])
    assert {element.text for element in window.find("#found .name")} == {hostile_names[2]}


@pytest.mark.parametrize("key", [Keys.ENTER, Keys.TAB])
def test_a_cluster_is_renamed_everywhere_and_a_link_keeps_its_name(page, window, key):
    page.find("#find")[0].send_keys("letter 1")
    page.click(".strips [data-rename='2']")
    page.press("the <b>palace</b>", key)
    named = {
        *page.texts("[data-name='2']"),
        *page.texts("option[data-option='2']"),
        *page.texts("text[data-option='2']"),
    }
    assert named == {"the <b>palace</b>", "2: the <b>palace</b>"}
    assert "palace" in page.shown("#name-status")[0]
    address = page.driver.current_url
    page.driver.get("about:blank")
    window.driver.get(address)
    assert set(window.texts("[data-name='2']")) == {"the <b>palace</b>"}
    assert window.messages() == []


def test_escape_leaves_the_name_of_a_cluster_and_an_empty_name_is_the_automatic_one(page):
    [before] = page.texts("#clusters [data-name='1']")
    for text, key in (("another", Keys.ESCAPE), ("another", Keys.ENTER), (Keys.BACKSPACE, Keys.ENTER)):
        page.run("document.querySelector('[data-rename=\"1\"]').focus()")
        page.press(Keys.ENTER)
        page.press(text, key)
        expected = "another" if (text, key) == ("another", Keys.ENTER) else before
        assert set(page.texts("[data-name='1']")) == {expected}
    assert "name1" not in page.driver.current_url


def test_a_legend_names_the_colors_of_the_map(page, study):
    assert page.shown("#map-legend li") == []
    page.click("[data-color='label']")
    assert page.shown("#map-legend li") == [f"class {label}" for label in range(6)]
    page.click("[data-color='certainty']")
    assert page.shown("#map-legend li") == ["clear", "likely", "borderline"]


def test_the_strip_of_a_cluster_shows_how_sure_it_is_and_its_labels(page, study):
    verdicts = np.array([why.verdict for why in study.model.explain(study.X)])
    members = study.model.labels_ == 3
    stacks = "return [...document.querySelectorAll(arguments[0])].map((stack) => stack.childElementCount)"
    counted = [len(np.unique(verdicts[members])), len(np.unique(study.labels[members]))]
    assert page.run(stacks, ".strips li[data-cluster='3'] .stack") == counted
    shares = page.texts(".certain li")
    assert [f"{100 * np.mean(verdicts == name):.0f}% {name}" for name in ("clear", "likely", "borderline")] == [
        text.split(":")[0] for text in shares
    ]


SAVE_ALL = """const done = arguments[arguments.length - 1], saved = [];
              URL.createObjectURL = (blob) => { saved.push(blob.text()); return "#"; };
              HTMLAnchorElement.prototype.click = () => {};
              const buttons = [...document.querySelectorAll("[data-save]")];
              for (const button of buttons) button.click();
              Promise.all(saved).then((texts) => done(texts.map(
                (text, n) => [buttons[n].parentElement.dataset.shown, buttons[n].dataset.save, text])))"""


def saved_views(page):
    """Return the tables and the figures that the page offers for download, by the part of the page that they show."""
    page.run(SHOW_ALL_EVIDENCE)
    page.find("#find")[0].send_keys("letter 17")
    page.driver.execute_async_script("setTimeout(arguments[0], 100)")
    saved = page.driver.execute_async_script(SAVE_ALL)
    tables = {shown: list(csv.reader(io.StringIO(text))) for shown, kind, text in saved if kind == "csv"}
    return tables, {shown: text for shown, kind, text in saved if kind == "svg"}


def test_every_view_is_saved_as_a_table_and_as_a_figure(page):
    tables, figures = saved_views(page)
    drawn = page.run("return [...document.querySelectorAll('main svg:not(.unseen), canvas, .cards, .heat, .strips')]")
    views = ", ".join(f"#{shown}" for shown in figures)
    assert page.run("return arguments[0].every((part) => part.closest(arguments[1]))", drawn, views)
    assert tables.keys() == figures.keys()
    for shown, table in tables.items():
        assert len({len(line) for line in table}) == 1 < len(table), shown
        assert "" not in table[0], shown
    for shown, figure in figures.items():
        assert ElementTree.fromstring(figure).tag == "{http://www.w3.org/2000/svg}svg", shown
        assert not any(part in figure for part in ("var(", "url(", "href", "class=")), shown
    assert page.messages() == []


def test_saved_figures_show_the_words_of_their_views_and_tables_all_values(page, study):
    tables, figures = saved_views(page)
    for shown in ("#strips", "#heat", "#cluster-cards", "#confusion", "#also", "#certainty"):
        texts = [" ".join(text.split()) for text in ElementTree.fromstring(figures[shown[1:]]).itertext()]
        for text in page.texts(f"{shown} td, {shown} .strip-size, {shown} .features bdi, {shown} .strip-name bdi"):
            assert text == "" or text in texts
    np.testing.assert_array_equal([int(line[2]) for line in tables["strips"][1:]], study.model.cluster_sizes)
    shares = {int(line[0].split()[1]): [float(share) for share in line[2:]] for line in tables["heat"][1:]}
    np.testing.assert_allclose([shares[q] for q in range(6)], study.model.cluster_topics_, atol=1e-4)
    np.testing.assert_allclose(
        [float(bound) for _, bound in tables["bound"][1:]], study.model.bound_history_, rtol=0, atol=1e-3
    )
    of_rows = {(int(line[0]), line[2]): float(line[3]) for line in tables["dots"][1:]}
    names = study.model.feature_names_in_.tolist()
    have = study.model.cluster_row_counts_ / study.model.cluster_sizes[:, None]
    assert all(abs(share - have[q, names.index(name)]) < 1e-5 for (q, name), share in of_rows.items())


def test_saved_figures_look_like_their_views(window, full_path, tmp_path):
    window.open(full_path, is_dark=True)
    _, figures = saved_views(window)
    on_page = {}
    for shown in ("strips", "heat", "dots", "confusion", "certainty", "canvas"):
        [part] = window.find(f"#{shown}")
        window.run("arguments[0].scrollIntoView({block: 'start', behavior: 'instant'})", part)
        on_page[shown] = colors_of(part.screenshot_as_png)
    for shown, colors in on_page.items():
        path = tmp_path / f"{shown}.svg"
        path.write_text(figures["map-view" if shown == "canvas" else shown], encoding="utf-8")
        window.open(path, is_dark=True)
        saved = colors_of(window.find("svg")[0].screenshot_as_png)
        large = {color: share for color, share in colors.items() if share >= 0.01}
        assert {color: saved.get(color, 0) for color in large} == pytest.approx(large, rel=0.35)


def colors_of(png):
    """Return the share of each color in a picture."""
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).reshape(-1, 3)
    colors, counts = np.unique(pixels, axis=0, return_counts=True)
    return dict(zip(map(tuple, colors.tolist()), (counts / len(pixels)).tolist(), strict=True))


def test_without_its_script_the_page_shows_everything(window, full_path, tmp_path):
    source = full_path.read_text(encoding="utf-8")
    plain = tmp_path / "plain.html"
    plain.write_text(source[: source.rindex("<script>")] + "</body></html>", encoding="utf-8")
    window.open(plain)
    assert len(window.shown("#clusters .card")) == 6
    assert window.shown(".toolbar, .finder, .now") == []


POINTS = """const rows = JSON.parse(document.getElementById('data').textContent).rows;
            const bytes = (text) => Uint8Array.from(atob(text.slice(2)), (sign) => sign.charCodeAt(0));
            const read = (text) => [...new Uint16Array(bytes(text).buffer)];
            const [x, y] = [read(rows.x), read(rows.y)];
            const box = document.getElementById('canvas').getBoundingClientRect();
            const scale = Math.min(box.width - 2, (box.height - 2) * 1.6) - 52;
            const tall = Math.min(box.height - 2 - 52, scale);
            return [box.left, box.top, box.width, box.height,
                    x.map((one, i) => [box.width / 2 + (one / 10000 - 0.5) * scale,
                                       box.height / 2 - (y[i] / 10000 - 0.5) * tall])]"""


def drag(page, corners):
    """Move the mouse with its button down along corners, in pixels of the window."""
    from selenium.webdriver.common.action_chains import ActionChains

    chain = ActionChains(page.driver, duration=20)
    chain.w3c_actions.pointer_action.move_to_location(*map(round, corners[0]))
    chain.w3c_actions.pointer_action.pointer_down()
    for corner in corners[1:]:
        chain.w3c_actions.pointer_action.move_to_location(*map(round, corner))
    chain.w3c_actions.pointer_action.pointer_up()
    chain.perform()


@pytest.fixture
def row_map(page):
    page.run("document.getElementById('map').scrollIntoView({block: 'start', behavior: 'instant'})")
    return page


def ink(page):
    """Return the number of pixels of the map that are not empty, and of different colors among them."""
    return page.run(
        """const c = document.getElementById('canvas');
           const pixels = new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer);
           const drawn = pixels.filter((one) => one !== 0);
           return [drawn.length, new Set(drawn).size]"""
    )


def test_the_map_shows_all_rows_in_the_colors_of_their_clusters(row_map):
    n_pixels, n_colors = ink(row_map)
    assert n_pixels > 120
    assert n_colors > 6
    row_map.click("[data-color='certainty']")
    assert ink(row_map) != [n_pixels, n_colors]


def test_pointing_at_a_row_of_the_map_names_it_and_clicking_it_opens_it(row_map, study):
    left, top, _, _, points = row_map.run(POINTS)
    x, y = points[7]
    drag(row_map, [(left + x, top + y)])
    [name] = row_map.texts("#picked .name")
    i = int(name.split()[-1])
    # Another row may lie closer to the pixel than the one aimed at.
    assert np.hypot(points[i][0] - x, points[i][1] - y) < 2
    assert row_map.texts("#picked .pick") == [f"Cluster {study.model.labels_[i]}"]
    [tip] = row_map.shown("#tip")
    assert f"cluster {study.model.labels_[i]}" in tip


def test_a_line_around_points_selects_their_rows(row_map):
    left, top, width, height, points = row_map.run(POINTS)
    middle = left + width / 2
    drag(row_map, [(middle, top + 2), (middle, top + height - 3), (left + 2, top + height - 3), (left + 2, top + 2)])
    inside = sum(x < width / 2 - 1 for x, _ in points)
    [status] = row_map.shown("#map-status")
    assert abs(int(status.split()[0]) - inside) <= 2
    row_map.run("document.getElementById('canvas').focus()")
    row_map.press(Keys.ESCAPE)
    assert row_map.texts("#picked li") == []


def test_the_map_can_be_walked_by_arrow_keys(row_map):
    row_map.run("document.getElementById('canvas').focus()")
    row_map.press(Keys.ARROW_RIGHT)
    [first] = row_map.shown("#tip")
    row_map.press(Keys.ARROW_RIGHT)
    [second] = row_map.shown("#tip")
    assert first != second
    row_map.press(Keys.ENTER)
    assert second.startswith(row_map.texts("#picked .name")[0])
    assert row_map.shown("#tip") == []
    row_map.run("window.scrollBy({top: 20, behavior: 'instant'})")
    row_map.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert row_map.shown("#tip") == []


def test_the_slider_ranks_features_by_lift_or_by_share(page, study):
    shares = "#clusters .card[data-cluster='0'] td.bar"
    move = "const s = document.getElementById('relevance'); s.value = arguments[0]; s.dispatchEvent(new Event('input'))"
    page.run(move, 1)
    by_share = [float(value) for value in page.visible("data-v", shares)]
    assert by_share == sorted(by_share, reverse=True)
    profile = study.model.cluster_topics_[0] @ study.model.components_
    np.testing.assert_allclose(by_share, np.sort(profile)[::-1][: len(by_share)], atol=1e-6)
    page.run(move, 0)
    lifts = [float(value) for value in page.visible("data-v", "#clusters .card[data-cluster='0'] td:last-child")]
    assert lifts == sorted(lifts, reverse=True)


def test_a_cluster_is_compared_with_another_one(page, study):
    page.run("const s = document.getElementById('compared'); s.value = '1'; s.dispatchEvent(new Event('input'))")
    card = "#clusters .card[data-cluster='0'] "
    names = page.shown(card + "tbody th")
    lifts = [float(value) for value in page.visible("data-v", card + "td:last-child")]
    profiles = study.model.cluster_topics_ @ study.model.components_
    at = [study.model.feature_names_in_.tolist().index(name) for name in names]
    np.testing.assert_allclose(lifts, profiles[0, at] / profiles[1, at], rtol=1e-2)


def test_the_view_is_in_the_address_and_can_be_shared(page, window, full_path):
    page.click(".strips [data-pick='2']")
    page.click("[data-color='label']")
    page.run("const s = document.getElementById('relevance'); s.value = 0; s.dispatchEvent(new Event('input'))")
    page.find("#find")[0].send_keys("letter")
    page.click("#found summary")
    page.driver.execute_async_script("setTimeout(arguments[0], 100)")
    found = page.shown("#found .name")
    address, words = page.driver.current_url, page.shown("#clusters .card tbody th")
    window.open(address)
    assert window.visible("data-cluster", "#clusters .card") == ["2"]
    assert window.shown("#clusters .card tbody th") == words
    assert window.find("[data-color='label']")[0].get_attribute("aria-pressed") == "true"
    window.driver.execute_async_script("setTimeout(arguments[0], 100)")
    assert window.shown("#found .name") == found
    assert len(window.find("#found details[open] .evidence")) == 1
    page.click("#show-all")
    assert "cluster=" not in page.driver.current_url
    window.open(f"{full_path.as_uri()}#view&cluster=%22%5D&topic=99&color=%5C&relevance=x&compared=y")
    assert window.messages() == []
    assert len(window.shown("#clusters .card")) == 6


def test_the_rows_of_the_map_are_saved_with_their_names_and_clusters(page, study):
    tables, figures = saved_views(page)
    head, *lines = tables["map-view"]
    columns = dict(zip(head, zip(*lines, strict=True), strict=True))
    assert [int(cluster) for cluster in columns["cluster"]] == study.model.labels_.tolist()
    assert list(columns["name"]) == [f"letter {i}" for i in range(120)]
    assert list(columns["label"]) == [f"class {label}" for label in study.labels]
    titles = [
        part.text for part in ElementTree.fromstring(figures["map-view"]).iter("{http://www.w3.org/2000/svg}title")
    ]
    assert sorted(titles) == sorted(columns["name"])


def test_a_notebook_shows_the_page_in_a_frame(study, window, tmp_path):
    report = Report(study.model, X=study.X, title='A "quoted" title')
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><meta charset='utf-8'>{report._repr_html_()}", encoding="utf-8")
    window.open(notebook)
    assert window.messages() == []
    window.driver.switch_to.frame(window.find("iframe")[0])
    assert window.shown("h1") == ['A "quoted" title']
    window.click(".strips [data-pick='2']")
    assert window.visible("data-cluster", "#clusters .card") == ["2"]
    assert window.shown("#found-status")[0].startswith(f"{(study.model.labels_ == 2).sum()} ")
    window.click("nav a[href='#sure']")
    window.driver.execute_async_script("setTimeout(arguments[0], 300)")
    assert 0 <= window.run("return document.getElementById('sure').getBoundingClientRect().top") < 100
    assert window.shown("h1") == ['A "quoted" title']
    window.driver.switch_to.default_content()
    assert window.messages() == []


def test_features_show_their_taxonomy_by_mouse_and_keyboard(window, study, tmp_path):
    model = copy.copy(study.model)
    model.feature_annotations_ = {"taxonomy": np.array([f"k__Words; s__{v} <b>" for v in range(model.n_features_in_)])}
    window.open(write_report(model, tmp_path / "page.html", X=study.X))
    window.run(SHOW_ALL_EVIDENCE)
    window.driver.execute_async_script("setTimeout(arguments[0], 100)")
    at = {str(name): v for v, name in enumerate(model.feature_names_in_)}
    for place in ("#clusters .features bdi", "#topics .features bdi", ".evidence bdi", "#dots text[transform]"):
        name = window.find(place)[0]
        window.run("arguments[0].dispatchEvent(new MouseEvent('mouseover', {bubbles: true}))", name)
        [tip] = window.shown("#tip")
        words = window.texts(place)[0].strip("\N{FIRST STRONG ISOLATE}\N{POP DIRECTIONAL ISOLATE}")
        assert tip == f"{words}: k__Words; s__{at[words]} <b>"
    tables = "#clusters .features", "#topics .features", "#rows details[open] .evidence"
    for first in [window.find(f"{place} bdi[tabindex='0']")[0] for place in tables]:
        window.run("arguments[0].focus()", first)
        second = window.run("return arguments[0].closest('tbody').rows[1].querySelector('bdi')", first)
        for key, name in ((Keys.ARROW_DOWN, second), (Keys.ARROW_UP, first)):
            window.press(key)
            assert window.driver.switch_to.active_element == name
            assert window.shown("#tip")[0].startswith(f"{name.text}: k__Words")
    for table in window.find(".features, .evidence"):
        assert len(table.find_elements("css selector", "bdi[tabindex='0']")) <= 1
