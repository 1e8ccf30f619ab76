"""
Any counts: strokes of handwritten digits
=========================================

scikit-learn's digits are real counts: the number of "on" pixels, out of sixteen, in each of 64 blocks. Topics become
strokes, and clusters become combinations of strokes. The comparison is honest: when groups differ in position and
intensity, k-means does just as well.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from mmpca import MMPCA
from mmpca.evaluation import agreement

images, truth = load_digits(n_class=6, return_X_y=True)
X = images.astype(int)[:600]
truth = truth[:600]
model = MMPCA(6, 8, random_state=0).fit(X)
print(f"MMPCA   ARI {agreement(truth, model.labels_).ari:.3f}, overdispersion {model.overdispersion_:.1f}")
labels = KMeans(6, n_init=10, random_state=0).fit_predict(X)
print(f"k-means ARI {agreement(truth, labels).ari:.3f}")

# %%
# Eight topics: blocks that are inked together
# --------------------------------------------

figure, axes = plt.subplots(1, 8, figsize=(10, 1.6))
for ax, topic in zip(axes, model.components_, strict=True):
    ax.imshow(topic.reshape(8, 8), cmap="Greys")
    ax.axis("off")
plt.show()

# %%
# Six clusters: mixtures of strokes
# ---------------------------------
# The title of each cluster is its most frequent digit.

figure, axes = plt.subplots(1, 6, figsize=(10, 2))
for q, ax in enumerate(axes):
    ax.imshow((model.cluster_topics_[q] @ model.components_).reshape(8, 8), cmap="Greys")
    ax.set_title(np.bincount(truth[model.labels_ == q]).argmax())
    ax.axis("off")
plt.show()
