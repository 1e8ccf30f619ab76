"""Attack every kind of file that the package reads, and count what happens: `make fuzz`.

Four kinds of tries: sound files that were damaged, tables in the ways people export them, matrices in the ways people
hold them in Python, and small files that claim to be huge. Each try depends only on the seed and its number. Tries run
in processes with limited memory, so a try that crashes or hangs ends alone.

These outcomes are allowed: the content is read as it was ("same"), read differently with a note or a warning ("noted"),
or refused by an error that names the file ("refused"). Formats without a checksum cannot tell a damaged digit from
another count ("changed"). Everything else is a failure: "silent" (read differently without a note), "rejected" (sound
counts are an error), "traceback" (an exception of another kind), "nameless" (an error that does not name the file),
"memory", "crash" and "hang".
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import json
import lzma
import os
import resource
import select
import signal
import sys
import tempfile
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from scipy import sparse

import mmpca
from mmpca import MMPCA, MMPCASearch
from mmpca.backend import LocalRows
from mmpca.counts import as_counts
from mmpca.errors import CountsError, InputFileError, ModelFileError, StoreError
from mmpca.io import CountTable, read_counts, write_counts
from mmpca.io.texts import read_texts
from mmpca.model.checkpoints import Checkpoint
from mmpca.model.inspection import misread_columns
from mmpca.simulate import simulate_mmpca, sparse_topics
from mmpca.store import Store

MEMORY = 2**30  # bytes that a try may take, in addition to the imported packages
PATIENCE = 60.0  # seconds of the processor that a try may take
BATCH = 200  # tries in one process
DECLARED = (InputFileError, CountsError, ModelFileError, StoreError)
FAILURES = ("silent", "rejected", "traceback", "nameless", "memory", "crash", "hang")
OUTCOMES = ("same", "noted", "refused", "changed", *FAILURES)
SHARES = [0.55, 0.34, 0.1, 0.01]  # of damaged files, exported tables, matrices in memory and hostile files
N_SHOWN = 12  # failures

Rng = np.random.Generator
Content = dict[str, Any]  # arrays, names or numbers that a file was read into


class Outcome(NamedTuple):
    """What happened in a try."""

    kind: str
    outcome: str
    detail: str = ""


def is_equal(one: Any, other: Any) -> bool:
    """Compare the contents of two files."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_equal(one[name], other[name]) for name in one)
    if sparse.issparse(one):
        return one.shape == other.shape and (one != other).nnz == 0
    if one is None or other is None:
        return one is other
    return bool(np.array_equal(one, other))


