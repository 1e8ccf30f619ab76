from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import multivariate_normal
from sklearn.base import BaseEstimator
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.metrics import adjusted_rand_score

from mmpca.baselines import GMMLDA, KMeansLDA, LDAMap
from mmpca.baselines.topic_space import COVARIANCES, VariationalLDA, coordinates
from mmpca.simulate import paper_design, simulate_mmpca, sparse_topics
from mmpca.topics import LDA

SHARES = np.array([[9, 1], [8, 2], [1, 9], [2, 8], [5, 5], [6, 6], [3, 9]])


@pytest.fixture(scope="module")
def mixed():
    """Return data with five clusters that mix three topics."""
    shares = np.array([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9], [0.45, 0.1, 0.45], [0.1, 0.45, 0.45]])
    topics = sparse_topics(3, 60, 0.1, 0)
    return simulate_mmpca(n_samples=60, lengths=200, topics=topics, cluster_topics=shares, random_state=0)


@pytest.mark.parametrize(("kind", "lda"), [(kind, lda) for kind in (KMeansLDA, GMMLDA) for lda in ("sklearn", LDA())])
def test_recovers_clusters_that_mix_topics(kind, lda, mixed):
    model = kind(5, 3, lda=lda, n_init_lda=2, n_init=2, random_state=0).fit(mixed.X)
    assert adjusted_rand_score(mixed.labels, model.labels_) > 0.95
    assert model.shares_.shape == (60, 3)
    np.testing.assert_allclose(model.shares_.sum(axis=1), 1)


@pytest.mark.parametrize("lda", ["sklearn", LDA()])
def test_most_probable_topic_recovers_clusters_that_are_topics(lda, make_blocks):
    sample = make_blocks(n_rows=24, shortest=60, longest=100)
    model = LDAMap(3, lda=lda, n_init=1, random_state=0).fit(sample.X)
    assert adjusted_rand_score(sample.labels, model.labels_) > 0.95
    np.testing.assert_array_equal(model.labels_, model.lda_.transform(sample.X).argmax(axis=1))


def test_the_run_with_the_highest_score_is_kept(make_blocks, known_shares):
    X = make_blocks(1, n_rows=20, shortest=5, longest=10).X
    lda = LatentDirichletAllocation(max_iter=3)
    one, five = (LDAMap(3, lda=lda, n_init=n_init, random_state=0).fit(X) for n_init in (1, 5))
    assert five.lda_score_ > one.lda_score_
    assert five.lda_score_ == pytest.approx(five.lda_.score(X))
    assert LDAMap(2, lda=known_shares()).fit(SHARES).lda_score_ is None


def test_the_given_transformer_stays_unfitted(make_blocks):
    lda = LatentDirichletAllocation(max_iter=3)
    KMeansLDA(3, 2, lda=lda, random_state=0).fit(make_blocks(n_rows=12).X)
    assert not hasattr(lda, "components_")
    assert lda.n_components == 10


def test_most_probable_topic_is_the_largest_share(known_shares):
    assert LDAMap(2, lda=known_shares()).fit_predict(SHARES).tolist() == [0, 0, 1, 1, 0, 0, 1]


def test_kmeans_finds_the_best_of_all_partitions_of_a_tiny_case(known_shares):
    model = KMeansLDA(3, 2, lda=known_shares(), random_state=0).fit(SHARES)
    shares = SHARES / SHARES.sum(axis=1, keepdims=True)
    tried = [np.array(labels) for labels in product(range(3), repeat=7) if len(set(labels)) == 3]
    squares = [sum(shares[y == q].var(axis=0).sum() * np.sum(y == q) for q in range(3)) for y in tried]
    assert model.inertia_ == pytest.approx(min(squares))


