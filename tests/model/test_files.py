"""Model files: a round trip loses nothing, a crash harms nothing, and a damaged or malicious file is only an error."""

import hashlib
import io
import json
import os
import pickle
import subprocess
import sys
import tracemalloc
import warnings
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import mmpca
from mmpca import MMPCA
from mmpca.errors import ModelFileError
from mmpca.model import read_model
from mmpca.model.files import MAX_MANIFEST_BYTES, MAX_MEMBERS
from mmpca.simulate import sparse_topics

MANIFEST = "manifest.json"

# --- round trips ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def models(X, model):
    """Return models of every kind: arrays as parameters, names, square roots, soft assignments, NaN."""
    frame = pd.DataFrame(X, columns=[f"wörd {v}" for v in range(X.shape[1])])
    given = {"topics": sparse_topics(3, 25, random_state=0), "start": (np.arange(80) % 4).tolist()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "plain": model,
            "given": MMPCA(4, 3, **given, refit_topics=True, random_state=0).fit(X),
            "names": MMPCA(4, 3, topics="lda", n_init=1, random_state=0, n_jobs=2).fit(frame),
            "sqrt": MMPCA(np.int64(3), 2, topics="lda", n_init=1, stabilize="sqrt", random_state=0).fit(X),
            "vbem": MMPCA(4, 3, topics="lda", n_init=1, algorithm="vbem", random_state=0).fit(X),
            "one cluster for each row": MMPCA(3, 3, topics="lda", n_init=1, random_state=0).fit(X[:3]),
        }


@pytest.fixture
def path(tmp_path):
    return tmp_path / "clusters.mmpca"


def arrays_of(model):
    return {name: value for name, value in vars(model).items() if isinstance(value, np.ndarray) and name.endswith("_")}


def test_every_parameter_and_every_fitted_attribute_survives(models, path):
    for kind, model in models.items():
        model.save(path)
        loaded = mmpca.load(path)
        # Not saved: a reference to the rows, and simulated rows, which a loaded model draws again.
        saved = vars(model).keys() - {"_fitted_rows", "_outlier_cells"}
        assert vars(loaded).keys() == saved
        assert loaded.temperature_ == model.temperature_
        for name in saved:
            value = vars(model)[name]
            if name != "_temperature":  # estimated when it is first needed
                np.testing.assert_array_equal(getattr(loaded, name), value, err_msg=f"{kind}: {name}")
            if name.endswith("_"):
                assert type(getattr(loaded, name)) is type(value), name
                assert np.asarray(getattr(loaded, name)).dtype == np.asarray(value).dtype, name
        for name, array in arrays_of(model).items():
            assert array.flags.c_contiguous, name  # sums depend on the order in memory, and a file has only one
        assert loaded.starts_[0]._fields == model.starts_[0]._fields


SCRIPT = """
import sys, warnings
import numpy as np
import mmpca
warnings.simplefilter("ignore")
X = np.load(sys.argv[1])
for path in sys.argv[2:]:
    model = mmpca.load(path)
    drawn, labels = model.sample(9, random_state=3)
    np.savez(path + ".npz", labels=model.predict(X), probabilities=model.predict_proba(X), shares=model.transform(X),
        score=model.score(X), drawn=drawn.toarray(), drawn_labels=labels)
"""


