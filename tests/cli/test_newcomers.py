"""Mistakes that newcomers make: the command continues with a note, or the error names the option to use."""

import csv
import json

import numpy as np
import pytest

WORDS = {"sport": "match coach goal team league striker", "sea": "harbor boat sail anchor tide captain"}


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    """Return a folder with a table of texts, one of them without words, and the model of a fit to it."""
    folder, rng = tmp_path_factory.mktemp("reviews"), np.random.default_rng(0)
    lines = [["nr", "date", "review"]]
    for i in range(30):
        words = WORDS["sport" if i % 2 else "sea"].split()
        lines.append([f"r{i}", "2020-01-01", "" if i == 5 else " ".join(rng.choice(words, 8))])
    with (folder / "reviews.csv").open("w", newline="") as file:
        csv.writer(file).writerows(lines)
    return folder


@pytest.fixture(scope="module")
def fitted(reviews, mmpca_command):
    done = mmpca_command(
        *("fit", reviews / "reviews.csv", "--text-column", "review", "--id-column", "nr", "-q", 2, "-k", 2),
        *("--n-init", 1, "--jobs", 1, "--model", reviews / "r.mmpca", "--labels", reviews / "labels.csv"),
    )
    assert done.code == 0, done.err
    return reviews, done


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_text_without_words_has_the_label_minus_one_everywhere(fitted, mmpca_command):
    from mmpca import TextClusters

    folder, done = fitted
    options = ("--text-column", "review", "--id-column", "nr")
    found = mmpca_command("inspect", folder / "reviews.csv", *options, "--json")
    assert found.code == 0
    assert {one["code"]: one["level"] for one in found.json["findings"]}["empty rows"] == "note"
    assert "'r5'" in done.err
    mmpca_command("predict", folder / "r.mmpca", folder / "reviews.csv", *options, "--labels", folder / "p.csv")
    mmpca_command("tables", folder / "r.mmpca", folder / "reviews.csv", *options, "-o", folder / "tables")
    for path in (folder / "labels.csv", folder / "p.csv", folder / "tables" / "rows.csv"):
        lines = read(path)
        assert [line["row"] for line in lines] == [f"r{i}" for i in range(30)], path
        assert [line["row"] for line in lines if line["cluster"] == "-1"] == ["r5"], path
        assert (lines[5]["cluster_name"], lines[5]["probability"]) == ("", ""), path
    loaded = TextClusters.load(folder / "r.mmpca")
    assert loaded.labels_.tolist() == [int(line["cluster"]) for line in read(folder / "labels.csv")]


@pytest.mark.parametrize("command", ["inspect", "fit", "predict", "report", "tables"])
def test_a_table_of_texts_gets_the_option_to_add(fitted, mmpca_command, command):
    folder, _ = fitted
    path, model = folder / "reviews.csv", folder / "r.mmpca"
    arguments = {
        "inspect": [path],
        "fit": [path, "-q", 2, "-k", 2],
        "report": [model, "--data", path, "-o", folder / "page.html"],
    }
    done = mmpca_command(command, *arguments.get(command, [model, path]))
    assert done.code == 1
    assert "--text-column review" in done.error


def test_a_value_after_the_flag_text_is_recognized(reviews, mmpca_command):
    done = mmpca_command("fit", reviews / "reviews.csv", "--text", "review", "-q", 2, "-k", 2)
    assert done.code == 1
    assert "--text-column review" in done.error
    assert "--scheduler" not in done.error


@pytest.mark.parametrize("given", [["english", "german"], ["english,german"]])
def test_stop_words_of_two_languages_are_combined(tmp_path, mmpca_command, given):
    pytest.importorskip("stop_words")
    (tmp_path / "texts.txt").write_text("the boat und sail\nund the boat sail\nthe sea und tide\n")
    options = [word for name in given for word in ("--stop-words", name)]
    done = mmpca_command("inspect", tmp_path / "texts.txt", "--text", *options, "--min-rows", 1, "--json")
    assert sorted(done.json["first_features"]) == ["boat", "sail", "sea", "tide"]
    done = mmpca_command("inspect", tmp_path / "texts.txt", "--text", *options, "--json")
    assert sorted(done.json["first_features"]) == ["boat", "sail"]  # the others occur in a single text


def test_advice_on_overdispersion_is_in_terms_of_options(tmp_path, mmpca_command):
    rng = np.random.default_rng(0)
    X = rng.negative_binomial(0.2, 0.01, (60, 12)) + 1
    np.savetxt(tmp_path / "X.csv", X, fmt="%d", delimiter=",", header=",".join(f"s{v}" for v in range(12)), comments="")
    done = mmpca_command("select", tmp_path / "X.csv", "-q", 2, "-k", 2, "--criterion", "icl", "--jobs", 1, "--json")
    assert done.code == 0, done.err
    advice = [note for note in done.json["notes"] if "polya" in note]
    assert advice
    assert all("--dispersion polya" in note and '"polya"' not in note for note in advice)


