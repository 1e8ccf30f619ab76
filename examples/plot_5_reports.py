"""
Reports: words an expert can discuss
====================================

This tutorial counts the words of short medical reports, clusters the reports, and explains each cluster by its topics.
The reports are **synthetic**: a grammar in the package writes breast-biopsy reports with known labels and subtypes.
No text comes from a patient.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from mmpca import MMPCA
from mmpca.evaluation import matched_confusion, summarize
from mmpca.paper import pathology_reports
from mmpca.plots import cluster_topics, topics
from mmpca.text import CountTexts

reports = pathology_reports(n=400, random_state=0)
print(reports.texts[0])

# %%
# From words to counts
# --------------------
# Here ``CountTexts`` counts words of at least three letters that occur in at least five reports, without English stop
# words. ``counter.settings()`` returns its settings. Model files store them, so new texts are counted in the same way.

counter = CountTexts(stop_words="english", min_df=5, min_length=3)
X = counter.fit_transform(reports.texts)
print(X.shape, "median number of counted words per report:", int(np.median(X.sum(axis=1))))

# %%
# Fit a model
# -----------
# We use seven clusters and seven topics. The guide "Choosing the numbers of clusters and topics" explains how to choose
# these numbers, and ``mmpca reproduce reports`` does so for 900 reports.

words = pd.DataFrame.sparse.from_spmatrix(X, columns=counter.get_feature_names_out())  # counts with feature names
model = MMPCA(7, 7, random_state=0).fit(words)
print(summarize(model, words, labels=reports.subtypes))

# %%
# What clusters are made of
# -------------------------
# A cluster is a mixture of topics, and a topic is a probability distribution over words.

topics(model, n_features=7, by="lift")
cluster_topics(model)
plt.show()

# %%
# Compare with the known labels
# -----------------------------
# The columns are ordered so that each class lies next to the cluster that matches it best. If a class is split, look at
# the topics of the two clusters before you call it an error: benign reports describe quite different lesions.

confusion = matched_confusion(reports.subtypes, model.labels_)
for name, row in zip(confusion.classes, confusion.table, strict=True):
    print(f"{name:34s}", *(f"{n:4d}" for n in row))

# %%
# Why is a report in its cluster?
# -------------------------------
# The evidence is listed word by word, in nats, and adds up to the margin over the second-best cluster.

why = model.explain(words, [0], labels=model.labels_, n_features=4)[0]
print(f"cluster {why.cluster}, {why.verdict}: {why.margin:.1f} nats ahead of cluster {why.runner_up}")
for part in why.evidence_for:
    print(f"  {part.name}: {part.nats:+.1f}")
