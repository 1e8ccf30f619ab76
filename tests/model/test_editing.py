"""Known labels, seeded topics, and edits of clusters."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

import mmpca
from mmpca import MMPCA, MMPCASearch
from mmpca.model.editing import check_known, with_known
from mmpca.model.outliers import knots_of
from mmpca.simulate import paper_design, simulate_mmpca, sparse_topics


@pytest.fixture(scope="module")
def paper():
    return paper_design(n_samples=240, random_state=0)


@pytest.fixture
def model(paper):
    return MMPCA(6, 4, n_init=1, topics="lda", random_state=0).fit(paper.X)


# --- known labels -----------------------------------------------------------------------------------------------


def hard_design(seed):
    rng = np.random.default_rng(seed)
    n_clusters, n_topics = ((6, 6), (10, 8), (12, 8))[seed % 3]
    topics = sparse_topics(n_topics, 200, 0.3, random_state=seed)
    shares = rng.dirichlet(np.full(n_topics, 0.4), n_clusters)
    options = {"noise": 0.15, "lengths": 70, "random_state": seed}
    data = simulate_mmpca(400, topics=topics, cluster_topics=shares, **options)
    return data, np.where(rng.random(400) < 0.05, data.labels, -1), (n_clusters, n_topics)


def test_five_percent_of_true_labels_help_on_most_hard_designs_and_hurt_on_none():
    gains = []
    for seed in range(6):  # each size twice
        data, known, sizes = hard_design(seed)
        others = known < 0
        plain = MMPCA(*sizes, topics="lda", n_init=4, random_state=0).fit(data.X)
        # Topics are learned without the labels.
        informed = MMPCA(*sizes, topics=plain.components_, n_init=4, random_state=0).fit(data.X, labels=known)
        np.testing.assert_array_equal(informed.labels_[~others], known[~others])
        assert [start.kind for start in informed.starts_[len(plain.starts_) :]] == ["known", "kmeans"]
        gains.append(
            adjusted_rand_score(data.labels[others], informed.labels_[others])
            - adjusted_rand_score(data.labels[others], plain.labels_[others])
        )
    gains = np.array(gains)
    assert gains.min() > -0.005  # one row of 400
    assert gains.mean() > 0.01
    assert (gains > 0.0025).sum() > len(gains) / 2


@pytest.mark.parametrize("algorithm", ["greedy", "exact", "cvem"])
@pytest.mark.parametrize("start", ["auto", "random", "anneal"])
def test_known_rows_never_move_even_if_their_labels_are_wrong(paper, algorithm, start):
    X, rng = paper.X[:90], np.random.default_rng(0)
    known = np.where(rng.random(90) < 0.3, rng.integers(0, 6, 90), -1)
    fitted = MMPCA(6, 4, n_init=1, topics="lda", algorithm=algorithm, start=start, random_state=0)
    fitted.fit(X, labels=known)
    np.testing.assert_array_equal(fitted.labels_[known >= 0], known[known >= 0])
    assert (np.diff(fitted.bound_history_) >= 0).all()
    assert (np.bincount(fitted.labels_, minlength=6) > 0).all()


def test_no_known_labels_change_nothing(paper, model, same_fit):
    other = MMPCA(6, 4, n_init=1, topics="lda", random_state=0).fit(paper.X, labels=np.full(240, -1))
    same_fit(model, other)


def test_known_labels_and_groups_with_an_index_are_matched_by_name(paper):
    frame = pd.DataFrame(paper.X.toarray(), index=[f"row {i}" for i in range(240)])
    frame.columns = [f"v{v}" for v in frame.columns]
    known = pd.Series(np.where(np.arange(240) < 60, paper.labels, -1), index=frame.index)
    models = [
        MMPCA(6, 4, n_init=1, topics="lda", random_state=0).fit(frame, labels=labels)
        for labels in (known, known.sample(frac=1, random_state=0))
    ]
    np.testing.assert_array_equal(models[0].labels_, models[1].labels_)
    months = pd.Series(paper.labels, index=frame.index)
    tables = [models[0].clusters_over(one, frame) for one in (months, months.iloc[::-1])]
    pd.testing.assert_frame_equal(*tables)
    with pytest.raises(ValueError, match="row 3"):
        MMPCA(6, 4).fit(frame, labels=known.rename({"row 3": "other"}))


def test_seed_words_that_do_not_occur_are_told(paper):
    frame = pd.DataFrame(paper.X.toarray()).add_prefix("v")
    with pytest.warns(UserWarning, match="submarine"):
        MMPCA(6, 4, topics="lda", n_init=1, random_state=0).fit(frame, seed_topics={"sea": ["v3", "submarine"]})


def test_names_of_known_labels_become_those_of_the_clusters(paper):
    names = np.full(240, None, dtype=object)
    names[:40] = [f"kind {q}" for q in paper.labels[:40]]
    fitted = MMPCA(6, 4, n_init=1, topics="lda", random_state=0).fit(paper.X, labels=names)
    assert fitted.cluster_names_[fitted.labels_[:40]].tolist() == names[:40].tolist()


def test_starts_agree_with_known_labels_and_leave_no_cluster_empty():
    rng = np.random.default_rng(0)
    labels, known = rng.integers(0, 5, 60).astype(np.int32), np.full(60, -1, dtype=np.int32)
    known[labels == 3] = 0  # cluster 3 of the start is known as 0
    found = with_known(labels, known, 5, rng)
    assert (np.bincount(found, minlength=5) > 0).all()
    assert adjusted_rand_score(found, labels) == 1.0


@pytest.mark.parametrize("labels", [[0, 1], [0, 5, -1], [0, -2, 1], [0.5, 1, 1], ["a", "b", "c"], [0, np.inf, 1]])
def test_invalid_known_labels_are_an_error(labels):
    with pytest.raises(ValueError, match="labels"):
        check_known(labels, 3, 2)


def test_an_error_about_known_labels_names_their_row():
    with pytest.raises(ValueError, match=r"labels\[3\]"):
        check_known([0, np.nan, 1, 0.5], 4, 2)


@pytest.mark.parametrize(
    "labels", [[1, np.nan, 0], [1, None, 0], pd.Series([1, pd.NA, 0], dtype="Int64"), pd.Series([1, None, 0])]
)
def test_missing_values_among_numbers_are_unknown(labels):
    known = check_known(labels, 3, 2)
    assert (known.labels.tolist(), known.names) == ([1, -1, 0], {})


def test_names_that_are_numbers_are_sorted_as_numbers():
    assert check_known(["10", "9", " ", "north"], 4, 3).names == {0: "9", 1: "10", 2: "north"}


# --- words of topics --------------------------------------------------------------------------------------------


def test_seeded_topics_come_first_with_their_words_and_names(paper):
    X = pd.DataFrame(paper.X.toarray(), columns=paper.feature_names)
    for seeds in ({"space": ["black", "hole"], "royals": ["baby", "prince"]}, {"cells": ["cells"]}):
        fitted = MMPCA(6, 4, topics="lda", n_init=1, random_state=0).fit(X, seed_topics=seeds)
        assert fitted.topic_names_[: len(seeds)].tolist() == list(seeds)
        for k, words in enumerate(seeds.values()):
            at = [X.columns.get_loc(word) for word in words]
            assert (fitted.components_[:, at].argmax(axis=0) == k).all()
        np.testing.assert_allclose(fitted.components_.sum(axis=1), 1.0)


def test_words_of_different_topics_can_be_put_into_one(paper):
    """Left alone, LDA separates these words."""
    X = pd.DataFrame(paper.X.toarray(), columns=paper.feature_names)
    plain = MMPCA(6, 4, n_init=1, topics="lda", random_state=0).fit(X)
    at = [X.columns.get_loc(word) for word in ("hole", "prince")]
    assert len(set(plain.components_[:, at].argmax(axis=0))) == 2
    seeded = MMPCA(6, 4, topics="lda", n_init=1, random_state=0).fit(X, seed_topics={"both": ["hole", "prince"]})
    assert (seeded.components_[:, at].argmax(axis=0) == 0).all()


@pytest.mark.parametrize("seeds", [{"a": ["no such word"]}, {name: ["black"] for name in "abcde"}])
def test_impossible_seeds_are_an_error(paper, seeds):
    X = pd.DataFrame(paper.X.toarray(), columns=paper.feature_names)
    with pytest.raises(ValueError, match="seed_topics"):
        MMPCA(6, 4, random_state=0).fit(X, seed_topics=seeds)


# --- edits ------------------------------------------------------------------------------------------------------


def test_merged_clusters_stay_together_and_the_bound_is_that_of_the_labels(model, paper, scratch_bound):
    labels, bound = model.labels_.copy(), model.bound_
    model.rename({1: "first", 4: "second", 5: "last"})
    report = model.edit(paper.X, merge=[4, 1], refit=False)
    expected = np.array([0, 1, 2, 3, 1, 4])[labels]
    np.testing.assert_array_equal(model.labels_, expected)
    assert (report.bound_before, report.bound_edited) == (bound, report.bound_after)
    X = paper.X.toarray()
    assert report.bound_edited == pytest.approx(scratch_bound(X, expected, beta=model.components_), rel=1e-9)
    assert model.cluster_names_[[1, 4]].tolist() == ["first", "last"]
    assert model.n_clusters == 5
    assert model.predict_proba(paper.X).shape == (240, 5)


def test_a_refit_never_lowers_the_bound_of_the_edited_labels(model, paper):
    report = model.edit(paper.X, merge=[[0, 1], [2, 3]], split=[5])
    assert report.bound_after >= report.bound_edited
    assert (np.diff(model.bound_history_) >= 0).all()
    assert len(model.weights_) == 5
    assert [edit.kind for edit in model.edits_] == ["merge", "merge", "split"]


def test_splitting_a_merged_cluster_finds_its_parts_again(model, paper):
    labels, bound = model.labels_.copy(), model.bound_
    merged = model.edit(paper.X, merge=[1, 4], refit=False).numbers[1]
    report = model.edit(paper.X, split=[merged])
    assert adjusted_rand_score(model.labels_, labels) > 0.95
    assert report.bound_after > report.bound_before
    assert report.bound_after >= bound - 1e-3 * abs(bound)


def test_moved_rows_stay_where_they_were_put(model, paper):
    rows = np.flatnonzero(model.labels_ == 0)[:3].tolist()
    report = model.edit(paper.X, move=dict.fromkeys(rows, 2))
    assert model.labels_[rows].tolist() == [2, 2, 2]
    assert report.bound_edited < report.bound_before


def test_rows_can_be_moved_and_explained_by_name(model, paper):
    frame = pd.DataFrame(paper.X.toarray(), index=[f"row {i}" for i in range(240)])
    row = int(np.flatnonzero(model.labels_ == 0)[0])
    assert model.explain(frame, [f"row {row}", 3]) == model.explain(frame, [row, 3])
    model.edit(frame, move={f"row {row}": 2})
    assert model.labels_[row] == 2
    with pytest.raises(ValueError, match="row 999"):
        model.explain(frame, ["row 999"])
    with pytest.raises(ValueError, match="same"):
        model.explain(frame.set_axis(["same"] * 240), ["same"])


def test_without_a_search_all_other_rows_keep_their_clusters(model, paper):
    before, row = model.labels_.copy(), int(np.flatnonzero(model.labels_ == 0)[0])
    report = model.edit(paper.X, move={row: 2}, refit=False)
    before[row] = 2
    np.testing.assert_array_equal(model.labels_, before)
    assert report.bound_after == report.bound_edited


def test_without_a_search_an_edit_keeps_what_corrects_probabilities_and_with_one_it_is_estimated_again(paper, model):
    before, knots = 7.5, knots_of(model)
    model.temperature_ = before
    model.edit(paper.X, merge=[0, 1], refit=False)
    assert model.temperature_ == before
    np.testing.assert_array_equal(knots_of(model), knots)
    model.edit(paper.X)
    assert model.temperature_ != before
    assert not np.array_equal(knots_of(model), knots)


def test_a_single_cluster_has_no_temperature_to_keep_when_it_is_split(paper):
    model = MMPCA(1, 4, n_init=1, random_state=0).fit(paper.X)
    assert model.temperature_ == 1.0
    model.edit(paper.X, split=[0], refit=False)
    assert model.temperature_ > 1.0


def test_edits_keep_names_words_annotations_and_rows_without_counts(paper, tmp_path):
    X = sparse.csr_array(sparse.vstack([sparse.csr_array((1, paper.X.shape[1]), dtype=np.int64), paper.X]))
    model = MMPCA(6, 4, n_init=1, topics="lda", random_state=0).fit(paper.X)
    model.rename({5: "last"}, {0: "first topic"}, row="site", feature="species")
    model.feature_annotations_ = {"taxonomy": np.array([f"family {v}" for v in range(X.shape[1])], dtype=object)}
    model.edit(X, merge=[0, 1], move={9: 3}, refit=False)
    assert model.labels_[8] == 2  # the clusters after the merged ones move up
    model.save(tmp_path / "m.mmpca")
    loaded = mmpca.load(tmp_path / "m.mmpca")
    assert loaded.cluster_names_[4] == "last"
    assert loaded.topic_names_[0] == "first topic"
    assert loaded.feature_annotations_["taxonomy"][3] == "family 3"
    assert loaded._words == ("site", "species")


def test_the_model_of_a_search_can_be_edited(paper):
    search = MMPCASearch([5, 6], [4], criterion="icl", random_state=0, n_init=1).fit(paper.X)
    model = search.best_estimator_
    n_before, smoothing = len(model.weights_), model.smoothing_
    model.edit(paper.X, merge=[0, 1])
    assert len(model.weights_) == n_before - 1
    assert model.smoothing_ == smoothing > 0
    assert model.topics_source_ == "lda"


def test_noise_spreads_to_no_cluster_that_it_is_merged_with(model, paper):
    model.edit(paper.X, noise=[0, 1], refit=False)
    model.edit(paper.X, merge=[1, 3], refit=False)
    assert model.noise_clusters_.tolist() == [0]


def test_noise_is_named_and_labeled_on_request(model, paper):
    model.edit(paper.X, noise=[3])
    is_noise = model.labels_ == 3
    assert model.cluster_names_[3] == "noise"
    assert (model.outlier_labels(0.0) == -1).tolist() == is_noise.tolist()
    assert (model.predict(paper.X, outliers=0.0)[is_noise] == -1).mean() > 0.9


def test_edits_survive_in_the_model_file(model, paper, tmp_path):
    model.edit(paper.X, merge=[1, 4], noise=[0])
    model.save(tmp_path / "edited.mmpca")
    loaded = mmpca.load(tmp_path / "edited.mmpca")
    assert loaded.edits_ == model.edits_
    np.testing.assert_array_equal(loaded.noise_clusters_, model.noise_clusters_)
    np.testing.assert_array_equal(loaded.predict(paper.X), model.predict(paper.X))
    again = loaded.edit(paper.X, split=[1])
    assert [edit.kind for edit in loaded.edits_] == ["merge", "noise", "split"]
    assert again.bound_before == pytest.approx(model.bound_)


@pytest.mark.filterwarnings("ignore::mmpca.errors.OverdispersionWarning")
@pytest.mark.parametrize("options", [{"dispersion": "polya"}, {"stabilize": "sqrt"}, {"dispersion": "shares"}])
def test_every_kind_of_model_can_be_edited(paper, options):
    fitted = MMPCA(6, 4, n_init=1, topics="lda", random_state=0, **options).fit(paper.X)
    beta = fitted.components_.copy()
    report = fitted.edit(paper.X, merge=[0, 5])
    assert report.bound_after >= report.bound_edited
    assert fitted.get_params()["n_clusters"] == 5
    np.testing.assert_array_equal(fitted.components_, beta)


@pytest.mark.parametrize(
    "edits", [{"merge": [1]}, {"merge": [1, 9]}, {"split": [-1]}, {"merge": [1, 2], "split": [2]}, {"move": {999: 0}}]
)
def test_impossible_edits_are_errors_and_change_nothing(model, paper, edits, same_fit):
    before = MMPCA(6, 4, n_init=1, topics="lda", random_state=0).fit(paper.X)
    with pytest.raises(ValueError, match=r"cluster|merge|[Rr]ow"):
        model.edit(paper.X, **edits)
    same_fit(model, before)


def test_other_rows_cannot_be_edited(model, paper):
    with pytest.raises(ValueError, match=r"\bX\b"):
        model.edit(paper.X[:100], merge=[0, 1])
