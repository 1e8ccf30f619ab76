"""Draw the picture of the README and that of clusters over time, each from a fit."""

import io
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from PIL import Image

matplotlib.use("agg")
from matplotlib import pyplot as plt  # after the choice of the backend

from mmpca import MMPCA, plots
from mmpca.evaluation import agreement
from mmpca.plots.style import COLORS
from mmpca.simulate import paper_design
from mmpca.simulate.designs import ARTICLES, article_topics

IMAGES = Path(__file__).with_name("images")
TITLES = ("What you have:\n{n} rows of counts", "What it finds: {q} clusters of rows,\n{k} topics of features",
          "What each cluster is made of:\nshares of the topics")  # fmt: skip


def main() -> None:
    """Fit the paper's design and draw counts, clusters and topic shares side by side."""
    data = paper_design(noise=0.2, random_state=0)
    model = MMPCA(6, 4, random_state=0).fit(data.X)
    ari = agreement(data.labels, model.labels_).ari
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.4), width_ratios=(4, 4, 3), layout="constrained")
    sizes = {"n": len(data.labels), "q": model.n_clusters, "k": model.n_topics}
    for ax, title in zip(axes, TITLES, strict=True):
        ax.set_title(title.format(**sizes), fontsize=13, loc="left")
    counts = data.X.toarray()
    rows, columns = _orders(model, counts)
    _matrix(axes[0], counts[:, np.random.default_rng(0).permutation(counts.shape[1])])
    _matrix(axes[1], counts[np.ix_(rows, columns)])
    _frames(axes[1], model, columns)
    _shares(axes[2], model)
    figure.supxlabel(
        f"mmpca.simulate.paper_design(noise=0.2), MMPCA(6, 4): adjusted Rand index with the true clusters {ari:.3f}",
        fontsize=10, color="0.35", x=0.01, ha="left",
    )  # fmt: skip
    IMAGES.mkdir(exist_ok=True)
    _save(figure, IMAGES / "what-it-does.png")
    _save(_over_time(), IMAGES / "clusters_over.png")


def _over_time() -> plt.Figure:
    """Draw clusters that come and go within a year and a half."""
    data, rng = paper_design(n_samples=400, random_state=0), np.random.default_rng(0)
    X = pd.DataFrame(data.X.toarray(), columns=data.feature_names)
    days = np.clip(rng.normal(60 * (1 + data.labels), 60), 0, 500)
    model = MMPCA(6, 4, random_state=0).fit(X)
    return plots.clusters_over(
        model.clusters_over(pd.Timestamp("2024-01-01") + pd.to_timedelta(days, unit="D"), bins="Q")
    )


def _save(figure: plt.Figure, path: Path) -> None:
    """Write a figure with 48 colors, which makes the file four times smaller."""
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=110)
    Image.open(buffer).convert("RGB").quantize(48, dither=Image.Dither.NONE).save(path, optimize=True)


def _orders(model: MMPCA, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows sorted by cluster, and the features by their main topic, frequent ones first."""
    topic = (model.components_ * model.cluster_topics_.mean(axis=0)[:, None]).argmax(axis=0)
    return np.argsort(model.labels_, kind="stable"), np.lexsort((-counts.sum(axis=0), topic))


def _matrix(ax: plt.Axes, counts: np.ndarray) -> None:
    """Show counts in gray; neighboring features are added in pairs, because dots would be smaller than pixels."""
    shown = np.sqrt(counts[:, : counts.shape[1] // 2 * 2].reshape(len(counts), -1, 2).sum(axis=2))
    ax.imshow(shown, aspect="auto", cmap="Greys", vmax=2, interpolation="antialiased")
    ax.set(xticks=[], yticks=[], xlabel="features (words)", ylabel="rows (documents)")


def _frames(ax: plt.Axes, model: MMPCA, columns: np.ndarray) -> None:
    """Draw the boundaries of clusters and topics."""
    topic = (model.components_ * model.cluster_topics_.mean(axis=0)[:, None]).argmax(axis=0)
    for end in np.cumsum(np.bincount(model.labels_))[:-1]:
        ax.axhline(end - 0.5, color=COLORS[1], linewidth=1.2)
    for end in np.cumsum(np.bincount(topic[columns]))[:-1]:
        ax.axvline(end / 2 - 0.5, color=COLORS[0], linewidth=1.2)


def _shares(ax: plt.Axes, model: MMPCA) -> None:
    """Draw the topic proportions of each cluster as a bar, clusters in the order of the rows."""
    left = np.zeros(model.n_clusters)
    for k, share in enumerate(model.cluster_topics_.T):
        words = model.components_[k]
        name = _name(words)
        ax.barh(np.arange(model.n_clusters), share, left=left, color=COLORS[k], label=name, height=0.75)
        left += share
    ax.set(xlim=(0, 1), yticks=range(model.n_clusters), xlabel="share", ylim=(model.n_clusters - 0.5, -0.5))
    ax.set_yticklabels([f"cluster {q}\n{n} rows" for q, n in enumerate(np.bincount(model.labels_))], fontsize=9)
    ax.legend(fontsize=9, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.17), frameon=False, borderaxespad=0.2)
    ax.spines[["top", "right"]].set_visible(False)


def _name(topic: np.ndarray) -> str:
    """Return the name of the article that is closest to a topic."""
    distance = np.abs(article_topics()[0] - topic).sum(axis=1)
    return ARTICLES[int(distance.argmin())].replace("_", " ")


if __name__ == "__main__":
    main()
