"""What a long fit has finished, in a file, so that another process can go on from there."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import IO, Any, Self
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from mmpca.counts import Counts
from mmpca.errors import StoreError
from mmpca.model.archive import check_folder, write_atomically
from mmpca.places import ForRows, Place, Rows

Array = NDArray[np.float64]
Labels = NDArray[np.int32]
Words = NDArray[np.uint64]

SCHEMA = 2  # of the file; the first kept no number, and knew data by their column totals alone
# Parameters that another fit must share to go on: they decide topics and labels.
BELONGING = (
    "n_clusters", "n_topics", "topics", "topic_prior", "start", "n_init", "algorithm", "stabilize", "tol",
    "random_state",
)  # fmt: skip
FIRST_FEATURE = np.uint64(2**63)  # numbers of features, far from those of rows


class Checkpoint:
    """A file with the topics, and the labels after the last epoch.

    Parameters
    ----------
    path : path
        The file; it appears complete or not at all.
    identity : mapping of str to value that JSON can keep
        What the fit is of; a file of another is refused.
    """

    def __init__(self, path: str | os.PathLike[str], identity: Mapping[str, Any]) -> None:
        self.path, self.identity = Path(path), identity
        self.beta: Array | None = None
        self.labels: Labels | None = None
        self._read()

    @classmethod
    def of_fit(cls, path: str | os.PathLike[str], parameters: Mapping[str, Any], place: Place) -> Self:
        """Return the checkpoint of a fit that has not begun; how it is run, in how many threads, does not matter."""
        identity = {name: as_told(parameters[name]) for name in BELONGING}
        numbers = np.arange(place.n_rows)
        digest = place.total(row_digest, numbers, numbers)[0]
        sizes = {"n_rows": int(place.n_rows), "n_features": int(place.n_features)}
        return cls(path, identity | sizes | {"rows": f"{int(digest):016x}"})

    def _read(self) -> None:
        try:
            with np.load(self.path, allow_pickle=False) as arrays:
                schema = int(arrays["schema"]) if "schema" in arrays else 1
                found = dict(json.loads(str(arrays["identity"])))
                beta, labels = arrays["beta"], arrays["labels"]
        except FileNotFoundError:
            check_folder(self.path)  # now, and not after hours
            return
        except OSError as error:
            raise StoreError(f"checkpoint {self.path} cannot be read: {error}. Give another path.") from error
        # A TypeError is that of a single array, which is no archive.
        except (EOFError, KeyError, TypeError, ValueError, BadZipFile) as error:
            raise StoreError(
                f"checkpoint {self.path} cannot be read: it is no file that a fit has kept, or a damaged one. Give "
                "another path, or remove it."
            ) from error
        if schema != SCHEMA:
            raise StoreError(
                f"checkpoint {self.path} was kept by another version of mmpca: its schema is {schema}, here it is "
                f"{SCHEMA}. Remove it, or give another path."
            )
        for name, value in self.identity.items():
            self._compare(name, found.get(name), value)
        self.beta, self.labels = beta, labels if len(labels) else None

    def _compare(self, name: str, found: Any, value: Any) -> None:
        """Raise StoreError unless the file was kept by a fit of the same."""
        if found == value:
            return
        told = "its rows are others, or in another order"
        if name != "rows":
            told = f"its {name} is {found}, here it is {value}"
        raise StoreError(
            f"checkpoint {self.path} belongs to another fit: {told}. Give another path, or the data and parameters "
            "that it was made with."
        )

    def topics(self, learn: Callable[[], Array]) -> Array:
        """Return the topics that are known, or learn and keep them."""
        if self.beta is None:
            self.beta = learn()
            self._write(self.beta, np.empty(0, dtype=np.int32))
        return self.beta

    def keep(self, labels: Labels) -> None:
        """Keep the labels after an epoch; the topics are known by then."""
        if self.beta is not None:
            self._write(self.beta, labels)

    def _write(self, beta: Array, labels: Labels) -> None:
        identity = np.array(json.dumps(self.identity))

        def write(file: IO[bytes]) -> None:
            np.savez(file, schema=np.array(SCHEMA), identity=identity, beta=beta, labels=labels)

        write_atomically(self.path, write)


# --- what a fit is of ---------------------------------------------------------------------------------------------


def as_told(parameter: Any) -> Any:
    """Return a parameter in a form that JSON keeps and a message shows: equal values are equal in any process.

    Examples
    --------
    >>> as_told(np.int64(3)), as_told(0.5), as_told("lda")
    (3, 0.5, 'lda')
    >>> as_told([0, 1, 1]) == as_told(np.array([0, 1, 1], dtype=np.int32))
    True
    """
    if parameter is None or parameter is np.random:  # scikit-learn takes the module for None
        return None
    if isinstance(parameter, str):
        return parameter
    if isinstance(parameter, Integral):
        return int(parameter)
    if isinstance(parameter, Real):
        return float(parameter)
    if isinstance(parameter, np.random.RandomState):
        state = json.dumps(parameter.get_state(legacy=False), default=lambda value: value.tolist())
        return f"a RandomState with digest {_digest(state.encode())}"
    values = np.asarray(parameter)
    # Labels are whole numbers, topics become doubles: their type does not matter. Others will be refused.
    is_number = values.dtype.kind in "biuf"
    content = values.astype(np.float64).tobytes() if is_number else repr(values.tolist()).encode()
    return f"an array of shape {values.shape} with digest {_digest(content)}"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def row_digest(part: Counts, rows: Rows, numbers: Rows, for_rows: ForRows) -> Words:
    r"""Return :math:`\sum_i a_i \sum_v x_{iv} b_v` modulo 2**64 for all rows of a part, shape (1,).

    The words a and b are those of the rows' numbers and of the features. The sums of parts add up to that of all rows,
    in any order and division; other rows, or the same ones in another order, have another, up to a chance of about
    2**-58.
    """
    of_features = _words(FIRST_FEATURE + np.arange(part.n_features, dtype=np.uint64))  # (V,)
    of_rows = _words(numbers.astype(np.uint64))  # (n,)
    digest: Words = (of_rows * part.row_totals(of_features)).sum(keepdims=True)
    return digest


def _words(numbers: Words) -> Words:
    """Return a word for each number that looks as if it were random: the steps of SplitMix64, which never change."""
    words = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)  # modulo 2**64, as everything here
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