def attempt(
    kind: str,
    path: Path,
    read: Callable[[], tuple[Content, list[str]]],
    sound: Content | None,
    usual: Sequence[str] = (),
    declared: tuple[type[Exception], ...] = DECLARED,
) -> Outcome:
    """Read a file, and compare it with what it should contain; without that, only errors matter.

    `usual` are the notes on the sound file, `declared` the errors that say what is wrong.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            content, notes = read()
        except declared as error:
            is_named = path.name in str(error)
            return Outcome(kind, "refused" if is_named else "nameless", f"{type(error).__name__}: {error}")
        except MemoryError:
            return Outcome(kind, "memory", traceback.format_exc(limit=-3))
        except Exception:
            return Outcome(kind, "traceback", traceback.format_exc(limit=-4))
    if sound is None or is_equal(content, sound):
        return Outcome(kind, "same")
    notes = [note for note in notes if note not in usual] + [str(one.message) for one in caught]
    return Outcome(kind, "noted" if notes else "silent", "; ".join(notes))


def counts_of(path: Path) -> tuple[Content, list[str]]:
    """Read counts as the commands do: with the notes of the reader, and on columns that seem to be no counts."""
    table = read_counts(path)
    counts = as_counts(table.X, name=str(path), empty_rows="allow")
    names = {"row_names": table.row_names, "feature_names": table.feature_names}
    notes = table.notes + [finding.message for finding in misread_columns(counts, **names)]
    return {"X": table.X, "rows": table.row_names, "features": table.feature_names}, notes


# --- damaged files ------------------------------------------------------------------------------------------------


class Sound(NamedTuple):
    """A sound file, and how to read it."""

    name: str
    content: bytes
    read: Callable[[Path], tuple[Content, list[str]]]
    has_checksum: bool
    beside: Mapping[str, bytes] = MappingProxyType({})  # other files in the folder
    only_cut: bool = False  # HDF5 itself hangs on some damaged heaps


def corpus(folder: Path) -> dict[str, Sound]:
    """Write one file of every kind."""
    data = simulate_mmpca(
        30, topics=sparse_topics(2, 12, 0.5, random_state=0), cluster_topics=np.eye(2), lengths=40, random_state=0
    )
    X = sparse.csr_array(data.X.astype(np.int32))
    rows, features = (
        np.array([f"row {i}" for i in range(30)], object),
        np.array([f"wörd {v}" for v in range(12)], object),
    )
    table = CountTable(X, rows, features, [])
    frame = pd.DataFrame(X.toarray(), columns=features, index=pd.Index(rows, name="row"))
    triples = frame.reset_index().melt("row", var_name="feature", value_name="count")
    write_counts(folder / "X.mtx", table)
    write_counts(folder / "X.mtx.gz", table)
    write_counts(folder / "X.npz", table)
    write_counts(folder / "plain.npz", table, compress=False)
    frame.to_csv(folder / "X.csv")
    frame.to_csv(folder / "X.tsv", sep="\t")
    frame.to_csv(folder / "X.csv.gz")
    triples.to_csv(folder / "triples.csv", index=False)
    triples.to_csv(folder / "triples.tsv", index=False, sep="\t")
    triples.to_parquet(folder / "X.parquet")
    (folder / "X.csv.bz2").write_bytes(bz2.compress((folder / "X.csv").read_bytes()))
    (folder / "X.csv.xz").write_bytes(lzma.compress((folder / "X.csv").read_bytes()))
    (folder / "docword.x.txt").write_text(
        f"30\n12\n{X.nnz}\n"
        + "".join(f"{i + 1} {v + 1} {n}\n" for (i, v), n in zip(np.argwhere(X.toarray()), X.data, strict=True))
    )
    names = {name: (folder / name).read_bytes() for name in ("X.rows.txt", "X.columns.txt")}
    tables = ("X.csv", "X.tsv", "X.csv.gz", "X.csv.bz2", "X.csv.xz", "triples.csv", "triples.tsv", "X.parquet")
    found = {
        name: Sound(name, (folder / name).read_bytes(), counts_of, name.endswith((".gz", ".bz2", ".xz", ".npz")))
        for name in (*tables, "X.npz", "plain.npz", "docword.x.txt")
    }
    found |= {
        name: Sound(name, (folder / name).read_bytes(), counts_of, name.endswith(".gz"), names)
        for name in ("X.mtx", "X.mtx.gz")
    }
    for name, other in (("X.columns.txt", "X.rows.txt"), ("X.rows.txt", "X.columns.txt")):
        beside = {"X.mtx": (folder / "X.mtx").read_bytes(), other: names[other]}
        found[name] = Sound(name, names[name], lambda path: counts_of(path.with_name("X.mtx")), False, beside)
    found |= _cell_counts(folder, table)
    found["vocab.x.txt"] = Sound(
        "vocab.x.txt",
        names["X.columns.txt"],
        lambda path: counts_of(path.with_name("docword.x.txt")),
        False,
        {"docword.x.txt": found["docword.x.txt"].content},
    )
    found |= _other_counts(folder, frame)
    found |= _texts(folder)
    return found | _results(folder, X)


def _cell_counts(folder: Path, table: CountTable) -> dict[str, Sound]:
    """Write the files of a program that counts RNA in cells: genes by cells, with names in tables beside them."""
    (folder / "cells").mkdir()
    write_counts(folder / "cells" / "matrix.mtx.gz", CountTable(sparse.csr_array(table.X.T), None, None, []))
    genes = "".join(f"G{v}\t{name}\tGene Expression\n" for v, name in enumerate(table.feature_names))
    files = {
        "matrix.mtx.gz": (folder / "cells" / "matrix.mtx.gz").read_bytes(),
        "features.tsv.gz": gzip.compress(genes.encode()),
        "barcodes.tsv": "".join(f"{name}\n" for name in table.row_names).encode(),
    }
    return {
        name: Sound(
            name,
            content,
            lambda path: counts_of(path.with_name("matrix.mtx.gz")),
            name.endswith(".gz"),
            {other: files[other] for other in files if other != name},
        )
        for name, content in files.items()
    }


def _other_counts(folder: Path, frame: pd.DataFrame) -> dict[str, Sound]:
    """Write AnnData and BIOM files, if their packages are installed."""
    found = {}
    try:
        import anndata
    except ImportError:
        pass
    else:
        anndata.AnnData(frame.astype(np.float32)).write_h5ad(folder / "X.h5ad")
        found["X.h5ad"] = Sound("X.h5ad", (folder / "X.h5ad").read_bytes(), counts_of, False, only_cut=True)
    try:
        import biom
    except ImportError:
        pass
    else:
        text = biom.Table(frame.to_numpy().T, list(frame.columns), list(frame.index)).to_json("fuzz")
        (folder / "X.biom").write_text(text)
        found["X.biom"] = Sound("X.biom", text.encode(), counts_of, False)
        import h5py

        with h5py.File(folder / "hdf5.biom", "w") as file:
            biom.Table(frame.to_numpy().T, list(frame.columns), list(frame.index)).to_hdf5(file, "fuzz")
        content = (folder / "hdf5.biom").read_bytes()
        found["hdf5.biom"] = Sound("hdf5.biom", content, counts_of, False, only_cut=True)
        with h5py.File(folder / "cells.h5", "w") as file:
            X = sparse.csr_array(frame.to_numpy())  # its rows are the columns of the file
            for name in ("data", "indices", "indptr"):
                file[f"matrix/{name}"] = getattr(X, name)
            file["matrix/shape"] = X.shape[::-1]
            file["matrix/barcodes"] = [str(name) for name in frame.index]
            for name in ("id", "name"):
                file[f"matrix/features/{name}"] = [str(feature) for feature in frame.columns]
        found["cells.h5"] = Sound("cells.h5", (folder / "cells.h5").read_bytes(), counts_of, False, only_cut=True)
    try:
        frame.to_excel(folder / "X.xlsx")
    except ImportError:
        return found
    found["X.xlsx"] = Sound("X.xlsx", (folder / "X.xlsx").read_bytes(), counts_of, True)
    return found


def _texts(folder: Path) -> dict[str, Sound]:
    """Write tables with a column of texts, and a plain text."""
    frame = pd.DataFrame({"id": [f"text {i}" for i in range(20)], "text": [f"naïve {i} — rosé" for i in range(20)]})
    frame.to_csv(folder / "texts.csv", index=False)
    frame.to_json(folder / "texts.json", orient="records")
    frame.to_json(folder / "texts.jsonl", orient="records", lines=True)
    frame.to_parquet(folder / "texts.parquet")
    (folder / "texts.txt").write_text("\n".join(frame["text"]))
    names = ["texts.csv", "texts.json", "texts.jsonl", "texts.parquet", "texts.txt"]
    try:
        frame.to_excel(folder / "texts.xlsx", index=False)
    except ImportError:
        pass
    else:
        names.append("texts.xlsx")

    def read(path: Path) -> tuple[Content, list[str]]:
        texts = read_texts(path, per="line" if path.suffix == ".txt" else None)
        return {"texts": texts.texts, "names": texts.names}, texts.notes

    return {name: Sound(name, (folder / name).read_bytes(), read, name.endswith(".xlsx")) for name in names}


def _results(folder: Path, X: sparse.csr_array) -> dict[str, Sound]:
    """Write a model, the store of a search and a checkpoint."""
    parameters = {"n_clusters": 2, "n_topics": 2, "n_init": 1, "random_state": 0}
    model = MMPCA(**parameters).fit(X, checkpoint=folder / "fit.npz")
    model.save(folder / "fit.mmpca")
    MMPCASearch([2], [2], criterion="icl", n_init=1, random_state=0, store=folder / "store").fit(X)
    identity = json.loads((folder / "store" / "search.json").read_text())
    identity.pop("checksum")

    def load_model(path: Path) -> tuple[Content, list[str]]:
        loaded = mmpca.load(path)
        return {"probabilities": loaded.predict_proba(X), "score": loaded.score(X), "labels": loaded.labels_}, []

    def open_store(path: Path) -> tuple[Content, list[str]]:
        store = Store(path.parent, "search")
        store.open(identity)
        return {"part": store.read("fresh-2-2")}, []

    def open_checkpoint(path: Path) -> tuple[Content, list[str]]:
        read = Checkpoint.of_fit(path, MMPCA(**parameters).get_params(deep=False), LocalRows(as_counts(X)))
        return {"beta": read.beta, "labels": read.labels}, []

    parts = {name: (folder / "store" / name).read_bytes() for name in ("search.json", "fresh-2-2.npz")}
    return {
        "fit.mmpca": Sound("fit.mmpca", (folder / "fit.mmpca").read_bytes(), load_model, True),
        "fit.npz": Sound("fit.npz", (folder / "fit.npz").read_bytes(), open_checkpoint, True),
        "fresh-2-2.npz": Sound(
            "fresh-2-2.npz", parts["fresh-2-2.npz"], open_store, True, {"search.json": parts["search.json"]}
        ),
        "search.json": Sound(
            "search.json", parts["search.json"], open_store, True, {"fresh-2-2.npz": parts["fresh-2-2.npz"]}
        ),
    }


def damaged(rng: Rng, content: bytes, *, only_cut: bool = False) -> bytes:
    """Return the content with a flipped bit, another byte, or a piece cut off, left out, repeated or overwritten."""
    first, second = sorted(int(place) for place in rng.integers(len(content) + 1, size=2))
    way = "cut" if only_cut else rng.choice(["flip", "flip", "flip", "byte", "cut", "left out", "repeated", "zeros"])
    if way == "cut":
        return content[:first]
    if way == "left out":
        return content[:first] + content[second:]
    if way == "repeated":
        return content[:second] + content[first:]
    if way == "zeros":
        return content[:first] + bytes(min(second - first, 64)) + content[first + min(second - first, 64) :]
    changed, place = bytearray(content), min(first, len(content) - 1)
    changed[place] = int(rng.integers(256)) if way == "byte" else changed[place] ^ 1 << int(rng.integers(8))
    return bytes(changed)


def try_damage(rng: Rng, folder: Path, files: dict[str, Sound]) -> Outcome:
    """Damage a sound file and read it."""
    sound = files[list(files)[rng.integers(len(files))]]
    kind = f"damaged {sound.name}"
    for name, content in {**sound.beside, sound.name: sound.content}.items():
        (folder / name).write_bytes(content)
    path = folder / sound.name
    expected, notes = sound.read(path)
    path.write_bytes(damaged(rng, sound.content, only_cut=sound.only_cut))
    outcome = attempt(kind, path, lambda: sound.read(path), expected, notes)
    if outcome.outcome == "silent" and not sound.has_checksum:
        return outcome._replace(outcome="changed")
    # The error about names that do not fit names the counts instead.
    return outcome._replace(outcome="refused") if outcome.outcome == "nameless" and sound.beside else outcome


# --- exported tables ----------------------------------------------------------------------------------------------

WORDS = ["oak", "beech", "fir", "rosé", "Öl", "naïve", "elm", "ash", "pine", "yew", "larch", "maple", "lime", "birch"]
IDENTIFIERS = [
    "patient_id",
    "user_id",
    "PatientID",
    "subject",
    "participant",
    "id",
    "Unnamed: 0",
    "sample",
    "",
    "index",
]


def try_export(rng: Rng, folder: Path, files: dict[str, Sound]) -> Outcome:
    """Export a table in one of many ways, and read it."""
    n_rows, n_features = int(rng.integers(10, 40)), int(rng.choice([3, *range(3, len(WORDS))]))
    counts = rng.poisson(rng.gamma(1.0, 4.0, n_features) + 0.3, (n_rows, n_features))
    counts[:, 0] += 1  # no empty rows
    features = list(rng.permutation(WORDS)[:n_features])
    frame = pd.DataFrame(counts, columns=features)
    ways, has_index = [], False
    if rng.random() < 0.1:
        return _try_long(rng, folder, frame)
    if rng.random() < 0.2:
        ways.append("numbers for a header")
        frame.columns, features = range(n_features), [str(v) for v in range(n_features)]
    frame, more = _with_extras(rng, frame)
    ways += more
    if rng.random() < 0.03:
        return _try_old_workbook(rng, folder)
    if rng.random() < 0.6:
        has_index, title = True, str(rng.choice(IDENTIFIERS))
        first = int(rng.choice([0, 1, 1000, 250_000]))
        values: Any = (
            range(first, first + len(frame)) if rng.random() < 0.6 else [f"row {i}" for i in range(len(frame))]
        )
        frame.index = pd.Index(values, name=title)
        ways.append(f"index {title!r} of {type(values).__name__}")
    way = rng.random()
    if way < 0.1:
        path, more = folder / "table.parquet", ["parquet"]
        frame.columns = frame.columns.astype(str)
        frame.to_parquet(path, index=has_index)
    elif way < 0.2:
        path, more = _write_workbook(rng, folder, frame, has_index), ["workbook"]
    else:
        path, more = _write_text(rng, folder, frame, has_index)
    sound = {"X": sparse.csr_array(counts.astype(np.int32)), "features": np.array(features, dtype=object)}

    def read() -> tuple[Content, list[str]]:
        content, notes = counts_of(path)
        return {name: content[name] for name in sound}, notes

    outcome = attempt("export", path, read, sound)
    return outcome._replace(kind=f"export, {path.suffix[1:]}", detail=f"{'; '.join(ways + more)}: {outcome.detail}")


def _try_long(rng: Rng, folder: Path, frame: pd.DataFrame) -> Outcome:
    """Write a table with a line for each count, in any order, and read it."""
    titles = list([("row", "feature", "count"), ("doc", "word", "n"), ("who", "what", "how many")][rng.integers(3)])
    frame.index = pd.Index([f"row {i}" for i in range(len(frame))])
    lines = frame.melt(ignore_index=False).reset_index()
    lines.columns = pd.Index(titles)
    lines = lines[(lines[titles[2]] > 0) | (rng.random() < 0.5)].sample(frac=1, random_state=int(rng.integers(2**31)))
    path = folder / str(rng.choice(["long.csv", "long.tsv", "long.parquet"]))
    if path.suffix == ".parquet":
        lines.to_parquet(path, index=bool(rng.random() < 0.3))
    else:
        lines.to_csv(path, sep="\t" if path.suffix == ".tsv" else ",", index=bool(rng.random() < 0.3))

    def read() -> tuple[Content, list[str]]:
        table = read_counts(path)
        counts = pd.DataFrame(table.X.toarray(), table.row_names, table.feature_names)
        return {"X": counts.reindex(index=frame.index, columns=frame.columns).to_numpy()}, table.notes

    outcome = attempt(f"export, long {path.suffix[1:]}", path, read, {"X": frame.to_numpy()})
    return outcome._replace(detail=f"{titles}: {outcome.detail}")


def _with_extras(rng: Rng, frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return a table with columns and rows that are no counts, and what they are."""
    ways: list[str] = []
    if rng.random() < 0.15:
        frame["Total"] = frame.sum(axis=1)
        ways.append("a column of totals")
    if rng.random() < 0.1:
        frame.insert(0, "year", rng.integers(1990, 2024, len(frame)))
        ways.append("years")
    if rng.random() < 0.1:
        frame.insert(0, "habitat", rng.choice(["hill", "valley"], len(frame)))
        ways.append("text")
    elif rng.random() < 0.1:
        frame = pd.concat([frame, frame.sum().to_frame().T], ignore_index=True)
        ways.append("a row of totals")
    return frame, ways


