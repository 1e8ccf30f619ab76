"""A fit resumes from its own checkpoint, and from no other."""

import json
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

from mmpca import MMPCA
from mmpca.backend import SERIAL, LocalRows
from mmpca.counts import Counts, as_counts
from mmpca.errors import InterruptedSearchWarning, StoreError
from mmpca.model.checkpoints import Checkpoint, row_digest
from mmpca.simulate import paper_design
from mmpca.store import read_arrays, write_arrays

OPTIONS = {"n_clusters": 4, "n_topics": 3, "n_init": 1, "random_state": 0}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.npz"


def saved(path, name="labels"):
    """Return an array of a checkpoint."""
    with np.load(path) as file:
        return file[name]


# --- rows ---------------------------------------------------------------------------------------------------------


def digest(X, first=0):
    counts = as_counts(X, empty_rows="allow")
    rows = np.arange(counts.n_rows)
    return row_digest(counts, rows, first + rows, SERIAL)


@pytest.mark.parametrize("cuts", [[1], [40], [7, 8, 50]])
def test_the_digest_does_not_depend_on_how_the_rows_are_divided(X, cuts):
    parts = [digest(part, first) for part, first in zip(np.split(X, cuts), [0, *cuts], strict=True)]
    for order in (parts, parts[::-1]):
        np.testing.assert_array_equal(np.sum(order, axis=0), digest(X))


def swapped(X, i, j, columns=slice(None)):
    X = X.copy()
    X[[i, j], columns] = X[[j, i], columns]
    return X


def test_the_digest_depends_on_every_count_and_its_place(X):
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


def test_the_digest_copies_no_counts():
    n_rows, n_entries = 40_000, 100
    indices = np.tile(np.arange(n_entries, dtype=np.int32), n_rows)
    counts = Counts(np.arange(n_rows + 1) * n_entries, indices, np.ones_like(indices), n_entries)
    rows = np.arange(n_rows)
    tracemalloc.start()
    row_digest(counts, rows, rows, SERIAL)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < counts.data.nbytes / 2


def assert_belongs_to_another_fit(model, X, path, name):
    """Assert that a fit does not resume from a checkpoint because of one value, and leaves it unchanged."""
    before = path.read_bytes()
    with pytest.raises(StoreError, match=rf"\b{name}\b") as caught:
        model.fit(X, checkpoint=path)
    assert caught.value.path == path
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("other", "name"),
    [
        (lambda X: X[::-1], "rows"),
        (lambda X: swapped(X, 0, 79), "rows"),
        (lambda X: X[:-1], "n_rows"),
        (lambda X: np.column_stack([X, np.zeros(80, int)]), "n_features"),
    ],
)
def test_the_checkpoint_of_other_rows_is_an_error(X, path, other, name):
    MMPCA(**OPTIONS, topics="random").fit(X, checkpoint=path)
    assert_belongs_to_another_fit(MMPCA(**OPTIONS, topics="random"), other(X), path, name)


# --- parameters ---------------------------------------------------------------------------------------------------


def identity(path, rows, **parameters):
    return Checkpoint.of_fit(path, MMPCA(**parameters).get_params(deep=False), LocalRows(rows)).identity


