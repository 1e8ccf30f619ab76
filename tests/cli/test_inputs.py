"""Known labels, and texts from their words to clusters."""

import json
import re

import numpy as np
import pytest

from mmpca.cli.inputs import read_columns, read_labels
from mmpca.errors import InputFileError
from mmpca.io import read_counts
from mmpca.model import read_model
from mmpca.text import CountTexts, read_texts

# --- labels -----------------------------------------------------------------------------------------------------

NAMES = ["ann", "ben", "cleo"]


@pytest.fixture
def table(tmp_path):
    """Return a function that writes a table of labels, each the name of its row in capitals."""

    def write(*rows):
        path = tmp_path / "labels.csv"
        path.write_text("row,label\n" + "".join(f"{row},{row.upper()}\n" for row in rows))
        return path

    return write


def test_labels_are_matched_by_name(table, capsys):
    assert read_labels(table("cleo", "ann", "ben"), NAMES, 3) == ["ANN", "BEN", "CLEO"]
    assert capsys.readouterr().err == ""


def test_without_names_labels_are_matched_by_position(table):
    assert read_labels(table("cleo", "ann", "ben"), None, 3) == ["CLEO", "ANN", "BEN"]


def test_if_no_name_is_known_labels_are_matched_by_position_with_a_note(table, capsys):
    path = table("x", "y", "z")
    assert read_labels(path, NAMES, 3) == ["X", "Y", "Z"]
    assert path.name in "".join(capsys.readouterr().err.split())


def test_names_in_the_same_order_may_repeat(table):
    assert read_labels(table("ann", "ben", "ann"), ["ann", "ben", "ann"], 3) == ["ANN", "BEN", "ANN"]


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        (["ann", "x", "y"], NAMES),
        (["cleo", "ann"], NAMES),
        (["cleo", "ann", "ann"], NAMES),
        (["ben", "ann", "cleo"], ["ann", "ben", "ben"]),
        (["1", "2", "3"], ["0", "1", "2"]),  # numbered from 1: every label would shift
    ],
)
def test_labels_that_cannot_be_matched_are_an_error(table, rows, names):
    path = table(*rows)
    with pytest.raises(InputFileError) as caught:
        read_labels(path, names, len(names))
    assert caught.value.path == path


def write_metadata(path, text):
    path.write_text(text)
    return path


def test_labels_are_matched_by_any_column_that_has_the_names(tmp_path, capsys):
    path = write_metadata(tmp_path / "map.tsv", "#SampleID\tage\tSite\ncleo\t4\tgut\nann\t5\ttongue\nben\t6\tgut\n")
    assert read_labels(path, NAMES, 3, "Site") == ["tongue", "gut", "gut"]
    assert read_labels(path, NAMES, 3, "age") == ["5", "6", "4"]
    assert capsys.readouterr().err == ""


def test_labels_of_several_columns_are_ambiguous(tmp_path):
    path = write_metadata(tmp_path / "map.tsv", "id\tage\tsite\nann\t5\ttongue\nben\t6\tgut\ncleo\t4\tgut\n")
    for column in (None, "nothing"):
        with pytest.raises(InputFileError, match="site") as caught:
            read_labels(path, NAMES, 3, column)
        assert caught.value.path == path


def test_names_in_two_columns_that_disagree_are_ambiguous(tmp_path):
    path = write_metadata(tmp_path / "map.csv", "a,b,label\nann,ben,1\nben,cleo,2\ncleo,ann,3\n")
    with pytest.raises(InputFileError, match="'a', 'b'"):
        read_labels(path, NAMES, 3)
    assert read_labels(write_metadata(path, "row,b,label\nann,ben,1\nben,cleo,2\ncleo,ann,3\n"), NAMES, 3) == list(
        "123"
    )


def test_records_of_other_rows_are_left_out_with_a_note(table, capsys):
    assert read_labels(table("dan", "cleo", "ann", "ben"), NAMES, 3) == ["ANN", "BEN", "CLEO"]
    assert "1 record " in " ".join(capsys.readouterr().err.split())


