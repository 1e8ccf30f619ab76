"""The files around the package agree with it."""

import re
import tomllib
from pathlib import Path

import mmpca

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def names_and_bounds(requirements):
    return {re.split(r"[^a-z-]", line)[0]: line.partition(">=")[2] for line in requirements}


def test_the_version_is_the_same_everywhere():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {mmpca.__version__}\n" in citation
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    assert f'version: "{mmpca.__version__}"\n' in recipe


def test_the_conda_recipe_has_the_dependencies_of_the_package():
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    lines = re.search(r"  run:\n((?:    - .*\n)+)", recipe)[1].replace("    - ", "").replace(" >=", ">=").splitlines()
    expected = names_and_bounds(PROJECT["dependencies"]) | {"python": PROJECT["requires-python"].removeprefix(">=")}
    assert names_and_bounds(lines) == expected


def test_the_oldest_versions_are_the_lower_bounds_of_the_package():
    oldest = dict(line.split("==") for line in (ROOT / "tests" / "oldest.txt").read_text().splitlines() if "==" in line)
    for name, bound in names_and_bounds(PROJECT["dependencies"]).items():
        assert oldest[name].startswith(bound), name