def test_a_loaded_model_gives_the_same_bits_in_another_process(models, X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    paths = {kind: str(tmp_path / kind) for kind in models}
    for kind, model in models.items():
        model.save(paths[kind])
    subprocess.run([sys.executable, "-c", SCRIPT, tmp_path / "X.npy", *paths.values()], check=True)
    for kind, model in models.items():
        there = np.load(paths[kind] + ".npz")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # arrays without names
            drawn, labels = model.sample(9, random_state=3)
            here = {"labels": model.predict(X), "probabilities": model.predict_proba(X), "shares": model.transform(X)}
            here |= {"score": model.score(X), "drawn": drawn.toarray(), "drawn_labels": labels}
        for name, value in here.items():
            np.testing.assert_array_equal(there[name], value, err_msg=f"{kind}: {name}")


@pytest.mark.filterwarnings("ignore::mmpca.errors.OverdispersionWarning")
def test_a_loaded_model_can_be_fitted_again_with_the_same_result(models, X, path, same_fit):
    models["given"].save(path)
    same_fit(mmpca.load(path).fit(X), models["given"])


def test_a_file_from_the_first_release_is_read():
    file = read_model(Path(__file__).parent / "data" / "schema-1.mmpca")
    names = list("abcdéf")
    new = pd.DataFrame([[0, 2, 10, 9, 4, 5], [1, 13, 5, 3, 0, 8]], columns=names)
    assert file.text == {"vocabulary": names}
    assert file.model.bound_ == -890.8493140032992
    assert file.model.predict(new).tolist() == [1, 0]
    np.testing.assert_array_equal(file.model.refit_components_, file.model.components_)


def test_a_file_of_the_second_schema_is_read_and_has_automatic_names():
    model = mmpca.load(Path(__file__).parent / "data" / "schema-2.mmpca")
    assert model.labels_.tolist() == [1, 1, 0, 0]
    assert model.cluster_names_.tolist() == ["sun", "ham"]
    assert model.clusters_frame()["size"].tolist() == [2, 2]


def test_a_file_of_the_third_schema_is_read_and_has_no_edits():
    model = mmpca.load(Path(__file__).parent / "data" / "schema-3.mmpca")
    assert model.labels_.shape == (4,)
    assert model.cluster_names_[0] == "left"
    assert not hasattr(model, "edits_")
    fitted = [[9, 1, 0], [1, 9, 1], [8, 1, 0], [1, 8, 2]]
    assert ((model.outlier_scores(fitted) > 0) & (model.outlier_scores(fitted) <= 1)).all()


def test_names_of_clusters_and_topics_are_kept(X, path):
    model = MMPCA(4, 3, topics="lda", n_init=1, random_state=0).fit(X).rename({3: "rügby", 0: "水"}, {1: "ball games"})
    model.save(path)
    loaded = mmpca.load(path)
    assert loaded.cluster_names_.tolist() == model.cluster_names_.tolist()
    assert loaded.topic_names_.tolist() == model.topic_names_.tolist()
    assert loaded.rename({0: None}).cluster_names_[3] == "rügby"


def test_a_random_generator_is_not_kept(X, path):
    MMPCA(2, 2, topics="lda", n_init=1, random_state=np.random.RandomState(0)).fit(X).save(path)
    assert mmpca.load(path).random_state is None


def test_the_output_container_is_kept(X, path):
    MMPCA(2, 2, topics="lda", n_init=1, random_state=0).set_output(transform="pandas").fit(X).save(path)
    assert isinstance(mmpca.load(path).transform(X), pd.DataFrame)


def test_text_settings_and_versions_are_kept(model, path):
    text = {"vocabulary": ["a", "é", "水"], "ngram_range": [1, 2], "stop_words": None}
    model.save(path, text=text)
    file = read_model(path)
    assert file.text == text
    assert file.versions["mmpca"] == mmpca.__version__
    assert file.versions["numpy"] == np.__version__


def test_equal_models_give_equal_files(model, tmp_path):
    model.save(tmp_path / "one")
    mmpca.load(tmp_path / "one").save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_saving_through_a_link_replaces_its_target(model, tmp_path):
    target = tmp_path / "mödel with blanks"
    target.write_text("old")
    (tmp_path / "link").symlink_to(target)
    model.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    np.testing.assert_array_equal(mmpca.load(target).labels_, model.labels_)


# --- models that cannot be saved --------------------------------------------------------------------------------


def test_only_a_fitted_mmpca_can_be_saved(X, path):
    class Subclass(MMPCA):
        pass

    with pytest.raises(NotFittedError):
        MMPCA().save(path)
    with pytest.raises(TypeError):
        Subclass(2, 2, n_init=1, random_state=0).fit(X).save(path)
    assert not path.exists()


def test_a_model_that_could_not_be_loaded_is_not_saved(X, path):
    model = MMPCA(2, 2, topics="lda", n_init=1, random_state=0).fit(X)
    model.weights_ = np.array([0.5, np.nan])
    with pytest.raises(ModelFileError) as caught:
        model.save(path)
    assert caught.value.path == path
    assert not path.exists()


# --- crashes ----------------------------------------------------------------------------------------------------

KILLED = """
import sys, time, zipfile
import mmpca
model = mmpca.load(sys.argv[1])
write = zipfile.ZipFile.writestr
def slow(self, info, data):
    if "components" in info.filename:
        self.fp.flush()
        print("in the middle", flush=True)
        time.sleep(3600)
    write(self, info, data)
zipfile.ZipFile.writestr = slow
model.save(sys.argv[1])
"""


def test_a_process_killed_while_saving_leaves_the_old_file_intact(start_python, model, path):
    model.save(path)
    before = path.read_bytes()
    process = start_python("-c", KILLED, path)
    assert process.stdout.readline().strip() == "in the middle"
    (part,) = path.parent.glob(".*.part")
    assert part.stat().st_size > 0
    process.kill()
    process.wait()
    assert path.read_bytes() == before


def test_an_error_while_saving_leaves_the_old_file_and_nothing_else(model, path, monkeypatch):
    path.write_text("old")

    def full(descriptor):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        model.save(path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.read_text() == "old"


# --- damaged and malicious files: tools -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def members(model, tmp_path_factory):
    """Return the members of a sound file by name."""
    path = tmp_path_factory.mktemp("sound") / "model"
    model.save(path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pack(path, members, **options):
    """Write members as a zip file; a list of pairs may hold a name twice."""
    pairs = members.items() if isinstance(members, dict) else members
    with zipfile.ZipFile(path, "w", **options) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # repeated names
        for name, content in pairs:
            archive.writestr(name, content)


def npy(array, **options):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, **options)
    return buffer.getvalue()


def with_manifest(members, change):
    """Return the members with a manifest that was changed in place."""
    manifest = json.loads(members[MANIFEST])
    change(manifest)
    return members | {MANIFEST: json.dumps(manifest).encode()}


def with_array(members, name, array, **listing):
    """Return the members with another array, or the bytes of its member, and a listing that agrees unless given."""
    content = array if isinstance(array, bytes) else npy(array)
    entry = {"sha256": hashlib.sha256(content).hexdigest()}
    if not isinstance(array, bytes):
        entry |= {"shape": list(array.shape), "dtype": array.dtype.str}
    changed = with_manifest(members, lambda manifest: manifest["arrays"].setdefault(name, {}).update(entry | listing))
    return changed | {f"arrays/{name}.npy": content}


def set_in(*keys, value):
    """Return a change of one entry of the manifest, at any depth."""

    def change(manifest):
        for key in keys[:-1]:
            manifest = manifest[key]
        manifest[keys[-1]] = value

    return change


def assert_refused(path):
    """Assert that loading fails with the path, takes little memory and writes nothing; return the message."""
    before = sorted(path.parent.iterdir())
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError) as caught:
            mmpca.load(path)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()
    assert caught.value.path == path
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert sorted(path.parent.iterdir()) == before
    return str(caught.value)


def test_the_members_of_a_sound_file_pass(members, path, model):
    pack(path, with_array(with_manifest(members, lambda manifest: None), "weights_", model.weights_))
    np.testing.assert_array_equal(mmpca.load(path).weights_, model.weights_)


# --- damaged and malicious files: arrays ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "index", "value"),
    [
        ("components_", (0, 0), np.nan),
        ("components_", (0, slice(2)), [-0.5, 1.5]),
        ("components_", ..., 2.0),
        ("cluster_topics_", (0, 0), np.inf),
        ("weights_", ..., 0.5),
        ("labels_", 0, 4),
        ("labels_", 0, -1),
        ("cluster_topic_params_", (0, 0), 0),
        ("bound_history_", 0, -np.inf),
        ("cluster_overdispersion_", 0, -1),
        ("cluster_overdispersion_", 0, np.inf),
        ("cluster_counts_", (0, 0), 0.5),
        ("cluster_counts_", (0, 0), -1),
        ("cluster_counts_", (0, 0), np.inf),
    ],
)
def test_impossible_values_are_an_error(model, members, path, name, index, value):
    array = getattr(model, name).copy()
    array[index] = value
    pack(path, with_array(members, name, array))
    assert name in assert_refused(path)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("weights_", np.full(5, 0.2)),
        ("components_", np.full((3, 24), 1 / 24)),
        ("labels_", np.zeros((80, 1), dtype="<i4")),
        ("labels_", np.zeros(0, dtype="<i4")),
        ("labels_", np.zeros(80, dtype="<i8")),
        ("weights_", np.full(4, 0.25, dtype="<f4")),
        ("weights_", np.full(4, 0.25, dtype=">f8")),
        ("weights_", np.array(["a"] * 4)),
        ("weights_", np.zeros(4, dtype=[("a", "<f8")])),
        ("extra", np.zeros(4)),
        ("../../../outside", np.zeros(4)),
        ("parameter-tol", np.zeros(4)),
        ("parameter-topics", np.full((2, 2), 0.6)),
    ],
)
def test_an_array_of_another_shape_dtype_or_name_is_an_error(members, path, name, array):
    pack(path, with_array(members, name, array))
    assert_refused(path)