def _write_text(rng: Rng, folder: Path, frame: pd.DataFrame, has_index: bool) -> tuple[Path, list[str]]:
    """Write a table as text, and return how."""
    delimiter = str(rng.choice([",", ",", ";", "\t"]))
    encoding = str(rng.choice(["utf-8", "utf-8-sig", "cp1252", "utf-16"], p=[0.65, 0.2, 0.1, 0.05]))
    number = str(rng.choice(["3", "3.0", "3,0", "blank for 0"], p=[0.7, 0.2, 0.05, 0.05]))
    line_end = str(rng.choice(["\n", "\r\n"]))
    is_excel = rng.random() < 0.2
    if is_excel:  # in countries with a decimal comma
        delimiter, line_end = str(rng.choice([";", ";", "\t"])), "\r\n"
        encoding = "utf-16" if delimiter == "\t" else str(rng.choice(["cp1252", "utf-8-sig"]))
        number = str(rng.choice(["3", "3,0", "blank for 0"], p=[0.6, 0.3, 0.1]))
    ways = [f"delimiter {delimiter!r}", encoding, number, repr(line_end), *(["Excel"] * is_excel)]
    path = folder / ("table.tsv" if delimiter == "\t" else str(rng.choice(["table.csv", "table.csv", "table.txt"])))
    options: dict[str, Any] = {"sep": delimiter, "index": has_index, "lineterminator": line_end}
    if number == "blank for 0":
        frame = frame.astype(object).where(frame != 0, None)
    elif number != "3":
        whole = frame.select_dtypes("number").columns
        frame = frame.astype(dict.fromkeys(whole, float))
        options["decimal"] = number[1]
    if rng.random() < 0.1:
        options["quoting"] = 1
        ways.append("quoted")
    text = frame.to_csv(**options)
    if is_excel and rng.random() < 0.2:  # cells that were filled once
        text = text.replace(line_end, delimiter * 2 + line_end)
        ways.append("blank columns at the end")
    if is_excel and rng.random() < 0.2:
        text += (text.partition(line_end)[0].count(delimiter) * delimiter + line_end) * int(rng.integers(1, 4))
        ways.append("blank records at the end")
    if is_excel and rng.random() < 0.1:
        text = f"Trees in 2024{line_end}{line_end}{text}"
        ways.append("a title above the table")
    if rng.random() < (0.3 if is_excel else 0.05):
        text = f"sep={delimiter}{line_end}{text}"
        ways.append("sep=")
    if rng.random() < 0.05:
        text += line_end
        ways.append("a blank line at the end")
    path.write_bytes(text.encode(encoding))
    return path, ways


