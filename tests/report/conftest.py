"""A small fitted model, and two ways to read its page: as text, and in a real browser."""

import base64
import json
import os
import shutil
import subprocess
import tarfile
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from mmpca import MMPCA
from mmpca.report import write_report
from mmpca.simulate import paper_design, simulate_mmpca
from mmpca.simulate.designs import article_topics

# Names that try to break the page: markup, quotes, direction marks, huge, emoji, invalid characters.
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

RESULTS = {
    "n_clusters": np.array([5, 6, 7]),
    "n_topics": np.array([4, 4, 4]),
    "predictive": np.array([-150.0, -120.0, -124.5]),
}
VOID = {"meta", "input", "link", "br", "img"}


class Element(NamedTuple):
    """A start tag with its enclosing tags and its text."""

    tag: str
    attributes: dict
    around: tuple
    text: list

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


class Page(HTMLParser):
    """The elements of a page, whose tags must be properly nested."""

    def __init__(self, source):
        super().__init__()
        self.source, self.elements, self._open = source, [], []
        self.feed(source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attributes):
        around = tuple(element.tag for element in self._open)
        element = Element(tag, dict(attributes), around, [])
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self._open[-1].tag == tag, (self._open[-1], tag, self.getpos())
        self._open.pop()

    def handle_data(self, data):
        for element in self._open:
            element.text.append(data)

    def find(self, tag=None, **wanted):
        """Return the elements with a tag and attributes; `klass` is one of their classes."""
        klass = wanted.pop("klass", None)
        return [
            element
            for element in self.elements
            if tag in (None, element.tag)
            and (klass is None or klass in (element.attributes.get("class") or "").split())
            and all(element.attributes.get(name.replace("_", "-")) == value for name, value in wanted.items())
        ]

    def part(self, name):
        return self.find(id=name)[0]


class Study(NamedTuple):
    """A fitted model and its data."""

    model: MMPCA
    X: object
    labels: np.ndarray


@pytest.fixture(scope="session")
def study():
    data = paper_design(n_samples=120, noise=0.4, random_state=0)
    model = MMPCA(6, 4, topics="lda", n_init=3, random_state=0).fit(data.X)
    model.feature_names_in_ = np.array([str(name) for name in data.feature_names], dtype=object)
    return Study(model, data.X, data.labels)


