"""Make the toy experiment importable by worker processes too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
