"""
Single cells: AnnData in, AnnData out
=====================================

This tutorial clusters raw counts of cells by genes and stores the results where single-cell tools expect them. The cells
are simulated from the model: five cell types mix four gene programs, at depths from a few hundred to a few thousand reads.
"""

import anndata
import matplotlib.pyplot as plt
import numpy as np

from mmpca.anndata import cluster
from mmpca.evaluation import agreement
from mmpca.simulate import simulate_mmpca, sparse_topics

rng = np.random.default_rng(0)
types = rng.dirichlet(np.full(4, 0.7), size=5)
depths = rng.lognormal(7, 0.6, size=500).astype(int) + 100
data = simulate_mmpca(
    500, topics=sparse_topics(4, 800, random_state=0), cluster_topics=types, lengths=depths, random_state=0
)
adata = anndata.AnnData(data.X.astype("float32"))
adata.var_names = [f"gene{v}" for v in range(adata.n_vars)]
adata.obs_names = [f"cell{i}" for i in range(adata.n_obs)]

# %%
# One call
# --------
# ``cluster`` takes raw counts; log-normalized values raise an error that says so. Sequencing depth needs no correction,
# because the model describes the proportions of the genes in a cell, whatever its total.

cluster(adata, n_clusters=5, n_topics=4, random_state=0)
print(adata)

# %%
# Where the results are
# ---------------------
# Labels are in ``.obs``, topic proportions of the cells in ``.obsm``, gene programs in ``.varm``, and statistics of the
# fit in ``.uns``.

print(adata.obs["mmpca"].value_counts().to_dict())
print(f"ARI with the simulated types: {agreement(data.labels, adata.obs['mmpca'].astype(int)).ari:.3f}")
for k in range(4):
    top = adata.var_names[np.argsort(-adata.varm["mmpca_topics"][:, k])[:5]]
    print(f"program {k}:", ", ".join(top))

# %%
# Cells in topic space
# --------------------

shares = adata.obsm["X_mmpca"]
for q in adata.obs["mmpca"].cat.categories:
    at = (adata.obs["mmpca"] == q).to_numpy()
    plt.scatter(shares[at, 0], shares[at, 1], s=8, label=f"cluster {q}")
plt.xlabel("proportion of program 0")
plt.ylabel("proportion of program 1")
plt.legend(frameon=False)
plt.show()
