"""Where a result comes from: parameters, versions, what to cite."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any

import numpy as np

from mmpca.model import MMPCA
from mmpca.report.words import shown

PACKAGES = ("mmpca", "numpy", "scipy", "scikit-learn", "numba")
PAPER = (
    "N. Jouvin, P. Latouche, C. Bouveyron, G. Bataillon, A. Livartowski (2021): Greedy clustering of count data "
    "through a mixture of multinomial PCA. Computational Statistics 36, 1\N{EN DASH}33."
)
DOI = "10.1007/s00180-020-01008-9"


def parameters_of(model: MMPCA) -> list[tuple[str, str]]:
    """Return the parameters of a model in words."""
    return [(name, _told(value)) for name, value in model.get_params(deep=False).items()]


def versions() -> list[tuple[str, str]]:
    """Return the versions at work."""
    return [("Python", platform.python_version())] + [(name, version(name)) for name in PACKAGES]


def _told(value: Any) -> str:
    if value is None or isinstance(value, str | int | float | np.number):
        return shown(value)
    if isinstance(value, np.random.RandomState):
        return "a generator of random numbers"
    return f"given, shape {np.shape(value)}"
