"""The command line: what the demo shows, what is refused, and what a command does not import."""

import re
import subprocess
import sys

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from typer.testing import CliRunner

import mmpca
from mmpca import MMPCA
from mmpca.cli.app import app
from mmpca.cli.demo import BAR_WIDTH
from mmpca.simulate import paper_design

# Wide enough that no line is folded, and without colours.
ENV = {"COLUMNS": "160", "NO_COLOR": "1", "TERM": "dumb"}


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env=ENV)


def table(output, title):
    """Return the cells of a table's rows, the head left out."""
    lines = iter(output.splitlines())
    assert any(line.startswith(title) for line in lines), output
    cells = []
    for line in lines:
        words = [word.strip() for word in re.split(r"[│|]|\s{2,}", line) if word.strip()]
        if words and words[0].isdigit():
            cells.append(words)
        elif cells:
            return cells
    return cells


# --- demo -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[{}, {"noise": 0.0, "balance": 0.7, "seed": 3}], ids=["defaults", "options"])
def demo(request):
    """Return the options, the result of the command, and the same data and fit made here."""
    options = [part for name, value in request.param.items() for part in (f"--{name}", value)]
    result = invoke("demo", "--jobs", 1, *options)
    settings = {"noise": 0.2, "balance": 1.0, "seed": 0} | request.param
    seed = settings.pop("seed")
    data = paper_design(**settings, random_state=seed)
    return settings | {"seed": seed}, result, data, MMPCA(6, 4, random_state=seed).fit(data.X)


def test_the_demo_ends_well_and_says_what_it_simulated(demo):
    settings, result, _, _ = demo
    assert result.exit_code == 0, result.output
    assert "400 documents of 250 words, 917 distinct words, 6 clusters that mix 4 topics" in result.output
    for name, value in settings.items():
        assert f"{name} {value:g}" in result.output


def test_the_demo_prints_bound_icl_and_agreement_of_the_fit(demo):
    _, result, data, model = demo
    assert f"bound {model.bound_:,.1f} after {model.n_epochs_} epochs (no single move improves it)" in result.output
    assert f"ICL {model.icl_:,.1f}" in result.output
    ari = adjusted_rand_score(data.labels, model.labels_)
    assert f"adjusted Rand index {ari:.3f} (1 is perfect)" in result.output
    assert ari > 0.9


def test_the_demo_prints_a_row_for_each_cluster_with_its_size_truth_and_shares(demo):
    _, result, data, model = demo
    rows = table(result.output, "Clusters: size, main true cluster, shares of the topics")
    assert [int(row[0]) for row in rows] == list(range(6))
    assert [int(row[1]) for row in rows] == np.bincount(model.labels_).tolist()
    for q, row in enumerate(rows):
        truth = np.bincount(data.labels[model.labels_ == q], minlength=6)
        assert row[2] == f"{truth.argmax()} ({truth.max() / truth.sum():.0%})"
        shares = [float(share) for share in re.findall(r"\b[01]\.\d\d\b", " ".join(row[3:]))]
        np.testing.assert_allclose(shares, model.cluster_topics_[q], atol=0.0051)


def test_the_bars_of_the_demo_are_as_long_as_the_shares(demo):
    _, result, _, model = demo
    rows = table(result.output, "Clusters: size, main true cluster, shares of the topics")
    for shares, row in zip(model.cluster_topics_, rows, strict=True):
        for share, bar in zip(shares, re.findall(r"\d\.\d\d ?([█▏▎▍▌▋▊▉]*)", " ".join(row[3:])), strict=True):
            eighths = 8 * bar.count("█") + sum(" ▏▎▍▌▋▊▉".index(cell) for cell in bar if cell != "█")
            assert eighths == round(share * BAR_WIDTH * 8)


def test_the_demo_prints_a_row_for_each_topic_with_its_most_probable_words(demo):
    _, result, data, model = demo
    rows = table(result.output, "Topics: most probable words")
    assert [int(row[0]) for row in rows] == list(range(4))
    for topic, row in zip(model.components_, rows, strict=True):
        top = np.argsort(-topic, kind="stable")[:8]
        assert row[1] == ", ".join(f"{data.feature_names[v]} {100 * topic[v]:.1f}" for v in top)


# --- options ----------------------------------------------------------------------------------------------------


def test_help_names_the_commands():
    result = invoke("--help")
    assert result.exit_code == 0
    assert re.search(r"\bdemo\b\s+Simulate the paper's design", result.output)
    assert "--version" in result.output


def test_help_of_the_demo_names_its_options():
    result = invoke("demo", "--help")
    assert result.exit_code == 0
    for option in ("--noise", "--balance", "--seed", "--jobs"):
        assert option in result.output


def test_no_command_shows_the_help():
    assert "Usage:" in invoke().output


def test_the_version_is_printed():
    result = invoke("--version")
    assert result.exit_code == 0
    assert result.output.strip() == mmpca.__version__


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--noise", "1.5"),
        ("--noise", "-0.1"),
        ("--noise", "much"),
        ("--balance", "0"),
        ("--balance", "2"),
        ("--seed", "-1"),
        ("--seed", "1.5"),
        ("--jobs", "many"),
        ("--jobs", "0"),
        ("--seed", "4294967296"),
    ],
)
def test_a_bad_value_is_refused_by_the_name_of_its_option(option, value):
    result = invoke("demo", option, value)
    assert result.exit_code == 2
    assert f"Invalid value for '{option}'" in result.output


@pytest.mark.parametrize("arguments", [["nosuch"], ["demo", "--nosuch"], ["demo", "extra"]])
def test_unknown_commands_and_options_are_refused(arguments):
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert arguments[-1] in result.output


# --- processes --------------------------------------------------------------------------------------------------


def run(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_the_package_runs_as_a_module():
    done = run("-m", "mmpca", "--version")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == mmpca.__version__


def test_the_package_runs_as_a_module_and_shows_its_help():
    done = run("-m", "mmpca", "--help")
    assert done.returncode == 0, done.stderr
    assert "demo" in done.stdout


HEAVY = "{'numba', 'sklearn', 'scipy', 'pandas', 'mmpca.kernels', 'mmpca.model'}"


@pytest.mark.parametrize(
    "code",
    [
        "import mmpca; mmpca.__version__",
        "import mmpca.cli",
        "from mmpca.cli.app import app; app(['--help'], standalone_mode=False)",
        "from mmpca.cli.app import app; app(['demo', '--help'], standalone_mode=False)",
    ],
    ids=["import mmpca", "import mmpca.cli", "mmpca --help", "mmpca demo --help"],
)
def test_nothing_heavy_is_imported_before_it_is_needed(code):
    done = run("-c", f"{code}\nimport sys\nprint('imported:', sorted({HEAVY} & set(sys.modules)))")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "imported: []"


def test_an_unknown_name_of_the_package_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'mmpca' has no attribute 'Nosuch'"):
        mmpca.Nosuch  # noqa: B018
