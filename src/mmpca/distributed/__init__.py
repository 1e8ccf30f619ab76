"""The same fit on rows that are spread over threads, processes or machines, through Dask."""

from mmpca.distributed.fitting import fit
from mmpca.distributed.predicting import predict

__all__ = ["fit", "predict"]
