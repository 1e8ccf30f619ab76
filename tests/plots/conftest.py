"""Compare figures with stored pictures: small ones without text, because fonts differ between machines."""

import os
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.legend import Legend
from matplotlib.text import Text
from PIL import Image

BASELINE = Path(__file__).with_name("baseline")
WRITE = "MMPCA_WRITE_BASELINE"  # if set to 1, tests overwrite the baseline; review it before committing
SIZE, DPI, COARSE = (4.0, 3.0), 60, 3  # inches, pixels per inch, and side of the blocks of pixels that are averaged
MOST_DIFFERENT, LEAST_SEEN = 0.08, 24  # share of non-blank pixels that may differ; smallest visible difference of 255


@pytest.fixture(autouse=True)
def plain_style():
    """Draw with matplotlib's default style, and close all figures afterwards."""
    with mpl.rc_context():
        mpl.rcdefaults()
        yield
        plt.close("all")


def pixels(figure):
    """Return a figure without its text as averaged pixels, (height, width, 3)."""
    for legend in figure.findobj(Legend):
        legend.set_visible(False)  # its position depends on the width of the text
    for text in figure.findobj(Text):
        text.set_alpha(0.0)
        if text.get_bbox_patch() is not None:
            text.get_bbox_patch().set_visible(False)
    figure.set_dpi(DPI)
    figure.canvas.draw()
    drawn = np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(float)
    height, width = drawn.shape[0] // COARSE, drawn.shape[1] // COARSE
    cut = drawn[: height * COARSE, : width * COARSE]
    return cut.reshape(height, COARSE, width, COARSE, 3).mean(axis=(1, 3))


def share_different(one, other):
    """Return the share of the non-blank pixels that visibly differ."""
    has_ink = np.minimum(one, other).min(axis=2) < 255 - LEAST_SEEN
    return float((np.abs(one - other).max(axis=2) > LEAST_SEEN).sum() / has_ink.sum())


@pytest.fixture
def canvas():
    """Return axes whose position does not depend on fonts."""
    return plt.figure(figsize=SIZE).add_axes((0.12, 0.12, 0.8, 0.8))


@pytest.fixture
def assert_looks_like():
    """Return a function that compares a figure with the picture of that name in the folder `baseline`."""

    def check(figure, name):
        path, drawn = BASELINE / f"{name}.png", pixels(figure)
        if os.environ.get(WRITE) == "1":
            Image.fromarray(drawn.round().astype(np.uint8)).save(path, optimize=True)
        expected = np.asarray(Image.open(path).convert("RGB")).astype(float)
        assert drawn.shape == expected.shape
        assert share_different(drawn, expected) <= MOST_DIFFERENT, f"{name}: set {WRITE}=1 and look at {path}"

    return check


@pytest.fixture
def difference():
    """Return a function that measures how different two figures are."""
    return lambda one, other: share_different(pixels(one), pixels(other))
