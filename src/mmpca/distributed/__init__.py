"""Fit and predict rows that are spread over files, processes or machines, through Dask."""

from mmpca.distributed.fitting import fit, predict

__all__ = ["fit", "predict"]
