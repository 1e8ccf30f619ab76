"""A newcomer's path: a folder of texts is inspected, fitted and explained, and new texts find their clusters."""

import json
import subprocess
import sys

import numpy as np
import pytest

import mmpca
from mmpca.io import read_counts
from mmpca.model import read_model
from mmpca.text import CountTexts, read_texts

SUBJECTS = {
    "sea": ["wave", "tide", "harbour", "ship", "sail", "anchor", "salt", "gull", "storm", "captain"],
    "bread": ["flour", "oven", "crust", "dough", "yeast", "baker", "loaf", "butter", "salt", "kitchen"],
    "stars": ["comet", "orbit", "planet", "telescope", "galaxy", "moon", "eclipse", "night", "dust", "light"],
}


def report(subject, rng, length=40):
    """Return a text of 40 words on a subject, with small words in between."""
    return " ".join(f"the {word} and" for word in rng.choice(SUBJECTS[subject], size=length)).capitalize() + "."


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Return a folder with a folder of 36 old texts and one of 9 new texts, each named by its subject."""
    folder, rng = tmp_path_factory.mktemp("texts"), np.random.default_rng(0)
    for name, n_texts in (("old", 12), ("new", 3)):
        (folder / name).mkdir()
        for subject in SUBJECTS:
            for number in range(n_texts):
                (folder / name / f"{subject}_{number}.txt").write_text(report(subject, rng))
    with open(folder / "new" / "sea_0.txt", "a") as file:
        file.write(" Zeppelin!")
    return folder


@pytest.fixture(scope="module")
def fitted(mmpca_command, reports):
    done = mmpca_command(
        *("fit", reports / "old", "--clusters", 3, "--topics", 3, "--n-init", 2, "--stop-words", "english"),
        *("--model", reports / "reports.mmpca", "--labels", reports / "labels.csv"),
    )
    assert done.code == 0, done.err
    return done


def subjects(names):
    return [name.partition("_")[0] for name in names]


def test_a_folder_of_texts_can_be_inspected(mmpca_command, reports):
    done = mmpca_command("inspect", reports / "old", "-q", 3, "-k", 3, "--stop-words", "english", "--json")
    assert done.code == 0, done.err
    n_words = len({word for words in SUBJECTS.values() for word in words})
    assert (done.json["rows"], done.json["features"], done.json["total"]) == (36, n_words, 36 * 40)


@pytest.mark.usefixtures("fitted")
def test_texts_on_one_subject_share_a_cluster(reports):
    lines = (reports / "labels.csv").read_text().splitlines()[1:]
    names, clusters = zip(*(line.split(",")[:2] for line in lines), strict=True)
    assert len(names) == 36
    assert len(set(zip(subjects(names), clusters, strict=True))) == 3
    assert len(set(clusters)) == 3


@pytest.mark.usefixtures("fitted")
def test_new_texts_find_the_clusters_of_their_subjects(mmpca_command, reports):
    done = mmpca_command("predict", reports / "reports.mmpca", reports / "new", "--json")
    assert done.code == 0, done.err
    assert "1 of 361 words are not known to the model and were passed over" in done.err
    labels = dict(line.split(",")[:2] for line in (reports / "labels.csv").read_text().splitlines()[1:])
    for record in done.json["labels"]:
        subject = record["row"].partition("_")[0]
        assert str(record["cluster"]) == labels[f"{subject}_0"]


SCRIPT = """
import sys, warnings
import numpy as np
from mmpca.model import read_model
from mmpca.text import CountTexts, read_texts
warnings.simplefilter("ignore")
file = read_model(sys.argv[1])
X = CountTexts.from_settings(file.text).transform(read_texts(sys.argv[2]).texts)
np.savez(sys.argv[3], labels=file.model.predict(X), probabilities=file.model.predict_proba(X))
"""


@pytest.mark.usefixtures("fitted")
def test_raw_texts_are_predicted_bit_for_bit_alike_in_another_process(reports, tmp_path):
    target = tmp_path / "there.npz"
    arguments = [reports / "reports.mmpca", reports / "new", target]
    subprocess.run([sys.executable, "-c", SCRIPT, *map(str, arguments)], check=True, timeout=120)
    model = mmpca.load(reports / "reports.mmpca")
    counter = CountTexts(stop_words="english").fit(read_texts(reports / "old").texts)
    X = counter.transform(read_texts(reports / "new").texts)
    del model.feature_names_in_
    there = np.load(target)
    np.testing.assert_array_equal(there["labels"], model.predict(X))
    np.testing.assert_array_equal(there["probabilities"], model.predict_proba(X))


@pytest.mark.usefixtures("fitted")
def test_texts_are_explained_by_their_names_and_words(mmpca_command, reports):
    done = mmpca_command("explain", reports / "reports.mmpca", reports / "new", "--row", "bread_1", "--json")
    assert done.code == 0, done.err
    (why,) = done.json
    assert why["name"] == "bread_1"
    assert {part["name"] for part in why["evidence_for"]} <= set(SUBJECTS["bread"])


def test_the_vocabulary_and_its_settings_are_in_the_model(fitted, reports):
    file = read_model(reports / "reports.mmpca")
    assert file.text["stop_words"] == "english"
    assert file.text["words"] == file.model.feature_names_in_.tolist()
    assert "features that set them apart" in fitted.out


@pytest.mark.usefixtures("fitted")
def test_counts_of_words_can_be_given_to_a_model_of_texts(mmpca_command, reports, tmp_path):
    counts = tmp_path / "new.mtx"
    assert mmpca_command("convert", reports / "new", counts, "--stop-words", "english").code == 0
    from_counts = mmpca_command("predict", reports / "reports.mmpca", counts, "--json")
    from_texts = mmpca_command("predict", reports / "reports.mmpca", reports / "new", "--json")
    assert from_counts.json["labels"] == from_texts.json["labels"]
    assert "1 features that the model does not know" in from_counts.err


@pytest.mark.usefixtures("fitted")
def test_texts_are_read_from_lines_and_columns_as_well(mmpca_command, reports, tmp_path):
    texts = read_texts(reports / "new").texts
    lines, rows, records = tmp_path / "new.txt", tmp_path / "new.csv", tmp_path / "new.jsonl"
    lines.write_text("\n".join(texts))
    rows.write_text("id,story\n" + "\n".join(f"{i},{text}" for i, text in enumerate(texts)))
    records.write_text("\n".join(json.dumps({"story": text}) for text in texts))
    found = [
        mmpca_command("predict", reports / "reports.mmpca", path, "--json", *options)
        for path, options in ((lines, ()), (rows, ("--text-column", "story")), (records, ("--text-column", "story")))
    ]
    expected = mmpca_command("predict", reports / "reports.mmpca", reports / "new", "--json")
    for done in found:
        assert done.code == 0, done.err
        clusters = [record["cluster"] for record in done.json["labels"]]
        assert clusters == [record["cluster"] for record in expected.json["labels"]]


def test_words_are_chosen_by_the_options(mmpca_command, reports, tmp_path):
    (tmp_path / "words.txt").write_text("salt\nmoon\n\nmoon\nUNREACHABLE\n")
    (tmp_path / "stop.txt").write_text("the\nand\nsalt\n")
    target = tmp_path / "X.npz"
    done = mmpca_command("convert", reports / "old", target, "--words", tmp_path / "words.txt")
    assert done.code == 0, done.err
    assert "can never be found, among them 'UNREACHABLE'" in done.err
    assert read_counts(target).feature_names.tolist() == ["salt", "moon", "UNREACHABLE"]
    mmpca_command("convert", reports / "old", target, "--stop-words", tmp_path / "stop.txt", "--ngrams", 2)
    names = read_counts(target).feature_names.tolist()
    assert "the" not in names
    assert "salt" not in names
    assert any(" " in name for name in names)
    mmpca_command("convert", reports / "old", target, "--max-share", 0.5)
    assert not {"the", "and"} & set(read_counts(target).feature_names.tolist())


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (lambda path: path.mkdir(), [], "no .txt files in the folder"),
        (lambda path: path.write_text(""), ["--text"], "empty"),
        (lambda path: path.write_bytes(b"\xff\xfe\xff"), ["--text"], ""),
        (lambda path: path.write_text("a b c\n"), ["--text"], "no word of the 1 texts is left"),
        (lambda path: path.write_text("id,text\n1,one\n2\n"), ["--text-column", "text"], "expected 2 fields"),
        (lambda path: path.write_text("id,text\n1,one\n"), ["--text-column", "story"], "story"),
        (lambda path: path.write_text("one two\n"), ["--text", "--stop-words", "nosuch.txt"], "Give english, or"),
        (
            lambda path: path.write_text("one two\n"),
            ["--text", "--min-rows", "5"],
            "left with --min-rows 5",
        ),
        (lambda path: path.write_text("one\ntwo\n"), ["--text", "--min-rows", "2"], "no word of the 2 texts is left"),
        (lambda path: path.write_text("1,2\n"), ["--min-rows", "2"], "--min-rows is for texts"),
    ],
    ids=["empty folder", "empty", "bytes", "no words", "ragged", "no column", "no list", "few", "pruned", "counts"],
)
def test_texts_that_cannot_be_read_get_a_message(mmpca_command, tmp_path, make, options, message):
    path = tmp_path / "input"
    make(path)
    done = mmpca_command("fit", path, "-q", 1, "-k", 1, *options)
    assert done.code == 1
    assert done.err.startswith("error: ")
    assert message in done.err


@pytest.mark.usefixtures("fitted")
@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text | {"hook": "os.system"},
        lambda text: text | {"stop_words": 5},
        lambda text: text | {"words": text["words"][::-1]},
        lambda text: {name: value for name, value in text.items() if name != "words"},
        lambda text: {},
    ],
    ids=["unknown", "wrong type", "other order", "no words", "nothing"],
)
def test_settings_that_do_not_belong_to_the_model_are_refused(mmpca_command, reports, tmp_path, spoil):
    file = read_model(reports / "reports.mmpca")
    file.model.save(tmp_path / "bad.mmpca", text=spoil(file.text))
    done = mmpca_command("predict", tmp_path / "bad.mmpca", reports / "new")
    assert done.code == 1
    assert "Fit it again." in done.err
