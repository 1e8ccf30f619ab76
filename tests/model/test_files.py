"""Model files: nothing is lost on the way, a crash harms nothing, and a hostile file gets an error and no more."""

import hashlib
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import tracemalloc
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import mmpca
from mmpca import MMPCA
from mmpca.errors import ModelFileError
from mmpca.model import files, read_model, schema
from mmpca.simulate import sparse_topics

# --- a round trip -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def models(X, model):
    """Return models of every kind: arrays as parameters, names, square roots, soft assignments, NaN."""
    frame = pd.DataFrame(X, columns=[f"wörd {v}" for v in range(X.shape[1])])
    labels = np.arange(80) % 4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "plain": model,
            "given": MMPCA(
                4,
                3,
                topics=sparse_topics(3, 25, random_state=0),
                start=labels.tolist(),
                refit_topics=False,
                random_state=0,
            ).fit(X),
            "names": MMPCA(4, 3, n_init=1, random_state=0, n_jobs=2).fit(frame),
            "sqrt": MMPCA(np.int64(3), 2, n_init=1, stabilize="sqrt", random_state=0).fit(X),
            "vbem": MMPCA(4, 3, n_init=1, algorithm="vbem", random_state=0).fit(X),
            "one cluster for each row": MMPCA(3, 3, n_init=1, random_state=0).fit(X[:3]),
        }


