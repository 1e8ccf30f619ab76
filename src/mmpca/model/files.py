"""Fitted models as files, and back: see docs/model-file.md for the format."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Mapping
from importlib.metadata import version
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mmpca.errors import ModelFileError
from mmpca.model import constraints, schema
from mmpca.model.archive import Arrays, Manifest, read_archive, write_archive

if TYPE_CHECKING:
    from mmpca.model.estimator import MMPCA

FORMAT = "mmpca model"
SCHEMA = 1
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")
PARAMETER_PREFIX = "parameter-"  # of the names of arrays that are parameters

# An upgrade takes manifest and arrays of one schema to the next: UPGRADES[1] reads files of schema 1 as schema 2.
Upgrade = Callable[[Manifest, Arrays], tuple[Manifest, Arrays]]
UPGRADES: dict[int, Upgrade] = {}

_KEYS = {
    "format",
    "schema",
    "versions",
    "class",
    "parameters",
    "fitted",
    "starts",
    "feature_names",
    "output",
    "text",
    "arrays",
}


class Contents(NamedTuple):
    """What a model file says, checked."""

    parameters: dict[str, Any]
    attributes: dict[str, Any]  # the fitted ones, with `labels_` and so on as keys
    output: str | None  # what `set_output` was given
    text: dict[str, Any] | None
    versions: dict[str, str]


# --- saving -----------------------------------------------------------------------------------------------------


def save(model: MMPCA, path: str | os.PathLike[str], *, text: Mapping[str, Any] | None = None) -> None:
    """Write a fitted model to a file; see :meth:`MMPCA.save`."""
    check_is_fitted(model)
    if type(model).__name__ != "MMPCA":
        raise TypeError(
            f"Only MMPCA itself can be saved, but this is a {type(model).__name__}. Pickle it, or save an MMPCA."
        )
    parameters = model.get_params(deep=False)
    constraints.check_parameters(parameters)
    attributes = vars(model)
    names = attributes.get("feature_names_in_")
    manifest = {
        "format": FORMAT,
        "schema": SCHEMA,
        "versions": _versions(),
        "class": "MMPCA",
        "parameters": {name: _plain_parameter(name, value) for name, value in parameters.items()},
        "fitted": {name: schema.plain(attributes[name]) for name in schema.SCALARS},
        "starts": [{key: schema.plain(value) for key, value in start._asdict().items()} for start in model.starts_],
        "feature_names": None if names is None else [str(name) for name in names],
        "output": attributes.get("_sklearn_output_config", {}).get("transform"),
        "text": None if text is None else dict(text),
    }
    arrays = {name: attributes[name].astype(rule.dtype) for name, rule in schema.ARRAYS.items()}
    arrays |= _parameter_arrays(parameters)
    restored({**manifest, "arrays": {}}, arrays)  # what is saved can be loaded
    write_archive(path, manifest, arrays)


def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), "mmpca": version("mmpca")} | {name: version(name) for name in PACKAGES}


def _plain_parameter(name: str, value: Any) -> Any:
    """Return a parameter as JSON knows it; arrays are kept apart, and generators of random numbers are not kept."""
    if name == "random_state":
        return int(value) if isinstance(value, Integral) else None
    return None if _is_array(name, value) else schema.plain(value)


def _is_array(name: str, value: Any) -> bool:
    return name in schema.PARAMETER_ARRAYS and not isinstance(value, str)


def _parameter_arrays(parameters: Mapping[str, Any]) -> Arrays:
    """Return the parameters that were given as arrays, in the types that a fit casts them to."""
    return {
        PARAMETER_PREFIX + name: np.asarray(parameters[name]).astype(rule.dtype)
        for name, rule in schema.PARAMETER_ARRAYS.items()
        if _is_array(name, parameters[name])
    }


# --- loading ----------------------------------------------------------------------------------------------------


def read(path: str | os.PathLike[str]) -> Contents:
    """Read a model file; :func:`mmpca.load` makes a model of it."""
    try:
        manifest, arrays = _upgraded(*read_archive(path, _check_version))
        return restored(manifest, arrays)
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from error


def _check_version(manifest: Manifest) -> None:
    """Raise unless the manifest is of a schema that this version knows or can upgrade."""
    number = manifest.get("schema")
    if manifest.get("format") != FORMAT or type(number) is not int:
        raise ModelFileError("The manifest does not say that this is a model of mmpca.")
    if number > SCHEMA:
        writer = _writer(manifest)
        raise ModelFileError(
            f"The file has schema {number}, but mmpca {version('mmpca')} reads schema {SCHEMA} and older. "
            + (f"Install 'mmpca>={writer}', which wrote it." if writer else "Install a newer mmpca.")
        )
    if number < SCHEMA and number not in UPGRADES:
        raise ModelFileError(f"The file has schema {number}, which has never been in use.")


def _writer(manifest: Manifest) -> str | None:
    """Return the version of mmpca that wrote a file, if it looks like one."""
    versions = manifest.get("versions")
    found = versions.get("mmpca") if isinstance(versions, dict) else None
    return found if isinstance(found, str) and re.fullmatch(r"[0-9][0-9a-z.+]{0,39}", found) else None


def _upgraded(manifest: Manifest, arrays: Arrays) -> tuple[Manifest, Arrays]:
    """Return manifest and arrays in the current schema."""
    for number in range(manifest["schema"], SCHEMA):
        try:
            manifest, arrays = UPGRADES[number](manifest, arrays)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise ModelFileError(f"The file says schema {number} but does not follow it ({error!r}).") from error
    return manifest, arrays


def restored(manifest: Manifest, arrays: Arrays) -> Contents:
    """Return what manifest and arrays of the current schema say, or raise if a model cannot be made of it."""
    if manifest.keys() != _KEYS:
        odd = sorted(manifest.keys() ^ _KEYS)
        raise ModelFileError(f"The manifest has missing or unknown entries: {', '.join(map(ascii, odd))[:200]}.")
    if manifest["class"] != "MMPCA":
        raise ModelFileError("The file holds a class that this version does not know.")
    if manifest["output"] not in (None, "default", "pandas", "polars"):
        raise ModelFileError("output must be null, default, pandas or polars.")
    left = dict(arrays)
    return Contents(
        _restored_parameters(manifest["parameters"], left),
        _restored_fit(manifest, left),
        manifest["output"],
        _restored_text(manifest["text"]),
        _restored_versions(manifest["versions"]),
    )


def _restored_parameters(values: Any, arrays: Arrays) -> dict[str, Any]:
    """Return the parameters, the arrays among them taken out of `arrays`, in place."""
    expected = constraints.RULES.keys() | {"random_state"}
    if not isinstance(values, dict) or values.keys() != expected:
        raise ModelFileError("parameters must have exactly the entries that MMPCA has.")
    parameters = dict(values)
    for name, rule in schema.PARAMETER_ARRAYS.items():
        if (array := arrays.pop(PARAMETER_PREFIX + name, None)) is not None:
            schema.check_arrays({name: array}, {name: rule})
            parameters[name] = array
    try:
        constraints.check_parameters(parameters)
    except (ValueError, TypeError, OverflowError) as error:
        raise ModelFileError(f"A parameter is not possible: {error}") from error
    seed = parameters["random_state"]
    if seed is not None and not (type(seed) is int and 0 <= seed < 2**32):
        raise ModelFileError("random_state must be null or a seed from 0 to 4294967295.")
    return parameters


def _restored_fit(manifest: Manifest, arrays: Arrays) -> dict[str, Any]:
    """Return the fitted attributes."""
    if arrays.keys() != schema.ARRAYS.keys():
        odd = sorted(arrays.keys() ^ schema.ARRAYS.keys())
        raise ModelFileError(f"Arrays are missing or unknown: {', '.join(map(ascii, odd))[:200]}.")
    sizes = schema.check_arrays(arrays, schema.ARRAYS)
    fitted = arrays | schema.restore_scalars(manifest["fitted"], schema.SCALARS, "fitted")
    if fitted["n_features_in_"] != sizes["V"]:
        raise ModelFileError(f"n_features_in_ is {fitted['n_features_in_']}, but topics have {sizes['V']} features.")
    fitted["starts_"] = schema.restore_starts(manifest["starts"])
    names = _restored_names(manifest["feature_names"], sizes["V"])
    return fitted if names is None else fitted | {"feature_names_in_": names}


def _restored_names(names: Any, n_features: int) -> NDArray[np.object_] | None:
    if names is None:
        return None
    if not isinstance(names, list) or len(names) != n_features or not all(isinstance(name, str) for name in names):
        raise ModelFileError(f"feature_names must be null or a list of {n_features} names.")
    return np.array(names, dtype=object)


def _restored_text(text: Any) -> dict[str, Any] | None:
    if text is not None and not isinstance(text, dict):
        raise ModelFileError("text must be null or an object of settings.")
    return text


def _restored_versions(versions: Any) -> dict[str, str]:
    if not isinstance(versions, dict) or not all(isinstance(value, str) for value in versions.values()):
        raise ModelFileError("versions must be an object of names and versions.")
    return versions
