"""Fixtures for the examples in docstrings."""

import sys

import pytest


@pytest.fixture(autouse=True)
def close_figures():
    """Close the figures that an example leaves open; matplotlib warns when there are more than twenty."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
