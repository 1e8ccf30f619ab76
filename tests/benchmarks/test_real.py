"""Labelled data sets are read as they lie in their folders."""

import gzip

import numpy as np
import pytest
from scipy import io, sparse

from real import data_folders, read, real_tasks


def write(folder, X, names):
    """Write a data set."""
    folder.mkdir()
    with gzip.open(folder / "counts.mtx.gz", "wb") as file:
        io.mmwrite(file, sparse.coo_array(X))
    (folder / "labels.csv").write_text("label\n" + "".join(f'"{name}"\n' for name in names))


@pytest.fixture
def path(tmp_path):
    write(tmp_path / "small", np.array([[1, 2, 0], [0, 0, 0], [3, 0, 1]]), ["b, or c", "a", "a"])
    write(tmp_path / "wide", np.ones((3, 6), dtype=int), ["x", "y", "z"])
    (tmp_path / "notes").mkdir()
    return tmp_path


def test_rows_without_counts_are_left_out_with_their_class(path):
    X, classes = read(path / "small")
    np.testing.assert_array_equal(X.toarray(), [[1, 2, 0], [3, 0, 1]])
    np.testing.assert_array_equal(classes, [1, 0])


def test_twice_as_many_topics_as_clusters_need_as_many_features(path):
    factors = {(task.name, task.factor) for task in real_tasks(path)}
    assert factors == {("small", 1), ("wide", 1), ("wide", 2)}


def test_large_data_sets_can_be_left_out(path):
    assert {task.name for task in real_tasks(path, max_rows=2)} == {"small"}


def test_every_task_has_a_file_of_its_own(path):
    tasks = real_tasks(path)
    assert len({task.key for task in tasks}) == len(tasks)


def test_a_folder_without_data_sets_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no data set"):
        data_folders(tmp_path)