def inner_change(values):
    """Return an array that differs only where NumPy does not print it."""
    changed = values.copy()
    middle = tuple(size // 2 for size in values.shape)
    changed[middle] += 1
    return changed


@pytest.mark.parametrize(
    "parameter", [{"topics": np.random.default_rng(0).random((40, 40))}, {"start": np.arange(2000) % 8}]
)
def test_arrays_are_identified_by_their_contents(X, path, parameter):
    ((name, values),) = parameter.items()
    other = inner_change(values)
    assert repr(values) == repr(other)
    rows = as_counts(X)
    ours, theirs = (identity(path, rows, **{name: one}) for one in (values, other))
    assert ours[name] != theirs[name]
    assert ours == identity(path, rows, **{name: values.tolist()})
    assert len(ours[name]) < 80


def test_the_checkpoint_of_other_given_topics_is_an_error(data, X, path):
    MMPCA(**OPTIONS, topics=data.topics).fit(X, checkpoint=path)
    other = np.roll(data.topics, 1, axis=0)
    assert_belongs_to_another_fit(MMPCA(**OPTIONS, topics=other), X, path, "topics")


def test_numbers_are_identified_by_their_value_not_by_how_they_are_printed(X, path):
    rows = as_counts(X)
    plain = identity(path, rows, n_clusters=3, topic_prior=1.0, tol=1e-10, random_state=7)
    with np.printoptions(precision=2, threshold=5):
        typed = identity(
            path, rows, n_clusters=np.int64(3), topic_prior=1, tol=np.float64(1e-10), random_state=np.int32(7)
        )
    assert plain == typed == json.loads(json.dumps(typed))


def test_a_random_state_is_identified_by_its_state(X, path):
    rows = as_counts(X)
    seeded, again, other = (
        identity(path, rows, random_state=np.random.RandomState(seed))["random_state"] for seed in (0, 0, 1)
    )
    assert seeded == again != other
    MMPCA(**OPTIONS | {"random_state": np.random.RandomState(0)}, topics="random").fit(X, checkpoint=path)
    model = MMPCA(**OPTIONS | {"random_state": np.random.RandomState(0)}, topics="random").fit(X, checkpoint=path)
    assert model.converged_
    other = MMPCA(**OPTIONS | {"random_state": np.random.RandomState(1)}, topics="random")
    assert_belongs_to_another_fit(other, X, path, "random_state")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_clusters", 3), ("n_topics", 2), ("topics", "lda"), ("topic_prior", 2.0), ("start", "random"),
        ("n_init", 2), ("algorithm", "exact"), ("algorithm", "cvem"), ("algorithm", "vbem"), ("stabilize", "sqrt"),
        ("tol", 1e-8), ("random_state", 1),
    ],
)  # fmt: skip
def test_the_checkpoint_of_other_parameters_is_an_error(X, path, name, value):
    options = {"topics": "random"} | OPTIONS
    MMPCA(**options).fit(X, checkpoint=path)
    # Square roots are other rows as well.
    assert_belongs_to_another_fit(MMPCA(**options | {name: value}), X, path, name)


@pytest.mark.parametrize(("name", "value"), [("n_jobs", 2), ("verbose", 1), ("max_epochs", 5), ("refit_topics", False)])
def test_a_fit_resumes_with_other_parameters_that_do_not_decide_the_topics(data, X, path, name, value):
    options = {"topics": data.topics} | OPTIONS
    MMPCA(**options).fit(X, checkpoint=path)
    assert MMPCA(**options | {name: value}).fit(X, checkpoint=path).labels_.shape == (80,)


# --- files --------------------------------------------------------------------------------------------------------


def as_first_schema(path):
    np.savez(path, identity=np.array(json.dumps({"n_clusters": "4"})), beta=np.ones((3, 25)), labels=np.zeros(80))


def as_bare_array(path):
    with path.open("wb") as file:
        np.save(file, np.ones(3))


DAMAGES = {
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:200]),
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("labels: 0 1 1"),
    "other arrays": lambda path: np.savez(path, data=np.ones(3)),
    "a bare array": as_bare_array,
    "the first schema": as_first_schema,
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_file_that_is_no_checkpoint_is_an_error_with_its_path(X, path, damage):
    MMPCA(**OPTIONS, topics="random").fit(X, checkpoint=path)
    damage(path)
    with pytest.raises(StoreError) as caught:
        MMPCA(**OPTIONS, topics="random").fit(X, checkpoint=path)
    assert caught.value.path == path


def change(path, **changes):
    """Replace arrays of a checkpoint, without damage to the file itself."""
    arrays = read_arrays(path)
    write_arrays(path, arrays | {name: new(arrays[name]) for name, new in changes.items()})


def zero_for(v):
    def new(beta):
        beta[:, v] = 0
        return beta / beta.sum(axis=1, keepdims=True)

    return new


IMPOSSIBLE = {
    "topics times 100": {"beta": lambda beta: 100 * beta},
    "four topics for three": {"beta": lambda beta: np.vstack([beta, beta[:1]])},
    "topics that are not numbers": {"beta": lambda beta: np.full_like(beta, np.nan)},
    "negative topics": {"beta": lambda beta: 2 * beta - beta[::-1]},
    "topics in single precision": {"beta": lambda beta: beta.astype(np.float32)},
    "a feature without a topic": {"beta": zero_for(2)},
    "all labels 0": {"labels": np.zeros_like},
    "labels of more clusters": {"labels": lambda labels: labels + 1},
    "negative labels": {"labels": lambda labels: labels - 1},
    "labels that are not whole": {"labels": lambda labels: labels.astype(float)},
    "labels of other rows": {"labels": lambda labels: labels[1:]},
    "a number for labels": {"labels": lambda labels: labels[0]},
}


