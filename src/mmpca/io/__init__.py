"""Count matrices in files: read from every common format, written to two."""

from mmpca.io.formats import detect_format, read_counts, write_counts
from mmpca.io.table import CountTable

__all__ = ["CountTable", "detect_format", "read_counts", "write_counts"]
