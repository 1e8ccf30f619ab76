"""Files appear complete or not at all, and a folder of finished parts belongs to one computation."""

import errno
import io
import json
import os
import pickle
import shutil
import socket
import stat
import tempfile
import threading
import tracemalloc
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from mmpca.errors import StoreError, StoreWarning
from mmpca.store import Store, check_folder, digest, first_difference, read_arrays, write_arrays, write_atomically

IDENTITY = {"seed": 0, "shape": (80, 25), "tol": 1e-10, "criterion": None}


# --- files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("old", [None, b"the old content"])
def test_a_failure_while_writing_keeps_the_old_file_and_leaves_no_other(tmp_path, error, old):
    path = tmp_path / "file"
    if old is not None:
        path.write_bytes(old)

    def write(file):
        file.write(b"half of the new")
        raise error

    with pytest.raises(error):
        write_atomically(path, write)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == ({} if old is None else {"file": old})


def test_a_written_file_replaces_the_old_one_with_the_usual_permissions(tmp_path):
    path, usual = tmp_path / "file", tmp_path / "usual"
    usual.touch()
    for content in (b"first", b"second"):
        write_atomically(path, lambda file, content=content: file.write(content))
        assert path.read_bytes() == content
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_link_is_followed_rather_than_replaced(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write_atomically(link, lambda file: file.write(b"new"))
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


@pytest.mark.skipif(os.name != "posix", reason="Windows has other permissions")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_an_existing_file_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "file"
    path.touch()
    path.chmod(mode)
    seen = []

    def write(file):
        seen.append(stat.S_IMODE(os.fstat(file.fileno()).st_mode))
        file.write(b"new")

    write_atomically(path, write)
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", mode)
    assert seen[0] & ~mode == 0  # at no time may others read what they may not read in the end


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root may give files away")
def test_an_existing_file_keeps_its_owner(tmp_path):
    path = tmp_path / "file"
    path.touch()
    os.chown(path, 12345, 54321)
    write_atomically(path, lambda file: file.write(b"new"))
    assert path.read_bytes() == b"new"
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 54321)


@pytest.fixture
def public_folder():
    """Return an empty folder that everybody may use; pytest's folders are private."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


@contextmanager
def ordinary_user():
    """Let this process act as another user if it is root's."""
    if (user := os.geteuid()) == 0:
        os.seteuid(12345)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root has files of another user")
def test_the_file_of_another_owner_is_written_into(public_folder):
    path = public_folder / "file"
    path.write_bytes(b"a longer old content")
    path.chmod(0o666)
    with ordinary_user():
        write_atomically(path, lambda file: file.write(b"new"))
    assert (path.read_bytes(), path.stat().st_uid) == (b"new", 0)
    assert list(public_folder.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="Windows has other permissions")
def test_a_read_only_file_is_refused_and_named(public_folder):
    path = public_folder / "file"
    path.write_bytes(b"old")
    path.chmod(0o444)
    with ordinary_user(), pytest.raises(PermissionError) as caught:
        write_atomically(path, lambda file: file.write(b"new"))
    assert (caught.value.filename, path.read_bytes()) == (str(path), b"old")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes in folders")
def test_a_pipe_receives_the_bytes_and_stays_a_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # waits for nobody, even if nothing is ever written
    try:
        write_arrays(path, {"bound": -3.5})
        received = os.read(reader, 2**16)
    finally:
        os.close(reader)
    assert path.is_fifo()
    with np.load(io.BytesIO(received)) as arrays:
        assert float(arrays["bound"]) == -3.5
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="Windows has no terminals that are files")
def test_a_device_is_written_into_and_stays_a_device(tmp_path):
    reader, device = os.openpty()  # unlike the null device, nothing can replace it in its folder
    link = tmp_path / "link"
    try:
        link.symlink_to(os.ttyname(device))
        write_atomically(link, lambda file: file.write(b"new"))
        assert os.read(reader, 100) == b"new"
        assert link.is_symlink()
        assert stat.S_ISCHR(link.stat().st_mode)
    finally:
        os.close(device)
        os.close(reader)


def test_a_real_error_of_the_disk_names_the_file_and_keeps_the_old_one(tmp_path, largest_file):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with largest_file(10), pytest.raises(OSError) as caught:  # noqa: PT011 - number and path are checked
        write_atomically(path, lambda file: file.write(b"new" * 100))
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(path))
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (b"old", [path])


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="Windows has no sockets in folders")
def test_a_socket_is_refused_and_stays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        with pytest.raises(OSError) as caught:  # noqa: PT011 - the path is checked
            write_atomically("socket", lambda file: file.write(b"new"))
        assert caught.value.filename == "socket"
        assert stat.S_ISSOCK(os.stat("socket").st_mode)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), OSError("3 of 9 written")])
