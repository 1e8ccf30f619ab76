"""A fit goes on from its own file, and from no other."""

import json
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

from mmpca import MMPCA
from mmpca.counts import Counts, as_counts
from mmpca.errors import StoreError
from mmpca.model import searching
from mmpca.model.checkpoints import Checkpoint, row_digest
from mmpca.places import Here, one_thread
from mmpca.simulate import paper_design

OPTIONS = {"n_clusters": 4, "n_topics": 3, "n_init": 1, "random_state": 0}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.npz"


def kept(path, name="labels"):
    with np.load(path) as file:
        return file[name]


# --- which rows ---------------------------------------------------------------------------------------------------


def digest(X, first=0):
    counts = as_counts(X, empty_rows="allow")
    rows = np.arange(counts.n_rows)
    return row_digest(counts, rows, first + rows, one_thread)


@pytest.mark.parametrize("cuts", [[1], [40], [7, 8, 50]])
def test_the_digest_of_rows_does_not_know_their_division(X, cuts):
    parts = [digest(part, first) for part, first in zip(np.split(X, cuts), [0, *cuts], strict=True)]
    for order in (parts, parts[::-1]):
        np.testing.assert_array_equal(np.sum(order, axis=0), digest(X))


def swapped(X, i, j, columns=slice(None)):
    X = X.copy()
    X[[i, j], columns] = X[[j, i], columns]
    return X


def test_the_digest_of_rows_knows_every_count_and_its_place(X):
    i, j = 0, int(np.flatnonzero((X[0] != X).any(axis=1))[0])
    v = int(np.flatnonzero(X[i] != X[j])[0])
    one_more = X.copy()
    one_more[0, 0] += 1
    shifted = np.vstack([X[1:], X[:1]])
    others = [
        X[::-1], X[:, ::-1], X * 2, X[:-1], one_more, shifted, swapped(X, i, j), swapped(X, i, j, v),
        np.vstack([np.zeros_like(X[:1]), X]),
    ]  # fmt: skip
    digests = {int(digest(other)[0]) for other in [X, *others]}
    assert len(digests) == 1 + len(others)


def test_the_digest_of_rows_copies_no_counts():
    n_rows, n_entries = 40_000, 100
    indices = np.tile(np.arange(n_entries, dtype=np.int32), n_rows)
    counts = Counts(np.arange(n_rows + 1) * n_entries, indices, np.ones_like(indices), n_entries)
    rows = np.arange(n_rows)
    tracemalloc.start()
    row_digest(counts, rows, rows, one_thread)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < counts.data.nbytes / 2


@pytest.mark.parametrize(
    "other", [lambda X: X[::-1], lambda X: swapped(X, 0, 79), lambda X: np.column_stack([X, np.zeros(80, int)])]
)
def test_the_checkpoint_of_other_rows_is_refused(X, path, other):
    MMPCA(**OPTIONS, topics="random").fit(X, checkpoint=path)
    with pytest.raises(
        StoreError, match=r"belongs to another fit: its (rows are others|n_features is 25, here it is 26)"
    ):
        MMPCA(**OPTIONS, topics="random").fit(other(X), checkpoint=path)


# --- which parameters ---------------------------------------------------------------------------------------------


def identity(path, rows, **parameters):
    return Checkpoint.of_fit(path, MMPCA(**parameters).get_params(deep=False), Here(rows)).identity


