"""The MMPCA estimator."""

from mmpca.model.estimator import MMPCA
from mmpca.model.files import ModelFile, load, read_model

__all__ = ["MMPCA", "ModelFile", "load", "read_model"]
