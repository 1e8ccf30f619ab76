"""
Ecology: sites by species, and overdispersed counts
===================================================

Species form communities, and each site mixes communities, which is exactly the model. But abundances vary far more
between sites of the same kind than a multinomial allows. The fit detects this, and square roots help. The data are
simulated, with the extra variation built in.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from mmpca import MMPCA
from mmpca.evaluation import agreement
from mmpca.plots import cluster_topics
from mmpca.simulate import sparse_topics

# %%
# Sites in four habitats
# ----------------------
# There are three communities of 150 species, and each habitat mixes them in its own way. At each site, the abundance of
# every species is multiplied by a random factor (gamma with variance 2), and the sampling effort differs between sites.

rng = np.random.default_rng(0)
communities = sparse_topics(3, 150, concentration=0.2, random_state=1)
habitats = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.4, 0.4, 0.2]])
truth = rng.integers(4, size=200)
mean = (habitats @ communities)[truth] * rng.lognormal(6.5, 0.4, size=(200, 1))
X = rng.poisson(mean * rng.gamma(0.5, 2.0, size=mean.shape))
print(X.shape, "median number of individuals per site:", int(np.median(X.sum(axis=1))))

# %%
# Fit the raw counts
# ------------------
# The warning says what is wrong and what to try.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    raw = MMPCA(4, 3, random_state=0).fit(X)
print(caught[0].message)
print(f"overdispersion {raw.overdispersion_:.0f}, ARI {agreement(truth, raw.labels_).ari:.2f}")

# %%
# Fit their square roots
# ----------------------
# ``stabilize="sqrt"`` removes most of the weight of single species at single sites. The model also applies it to new
# sites.

stable = MMPCA(4, 3, stabilize="sqrt", random_state=0).fit(X)
print(f"overdispersion {stable.overdispersion_:.2f}, ARI {agreement(truth, stable.labels_).ari:.2f}")

cluster_topics(stable)
plt.show()

# %%
# Which habitats are similar?
# ---------------------------
# ``merge_path`` merges the clusters step by step until one is left, each time the two whose merge costs least.

path = stable.merge_path()
print("three groups:", path.groups(3), " two groups:", path.groups(2))
