"""Results as one self-contained HTML page to send to a colleague.

Needs Jinja2: ``pip install "mmpca[report]"``.
"""

from mmpca.report.page import write_report

__all__ = ["write_report"]
