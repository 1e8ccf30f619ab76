"""Results as a self-contained HTML page to share, or as a local web server for browsing all rows.

Needs Jinja2: ``pip install "mmpca[report]"``.
"""

from mmpca.report.explorer import Explorer
from mmpca.report.page import Report, write_report

__all__ = ["Explorer", "Report", "write_report"]