@pytest.fixture(scope="module")
def sites(tmp_path_factory, mmpca_command):
    """Return a folder with a table of OTUs in rows with a taxonomy, and a model."""
    folder, rng = tmp_path_factory.mktemp("sites"), np.random.default_rng(0)
    profiles = rng.dirichlet(np.ones(8), 2)
    lines = ["\t".join(["#OTU ID", *(f"S{i}" for i in range(40)), "taxonomy"])]
    X = np.array([rng.multinomial(100, profiles[i % 2]) for i in range(40)])
    lines += ["\t".join([f"OTU{v}", *map(str, X[:, v]), f"k__Bacteria; g__Genus{v}"]) for v in range(8)]
    (folder / "otu.tsv").write_text("\n".join(lines) + "\n")
    done = mmpca_command(
        "fit", folder / "otu.tsv", "-q", 2, "-k", 2, "--n-init", 1, "--jobs", 1, "-m", folder / "o.mmpca"
    )
    assert done.code == 0, done.err
    return folder


def test_the_taxonomy_is_shown_with_the_features(sites, mmpca_command):
    done = mmpca_command("tables", sites / "o.mmpca", sites / "otu.tsv", "-o", sites / "tables")
    assert done.code == 0, done.err
    lines = read(sites / "tables" / "features.csv")
    assert lines
    assert all(line["taxonomy"] == f"k__Bacteria; g__Genus{line['feature'].removeprefix('OTU')}" for line in lines)
    shown = mmpca_command("explain", sites / "o.mmpca", sites / "otu.tsv", "--row", "S3")
    assert "g__Genus" in shown.out
    assert "k__" not in shown.out  # only the last rank leaves room for the bars
    document = mmpca_command("explain", sites / "o.mmpca", sites / "otu.tsv", "--row", "S3", "--json")
    part = json.loads(document.out)[0]["evidence_for"][0]
    assert part["annotation"].endswith(part["name"].removeprefix("OTU"))


def test_metadata_without_some_samples_are_refused(sites, mmpca_command):
    meta = sites / "meta.csv"
    meta.write_text("sample,habitat\n" + "".join(f"S{i},{i % 2}\n" for i in range(39)))
    done = mmpca_command(
        "report", sites / "o.mmpca", "--data", sites / "otu.tsv", "--metadata", meta, "-o", sites / "page.html"
    )
    assert done.code == 1
    assert "'S39'" in done.error
    assert "position" not in done.error


def test_a_column_of_measurements_is_noted(sites, mmpca_command):
    meta = sites / "ph.csv"
    meta.write_text("sample,ph\n" + "".join(f"S{i},{5 + i / 20}\n" for i in range(40)))
    done = mmpca_command(
        "report", sites / "o.mmpca", "--data", sites / "otu.tsv", "--metadata", meta, "-o", sites / "page.html"
    )
    assert done.code == 0, done.err
    assert "'ph'" in done.error
    assert "--label-column" in done.error


def test_equal_names_are_noted(sites, mmpca_command):
    done = mmpca_command("rename", sites / "o.mmpca", "0=soil", "1=soil")
    assert done.code == 0
    assert "'soil'" in done.err
    mmpca_command("rename", sites / "o.mmpca", "0=", "1=")


@pytest.fixture
def cells(tmp_path):
    """Return an .h5ad file with counts in a layer, and in `raw`."""
    anndata = pytest.importorskip("anndata")
    rng = np.random.default_rng(0)
    profiles = rng.dirichlet(np.ones(8), 2)
    X = np.array([rng.multinomial(100, profiles[i % 2]) for i in range(40)]).astype(np.float32)
    adata = anndata.AnnData(np.log1p(X), layers={"umis": X})
    adata.obs_names, adata.var_names = [f"c{i}" for i in range(40)], [f"g{v}" for v in range(8)]
    adata.raw = anndata.AnnData(X, var=adata.var)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    return tmp_path / "cells.h5ad"


def test_labels_are_written_into_a_copy_and_the_layer_is_remembered(cells, mmpca_command):
    import anndata

    folder = cells.parent
    sizes = ("-q", 2, "-k", 2, "--n-init", 1, "--jobs", 1)
    wrong = mmpca_command("fit", cells, *sizes)
    assert wrong.code == 1
    for name in ("umis", "raw"):
        assert f"'{name}'" in wrong.error
        outputs = ("--model", folder / f"{name}.mmpca", "--labels", folder / f"{name}.h5ad")
        done = mmpca_command("fit", cells, *sizes, "--layer", name, *outputs)
        assert done.code == 0, done.err
        labels = anndata.read_h5ad(folder / f"{name}.h5ad").obs
        assert labels["mmpca"].astype(int).tolist() in ([0, 1] * 20, [1, 0] * 20)
        assert labels["mmpca_probability"].between(0, 1).all()
    for command in (("explain",), ("predict",), ("tables", "-o", folder / "tables")):
        done = mmpca_command(command[0], folder / "umis.mmpca", cells, *command[1:])
        assert done.code == 0, done.err
    refused = mmpca_command("fit", cells, *sizes, "--layer", "umis", "--labels", cells)
    assert refused.code == 2