def _write_workbook(rng: Rng, folder: Path, frame: pd.DataFrame, has_index: bool) -> Path:
    """Write a table as an Excel workbook, sometimes under another name or with another sheet."""
    with pd.ExcelWriter(folder / "table.xlsx") as book:
        frame.to_excel(book, index=has_index, startrow=int(rng.choice([0, 0, 2])))
        if rng.random() < 0.3:
            frame.to_excel(book, sheet_name="other")
    name = str(rng.choice(["table.xlsx", "table.XLSX", "table.csv", "table"]))
    return (folder / "table.xlsx").rename(folder / name)


def _try_old_workbook(rng: Rng, folder: Path) -> Outcome:
    """Read an Excel workbook in the old format, which must lead to advice, whatever its name."""
    path = folder / str(rng.choice(["table.xls", "table.csv", "table.txt", "table", "table.npz", "table.XLSX"]))
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + rng.bytes(4000))  # its beginning
    outcome = attempt("export, old workbook", path, lambda: counts_of(path), {})
    is_helpful = "Excel" in outcome.detail and "CSV" in outcome.detail
    return outcome if outcome.outcome != "refused" or is_helpful else outcome._replace(outcome="nameless")


# --- matrices in memory -------------------------------------------------------------------------------------------


def _masked(rng: Rng, X: Any, n_masked: int) -> Any:
    """Return a masked array with some entries masked and replaced by a code for missing values."""
    mask = np.zeros(X.shape, dtype=bool)
    mask.ravel()[rng.permutation(X.size)[:n_masked]] = True
    return np.ma.masked_array(np.where(mask, 99_999, X), mask)


