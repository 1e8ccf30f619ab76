"""How sure to be of clusters: temperatures, and rows that are judged one at a time."""

import pickle

import numpy as np
import pytest

from mmpca import MMPCA, load
from mmpca.engine.sweep import GreedySweep
from mmpca.model.temperature import by_agreement
from mmpca.simulate import paper_design, simulate_mmpca, sparse_topics


def draw(n_samples, seed, *, concentration=np.inf):
    """Draw rows of three overlapping clusters of 40 features, in bursts if there is a concentration."""
    rng = np.random.default_rng(seed)
    topics = np.random.default_rng(0).dirichlet(np.full(40, 0.5), 3)
    profiles = np.array([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]]) @ topics
    truth = rng.integers(3, size=n_samples)
    shares = [profiles[q] if np.isinf(concentration) else rng.dirichlet(concentration * profiles[q]) for q in truth]
    return np.array([rng.multinomial(60, p) for p in shares]), truth


def gap(model, X, truth, new, new_truth):
    """Return the mean probability of new rows, less the share that is right."""
    classes = np.array([np.bincount(truth[model.labels_ == q], minlength=3).argmax() for q in range(3)])
    probabilities = model.predict_proba(new)
    return probabilities.max(axis=1).mean() - (classes[probabilities.argmax(axis=1)] == new_truth).mean()


@pytest.fixture(scope="module")
def bursty():
    X, truth = draw(300, 1, concentration=35.0)
    return X, truth, MMPCA(3, 3, topics="lda", n_init=2, random_state=0).fit(X)


@pytest.mark.parametrize("factor", [1.0, 3.0, 20.0])
def test_overconfident_halves_are_tempered_by_the_factor_of_their_log_odds(factor):
    rng = np.random.default_rng(1)
    means = np.eye(4) * 1.8
    truth = rng.integers(4, size=6000)
    first, second = (rng.normal(means[truth], 1.0) @ means.T for _ in range(2))  # exact log-odds, equal weights
    assert by_agreement(factor * first, factor * second) == pytest.approx(factor, rel=0.1)
    assert by_agreement(factor * first, factor * second[:, [2, 0, 3, 1]]) == pytest.approx(factor, rel=0.1)


def test_halves_that_agree_are_not_tempered():
    joint = 30.0 * np.eye(3)[np.random.default_rng(0).integers(3, size=200)]
    assert by_agreement(joint, joint) == pytest.approx(1.0)


def test_bursts_are_allowed_for_by_default_and_labels_stay(bursty):
    X, truth, model = bursty
    published = MMPCA(3, 3, topics="lda", n_init=2, temperature=1, random_state=0).fit(X)
    np.testing.assert_array_equal(published.labels_, model.labels_)
    new = draw(2000, 2, concentration=35.0)
    np.testing.assert_array_equal(published.predict(new[0]), model.predict(new[0]))
    assert published.temperature_ == 1.0
    assert abs(gap(model, X, truth, *new)) < 0.06 < 0.1 < gap(published, X, truth, *new)


def test_rows_of_the_model_are_hardly_tempered():
    X, truth = draw(300, 3)
    model = MMPCA(3, 3, topics="lda", n_init=2, random_state=0).fit(X)
    assert 1.0 <= model.temperature_ < 2.5
    assert abs(gap(model, X, truth, *draw(2000, 4))) < 0.04


def test_the_probability_of_a_row_does_not_depend_on_the_others(bursty):
    X, _, model = bursty
    every = model.predict_proba(X)
    np.testing.assert_allclose(model.predict_proba(X[7:8])[0], every[7], rtol=1e-12)
    with_empty = np.vstack([X, np.zeros((1, 40), dtype=int)])
    np.testing.assert_allclose(model.predict_proba(with_empty)[:-1], every, rtol=1e-12)


@pytest.mark.parametrize("dispersion", ["multinomial", "shares", "polya"])
def test_leaving_a_row_out_is_close_to_a_cluster_that_never_had_it(dispersion):
    X, _ = draw(60, 5)
    model = MMPCA(3, 3, dispersion=dispersion, topics="lda", n_init=2, temperature=1, random_state=0).fit(X)
    left_out, new = model.leave_one_out_proba(X), model.predict_proba(X)
    own = np.arange(60), model.labels_
    assert (left_out[own] <= new[own] + 1e-12).mean() > 0.9
    if dispersion != "multinomial":
        return
    for i in range(0, 60, 6):
        rest = np.delete(np.arange(60), i)
        without = MMPCA(
            3, 3, topics=model.components_, start=model.labels_[rest], max_epochs=0, temperature=1, random_state=0
        ).fit(X[rest])
        without.smoothing_ = model.smoothing_
        expected = without.predict_proba(X[i : i + 1])[0]
        assert abs(left_out[i] - expected).max() <= max(0.03, 0.7 * abs(new[i] - expected).max())


