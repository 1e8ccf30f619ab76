"""How good and how sure the fit is, on the page."""

import numpy as np
import pytest

from mmpca import MMPCA
from mmpca.evaluation import summarise
from mmpca.report import write_report
from mmpca.report.quality import quality_of
from mmpca.report.subject import check_subject
from mmpca.simulate import paper_design


@pytest.fixture(scope="module")
def data():
    return paper_design(n_samples=80, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return MMPCA(3, 4, n_init=1, random_state=0).fit(data.X)


def test_cards_say_what_the_summary_does(data, model, tmp_path):
    told = summarise(model, data.X)
    quality = quality_of(check_subject(model, data.X))
    assert quality.coherence == [f"{value:.2f}" for value in told.npmi]
    assert len(quality.certainty) == 3
    assert quality.check[0] == "fine"
    page = write_report(model, tmp_path / "page.html", X=data.X).read_text(encoding="utf-8")
    assert all(f"coherence</abbr> {value:.2f}" in page for value in told.npmi)
    assert quality.check[1] in page


def test_topics_that_are_alike_are_told(data):
    model = MMPCA(2, 3, topics=np.full((3, 917), 1 / 917), refit_topics=False, n_init=1, random_state=0).fit(data.X)
    level, sentence = quality_of(check_subject(model, data.X)).check
    assert level == "care"
    assert "The topics share many features" in sentence


def test_other_rows_and_none_say_nothing_about_the_fit(data, model):
    assert quality_of(check_subject(model)) is None
    assert quality_of(check_subject(model, data.X[:5])) is None


def test_a_single_feature_has_nothing_to_be_compared_with():
    X = np.arange(1, 7)[:, None]
    model = MMPCA(2, 1, n_init=1, random_state=0).fit(X)
    assert quality_of(check_subject(model, X)) is None