KINDS = ["plain", "given", "names", "sqrt", "vbem", "one cluster for each row"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "clusters.mmpca"


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_and_every_fitted_attribute_survives(models, kind, path):
    model = models[kind]
    model.save(path)
    again = mmpca.load(path)
    assert vars(again).keys() == vars(model).keys()
    for name, value in vars(model).items():
        np.testing.assert_array_equal(getattr(again, name), value, err_msg=name)
        if name.endswith("_"):
            assert type(getattr(again, name)) is type(value), name
            assert np.asarray(getattr(again, name)).dtype == np.asarray(value).dtype, name
    assert again.starts_[0]._fields == model.starts_[0]._fields


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_keep_the_order_in_memory_that_sums_depend_on(models, kind, path):
    model = models[kind]
    for name in schema.ARRAYS:
        assert getattr(model, name).flags.c_contiguous, name


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


def test_a_loaded_model_answers_bit_for_bit_as_before_in_another_process(models, X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    paths = {kind: str(tmp_path / kind) for kind in models}
    for kind, model in models.items():
        model.save(paths[kind])
    subprocess.run([sys.executable, "-c", SCRIPT, tmp_path / "X.npy", *paths.values()], check=True, timeout=120)
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


def test_a_generator_of_random_numbers_is_not_kept(X, path):
    MMPCA(2, 2, n_init=1, random_state=np.random.RandomState(0)).fit(X).save(path)
    assert mmpca.load(path).random_state is None


def test_the_kind_of_output_is_kept(X, path):
    MMPCA(2, 2, n_init=1, random_state=0).set_output(transform="pandas").fit(X).save(path)
    assert isinstance(mmpca.load(path).transform(X), pd.DataFrame)


def test_settings_of_texts_and_versions_are_kept(model, path):
    text = {"vocabulary": ["a", "é", "水"], "ngram_range": [1, 2], "stop_words": None}
    model.save(path, text=text)
    contents = read_model(path)
    assert contents.text == text
    assert contents.versions["mmpca"] == mmpca.__version__
    assert contents.versions["numpy"] == np.__version__


def test_equal_models_give_equal_files(model, tmp_path):
    model.save(tmp_path / "one")
    mmpca.load(tmp_path / "one").save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_link_stays_a_link_and_an_odd_name_is_a_name(model, tmp_path):
    target = tmp_path / "mödel with blanks"
    target.write_text("old")
    (tmp_path / "link").symlink_to(target)
    model.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    np.testing.assert_array_equal(mmpca.load(target).labels_, model.labels_)


# --- what cannot be saved ---------------------------------------------------------------------------------------


def test_a_model_that_is_not_fitted_cannot_be_saved(path):
    with pytest.raises(NotFittedError):
        MMPCA().save(path)
    assert not path.exists()


def test_a_subclass_cannot_be_saved(X, path):
    class Other(MMPCA):
        pass

    with pytest.raises(TypeError, match="Only MMPCA itself can be saved, but this is a Other"):
        Other(2, 2, n_init=1, random_state=0).fit(X).save(path)


def test_a_model_that_could_not_be_loaded_is_not_saved(X, path):
    model = MMPCA(2, 2, n_init=1, random_state=0).fit(X)
    model.weights_ = np.array([0.5, np.nan])
    with pytest.raises(ModelFileError, match="weights_ holds values that are missing"):
        model.save(path)
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
        time.sleep(60)
    write(self, info, data)
zipfile.ZipFile.writestr = slow
model.save(sys.argv[1])
"""


def test_a_process_killed_while_it_saves_leaves_the_old_file_intact(model, path):
    model.save(path)
    before = path.read_bytes()
    process = subprocess.Popen([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline().strip() == "in the middle"
        (part,) = path.parent.glob(".*.part")
        assert part.stat().st_size > 0
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    assert path.read_bytes() == before
    np.testing.assert_array_equal(mmpca.load(path).labels_, model.labels_)


def test_an_error_while_saving_leaves_the_old_file_and_nothing_else(model, path, monkeypatch):
    path.write_text("old")

    def full(descriptor):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        model.save(path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.read_text() == "old"


# --- hostile files ----------------------------------------------------------------------------------------------


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
        warnings.simplefilter("ignore")  # duplicate names
        for name, content in pairs:
            archive.writestr(name, content)


def npy(array, **options):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, **options)
    return buffer.getvalue()


def with_manifest(members, change):
    """Return the members with a changed manifest."""
    manifest = json.loads(members["manifest.json"])
    changed = change(manifest)
    return members | {"manifest.json": json.dumps(manifest if changed is None else changed).encode()}


def with_array(members, name, array, **listing):
    """Return the members with another array, listed as it is but for what is given."""
    content = array if isinstance(array, bytes) else npy(array)
    entry = {"sha256": hashlib.sha256(content).hexdigest()}
    if not isinstance(array, bytes):
        entry |= {"shape": list(array.shape), "dtype": array.dtype.str}
    changed = with_manifest(members, lambda manifest: manifest["arrays"].setdefault(name, {}).update(entry | listing))
    return changed | {f"arrays/{name}.npy": content}


def set_in(*keys, value):
    """Return a change of one entry of the manifest, however deep."""

    def change(manifest):
        for key in keys[:-1]:
            manifest = manifest[key]
        manifest[keys[-1]] = value

    return change


def refusal(path):
    """Return the message with which a file is refused, which takes little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError) as caught:
            mmpca.load(path)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()
    assert str(path) in str(caught.value)
    return str(caught.value)


def altered(model, name, change):
    """Return a copy of an array of the model after a change in place."""
    array = getattr(model, name).copy()
    change(array)
    return array


BAD_ARRAYS = {
    "missing value": (
        "components_",
        lambda a: a.__setitem__((0, 0), np.nan),
        "components_ holds values that are missing",
    ),
    "infinite value": ("cluster_topics_", lambda a: a.__setitem__((0, 0), np.inf), "missing or infinite"),
    "negative probability": (
        "components_",
        lambda a: a.__setitem__((0, slice(2)), [-0.5, 1.5]),
        "negative probabilities",
    ),
    "not a distribution": ("components_", lambda a: a.__imul__(2), "do not sum to one"),
    "weights beyond one": (
        "weights_",
        lambda a: a.__iadd__(0.1),
        "weights_ holds probabilities that do not sum to one",
    ),
    "label out of range": ("labels_", lambda a: a.__setitem__(0, 4), "labels_ holds labels outside of 0 to 3"),
    "negative label": ("labels_", lambda a: a.__setitem__(0, -1), "labels outside of 0 to 3"),
    "gamma of zero": ("cluster_topic_params_", lambda a: a.__setitem__((0, 0), 0), "not positive"),
    "infinite bound": ("bound_history_", lambda a: a.__setitem__(0, -np.inf), "bound_history_ holds values"),
    "negative variance": ("cluster_overdispersion_", lambda a: a.__setitem__(0, -1), "impossible variances"),
    "fraction of a count": ("cluster_counts_", lambda a: a.__iadd__(0.5), "fractions of counts"),
    "negative count": ("cluster_counts_", lambda a: a.__setitem__((0, 0), -1), "negative counts"),
}


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_an_array_with_impossible_values_is_refused(model, members, path, case):
    name, change, message = BAD_ARRAYS[case]
    pack(path, with_array(members, name, altered(model, name, change)))
    assert message in refusal(path)


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("weights_", np.full(5, 0.2), "other arrays have"),
        ("components_", np.full((3, 24), 1 / 24), "other arrays have"),
        ("labels_", np.zeros((80, 1), dtype="<i4"), "must have 1 dimensions"),
        ("labels_", np.zeros(0, dtype="<i4"), "none of them empty"),
        ("labels_", np.zeros(80, dtype="<i8"), "type <i4"),
        ("weights_", np.full(4, 0.25, dtype="<f4"), "has the type '<f4'"),
        ("weights_", np.full(4, 0.25, dtype=">f8"), "has the type '>f8'"),
        ("weights_", np.array(["a"] * 4), "has the type '<U1'"),
        ("weights_", np.zeros(4, dtype=[("a", "<f8")]), "has the type '|V8'"),
        ("extra", np.zeros(4), "Arrays are missing or unknown: 'extra'"),
        ("parameter-tol", np.zeros(4), "unknown: 'parameter-tol'"),
        ("parameter-topics", np.full((2, 2), 0.6), "do not sum to one"),
    ],
)
def test_an_array_of_another_shape_type_or_name_is_refused(members, path, name, array, message):
    pack(path, with_array(members, name, array))
    assert message in refusal(path)


