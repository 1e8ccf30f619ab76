"""The default search: numbers from one upward, by criteria that allow for rows of one cluster to differ."""

import numpy as np
import pytest
from scipy import sparse

from mmpca import MMPCASearch
from mmpca.errors import InterruptedSearchWarning
from mmpca.selection import criteria
from mmpca.selection.criteria import choose, describe, n_reproducible
from mmpca.simulate import sparse_topics

TRUTH = {"n_clusters": 5, "n_topics": 4}


def misspecified(kind, value, seed=0, weights=None):
    """Draw 400 rows of 200 counts in 5 clusters over 4 topics, which differ by more than multinomial noise."""
    rng = np.random.default_rng(seed)
    topics = 0.9 * sparse_topics(4, 500, random_state=rng) + 0.1 / 500
    cluster_topics = np.vstack([0.1 + 0.6 * np.eye(4), np.full((1, 4), 0.25)])
    labels = rng.choice(5, p=weights, size=400)
    shares = cluster_topics[labels]
    if kind == "shares":
        shares = np.array([rng.dirichlet(value * row) for row in shares])
    profiles = shares @ topics
    if kind == "polya":
        profiles = np.array([rng.dirichlet(value * row) for row in profiles])
    return sparse.csr_array(rng.multinomial(200, profiles))


@pytest.fixture(scope="module")
def default(data):
    return MMPCASearch(random_state=0).fit(data.X)


# --- the choice -------------------------------------------------------------------------------------------------


def test_it_finds_the_truth_inside_what_it_tried(default):
    assert default.best_params_ == {"n_clusters": 3, "n_topics": 3}
    assert default.results_["n_clusters"][0] == default.topic_results_["n_topics"][0] == 1
    assert default.results_["n_clusters"][-1] > 3
    assert default.topic_results_["n_topics"][-1] > 3
    assert default.best_estimator_.labels_.max() == 2
    assert default.results_["n_clusters"][default.results_["chosen"] == 1].tolist() == [3]


@pytest.mark.filterwarnings("ignore::mmpca.errors.OverdispersionWarning")
@pytest.mark.parametrize(("kind", "value"), [("shares", 20.0), ("polya", 30.0)])
def test_rows_that_differ_within_clusters_do_not_make_more_clusters(kind, value):
    assert MMPCASearch(random_state=0).fit(misspecified(kind, value)).best_params_ == TRUTH


def test_few_samples_with_bursts_make_no_clusters_of_a_few_rows():
    rng = np.random.default_rng([0, 60, 3, 300])
    base = np.exp(rng.normal(0, 1.5, 300))
    profiles = np.array([base * np.exp(rng.normal(0, 1, 300) * (rng.random(300) < 0.4)) for _ in range(3)])
    totals = 2000 * np.exp(rng.normal(0, 0.4, 60))
    means = totals[:, None] * (profiles / profiles.sum(axis=1, keepdims=True))[np.arange(60) % 3]
    search = MMPCASearch(random_state=0).fit(rng.negative_binomial(2, 2 / (2 + means)))
    assert np.bincount(search.labels_).tolist() == [20, 20, 20]


def test_small_clusters_are_found():
    weights = 0.5 ** np.arange(5)
    search = MMPCASearch(random_state=0).fit(misspecified("multinomial", None, weights=weights / weights.sum()))
    assert search.best_params_ == TRUTH


def test_rows_of_one_kind_are_one_cluster():
    X = np.random.default_rng(0).multinomial(150, np.full(60, 1 / 60), size=120)
    search = MMPCASearch(random_state=0).fit(X)
    assert search.best_params_ == {"n_clusters": 1, "n_topics": 1}
    assert search.choice_.plateau == (1, 1)


def test_results_do_not_depend_on_the_number_of_jobs(data, default):
    other = MMPCASearch(random_state=0, n_jobs=2).fit(data.X)
    np.testing.assert_array_equal(other.results_["shares"], default.results_["shares"])
    np.testing.assert_array_equal(other.topic_results_["loss"], default.topic_results_["loss"])
    np.testing.assert_array_equal(other.labels_, default.labels_)


