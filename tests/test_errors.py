"""Errors carry the place they are about, and warnings point at the caller's file."""

import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest

from mmpca import MMPCA, MMPCASearch, distributed
from mmpca.errors import (
    CountsError,
    InputFileError,
    InterruptedSearchWarning,
    ModelFileError,
    OverdispersionWarning,
    StoreError,
    warn,
)


@pytest.fixture(scope="module")
def X():
    """Return counts that vary much more than a multinomial mixture expects."""
    return 50 * np.random.default_rng(0).negative_binomial(0.5, 0.2, size=(30, 6)) + 1


def model(**parameters):
    return MMPCA(2, 2, topics="random", n_init=1, random_state=0, **parameters)


def search():
    return MMPCASearch([2], [1, 2], random_state=0)


def stop(progress):
    return True


def stop_at_cells(progress):
    return progress.stage == "cells"


CALLS = {
    "fit": (OverdispersionWarning, lambda X: model().fit(X)),
    "fit_predict": (OverdispersionWarning, lambda X: model().fit_predict(X)),
    "fit_transform": (OverdispersionWarning, lambda X: model().fit_transform(X)),
    "two threads": (OverdispersionWarning, lambda X: model(n_jobs=2).fit(X)),
    "distributed.fit": (OverdispersionWarning, lambda X: distributed.fit(model(), [X[:10], X[10:]])),
    "interrupted fit": (InterruptedSearchWarning, lambda X: model(stabilize="sqrt").fit(X, callback=stop)),
    "MMPCASearch.fit": (InterruptedSearchWarning, lambda X: search().fit(X, callback=stop_at_cells)),
    "MMPCASearch.fit_predict": (
        InterruptedSearchWarning,
        lambda X: search().fit_predict(X, callback=stop_at_cells),
    ),
}


@pytest.mark.parametrize(("category", "call"), CALLS.values(), ids=CALLS)
def test_a_warning_points_at_the_callers_file(X, category, call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(X)
    places = [warning.filename for warning in caught if issubclass(warning.category, category)]
    assert places == [__file__]


def test_a_warning_points_at_the_calling_line():
    with pytest.warns(OverdispersionWarning) as caught:
        warn("far too much", OverdispersionWarning)
    line = Path(__file__).read_text().splitlines()[caught[0].lineno - 1]
    assert line.strip() == 'warn("far too much", OverdispersionWarning)'


@pytest.mark.parametrize("kind", [InputFileError, ModelFileError, StoreError])
def test_file_errors_are_value_errors_with_path_and_line(kind):
    error = kind("no good", path="counts.csv", line=3)
    assert isinstance(error, ValueError)
    assert (error.path, error.line, str(error)) == (Path("counts.csv"), 3, "no good")
    assert (kind("no good").path, kind("no good").line) == (None, None)


def test_a_counts_error_is_a_value_error_with_row_and_column():
    error = CountsError("no good", row=2, column=5)
    assert isinstance(error, ValueError)
    assert (error.row, error.column, str(error)) == (2, 5, "no good")


@pytest.mark.parametrize(
    "error",
    [CountsError("no good", row=2, column=5), StoreError("no good", path="kept.npz"), ModelFileError("no good")],
)
def test_errors_keep_their_place_on_the_way_from_a_worker(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), vars(copy)) == (str(error), vars(error))
