"""The page in a browser: its size, the time to write and to open it, and how fast it answers."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np

from measure import Limits, Row
from mmpca import MMPCA
from mmpca.report import write_report
from mmpca.simulate import simulate_mmpca
from mmpca.simulate.designs import article_topics
from problems import Sizes, corpus

ARGUMENTS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
N_NEWS = 2_000
MANY = Sizes(n_topics=30)
OPENS, ANSWERS = Limits(at_most=1500), Limits(at_most=100)  # milliseconds

# Each line does one thing that a reader does; `n` is the number of the repetition.
INTERACTIONS = {
    "hover": "point('pointermove', 0.3 + 0.05 * n)",
    "click": "point('pointerdown', 0.3 + 0.05 * n); point('pointerup', 0.3 + 0.05 * n)",
    "lasso": """point('pointerdown', 0.2);
                for (const [x, y] of [[0.8, 0.2], [0.8, 0.8], [0.2, 0.8]]) point('pointermove', x, y);
                point('pointerup', 0.2, 0.8)""",
    "color": "document.querySelectorAll('[data-color]')[n % 3].click()",
    "cluster": "document.querySelectorAll('.strips .pick')[n % 3].click()",
    "filter": "set('by-verdict', String(n % 3), 'change')",
    "label": "set('by-label', String(n % 3), 'change')",
    "order": "set('by-order', ['least', 'surest'][n % 2], 'change')",
    "search": "set('find', 'abcde'[n], 'input')",
    "open a row": "document.querySelectorAll('#found summary')[n].click()",
    "slider": "set('relevance', String(n / 5), 'input')",
    "compare": "set('compared', String(n % 3), 'input')",
}
MEASURE = """const [n, done] = arguments;
  const canvas = document.getElementById('canvas'), box = canvas.getBoundingClientRect();
  canvas.setPointerCapture = () => {};
  const point = (kind, x, y = x) => canvas.dispatchEvent(new PointerEvent(kind, {
    clientX: box.left + x * box.width, clientY: box.top + y * box.height, bubbles: true, pointerType: 'mouse',
  }));
  const set = (id, value, kind) => {
    const part = document.getElementById(id);
    part.value = value;
    part.dispatchEvent(new Event(kind, { bubbles: true }));
  };
  const start = performance.now();
  ACTION;
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));"""  # until it is painted


def page_rows(quick: bool, repeats: int) -> list[Row]:
    """Measure the page of a news-like corpus, and that of 20 clusters, 30 topics and 20,000 rows."""
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        print("The page is not measured, because chromium or chromedriver is missing.")
        return []
    with tempfile.TemporaryDirectory() as folder, browser() as driver:
        path = Path(folder, "page.html")
        rows = measure(driver, f"{N_NEWS:,} news-like texts", news_page(path, texts=False), Limits(at_most=0.8))
        rows += measure(driver, f"{N_NEWS:,} news-like texts, whole", news_page(path, texts=True), None)
        if not quick:
            rows += measure(driver, "20 clusters, 30 topics, 20,000 rows", large_page(path), Limits(at_most=2))
    return rows


@contextmanager
def browser() -> Iterator[Any]:
    """Start a headless browser."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ARGUMENTS:
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    driver.set_window_size(1440, 900)
    try:
        yield driver
    finally:
        driver.quit()


def news_page(path: Path, *, texts: bool) -> tuple[Path, float]:
    """Write the page of texts made of words from four articles; return it with the CPU seconds this took."""
    topics, words = article_topics()
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(len(topics), 0.3), 5)
    lengths = rng.integers(100, 400, N_NEWS)
    data = simulate_mmpca(N_NEWS, topics=topics, cluster_topics=shares, lengths=lengths, noise=0.2, random_state=0)
    model = MMPCA(5, 4, topics=topics, start=data.labels, max_epochs=1, random_state=0).fit(data.X)
    model.feature_names_in_ = np.array(words, dtype=object)
    written = [
        " ".join(rng.permutation(np.repeat(words[row.indices], row.data)))
        for row in (data.X[[i]] for i in range(N_NEWS))
    ]
    return timed(model, path, data.X, data.labels, "article", written if texts else None)


def large_page(path: Path) -> tuple[Path, float]:
    """Write the page of a large corpus; return it with the CPU seconds this took."""
    problem = corpus(MANY)
    model = MMPCA(MANY.n_clusters, MANY.n_topics, topics=problem.beta, start=problem.labels, max_epochs=0)
    return timed(model.fit(problem.X), path, problem.X, problem.labels, "document", None)


def timed(model: MMPCA, path: Path, X: Any, labels: Any, noun: str, texts: list[str] | None) -> tuple[Path, float]:
    """Write a page with names and labels; return it with the CPU seconds this took."""
    assert model.temperature_ > 0  # estimated when first needed, and kept in model files
    given = {"labels": [f"class {label}" for label in labels], "texts": texts, "row_word": noun, "feature_word": "word"}
    names = [f"{noun} of 2026-{i % 12 + 1:02}, number {i}" for i in range(len(labels))]
    start = process_time()
    return write_report(model, path, X=X, row_names=names, **given), process_time() - start


def measure(driver: Any, title: str, written: tuple[Path, float], size: Limits | None) -> list[Row]:
    """Open a page and use it."""
    path, seconds = written
    driver.set_script_timeout(60)
    loads = []
    for _ in range(3):
        driver.get("about:blank")
        driver.get(path.as_uri())
        loads.append(driver.execute_script("return performance.getEntriesByType('navigation')[0].loadEventEnd"))
    rows = [
        Row("page", f"{title}: MB", path.stat().st_size / 1e6, size),
        Row("page", f"{title}: CPU s to write", seconds),
        Row("page", f"{title}: ms to open", median(loads), OPENS),
    ]
    for name, action in INTERACTIONS.items():
        script = MEASURE.replace("ACTION", action)
        times = [float(driver.execute_async_script(script, n)) for n in range(5)]
        rows.append(
            Row("page", f"{title}: ms to answer, {name}", median(times), ANSWERS, f"slowest {max(times):.0f} ms")
        )
        if name in ("cluster", "label", "order"):
            driver.execute_script("document.getElementById('show-all').click()")
    return rows
