"""Columns and rows that are no counts are noted by every command that would use them."""

import numpy as np
import pytest

SPECIES = ["oak", "elm", "fir", "yew", "ash", "box"]


def write_csv(path, table, rows=None):
    """Write columns by their names, with names of the rows before them if they are given."""
    lines = [",".join(["site", *table] if rows else table)]
    lines += [",".join(map(str, values)) for values in zip(*([rows] if rows else []), *table.values(), strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def plants():
    """Return counts of plants at 40 sites of two kinds, by species."""
    rng = np.random.default_rng(0)
    means = np.where(np.arange(40)[:, None] % 2, [9, 7, 1, 1, 2, 4], [1, 2, 8, 6, 4, 1])
    return dict(zip(SPECIES, rng.poisson(means).T.tolist(), strict=True))


@pytest.fixture(params=["patient_id", "PatientID", "subject", "Unnamed: 0", "year", "age", "Total", "Total row"])
def spoiled(request, plants, tmp_path):
    """Return a file with a column or a row that is no count, and its name."""
    name, path = request.param, tmp_path / "plants.csv"
    if name == "Total row":
        table = {species: [*counts, sum(counts)] for species, counts in plants.items()}
        return write_csv(path, table, [*(f"r{i}" for i in range(40)), "Sum of all"]), "Sum of all"
    values = {
        "year": [1990 + i % 7 for i in range(40)],
        "age": [30 + i * 7 % 50 for i in range(40)],
        "Total": np.sum(list(plants.values()), axis=0).tolist(),
    }.get(name, [1000 + i * 37 % 400 for i in range(40)])
    columns = {**plants, name: values} if name == "Total" else {name: values, **plants}
    return write_csv(path, columns), name


FAST = ("--jobs", 1)


def test_fit_select_predict_and_inspect_note_what_is_no_count(mmpca_command, spoiled, tmp_path):
    path, name = spoiled
    shown = repr(name)
    fitted = mmpca_command("fit", path, "-q", 2, "-k", 2, "--n-init", 1, *FAST, "-m", tmp_path / "m", "--json")
    assert any(shown in note for note in fitted.json["notes"])
    selected = mmpca_command("select", path, "-q", "1-2", "-k", "2", *FAST, "--json")
    assert any(shown in note for note in selected.json["notes"])
    predicted = mmpca_command("predict", tmp_path / "m", path, "--json")
    assert any(shown in note for note in predicted.json["notes"])
    inspected = mmpca_command("inspect", path, "--json")
    found = [finding["message"] for finding in inspected.json["findings"]] + inspected.json["notes"]
    assert any(shown in message for message in found)
    for done in (fitted, selected, predicted):
        assert done.code == 0
        assert shown in done.err  # not only in JSON


def test_several_files_are_checked_as_one(mmpca_command, plants, tmp_path):
    paths = []
    for number, rows in enumerate((slice(0, 20), slice(20, 40))):
        table = {"patient_id": list(range(9000, 9040))[rows], **{name: x[rows] for name, x in plants.items()}}
        paths.append(write_csv(tmp_path / f"{number}.csv", table))
    fitted = mmpca_command("fit", *paths, "-q", 2, "-k", 2, "--n-init", 1, *FAST, "-m", tmp_path / "m", "--json")
    assert any("'patient_id'" in note for note in fitted.json["notes"])
    predicted = mmpca_command("predict", tmp_path / "m", *paths, "--json")
    assert any("'patient_id'" in note for note in predicted.json["notes"])


def test_sound_counts_raise_no_note(mmpca_command, plants, tmp_path):
    path = write_csv(tmp_path / "plants.csv", plants, [f"r{i}" for i in range(40)])
    done = mmpca_command("fit", path, "-q", 2, "-k", 2, "--n-init", 1, *FAST, "-m", tmp_path / "m", "--json")
    assert done.json["notes"] == []
    assert mmpca_command("predict", tmp_path / "m", path, "--json").json["notes"] == []


def test_words_of_texts_raise_no_note(mmpca_command, tmp_path):
    texts = [f"the subject of the year was {word} and the total age {word}" for word in ("salt", "iron", "moon") * 4]
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    options = ("-q", 2, "-k", 2, "--n-init", 1, *FAST, "--json", "-m", tmp_path / "m")
    done = mmpca_command("fit", tmp_path / "texts.txt", "--text", *options)
    assert not any("'subject'" in note or "'year'" in note for note in done.json["notes"])
    predicted = mmpca_command("predict", tmp_path / "m", tmp_path / "texts.txt", "--text", "--json")
    assert predicted.json["notes"] == []
