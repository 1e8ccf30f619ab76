"""Draw the pictures of docs/report.md: screenshots of pages, and figures.

`make pictures` runs this script. It needs chromium and chromedriver in addition to the packages of the tests.
"""

from __future__ import annotations

import base64
import io
import re
import shutil
import tempfile
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from PIL import Image
from selenium import webdriver

from mmpca import MMPCA, MMPCASearch, plots
from mmpca.evaluation import stability
from mmpca.paper import pathology_reports
from mmpca.report import Explorer, write_report
from mmpca.simulate import paper_design
from mmpca.simulate.designs import ARTICLES, read_article
from mmpca.text import CountTexts

PICTURES = Path(__file__).with_name("images") / "report"
COLORS = 96  # per picture; pages and figures have few, and files stay small


class Passages(NamedTuple):
    """Short texts, each with a name and a subject."""

    texts: list[str]
    names: list[str]
    subjects: list[str]


def passages(length: int = 4) -> Passages:
    """Return the built-in articles, cut into passages of a few sentences."""
    found = Passages([], [], [])
    for article in ARTICLES:
        sentences = re.split(r"(?<=[.!?])\s+", " ".join(read_article(article).split()))
        subject = article.replace("_", " ")
        for number, start in enumerate(range(0, len(sentences) - length + 1, 2), start=1):
            found.texts.append(" ".join(sentences[start : start + length]))
            found.names.append(f"{subject}, passage {number}")
            found.subjects.append(subject)
    return found


class Camera:
    """A headless browser that takes screenshots."""

    def __init__(self) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
            options.add_argument(argument)
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))

    def take(self, name: str, url: str, size: tuple[int, int], *, script: str = "", is_dark: bool = False) -> None:
        """Save a screenshot of a page in a window of the given size, after running a script."""
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        self.driver.get(url)
        self.driver.execute_script(script)
        self.driver.execute_async_script(_SETTLE)
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
        keep(name, base64.b64decode(shot["data"]))


def keep(name: str, png: bytes) -> None:
    """Write a picture with a reduced palette."""
    picture = Image.open(io.BytesIO(png)).convert("RGB").quantize(COLORS, dither=Image.Dither.NONE)
    picture.save(PICTURES / f"{name}.png", optimize=True)


def keep_figure(name: str, figure: Any) -> None:
    """Write a matplotlib figure."""
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=110, metadata={"Software": None})
    keep(name, buffer.getvalue())


def draw_figures(search: MMPCASearch, model: MMPCA, X: Any, labels: Any) -> None:
    """Draw every figure of a fitted model and of its grid search."""
    keep_figure("criterion_heatmap", plots.criterion_heatmap(search.results_).figure)
    keep_figure("criterion_curves", plots.criterion_curves(search.results_).figure)
    keep_figure("cluster_topics", plots.cluster_topics(model).figure)
    keep_figure("cluster_sizes", plots.cluster_sizes(model).figure)
    keep_figure("topics", plots.topics(model, n_features=6))
    keep_figure("topics_entropy", plots.topics(model, n_features=6, by="entropy"))
    keep_figure("dendrogram", plots.dendrogram(model.merge_path()).figure)
    keep_figure("bound_history", plots.bound_history(model).figure)
    keep_figure("topic_space", plots.topic_space(model, X, clusters=model.labels_).figure)
    keep_figure("confusion", plots.confusion([f"class {label}" for label in labels], model.labels_).figure)
    keep_figure("stability", plots.stability(stability(model, X, n_refits=5, random_state=0)).figure)


