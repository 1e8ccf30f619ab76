"""Files of counts: reading every common format, writing two."""

from mmpca.io.detection import detect_format
from mmpca.io.reading import read_counts
from mmpca.io.table import CountTable
from mmpca.io.writing import write_counts

__all__ = ["CountTable", "detect_format", "read_counts", "write_counts"]
