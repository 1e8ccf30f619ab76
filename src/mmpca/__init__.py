"""Clustering of count data through a mixture of multinomial PCA."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mmpca.model import MMPCA, load
    from mmpca.selection import MMPCASearch

__all__ = ["MMPCA", "MMPCASearch", "__version__", "load"]
__version__ = "0.1.0.dev0"


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: the command line's help needs no numba."""
    if name in ("MMPCA", "load"):
        from mmpca import model

        return getattr(model, name)
    if name == "MMPCASearch":
        from mmpca.selection import MMPCASearch

        return MMPCASearch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
