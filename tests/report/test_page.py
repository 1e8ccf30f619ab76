"""The contents of a report."""

import base64
import copy
import hashlib
import itertools
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mmpca import MMPCA, MMPCASearch
from mmpca.counts import as_counts
from mmpca.evaluation import summarize
from mmpca.model.explanation import row_terms
from mmpca.report import write_report
from mmpca.report.contents import describe_choice, report_contents, used_topics
from mmpca.report.context import MAX_SEARCHABLE, check_context, list_evidence

# For sparse data in the tests themselves; the report must not warn.
UNNAMED = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


@pytest.fixture(scope="module")
def full_page(full_path, read_page):
    return read_page(full_path)


@pytest.fixture(scope="module")
def bare_page(study, read_page, tmp_path_factory):
    return read_page(write_report(study.model, tmp_path_factory.mktemp("report") / "report.html"))


def data_of(page):
    return json.loads("".join(page.part("data").text))


def test_the_page_has_its_landmarks_and_sections_in_order(full_page):
    assert [len(full_page.find(tag)) for tag in ("html", "header", "nav", "main", "h1")] == [1, 1, 1, 1, 1]
    sections = [element for element in full_page.find("section") if element.around[-1] == "main"]
    assert [element.attributes["id"] for element in sections] == [
        "overview",
        "map",
        "clusters",
        "rows",
        "recipes",
        "topics",
        "sure",
        "labels",
        "many",
        "fit",
        "about",
    ]
    assert full_page.find("title")[0].words == full_page.find("h1")[0].words == "Letters"