HEADER = b"\x93NUMPY\x01\x00\x76\x00"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY\x03\x00",
        HEADER + b"{'descr': '<f8', 'fortran_order': False, 'shape': (4,), }",
        HEADER + b"(" * 118,
        HEADER + b"__import__('os').system('true')".ljust(118),
        npy(np.full(4, 0.25))[:-1],
        npy(np.full(4, 0.25)) + b"\0",
        npy(np.full(5, 0.2)),
        npy(np.asfortranarray(np.full((2, 2), 0.25))),
    ],
    ids=["empty", "version", "short header", "deep header", "code", "short", "long", "shape", "order"],
)
def test_an_array_that_contradicts_the_manifest_is_an_error(members, path, content):
    pack(path, with_array(members, "weights_", content))
    assert "weights_" in assert_refused(path)


@pytest.mark.parametrize("shape", [[2**62, 4], [2**32, 2**32], [2**70], [-4], [4.0], ["4"], True, None, "4", [[4]]])
def test_an_absurd_shape_is_an_error(members, path, shape):
    sizes = tuple(shape) if isinstance(shape, list) and all(isinstance(size, int) for size in shape) else (4,)
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {sizes}, }}".encode().ljust(117) + b"\n"
    pack(path, with_array(members, "weights_", HEADER + text + bytes(32), shape=shape))
    assert "weights_" in assert_refused(path)


