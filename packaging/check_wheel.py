"""Build the package, check its metadata, install the wheel into empty environments and test it there: `make wheel`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
OLDEST = ROOT / "tests" / "oldest.txt"


def main() -> int:
    """Return 0 if the package works in every environment; a command that fails raises."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dependencies", choices=["oldest", "newest"], nargs="+", default=["oldest", "newest"])
    parser.add_argument("--python", nargs="+", default=[sys.executable], metavar="PATH",
                        help="interpreters for the newest dependencies (default: this one)")  # fmt: skip
    options = parser.parse_args()
    environments = [(kind, python) for kind in options.dependencies
                    for python in (options.python if kind == "newest" else [sys.executable])]  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(sys.executable, "-m", "build", "--outdir", folder / "dist", ROOT)
        files = sorted((folder / "dist").iterdir())
        run(sys.executable, "-m", "twine", "check", "--strict", *files)
        (wheel,) = (path for path in files if path.suffix == ".whl")
        for number, (dependencies, python) in enumerate(environments):
            constraints = ["--constraint", str(OLDEST)] if dependencies == "oldest" else []
            check(wheel, python, folder / str(number), constraints)
            print(f"{wheel.name} works with {python} and the {dependencies} dependencies", flush=True)
        dist = ROOT / "dist"
        dist.mkdir(exist_ok=True)
        for path in files:
            (dist / path.name).write_bytes(path.read_bytes())
    print(f"{wheel.name} is in {dist.name}/")
    return 0


def check(wheel: Path, interpreter: str, environment: Path, constraints: list[str]) -> None:
    """Install the wheel alone and run the demo; then add the extras and run the doctests of the installed package."""
    run(interpreter, "-m", "venv", environment)
    python = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *constraints]
    run(*pip, wheel)
    run(python, "-m", "mmpca", "demo")
    run(*pip, f"{wheel}[all]", "pytest", "polars")
    # Python finds the installed package: the folder has no sources.
    run(python, "-m", "pytest", "-q", "--doctest-modules", "--import-mode=importlib", "-p", "no:cacheprovider",
        "-o", "doctest_optionflags=NORMALIZE_WHITESPACE ELLIPSIS", "--pyargs", "mmpca")  # fmt: skip


def run(*command: str | Path) -> None:
    """Run a command in an empty folder, without this environment's settings for Python."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    with tempfile.TemporaryDirectory() as empty:
        subprocess.run(list(map(str, command)), cwd=empty, env={**variables, "MPLBACKEND": "agg"}, check=True)


if __name__ == "__main__":
    sys.exit(main())
