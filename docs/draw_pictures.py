"""Draw the picture of the README, and figures of real data for the guide and the API reference."""

import io
from importlib.util import find_spec
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from PIL import Image

matplotlib.use("agg")
from matplotlib import pyplot as plt  # after the choice of the backend
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from mmpca import MMPCA, plots
from mmpca.evaluation import agreement
from mmpca.plots.style import COLORS
from mmpca.simulate import paper_design

IMAGES = Path(__file__).with_name("images")
SITES = {"L": "milk", "N": "nose", "B": "mouth", "V": "vagina"}
GRAYS = ("#f2f2f2", "#bdbdbd", "#737373", "#252525")
TITLES = (
    "What you have: reads of {v} bacterial taxa\nin {n} samples from dairy cows",
    "What it finds: {q} clusters of samples,\n{k} topics of taxa",
    "What each cluster is made of:\nproportions of the topics",
)


def main() -> None:
    """Draw and save the pictures."""
    IMAGES.mkdir(exist_ok=True)
    counts, sites = _read_cows()
    model = MMPCA(4, 5, random_state=0).fit(counts)
    _save(_what_it_does(model, counts, sites), IMAGES / "what-it-does.png")
    _save(plots.distinctive_features(model, n_features=6), IMAGES / "distinctive_features.png")
    _save(plots.topic_features(model, 0).figure, IMAGES / "topic_features.png")
    _save(plots.ordination(counts, model.labels_).figure, IMAGES / "ordination.png")
    for name, figure in _figures(model, counts, sites).items():
        _save(figure, IMAGES / "report" / f"{name}.png")
    _save(_over_time(), IMAGES / "clusters_over.png")


def _what_it_does(model: MMPCA, counts: pd.DataFrame, sites: np.ndarray) -> plt.Figure:
    """Draw counts, clusters and topic proportions side by side."""
    ari = agreement(sites, model.labels_).ari
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.8), width_ratios=(4, 4.4, 3), layout="constrained")
    shape = {"n": len(counts), "v": counts.shape[1], "q": model.n_clusters, "k": model.n_topics}
    for ax, title in zip(axes, TITLES, strict=True):
        ax.set_title(title.format(**shape), fontsize=13, loc="left")
    rows, columns = _orders(model, counts.to_numpy(), sites)
    rng = np.random.default_rng(0)
    _matrix(axes[0], counts.to_numpy()[:, rng.permutation(counts.shape[1])][rng.permutation(len(counts))])
    _matrix(axes[1], counts.to_numpy()[np.ix_(rows, columns)])
    _frames(axes[1], model, columns)
    _known_sites(axes[1], sites[rows])
    _proportions(axes[2], model)
    figure.legend(
        *axes[2].get_legend_handles_labels(),
        title=f"MMPCA(4, 5) did not see the body sites: adjusted Rand index {ari:.2f}. Topics are named after genera:",
        title_fontsize=10,
        fontsize=10,
        loc="outside lower left",
        alignment="left",
        ncols=model.n_topics,
        columnspacing=1.5,
        frameon=False,
    )
    return figure


def _figures(model: MMPCA, counts: pd.DataFrame, sites: np.ndarray) -> dict[str, plt.Figure]:
    """Draw the figures of docs/report.md that compare clusters."""
    model.rename(row="sample", feature="taxon")
    clusters, names, path = model.labels_, model.cluster_names_, model.merge_path()
    sure = model.leave_one_out_proba(counts)
    return {
        "row_map": plots.row_map(model, counts, clusters=clusters, names=names).figure,
        "theta_heatmap": plots.theta_heatmap(model),
        "marker_dotplot": plots.marker_dotplot(model, counts, clusters=clusters).figure,
        "relevance_bars": plots.relevance_bars(model, 0, weight=0.3).figure,
        "label_composition": plots.label_composition(sites, clusters, names=names, row_word="sample").figure,
        "certainty_strips": plots.certainty_strips(sure, clusters, names=names, row_word="sample").figure,
        "clustree": plots.clustree([path.groups(n)[clusters] for n in range(1, 5)]).figure,
    }


