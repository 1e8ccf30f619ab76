"""Fits with variance factors: they find clusters of bursty counts, and everything shown is in original counts."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import mmpca
from mmpca import MMPCA, MMPCASearch, distributed, plots
from mmpca.errors import InterruptedSearchWarning, ModelFileError, OverdispersionWarning
from mmpca.model.dispersion import advice_on, in_counts
from mmpca.report.contents import cluster_cards
from mmpca.report.context import check_context, explain_rows, measure_margins

KINDS = {
    "counts": {"dispersion": "multinomial"},
    "shares": {"dispersion": "shares"},
    "square roots": {"stabilize": "sqrt"},
    "polya": {"dispersion": "polya"},
}
SIZES = {"n_clusters": 3, "n_topics": 3, "topics": "lda", "n_init": 2, "random_state": 0}


def bursty_rows(n_rows=150, n_features=60, factor=40.0, seed=0):
    """Return rows of three clusters whose features come in bursts, some of them dominant, and their labels."""
    rng = np.random.default_rng(seed)
    profiles = rng.dirichlet(np.full(n_features, 0.5), 3)
    profiles[:, :3] = 0.3  # dominant features, the same in all clusters
    profiles /= profiles.sum(axis=1, keepdims=True)
    labels = np.arange(n_rows) % 3
    shape = rng.integers(500, 3000, (n_rows, 1)) * profiles[labels] / (factor - 1)
    return rng.poisson(rng.gamma(shape) * (factor - 1)), labels


@pytest.fixture(scope="module")
def rows():
    X, labels = bursty_rows()
    return X[X.sum(axis=1) > 0], labels[X.sum(axis=1) > 0]


@pytest.fixture(scope="module")
def fits(rows):
    with pytest.warns(OverdispersionWarning):  # of counts
        return {name: MMPCA(**SIZES, **kind).fit(rows[0]) for name, kind in KINDS.items()}


# --- clusters ---------------------------------------------------------------------------------------------------


def test_clusters_of_bursty_rows_are_found(rows, fits):
    _, labels = rows
    scores = {name: adjusted_rand_score(labels, model.labels_) for name, model in fits.items()}
    assert scores["polya"] > 0.9
    assert scores["polya"] >= max(scores.values())


def test_factors_are_those_of_the_data_and_explain_the_variance(fits):
    model = fits["polya"]
    assert np.median(model.variance_factors_) == pytest.approx(40, rel=0.25)
    assert model.overdispersion_ == pytest.approx(1, abs=0.2)
    assert fits["counts"].overdispersion_ > 20


@pytest.mark.parametrize("seed", [0, 1])
def test_nothing_is_lost_on_rows_without_bursts(seed):
    data = mmpca.simulate.paper_design(n_samples=150, noise=0.1, random_state=seed)
    plain, polya = (
        MMPCA(6, 4, topics="lda", n_init=3, random_state=0, dispersion=d).fit(data.X) for d in ("multinomial", "polya")
    )
    before, after = (adjusted_rand_score(data.labels, model.labels_) for model in (plain, polya))
    assert after > before - 0.03
    assert np.median(polya.variance_factors_) < 1.1


def test_new_rows_are_predicted_in_effective_counts(rows, fits):
    X, labels = bursty_rows()
    new = np.random.default_rng(3).permutation(len(X))[:40]
    model = MMPCA(**SIZES, dispersion="polya").fit(np.delete(X, new, axis=0))
    assert adjusted_rand_score(labels[new], model.predict(X[new])) > 0.8
    np.testing.assert_allclose(model.predict_proba(X[new]).sum(axis=1), 1)


def test_the_order_of_rows_does_not_change_the_factors_of_the_first_round(rows):
    X, _ = rows
    order = np.random.default_rng(0).permutation(len(X))
    one, other = (MMPCA(**SIZES, dispersion="polya").fit(Y) for Y in (X, X[order]))
    assert adjusted_rand_score(one.labels_[order], other.labels_) > 0.9
    np.testing.assert_allclose(one.variance_factors_, other.variance_factors_, rtol=0.2)


def test_threads_and_blocks_do_not_change_a_bit(rows, fits, same_fit):
    X, _ = rows
    leaving_out = ["starts_"]
    same_fit(MMPCA(**SIZES, dispersion="polya", n_jobs=2).fit(X), fits["polya"], leaving_out=leaving_out)
    in_blocks = distributed.fit(MMPCA(**SIZES, dispersion="polya"), [X[:40], X[40:41], X[41:]])
    same_fit(in_blocks, fits["polya"], leaving_out=leaving_out)
    np.testing.assert_array_equal(distributed.predict(in_blocks, [X[:9], X[9:]]), fits["polya"].predict(X))


@pytest.mark.parametrize(
    "X",
    [np.eye(6, dtype=int) + np.eye(6, k=1, dtype=int), [[3, 1, 900], [2, 2, 0], [1, 3, 0], [2, 1, 0]], [[1], [5], [9]]],
    ids=["rows of one or two counts", "a feature in one row", "a single feature"],
)
def test_awkward_rows_are_clustered(X):
    model = MMPCA(2, 1, dispersion="polya", topics="lda", n_init=1, random_state=0).fit(X)
    assert np.isfinite(model.bound_)
    assert set(model.labels_) == {0, 1}
    assert np.isfinite(model.predict_proba(X)).all()


def test_roots_and_factors_exclude_each_other(rows):
    with pytest.raises(ValueError, match="stabilize"):
        MMPCA(2, 2, dispersion="polya", stabilize="sqrt").fit(rows[0])


# --- the choice -------------------------------------------------------------------------------------------------


def test_auto_keeps_the_multinomial_where_it_holds(same_fit):
    X = mmpca.simulate.paper_design(n_samples=100, random_state=0).X
    plain, auto = (
        MMPCA(6, 4, topics="lda", n_init=2, random_state=0, dispersion=d).fit(X) for d in ("multinomial", "auto")
    )
    assert auto.dispersion_ == "multinomial"
    same_fit(plain, auto, leaving_out=["starts_"])


def test_by_default_bursts_are_found(rows, fits, same_fit):
    auto = MMPCA(**SIZES | {"topics": "auto"}).fit(rows[0])
    assert (auto.dispersion_, auto.stabilize_) == ("polya", None)
    same_fit(auto, fits["polya"], leaving_out=["starts_"])


def test_auto_leaves_given_topics_and_roots_as_they_are(rows, fits):
    plain, roots = fits["counts"], fits["square roots"]
    with pytest.warns(OverdispersionWarning):
        given = MMPCA(**SIZES | {"topics": plain.components_}, dispersion="auto").fit(rows[0])
    assert (given.dispersion_, given.stabilize_) == ("multinomial", None)
    assert (roots.dispersion_, roots.stabilize_) == ("multinomial", "sqrt")


def test_a_search_shares_the_factors_of_its_largest_model(rows):
    X, labels = rows
    search = MMPCASearch([2, 3, 4], [3], criterion="predictive", dispersion="polya", n_init=2, random_state=0).fit(X)
    assert search.best_estimator_.dispersion_ == "polya"
    assert adjusted_rand_score(labels, search.labels_) > 0.5
    found = np.flatnonzero(search.results_["n_clusters"] == search.best_params_["n_clusters"])[0]
    assert search.best_estimator_.bound_ == pytest.approx(search.results_["bound"][found], rel=1e-9)


# --- original counts --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_sums_of_clusters_are_sums_of_counts(rows, fits, name):
    X, model = rows[0], fits[name]
    for q in range(3):
        np.testing.assert_array_equal(model.cluster_counts_[q], X[model.labels_ == q].sum(axis=0))


@pytest.mark.parametrize("name", KINDS)
def test_shares_are_shares_of_counts(rows, fits, name):
    X, model = rows[0], fits[name]
    shown = in_counts(model)
    for shares in (shown.topics, shown.cluster_topics, shown.profiles):
        np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-9)
    expected = np.array([X[model.labels_ == q].sum(axis=0) / X[model.labels_ == q].sum() for q in range(3)])
    tolerance = 1e-12 if name in ("square roots", "polya") else 0.05  # others show the smooth profiles of the model
    np.testing.assert_allclose(shown.profiles, expected, atol=tolerance)
    # Topics, weighted by their shares, make up the clusters.
    np.testing.assert_allclose(shown.cluster_topics @ shown.topics, expected, atol=0.05)


@pytest.mark.parametrize("name", KINDS)
def test_the_page_shows_shares_of_counts(rows, fits, name):
    X, model = rows[0], fits[name]
    for card in cluster_cards(check_context(model, X), None, None):
        own = X[model.labels_ == card.number]
        for feature in card.features:
            share = own[:, int(feature.name.split()[-1])].sum() / own.sum()
            assert feature.share == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize("name", KINDS)
def test_plots_show_shares_of_counts(fits, name):
    shown = in_counts(fits[name])
    widths = [bar.get_width() for bar in plots.topic_features(fits[name], 1, n_features=4, by="share").patches]
    np.testing.assert_allclose(widths, 100 * np.sort(shown.topics[1])[::-1][:4])


def test_samples_have_the_variance_of_the_data(rows, fits):
    X, model = rows[0], fits["polya"]
    drawn, labels = model.sample(300, random_state=0)
    drawn = drawn.toarray()
    assert drawn.sum(axis=1) == pytest.approx(X.sum(axis=1).mean(), abs=1)
    np.testing.assert_allclose(drawn.mean(axis=0) / drawn.sum() * 300, X.mean(axis=0) / X.sum() * len(X), atol=0.05)
    found = mmpca.model.dispersion.burstiness(mmpca.counts.as_counts(drawn), labels, 3)
    assert np.median(found.factors) == pytest.approx(np.median(model.variance_factors_), rel=0.3)


# --- files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_a_saved_model_predicts_the_same(rows, fits, name, tmp_path, same_fit):
    fits[name].save(tmp_path / "a.mmpca")
    loaded = mmpca.load(tmp_path / "a.mmpca")
    same_fit(loaded, fits[name])
    np.testing.assert_array_equal(loaded.predict_proba(rows[0]), fits[name].predict_proba(rows[0]))
    assert loaded.explain(rows[0], [2]) == fits[name].explain(rows[0], [2])


def test_a_file_without_its_factors_is_an_error(fits, tmp_path):
    model = fits["polya"]
    broken = MMPCA(**model.get_params())
    broken.__dict__.update({k: v for k, v in vars(model).items() if k != "variance_factors_"})
    with pytest.raises(ModelFileError):
        broken.save(tmp_path / "a.mmpca")


# --- one probability, and choices that cannot be made ------------------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_the_page_shows_the_probabilities_of_fitted_rows_without_themselves(rows, fits, name):
    X, model = rows[0], fits[name]
    own = model.leave_one_out_proba(X)[np.arange(len(X)), model.labels_]
    context = check_context(model, X)
    shown = explain_rows(context, np.arange(len(X) - 1))
    np.testing.assert_allclose([why.probability for why in shown], own[:-1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(measure_margins(context).probability, own, rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore::mmpca.errors.OverdispersionWarning")
def test_auto_keeps_the_published_model_where_halves_of_the_features_cannot_be_compared():
    X = np.random.default_rng(0).negative_binomial(0.5, 0.01, (40, 3)) + 1
    model = MMPCA(2, 2, dispersion="auto", random_state=0).fit(X)
    assert model.overdispersion_ > 3
    assert model.dispersion_ == "multinomial"


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_while_units_are_compared_keeps_the_clusters_found(rows, fits, n_jobs):
    n_reports = 0

    def interrupt(progress):
        nonlocal n_reports
        n_reports += n_reports > 0 or progress.stage == "dispersion"
        if n_reports == 20:
            raise KeyboardInterrupt

    model = MMPCA(**fits["counts"].get_params()).set_params(dispersion="auto", n_jobs=n_jobs)
    with pytest.warns(InterruptedSearchWarning):
        model.fit(rows[0], callback=interrupt)
    assert n_reports >= 20
    assert model.dispersion_ == "multinomial"
    np.testing.assert_array_equal(model.labels_, fits["counts"].labels_)


@pytest.mark.filterwarnings("ignore::mmpca.errors.InterruptedSearchWarning")
def test_a_fit_that_stops_before_factors_and_clusters_settle_has_not_converged(rows):
    def stop(progress):
        return progress.stage == "starts"

    model = MMPCA(2, 2, dispersion="polya", topics="lda", n_init=1, random_state=0).fit(rows[0], callback=stop)
    assert not model.converged_


def test_a_loaded_model_needs_no_advice_either_if_auto_has_compared_the_remedies(tmp_path):
    X = np.random.default_rng(0).negative_binomial(0.5, 0.01, (40, 3)) + 1
    model = MMPCA(2, 2, dispersion="auto", random_state=0).fit(X)
    model.save(tmp_path / "a.mmpca")
    loaded = mmpca.load(tmp_path / "a.mmpca")
    assert model.overdispersion_ > 3
    assert advice_on(model) is None
    assert advice_on(loaded) is None
    assert (loaded.dispersion, loaded.dispersion_, loaded.stabilize_) == ("auto", "multinomial", None)
