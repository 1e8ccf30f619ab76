"""Clustering of count data with a mixture of multinomial PCA."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mmpca.model import MMPCA, TextClusters, load
    from mmpca.selection import MMPCASearch

__all__ = ["MMPCA", "MMPCASearch", "TextClusters", "__version__", "load"]
__version__ = "0.1.0"

_MODULES = {
    "MMPCA": "mmpca.model",
    "TextClusters": "mmpca.model",
    "load": "mmpca.model",
    "MMPCASearch": "mmpca.selection",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562), so that ``mmpca --help`` does not wait for numba."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
