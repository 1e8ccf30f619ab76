"""Draw the output of ``mmpca demo`` as docs/demo.svg, the picture in the README."""

import io
import re
from pathlib import Path

from rich.console import Console

from mmpca.cli.demo import run_demo


def main() -> None:
    """Run the demo on a recording console and save its output."""
    console = Console(record=True, width=82, file=io.StringIO())
    run_demo(console, noise=0.2, balance=1.0, seed=0, jobs=1)
    # Font faces would be fetched from the network; without them the picture is self-contained.
    svg = re.sub(r"@font-face\s*{.*?}", "", console.export_svg(title="mmpca demo"), flags=re.DOTALL)
    Path(__file__).with_name("demo.svg").write_text(svg)


if __name__ == "__main__":
    main()