def test_headings_never_skip_a_level(full_page):
    levels = [int(element.tag[1]) for element in full_page.elements if re.fullmatch("h[1-6]", element.tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_ids_are_unique_and_every_reference_has_a_target(full_page):
    names = [element.attributes["id"] for element in full_page.elements if "id" in element.attributes]
    assert len(names) == len(set(names))
    links = {element.attributes["href"][1:] for element in full_page.find("a") if element.attributes["href"][0] == "#"}
    heads = {e.attributes["aria-labelledby"] for e in full_page.elements if "aria-labelledby" in e.attributes}
    assert links | heads <= set(names)


def test_the_page_loads_nothing(full_page):
    for element in full_page.elements:
        assert "src" not in element.attributes
        assert element.tag not in ("link", "iframe", "img", "object", "base", "form")
    external = {e.attributes["href"] for e in full_page.find("a") if not e.attributes["href"].startswith("#")}
    assert external == {"https://doi.org/10.1007/s00180-020-01008-9"}
    assert re.findall(r"@import|url\(|XMLHttpRequest|connect-src", full_page.source) == []


def test_the_content_security_policy_allows_only_the_script_of_the_page(full_page):
    policy = full_page.find("meta", http_equiv="Content-Security-Policy")[0].attributes["content"]
    script = "".join(full_page.find("script")[-1].text)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}';" in policy


def test_the_heat_map_shows_the_topic_shares(full_page, study):
    shaded = [element for element in full_page.find("td") if re.match(r"s\d", element.attributes.get("class", ""))]
    cells = [float(element.attributes["data-v"]) for element in shaded[: study.model.cluster_topics_.size]]
    order = [int(e.attributes["data-cluster"]) for e in full_page.find("tr") if "data-cluster" in e.attributes]
    shares = study.model.cluster_topics_[order]
    np.testing.assert_allclose(np.reshape(cells, shares.shape), shares, atol=6e-5)


def test_clusters_that_merge_first_are_neighbors_in_the_heat_map(full_page, study):
    order = [int(e.attributes["data-cluster"]) for e in full_page.find("tr") if "data-cluster" in e.attributes]
    first, second = study.model.merge_path().linkage[0, :2].astype(int)
    assert abs(order.index(first) - order.index(second)) == 1
    assert sorted(order) == list(range(6))


def test_every_cluster_and_topic_has_a_card_with_features(full_page, study):
    cards = full_page.find("article")
    assert [card.attributes.get("data-cluster") for card in cards[:6]] == ["0", "1", "2", "3", "4", "5"]
    assert [card.attributes.get("data-topic") for card in cards[6:]] == ["0", "1", "2", "3"]
    sizes = np.bincount(study.model.labels_)
    assert all(str(size) in card.words for size, card in zip(sizes, cards, strict=False))
    for topic, card in zip(study.model.components_, cards[6:], strict=True):
        assert f" {study.model.feature_names_in_[topic.argmax()]} " in card.words


@UNNAMED
def test_every_cluster_shows_its_most_typical_and_its_least_certain_row(full_page, study):
    margins = study.model.rows_frame(study.X)["margin"].to_numpy()
    typical = [rows[0] for rows in study.model.clusters_frame(study.X, n_rows=1)["representative_rows"]]
    groups = full_page.find("section", klass="group")
    assert len(groups) == 6
    for q, group in enumerate(groups):
        members = np.flatnonzero(study.model.labels_ == q)
        for i in (typical[q], members[margins[members].argmin()]):
            assert f"letter {i} " in group.words
            assert f"the text of letter {i}" in group.words


def unpacked(text):
    return np.frombuffer(base64.b64decode(text[2:]), dtype=np.dtype(text[:2]).newbyteorder("<"))


@UNNAMED
def test_the_evidence_of_every_row_is_that_of_explain_until_four_fifths_are_listed(full_page, study):
    data = data_of(full_page)
    rows = data["rows"]
    listed, nats = unpacked(rows["listed"]), unpacked(rows["nats"]) / 100
    names = [data["features"][v] for v in unpacked(rows["features"])]
    ends = np.cumsum(listed)
    for i in (0, 17, 119):
        own = slice(ends[i] - listed[i], ends[i])
        [why] = study.model.explain(study.X, [i], labels=study.model.labels_, n_features=1000)
        known = {part.name: part.nats for part in why.evidence_for + why.evidence_against}
        assert [known[name] for name in names[own]] == pytest.approx(nats[own].tolist(), abs=0.006)
        weakest = np.abs(nats[own]).min()
        share = np.abs(nats[own]).sum() / why.total_evidence
        assert share >= 0.79 or listed[i] == 60
        assert share - weakest / why.total_evidence < 0.81


def test_labels_are_counted_by_cluster(full_page, study):
    table = full_page.part("confusion").words
    assert all(f"class {label} {n}" in table for label, n in enumerate(np.bincount(study.labels)))
    index = adjusted_rand_score(study.labels, study.model.labels_)
    assert f"{index:.2f}" in full_page.part("labels").words


def test_the_choice_is_explained_in_words_and_as_a_table(full_page):
    assert "6 clusters and 4 topics" in full_page.part("overview").words
    assert re.findall(r"[\d.]+", full_page.part("choice").words) == ["5", "6", "7", "4", "30", "4.5"]
    assert len(full_page.find("td", klass="best")) == 1


def test_starts_history_parameters_and_versions_are_listed(full_page, study):
    starts = [e for e in full_page.find("td") if float(e.attributes.get("data-v", 0)) < -1000]
    assert [float(e.attributes["data-v"]) for e in starts] == [start.bound for start in study.model.starts_]
    epochs = [e for e in full_page.find("th", klass="num") if e.words.isdecimal() and e.attributes["scope"] == "row"]
    assert len(epochs) == len(study.model.bound_history_)
    assert "random_state 0" in full_page.part("parameters").words
    assert "mmpca" in full_page.part("versions").words


def test_the_script_knows_every_row_and_the_topics_of_each_cluster(full_page, study, whole_names):
    data = data_of(full_page)
    assert whole_names(data["rows"]["name"]) == [f"letter {i}" for i in range(120)]
    assert unpacked(data["rows"]["cluster"]).tolist() == study.model.labels_.tolist()
    codes = unpacked(data["rows"]["label"])
    assert [data["rows"]["labels"][c] for c in codes] == [f"class {label}" for label in study.labels]
    for q, topics in data["topics"].items():
        assert topics[0] == study.model.cluster_topics_[int(q)].argmax()


def test_tables_have_captions_and_heads(full_page):
    assert len(full_page.find("table")) == len(full_page.find("caption")) == len(full_page.find("thead"))
    assert all("scope" in head.attributes for head in full_page.find("th"))


def test_without_data_the_page_has_no_rows_and_no_labels(bare_page):
    assert bare_page.find(id="labels") == []
    assert bare_page.find(id="choice") == []
    assert bare_page.find("section", klass="group") == []
    assert data_of(bare_page)["rows"]["n"] == 120
    assert bare_page.find(id="map") == []


@UNNAMED
def test_clusters_of_new_rows_are_predicted_and_the_summary_says_so(study, read_page, tmp_path):
    page = read_page(write_report(study.model, tmp_path / "new.html", X=study.X[-10:]))
    fitted, new = (report_contents(check_context(study.model, X), None, None, None) for X in (study.X, study.X[-10:]))
    assert len(new["summary"]) == len(fitted["summary"]) + 1
    assert all(card.certainty is not None for card in fitted["clusters"])
    assert all(card.certainty is None for card in new["clusters"])  # says nothing about the fit
    assert unpacked(data_of(page)["rows"]["cluster"]).tolist() == study.model.predict(study.X[-10:]).tolist()


@pytest.mark.parametrize("parameters", [{"n_clusters": 1, "n_topics": 1}, {"algorithm": "vbem"}, {"max_epochs": 0}])
def test_awkward_models_have_a_page(parameters, study, read_page, tmp_path):
    model = MMPCA(**{"n_clusters": 3, "n_topics": 2, "topics": "lda", "n_init": 1, "random_state": 0} | parameters).fit(
        study.X
    )
    page = read_page(write_report(model, tmp_path / "page.html", X=study.X))
    assert len(page.find("article")) == model.n_clusters + model.n_topics


def test_a_fit_that_did_not_converge_gets_a_warning(study):
    model = MMPCA(6, 4, topics="lda", n_init=1, max_epochs=0, random_state=0).fit(study.X)
    for fitted, level in ((study.model, "fine"), (model, "care")):
        contents = report_contents(check_context(fitted), None, None, None)
        assert contents["checks"][0][0] == level


def test_a_single_start_gets_a_note_unless_a_search_has_compared_its_clusters(study):
    alone = MMPCA(6, 4, topics="lda", n_init=1, random_state=0).fit(study.X)
    searched = MMPCASearch((5, 6), (4,), random_state=0).fit(study.X).best_estimator_
    for model, level in ((alone, "note"), (searched, "fine")):
        assert len(model.starts_) == 1
        assert report_contents(check_context(model), None, None, None)["checks"][1][0] == level


def test_cards_show_the_numbers_of_the_summary(study, full_page):
    contents = report_contents(check_context(study.model, study.X), None, None, None)
    quality = summarize(check_context(study.model).model, study.X)
    assert [card.coherence for card in contents["topics"]] == quality.npmi.tolist()
    assert [card.certainty for card in contents["clusters"]] == quality.certainty.tolist()
    cards = full_page.find("article", klass="topic")
    shown = [f"{round(value, 2) + 0.0:.2f}".replace("-", "\N{MINUS SIGN}") for value in quality.npmi]
    assert all(value in card.words for value, card in zip(shown, cards, strict=True))


@UNNAMED
def test_topics_that_share_their_features_get_a_warning(study):
    n_features = study.X.shape[1]
    flat = np.full((3, n_features), 1 / n_features)
    model = MMPCA(2, 3, topics=flat, refit_topics=False, n_init=1, random_state=0).fit(study.X)
    checks = report_contents(check_context(model, study.X), None, None, None)["checks"]
    alone = report_contents(check_context(model), None, None, None)["checks"]
    [(level, _)] = [check for check in checks if check not in alone]
    assert level == "care"


def test_a_single_feature_has_a_page_without_coherence():
    X = np.arange(1, 7)[:, None]
    model = MMPCA(2, 1, topics="lda", n_init=1, random_state=0).fit(X)
    contents = report_contents(check_context(model, X), None, None, None)
    assert contents["topics"][0].coherence is None


def test_a_page_about_many_rows_is_small_and_says_that_rows_are_left_out(read_page, large_path):
    assert large_path.stat().st_size < 2_000_000
    page = read_page(large_path)
    assert MAX_SEARCHABLE <= data_of(page)["rows"]["n"] < MAX_SEARCHABLE + 250
    assert "21,000" in page.part("sampled").words


@pytest.mark.parametrize(
    ("options", "error", "wrong"),
    [
        ({"texts": ["a", "b"]}, ValueError, "texts"),
        ({"search": [1]}, TypeError, "search"),
        ({"search": {"n_clusters": [1], "n_topics": [1]}}, ValueError, "icl"),
    ],
)
def test_wrong_options_are_rejected_and_nothing_is_written(study, tmp_path, options, error, wrong):
    with pytest.raises(error, match=wrong):
        write_report(study.model, tmp_path / "page.html", **options)
    assert list(tmp_path.iterdir()) == []


def test_without_jinja_the_error_names_the_extra_to_install(study, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"mmpca\[report\]"):
        write_report(study.model, tmp_path / "page.html")


def test_a_cluster_uses_the_topics_that_it_has_more_of_than_others():
    model = MMPCA()
    model.components_ = np.eye(3)
    model.weights_ = np.array([0.5, 0.5])
    model.cluster_topics_ = np.array([[0.7, 0.25, 0.05], [0.3, 0.65, 0.05]])
    assert used_topics(model) == [[0], [1]]
    model.cluster_topics_ = np.full((2, 3), 1 / 3)
    assert used_topics(model) == [[0, 1, 2], [0, 1, 2]]


def test_the_pictures_of_the_documentation_exist_and_are_small():
    folder = Path(__file__).parents[2] / "docs"
    named = set(re.findall(r"\(images/report/([\w-]+\.png)\)", (folder / "report.md").read_text(encoding="utf-8")))
    stored = {path.name: path.stat().st_size for path in (folder / "images" / "report").glob("*.png")}
    assert named == set(stored)
    assert max(stored.values()) < 200_000


@pytest.mark.parametrize("most", [2, 60])
def test_the_listed_evidence_is_the_strongest_until_four_fifths_are_explained(study, most):
    model, X = study.model, study.X
    terms = row_terms(as_counts(X), model, np.arange(120))
    listed = list_evidence(terms, most)
    ends = np.cumsum(listed.n_listed)
    for i, why in enumerate(model.explain(X, n_features=1000)):
        parts = sorted(why.evidence_for + why.evidence_against, key=lambda part: -abs(part.nats))[:most]
        sums = np.cumsum([abs(part.nats) for part in parts])
        parts = parts[: 1 + int((sums < 0.8 * why.total_evidence).sum())]
        own = slice(ends[i] - listed.n_listed[i], ends[i])
        np.testing.assert_allclose(listed.nats[own], sorted((part.nats for part in parts), reverse=True))
        assert set(listed.features[own].tolist()) == {part.feature for part in parts}
        removed = np.cumsum([0.0, *(part.nats for part in why.evidence_for)])
        enough = np.flatnonzero(why.margin - removed < 0)
        assert listed.to_move[i] == (enough[0] if enough.size and enough[0] <= 60 else -1)


@pytest.mark.parametrize(("numbers", "n_warnings"), [((1, 2, 3, 4), 0), ((2, 3), 1), ((3, 4, 5), 1)])
def test_a_number_at_the_edge_of_those_tried_comes_with_a_warning_and_is_never_strong(numbers, n_warnings):
    score = [0.0 if n == 3 else -90.0 for n in numbers]
    results = {"n_clusters": numbers, "n_topics": [4] * len(numbers), "shares": score}
    results = {name: np.array(column) for name, column in results.items()} | {"chosen": np.array(numbers) == 3}
    choice = describe_choice(results)
    assert len(choice.edges) == n_warnings
    assert choice.best == (3, 4)
    assert "strong" not in choice.reason or not n_warnings


def test_clusters_that_refits_do_not_find_again_are_explained_where_they_are_named(study, read_page, tmp_path):
    model = copy.copy(study.model)
    for similarities, is_explained in ((np.ones(6), False), (np.array([1, 1, 1, 1, 1, 0.2]), True)):
        model.cluster_stability_ = similarities
        page = read_page(write_report(model, tmp_path / "page.html", X=study.X))
        assert bool(page.find(id="lost")) == is_explained
        assert bool(page.find("span", klass="dissolved")) == is_explained