@pytest.mark.parametrize(
    "given", [{"n_clusters": (2,)}, {"n_topics": (2, 3)}, {"n_clusters": (2, 3), "n_topics": (2,)}]
)
def test_given_numbers_are_compared_and_no_others(data, given):
    search = MMPCASearch(**given, random_state=0).fit(data.X)
    for name, numbers in given.items():
        assert search.best_params_[name] in numbers
    if "n_clusters" in given:
        assert tuple(search.results_["n_clusters"]) == given["n_clusters"]
    if "n_topics" in given:
        assert tuple(search.topic_results_["n_topics"]) == given["n_topics"]


def test_one_row_or_one_feature_is_enough():
    assert MMPCASearch(random_state=0).fit([[3, 1, 2]]).best_params_ == {"n_clusters": 1, "n_topics": 1}
    assert MMPCASearch(random_state=0).fit([[3], [4]]).best_params_ == {"n_clusters": 1, "n_topics": 1}


# --- the description --------------------------------------------------------------------------------------------

SCORES = {"n_clusters": np.array([1, 2, 3, 4]), "shares": np.array([-90.0, -40.0, 0.0, -12.0])}
TOPICS = {1: (400.0, 20.0), 2: (0.0, 0.0), 3: (35.0, 10.0)}


def test_a_number_far_ahead_of_all_others_is_strong():
    choice = choose(SCORES, TOPICS, 2, 3, 5)
    assert (choice.n_clusters, choice.plateau, choice.strength) == (3, (3, 3), "strong")
    assert choice.is_determined


def test_clusters_are_no_clearer_than_topics():
    topics = {2: (5.0, 9.0), 3: (0.0, 0.0)}
    assert choose(SCORES, topics, 2, 3, 5).strength == "weak"


@pytest.mark.parametrize(
    ("scores", "topics"),
    [
        ({"n_clusters": np.array([2, 3]), "shares": np.array([-90.0, 0.0])}, TOPICS),
        (SCORES, {1: (400.0, 20.0), 2: (0.0, 0.0)}),
    ],
)
def test_a_number_at_an_edge_is_never_strong(scores, topics):
    choice = choose(scores, topics, 2, None, 0)
    assert choice.strength != "strong"
    assert "more" in {choice.by_clusters.beyond, choice.by_topics.beyond}


def test_an_edge_that_resamples_lead_to_is_noted_and_is_never_strong():
    scores = {"n_clusters": np.array([3, 4, 5]), "shares": np.array([-90.0, 0.0, -40.0])}
    choice = choose(scores, TOPICS, 2, 2, 5)
    assert (choice.n_clusters, choice.best, choice.by_clusters.beyond, choice.strength) == (3, 4, "fewer", "weak")
    assert not choose({**scores, "n_clusters": np.array([1, 4, 5])}, TOPICS, 2, 2, 5).by_clusters.beyond


def test_a_criterion_that_still_rises_at_the_edge_is_noted():
    rising = {**SCORES, "shares": np.array([-90.0, -40.0, -2.0, 0.0])}
    choice = choose(rising, TOPICS, 2, 3, 5)
    assert (choice.n_clusters, choice.by_clusters.beyond, choice.strength) == (3, "more", "weak")
    assert not choose(rising, TOPICS, 2, 3, 5, most=(4, 9)).by_clusters.beyond  # there are only four rows


def test_the_reason_counts_the_clusters_found_again_even_if_their_number_was_not_tried():
    scores = {"n_clusters": np.array([1, 4, 5]), "shares": np.array([-90.0, 0.0, -40.0])}
    choices = [choose(scores, TOPICS, 2, n_stable, 5) for n_stable in range(3)]
    assert [(choice.n_clusters, choice.n_stable) for choice in choices] == [(1, 0), (1, 1), (1, 2)]
    assert len({describe(choice) for choice in choices}) == 3


def test_the_reason_is_that_clusters_were_not_found_again_even_if_the_number_is_at_an_edge():
    scores = {"n_clusters": np.array([3, 4, 5]), "shares": np.array([-90.0, -1.0, 0.0])}
    choice = choose(scores, TOPICS, 2, 2, 5)
    assert (choice.n_clusters, choice.best, choice.by_clusters.beyond, choice.strength) == (3, 4, "fewer", "weak")
    inside = choice._replace(by_clusters=choice.by_clusters._replace(beyond=""))
    assert describe(choice).partition(";")[0] == describe(inside).partition(";")[0]


def test_the_smaller_of_two_numbers_that_are_about_as_good_is_chosen():
    choice = choose({**SCORES, "shares": np.array([-90.0, -40.0, -2.0, 0.0])}, TOPICS, 2, 3, 5)
    assert (choice.n_clusters, choice.plateau) == (3, (3, 4))


