"""``mmpca inspect``; its findings are tested with mmpca.model.inspection."""

import pytest

SITES = "site,oak,[b]ash[/],fir,yew,elm,box\nhill,3,1,0,1,1,1\nlake,0,2,5,1,1,1\nbog,4,1,0,1,1,1\n"


@pytest.fixture
def sites(tmp_path):
    path = tmp_path / "sites.csv"
    path.write_text(SITES)
    return path


def test_a_sound_input_can_be_fitted(mmpca_command, studio):
    done = mmpca_command("inspect", studio / "X.mtx", "-q", 6, "-k", 4, "--json")
    assert done.code == 0
    assert (done.json["rows"], done.json["features"], done.json["can_fit"]) == (120, 917, True)


def test_names_are_shown_unchanged(mmpca_command, sites):
    shown = mmpca_command("inspect", sites, "-q", 2, "-k", 2).out
    assert "hill, lake, bog" in shown
    assert "oak, [b]ash[/], fir" in shown
    document = mmpca_command("inspect", sites, "-q", 2, "-k", 2, "--json").json
    assert document["first_rows"] == ["hill", "lake", "bog"]


def test_default_sizes_fit_the_data(mmpca_command, sites):
    assert mmpca_command("inspect", sites).code == 0
    asked = mmpca_command("inspect", sites, "-q", 8, "--json")
    assert asked.code == 1
    assert asked.json["can_fit"] is False
    assert asked.json["findings"][0]["level"] == "error"


def test_findings_are_shown_with_their_remedies(mmpca_command, tmp_path):
    path = tmp_path / "sites.csv"
    path.write_text("site,a,b,c\nhill,3,1,0\nsea,0,0,0\nlake,0,2,5\n")
    done = mmpca_command("inspect", path, "-q", 2, "-k", 2)
    document = mmpca_command("inspect", path, "-q", 2, "-k", 2, "--json").json
    assert done.code == 1
    assert document["findings"][0]["code"] == "empty rows"
    for finding in document["findings"]:
        assert f"{finding['level']}: {finding['message']}" in done.out
        assert finding["remedy"] in done.out


def test_notes_of_the_reader_are_shown(mmpca_command, tmp_path):
    path = tmp_path / "sites.csv"
    path.write_text("site,habitat,oak\ns1,wood,3\ns2,wood,12\n")
    (note,) = mmpca_command("inspect", path, "--json").json["notes"]
    assert "'habitat'" in note
    assert note in " ".join(mmpca_command("inspect", path).out.split())
