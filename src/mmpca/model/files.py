"""Model files: a zip file with a JSON manifest and one ``.npy`` member for each array (see docs/model-file.md).

Files are not trusted. Members are stored, never compressed, so a file cannot ask for more memory than its own size;
nothing is extracted to disk, no array is unpickled, and every value is checked before it reaches a model.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import platform
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from itertools import pairwise
from numbers import Integral
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mmpca.errors import ModelFileError
from mmpca.model.editing import Edit
from mmpca.model.outliers import N_KNOT_VALUES, knots_of
from mmpca.model.results import Words, given_names, set_names
from mmpca.model.rules import RULES, SUM_TOLERANCE, check_topic_prior
from mmpca.model.starts import StartReport
from mmpca.parameters import Rule, check_parameters, one_of
from mmpca.store import ZIP_ERRORS, open_regular, parse_array, stored_members, write_atomically

if TYPE_CHECKING:
    from mmpca.model.estimator import MMPCA

FORMAT, SCHEMA = "mmpca model", 4
MANIFEST = "manifest.json"
PARAMETER_PREFIX = "parameter-"  # names of arrays that are parameters, not fitted attributes
MAX_MANIFEST_BYTES = 64 * 2**20  # room for five million feature names
MAX_MEMBERS = 64
MAX_CELLS = 10_000  # numbers of clusters and topics that a search compares
MAX_DIGITS = 300  # of a whole number; more would not fit a double
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")

Manifest = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


# --- contents ---------------------------------------------------------------------------------------------------


class _ArrayRule(NamedTuple):
    """Dtype, dimensions and values of an array; a letter of `dimensions` is the same size in all arrays."""

    dtype: str
    dimensions: str
    holds: Callable[[NDArray[Any]], bool]
    expected: str


def _is_distribution(array: NDArray[Any]) -> bool:
    return bool((array >= 0).all() and (np.abs(array.sum(axis=-1) - 1.0) <= SUM_TOLERANCE).all())


def _is_variance_ratio(array: NDArray[Any]) -> bool:
    """NaN marks clusters in which there is nothing to compare."""
    return bool((np.isnan(array) | ((array >= 0) & (array < np.inf))).all())


_DISTRIBUTIONS = (_is_distribution, "probabilities that sum to one")
_FINITE = (lambda array: bool(np.isfinite(array).all()), "finite numbers")
_POSITIVE = (lambda array: bool(((array > 0) & (array < np.inf)).all()), "positive numbers")
_LABELS = (lambda array: bool((array >= 0).all()), "numbers of clusters")  # `_restore` checks that they are below Q
_SUMS = (lambda array: bool(((array >= 0) & (array < np.inf) & (array % 1 == 0)).all()), "whole numbers of at least 0")
_FACTORS = (lambda array: bool(((array >= 1) & (array < np.inf)).all()), "finite numbers of at least 1")
_CONCENTRATIONS = (lambda array: bool((array > 0).all()), "positive numbers or infinity")
_KNOWN_SHARES = (
    lambda array: bool((np.isnan(array) | ((array >= 0) & (array <= 1))).all()),
    "NaN or shares from 0 to 1",
)
_SHARES = (lambda array: bool(((array >= 0) & (array <= 1)).all()), "shares from 0 to 1")

# Fitted attributes of N rows, Q clusters, K topics, V features and E epochs. An array attribute that is missing here
# is not saved; a test compares the attributes before and after.
_ARRAYS = {
    "labels_": _ArrayRule("<i4", "N", *_LABELS),
    "weights_": _ArrayRule("<f8", "Q", *_DISTRIBUTIONS),
    "cluster_counts_": _ArrayRule("<f8", "QV", *_SUMS),
    "components_": _ArrayRule("<f8", "KV", *_DISTRIBUTIONS),
    "cluster_topics_": _ArrayRule("<f8", "QK", *_DISTRIBUTIONS),
    "cluster_topic_params_": _ArrayRule("<f8", "QK", *_POSITIVE),
    "bound_history_": _ArrayRule("<f8", "E", *_FINITE),
    "cluster_overdispersion_": _ArrayRule("<f8", "Q", _is_variance_ratio, "NaN or finite numbers of at least 0"),
}
# Attributes that a model need not have.
_OPTIONAL_ARRAYS = {
    "refit_components_": _ArrayRule("<f8", "KV", *_DISTRIBUTIONS),
    "refit_cluster_topics_": _ArrayRule("<f8", "QK", *_DISTRIBUTIONS),
    "variance_factors_": _ArrayRule("<f8", "V", *_FACTORS),
    "mean_profile_": _ArrayRule("<f8", "V", *_SHARES),
    "concentration_": _ArrayRule("<f8", "Q", *_CONCENTRATIONS),
    "cluster_row_counts_": _ArrayRule("<i4", "QV", *_SUMS),
    "_unit_counts": _ArrayRule("<f8", "QV", *_SUMS),
    "_cluster_sizes": _ArrayRule("<i8", "Q", *_SUMS),
    "noise_clusters_": _ArrayRule("<i4", "M", *_LABELS),
    "_outlier_knots": _ArrayRule("<f8", "BC", *_FINITE),
    "cluster_stability_": _ArrayRule("<f8", "Q", *_KNOWN_SHARES),
    "row_stability_": _ArrayRule("<f8", "N", *_KNOWN_SHARES),
}
# Parameters that were arrays. They may have been replaced after the fit, so their sizes are independent.
_PARAMETER_ARRAYS = {
    "topics": _ArrayRule("<f8", "kv", *_DISTRIBUTIONS),
    "start": _ArrayRule("<i8", "n", *_FINITE),
}


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_list_of_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _are_given_names(value: Any) -> bool:
    """Return True for names of clusters and topics by number; `_restore` checks that the numbers exist."""
    if not isinstance(value, dict) or value.keys() != {"clusters", "topics", "words"}:
        return False
    if not all(isinstance(names, dict) and all(map(_is_word, names.values())) for names in value.values()):
        return False
    numbers = [number for kind in ("clusters", "topics") for number in value[kind]]
    return all(re.fullmatch("[0-9]{1,9}", number) for number in numbers) and value["words"].keys() <= {"row", "feature"}


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_column(value: Any) -> bool:
    return isinstance(value, list) and 0 < len(value) <= MAX_CELLS and all(map(_is_number, value))


def _is_table(value: Any) -> bool:
    """Return True for an object of columns of numbers, all of one length."""
    if not isinstance(value, dict) or not all(map(_is_column, value.values())):
        return False
    return len({len(column) for column in value.values()}) <= 1


def _is_history(value: Any) -> bool:
    """Return True for the record of a search, as :class:`mmpca.MMPCASearch` leaves it in `search_`."""
    if not isinstance(value, dict) or value.keys() != {"criterion", "reason", "results", "topics", "bounds", "splits"}:
        return False
    is_text = isinstance(value["criterion"], str) and isinstance(value["reason"], str)
    is_grid = _is_table(value["results"]) and {"n_clusters", "n_topics", value["criterion"]} <= value["results"].keys()
    splits = value["splits"]
    are_tables = isinstance(splits, list) and all(
        isinstance(table, list) and table and all(map(_is_column, table)) and len(set(map(len, table))) == 1
        for table in splits
    )
    return is_text and is_grid and _is_table(value["topics"]) and _is_column(value["bounds"]) and are_tables


def _are_edits(value: Any) -> bool:
    """Return True for a list of edits: kind, numbers of clusters, number of rows."""
    return isinstance(value, list) and all(
        isinstance(edit, list)
        and len(edit) == 3
        and edit[0] in ("merge", "split", "move", "noise")
        and isinstance(edit[1], list)
        and all(type(number) is int and 0 <= number < 2**63 for number in (*edit[1], edit[2]))
        for edit in value
    )


def _is_data(value: Any) -> bool:
    """Return True for facts about the data of the fit; `_restore` checks that their sizes fit."""
    if not isinstance(value, dict) or value.keys() != {"layer", "empty_rows", "is_named_later", "annotations"}:
        return False
    rows, annotations = value["empty_rows"], value["annotations"]
    return (
        (value["layer"] is None or isinstance(value["layer"], str))
        and type(value["is_named_later"]) is bool
        and isinstance(rows, list)
        and all(type(row) is int and 0 <= row < 2**31 for row in rows)
        and all(row < following for row, following in pairwise(rows))
        and isinstance(annotations, dict)
        and all(_is_list_of_names(descriptions) for descriptions in annotations.values())
    )


def _are_versions(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


_ANY = Rule(lambda value: True, "anything")
_NUMBER = Rule(_is_number, "a finite number")
_COUNT = Rule(lambda value: type(value) is int and 0 <= value < 2**63, "a whole number of at least 0")
_BOOLEAN = Rule(lambda value: type(value) is bool, "true or false")
_MANIFEST = {
    "format": _ANY,  # checked before anything else, with the schema
    "schema": _ANY,
    "versions": Rule(_are_versions, "an object of names and versions"),
    "class": Rule(lambda value: value == "MMPCA", '"MMPCA"'),
    "parameters": Rule(lambda value: isinstance(value, dict), "an object"),
    "fitted": Rule(lambda value: isinstance(value, dict), "an object"),
    "starts": Rule(lambda value: isinstance(value, list) and len(value) > 0, "a list with an entry for each start"),
    "feature_names": Rule(lambda value: value is None or _is_list_of_names(value), "null or a list of names"),
    "names": Rule(_are_given_names, "names of clusters and topics by number"),
    "edits": Rule(_are_edits, "a list of edits"),
    "search": Rule(lambda value: value is None or _is_history(value), "null or the record of a search"),
    "output": Rule(
        lambda value: value in (None, "default", "pandas", "polars"), 'null, "default", "pandas" or "polars"'
    ),
    "text": Rule(lambda value: value is None or isinstance(value, dict), "null or an object of settings"),
    "data": Rule(_is_data, "an object with layer, empty_rows, is_named_later and annotations"),
    "arrays": _ANY,  # checked when the arrays are read
}
_FITTED = {
    "bound_": _NUMBER,
    "icl_": _NUMBER,
    "refit_bound_": Rule(lambda value: value is None or _is_number(value), "null or a finite number"),
    "smoothing_": Rule(lambda value: _is_number(value) and value >= 0, "a number of at least 0"),
    "temperature_": Rule(lambda value: _is_number(value) and value > 0, "a positive number"),
    "n_epochs_": _COUNT,
    "converged_": _BOOLEAN,
    "n_features_in_": _COUNT,
    "topics_source_": one_of("lda", "mixture", "tfidf", "random", "given"),
    "dispersion_": RULES["dispersion"],
    "stabilize_": RULES["stabilize"],
    "overdispersion_": Rule(
        lambda value: value is None or (_is_number(value) and value >= 0), "null or a number of at least 0"
    ),
    "_mean_length": Rule(lambda value: _is_number(value) and value > 0, "a positive number"),
}
_START = {
    "kind": Rule(lambda value: isinstance(value, str), "a string"),
    "seed": _COUNT,
    "bound": _NUMBER,
    "n_epochs": _COUNT,
    "converged": _BOOLEAN,
    "seconds": _NUMBER,
}


class ModelFile(NamedTuple):
    """The contents of a model file.

    Attributes
    ----------
    model : MMPCA
        The fitted model.
    text : dict or None
        Settings and vocabulary for :meth:`mmpca.text.CountTexts.from_settings`, if the model was fitted to texts.
    versions : dict of str to str
        Versions of Python, mmpca and other packages that wrote the file.
    """

    model: MMPCA
    text: dict[str, Any] | None
    versions: dict[str, str]


@contextmanager
def _errors_about(path: str | os.PathLike[str]) -> Iterator[None]:
    """Add the path to errors about the contents of a file."""
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}", path=path) from error


# --- saving -----------------------------------------------------------------------------------------------------


def save(model: MMPCA, path: str | os.PathLike[str], *, text: Mapping[str, Any] | None = None) -> None:
    """Write a fitted model to a file; see :meth:`mmpca.MMPCA.save`."""
    from mmpca.model.estimator import MMPCA

    check_is_fitted(model)
    if type(model) is not MMPCA:
        raise TypeError(
            f"Only MMPCA models can be saved, got the subclass {type(model).__name__}. Use pickle for subclasses."
        )
    parameters, attributes = model.get_params(deep=False), dict(vars(model), temperature_=model.temperature_)
    if (knots := knots_of(model)) is not None:
        attributes["_outlier_knots"] = knots
    if "concentration_" in attributes:  # common to all clusters; files could hold one for each
        attributes["concentration_"] = np.full(len(model.weights_), model.concentration_)
    # These are the values of the fit, even if a parameter has been changed since.
    parameters |= {"n_clusters": len(model.weights_), "n_topics": len(model.components_)}
    parameters["topic_prior"] = model.topic_prior_
    if model.dispersion != "auto":
        parameters |= {"dispersion": model.dispersion_, "stabilize": model.stabilize_}
    check_parameters(parameters, RULES)
    names = attributes.get("feature_names_in_")
    manifest = {
        "format": FORMAT,
        "schema": SCHEMA,
        "versions": {"python": platform.python_version()} | {name: version(name) for name in ("mmpca", *PACKAGES)},
        "class": "MMPCA",
        "parameters": {name: _parameter_as_json(name, value) for name, value in parameters.items()},
        "fitted": {name: _as_json(attributes.get(name)) for name in _FITTED},
        "starts": [{key: _as_json(value) for key, value in start._asdict().items()} for start in model.starts_],
        "feature_names": None if names is None else [str(name) for name in names],
        "names": {
            f"{kind}s": {str(number): name for number, name in given_names(model, kind).items()}
            for kind in ("cluster", "topic")
        }
        | {"words": attributes["_words"]._asdict() if "_words" in attributes else {}},
        "edits": [[kind, list(clusters), n_rows] for kind, clusters, n_rows in attributes.get("edits_", [])],
        "search": attributes.get("search_"),
        "output": attributes.get("_sklearn_output_config", {}).get("transform"),
        "text": None if text is None else dict(text),
        "data": {
            "layer": attributes.get("_layer"),
            "empty_rows": [int(row) for row in attributes.get("_empty_rows", ())],
            "is_named_later": attributes.get("_is_named_later", False),
            "annotations": {
                title: [str(text) for text in descriptions]
                for title, descriptions in attributes.get("feature_annotations_", {}).items()
            },
        },
    }
    saved = _ARRAYS | {name: rule for name, rule in _OPTIONAL_ARRAYS.items() if name in attributes}
    arrays = {name: attributes[name].astype(rule.dtype) for name, rule in saved.items()}
    for name, rule in _PARAMETER_ARRAYS.items():
        if not isinstance(parameters[name], str):
            arrays[PARAMETER_PREFIX + name] = np.asarray(parameters[name]).astype(rule.dtype)
    with _errors_about(path):
        _restore(manifest | {"arrays": {}}, arrays)  # never write a file that cannot be loaded
        _write_archive(path, manifest, arrays)


def _as_json(value: Any) -> Any:
    """Convert a number or an array for JSON: NumPy numbers become Python numbers, and NaN becomes None."""
    number = value.tolist() if isinstance(value, np.generic | np.ndarray) else value
    return None if isinstance(number, float) and math.isnan(number) else number


def _parameter_as_json(name: str, value: Any) -> Any:
    """Convert a parameter for the manifest: None for random generators and for arrays, which are members."""
    if name == "random_state":
        return int(value) if isinstance(value, Integral) else None
    return None if name in _PARAMETER_ARRAYS and not isinstance(value, str) else _as_json(value)


def _write_archive(path: str | os.PathLike[str], manifest: Manifest, arrays: Arrays) -> None:
    """Write the archive atomically; shapes, dtypes and checksums of the arrays are added to the manifest."""
    members, listing = {}, {}
    for name, array in arrays.items():
        buffer = io.BytesIO()
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        np.lib.format.write_array(buffer, little, version=(1, 0), allow_pickle=False)
        members[_member(name)] = content = buffer.getvalue()
        checksum = hashlib.sha256(content).hexdigest()
        listing[name] = {"shape": list(array.shape), "dtype": little.dtype.str, "sha256": checksum}
    text = json.dumps({**manifest, "arrays": listing}, allow_nan=False, ensure_ascii=False, indent=1)
    encoded = text.encode("utf-8", errors="surrogatepass")
    if len(encoded) > MAX_MANIFEST_BYTES:
        raise ModelFileError(
            f"The manifest would take {len(encoded):,} bytes, more than the allowed {MAX_MANIFEST_BYTES:,}: the names "
            "of the features are too long. Shorten them, or fit without names."
        )

    def write(file: IO[bytes]) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, content in {MANIFEST: encoded, **members}.items():
                archive.writestr(zipfile.ZipInfo(name), content)  # without a date: equal models give equal files

    write_atomically(path, write)


def _member(name: str) -> str:
    return f"arrays/{name}.npy"


# --- loading ----------------------------------------------------------------------------------------------------


def load(path: str | os.PathLike[str]) -> MMPCA:
    """Load a model from a file written by :meth:`MMPCA.save`.

    Files from untrusted sources are safe to load: no code in the file is run, and nothing is written.

    Parameters
    ----------
    path : path

    Returns
    -------
    model : MMPCA
        Its predictions, scores and samples are bit for bit those of the saved model.

    Raises
    ------
    ModelFileError
        If the file is damaged, is not a model, or was written by a newer version of mmpca.

    Examples
    --------
    >>> import tempfile, mmpca
    >>> from mmpca.simulate import paper_design
    >>> data = paper_design(n_samples=60, random_state=0)
    >>> model = mmpca.MMPCA(6, 4, n_init=1, random_state=0).fit(data.X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/clusters.mmpca")
    ...     loaded = mmpca.load(f"{folder}/clusters.mmpca")
    >>> bool((loaded.predict(data.X) == model.predict(data.X)).all())
    True
    """
    return read_model(path).model


def read_model(path: str | os.PathLike[str]) -> ModelFile:
    """Load a model together with everything else in its file.

    Parameters
    ----------
    path : path

    Returns
    -------
    ModelFile
        The model, the settings that turned texts into counts, and the versions that wrote the file.

    Raises
    ------
    ModelFileError
        As in :func:`load`.

    Examples
    --------
    >>> import tempfile, mmpca
    >>> from mmpca.model import read_model
    >>> model = mmpca.MMPCA(2, 2, n_init=1, random_state=0).fit([[9, 1], [1, 9], [8, 1], [1, 8]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/clusters.mmpca")
    ...     file = read_model(f"{folder}/clusters.mmpca")
    >>> file.versions["mmpca"] == mmpca.__version__
    True
    """
    with _errors_about(path):
        manifest, arrays = _upgrade(*_read_archive(path))
        return ModelFile(_restore(manifest, arrays), manifest["text"], manifest["versions"])


def _upgrade(manifest: Manifest, arrays: Arrays) -> tuple[Manifest, Arrays]:
    """Return the contents of an older file in the form of the present schema; they are checked afterwards."""
    if manifest["schema"] == 1:
        # These files hold the re-estimated topics alone, and predicted from them.
        refit = {f"refit_{name}": arrays[name] for name in ("components_", "cluster_topics_") if name in arrays}
        if isinstance(manifest.get("fitted"), dict):
            manifest["fitted"]["smoothing_"] = 0.0
        arrays = arrays | refit
    if manifest["schema"] < 3:
        manifest = manifest | {"schema": 3, "names": {"clusters": {}, "topics": {}}}
    if manifest["schema"] < 4:
        data: dict[str, Any] = {"layer": None, "empty_rows": [], "is_named_later": False, "annotations": {}}
        manifest = manifest | {"schema": 4, "edits": [], "data": data, "search": None}
        if isinstance(manifest.get("names"), dict):
            manifest["names"] = manifest["names"] | {"words": {}}
    if isinstance(manifest.get("parameters"), dict):
        manifest["parameters"].setdefault("dispersion", "multinomial")
        manifest["parameters"].setdefault("temperature", 1.0)
        if isinstance(manifest.get("fitted"), dict):
            # Older files have the probabilities of the published model.
            manifest["fitted"].setdefault("temperature_", 1.0)
            source = manifest["parameters"].get("topics")  # null for an array; older versions had no other source
            manifest["fitted"].setdefault("topics_source_", "given" if source is None else source)
            for name in ("dispersion", "stabilize"):
                manifest["fitted"].setdefault(f"{name}_", manifest["parameters"].get(name))
    return manifest, arrays


def _restore(manifest: Manifest, arrays: Arrays) -> MMPCA:
    """Return the model that a manifest and arrays describe, after checking every value."""
    from mmpca.model.estimator import MMPCA

    _check(manifest, _MANIFEST, MANIFEST)
    left = dict(arrays)
    model = MMPCA(**_restore_parameters(manifest["parameters"], MMPCA().get_params(deep=False), left))
    rules = _ARRAYS | {name: rule for name, rule in _OPTIONAL_ARRAYS.items() if name in left}
    if left.keys() != rules.keys():
        raise ModelFileError(f"Arrays are missing or unknown: {_shown(sorted(left.keys() ^ rules.keys()))}.")
    sizes = _check_arrays(left, rules)
    if (left["labels_"] >= sizes["Q"]).any():
        raise ModelFileError(f"labels_ must be below the number of clusters, {sizes['Q']}.")
    if sizes.get("C", N_KNOT_VALUES) != N_KNOT_VALUES:
        raise ModelFileError(f"_outlier_knots must have {N_KNOT_VALUES} columns, got {sizes['C']}.")
    fitted = left | _restore_numbers(manifest["fitted"], _FITTED, "fitted")
    if math.isnan(fitted["refit_bound_"]):
        del fitted["refit_bound_"]
    for name, found, letter in (
        ("n_clusters", model.n_clusters, "Q"),
        ("n_topics", model.n_topics, "K"),
        ("n_features_in_", fitted["n_features_in_"], "V"),
        ("n_epochs_", fitted["n_epochs_"] + 1, "E"),
    ):
        if found != sizes[letter]:
            raise ModelFileError(
                f"{name} does not fit the arrays: they have {sizes[letter]} entries, expected {found}."
            )
    try:
        fitted["topic_prior_"], kind = check_topic_prior(model.topic_prior, model.n_topics), fitted["dispersion_"]
    except ValueError as error:
        raise ModelFileError(f"Invalid parameter: {error}") from error
    fitted["stabilize_"] = manifest["fitted"]["stabilize_"]  # null is None here
    is_expected = {"variance_factors_": kind == "polya", "concentration_": kind in ("shares", "polya")}
    is_expected |= {"mean_profile_": kind == "polya"}
    if kind == "auto" or any((name in fitted) != holds for name, holds in is_expected.items()):
        raise ModelFileError(f"dispersion_ does not fit the arrays: it is {_shown(kind)}.")
    if "concentration_" in fitted:
        fitted["concentration_"] = float(fitted["concentration_"][0])
    fitted["starts_"] = [StartReport(**_restore_numbers(start, _START, "a start")) for start in manifest["starts"]]
    if (names := manifest["feature_names"]) is not None:
        if len(names) != sizes["V"]:
            raise ModelFileError(f"There are {len(names)} feature names for {sizes['V']} features.")
        fitted["feature_names_in_"] = np.array(names, dtype=object)
    if manifest["edits"]:
        fitted["edits_"] = [Edit(kind, tuple(clusters), n_rows) for kind, clusters, n_rows in manifest["edits"]]
    if (fitted.get("noise_clusters_", np.zeros(1)) >= sizes["Q"]).any():
        raise ModelFileError(f"noise_clusters_ must be below the number of clusters, {sizes['Q']}.")
    for name, value in (fitted | _restore_data(manifest["data"], sizes)).items():
        setattr(model, name, value)
    try:
        given = manifest["names"]
        set_names(model, *({int(n): name for n, name in given[kind].items()} for kind in ("clusters", "topics")))
        if given["words"]:
            model._words = Words(**given["words"])
    except ValueError as error:
        raise ModelFileError(f"Invalid name: {error}") from error
    if manifest["search"] is not None:
        model.search_ = manifest["search"]
    if manifest["output"] is not None:
        model.set_output(transform=manifest["output"])
    return model


def _restore_data(data: Manifest, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Return the attributes that describe the data of the fit."""
    n_rows = sizes["N"] + len(data["empty_rows"])
    if data["empty_rows"] and data["empty_rows"][-1] >= n_rows:
        raise ModelFileError(f"empty_rows in data must be among {n_rows} rows.")
    found = {f"_{name}": data[name] for name in ("layer", "empty_rows", "is_named_later") if data[name]}
    if data["annotations"]:
        if any(len(descriptions) != sizes["V"] for descriptions in data["annotations"].values()):
            raise ModelFileError(f"annotations in data must have {sizes['V']} entries, one for each feature.")
        found["feature_annotations_"] = {
            title: np.array(descriptions, dtype=object) for title, descriptions in data["annotations"].items()
        }
    return found


def _restore_parameters(values: Manifest, known: Mapping[str, Any], arrays: Arrays) -> dict[str, Any]:
    """Return the parameters; those that are arrays are taken out of `arrays` in place."""
    if values.keys() != known.keys():
        raise ModelFileError(f"parameters must have exactly the entries {', '.join(known)}.")
    parameters = dict(values)
    for name, rule in _PARAMETER_ARRAYS.items():
        if (array := arrays.pop(PARAMETER_PREFIX + name, None)) is not None:
            _check_arrays({name: array}, {name: rule})
            parameters[name] = array
    try:
        check_parameters(parameters, RULES)
    except (ValueError, TypeError, OverflowError) as error:
        raise ModelFileError(f"Invalid parameter: {error}") from error
    seed = parameters["random_state"]
    if seed is not None and not (type(seed) is int and 0 <= seed < 2**32):
        raise ModelFileError("random_state must be null or an integer from 0 to 4294967295.")
    return parameters


def _restore_numbers(values: Any, rules: Mapping[str, Rule], where: str) -> dict[str, Any]:
    """Return checked numbers; null is NaN."""
    _check(values, rules, where)
    return {name: math.nan if value is None else value for name, value in values.items()}


def _check(values: Any, rules: Mapping[str, Rule], where: str) -> None:
    """Raise ModelFileError unless `values` is an object with exactly the entries of the rules, all of them valid."""
    if not isinstance(values, dict) or values.keys() != rules.keys():
        raise ModelFileError(f"{where} must be an object with exactly the entries {', '.join(rules)}.")
    for name, rule in rules.items():
        if not rule.holds(values[name]):
            raise ModelFileError(f"{name} in {where} must be {rule.expected}, got {_shown(values[name])}.")


def _check_arrays(arrays: Arrays, rules: Mapping[str, _ArrayRule]) -> dict[str, int]:
    """Check dtypes, dimensions and values of arrays, and return the size of each dimension."""
    sizes: dict[str, int] = {}
    for name, rule in rules.items():
        array = arrays[name]
        if array.dtype != np.dtype(rule.dtype) or array.ndim != len(rule.dimensions) or 0 in array.shape:
            raise ModelFileError(
                f"Array {name} must be of type {rule.dtype} and have {len(rule.dimensions)} non-empty dimensions, but "
                f"it is of type {array.dtype.str} and has shape {array.shape}."
            )
        for letter, size in zip(rule.dimensions, array.shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                raise ModelFileError(
                    f"Array {name} has shape {array.shape}, which does not fit the other arrays: expected "
                    f"{sizes[letter]} instead of {size}."
                )
        with np.errstate(all="ignore"):  # sums of absurd values overflow
            if not rule.holds(array):
                raise ModelFileError(f"Array {name} must hold {rule.expected}. The file is damaged.")
    return sizes


# --- reading the archive ----------------------------------------------------------------------------------------

_DTYPES = ("<f8", "<i4", "<i8")


def _read_archive(path: str | os.PathLike[str]) -> tuple[Manifest, Arrays]:
    """Return the manifest and the arrays of an archive that holds nothing else."""
    try:
        file = open_regular(path)
    except ValueError as error:
        raise ModelFileError(f"A model must be a regular file: {error}.") from error
    with file:
        try:
            with zipfile.ZipFile(file) as archive:
                members = stored_members(archive, os.fstat(file.fileno()).st_size)
                if len(members) > MAX_MEMBERS:
                    raise ModelFileError(f"The file has {len(members)} members, but a model has at most {MAX_MEMBERS}.")
                if MANIFEST not in members:
                    raise ModelFileError(f"The file has no {MANIFEST}: it is a zip file, but not a model.")
                if archive.getinfo(MANIFEST).file_size > MAX_MANIFEST_BYTES:
                    raise ModelFileError(f"The manifest is larger than the allowed {MAX_MANIFEST_BYTES:,} bytes.")
                manifest = _parse_manifest(members.pop(MANIFEST)())
                _check_schema(manifest)
                return manifest, _read_arrays(members, manifest.get("arrays"))
        except ModelFileError:
            raise
        except ZIP_ERRORS as error:
            raise ModelFileError(
                f"This is not a model file, or it is truncated or damaged ({error}). Use a file written by mmpca fit "
                "or model.save; if it is one, copy it again, or save the model again."
            ) from error


def _parse_manifest(content: bytes) -> Manifest:
    """Parse the manifest; NaN, repeated keys and deep nesting are errors."""

    def no_constant(name: str) -> None:
        raise ValueError(f"{name} is not a number")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(result := dict(pairs)) < len(pairs):
            raise ValueError("an object has two entries with the same key")
        return result

    def short_integer(digits: str) -> int:
        if len(digits) > MAX_DIGITS:
            raise ValueError(f"a number has {len(digits)} digits")
        return int(digits)

    try:
        text = content.decode("utf-8", errors="surrogatepass")
        manifest = json.loads(text, parse_constant=no_constant, parse_int=short_integer, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{MANIFEST} is not valid JSON: {error}.") from error
    if not isinstance(manifest, dict):
        raise ModelFileError(f"{MANIFEST} must hold an object, but it holds a {type(manifest).__name__}.")
    return manifest


def _check_schema(manifest: Manifest) -> None:
    """Raise ModelFileError unless this version of mmpca knows the schema of the file."""
    schema = manifest.get("schema")
    if manifest.get("format") != FORMAT or type(schema) is not int:
        raise ModelFileError("The manifest does not describe an mmpca model.")
    if schema > SCHEMA:
        versions = manifest.get("versions")
        writer = versions.get("mmpca") if isinstance(versions, dict) else None
        # Only quote something that looks like a version: users paste install commands.
        is_version = isinstance(writer, str) and re.fullmatch(r"[0-9][0-9a-z.+]{0,39}", writer)
        newer = f"'mmpca>={writer}', which wrote it" if is_version else "a newer mmpca"
        raise ModelFileError(
            f"The file has schema {schema}, but mmpca {version('mmpca')} knows only schema {SCHEMA}. Install {newer}."
        )
    if schema < 1:
        raise ModelFileError(f"The file has schema {schema}, which does not exist.")


def _read_arrays(members: Mapping[str, Callable[[], bytes]], listing: Any) -> Arrays:
    """Return the arrays that the manifest lists; the archive must hold exactly these."""
    if not isinstance(listing, dict) or not all(isinstance(entry, dict) for entry in listing.values()):
        raise ModelFileError(f"{MANIFEST} must list the arrays as an object of objects.")
    expected = {_member(name): name for name in listing}
    for name in sorted(set(members) - set(expected)):
        raise ModelFileError(f"Member {_shown(name)} is not listed in the manifest.")
    for name in sorted(set(expected) - set(members)):
        raise ModelFileError(f"Member {_shown(name)} is missing. Copy the file again, or save the model again.")
    return {name: _read_array(name, members[member](), listing[name]) for member, name in expected.items()}


def _read_array(name: str, content: bytes, entry: dict[str, Any]) -> NDArray[Any]:
    """Return one array, after comparing its dtype, shape, size and checksum with the manifest."""
    shape, dtype = entry.get("shape"), entry.get("dtype")
    if dtype not in _DTYPES:
        raise ModelFileError(f"Array {_shown(name)} must be of type {', '.join(_DTYPES)}, got {_shown(dtype)}.")
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        raise ModelFileError(f"The shape of array {_shown(name)} must be a list of sizes, got {_shown(shape)}.")
    if hashlib.sha256(content).hexdigest() != entry.get("sha256"):
        raise ModelFileError(f"Array {_shown(name)} does not have the checksum in the manifest: it is damaged.")
    try:
        array = parse_array(content)
    except ValueError as error:
        raise ModelFileError(f"Array {_shown(name)} is damaged: {error}.") from error
    # Compare as text: the type of the array that is returned has the byte order of this machine.
    if (array.dtype.newbyteorder("<").str, list(array.shape)) != (dtype, shape):
        raise ModelFileError(
            f"Array {_shown(name)} should have type {dtype} and shape {tuple(shape)}, but it has type "
            f"{array.dtype.str} and shape {array.shape}."
        )
    return array


def _shown(value: object) -> str:
    """Return a short, escaped form of an untrusted value."""
    text = ascii(value)
    return text if len(text) <= 80 else text[:77] + "..."
