"""The leaderboard: its table, its page, and systems that find clear clusters."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from leaderboard import SYSTEMS, Fit, markdown, recorded, update
from public_data import SETS, DataPackageError, labeled, package_folder

NUMBERS = {"ari": 0.5, "nmi": 0.6, "seconds": 3.2, "megabytes": 12.0}
RESULTS = {
    Fit("oaks", "scikit-learn: LDA", 0): NUMBERS,
    Fit("digits", "scikit-learn: LDA", 0): {**NUMBERS, "ari": 0.3, "seconds": 4.0, "megabytes": 8.0},
    Fit("oaks", "mmpca: MMPCA", 0): {**NUMBERS, "ari": 0.9},
    Fit("digits", "mmpca: MMPCA", 0): {**NUMBERS, "ari": 0.8},
    Fit("oaks", "gensim: LDA", 0): dict.fromkeys(NUMBERS, np.nan),
}


def test_the_table_is_sorted_by_mean_ari_and_a_failed_fit_is_a_dash():
    head, _, *lines = [line.strip("| ").split(" | ") for line in markdown(RESULTS).splitlines()]
    assert head == ["system", "oaks", "digits", "mean ARI", "mean NMI", "seconds", "MB"]
    assert lines == [
        ["mmpca: MMPCA", "0.90", "0.80", "0.85", "0.60", "6", "12"],
        ["scikit-learn: LDA", "0.50", "0.30", "0.40", "0.60", "7", "12"],
        ["gensim: LDA", "-", "-", "-", "-", "-", "-"],
    ]


def test_the_page_keeps_its_text_and_gets_the_table_and_a_file(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n<!-- begin leaderboard -->\nold\n<!-- end leaderboard -->\n\nend\n")
    for _ in range(2):  # a second update changes nothing
        update(page, RESULTS)
        text = page.read_text()
        assert text.startswith("# Title\n\n<!-- begin leaderboard -->\n\n| system |")
        assert text.endswith("|\n\n<!-- end leaderboard -->\n\nend\n")
    assert len((tmp_path / "page.csv").read_text().splitlines()) == 1 + len(RESULTS)
    np.testing.assert_equal(recorded(page), RESULTS)  # NaN for the failed fit


def test_a_page_without_a_file_has_no_recorded_numbers(tmp_path):
    assert recorded(tmp_path / "page.md") == {}


def test_there_are_twelve_systems_and_keys_are_unique():
    assert len(SYSTEMS) == 12
    assert len({Fit(data, system, 0).key for data in SETS for system in SYSTEMS}) == len(SETS) * len(SYSTEMS)


@pytest.mark.parametrize("name", [name for name in SYSTEMS if name.startswith(("mmpca", "scikit-learn"))])
@pytest.mark.filterwarnings("ignore")  # about convergence
def test_a_system_finds_clusters_without_common_features(name):
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 40)
    profiles = np.repeat(np.eye(2), 15, axis=1) / 15  # (2, 30)
    X = sparse.csr_array(np.array([rng.multinomial(60, profiles[q]) for q in truth]))
    assert adjusted_rand_score(truth, SYSTEMS[name](X, 2, 0)) == pytest.approx(1.0)


def test_empty_rows_and_columns_are_left_out_with_their_classes():
    data = labeled([[1, 0, 2], [0, 0, 0], [3, 0, 1]], ["b", "c", "a"])
    np.testing.assert_array_equal(data.X.toarray(), [[1, 2], [3, 1]])
    np.testing.assert_array_equal(data.classes, [1, 0])


def test_a_missing_package_is_named():
    with pytest.raises(DataPackageError, match="pip install --no-deps some-package"):
        package_folder("no_such_package.text", "some-package")
