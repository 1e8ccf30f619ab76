"""The experiments by name."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from mmpca.experiments.experiment import Experiment
from mmpca.experiments.intro import Intro
from mmpca.experiments.methods import FAMILIES
from mmpca.experiments.noise import Noise
from mmpca.experiments.reports import BiopsyReports
from mmpca.experiments.runtime import Runtime
from mmpca.experiments.sample_size import SampleSize
from mmpca.experiments.selection import Selection

EXPERIMENTS: dict[str, type[Experiment]] = {
    kind.name: kind for kind in (Intro, Noise, Selection, SampleSize, Runtime, BiopsyReports)
}


def make(name: str, *, quick: bool = False, **options: Any) -> Experiment:
    """Return an experiment with its options.

    Parameters
    ----------
    name : str
        One of `EXPERIMENTS`.
    quick : bool, default=False
        In a size that takes less than two minutes, unless the options say otherwise.
    **options
        Fields of the experiment; those that are None keep their default.

    Returns
    -------
    Experiment

    Examples
    --------
    >>> from mmpca.experiments import make
    >>> make("noise", replicates=10).replicates
    10
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"the experiment must be one of {', '.join(EXPERIMENTS)}, but it is {name!r}.")
    kind = EXPERIMENTS[name]
    given = {option: value for option, value in options.items() if value is not None}
    _check_families(given.get("families", ()))
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    unknown = [option for option in given if option not in known]
    if unknown:
        raise ValueError(f"{name} has no option {unknown[0]!r}; its options are {', '.join(known)}.")
    return replace(kind.quick() if quick else kind(), **given)  # type: ignore[type-var]


def _check_families(families: tuple[str, ...]) -> None:
    for family in families:
        if family not in FAMILIES:
            raise ValueError(f"methods must be names out of {', '.join(FAMILIES)}, but one is {family!r}.")