def simulation(camera: Camera, folder: Path) -> None:
    """Draw the pictures of the paper's design: a grid search, a model and its report."""
    data = paper_design(noise=0.4, balance=0.85, random_state=0)
    X = data.X
    search = MMPCASearch(n_clusters=(5, 6, 7), n_topics=(3, 4, 5), random_state=0).fit(X)
    model = MMPCA(6, 4, n_init=3, random_state=0).fit(X)
    model.feature_names_in_ = np.array([str(name) for name in data.feature_names], dtype=object)
    labels = [f"class {label}" for label in data.labels]
    page = write_report(model, folder / "report.html", X=X, labels=labels, search=search, title="The paper's design")
    camera.take("report", page.as_uri(), (1280, 1000))
    camera.take("report-dark", page.as_uri(), (1280, 1000), is_dark=True, script=_CHOOSE)
    camera.take("report-map", page.as_uri(), (1280, 900), script=_PICK + _GO.replace("ID", "map"))
    camera.take("report-phone", page.as_uri(), (400, 1150))
    three = MMPCA(5, 3, n_init=2, random_state=0).fit(X)
    keep_figure("topic_space_simplex", plots.topic_space(three, X, clusters=three.labels_).figure)
    draw_figures(search, model, _named(X, model), data.labels)


def texts(camera: Camera, folder: Path) -> None:
    """Draw the pictures of a text set: rows with texts and reasons, and the explorer."""
    found = passages()
    counter = CountTexts(stop_words="english", min_df=2)
    X = counter.fit_transform(found.texts)
    model = MMPCA(4, 4, random_state=0).fit(X)
    model.feature_names_in_ = np.array(counter.get_feature_names_out(), dtype=object)
    given = {"labels": found.subjects, "texts": found.texts, "row_names": found.names, "title": "Passages of articles"}
    page = write_report(model, folder / "texts.html", X=X, **given)
    camera.take("report-rows", page.as_uri(), (1280, 1000), script=_OPEN + _GO.replace("ID", "rows"))
    camera.take("report-recipes", page.as_uri(), (1280, 900), script=_GO.replace("ID", "recipes"))
    with Explorer(model, X=X, save=lambda edited: None, **given) as explorer:
        Thread(target=explorer.serve, daemon=True).start()
        camera.take("explore", explorer.url, (1280, 900), script=_SEARCH + _GO.replace("ID", "rows"))


def reports(camera: Camera, folder: Path) -> None:
    """Draw the pictures of a search and of refits: how many clusters there are, and how sure they are."""
    data = pathology_reports(300, random_state=0)
    counter = CountTexts(stop_words="english", min_df=2)
    X = counter.fit_transform(data.texts)
    model = MMPCASearch(random_state=0).fit(X).best_estimator_
    model.keep_stability(stability(model, X, n_refits=3, random_state=0))
    model.feature_names_in_ = np.array(counter.get_feature_names_out(), dtype=object)
    given = {"labels": data.labels, "texts": data.texts, "row_word": "report", "title": "Pathology reports"}
    page = write_report(model, folder / "reports.html", X=X, **given)
    camera.take("report-sure", page.as_uri(), (1280, 900), script=_GO.replace("ID", "sure"))
    camera.take("report-many", page.as_uri(), (1280, 1400), script=_GO.replace("ID", "many"))


def _named(X: Any, model: MMPCA) -> Any:
    """Return the counts as a data frame with the model's feature names."""
    import pandas as pd

    return pd.DataFrame(X.toarray(), columns=model.feature_names_in_)


_SETTLE = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 500)));"
_CHOOSE = "document.querySelector('[data-pick=\"1\"]').click();"
_FIND = "const box = document.getElementById('find'); box.value = 'WORDS'; box.dispatchEvent(new Event('input'));"
_OPEN = (
    _FIND.replace("WORDS", "birth, passage 2")
    + "setTimeout(() => document.querySelector('#found summary').click(), 50);"
)
_PICK = "".join(
    f"document.getElementById('canvas').dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}'}}));"
    for key in ("ArrowRight", "ArrowRight", "Enter")
)
_SEARCH = _FIND.replace("WORDS", "the baby")
_GO = "document.documentElement.style.scrollPaddingTop = '1rem'; document.getElementById('ID').scrollIntoView();"


def main() -> None:
    """Draw all pictures."""
    mpl.use("Agg")
    PICTURES.mkdir(exist_ok=True, parents=True)
    camera = Camera()
    try:
        with tempfile.TemporaryDirectory() as folder:
            simulation(camera, Path(folder))
            texts(camera, Path(folder))
            reports(camera, Path(folder))
    finally:
        camera.driver.quit()


if __name__ == "__main__":
    main()