def _spoiled(rng: Rng, X: Any, value: float) -> Any:
    """Return an array with one entry that is no count."""
    spoiled = X.astype(float)
    spoiled[rng.integers(X.shape[0]), rng.integers(X.shape[1])] = value
    return spoiled


def _shuffled(rng: Rng, X: Any) -> sparse.coo_array:
    """Return the entries in random order, some of them in two parts, with zeros in between."""
    rows, columns = np.nonzero(X)
    counts = X[rows, columns]
    part = rng.integers(counts + 1)
    zeros = np.zeros(3, dtype=counts.dtype)
    order = rng.permutation(2 * rows.size + 3)
    data = np.r_[part, counts - part, zeros][order]
    return sparse.coo_array(
        (data, (np.r_[rows, rows, 0, 0, 0][order], np.r_[columns, columns, 0, 0, 0][order])), X.shape
    )


def _npz_of(rng: Rng, X: Any, change: str) -> bytes:
    """Return counts as SciPy writes them, with indices of another type or with one that is impossible."""
    kind = str(rng.choice(["csr", "csc", "coo"]))
    matrix = sparse.coo_array(X).asformat(kind)
    names = ["row", "col"] if kind == "coo" else ["indices", "indptr"]
    arrays = dict(zip(names, matrix.coords if kind == "coo" else (matrix.indices, matrix.indptr), strict=True))
    changed = names[rng.integers(2)]
    place = int(rng.integers(1, arrays[changed].size - 1))
    values = arrays[changed].astype(float if change in ("float", "fraction") else np.int64)
    if change != "float":
        values[place] = {"fraction": values[place] + 0.5, "negative": -1, "beyond": 10**6}[change]
    arrays[changed] = values
    return _npz(**arrays, data=matrix.data, shape=np.array(X.shape), format=np.array(kind.encode()))