def test_labels_of_other_files_are_their_lines(tmp_path):
    path = tmp_path / "labels.txt"
    path.write_text("b\na\n")
    assert read_labels(path, ["x", "y"], 2) == ["b", "a"]
    with pytest.raises(InputFileError) as caught:
        read_labels(path, None, 3)
    assert caught.value.path == path
    path.write_bytes(b"one\n\xff\xd8\x80")
    with pytest.raises(InputFileError) as caught:
        read_labels(path, None, 2)
    assert (caught.value.path, caught.value.line) == (path, 2)


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("odd.csv", b"row,label\n1\n", 2),
        ("none.csv", b"", None),
        ("header.csv", b"row,label\n", None),
        ("cyrillic.csv", "row,label\n1,липы\n".encode("cp1251"), 2),
        ("table.txt", b"row,label\n1,2\n", None),
    ],
)
def test_a_bad_table_is_an_error_at_its_line(tmp_path, name, content, line):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputFileError) as caught:
        read_columns(path)
    assert (caught.value.path, caught.value.line) == (path, line)


# --- texts ------------------------------------------------------------------------------------------------------

SUBJECTS = {
    "sea": ["wave", "tide", "harbour", "ship", "sail", "anchor", "salt", "gull", "storm", "captain"],
    "bread": ["flour", "oven", "crust", "dough", "yeast", "baker", "loaf", "butter", "salt", "kitchen"],
    "stars": ["comet", "orbit", "planet", "telescope", "galaxy", "moon", "eclipse", "night", "dust", "light"],
}


@pytest.fixture(scope="module")
def reports(mmpca_command, tmp_path_factory):
    """Return a folder with 36 old texts, 9 new texts named by their subjects, a model of the old and its labels."""
    folder, rng = tmp_path_factory.mktemp("texts"), np.random.default_rng(0)
    for name, n_texts in (("old", 12), ("new", 3)):
        (folder / name).mkdir()
        for subject, words in SUBJECTS.items():
            for number in range(n_texts):
                text = " ".join(f"the {word} and" for word in rng.choice(words, size=40)).capitalize()
                (folder / name / f"{subject}_{number}.txt").write_text(f"{text}.")
    with open(folder / "new" / "sea_0.txt", "a") as file:
        file.write(" Zeppelin!")
    done = mmpca_command(
        *("fit", folder / "old", "--clusters", 3, "--topics", 3, "--n-init", 2, "--jobs", 1, "--stop-words", "english"),
        *("--model", folder / "reports.mmpca", "--labels", folder / "labels.csv"),
    )
    assert done.code == 0, done.err
    return folder


def test_a_folder_of_texts_is_inspected(mmpca_command, reports):
    done = mmpca_command("inspect", reports / "old", "-q", 3, "-k", 3, "--stop-words", "english", "--json")
    n_words = len({word for words in SUBJECTS.values() for word in words})
    assert (done.json["rows"], done.json["features"], done.json["total"]) == (36, n_words, 36 * 40)


def test_texts_share_a_cluster_with_those_of_their_subject(mmpca_command, reports):
    labels = dict(line.split(",")[:2] for line in (reports / "labels.csv").read_text().splitlines()[1:])
    assert len(labels) == 36
    assert len({(name.partition("_")[0], cluster) for name, cluster in labels.items()}) == 3
    assert len(set(labels.values())) == 3
    done = mmpca_command("predict", reports / "reports.mmpca", reports / "new", "--json")
    assert len(done.json["notes"]) == 1  # the model does not know Zeppelin
    for record in done.json["labels"]:
        subject = record["row"].partition("_")[0]
        assert str(record["cluster"]) == labels[f"{subject}_0"]


def test_a_model_keeps_the_words_and_how_they_were_counted(reports):
    file = read_model(reports / "reports.mmpca")
    assert file.text["stop_words"] == "english"
    assert file.text["words"] == file.model.feature_names_in_.tolist()
    texts = read_texts(reports / "new").texts
    fitted = CountTexts(stop_words="english").fit(read_texts(reports / "old").texts)
    again = CountTexts.from_settings(file.text)
    assert (again.transform(texts) != fitted.transform(texts)).nnz == 0


def test_texts_are_explained_by_their_words(mmpca_command, reports):
    done = mmpca_command("explain", reports / "reports.mmpca", reports / "new", "--row", "bread_1", "--json")
    (why,) = done.json
    assert why["name"] == "bread_1"
    assert {part["name"] for part in why["evidence_for"]} <= set(SUBJECTS["bread"])


