"""Files damaged at random are read or refused, and nothing else happens."""

import contextlib

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from mmpca.errors import InputFileError
from mmpca.io import CountTable, read_counts, write_counts

COUNTS = np.array([[1, 0, 2], [0, 3, 1]])
TABLE = CountTable(sparse.csr_array(COUNTS), np.array(["x", "y"], dtype=object), None, [])
NAMES = [
    "X.mtx",
    "X.mtx.gz",
    "X.npz",
    "X.csv",
    "X.triples.csv",
    "X.parquet",
    "X.h5ad",
    "X.biom",
    "X.json.biom",
    "docword.txt",
]


def write_all(folder):
    import anndata
    import biom
    import h5py

    for name in NAMES[:3]:
        write_counts(folder / name, TABLE)
    frame = pd.DataFrame(COUNTS, index=["x", "y"], columns=["a", "b", "c"])
    frame.to_csv(folder / "X.csv")
    triples = frame.stack().rename_axis(["doc", "word"]).rename("count").reset_index()
    triples.to_csv(folder / "X.triples.csv", index=False)
    triples.to_parquet(folder / "X.parquet")
    anndata.AnnData(frame.astype(float)).write_h5ad(folder / "X.h5ad")
    table = biom.Table(COUNTS, ["x", "y"], ["a", "b", "c"])
    (folder / "X.json.biom").write_text(table.to_json("a test"))
    with h5py.File(folder / "X.biom", "w") as file:
        table.to_hdf5(file, "a test")
    (folder / "docword.txt").write_text("2\n3\n4\n1 1 1\n1 3 2\n2 2 3\n2 3 1\n")


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    write_all(folder)
    return folder


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
@pytest.mark.filterwarnings("ignore")  # of the libraries that read what was damaged
def test_damaged_files_are_read_or_refused(tmp_path, sound, name, data):
    content = bytearray((sound / name).read_bytes())
    place = data.draw(st.integers(0, len(content)))
    match data.draw(st.sampled_from(["overwrite", "insert", "cut", "end"])):
        case "overwrite":
            new = data.draw(st.binary(min_size=1, max_size=4))
            content[place : place + len(new)] = new
        case "insert":
            content[place:place] = data.draw(
                st.sampled_from([b"\n", b"-", b'"', b"\0", b"9" * 30, b",,", b"\xff", b"1e999"])
            )
        case "cut":
            del content[place : place + data.draw(st.integers(1, 20))]
        case "end":
            del content[place:]
    (tmp_path / name).write_bytes(content)
    with contextlib.suppress(InputFileError):
        table = read_counts(tmp_path / name)
        assert table.X.dtype == np.int32
        assert table.X.has_canonical_format
        assert table.X.data.min(initial=1) >= 1