def try_matrix(rng: Rng, folder: Path, files: dict[str, Sound]) -> Outcome:
    """Check counts in one of the ways people hold them: sound ones must be accepted, all others refused."""
    X = rng.poisson(rng.gamma(1.0, 2.0, 6) + 0.3, (int(rng.integers(4, 12)), 6))
    X[:, 0] += 1
    frame = pd.DataFrame(X)
    nullable = frame.astype("Int64")
    nullable.iloc[1, 2] = pd.NA
    sound: dict[str, Callable[[], Any]] = {
        "array": lambda: np.asarray(X, str(rng.choice(["i1", "u2", "i8", ">i4", "f4", "f8", "O"])), order="F"),
        "list": lambda: X.tolist(),
        "view": lambda: np.repeat(X, 2, axis=1)[:, ::2],
        "mask of nothing": lambda: _masked(rng, X, 0),
        "data frame": lambda: frame.astype(str(rng.choice(["int64", "float32", "Int16", "object", "Sparse[int]"]))),
        "sparse": lambda: sparse.coo_array(X).asformat(rng.choice(["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])),
        "duplicates": lambda: _shuffled(rng, X).astype(str(rng.choice(["i1", "i4", "f4"]))),
    }  # fmt: skip
    bad: dict[str, Callable[[], Any]] = {
        "masked": lambda: _masked(rng, X, int(rng.integers(1, 5))),
        "masked rows": lambda: list(_masked(rng, X, int(rng.integers(1, 5)))),
        "missing": lambda: nullable,
        "no count": lambda: _spoiled(rng, X, float(rng.choice([-1, 0.5, np.nan, np.inf, 1e10, 2.0**31]))),
        "no count, sparse": lambda: sparse.csr_array(_spoiled(rng, X, float(rng.choice([-1, 0.5, np.nan])))),
        "npz, fraction": lambda: _npz_of(rng, X, "fraction"),
        "npz, negative": lambda: _npz_of(rng, X, "negative"),
        "npz, beyond": lambda: _npz_of(rng, X, "beyond"),
    }
    ways = sound | bad | {"npz, float": lambda: _npz_of(rng, X, "float")}
    way = list(ways)[rng.integers(len(ways))]
    given, path = ways[way](), folder / "X"
    if isinstance(given, bytes):
        path = folder / "X.npz"
        path.write_bytes(given)

    def read() -> tuple[Content, list[str]]:
        if isinstance(given, bytes):
            return {"X": read_counts(path).X.toarray()}, []
        return {"X": MMPCA(1, 1).checked_counts(given).to_csr().toarray()}, []

    declared = DECLARED if isinstance(given, bytes) else (ValueError, TypeError)
    outcome = attempt(f"matrix, {way}", path, read, {"X": X}, declared=declared)
    if way in sound and outcome.outcome != "same":
        return outcome._replace(outcome="rejected")
    return outcome._replace(outcome="silent") if way in bad and outcome.outcome != "refused" else outcome


# --- hostile sizes ------------------------------------------------------------------------------------------------


def _bomb(first: bytes, repeated: bytes, n_bytes: int) -> bytes:
    """Return a gzip file of a few megabytes that expands to `n_bytes`."""
    piece = gzip.compress(repeated * (2**24 // len(repeated)), 9)
    return gzip.compress(first) + piece * max(1, n_bytes // 2**24)


def _npz(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def _claim(shape: tuple[int, ...]) -> bytes:
    """Return the header of an array that is not there."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return stream.getvalue()


def _zip(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def _deflated(name: str, n_bytes: int) -> bytes:
    """Return an archive of one member that expands to zeros."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(name, "w") as member:
        for _ in range(max(1, n_bytes // 2**24)):
            member.write(bytes(2**24))
    return stream.getvalue()


def hostile(rng: Rng) -> tuple[str, str, bytes]:
    """Return how a small file asks for much memory, its name and its content."""
    size, long = int(10 ** rng.uniform(4, 10)), int(10 ** rng.uniform(8, 9.3))
    square = np.array([size, size])
    head = b"%%MatrixMarket matrix coordinate integer general\n"
    part = {"labels.npy": _claim((size, size)), "identity.npy": _claim(())}
    none = np.array([0])
    ways: dict[str, Callable[[], tuple[str, bytes]]] = {
        "mtx": lambda: ("X.mtx", head + f"{size} {size} 1\n1 1 1\n".encode()),
        "mtx, many entries": lambda: ("X.mtx", head + f"3 3 {size * size}\n1 1 1\n".encode()),
        "mtx, dense": lambda: ("X.mtx", f"%%MatrixMarket matrix array integer general\n{size} {size}\n1\n".encode()),
        "mtx, symmetric": lambda: (
            "X.mtx", f"%%MatrixMarket matrix array integer symmetric\n{size} {size}\n1\n".encode()
        ),
        "mtx.gz, one line": lambda: ("X.mtx.gz", _bomb(head + b"3 3 1\n", b"1 ", long)),
        "csv.gz, one line": lambda: ("X.csv.gz", _bomb(b"a,b\n", b"1,", long)),
        "csv.gz, many lines": lambda: ("X.csv.gz", _bomb(b"a,b\n", b"1,2\n", 2**24)),
        "csv.gz, long header": lambda: ("X.csv.gz", _bomb(b"", b"abc,", long)),
        "names, one line": lambda: ("X.columns.txt.gz", _bomb(b"a", b"b", long)),
        "names, many lines": lambda: ("X.columns.txt.gz", _bomb(b"", b"b\n", long)),
        "uci": lambda: ("docword.x.txt", f"{size}\n{size}\n1\n1 1 1\n".encode()),
        "coo": lambda: ("X.npz", _npz(row=none, col=none, data=none + 1, shape=square, format=np.array(b"coo"))),
        "csr": lambda: (
            "X.npz", _npz(indices=none, indptr=[0, 1], data=none + 1, shape=square, format=np.array(b"csr"))
        ),
        "dia": lambda: ("X.npz", _npz(offsets=none, data=np.ones((1, 2)), shape=square, format=np.array(b"dia"))),
        "bsr": lambda: (
            "X.npz",
            _npz(indices=none, indptr=[0, 1], data=np.ones((1, 1, 1)), shape=square, format=np.array(b"bsr")),
        ),
        "npz, deflated": lambda: ("X.npz", _deflated("data.npy", long)),
        "npz, claim": lambda: ("X.npz", _zip({"data.npy": _claim((size, size)), "indices.npy": _claim((size,))})),
        "model": lambda: ("fit.mmpca", _zip({"manifest.json": b"{}", "arrays/labels_.npy": _claim((size,))})),
        "model, digits": lambda: ("fit.mmpca", _zip({"manifest.json": b'{"schema": ' + b"9" * 4000 + b"}"})),
        "model, deep": lambda: ("fit.mmpca", _zip({"manifest.json": b"[" * 100_000})),
        "store": lambda: ("fresh-2-2.npz", _zip(part)),
        "store, deflated": lambda: ("fresh-2-2.npz", _deflated("a.npy", long)),
        "checkpoint": lambda: ("fit.npz", _zip({"beta.npy": _claim((size, size)), **part})),
    }  # fmt: skip
    way = list(ways)[rng.integers(len(ways))]
    name, content = ways[way]()
    return way, name, content


def try_hostile(rng: Rng, folder: Path, files: dict[str, Sound]) -> Outcome:
    """Read a small file that asks for much memory."""
    way, name, content = hostile(rng)
    path = folder / name
    path.write_bytes(content)
    if name in files:
        for other, sound in files[name].beside.items():
            (folder / other).write_bytes(sound)
    read = files[name].read if name in ("fit.mmpca", "fit.npz", "fresh-2-2.npz") else counts_of
    source = path
    if way.startswith("names"):
        source = folder / "X.mtx"
        source.write_bytes(files["X.mtx"].content)
    return attempt(f"hostile {way}", path, lambda: read(source), None)


# --- running the tries --------------------------------------------------------------------------------------------


def one_try(number: int, seed: int, only: str, folder: Path, files: dict[str, Sound]) -> Outcome:
    """Run a try, which depends only on its number, the seed and the kind of tries."""
    rng = np.random.default_rng([seed, number])
    works = [try_damage, try_export, try_matrix, try_hostile]
    work = rng.choice([work for work in works if only in work.__name__], p=SHARES if not only else None)
    with tempfile.TemporaryDirectory(dir=folder) as own:
        try:
            return work(rng, Path(own), files)
        except Exception:  # a mistake of this script rather than of the package
            return Outcome(work.__name__, "traceback", "in fuzz.py itself: " + traceback.format_exc(limit=-4))


def run(
    numbers: list[int], seed: int, only: str, folder: Path, files: dict[str, Sound]
) -> Iterator[tuple[int, Outcome]]:
    """Run tries in processes with limited memory; one that crashes or hangs is replaced."""
    left = list(numbers)
    while left:
        batch = left[:BATCH]
        finished, is_hanging = 0, False
        for line in _in_process(batch, seed, only, folder, files):
            if line is None:
                is_hanging = True
                break
            yield batch[finished], Outcome(*json.loads(line))
            finished += 1
        if finished < len(batch):
            yield batch[finished], Outcome("process", "hang" if is_hanging else "crash")
            finished += 1
        left = left[finished:]


def _in_process(batch: list[int], seed: int, only: str, folder: Path, files: dict[str, Sound]) -> Iterator[str | None]:
    """Yield a line for each try that another process runs, and None if it takes too long."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        try:
            os.close(reading)
            with open(writing, "w", encoding="utf-8", errors="replace") as lines:
                for number in batch:
                    pages = int(Path("/proc/self/statm").read_text().split()[0])  # earlier tries leave some behind
                    limits = pages * resource.getpagesize() + MEMORY, resource.RLIM_INFINITY
                    resource.setrlimit(resource.RLIMIT_AS, limits)
                    lines.write(json.dumps(one_try(number, seed, only, folder, files)) + "\n")
                    lines.flush()
        finally:
            os._exit(0)
    os.close(writing)
    buffer, n_waits, began = b"", 0, 0.0
    with open(reading, "rb", buffering=0) as stream:
        while True:
            if not select.select([stream], [], [], PATIENCE / 10)[0]:
                # On a busy machine, a try may take long without doing much; one that does nothing at all waits in vain.
                n_waits += 1
                if _processor_seconds(process) - began < PATIENCE and n_waits < 200:
                    continue
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
                yield None
                return
            piece = stream.read(2**16)
            if not piece:
                break
            n_waits, began = 0, _processor_seconds(process)
            *lines, buffer = (buffer + piece).split(b"\n")
            yield from (line.decode() for line in lines)
    os.waitpid(process, 0)


def _processor_seconds(process: int) -> float:
    """Return the time of the processor that another process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def show(outcomes: dict[int, Outcome], console: Console) -> int:
    """Print the counts by outcome and the first failures; return the number of failures."""
    by_kind: dict[str, Counter[str]] = {}
    for one in outcomes.values():
        by_kind.setdefault(one.kind, Counter())[one.outcome] += 1
    used = [name for name in OUTCOMES if any(counter[name] for counter in by_kind.values())]
    table = Table("tries", *used)
    for kind, counter in sorted(by_kind.items()):
        table.add_row(kind, *(str(counter[name] or "") for name in used))
    total = Counter(one.outcome for one in outcomes.values())
    table.add_section()
    table.add_row("all", *(str(total[name]) for name in used))
    console.print(table)
    failed = {number: one for number, one in outcomes.items() if one.outcome in FAILURES}
    for number, one in list(failed.items())[:N_SHOWN]:
        console.print(f"try {number}: {one.kind}: {one.outcome}\n{one.detail}\n", markup=False, highlight=False)
    return len(failed)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first try, to repeat one: --tries 1")
    parser.add_argument(
        "--only", choices=["damage", "export", "matrix", "hostile"], default="", help="one kind of tries"
    )
    return parser.parse_args(arguments)


def main() -> int:
    """Run the tries and return the exit code."""
    options = parse()
    console = Console(width=160 if not sys.stdout.isatty() else None)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sound").mkdir()
        files = corpus(Path(folder) / "sound")
        numbers = list(range(options.first, options.first + options.tries))
        outcomes = dict(run(numbers, options.seed, options.only, Path(folder), files))
    n_failed = show(outcomes, console)
    console.print(f"{n_failed} of {len(outcomes)} tries failed (seed {options.seed}).")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
