"""What a long fit has finished, in a file, so that another process can go on from there."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, Self
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from mmpca.errors import StoreError
from mmpca.model.archive import write_atomically
from mmpca.places import Place, column_totals

Array = NDArray[np.float64]
Labels = NDArray[np.int32]

# Parameters that another fit must share to go on: they decide topics and labels.
BELONGING = ("n_clusters", "n_topics", "topics", "topic_prior", "start", "n_init", "stabilize", "tol", "random_state")


class Checkpoint:
    """A file with the topics, and the labels after the last epoch.

    Parameters
    ----------
    path : path
        The file; it appears complete or not at all.
    belongs_to : mapping
        Parameters and sizes of the data; a file of others is refused.
    column_totals : array of shape (V,)
        Tell other data of the same sizes.
    """

    def __init__(
        self, path: str | os.PathLike[str], belongs_to: Mapping[str, Any], column_totals: NDArray[Any]
    ) -> None:
        self.path = Path(path)
        digest = hashlib.sha256(np.ascontiguousarray(column_totals, dtype=np.int64).tobytes()).hexdigest()
        self.identity = {name: repr(value) for name, value in belongs_to.items()} | {"data": digest}
        self.beta: Array | None = None
        self.labels: Labels | None = None
        self._read()

    @classmethod
    def of_fit(cls, path: str | os.PathLike[str], parameters: Mapping[str, Any], place: Place) -> Self:
        """Return the checkpoint of a fit; how it is run, in how many threads, does not matter."""
        belongs_to = {name: parameters[name] for name in BELONGING} | {"n_rows": place.n_rows}
        return cls(path, belongs_to, place.total(column_totals, np.arange(place.n_rows)))

    def _read(self) -> None:
        try:
            with np.load(self.path, allow_pickle=False) as arrays:
                found = json.loads(str(arrays["identity"]))
                beta, labels = arrays["beta"], arrays["labels"]
        except FileNotFoundError:
            return
        except (OSError, EOFError, KeyError, ValueError, BadZipFile) as error:
            raise StoreError(
                f"checkpoint {self.path} cannot be read: {error}. Remove it, or give another path."
            ) from error
        for name, value in self.identity.items():
            if found.get(name) != value:
                raise StoreError(
                    f"checkpoint {self.path} belongs to another fit: its {name} is {found.get(name)}, here it is "
                    f"{value}. Give another path, or the data and parameters that it was made with."
                )
        self.beta, self.labels = beta, labels if len(labels) else None

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
        def write(file: IO[bytes]) -> None:
            np.savez(file, identity=np.array(json.dumps(self.identity)), beta=beta, labels=labels)

        write_atomically(self.path, write)
