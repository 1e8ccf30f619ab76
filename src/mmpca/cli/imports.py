"""Imports that a command can do without: they would take longer than reading its input.

scikit-learn imports pandas, which it finds by itself where it gets a data frame, and ``scipy.stats``, which only some
of its parts use; a wildcard import in SciPy makes NumPy load all its parts, down to the Fortran tools; numba imports
coverage, where that is installed, and a reader of settings that few have. Together this is half of the time that it
takes to start. What is put off here is loaded at the first use.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from mmpca.cli.docstrings import unread_docstrings

PUT_OFF = ("numpy.f2py", "numpy.ma", "numpy.testing", "scipy.stats", "yaml")
_lock = threading.RLock()


class LaterModule(ModuleType):
    """A module that is loaded in place when it is first asked for anything."""

    def __init__(self, spec: ModuleSpec) -> None:
        super().__init__(spec.name)
        # No __path__: who imports a part of it asks for that, and so loads the whole first, as always.
        self.__spec__, self.__loader__, self.__file__ = spec, spec.loader, spec.origin

    def __getattr__(self, name: str) -> Any:
        with _lock:  # other threads wait
            if type(self) is LaterModule and "__path__" not in vars(self):
                _load(self)
            elif type(self) is LaterModule:  # it looks for something in itself while it is loaded
                raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
        return getattr(self, name)


def _load(module: LaterModule) -> None:
    """Do what an import would have done, in place."""
    spec = module.__spec__
    assert spec is not None
    assert spec.loader is not None
    module.__package__, module.__path__ = spec.parent, list(spec.submodule_search_locations or [])
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del module.__path__  # the next who asks tries again
        raise
    module.__class__ = ModuleType  # type: ignore[assignment]


@contextmanager
def spared_imports() -> Iterator[None]:
    """Let what is imported meanwhile do so without what it does not need; what is loaded already stays as it is."""
    with unread_docstrings(), left_out("coverage"):
        _prepare()
        yield


def _prepare() -> None:
    for name in PUT_OFF:
        put_off(name)
    if "sklearn" not in sys.modules:
        # A private part of scikit-learn: where it has moved, starting takes longer, and nothing else.
        with left_out("pandas"), suppress(ImportError):
            import_module("sklearn.utils.fixes")


@contextmanager
def left_out(name: str) -> Iterator[None]:
    """Let a module look as if it were not installed, unless it has been imported."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]


def put_off(name: str) -> None:
    """Let a module be imported at its first use, unless it has been, or is not there."""
    package, _, own_name = name.rpartition(".")
    if name in sys.modules:
        return
    parent = import_module(package) if package else None
    spec = find_spec(name)
    if spec is not None and spec.loader is not None:
        sys.modules[name] = module = LaterModule(spec)
        if parent is not None:
            setattr(parent, own_name, module)