def test_clusters_that_resamples_do_not_find_again_are_not_counted():
    choice = choose(SCORES, TOPICS, 2, 2, 5)
    assert (choice.n_clusters, choice.best, choice.plateau) == (2, 3, (2, 3))
    assert choice.strength == "weak"


def test_one_of_five_resamples_may_miss_a_cluster():
    is_found = np.array([[1, 1, 0], [1, 0, 1], [1, 1, 1], [1, 1, 1], [1, 1, 0]], dtype=bool)
    assert n_reproducible(is_found) == 2
    assert n_reproducible(is_found[:2]) == 1  # of two, none may


def test_a_wide_plateau_is_not_determined():
    scores = {"n_clusters": np.arange(1, 7), "shares": np.array([-50.0, -40.0, -20.0, -9.0, 0.0, -5.0])}
    assert not choose(scores, TOPICS, 2, 2, 5).is_determined
    assert not choose(scores, TOPICS, 2, 0, 5).is_determined


@pytest.mark.parametrize("n_stable", [None, 0, 2, 3])
@pytest.mark.parametrize("topics", [TOPICS, {2: (0.0, 0.0)}, {1: (9.0, 1.0), 2: (0.0, 0.0)}])
def test_every_choice_is_described_in_three_sentences(n_stable, topics):
    choice = choose(SCORES, topics, 2, n_stable, 0 if n_stable is None else 5)
    assert describe(choice).count(".") == 3


def test_a_table_of_results_tells_the_same_choice(default):
    assert criteria.reason(default.results_, "shares").split(".")[1] == default.reason_.split(".")[1]


# --- store and interruption -------------------------------------------------------------------------------------


def test_a_store_tells_many_numbers_of_topics_apart(tmp_path):
    X = np.random.default_rng(0).poisson(0.7, (60, 45))
    options = {"n_clusters": [2], "n_topics": range(2, 36), "n_resamples": 0, "random_state": 0}
    plain, stored = (MMPCASearch(store=store, **options).fit(X) for store in (None, tmp_path))
    np.testing.assert_array_equal(stored.topic_results_["held_out"], plain.topic_results_["held_out"])
    assert len(set(stored.topic_results_["held_out"])) > 30


def test_a_second_run_takes_its_parts_from_the_store(data, default, tmp_path):
    first = MMPCASearch(random_state=0, store=tmp_path).fit(data.X)
    written = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.npz")}
    assert written
    second = MMPCASearch(random_state=0, store=tmp_path).fit(data.X)
    assert written == {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.npz")}
    for search in (first, second):
        np.testing.assert_array_equal(search.topic_results_["loss"], default.topic_results_["loss"])
        np.testing.assert_array_equal(search.labels_, default.labels_)


def test_a_store_shared_with_other_numbers_changes_no_result(data, tmp_path):
    q = int(MMPCASearch(n_topics=3, random_state=0, store=tmp_path).fit(data.X).best_params_["n_clusters"])
    alone = MMPCASearch([q], 3, random_state=0).fit(data.X)
    shared = MMPCASearch([q], 3, random_state=0, store=tmp_path).fit(data.X)
    np.testing.assert_array_equal(shared.labels_, alone.labels_)
    assert shared.best_estimator_.search_["bounds"] == alone.best_estimator_.search_["bounds"]


@pytest.mark.parametrize("stage", ["topics", "clusters", "resamples"])
def test_a_true_answer_of_the_callback_stops_and_chooses_among_what_is_finished(data, stage):
    with pytest.warns(InterruptedSearchWarning):
        search = MMPCASearch(random_state=0).fit(data.X, callback=lambda now: now.stage == stage and now.n_done >= 2)
    assert search.labels_.shape == (90,)
    if stage == "topics":
        assert search.topic_results_["n_topics"].tolist() == [1, 2]


def test_the_model_starts_from_the_clusters_that_were_compared_and_from_others_on_request(data, default):
    assert [start.kind for start in default.best_estimator_.starts_] == ["shares"]
    more = MMPCASearch(n_init=2, random_state=0).fit(data.X)
    kinds = [start.kind for start in more.best_estimator_.starts_]
    assert (kinds[0], len(kinds)) == ("shares", 3)
    assert more.best_estimator_.bound_ >= default.best_estimator_.bound_
