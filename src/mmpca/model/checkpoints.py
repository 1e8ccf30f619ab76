"""Checkpoints: the finished work of a long fit, in a file from which another process can resume."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mmpca.backend import RowBackend, Rows, Threads, column_totals
from mmpca.counts import Counts
from mmpca.errors import StoreError
from mmpca.model.rules import SUM_TOLERANCE
from mmpca.store import check_folder, first_difference, read_arrays, write_arrays

Array = NDArray[np.float64]
Labels = NDArray[np.int32]
Words = NDArray[np.uint64]

SCHEMA = 3  # version of the file format; the first version had no number
# Parameters that must be the same when a fit resumes: they determine topics and labels.
DECISIVE = (
    "n_clusters", "n_topics", "topics", "topic_prior", "start", "n_init", "algorithm", "dispersion", "stabilize",
    "tol", "random_state",
)  # fmt: skip
FIRST_FEATURE = np.uint64(2**63)  # number of the first feature, beyond those of all rows


class Checkpoint:
    """A file with the topics of a fit, and the labels after its last epoch.

    Parameters
    ----------
    path : path
        The file; it is written atomically.
    identity : mapping of str to JSON value
        Identifies data and parameters; the file of another fit raises StoreError.

    Attributes
    ----------
    beta : array of shape (K, V) or None
    labels : array of int32, shape (N,), or None
    source : str or None
        Where the topics come from, as in `MMPCA.topics_source_`.
    """

    def __init__(self, path: str | os.PathLike[str], identity: Mapping[str, Any]) -> None:
        self.path, self.identity = Path(path), dict(identity)
        self.beta: Array | None = None
        self.labels: Labels | None = None
        self.source: str | None = None
        self._read()

    @classmethod
    def of_fit(cls, path: str | os.PathLike[str], parameters: Mapping[str, Any], backend: RowBackend) -> Self:
        """Open the checkpoint of a fit; parameters that do not change results, such as `n_jobs`, may differ."""
        identity = {name: plain_value(parameters[name]) for name in DECISIVE}
        every = np.arange(backend.n_rows)
        digest = backend.map_reduce(row_digest, every, every)[0]
        sizes = {"n_rows": int(backend.n_rows), "n_features": int(backend.n_features)}
        checkpoint = cls(path, identity | sizes | {"rows": f"{int(digest):016x}"})
        if checkpoint.beta is not None:
            checkpoint._check_contents(backend.map_reduce(column_totals, every))
        return checkpoint

    def _read(self) -> None:
        try:
            arrays = read_arrays(self.path)
            schema, found = int(arrays.get("schema", 1)), dict(json.loads(str(arrays["identity"])))
            beta, labels, source = arrays["beta"], arrays["labels"], str(arrays.get("source", "lda"))
        except FileNotFoundError:
            check_folder(self.path)  # now rather than after hours of work
            return
        except OSError as error:
            raise StoreError(
                f"Cannot read the checkpoint {self.path}: {error}. Choose another path.", path=self.path
            ) from error
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise StoreError(
                f"Cannot read the checkpoint {self.path}: it is damaged, or not a checkpoint. Remove it, or choose "
                "another path.",
                path=self.path,
            ) from error
        if schema != SCHEMA:
            raise StoreError(
                f"The checkpoint {self.path} was written by another version of mmpca: its schema is {schema}, but this "
                f"version uses {SCHEMA}. Remove it, or choose another path.",
                path=self.path,
            )
        self._check_identity(found)
        self.beta, self.labels, self.source = beta, labels if labels.size else None, source

    def _check_identity(self, found: Mapping[str, Any]) -> None:
        name = first_difference(found, self.identity)
        if name is None:
            return
        reason = f"its {name} is {found.get(name)}, but this fit's is {self.identity.get(name)}"
        if name == "rows":
            reason = "its rows are different, or in another order"
        raise StoreError(
            f"The checkpoint {self.path} belongs to another fit: {reason}. Choose another path, or use the data and "
            "parameters it was created with.",
            path=self.path,
        )

    def _check_contents(self, totals: NDArray[Any]) -> None:
        """Raise StoreError if topics and labels are impossible for rows with these feature totals, (V,)."""
        beta, labels, sizes = self.beta, self.labels, self.identity
        assert beta is not None
        if beta.dtype != np.float64 or beta.shape != (sizes["n_topics"], sizes["n_features"]):
            wrong = f"topics have type {beta.dtype} and shape {beta.shape}"
        elif not ((beta >= 0).all() and (np.abs(beta.sum(axis=1) - 1.0) <= SUM_TOLERANCE).all()):
            wrong = "topics are not probabilities that sum to one"
        elif ((totals > 0) & ~beta.any(axis=0)).any():
            wrong = "a feature that occurs has probability zero in all topics"
        elif labels is None:
            return
        elif labels.dtype != np.int32 or labels.shape != (sizes["n_rows"],):
            wrong = f"labels have type {labels.dtype} and shape {labels.shape}"
        elif not np.array_equal(np.unique(labels), np.arange(sizes["n_clusters"])):
            wrong = f"labels are not the numbers of {sizes['n_clusters']} clusters, each with a row"
        else:
            return
        raise StoreError(
            f"The checkpoint {self.path} is damaged: its {wrong}. Remove it, or choose another path.", path=self.path
        )

    def save_topics(self, beta: Array, source: str) -> None:
        """Save the topics and their source."""
        self.beta, self.source = beta, source
        self._write(np.empty(0, dtype=np.int32))

    def save_labels(self, labels: Labels) -> None:
        """Save the labels after an epoch, beside the topics."""
        self._write(labels)

    def _write(self, labels: Labels) -> None:
        identity = json.dumps(self.identity)
        found = {"beta": self.beta, "labels": labels, "source": self.source}
        write_arrays(self.path, {"schema": SCHEMA, "identity": identity, **found})


# --- identity ---------------------------------------------------------------------------------------------------


def plain_value(parameter: Any) -> Any:
    """Return a parameter as a JSON value: equal parameters give equal values in any process.

    Examples
    --------
    >>> plain_value(np.int64(3)), plain_value(0.5), plain_value("lda")
    (3, 0.5, 'lda')
    >>> plain_value([0, 1, 1]) == plain_value(np.array([0, 1, 1], dtype=np.int32))
    True
    """
    if parameter is None or parameter is np.random:  # scikit-learn treats the module as None
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
    # Types do not matter: labels are converted to whole numbers, topics to doubles; other values raise errors later.
    is_number = values.dtype.kind in "biuf"
    content = values.astype(np.float64).tobytes() if is_number else repr(values.tolist()).encode()
    return f"an array of shape {values.shape} with digest {_digest(content)}"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def row_digest(block: Counts, rows: Rows, numbers: Rows, threads: Threads) -> Words:
    r"""Return :math:`\sum_i a_i \sum_v x_{iv} b_v` modulo 2**64 over some rows of a block, shape (1,).

    The words a and b belong to the numbers of the rows and to the features. The sums of blocks add up to that of all
    rows, however the rows are divided. Other rows, or the same rows in another order, have a different sum, except with
    a probability of about 2**-58.
    """
    of_features = _words(FIRST_FEATURE + np.arange(block.n_features, dtype=np.uint64))  # (V,)
    of_rows = _words(numbers.astype(np.uint64))  # (n,)
    digest: Words = (of_rows * block.take(rows).row_totals(of_features)).sum(keepdims=True)
    return digest


def _words(numbers: Words) -> Words:
    """Return a pseudorandom word for each number, by the steps of SplitMix64."""
    words = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)  # modulo 2**64, like everything here
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
