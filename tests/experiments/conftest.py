"""Put the toy experiment where other processes find it too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