@pytest.mark.parametrize("changes", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_impossible_contents_are_an_error_with_the_path(X, path, changes):
    fit_sampled(X, path)
    sound = path.read_bytes()
    change(path, **{name: lambda array: array for name in changes})
    fit_sampled(X, path)  # the change itself does no harm
    path.write_bytes(sound)
    change(path, **changes)
    with pytest.raises(StoreError) as caught:
        fit_sampled(X, path)
    assert caught.value.path == path


def test_every_damaged_byte_is_an_error_or_without_effect(X, path):
    rows = LocalRows(as_counts(X))
    fit_sampled(X, path)
    content, parameters = path.read_bytes(), MMPCA(**OPTIONS | {"topics": "lda"}).get_params(deep=False)
    sound = Checkpoint.of_fit(path, parameters, rows)
    rng, n_errors = np.random.default_rng(0), 0
    for position in rng.choice(len(content), 600, replace=False):
        damaged = bytearray(content)
        damaged[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            read = Checkpoint.of_fit(path, parameters, rows)
        except StoreError:
            n_errors += 1
            continue
        np.testing.assert_array_equal(read.beta, sound.beta)
        np.testing.assert_array_equal(read.labels, sound.labels)
    assert n_errors > 400


def test_a_missing_folder_is_an_error_before_the_fit_begins(X, tmp_path):
    stages = []
    with pytest.raises(FileNotFoundError) as caught:
        MMPCA(**OPTIONS).fit(X, checkpoint=tmp_path / "nowhere" / "fit.npz", callback=stages.append)
    assert caught.value.filename == str(tmp_path / "nowhere")
    assert stages == []


# --- resuming -----------------------------------------------------------------------------------------------------


class Crash(Exception):
    pass


def test_a_fit_resumes_from_its_topics_and_finds_the_same(X, path, same_fit):
    def crash(progress):
        if progress.stage == "starts":
            raise Crash

    with pytest.raises(Crash):
        MMPCA(**OPTIONS).fit(X, checkpoint=path, callback=crash)
    assert saved(path, "beta").shape == (3, 25)
    assert saved(path).size == 0
    stages = []
    resumed = MMPCA(**OPTIONS).fit(X, checkpoint=path, callback=lambda now: stages.append(now.stage))
    assert "topics" not in stages
    same_fit(resumed, MMPCA(**OPTIONS).fit(X))


def test_topics_that_were_interrupted_are_not_kept(X, path):
    with pytest.warns(InterruptedSearchWarning):
        fit_sampled(X, path, callback=lambda now: now.stage == "topics")
    assert not path.exists()


def fit_sampled(X, path, *, sample_size=40, callback=None, **parameters):
    """Fit with a sample of the rows, as is done with many rows; only then labels are kept."""
    model = MMPCA(**OPTIONS | {"topics": "lda"} | parameters)
    backend, attributes = LocalRows(as_counts(X)), {"n_features_in_": X.shape[1]}
    return model.fit_rows(backend, attributes=attributes, callback=callback, checkpoint=path, sample_size=sample_size)


def test_a_resumed_fit_keeps_its_labels_after_each_epoch(path):
    def crash(progress):
        if progress.epoch == 2:
            raise Crash

    data = paper_design(n_samples=300, noise=0.3, random_state=0)
    labels = np.random.default_rng(0).permutation(np.arange(300) % 6)
    options = {"n_clusters": 6, "n_topics": 4, "topics": data.topics, "start": labels, "sample_size": 150}
    after_crashes = [labels]
    for _ in range(2):
        with pytest.raises(Crash):
            fit_sampled(data.X, path, callback=crash, **options)
        after_crashes.append(saved(path))
    model = fit_sampled(data.X, path, **options)
    assert [report.kind for report in model.starts_] == ["checkpoint"]
    assert model.converged_
    assert all((one != other).any() for one, other in pairwise([*after_crashes, model.labels_]))
    np.testing.assert_array_equal(saved(path), model.labels_)