def test_a_model_of_texts_takes_counts_of_words_too(mmpca_command, reports, tmp_path):
    counts = tmp_path / "new.mtx"
    assert mmpca_command("convert", reports / "new", counts, "--stop-words", "english").code == 0
    from_counts = mmpca_command("predict", reports / "reports.mmpca", counts, "--json")
    from_texts = mmpca_command("predict", reports / "reports.mmpca", reports / "new", "--json")
    assert from_counts.json["labels"] == from_texts.json["labels"]


def test_texts_are_read_from_lines_and_columns_too(mmpca_command, reports, tmp_path):
    texts = read_texts(reports / "new").texts
    lines, rows, records = tmp_path / "new.txt", tmp_path / "new.csv", tmp_path / "new.jsonl"
    lines.write_text("\n".join(texts))
    rows.write_text("id,story\n" + "\n".join(f"{i},{text}" for i, text in enumerate(texts)))
    records.write_text("\n".join(json.dumps({"story": text}) for text in texts))
    expected = mmpca_command("predict", reports / "reports.mmpca", reports / "new", "--json")
    for path, options in ((lines, ()), (rows, ("--text-column", "story")), (records, ("--text-column", "story"))):
        done = mmpca_command("predict", reports / "reports.mmpca", path, "--json", *options)
        clusters = [record["cluster"] for record in done.json["labels"]]
        assert clusters == [record["cluster"] for record in expected.json["labels"]]


def test_options_choose_the_words(mmpca_command, reports, tmp_path):
    (tmp_path / "words.txt").write_text("salt\nmoon\n\nmoon\nUNREACHABLE\n")
    (tmp_path / "stop.txt").write_text("the\nand\nsalt\n")
    target = tmp_path / "X.npz"

    def words(*options):
        done = mmpca_command("convert", reports / "old", target, *options)
        assert done.code == 0, done.err
        return done, read_counts(target).feature_names.tolist()

    done, found = words("--words", tmp_path / "words.txt")
    assert found == ["salt", "moon", "UNREACHABLE"]
    assert "UNREACHABLE" in done.err  # with lower case, it never occurs
    _, found = words("--stop-words", tmp_path / "stop.txt", "--ngrams", 2)
    assert not {"the", "salt"} & set(found)
    assert any(" " in name for name in found)
    _, found = words("--max-share", 0.5)
    assert not {"the", "and"} & set(found)


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (None, []),
        ("", ["--text"]),
        (b"\xff\xfe\xff", ["--text"]),
        ("a b c\n", ["--text"]),
        ("id,text\n1,one\n2\n", ["--text-column", "text"]),
        ("id,text\n1,one\n", ["--text-column", "story"]),
        ("one\ntwo\n", ["--text", "--min-rows", "2"]),
        ("1,2\n", ["--min-rows", "2"]),
    ],
    ids=["empty folder", "empty", "bytes", "no words", "ragged", "no column", "pruned", "counts"],
)
def test_texts_that_cannot_be_counted_are_named(mmpca_command, tmp_path, content, options):
    path = tmp_path / "input"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    done = mmpca_command("fit", path, "-q", 1, "-k", 1, *options)
    assert done.code == 1
    assert str(path) in done.error


def test_a_missing_list_of_stop_words_is_named(mmpca_command, tmp_path):
    (tmp_path / "texts").write_text("one two\n")
    done = mmpca_command("inspect", tmp_path / "texts", "--text", "--stop-words", "nosuch.txt")
    assert done.code == 1
    assert "nosuch.txt" in done.error


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
def test_settings_that_do_not_belong_to_the_model_are_an_error(mmpca_command, reports, tmp_path, spoil):
    file = read_model(reports / "reports.mmpca")
    file.model.save(tmp_path / "bad.mmpca", text=spoil(file.text))
    done = mmpca_command("predict", tmp_path / "bad.mmpca", reports / "new")
    assert (done.code, done.out) == (1, "")


# --- inputs as they are in the wild -------------------------------------------------------------------------------

FITTED = ("-q", 2, "-k", 2, "--jobs", 1)


@pytest.fixture
def folder(tmp_path):
    """Return a folder of texts in two encodings, one of them empty."""
    path = tmp_path / "texts"
    path.mkdir()
    for number in range(12):
        text = ("Größe Läsion übel" if number % 2 else "match coach team") + f" word{number % 3}"
        (path / f"{number:02}.txt").write_bytes(text.encode("cp1252" if number % 4 == 1 else "utf-8"))
    (path / "12.txt").write_text("")
    return path


