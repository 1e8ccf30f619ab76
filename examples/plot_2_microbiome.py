"""
Ecology: a microbiome table, its variance and its indicator taxa
================================================================

This tutorial clusters bacterial samples from dairy cows, taken from the mouth, the nose, the vagina and the milk of 45
animals [1]_. The table and its metadata are part of the package `pyPLNmodels` on PyPI
(``pip install --no-deps pyPLNmodels``). The body sites stay hidden until the end.

.. [1] M. Mariadassou et al., "Microbiota members from body sites of dairy cows are largely shared within individual hosts
   throughout lactation but sharing is limited in the herd", Animal Microbiome 5, 2023.
"""

import warnings
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from mmpca import MMPCA
from mmpca.errors import OverdispersionWarning
from mmpca.evaluation import agreement
from mmpca.plots import cluster_topics, label_composition, marker_dotplot

folder = Path(find_spec("pyPLNmodels").origin).parent / "load_data" / "data" / "microcosm"
counts, samples, taxa = (
    pd.read_csv(folder / f"{name}.tsv", sep="\t", index_col=0) for name in ("counts", "metadata", "affiliations")
)
counts = counts.loc[:, (counts > 0).sum() >= 20]  # taxa in at least 20 samples
counts = counts.loc[counts.sum(axis=1) > 0]
samples = samples.loc[counts.index]
genus = taxa["Genus"].reindex(counts.columns).fillna("unknown")
counts.columns = [f"{name} ({asv.removeprefix('ASV_')})" for name, asv in zip(genus, counts.columns, strict=True)]
print(counts.shape, "reads per sample:", counts.sum(axis=1).quantile([0.05, 0.5, 0.95]).astype(int).tolist())

# %%
# Sequencing depth differs widely. The model describes proportions given the total of a sample, so nothing needs to be
# rarefied or normalized.
#
# Do the counts vary more than the model expects?
# -----------------------------------------------
# Reads of one taxon come in bursts. With plain multinomial noise, a few dominant taxa decide everything; the fit measures
# this and warns.

with warnings.catch_warnings():
    warnings.simplefilter("ignore", OverdispersionWarning)
    plain = MMPCA(4, 8, dispersion="multinomial", random_state=0).fit(counts)
print(f"within clusters, counts vary {plain.overdispersion_:,.0f} times as much as the model expects")

# %%
# ``dispersion="polya"`` estimates a variance factor for each taxon. The default, ``dispersion="auto"``, lets the fit
# decide; it compares the alternatives, which takes longer.

model = MMPCA(4, 8, dispersion="polya", random_state=0).fit(counts)
print(f"after allowing for bursts: {model.overdispersion_:.1f} times")

# %%
# Communities and clusters
# ------------------------
# Topics are communities of taxa that occur together; a cluster is a mixture of them.

cluster_topics(model)
plt.show()

# %%
# Indicator taxa
# --------------
# The dots show in how many samples of a cluster each taxon occurs, and its share of the reads in that cluster.

marker_dotplot(model, counts, n_features=4)
plt.show()

# %%
# The table lists the same taxa with effect sizes and standard errors, which are based on samples, not on reads: a taxon
# that is abundant in a single sample indicates nothing.

features = model.features_frame(n_features=3)
print(features.loc[features["kind"] == "cluster", ["name", "feature", "rows", "lift", "z"]].round(1).to_string())

# %%
# Compare with the metadata
# -------------------------
# B is the mouth, L the milk, N the nose and V the vagina. The table shows the sites of each cluster.

site = samples["site"].tolist()
print(pd.crosstab(samples["site"].to_numpy(), model.labels_, rownames=["site"], colnames=["cluster"]))
for name, labels in (("multinomial", plain.labels_), ("polya", model.labels_)):
    print(f"ARI with the body sites, {name}: {agreement(site, labels).ari:.2f}")
label_composition(site, model.labels_)
plt.show()

# %%
# If clusters and sites differ, look at the other metadata before you call it an error. For example, the month of
# lactation within a cluster:

print(pd.crosstab(samples["time"].to_numpy(), model.labels_, rownames=["time"], colnames=["cluster"]))