@pytest.fixture(scope="session")
def read_page():
    return lambda path: Page(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def whole_names():
    """Return a function that decodes front-coded names."""

    def decode(coded):
        names = [""]
        for name in coded:
            names.append(names[-1][: int(name[0], 36)] + name[1:])
        return names[1:]

    return decode


@pytest.fixture(scope="session")
def full_path(study, tmp_path_factory):
    """Write a page that uses every option of a report."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    names = [f"letter {i}" for i in range(120)]
    texts = [f"the text of letter {i}" for i in range(120)]
    labels = [f"class {label}" for label in study.labels]
    given = {"labels": labels, "texts": texts, "row_names": names, "search": RESULTS, "title": "Letters"}
    assert write_report(study.model, path, X=study.X, **given) == path
    return path


@pytest.fixture(scope="session")
def news_path(tmp_path_factory):
    """Write the page of 2,000 texts made of words from four articles."""
    topics, words = article_topics()
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(len(topics), 0.3), 5)
    data = simulate_mmpca(2000, topics=topics, cluster_topics=shares, lengths=60, noise=0.2, random_state=0)
    model = MMPCA(5, 4, topics=topics, start=data.labels, max_epochs=1, temperature=1, random_state=0).fit(data.X)
    model.feature_names_in_ = np.array(words, dtype=object)
    texts = [" ".join(np.repeat(words[row.indices], row.data)) for row in (data.X[[i]] for i in range(2000))]
    labels = [f"news that readers call class {label}" for label in data.labels]
    given = {"labels": labels, "row_word": "article", "feature_word": "word"}
    return write_report(model, tmp_path_factory.mktemp("news") / "news.html", X=data.X, texts=texts, **given)


@pytest.fixture(scope="session")
def large_path(tmp_path_factory):
    """Write the page of 21,000 rows in 20 clusters that mix 30 topics."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(500, 0.1), 30)
    labels = np.arange(21_000) % 20
    X = rng.poisson(40 * (rng.dirichlet(np.full(30, 0.1), 20) @ topics)[labels])
    X[:, 0] += 1
    model = MMPCA(20, 30, max_epochs=0, topics=topics, start=labels, temperature=1).fit(X)
    texts = [f"article number {i}, and what it says: " + "many words " * 200 for i in range(21_000)]
    names = [f"article {i}" for i in range(21_000)]
    given = {"row_names": names, "texts": texts, "labels": labels % 13, "text_size": 0}
    return write_report(model, tmp_path_factory.mktemp("large") / "large.html", X=X, **given)


@pytest.fixture(scope="session")
def hostile_names():
    return HOSTILE


@pytest.fixture(scope="session")
def hostile_path(study, tmp_path_factory):
    """Write a page whose names and texts are all hostile."""
    names = (HOSTILE * 10)[:120]
    honest = study.model.feature_names_in_
    study.model.feature_names_in_ = np.array((HOSTILE * (len(honest) // len(HOSTILE) + 1))[: len(honest)], dtype=object)
    try:
        given = {"labels": names, "texts": names, "row_names": names, "title": HOSTILE[1], "search": RESULTS}
        return write_report(study.model, tmp_path_factory.mktemp("hostile") / "report.html", X=study.X, **given)
    finally:
        study.model.feature_names_in_ = honest


class Window:
    """A page in a real browser: its elements, console messages and network requests."""

    def __init__(self, driver):
        self.driver = driver

    def open(self, page, *, width=1280, is_dark=False):
        """Open a file or an address in a window of this width in pixels."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}]
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        self.driver.get("about:blank")
        self._log("browser"), self._log("performance")  # discard those of earlier pages
        self.driver.get(page if isinstance(page, str) else page.as_uri())
        return self

    def run(self, script, *arguments):
        """Run JavaScript and return its result."""
        return self.driver.execute_script(script, *arguments)

    def find(self, selector):
        """Return the elements that match a CSS selector."""
        return self.driver.find_elements("css selector", selector)

    def shown(self, selector):
        """Return the texts of the visible elements."""
        return [element.text for element in self.find(selector) if element.is_displayed()]

    def visible(self, attribute, selector):
        """Return an attribute of the visible elements."""
        return [element.get_attribute(attribute) for element in self.find(selector) if element.is_displayed()]

    def texts(self, selector):
        """Return the texts of all elements, visible or not."""
        return self.run(
            "return [...document.querySelectorAll(arguments[0])].map((part) => part.textContent.trim())", selector
        )

    def click(self, selector):
        """Click the first matching element."""
        self.find(selector)[0].click()

    def follow(self, selector):
        """Click an element that leads to another page, and wait until that page is loaded."""
        from selenium.webdriver.support.expected_conditions import staleness_of
        from selenium.webdriver.support.wait import WebDriverWait

        before = self.find("html")[0]
        self.click(selector)
        wait = WebDriverWait(self.driver, 600)
        wait.until(staleness_of(before))
        wait.until(lambda driver: driver.execute_script("return document.readyState") == "complete")

    def press(self, *keys):
        """Press keys one after the other in the focused element."""
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def messages(self):
        """Return the console messages since the page was opened."""
        return [entry["message"] for entry in self._log("browser")]

    def requests(self):
        """Return the addresses requested since the page was opened."""
        events = [json.loads(entry["message"])["message"] for entry in self._log("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def layout_errors(self):
        """Return the elements that are cut off, spill over, overlap or scroll sideways."""
        return self.run(Path(__file__).with_name("geometry.js").read_text(encoding="utf-8"))

    def pdf(self):
        """Return the printed page."""
        printed = self.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
        return base64.b64decode(printed["data"])

    def _log(self, kind):
        return self.driver.get_log(kind)


def found_or_skipped(program):
    """Return the path of a program; if it is missing, skip the test, or fail it in continuous integration."""
    path = shutil.which(program)
    if path is None:
        reason = f"tests in a real browser need {program}: apt-get install chromium chromium-driver npm"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    return path


@pytest.fixture(scope="session")
def window():
    """Start headless Chromium once for all tests."""
    binary, chromedriver = found_or_skipped("chromium"), found_or_skipped("chromedriver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = binary
    # In a container, root has no sandbox and little shared memory.
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
    driver.set_script_timeout(300)  # the machine may be busy
    yield Window(driver)
    driver.quit()


@pytest.fixture(scope="session")
def axe(tmp_path_factory):
    """Download axe-core and return its script."""
    npm = found_or_skipped("npm")
    folder = tmp_path_factory.mktemp("axe")
    subprocess.run([npm, "pack", "--silent", "axe-core@4.10.3"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        return archive.extractfile("package/axe.min.js").read().decode("utf-8")