@pytest.mark.filterwarnings("ignore")
def test_a_folder_with_an_empty_text_and_other_encodings_goes_from_selection_to_a_page(mmpca_command, folder, tmp_path):
    selected = mmpca_command(
        "select", folder, "-q", "1-2", "-k", "2", "--jobs", 1, "-m", tmp_path / "m.mmpca", "-o", tmp_path / "labels.csv"
    )
    assert selected.code == 0, selected.error
    assert "1 text " in " ".join(selected.err.split())
    assert "Windows-1252" in selected.err
    lines = (tmp_path / "labels.csv").read_text().splitlines()
    assert len(lines) == 14
    assert [line.split(",")[0] for line in lines if ",-1," in line] == ["12"]
    words = read_model(tmp_path / "m.mmpca").model.feature_names_in_.tolist()
    assert {"größe", "läsion", "übel"} <= set(words)
    page = mmpca_command("report", tmp_path / "m.mmpca", "--data", folder, "-o", tmp_path / "page.html")
    assert page.code == 0, page.error
    predicted = mmpca_command("predict", tmp_path / "m.mmpca", folder / "00.txt", "--json")
    assert any("--per" in note for note in predicted.json["notes"])


def test_columns_of_texts_and_names_are_chosen(mmpca_command, tmp_path):
    records = [{"case": f"c{i}", "finding": f"red blue word{i % 2}"} for i in range(6)]
    (tmp_path / "x.json").write_text(json.dumps(records))
    done = mmpca_command("inspect", tmp_path / "x.json", "--text-column", "finding", "--id-column", "case", "--json")
    assert done.json["first_rows"][:2] == ["c0", "c1"]
    assert mmpca_command("inspect", tmp_path / "x.json").code == 1


def test_an_encoding_is_named(mmpca_command, tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes("site,липы,ель\na,1,2\nb,2,1\n".encode("cp1251"))
    failed = mmpca_command("inspect", path)
    assert (failed.code, "--encoding" in failed.error) == (1, True)
    assert mmpca_command("inspect", path, "--encoding", "cp1251", "--json").json["first_features"] == ["липы", "ель"]


def test_an_otu_table_and_its_metadata_become_clusters_and_labels(mmpca_command, tmp_path):
    rng = np.random.default_rng(0)
    counts = np.where(np.arange(16)[:, None] % 2 == np.arange(20) % 2, rng.poisson(30, (16, 20)), 1)  # species by sites
    sites = [f"S{i}" for i in range(20)]
    lines = ["# Constructed from biom file", "\t".join(["#OTU ID", *sites, "taxonomy"])]
    lines += ["\t".join([f"OTU{v}", *map(str, row), f"k__Bacteria; p__{v}"]) for v, row in enumerate(counts)]
    (tmp_path / "otus.tsv").write_text("\n".join(lines))
    order = rng.permutation(20)
    body = "".join(f"S{i}\t{30 + i}\t{'odd' if i % 2 else 'even'}\n" for i in order)
    (tmp_path / "map.tsv").write_text("#SampleID\tage\thabitat\n" + body)
    done = mmpca_command(
        "compare", tmp_path / "otus.tsv", *FITTED[:4], "--metadata", tmp_path / "map.tsv", "--label-column", "habitat",
        "--method", "MMPCA", "--no-memory", "--json",
    )  # fmt: skip
    assert done.json[0]["ari"] == 1
    ambiguous = mmpca_command("compare", tmp_path / "otus.tsv", *FITTED[:4], "--metadata", tmp_path / "map.tsv")
    assert (ambiguous.code, "--label-column" in ambiguous.error) == (1, True)


def test_one_row_is_not_called_rows(mmpca_command, tmp_path):
    (tmp_path / "x.csv").write_text("site,oak,elm,fir\na,1,2,1\nb,0,0,0\nc,2,1,4\nd,5,0,1\n")
    outputs = [
        mmpca_command("fit", tmp_path / "x.csv", *FITTED),
        mmpca_command("fit", tmp_path / "x.csv", *FITTED, "--drop-empty"),
        mmpca_command("simulate", tmp_path / "y.npz", "--rows", 1),
        mmpca_command("convert", tmp_path / "y.npz", tmp_path / "z.npz"),
    ]
    assert [done.code for done in outputs] == [1, 0, 0, 0]
    for done in outputs:
        assert not re.search(r"(?<![\d,])1 (rows|texts|features)", " ".join((done.out + done.err + done.error).split()))