def test_models_of_anndata_objects_remember_their_layer_too(cells, mmpca_command):
    import anndata

    from mmpca.anndata import cluster

    adata = anndata.read_h5ad(cells)
    for counts in ({"layer": "umis"}, {"use_raw": True}):
        model = cluster(adata, 2, 2, n_init=1, random_state=0, **counts)
        model.save(cells.parent / "own.mmpca")
        done = mmpca_command("predict", cells.parent / "own.mmpca", cells, "--json")
        assert [line["cluster"] for line in done.json["labels"]] == model.predict(adata.layers["umis"]).tolist()


def test_repeated_genes_of_a_model_are_matched_by_position_or_refused(tmp_path, mmpca_command):
    header, lines = "gene,gene,other\n", "5,1,0\n6,1,1\n0,2,7\n0,1,9\n"
    (tmp_path / "X.csv").write_text(header + lines)
    (tmp_path / "new.csv").write_text("other,gene\n1,2\n0,4\n")
    model = tmp_path / "m.mmpca"
    fitted = mmpca_command("fit", tmp_path / "X.csv", "-q", 2, "-k", 2, "--jobs", 1, "--model", model)
    assert "'gene'" in fitted.err
    same = mmpca_command("predict", model, tmp_path / "X.csv", "--json")
    assert same.code == 0, same.err
    assert len({line["cluster"] for line in same.json["labels"]}) == 2
    other = mmpca_command("predict", model, tmp_path / "new.csv")
    assert other.code == 1
    assert "'gene'" in other.error


def test_rare_features_of_a_table_can_be_dropped(sites, mmpca_command):
    import mmpca

    lines = (sites / "otu.tsv").read_text().splitlines()
    rare = ["OTUrare", *(["1"] + ["0"] * 39), "k__Rare"]
    (sites / "rare.tsv").write_text("\n".join([*lines, "\t".join(rare)]) + "\n")
    sizes = ("-q", 2, "-k", 2, "--n-init", 1, "--jobs", 1)
    done = mmpca_command("fit", sites / "rare.tsv", *sizes, "--min-rows", 2, "--model", sites / "rare.mmpca")
    assert done.code == 0, done.err
    assert "Dropped" in done.err
    model = mmpca.load(sites / "rare.mmpca")
    assert "OTUrare" not in model.feature_names_in_
    assert len(model.feature_annotations_["taxonomy"]) == len(model.feature_names_in_)
    assert mmpca_command("fit", sites / "rare.tsv", *sizes, "--min-rows", 100).code == 1


def test_indicator_features_are_written_on_request(sites, mmpca_command):
    done = mmpca_command("tables", sites / "o.mmpca", sites / "otu.tsv", "-o", sites / "more", "--indicators")
    assert done.code == 0, done.err
    lines = read(sites / "more" / "indicators.csv")
    assert sorted(line["feature"] for line in lines) == sorted(f"OTU{v}" for v in range(8))
    values = [float(line["indicator_value"]) for line in lines]
    assert values == sorted(values, reverse=True)


def test_clusters_that_follow_totals_are_noted(tmp_path, mmpca_command):
    rng = np.random.default_rng(0)
    profiles = rng.dirichlet(np.ones(8), 2)
    for name, totals in (("apart", (50, 5000)), ("mixed", (500, 500))):
        X = np.array([rng.multinomial(totals[i % 2] + i, profiles[i % 2]) for i in range(40)])
        header = ",".join(f"s{v}" for v in range(8))
        np.savetxt(tmp_path / f"{name}.csv", X, fmt="%d", delimiter=",", header=header, comments="")
        done = mmpca_command("fit", tmp_path / f"{name}.csv", "-q", 2, "-k", 2, "--n-init", 1, "--jobs", 1, "--json")
        assert any("totals" in note for note in done.json["notes"]) == (name == "apart")


def test_labels_matched_by_position_are_noted(sites, mmpca_command):
    meta = sites / "order.csv"
    meta.write_text("sample,habitat\n" + "".join(f"x{i},{i % 2}\n" for i in range(40)))
    done = mmpca_command(
        *("report", sites / "o.mmpca", "--data", sites / "otu.tsv", "--metadata", meta, "--label-column", "habitat"),
        *("-o", sites / "page.html"),
    )
    assert done.code == 0, done.err
    assert "position" in done.error
