"""
Texts: from reports to clusters that an expert can discuss
==========================================================

Short medical reports become counts of words, counts become clusters, and each cluster is explained by what it is made of.
The reports are **synthetic**: a grammar of the package writes breast-biopsy reports whose labels and sub-types are known.
No text comes from a patient.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from mmpca import MMPCA
from mmpca.evaluation import matched_confusion, summarise
from mmpca.plots import cluster_topics, topics
from mmpca.simulate import pathology_reports
from mmpca.text import CountTexts

reports = pathology_reports(n=400, random_state=0)
print(reports.texts[0])

# %%
# Words to counts
# ---------------
# ``CountTexts`` counts words; here words of three letters or more, in at least five reports, without English stop words.
# What it did can be written down (``counter.settings()``) and is kept in model files, so that new texts are counted alike.

counter = CountTexts(stop_words="english", min_df=5, min_length=3)
X = counter.fit_transform(reports.texts)
print(X.shape, "a report has", int(np.median(X.sum(axis=1))), "counted words in the median")

# %%
# A fit
# -----
# Seven clusters and seven topics. How to choose the numbers is the subject of the guide "How many clusters, how many
# topics", and ``mmpca reproduce reports`` does it on 900 reports.

words = pd.DataFrame.sparse.from_spmatrix(X, columns=counter.get_feature_names_out())  # counts with names
model = MMPCA(7, 7, random_state=0).fit(words)
print(summarise(model, words, labels=reports.subtypes))

# %%
# What clusters are made of
# -------------------------
# A cluster is a mixture of topics, and a topic a list of words with their probabilities.

topics(model, n_features=7, by="lift")
cluster_topics(model)
plt.show()

# %%
# Beside the known labels
# -----------------------
# Each class stands beside the cluster that matches it best. Where a class is split, look at the topics of the two clusters
# before you call it an error: benign reports are on quite different lesions.

confusion = matched_confusion(reports.subtypes, model.labels_)
for name, row in zip(confusion.classes, confusion.table, strict=True):
    print(f"{name:34s}", *(f"{n:4d}" for n in row))

# %%
# Why is a report where it is?
# ----------------------------
# The evidence is told word by word, in nats that add up to the margin over the runner-up.

why = model.explain(words, [0], labels=model.labels_, n_features=4)[0]
print(f"cluster {why.cluster}, {why.verdict}: {why.margin:.1f} nats ahead of cluster {why.runner_up}")
for part in why.evidence_for:
    print(f"  {part.name}: {part.nats:+.1f}")