def _read_cows() -> tuple[pd.DataFrame, np.ndarray]:
    """Return reads of taxa in at least 20 samples, with genera as names, and the body site of each sample."""
    folder = Path(find_spec("pyPLNmodels").origin).parent / "load_data" / "data" / "microcosm"
    counts, samples, taxa = (
        pd.read_csv(folder / f"{name}.tsv", sep="\t", index_col=0) for name in ("counts", "metadata", "affiliations")
    )
    counts = counts.loc[:, (counts > 0).sum() >= 20]
    counts = counts.loc[counts.sum(axis=1) > 0]
    counts.columns = taxa["Genus"].reindex(counts.columns).fillna("unknown") + counts.columns.str.replace("ASV", "")
    return counts, samples.loc[counts.index, "site"].map(SITES).to_numpy()


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


def _orders(model: MMPCA, counts: np.ndarray, sites: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows sorted by cluster and site, and the features by their main topic, frequent ones first."""
    return np.lexsort((sites, model.labels_)), np.lexsort((-(counts > 0).sum(axis=0), _main_topics(model)))


def _main_topics(model: MMPCA) -> np.ndarray:
    """Return the topic in which each feature is most probable, (V,)."""
    return model.components_.argmax(axis=0)


def _matrix(ax: plt.Axes, counts: np.ndarray) -> None:
    """Show counts in gray, on a scale of logarithms."""
    ax.imshow(np.log1p(counts), aspect="auto", cmap="Greys", vmax=4, interpolation="antialiased")
    ax.set(xticks=[], yticks=[], xlabel="taxa", ylabel="samples")


def _frames(ax: plt.Axes, model: MMPCA, columns: np.ndarray) -> None:
    """Draw the boundaries of clusters and topics."""
    for end in np.cumsum(np.bincount(model.labels_))[:-1]:
        ax.axhline(end - 0.5, color=COLORS[1], linewidth=1.4)
    for end in np.cumsum(np.bincount(_main_topics(model)[columns], minlength=model.n_topics))[:-1]:
        ax.axvline(end - 0.5, color=COLORS[0], linewidth=1.4)


def _known_sites(ax: plt.Axes, sites: np.ndarray) -> None:
    """Draw the known body site of each row as a strip of gray beside the matrix."""
    names = list(SITES.values())
    strip = ax.inset_axes((1.01, 0, 0.05, 1))
    codes = np.array([[names.index(site)] for site in sites])
    strip.imshow(codes, aspect="auto", cmap=ListedColormap(GRAYS), vmin=-0.5, vmax=3.5, interpolation="nearest")
    strip.set(xticks=[], yticks=[])
    handles = [Patch(facecolor=shade, edgecolor="0.5", label=name) for name, shade in zip(names, GRAYS, strict=True)]
    strip.legend(handles=handles, ncols=4, fontsize=10, frameon=False, loc="upper right", bbox_to_anchor=(1.2, 0),
                 columnspacing=1, handlelength=1)  # fmt: skip
    ax.set_xlabel("taxa", loc="left")


def _proportions(ax: plt.Axes, model: MMPCA) -> None:
    """Draw the topic proportions of each cluster as a bar, clusters in the order of the rows."""
    left = np.zeros(model.n_clusters)
    for k, share in enumerate(model.cluster_topics_.T):
        ax.barh(np.arange(model.n_clusters), share, left=left, color=COLORS[k], label=_genera(model, k), height=0.75)
        left += share
    ax.set(xlim=(0, 1), yticks=range(model.n_clusters), ylim=(model.n_clusters - 0.5, -0.5))
    ax.set_yticklabels([f"cluster {q}\n{n} samples" for q, n in enumerate(np.bincount(model.labels_))], fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)


def _genera(model: MMPCA, topic: int) -> str:
    """Return the two most distinctive genera of a topic."""
    table = model.features_frame(n_features=40)
    features = table.loc[(table["kind"] == "topic") & (table["number"] == topic), "feature"].str.rpartition("_")[0]
    known = [name for name in dict.fromkeys(features) if name not in ("unknown", "Multi-affiliation")]
    return ", ".join(known[:2])


if __name__ == "__main__":
    main()