@pytest.mark.parametrize("topics", ["lda", "mixture"])
def test_fitted_rows_are_as_certain_as_new_rows(topics):
    """Rows are short and features are rare: a row that stays in its topics looks far too certain."""
    data = simulate_mmpca(
        900, topics=np.random.default_rng(0).dirichlet(np.full(1500, 0.1), 6), cluster_topics=0.7 * np.eye(6) + 0.05,
        lengths=12, random_state=1,
    )  # fmt: skip
    X, new = data.X[:400], data.X[400:]
    model = MMPCA(6, 6, topics=topics, n_init=2, random_state=0).fit(X)
    fitted, in_sample, expected = (
        probabilities.max(axis=1).mean()
        for probabilities in (model.leave_one_out_proba(X), model.predict_proba(X), model.predict_proba(new))
    )
    assert abs(fitted - expected) < 0.04 < 0.08 < in_sample - expected


@pytest.mark.parametrize("concentration", [5.0, 20.0])
def test_proportions_that_vary_are_allowed_for_although_labels_hide_some_of_it(concentration):
    rng = np.random.default_rng(0)
    topics, means = rng.dirichlet(np.full(100, 0.1), 3), np.array([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])
    truth = rng.integers(3, size=2300)
    X = rng.multinomial(200, np.array([rng.dirichlet(concentration * means[q]) for q in truth]) @ topics)
    model = MMPCA(3, 3, topics="lda", n_init=2, random_state=0).fit(X[:300])
    assert abs(gap(model, X[:300], truth[:300], X[300:], truth[300:])) < 0.05


def test_new_rows_cannot_be_left_out(bursty):
    X, _, model = bursty
    with pytest.raises(ValueError, match="predict_proba"):
        model.leave_one_out_proba(X[:-1])


def test_the_temperature_is_the_same_before_and_after_pickling_and_saving(tmp_path):
    X = paper_design(n_samples=80, noise=0.3, random_state=0).X
    model, other = (MMPCA(6, 4, topics="lda", n_init=1, n_jobs=jobs, random_state=0).fit(X) for jobs in (1, 2))
    copied = pickle.loads(pickle.dumps(model))
    model.save(tmp_path / "a.mmpca")
    found = {fitted.temperature_ for fitted in (model, other, copied, load(tmp_path / "a.mmpca"))}
    assert len(found) == 1


@pytest.mark.parametrize("ask", [MMPCA.predict_proba, lambda model, X: model.theta_interval()])
def test_ctrl_c_ends_an_estimate_and_the_next_one_is_complete(ask, monkeypatch):
    X, _ = draw(60, 6)
    model, other = (MMPCA(3, 3, topics="lda", n_init=1, random_state=0).fit(X) for _ in range(2))
    visit, calls = GreedySweep.visit, []

    def interrupted_once(*arguments):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return visit(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(GreedySweep, "visit", interrupted_once)
        with pytest.raises(KeyboardInterrupt):
            ask(model, X)
    assert len(calls) == 2
    np.testing.assert_array_equal(ask(model, X), ask(other, X))


def test_degenerate_data_have_a_temperature():
    one = MMPCA(1, 1, random_state=0).fit([[1, 2], [3, 1]])
    few = MMPCA(2, 2, random_state=0).fit([[5, 1], [1, 5], [4, 1]])
    same = MMPCA(2, 2, random_state=0).fit(np.ones((30, 8), dtype=int))
    for model in (one, few, same):
        assert np.isfinite(model.temperature_)
        assert model.temperature_ >= 1.0


def test_clusters_that_a_sample_cannot_find_again_are_not_less_sure_for_that():
    rng = np.random.default_rng(0)
    topics = sparse_topics(20, 12_000, concentration=0.1, random_state=rng)
    shares = rng.dirichlet(np.full(20, 0.3), 12)
    data = simulate_mmpca(1500, topics=topics, cluster_topics=shares, lengths=40, noise=0.1, random_state=rng)
    model = MMPCA(12, 20, topics=topics, start=data.labels, max_epochs=0, random_state=0).fit(data.X)
    certainty = model.predict_proba(data.X).max(axis=1).mean()  # 1,200 rows of 20 counts tell nothing of the clusters
    assert certainty == pytest.approx((model.predict(data.X) == data.labels).mean(), abs=0.05)
