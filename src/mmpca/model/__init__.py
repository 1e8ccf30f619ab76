"""The MMPCA estimator, for counts and for texts."""

from mmpca.model.estimator import MMPCA
from mmpca.model.files import ModelFile, load, read_model
from mmpca.model.texts import TextClusters

__all__ = ["MMPCA", "ModelFile", "TextClusters", "load", "read_model"]
