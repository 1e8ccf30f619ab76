"""From a model file to a fitted model."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from mmpca.model import files
from mmpca.model.estimator import MMPCA


class ModelFile(NamedTuple):
    """What a model file holds.

    Attributes
    ----------
    model : MMPCA
        The fitted model.
    text : dict or None
        How texts were turned into counts: settings and vocabulary for :meth:`mmpca.text.CountTexts.from_settings`.
    versions : dict of str
        The versions of Python, mmpca and other packages that wrote the file.
    """

    model: MMPCA
    text: dict[str, Any] | None
    versions: dict[str, str]


def load(path: str | os.PathLike[str]) -> MMPCA:
    """Read a model that :meth:`MMPCA.save` wrote.

    Loading runs no code from the file and writes nothing: files of strangers are safe to open.

    Parameters
    ----------
    path : path

    Returns
    -------
    model : MMPCA
        It predicts, transforms, scores and samples bit for bit as the saved one did.

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
    ...     again = mmpca.load(f"{folder}/clusters.mmpca")
    >>> bool((again.predict(data.X) == model.predict(data.X)).all())
    True
    """
    return read_model(path).model


def read_model(path: str | os.PathLike[str]) -> ModelFile:
    """Read a model file with all that it holds; :func:`load` returns the model alone."""
    contents = files.read(path)
    model = MMPCA(**contents.parameters)
    for name, value in contents.attributes.items():
        setattr(model, name, value)
    if contents.output is not None:
        model.set_output(transform=contents.output)
    return ModelFile(model, contents.text, contents.versions)