def test_a_wrong_checksum_is_an_error(members, path):
    pack(path, members | {"arrays/weights_.npy": npy(np.full(4, 0.25))})
    assert "weights_" in assert_refused(path)


class Touch:
    """Create a file when unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("dtype", ["|O", "<f8"])
@pytest.mark.parametrize("pickled", [lambda one: npy(np.array([one] * 4), allow_pickle=True), pickle.dumps])
def test_a_pickled_array_is_not_unpickled(members, path, tmp_path, dtype, pickled):
    witness = tmp_path / "witness"
    pack(path, with_array(members, "weights_", pickled(Touch(witness)), shape=[4], dtype=dtype))
    assert_refused(path)
    assert not witness.exists()


# --- damaged and malicious files: the manifest ------------------------------------------------------------------

BAD_ENTRIES = {
    "format": ["other", None],
    "schema": ["1", True, 0, -5, 7],
    "hook": ["os.system"],
    "class": ["Popen"],
    "arrays": [[], {}],
    "arrays/weights_": [[]],
    "parameters": [[]],
    "parameters/hook": [1],
    "parameters/n_clusters": [0],
    "parameters/topics": [{"a": []}, None],
    "parameters/start": [[[[]], 1]],
    "parameters/random_state": [2**32, "0"],
    "fitted": [None, {}],
    "fitted/bound_": ["-1", True],
    "fitted/n_epochs_": [2**63],
    "fitted/n_features_in_": [24],
    "fitted/converged_": [1],
    "fitted/overdispersion_": [-1.0],
    "fitted/_mean_length": [0],
    "starts": [[], [{"kind": "a"}]],
    "feature_names": [["a"], list(range(25))],
    "names": [None, {}, {"clusters": {}, "topics": []}],
    "names/clusters": [{"4": "a"}, {"-1": "a"}, {"one": "a"}, {"0": 1}, {"0": ""}],
    "output": ["os", []],
    "text": [[]],
    "versions": [[]],
    "versions/mmpca": [1],
}


@pytest.mark.parametrize(
    ("entry", "value"), [(entry, value) for entry, values in BAD_ENTRIES.items() for value in values]
)
def test_an_invalid_entry_of_the_manifest_is_an_error(members, path, entry, value):
    pack(path, with_manifest(members, set_in(*entry.split("/"), value=value)))
    assert_refused(path)


@pytest.mark.parametrize("entry", ["format", "class", "text", "arrays"])
def test_a_missing_entry_of_the_manifest_is_an_error(members, path, entry):
    pack(path, with_manifest(members, lambda manifest: manifest.pop(entry)))
    assert_refused(path)


def leaves(value, keys=()):
    """Yield the keys that lead to every value in a manifest, containers included."""
    if keys:
        yield keys
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from leaves(child, (*keys, key))


@pytest.mark.parametrize("odd", [None, True, -1, 10**30, 0.5, "x", [[]], {"a": {}}])
def test_an_odd_value_anywhere_in_the_manifest_is_an_error_or_harmless(model, members, path, X, odd):
    for keys in leaves(json.loads(members[MANIFEST])):
        pack(path, with_manifest(members, set_in(*keys, value=odd)))
        try:
            loaded = mmpca.load(path)
        except ModelFileError:
            continue
        np.testing.assert_array_equal(loaded.components_, model.components_)
        assert loaded.predict(X[:3]).shape == (3,)


@pytest.mark.parametrize(
    ("keys", "values"),
    [
        (("parameters", "n_clusters"), [1, 3, 5, 50_000, 10**9]),
        (("parameters", "n_topics"), [1, 2, 4, 10**9]),
        (("fitted", "n_epochs_"), [0, 10**9]),
        (("fitted", "n_features_in_"), [24, 26, 10**9]),
    ],
)
def test_a_number_that_does_not_fit_the_arrays_is_an_error(members, path, keys, values):
    for value in values:
        pack(path, with_manifest(members, set_in(*keys, value=value)))
        assert keys[-1] in assert_refused(path)


def test_a_number_of_thousands_of_digits_is_an_error_wherever_it_is(members, path):
    for keys in leaves(json.loads(members[MANIFEST])):
        pack(path, with_manifest(members, set_in(*keys, value=10**3999)))
        assert_refused(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe\x00",
        b"[" * 1_000_000,
        b'{"a":' * 1_000_000,
        b'{"schema": NaN}',
        b'{"schema": -Infinity}',
        b'{"schema": 1, "schema": 2}',
        b'{"schema": ' + b"9" * 5000 + b"}",
    ],
    ids=[
        "empty",
        "cut",
        "list",
        "not text",
        "deep lists",
        "deep objects",
        "nan",
        "infinity",
        "repeated key",
        "long number",
    ],
)
def test_a_manifest_that_is_not_plain_json_is_an_error(members, path, content):
    pack(path, members | {MANIFEST: content})
    assert MANIFEST in assert_refused(path)


def test_a_number_that_overflows_is_an_error(members, path):
    changed = with_manifest(members, set_in("fitted", "icl_", value=np.inf))
    pack(path, changed | {MANIFEST: changed[MANIFEST].replace(b"Infinity", b"1e999")})
    assert "icl_" in assert_refused(path)


def test_a_huge_manifest_is_not_read(members, path):
    pack(path, members | {MANIFEST: members[MANIFEST].ljust(MAX_MANIFEST_BYTES + 1)})
    assert_refused(path)


def test_a_newer_schema_names_the_version_to_install_if_it_looks_like_one(members, path):
    def newer(manifest, writer):
        manifest |= {"schema": 7, "news": []}
        manifest["versions"]["mmpca"] = writer

    pack(path, with_manifest(members, partial(newer, writer="3.2.1")) | {"arrays/news.zstd": b""})
    assert "mmpca>=3.2.1" in assert_refused(path)
    pack(path, with_manifest(members, partial(newer, writer="1'; rm -rf")))
    assert "rm -rf" not in assert_refused(path)


# --- damaged and malicious files: the archive -------------------------------------------------------------------

UNLISTED = [
    "../../outside.npy",
    "/tmp/outside.npy",
    "arrays/../../outside.npy",
    "arrays/extra.npy",
    "code.py",
    "arrays/",
]


@pytest.mark.parametrize("name", [*UNLISTED, "C:\\a", "a\nb"])
def test_a_member_that_the_manifest_does_not_list_is_an_error(members, path, name):
    pack(path, members | {name: b"content"})
    assert_refused(path)


@pytest.mark.parametrize("name", [MANIFEST, "arrays/weights_.npy"])
def test_a_missing_or_repeated_member_is_an_error(members, path, name):
    pack(path, {key: content for key, content in members.items() if key != name})
    assert name in assert_refused(path)
    pack(path, [*members.items(), (name, members[name])])
    assert_refused(path)


def test_many_members_are_an_error(members, path):
    pack(path, members | {f"arrays/{number}.npy": b"" for number in range(MAX_MEMBERS)})
    assert_refused(path)


def test_a_zip_bomb_is_not_unpacked(members, path):
    pack(path, with_array(members, "components_", bytes(60_000_000)), compression=zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 1e6
    assert_refused(path)


def test_members_that_claim_more_bytes_than_the_file_has_are_an_error(members, path):
    pack(path, members | {"arrays/a.npy": bytes(100_000)})
    content = bytearray(path.read_bytes())
    entry = content.index(b"PK\x01\x02")  # first entry of the directory: compressed and full size of the manifest
    content[entry + 20 : entry + 28] = (2**31 - 1).to_bytes(4, "little") * 2
    path.write_bytes(content)
    assert_refused(path)


@pytest.mark.parametrize(
    "content", [b"", b"PK", b"not a zip", bytes(1000), b"PK\x05\x06" + bytes(18), pickle.dumps({"a": 1})]
)
def test_a_file_that_is_not_a_model_is_an_error(path, content):
    path.write_bytes(content)
    assert_refused(path)


def test_a_truncated_file_is_an_error(members, path):
    pack(path, members)
    content = path.read_bytes()
    for length in range(0, len(content) - 1, max(1, len(content) // 60)):
        path.write_bytes(content[:length])
        with pytest.raises(ModelFileError):
            mmpca.load(path)


def test_a_damaged_byte_is_an_error_or_without_effect(model, members, path):
    pack(path, members)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    n_errors = 0
    for position in rng.integers(len(content), size=200):
        damaged = bytearray(content)
        damaged[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            loaded = mmpca.load(path)
        except ModelFileError:
            n_errors += 1
        else:
            for name, array in arrays_of(model).items():
                np.testing.assert_array_equal(getattr(loaded, name), array)
    assert n_errors > 150


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs device files")
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "/dev/null", "/dev/full"])
def test_a_link_to_a_device_is_an_error(path, device):
    path.symlink_to(device)
    assert_refused(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_an_error_and_does_not_block(path):
    os.mkfifo(path)
    assert_refused(path)


def test_a_missing_file_is_the_usual_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        mmpca.load(tmp_path / "nothing")