def test_a_full_disk_is_an_error_with_the_path(tmp_path, error):
    def write(file):
        raise error

    with pytest.raises(OSError) as caught:  # noqa: PT011 - the path is checked
        write_atomically(tmp_path / "file", write)
    assert caught.value.filename == str(tmp_path / "file")
    assert str(tmp_path / "file") in str(caught.value)


def test_a_file_with_the_longest_possible_name_is_written(tmp_path):
    path = tmp_path / ("x" * 251 + ".csv")
    write_atomically(path, lambda file: file.write(b"new"))
    assert path.read_bytes() == b"new"


def test_a_missing_folder_is_named_by_the_error(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        check_folder(tmp_path / "nowhere" / "file")
    assert caught.value.filename == str(tmp_path / "nowhere")
    check_folder(tmp_path / "file")


def test_arrays_numbers_and_strings_survive_a_round_trip(tmp_path):
    path = tmp_path / "part.npz"
    write_arrays(path, {"labels": [0, 2, 1], "bound": -3.5, "kind": "kmeans", "empty": np.empty((0, 3))})
    arrays = read_arrays(path)
    assert arrays.keys() == {"labels", "bound", "kind", "empty"}
    assert arrays["labels"].tolist() == [0, 2, 1]
    assert (float(arrays["bound"]), str(arrays["kind"]), arrays["empty"].shape) == (-3.5, "kmeans", (0, 3))


def damage(path, kind):
    """Replace a file by one that is not what `write_arrays` wrote."""
    content = path.read_bytes()
    if kind == "pickled objects":
        np.savez(path, labels=np.array([{}], dtype=object))
    elif kind == "a bare array":
        with path.open("wb") as file:
            np.save(file, np.ones(3))
    else:
        path.write_bytes({"cut short": content[: len(content) // 2], "empty": b"", "text": b"bound: -3.5"}[kind])


DAMAGES = ["cut short", "empty", "text", "a bare array", "pickled objects"]


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_file_of_arrays_is_an_error(tmp_path, kind):
    path = tmp_path / "part.npz"
    write_arrays(path, {"bound": -3.5})
    damage(path, kind)
    with pytest.raises(ValueError):  # noqa: PT011 - from NumPy or from here
        read_arrays(path)


# --- identities -------------------------------------------------------------------------------------------------


def test_the_first_difference_is_found_whatever_the_order_and_on_both_sides():
    assert first_difference({"a": 1, "b": 2}, {"b": 2, "a": 1}) is None
    assert first_difference({"a": 1, "b": 2}, {"a": 1, "b": 3}) == "b"
    assert first_difference({"a": 1}, {"a": 1, "b": 3}) == "b"
    assert first_difference({"a": 1, "b": 3}, {"a": 1}) == "b"


def test_equal_identities_have_equal_digests_and_others_have_others():
    assert digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1})
    assert len({digest({"a": value}) for value in (1, 2, "1", None, 1.5)}) == 5


# --- stores -----------------------------------------------------------------------------------------------------


def opened(folder, identity=IDENTITY, kind="search", **options):
    store = Store(folder, kind)
    store.open(identity, **options)
    return store


@pytest.fixture
def store(tmp_path):
    """Return an open store with one part."""
    store = opened(tmp_path / "results")
    store.write("cell", {"bound": -3.5, "labels": [0, 1]})
    return store


def test_a_later_run_finds_what_was_finished(store):
    again = opened(store.folder, {**IDENTITY, "shape": [80, 25]})  # a tuple, in JSON
    part = again.read("cell")
    assert part.keys() == {"bound", "labels"}
    assert float(part["bound"]) == -3.5
    assert part["labels"].tolist() == [0, 1]
    assert again.read("another") is None


@pytest.mark.parametrize("changed", [{"seed": 1}, {"shape": (81, 25)}, {"criterion": "icl"}, {"more": 1}])
def test_the_folder_of_another_computation_is_an_error_with_its_path(store, changed):
    with pytest.raises(StoreError) as caught:
        opened(store.folder, IDENTITY | changed)
    assert caught.value.path == store.folder / "search.json"
    assert opened(store.folder).read("cell") is not None  # nothing was changed


def test_the_error_names_what_differs_or_explains_it(store):
    with pytest.raises(StoreError, match="seed"):
        opened(store.folder, IDENTITY | {"seed": 1}, explain={"shape": "the rows are others"})
    with pytest.raises(StoreError, match="the rows are others"):
        opened(store.folder, IDENTITY | {"shape": (9, 9)}, explain={"shape": "the rows are others"})


@pytest.mark.parametrize("content", [b"", b"{", b"[1, 2]", b"\xff\xfe", b"{}", b"[" * 100_000])
def test_a_damaged_identity_is_an_error_with_its_path(store, content):
    path = store.folder / "search.json"
    path.write_bytes(content)
    with pytest.raises(StoreError) as caught:
        opened(store.folder)
    assert caught.value.path == path


def test_a_damaged_identity_is_not_taken_for_another_computation(store):
    path = store.folder / "search.json"
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 4'))
    with pytest.raises(StoreError) as caught:
        opened(store.folder, explain={"seed": "another seed"})
    assert "another seed" not in str(caught.value)


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_part_counts_as_unfinished_and_can_be_written_again(store, kind):
    damage(store.folder / "cell.npz", kind)
    with pytest.warns(StoreWarning, match=r"cell\.npz"):
        assert store.read("cell") is None
    store.write("cell", {"bound": -2.0})
    assert float(store.read("cell")["bound"]) == -2.0


def test_every_damaged_byte_of_a_part_is_found_or_without_effect(store):
    path = store.folder / "cell.npz"
    content, sound = path.read_bytes(), store.read("cell")
    rng, n_found = np.random.default_rng(0), 0
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            part = store.read("cell")
        n_found += part is None
        assert [one.category for one in caught] == [StoreWarning] * (part is None)
        if part is not None:
            assert part.keys() == sound.keys()
            for name, array in part.items():
                np.testing.assert_array_equal(array, sound[name])
    assert n_found > len(content) / 2


def test_a_part_cannot_claim_more_memory_than_it_has_bytes(store):
    path = store.folder / "cell.npz"
    npy = b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
    for compression, content in ((zipfile.ZIP_STORED, npy.ljust(127) + b"\n"), (zipfile.ZIP_DEFLATED, b"0" * 10**8)):
        with zipfile.ZipFile(path, "w", compression) as archive:
            archive.writestr("bound.npy", content)
        tracemalloc.start()
        with pytest.warns(StoreWarning):
            assert store.read("cell") is None
        assert tracemalloc.get_traced_memory()[1] < 10e6
        tracemalloc.stop()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_place_of_a_part_does_not_block(store):
    os.mkfifo(store.folder / "pipe.npz")
    with pytest.warns(StoreWarning, match=r"pipe\.npz"):
        assert store.read("pipe") is None


def test_parts_of_another_identity_or_name_are_ignored_with_a_warning(store):
    shutil.copy(store.folder / "cell.npz", store.folder / "other.npz")
    with pytest.warns(StoreWarning, match=r"other\.npz"):
        assert store.read("other") is None
    (store.folder / "search.json").unlink()  # the folder was emptied, but for a part
    with pytest.warns(StoreWarning, match=r"cell\.npz"):
        assert opened(store.folder, IDENTITY | {"seed": 1}).read("cell") is None


def test_parts_outlive_a_damaged_identity_that_is_deleted(store):
    (store.folder / "search.json").unlink()
    assert float(opened(store.folder).read("cell")["bound"]) == -3.5


@pytest.mark.parametrize("can_link", [True, False])
def test_of_computations_that_start_together_in_a_fresh_folder_one_gets_it(tmp_path, monkeypatch, can_link):
    def no_link(source, target):
        raise OSError(errno.EPERM, "Operation not permitted")

    if not can_link:
        monkeypatch.setattr(os, "link", no_link)
    for attempt in range(20):
        barrier = threading.Barrier(4)

        def start(seed, folder=tmp_path / str(attempt), barrier=barrier):
            barrier.wait()
            try:
                opened(folder, IDENTITY | {"seed": seed}).write("cell", {"seed": seed})
            except StoreError:
                return None
            return seed

        with ThreadPoolExecutor(4) as pool:
            winners = [seed for seed in pool.map(start, [0, 1, 2, 3]) if seed is not None]
        (winner,) = winners
        assert int(opened(tmp_path / str(attempt), IDENTITY | {"seed": winner}).read("cell")["seed"]) == winner
        assert sorted(file.name for file in (tmp_path / str(attempt)).iterdir()) == ["cell.npz", "search.json"]


def test_threads_that_share_a_store_never_read_half_a_part(store):
    def work(number):
        for _ in range(30):
            store.write("shared", {"labels": np.full(5000, number)})
            labels = store.read("shared")["labels"]
            assert labels.shape == (5000,)
            assert (labels == labels[0]).all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert sorted(file.name for file in store.folder.iterdir()) == ["cell.npz", "search.json", "shared.npz"]


def test_stores_of_two_kinds_share_a_folder(store):
    other = opened(store.folder, {"seed": 1}, kind="topics")
    assert json.loads((store.folder / "topics.json").read_text())["seed"] == 1
    with pytest.warns(StoreWarning):
        assert other.read("cell") is None


def test_without_a_folder_nothing_is_kept():
    store = opened(None)
    store.write("cell", {"bound": -3.5})
    assert store.read("cell") is None


def test_a_folder_that_cannot_be_created_is_an_error_with_its_path(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError) as caught:
        opened(tmp_path / "file" / "results")
    assert caught.value.path == tmp_path / "file" / "results"


def test_a_pickled_store_reads_and_writes_the_same_folder_from_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    copy = pickle.loads(pickle.dumps(opened("results")))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    copy.write("cell", {"bound": -3.5})
    assert opened(tmp_path / "results").read("cell") is not None
