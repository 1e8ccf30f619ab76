"""A small model with all that a report can be given, and a way to read the page."""

from html.parser import HTMLParser
from typing import NamedTuple

import numpy as np
import pytest

from mmpca import MMPCA
from mmpca.simulate import paper_design

VOID = {"meta", "input", "link", "br", "img"}


class Element(NamedTuple):
    """A start tag, with the tags around it and the text inside."""

    tag: str
    attributes: dict
    around: tuple
    text: list

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


class Page(HTMLParser):
    """The elements of a page; tags have to be closed in the order in which they were opened."""

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
        """Return the elements with a tag and attributes; `klass` stands for one of the classes."""
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
    model = MMPCA(6, 4, n_init=3, random_state=0).fit(data.X)
    model.feature_names_in_ = np.array([str(name) for name in data.feature_names], dtype=object)
    return Study(model, data.X, data.labels)


@pytest.fixture(scope="session")
def read_page():
    return lambda path: Page(path.read_text(encoding="utf-8"))
