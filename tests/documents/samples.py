"""Files with the quirks of real ones, on which the lines of docs/first_steps.md run."""

import csv

import numpy as np
from scipy import sparse

SUBJECTS = (
    "harbor boat sail anchor tide größe",
    "bread oven flour salt baker café",
    "engine wheel road fuel driver clutch",
)


def write_samples(folder):
    """Write a table of texts, a folder of texts, an OTU table with metadata, cells, and a sparse matrix with names."""
    rng = np.random.default_rng(0)
    texts = [f"The {' and the '.join(rng.choice(SUBJECTS[i % 3].split(), 15))}." for i in range(45)]
    # Windows-1252, with a column of ids and one text without words.
    with (folder / "reviews.csv").open("w", newline="", encoding="cp1252") as file:
        lines = [[f"R{i}", "" if i == 20 else text, i % 5] for i, text in enumerate(texts)]
        csv.writer(file).writerows([["nr", "review", "stars"], *lines])
    (folder / "reports").mkdir()
    for i, text in enumerate(texts):
        (folder / "reports" / f"{i}.txt").write_bytes(text.encode("utf-8" if i % 2 else "cp1252"))
    # OTUs in rows with a taxonomy; names of samples that are numbers; metadata in another order.
    profiles = rng.dirichlet(np.full(8, 0.5), 2)
    X = np.array([rng.multinomial(200, profiles[i % 2]) for i in range(40)]) + 1
    lines = ["\t".join(["#OTU ID", *(str(100 + i) for i in range(40)), "taxonomy"])]
    lines += ["\t".join([f"OTU{v}", *map(str, X[:, v]), f"k__Bacteria; g__Genus{v}"]) for v in range(8)]
    (folder / "otu.tsv").write_text("# Constructed from biom file\n" + "\n".join(lines) + "\n")
    records = [f"{100 + i},{'dry' if i % 2 else 'wet'},{20 + i}" for i in rng.permutation(40)]
    (folder / "metadata.csv").write_text("\n".join(["sample,habitat,depth", *records]) + "\n")
    _write_cells(folder / "cells.h5ad", X)
    words = sorted({word for words in SUBJECTS for word in words.split()})
    sparse.save_npz(folder / "counts.npz", sparse.csr_array([[text.count(word) for word in words] for text in texts]))
    (folder / "words.txt").write_text("\n".join(words), encoding="utf-8")


def _write_cells(path, X):
    """Write log-normalized values, with the counts in a layer."""
    from anndata import AnnData

    adata = AnnData(np.log1p(X / X.sum(axis=1, keepdims=True)), layers={"counts": X})
    adata.obs_names, adata.var_names = [f"cell{i}" for i in range(len(X))], [f"gene{v}" for v in range(X.shape[1])]
    adata.write_h5ad(path)