def inner_change(values):
    """Return an array that differs only where NumPy does not print it."""
    changed = values.copy()
    middle = tuple(size // 2 for size in values.shape)
    changed[middle] += 1
    return changed


@pytest.mark.parametrize(
    "parameter", [{"topics": np.random.default_rng(0).random((40, 40))}, {"start": np.arange(2000) % 8}]
)
def test_arrays_are_told_apart_by_what_they_hold(X, path, parameter):
    ((name, values),) = parameter.items()
    other = inner_change(values)
    assert repr(values) == repr(other)
    rows = as_counts(X)
    ours, theirs = (identity(path, rows, **{name: one}) for one in (values, other))
    assert ours[name] != theirs[name]
    assert ours == identity(path, rows, **{name: values.tolist()})
    assert len(ours[name]) < 80


def test_the_topics_of_another_fit_are_not_taken_for_those_that_are_given(data, X, path):
    other = np.roll(data.topics, 1, axis=0)
    MMPCA(**OPTIONS, topics=data.topics).fit(X, checkpoint=path)
    with pytest.raises(StoreError, match=r"its topics is an array of shape \(3, 25\) with digest \w+, here it is an"):
        MMPCA(**OPTIONS, topics=other).fit(X, checkpoint=path)


def test_numbers_go_by_their_value_whatever_is_printed_of_them(X, path):
    rows = as_counts(X)
    plain = identity(path, rows, n_clusters=3, topic_prior=1.0, tol=1e-10, random_state=7)
    with np.printoptions(precision=2, threshold=5):
        typed = identity(
            path, rows, n_clusters=np.int64(3), topic_prior=1, tol=np.float64(1e-10), random_state=np.int32(7)
        )
    assert plain == typed == json.loads(json.dumps(typed))


def test_a_random_state_goes_by_its_state(X, path):
    rows = as_counts(X)
    seeded, again, other = (
        identity(path, rows, random_state=np.random.RandomState(seed))["random_state"] for seed in (0, 0, 1)
    )
    assert seeded == again != other
    MMPCA(**OPTIONS | {"random_state": np.random.RandomState(0)}, topics="random").fit(X, checkpoint=path)
    model = MMPCA(**OPTIONS | {"random_state": np.random.RandomState(0)}, topics="random").fit(X, checkpoint=path)
    assert model.converged_
    with pytest.raises(StoreError, match="its random_state is a RandomState with digest"):
        MMPCA(**OPTIONS | {"random_state": np.random.RandomState(1)}, topics="random").fit(X, checkpoint=path)


@pytest.mark.parametrize("algorithm", ["exact", "cvem", "vbem"])
def test_the_checkpoint_of_another_algorithm_is_refused(X, path, algorithm):
    MMPCA(**OPTIONS, topics="random").fit(X, checkpoint=path)
    with pytest.raises(StoreError, match=f"its algorithm is greedy, here it is {algorithm}"):
        MMPCA(**OPTIONS, topics="random", algorithm=algorithm).fit(X, checkpoint=path)


# --- which file ---------------------------------------------------------------------------------------------------


def test_a_file_of_an_earlier_schema_is_refused(X, path):
    np.savez(path, identity=np.array(json.dumps({"n_clusters": "4"})), beta=np.ones((3, 25)), labels=np.zeros(80))
    with pytest.raises(StoreError, match=r"by another version of mmpca: its schema is 1, here it is 2\. Remove it"):
        MMPCA(**OPTIONS).fit(X, checkpoint=path)


@pytest.mark.parametrize("arrays", [{"data": np.ones(3)}, None])
def test_a_file_that_is_no_checkpoint_is_refused(X, path, arrays):
    with path.open("wb") as file:
        np.save(file, np.ones(3)) if arrays is None else np.savez(file, **arrays)
    with pytest.raises(StoreError, match=r"fit.npz cannot be read: it is no file that a fit has kept, .* or remove it"):
        MMPCA(**OPTIONS).fit(X, checkpoint=path)


def test_a_folder_that_is_not_there_is_told_before_the_fit(X, tmp_path, monkeypatch):
    monkeypatch.setattr("mmpca.model.estimator.fit_lda_at", None)  # nobody gets that far
    with pytest.raises(FileNotFoundError, match=r"There is no such folder: make it.*nowhere"):
        MMPCA(**OPTIONS).fit(X, checkpoint=tmp_path / "nowhere" / "fit.npz")


# --- what is kept -------------------------------------------------------------------------------------------------


def test_a_resumed_fit_at_hand_goes_on_being_kept(path, monkeypatch):
    class Crash(Exception):
        pass

    def crash(number, progress):
        if progress.epoch == 2:
            raise Crash

    data = paper_design(n_samples=300, noise=0.3, random_state=0)
    monkeypatch.setattr(searching, "SAMPLED_ROWS", 150)
    labels = np.random.default_rng(0).permutation(np.arange(300) % 6)
    model = MMPCA(6, 4, topics=data.topics, start=labels, random_state=0)
    broken_off = [labels]
    for _ in range(2):
        with pytest.raises(Crash):
            model.fit(data.X, checkpoint=path, callback=crash)
        broken_off.append(kept(path))
    model.fit(data.X, checkpoint=path)
    assert [report.kind for report in model.starts_] == ["checkpoint"]
    assert all((one != other).any() for one, other in pairwise(broken_off))
    np.testing.assert_array_equal(kept(path), model.labels_)
    assert (kept(path) != broken_off[-1]).any()
