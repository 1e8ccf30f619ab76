"""
Single cells: with scanpy, from raw counts to marker genes
==========================================================

This tutorial clusters real cells and passes the result to scanpy. The cells are macrophages and CD4+ and CD8+ T cells with
known types [1]_. Counts and types are part of the package `pyPLNmodels` on PyPI
(``pip install --no-deps pyPLNmodels``). We use the first 800 of the 2,000 cells and the first 500 of the 3,000 genes.

.. [1] A sample of the scMARK benchmark for annotated single-cell data, as distributed with pyPLNmodels.
"""

import warnings
from importlib.util import find_spec
from pathlib import Path

import anndata
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import scanpy as sc

from mmpca.anndata import cluster
from mmpca.evaluation import agreement

folder = Path(find_spec("pyPLNmodels").origin).parent / "load_data" / "data" / "scRT"
counts = pd.read_csv(folder / "counts.csv").iloc[:800, :500]
types = pd.read_csv(folder / "labels.csv").iloc[:800, 0]
adata = anndata.AnnData(counts.astype("float32").set_axis([f"cell{i}" for i in counts.index]))
adata.obs["type"] = pd.Categorical(types.to_numpy())
print(adata)

# %%
# Leave out genes that say more about a cell's state than about its type
# ----------------------------------------------------------------------
# Ribosomal and mitochondrial genes make up much of the counts of every cell. We remove them, as is usual before
# clustering, but keep raw counts: log-normalized values raise an error that says so.

is_housekeeping = adata.var_names.str.startswith(("RPL", "RPS", "MT-"))
adata = adata[:, ~is_housekeeping].copy()
print("counts per cell:", np.percentile(adata.X.sum(axis=1), [5, 50, 95]).astype(int), "genes:", adata.n_vars)

# %%
# One call
# --------
# Sequencing depth needs no correction, because the model describes the proportions of the genes in a cell. Genes vary
# more than a multinomial allows, so we ask for a variance factor for each gene.

cluster(adata, n_clusters=3, n_topics=5, dispersion="polya", random_state=0)
print(adata)
print(adata.obs["mmpca"].value_counts().to_dict())

# %%
# Labels are in ``.obs``, topic proportions of the cells in ``.obsm``, gene programs in ``.varm``, and statistics of the
# fit in ``.uns``, where scanpy and other tools find them.
#
# Marker genes with scanpy
# ------------------------
# The counts stay in a layer; scanpy's test gets log-normalized values.

adata.layers["counts"] = adata.X.copy()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    sc.pp.normalize_total(adata)
    sc.pp.log1p(adata)
    sc.tl.rank_genes_groups(adata, "mmpca", method="wilcoxon")
    sc.pl.rank_genes_groups_dotplot(adata, n_genes=5, dendrogram=False, show=False)
plt.show()

# %%
# Cells in topic space
# --------------------
# The topic proportions are an embedding for any tool that reads ``.obsm``: neighbors, UMAP, trajectories. Here are the
# first two principal components.

shares = adata.obsm["X_mmpca"] - adata.obsm["X_mmpca"].mean(axis=0)
adata.obsm["X_topics_pca"] = shares @ np.linalg.svd(shares, full_matrices=False)[2][:2].T
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    sc.pl.embedding(adata, basis="topics_pca", color=["mmpca", "type"], show=False)
plt.show()

# %%
# Compare with the known types
# ----------------------------
# The model separates macrophages from T cells almost perfectly. It then divides the macrophages in two and leaves CD4+ and
# CD8+ T cells in one cluster: with these genes, macrophages differ more from each other than the two kinds of T cells do.
# The adjusted Rand index with the three types is low for this reason. To separate the T cells, cluster them alone.

print(pd.crosstab(adata.obs["type"], adata.obs["mmpca"]))
print(f"ARI with the three types: {agreement(adata.obs['type'], adata.obs['mmpca']).ari:.2f}")
is_macrophage = adata.obs["type"] == "Macrophages"
t_cluster = adata.obs["mmpca"][~is_macrophage].mode()[0]
right = ((adata.obs["mmpca"] != t_cluster) == is_macrophage).mean()
print(f"cells on the right side of macrophages and T cells: {right:.1%}")
