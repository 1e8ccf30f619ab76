"""Models of rows whose topic shares vary: one probability everywhere, and calibrated ones."""

import numpy as np
import pytest

from mmpca import MMPCA, load
from mmpca.backend import LocalRows
from mmpca.counts import as_counts
from mmpca.distributed import fitting
from mmpca.errors import ModelFileError


def draw(concentration, n_samples, seed=1):
    """Draw rows of three clusters that mix three topics, with shares that vary from row to row."""
    rng = np.random.default_rng(seed)
    topics = np.random.default_rng(0).dirichlet(np.full(60, 0.1), 3)
    theta = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.15, 0.15, 0.7]])
    truth = rng.integers(3, size=n_samples)
    shares = [rng.dirichlet(concentration * theta[q]) for q in truth]
    return np.array([rng.multinomial(80, p @ topics) for p in shares]), truth


@pytest.fixture(scope="module")
def X():
    return draw(10.0, 300)[0]


@pytest.fixture(scope="module")
def model(X):
    return MMPCA(3, 3, dispersion="shares", topics="lda", n_init=2, random_state=0).fit(X)


def test_labels_and_parameters_are_those_of_the_search(X, model):
    plain = MMPCA(3, 3, topics="lda", n_init=2, random_state=0).fit(X)
    for name in ("labels_", "weights_", "components_", "cluster_topics_", "bound_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(plain, name))
    assert not hasattr(plain, "concentration_")


def test_the_concentration_is_near_the_truth(model):
    assert model.concentration_ == pytest.approx(10.0, rel=0.4)


def test_probabilities_of_new_rows_are_calibrated_where_multinomial_ones_are_not(X, model):
    new, truth = draw(10.0, 3000, seed=2)
    plain = MMPCA(3, 3, topics="lda", n_init=2, temperature=1, random_state=0).fit(X)
    classes = np.array([np.bincount(draw(10.0, 300)[1][model.labels_ == q]).argmax() for q in range(3)])
    gaps = {}
    for name, fitted in (("shares", model), ("multinomial", plain)):
        probabilities = fitted.predict_proba(new)
        is_right = classes[probabilities.argmax(axis=1)] == truth
        gaps[name] = probabilities.max(axis=1).mean() - is_right.mean()
    assert abs(gaps["shares"]) < 0.04 < 0.06 < gaps["multinomial"]


def test_everyone_tells_the_same_probability(X, model):
    fitted, at = model.leave_one_out_proba(X), np.arange(300)
    explained = model.explain(X, range(20))
    np.testing.assert_allclose([why.probability for why in explained], fitted[at[:20], model.labels_[:20]])
    backend = LocalRows(as_counts(X))
    own = fitting.score_rows(fitting.own_rows, model, backend, model.labels_)
    np.testing.assert_array_equal(own, fitted[at, model.labels_])
    new = model.predict_proba(X)
    np.testing.assert_array_equal(fitting.score_rows(fitting.probability_rows, model, backend), new)
    np.testing.assert_array_equal(model.predict(X), new.argmax(axis=1))


def test_verdicts_follow_the_probability(X, model):
    for why in model.explain(X):
        expected = "clear" if why.probability >= 0.99 else "likely" if why.probability >= 0.75 else "borderline"
        assert why.verdict == expected


def test_the_terms_of_an_explanation_add_up(X, model):
    for why in model.explain(X, range(30), n_features=3):
        listed = sum(part.nats for part in why.evidence_for + why.evidence_against)
        assert listed + sum(nats for _, nats in why.other_terms) == pytest.approx(why.margin)


def test_a_fitted_row_is_judged_without_itself(X, model):
    fitted, new = model.leave_one_out_proba(X), model.predict_proba(X)
    own, at = model.labels_, np.arange(300)
    assert (fitted[at, own] <= new[at, own] + 1e-12).mean() > 0.95
    assert (fitted[at, own] < new[at, own]).any()


def test_drawn_rows_vary_in_their_topic_shares(model):
    drawn, labels = model.sample(2000, lengths=80, random_state=0)
    again = MMPCA(3, 3, topics=model.components_, start=labels, max_epochs=0, dispersion="shares").fit(drawn)
    assert again.concentration_ == pytest.approx(model.concentration_, rel=0.25)


def test_predictions_do_not_depend_on_the_number_of_jobs(X, model):
    other = MMPCA(3, 3, dispersion="shares", topics="lda", n_init=2, random_state=0, n_jobs=2).fit(X)
    assert other.concentration_ == model.concentration_
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))


def test_model_files_keep_the_concentration_even_if_infinite(X, model, tmp_path):
    for value in (model.concentration_, np.inf):
        changed = MMPCA(3, 3, dispersion="shares", topics="lda", n_init=2, random_state=0).fit(X)
        changed.concentration_ = value
        changed.save(tmp_path / "shares.mmpca")
        loaded = load(tmp_path / "shares.mmpca")
        assert loaded.concentration_ == value
        np.testing.assert_array_equal(loaded.predict_proba(X), changed.predict_proba(X))


def test_a_model_without_its_concentration_cannot_be_saved(model, tmp_path):
    broken = MMPCA(3, 3)
    broken.__dict__.update({name: value for name, value in vars(model).items() if name != "concentration_"})
    with pytest.raises(ModelFileError):
        broken.save(tmp_path / "broken.mmpca")


def test_effective_counts_have_a_concentration_too(X):
    polya = MMPCA(3, 3, dispersion="polya", topics="lda", n_init=1, random_state=0).fit(X)
    assert polya.concentration_ > 0
    assert np.isfinite(polya.predict_proba(X)).all()
