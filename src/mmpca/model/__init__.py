"""The MMPCA estimator."""

from mmpca.model.estimator import MMPCA

__all__ = ["MMPCA"]
