"""Results as one self-contained HTML page to send to a colleague, or served with all rows to this machine.

Needs Jinja2: ``pip install "mmpca[report]"``.
"""

from mmpca.report.explore import Explorer
from mmpca.report.page import write_report

__all__ = ["Explorer", "write_report"]
