import re

import numpy as np
import pytest

from mmpca.paper.pathology import (
    BENIGN,
    LABEL_WEIGHTS,
    LOBULAR,
    NON_SPECIAL,
    SUBTYPE_WEIGHTS,
    expand,
    grammar,
    pathology_reports,
)


@pytest.fixture(scope="module")
def reports():
    return pathology_reports(n=866, random_state=0)


def scores_of(text):
    """Return the Nottingham scores of a report: tubules, nuclei, mitoses; None if one is missing."""
    patterns = (
        r"Tubule formation .*?\(score (\d)\)",
        r"pleomorphism .*?\(score (\d)\)",
        r"Mitotic count .*?\(score (\d)\)",
    )
    found = [re.search(pattern, text) for pattern in patterns]
    return [None if match is None else int(match[1]) for match in found]


def share_with(reports, kind, words):
    return np.mean(
        [words in text for text, subtype in zip(reports.texts, reports.subtypes, strict=True) if subtype == kind]
    )


def test_the_labels_have_the_numbers_of_the_paper(reports):
    assert {label: int((reports.labels == label).sum()) for label in LABEL_WEIGHTS} == LABEL_WEIGHTS


@pytest.mark.parametrize("n", [1, 2, 7, 100, 901])
def test_there_are_as_many_reports_as_asked_for_each_with_a_name_of_its_own(n):
    reports = pathology_reports(n, random_state=1)
    assert len(reports.texts) == len(reports.labels) == len(reports.subtypes) == len(set(reports.names)) == n


def test_subtypes_refine_the_labels(reports):
    assert set(reports.subtypes[reports.labels == NON_SPECIAL]) == set(SUBTYPE_WEIGHTS)
    assert set(reports.subtypes[reports.labels == LOBULAR]) == {"lobular"}
    assert set(reports.subtypes[reports.labels == BENIGN]) == {"benign"}


def test_the_same_seed_gives_the_same_reports_and_another_seed_others():
    first, again, other = (pathology_reports(30, random_state=seed) for seed in (5, 5, 6))
    assert first.texts == again.texts
    assert first.texts != other.texts
    np.testing.assert_array_equal(first.subtypes, again.subtypes)


def test_all_are_called_synthetic(reports):
    assert all(name.startswith("synthetic-") for name in reports.names)


def test_no_report_states_its_conclusion(reports):
    conclusions = (
        r"carcinoma|malign|benign|lobular|\bductal|fibroadenoma|grade|differentiated|stroma-rich|conclusion|diagnos"
    )
    assert not re.search(conclusions, "\n".join(reports.texts), flags=re.IGNORECASE)


def test_all_choices_are_made_and_all_sentences_are_sentences(reports):
    for text in reports.texts:
        assert not re.search(r"[\[\]<>|]", text)
        assert text.endswith(".")
        assert 20 <= len(text.split()) <= 250


def test_nottingham_scores_fit_the_grade_of_each_subtype(reports):
    # Grade 1: a sum of 3 to 5; grade 2: 6 and 7; grade 3: 8 and 9.
    limits = {"high grade": (8, 9), "poorly differentiated": (7, 9), "well differentiated": (3, 5), "lobular": (5, 7)}
    for text, subtype in zip(reports.texts, reports.subtypes, strict=True):
        scores = scores_of(text)
        if subtype == "benign":
            assert scores == [None] * 3
        if subtype in limits:
            assert limits[subtype][0] <= sum(scores) <= limits[subtype][1]


def test_counts_and_scores_of_mitoses_agree(reports):
    # Ten fields of 0.59 mm: up to 9 is score 1, 10 to 19 score 2, 20 and more score 3.
    found = re.findall(r"Mitotic count (\d+) in ten fields of 0.59 mm \(score (\d)\)", "\n".join(reports.texts))
    assert len(found) > 500
    for count, score in found:
        assert int(score) == 1 + (int(count) >= 10) + (int(count) >= 20)


def test_kinds_have_the_findings_that_define_them(reports):
    assert share_with(reports, "lobular", "discohesive cells in single file") == 1
    assert share_with(reports, "lobular", "E-cadherin membrane staining lost") > 0.6
    assert share_with(reports, "in situ with microcalcifications", "comedonecrosis") > 0.8
    assert share_with(reports, "stroma-rich", "desmoplastic, rich in collagen") > 0.6
    for kind in SUBTYPE_WEIGHTS:
        assert share_with(reports, kind, "E-cadherin membrane staining lost") == 0
    assert share_with(reports, "benign", "infiltrated by") == share_with(reports, "benign", "invaded by") == 0


def test_kinds_share_vocabulary_and_no_finding_but_the_defining_ones_is_certain(reports):
    words = {
        kind: set(" ".join(np.array(reports.texts)[reports.subtypes == kind]).lower().split())
        for kind in SUBTYPE_WEIGHTS
    }
    for first in words.values():
        for second in words.values():
            assert len(first & second) / len(first | second) > 0.6
    typical = {"well differentiated": "apical snouts", "high grade": "emboli", "poorly differentiated": "syncytial"}
    for kind, words in typical.items():
        assert 0.5 < share_with(reports, kind, words) < 1
    borrowed = [share_with(reports, kind, "syncytial") for kind in SUBTYPE_WEIGHTS if kind != "poorly differentiated"]
    assert 0 < sum(borrowed) < 0.2


def test_every_degree_that_a_kind_weighs_has_a_sentence():
    sentences = grammar()["sentences"]
    for weights in grammar()["kinds"].values():
        for finding, degrees in weights.items():
            assert set(degrees) <= {*sentences[finding], "silent"}


def test_expand_makes_every_choice():
    rng = np.random.default_rng(0)
    drawn = {expand(rng, "[a|b <1-2>] x") for _ in range(100)}
    assert drawn == {"a x", "b 1 x", "b 2 x"}


@pytest.mark.parametrize("n", [0, -1, 2.5, "many"])
def test_an_invalid_number_of_reports_raises(n):
    with pytest.raises(ValueError, match=r"^n\b"):
        pathology_reports(n)