@pytest.mark.parametrize("space", ["shares", "log-ratio"])
def test_gaussian_likelihood_and_bic_agree_with_their_definitions(space, known_shares):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.multinomial(300, p, size=20) for p in ([0.6, 0.3, 0.1], [0.1, 0.4, 0.5])]) + 1
    model = GMMLDA(2, 3, lda=known_shares(), space=space, covariance="full", n_init=2, random_state=0).fit(X)
    points, mixture = coordinates(X / X.sum(axis=1, keepdims=True), space), model.mixture_
    densities = sum(
        weight * multivariate_normal(mean, covariance).pdf(points)
        for weight, mean, covariance in zip(mixture.weights_, mixture.means_, mixture.covariances_, strict=True)
    )
    assert model.log_likelihood_ == pytest.approx(np.log(densities).sum())
    n_parameters = 2 * 2 + 2 * 3 + 1  # means, covariances, weights
    assert model.bic_ == pytest.approx(model.log_likelihood_ - n_parameters / 2 * np.log(40))
    assert adjusted_rand_score(np.repeat([0, 1], 20), model.labels_) == 1.0


def test_chooses_the_covariance_model_with_the_best_bic(known_shares):
    rng = np.random.default_rng(0)
    X = rng.multinomial(300, [0.6, 0.3, 0.1], size=60) + 1
    model = GMMLDA(2, 3, lda=known_shares(), n_init=2, random_state=0).fit(X)
    assert set(model.bics_) == set(COVARIANCES)
    assert model.bic_ == max(model.bics_.values()) == model.bics_[model.covariance_]
    assert model.mixture_.covariance_type == model.covariance_


def test_coordinates_keep_distances_up_to_one_scale():
    shares = np.random.default_rng(0).dirichlet(np.ones(5), size=20)
    points = coordinates(shares, "shares")
    before, after = (np.linalg.norm(x[:, None] - x[None], axis=2)[np.triu_indices(20, 1)] for x in (shares, points))
    assert points.shape == (20, 4)
    np.testing.assert_allclose(after / before, after[0] / before[0])
    assert points.var(axis=0).mean() == pytest.approx(1)


def test_log_ratios_do_not_depend_on_the_scale_of_the_shares():
    shares = np.random.default_rng(0).dirichlet(np.ones(4), size=10)
    np.testing.assert_allclose(coordinates(7 * shares, "log-ratio"), coordinates(shares, "log-ratio"))


def test_a_gaussian_mixture_of_one_row_raises():
    with pytest.raises(ValueError, match="GMMLDA"):
        GMMLDA(1, 2).fit([[1, 2, 3]])


class NoSize(BaseEstimator):
    """A transformer whose number of topics cannot be set."""

    def fit(self, X):
        return self

    def transform(self, X):
        return X


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lda", "gensim"),
        ("lda", LDA),
        ("lda", NoSize()),
        ("n_topics", 1),
        ("covariance", "ball"),
        ("space", "flat"),
        ("n_init_lda", 0),
    ],
)
def test_an_invalid_parameter_raises(name, value):
    with pytest.raises(ValueError, match=name):
        GMMLDA(2, **{"n_topics": 2, name: value}).fit(SHARES)


# --- the variational LDA against scikit-learn's -----------------------------------------------------------------


def both_ldas(X, n_topics, **options):
    """Return scikit-learn's LDA and ours, fitted with the same settings."""
    return [kind(n_topics, random_state=3, **options).fit(X) for kind in (LatentDirichletAllocation, VariationalLDA)]


@pytest.mark.parametrize(("n_topics", "prior"), [(1, 1.0), (4, 1.0), (4, 0.25)])
@pytest.mark.parametrize("n_updates", [3, 100])  # no row converges; nearly all do
def test_topics_shares_and_score_equal_those_of_scikit_learn(n_topics, prior, n_updates):
    X = paper_design(40, noise=0.3, random_state=1).X
    theirs, ours = both_ldas(X, n_topics, doc_topic_prior=prior, max_iter=4, max_doc_update_iter=n_updates)
    np.testing.assert_allclose(ours.components_, theirs.components_, rtol=1e-6)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-8)
    assert ours.score(X) == pytest.approx(theirs.score(X), rel=1e-10)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_dense_and_sparse_rows_of_any_length_equal_scikit_learn(form):
    X = form(np.array([[3, 0, 1, 900], [0, 0, 0, 1], [5, 5, 5, 0], [0, 0, 0, 0]]))
    theirs, ours = both_ldas(X, 2, max_iter=5)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-8)


def test_scikit_learn_calls_the_faster_e_step():
    model = VariationalLDA(2, max_iter=1, random_state=0)
    calls = []
    model._update = lambda *arguments: calls.append(arguments)
    model.fit(paper_design(10, random_state=1).X)
    assert calls