class Touch:
    """Pickled, this creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("dtype", ["|O", "<f8"])
def test_a_pickled_array_is_refused_and_not_unpickled(members, path, tmp_path, dtype):
    witness = tmp_path / "witness"
    content = npy(np.array([Touch(witness)] * 4, dtype=object), allow_pickle=True)
    pack(path, with_array(members, "weights_", content, shape=[4], dtype=dtype))
    assert "weights_" in refusal(path)
    pack(path, with_array(members, "weights_", pickle.dumps(Touch(witness)), shape=[4], dtype=dtype))
    assert "weights_" in refusal(path)
    assert not witness.exists()


HEADER = b"\x93NUMPY\x01\x00\x76\x00"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a .npy array"),
        (b"\x93NUMPY\x03\x00", "not a .npy array of version 1.0"),
        (HEADER + b"{'descr': '<f8', 'fortran_order': False, 'shape': (4,), }", "not a .npy array"),
        (HEADER + b"(" * 118, "not a .npy array"),
        (HEADER + b"__import__('os').system('true')".ljust(118), "not a .npy array"),
        (npy(np.full(4, 0.25))[:-1], "does not have as many bytes"),
        (npy(np.full(4, 0.25)) + b"\0", "does not have as many bytes"),
        (npy(np.full(5, 0.2)), "its own header says ('5')"),
        (npy(np.asfortranarray(np.full((2, 2), 0.25))), "by rows"),
    ],
    ids=["empty", "version", "short header", "deep header", "code", "short", "long", "shape", "order"],
)
def test_an_array_that_contradicts_the_manifest_is_refused(members, path, content, message):
    pack(path, with_array(members, "weights_", content))
    assert message in refusal(path)


@pytest.mark.parametrize("shape", [[2**62, 4], [2**32, 2**32], [2**70], [-4], [4.0], ["4"], True, None, "4", [[4]]])
def test_a_shape_that_asks_for_the_world_is_refused(members, path, shape):
    sizes = tuple(shape) if isinstance(shape, list) and all(isinstance(size, int) for size in shape) else (4,)
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {sizes}, }}".encode().ljust(117) + b"\n"
    pack(path, with_array(members, "weights_", HEADER + text + bytes(32), shape=shape))
    assert "weights_" in refusal(path)


def test_a_wrong_checksum_is_refused(members, path):
    pack(path, members | {"arrays/weights_.npy": npy(np.full(4, 0.25))})
    assert "Array 'weights_' does not have the checksum" in refusal(path)


BAD_MANIFESTS = {
    "no object": (lambda m: [m], "must hold an object, but it holds a list"),
    "no format": (lambda m: m.pop("format") and None, "does not say that this is a model of mmpca"),
    "other format": (set_in("format", value="other"), "does not say"),
    "schema as text": (set_in("schema", value="1"), "does not say"),
    "schema as a claim": (set_in("schema", value=True), "does not say"),
    "schema never used": (set_in("schema", value=0), "schema 0, which has never been in use"),
    "negative schema": (set_in("schema", value=-5), "never been in use"),
    "unknown entry": (set_in("hook", value="os.system"), "unknown entries: 'hook'"),
    "missing entry": (lambda m: m.pop("text"), "missing or unknown entries: 'text'"),
    "unknown class": (set_in("class", value="Popen"), "a class that this version does not know"),
    "arrays as a list": (set_in("arrays", value=[]), "must list the arrays"),
    "entry as a list": (set_in("arrays", "weights_", value=[]), "must list the arrays"),
    "no arrays": (set_in("arrays", value={}), "that the manifest does not list"),
    "unknown parameter": (set_in("parameters", "hook", value=1), "exactly the entries that MMPCA has"),
    "parameters as a list": (set_in("parameters", value=[]), "exactly the entries"),
    "impossible parameter": (set_in("parameters", "n_clusters", value=0), "n_clusters must be a whole number"),
    "parameter of another type": (set_in("parameters", "topics", value={"a": []}), "A parameter is not possible"),
    "parameter without its array": (set_in("parameters", "topics", value=None), "topics must be"),
    "nested parameter": (set_in("parameters", "start", value=[[[]], 1]), "start must be"),
    "huge seed": (set_in("parameters", "random_state", value=2**32), "random_state must be null or a seed"),
    "seed as text": (set_in("parameters", "random_state", value="0"), "random_state must be"),
    "bound as text": (set_in("fitted", "bound_", value="-1"), "bound_ of fitted must be a finite number"),
    "bound of true": (set_in("fitted", "bound_", value=True), "bound_ of fitted"),
    "no bound": (lambda m: m["fitted"].pop("bound_") and None, "must have exactly the entries bound_"),
    "fitted as null": (set_in("fitted", value=None), "fitted must have exactly"),
    "huge count": (set_in("fitted", "n_epochs_", value=2**63), "n_epochs_ of fitted"),
    "other number of features": (set_in("fitted", "n_features_in_", value=24), "n_features_in_ is 24"),
    "converged as a number": (set_in("fitted", "converged_", value=1), "true or false"),
    "negative variance": (set_in("fitted", "overdispersion_", value=-1.0), "overdispersion_ of fitted"),
    "no starts": (set_in("starts", value=[]), "a list with an entry for each start"),
    "start without a seed": (set_in("starts", value=[{"kind": "a"}]), "a start must have exactly"),
    "too few names": (set_in("feature_names", value=["a"]), "a list of 25 names"),
    "names of numbers": (set_in("feature_names", value=list(range(25))), "a list of 25 names"),
    "unknown output": (set_in("output", value="os"), "output must be"),
    "output as a list": (set_in("output", value=[]), "output must be"),
    "text as a list": (set_in("text", value=[]), "text must be null or an object"),
    "versions as a list": (set_in("versions", value=[]), "versions must be an object"),
    "versions of numbers": (set_in("versions", "mmpca", value=1), "versions must be an object"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_MANIFESTS)
def test_a_manifest_that_says_something_else_is_refused(members, path, case):
    change, message = BAD_MANIFESTS[case]

    def in_place(manifest):
        result = change(manifest)
        return result if isinstance(result, list) else None

    pack(path, with_manifest(members, in_place))
    assert message in refusal(path)


ODD = [None, True, -1, 10**30, 0.5, "x", [[]], {"a": {}}]


def leaves(value, keys=()):
    """Yield the keys that lead to every value in a manifest, containers included."""
    if keys:
        yield keys
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from leaves(child, (*keys, key))


def test_any_odd_value_anywhere_in_the_manifest_is_refused_or_harmless(model, members, path, X):
    for keys in leaves(json.loads(members["manifest.json"])):
        for odd in ODD:
            pack(path, with_manifest(members, set_in(*keys, value=odd)))
            try:
                again = mmpca.load(path)
            except ModelFileError:
                continue
            np.testing.assert_array_equal(again.components_, model.components_)
            assert again.predict(X).shape == (80,)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "manifest.json cannot be read"),
        (b"{", "cannot be read"),
        (b"\xff\xfe\x00", "cannot be read"),
        (b"[" * 1_000_000, "cannot be read"),
        (b'{"a":' * 1_000_000, "cannot be read"),
        (b'{"schema": NaN}', "NaN is not a number"),
        (b'{"schema": -Infinity}', "-Infinity is not a number"),
        (b'{"schema": 1, "schema": 2}', "a key stands twice"),
        (b'{"schema": ' + b"9" * 5000 + b"}", "cannot be read"),
    ],
    ids=["empty", "cut", "not text", "deep lists", "deep objects", "nan", "infinity", "doubled key", "long number"],
)
def test_a_manifest_that_is_not_plain_json_is_refused(members, path, content, message):
    pack(path, members | {"manifest.json": content})
    assert message in refusal(path)


def test_an_overflowing_number_is_refused(members, path):
    text = members["manifest.json"].decode().replace('"icl_": ', '"icl_": 1e999, "_": ')
    manifest = json.loads(text)
    del manifest["fitted"]["_"]
    pack(path, members | {"manifest.json": json.dumps(manifest).replace("Infinity", "1e999").encode()})
    assert "icl_ of fitted must be a finite number" in refusal(path)


def test_a_huge_manifest_is_refused_before_it_is_read(members, path, monkeypatch):
    monkeypatch.setattr("mmpca.model.archive.LARGEST_MANIFEST", 1000)
    pack(path, members)
    assert "larger than the 1,000 bytes" in refusal(path)


@pytest.mark.parametrize(
    "name",
    [
        "../../outside.npy",
        "/tmp/outside.npy",
        "arrays/../../outside.npy",
        "arrays/extra.npy",
        "code.py",
        "arrays/",
        "C:\\a",
        "a\nb",
    ],
)
def test_a_member_that_the_manifest_does_not_list_is_refused_and_not_extracted(members, path, name):
    pack(path, members | {name: b"content"})
    message = refusal(path)
    assert "that the manifest does not list" in message
    assert "\n" not in message
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_listed_name_that_leaves_the_folder_is_refused(members, path):
    changed = with_array(members, "../../../outside", np.zeros(4))
    pack(path, changed)
    assert "outside" in refusal(path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("name", ["manifest.json", "arrays/weights_.npy"])
def test_a_missing_member_is_refused(members, path, name):
    pack(path, {key: content for key, content in members.items() if key != name})
    assert name in refusal(path)


@pytest.mark.parametrize("name", ["manifest.json", "arrays/weights_.npy"])
def test_a_member_that_stands_twice_is_refused(members, path, name):
    pack(path, [*members.items(), (name, members[name])])
    assert "two members of the same name" in refusal(path)


def test_many_members_are_refused(members, path):
    pack(path, members | {f"arrays/{number}.npy": b"" for number in range(100)})
    assert "at most 64" in refusal(path)


def test_a_zip_bomb_is_refused(members, path):
    bomb = with_array(members, "components_", bytes(60_000_000))
    pack(path, bomb, compression=zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 1e6
    assert "is compressed or encrypted" in refusal(path)


def test_members_that_claim_more_bytes_than_there_are_are_refused(members, path):
    pack(path, members | {"arrays/a.npy": bytes(100_000)})
    content = bytearray(path.read_bytes())
    entry = content.index(b"PK\x01\x02")  # the directory's first: compressed and full size of the manifest
    content[entry + 20 : entry + 28] = (2**31 - 1).to_bytes(4, "little") * 2
    path.write_bytes(content)
    assert "claim to be larger than the whole file" in refusal(path)


@pytest.mark.parametrize(
    "content", [b"", b"PK", b"not a zip", bytes(1000), b"PK\x05\x06" + bytes(18), pickle.dumps({"a": 1})]
)
def test_a_file_that_is_no_model_is_refused(path, content):
    path.write_bytes(content)
    assert "not a model file" in refusal(path)


def test_a_file_cut_short_anywhere_is_refused(members, path):
    pack(path, members)
    content = path.read_bytes()
    for length in range(0, len(content) - 1, max(1, len(content) // 60)):
        path.write_bytes(content[:length])
        with pytest.raises(ModelFileError):
            mmpca.load(path)


def test_a_damaged_byte_is_refused_or_without_effect(model, members, path):
    pack(path, members)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    n_refused = 0
    for position in rng.integers(len(content), size=400):
        damaged = bytearray(content)
        damaged[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            again = mmpca.load(path)
        except ModelFileError:
            n_refused += 1
        else:
            for name in schema.ARRAYS:
                np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    assert n_refused > 300


def test_a_file_that_is_not_there_is_told_as_always(tmp_path):
    with pytest.raises(FileNotFoundError):
        mmpca.load(tmp_path / "nothing")


# --- other schemas ----------------------------------------------------------------------------------------------


def test_a_newer_schema_is_refused_with_the_version_to_install(members, path):
    def newer(manifest):
        manifest |= {"schema": 7, "news": []}
        manifest["versions"]["mmpca"] = "3.2.1"

    pack(path, with_manifest(members, newer) | {"arrays/news.zstd": b""})
    message = refusal(path)
    assert "The file has schema 7, but mmpca" in message
    assert "Install 'mmpca>=3.2.1', which wrote it." in message


def test_a_newer_schema_from_a_writer_that_cannot_be_believed_names_no_version(members, path):
    def newer(manifest):
        manifest["schema"], manifest["versions"]["mmpca"] = 7, "1'; rm -rf"

    pack(path, with_manifest(members, newer))
    assert "Install a newer mmpca." in refusal(path)


@pytest.fixture
def _later(monkeypatch):
    """Let the schema of today be number 3: files of 1 lack the class, and those of 2 call the weights otherwise."""

    def with_class(manifest, arrays):
        return manifest | {"schema": 2, "class": "MMPCA"}, arrays

    def with_weights(manifest, arrays):
        weights = arrays.pop("proportions")
        return manifest | {"schema": 3}, arrays | {"weights_": weights}

    monkeypatch.setattr(files, "SCHEMA", 3)
    monkeypatch.setattr(files, "UPGRADES", {1: with_class, 2: with_weights})


def old(members):
    def change(manifest):
        del manifest["class"]
        manifest["arrays"]["proportions"] = manifest["arrays"].pop("weights_")

    changed = with_manifest(members, change)
    changed["arrays/proportions.npy"] = changed.pop("arrays/weights_.npy")
    return changed


@pytest.mark.usefixtures("_later")
def test_older_schemas_are_read_through_all_upgrades(model, members, path, same_fit):
    pack(path, old(members))
    same_fit(mmpca.load(path), model)


@pytest.mark.usefixtures("_later")
def test_what_an_upgrade_cannot_read_is_refused(members, path):
    pack(path, members)
    assert "says schema 2 but does not follow it (KeyError('proportions'))" in refusal(path)
