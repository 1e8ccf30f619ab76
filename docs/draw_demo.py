"""Draw what ``mmpca demo`` shows as docs/demo.svg, the picture of the README."""

import io
import re
from pathlib import Path

from rich.console import Console

from mmpca.cli.demo import run


def main() -> None:
    """Run the demo on a recording console and save what it printed."""
    console = Console(record=True, width=82, file=io.StringIO())
    run(noise=0.2, balance=1.0, seed=0, jobs=1, console=console)
    # Without its font faces, which would be fetched from the network, the picture stands by itself.
    svg = re.sub(r"@font-face\s*{.*?}", "", console.export_svg(title="mmpca demo"), flags=re.DOTALL)
    Path(__file__).with_name("demo.svg").write_text(svg)


if __name__ == "__main__":
    main()
