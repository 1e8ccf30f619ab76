"""Section 5 of the paper on synthetic reports: from texts to clusters, beside labels and sub-types that are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmpca.evaluation import agreement
from mmpca.experiments.experiment import SEED, Experiment, Figure, Record, Table, Task, columns, new_task
from mmpca.experiments.output import write_csv
from mmpca.model import MMPCA
from mmpca.plots.experiments import confusions
from mmpca.selection import CRITERIA, MMPCASearch
from mmpca.simulate import Reports, pathology_reports
from mmpca.text import CountTexts

RARE = 10  # words in fewer reports are left out
SHORT = 3  # words of fewer letters too
N_FOLDS = 5  # of the counts, for the number of topics
N_WORDS = 10  # most probable words of a topic that are told
OWN = ("benign", "lobular carcinoma")  # labels that are asked to have clusters of their own


class Counted(NamedTuple):
    """Reports, the counts of their words, (N, V), and the words."""

    reports: Reports
    X: sparse.csr_array
    words: NDArray[np.object_]


@dataclass(frozen=True)
class BiopsyReports(Experiment):
    """Synthetic biopsy reports, their words counted, numbers of clusters and topics chosen by each criterion.

    Parameters
    ----------
    replicates : int, default=1
        Corpora.
    seed : int, default=1000
        Seed of the first corpus and of the search on it; the others follow.
    n_reports : int, default=900
        Reports of a corpus.
    n_clusters, n_topics : tuple of int
        The grid; the paper's by default.
    """

    name: ClassVar[str] = "reports"

    replicates: int = 1
    seed: int = SEED
    n_reports: int = 900
    n_clusters: tuple[int, ...] = tuple(range(2, 11))
    n_topics: tuple[int, ...] = tuple(range(2, 8))

    @classmethod
    def quick(cls) -> Self:
        """Return one corpus of 300 reports and fewer cells."""
        return cls(n_reports=300, n_clusters=(6, 7, 8), n_topics=(6, 7))

    def identity(self) -> dict[str, Any]:
        """Return what is not in the tasks."""
        return {"n_reports": self.n_reports, "n_clusters": self.n_clusters, "n_topics": self.n_topics}

    def tasks(self) -> list[Task]:
        """Return a task for each corpus."""
        return [new_task("search", seed=seed) for seed in range(self.seed, self.seed + self.replicates)]

    def counted(self, seed: int) -> Counted:
        """Return a corpus and its counts over words of three letters or more that ten reports or more have."""
        reports = pathology_reports(self.n_reports, random_state=seed)
        counter = CountTexts(stop_words="english", min_df=RARE, min_length=SHORT)
        return Counted(reports, counter.fit_transform(reports.texts), counter.get_feature_names_out())

    def run(self, task: Task) -> Record:
        """Return the criteria in each cell, and the best model by each of them."""
        counted, seed = self.counted(task["seed"]), task["seed"]
        record: Record = {}
        grid: dict[str, Any] = {"n_clusters": self.n_clusters, "n_topics": self.n_topics, "n_folds": N_FOLDS}
        with TemporaryDirectory() as store:  # cells are fitted once for all criteria
            for criterion in CRITERIA:
                search = MMPCASearch(**grid, criterion=criterion, store=store, random_state=seed, n_jobs=1)
                record[criterion] = _found(search.fit(counted.X), counted.words)
        return record | {"cells": {name: column.tolist() for name, column in search.results_.items()}}

    def model(self, counted: Counted, record: Record, criterion: str = CRITERIA[0]) -> MMPCA:
        """Return the model that a criterion chose, as it was, with names of features."""
        found = record[criterion]
        topics, start = np.array(found["topics"]), np.array(found["labels"])
        numbers = found["n_clusters"], found["n_topics"]
        model = MMPCA(*numbers, topics=topics, start=start, max_epochs=0, random_state=0).fit(counted.X)
        model.feature_names_in_ = counted.words
        return model

    def table(self, records: Mapping[Task, Record]) -> Table:
        """Return a row for each corpus, criterion and report."""
        rows = []
        for task, record in records.items():
            reports = pathology_reports(self.n_reports, random_state=task["seed"])
            for criterion in CRITERIA:
                found = record[criterion]
                chosen = {"seed": task["seed"], "criterion": criterion, "n_topics": found["n_topics"]}
                known = zip(reports.names.tolist(), reports.labels.tolist(), reports.subtypes.tolist(), strict=True)
                for (name, label, subtype), cluster in zip(known, found["labels"], strict=True):
                    rows.append({**chosen, "report": name, "label": label, "subtype": subtype, "cluster": cluster})
        return columns(rows)

    def summary(self, table: Table) -> Table:
        """Return what each criterion chose, and how well that agrees with labels and sub-types: a line for each."""
        found: dict[str, dict[str, float]] = {}
        for (seed, criterion), part in _parts(table).items():
            label, subtype, cluster = (np.array(part[name]) for name in ("label", "subtype", "cluster"))
            chosen = {"clusters": len(np.unique(cluster)), "topics": part["n_topics"][0]}
            found[f"{criterion}, seed {seed}"] = chosen | judged(label, subtype, cluster)
        names = list(next(iter(found.values())))
        return {"": names} | {title: [told[name] for name in names] for title, told in found.items()}

    def draw(self, table: Table) -> Figure:
        """Draw sub-types against clusters, for the first corpus, by each criterion."""
        first = [part for (seed, _), part in _parts(table).items() if seed == table["seed"][0]]
        return confusions({f"{part['criterion'][0]}": (part["subtype"], part["cluster"]) for part in first})


def judged(label: NDArray[Any], subtype: NDArray[Any], cluster: NDArray[Any]) -> dict[str, float]:
    """Return agreement with labels and sub-types, and how pure and complete the clusters of two labels are.

    The clusters of a label are those in which most reports have it. Its purity is the share of their reports that have
    the label, and it is found in the share of its reports that are in them.

    Examples
    --------
    >>> import numpy as np
    >>> label = np.array(["benign", "benign", "lobular carcinoma", "other"])
    >>> told = judged(label, label, np.array([0, 0, 1, 1]))
    >>> told["benign: purity"], told["benign: found"]
    (1.0, 1.0)
    """
    is_mixed = ~np.isin(label, OWN)
    told = {
        "labels: ARI": agreement(label, cluster).ari,
        "sub-types: ARI": agreement(subtype, cluster).ari,
        "sub-types of one label: ARI": agreement(subtype[is_mixed], cluster[is_mixed]).ari,
    }
    for own in OWN:
        has = np.bincount(cluster, label == own) > 0.5 * np.bincount(cluster)  # (Q,)
        is_in = has[cluster]
        told[f"{own}: purity"] = float(np.mean(label[is_in] == own)) if is_in.any() else 0.0
        told[f"{own}: found"] = float(np.mean(is_in[label == own]))
    return told


def write_details(experiment: BiopsyReports, record: Record, folder: Path) -> list[Path]:
    """Write the cells of a search, and topic shares and words by each criterion, as CSV; return the files."""
    tables = {"cells": record["cells"]}
    for criterion in CRITERIA:
        found = record[criterion]
        topics = [f"topic {k}" for k in range(found["n_topics"])]
        shares = dict(zip(topics, np.array(found["cluster_topics"]).T.round(4).tolist(), strict=True))
        sizes = np.bincount(found["labels"]).tolist()
        tables[f"{criterion}-topic-shares"] = {"cluster": list(range(len(sizes))), "reports": sizes, **shares}
        tables[f"{criterion}-words"] = dict(zip(topics, found["words"], strict=True))
    paths = {folder / f"{experiment.name}-{name}.csv": table for name, table in tables.items()}
    for path, table in paths.items():
        write_csv(path, table)
    return list(paths)


def _found(search: MMPCASearch, words: NDArray[np.object_]) -> Record:
    """Return what is to be kept of a search's best model."""
    model = search.best_estimator_
    leading = np.argsort(-model.components_, axis=1, kind="stable")[:, :N_WORDS]
    return search.best_params_ | {
        "reason": search.reason_,
        "labels": model.labels_.tolist(),
        "topics": np.asarray(model.topics).tolist(),
        "cluster_topics": model.cluster_topics_.tolist(),
        "words": words[leading].tolist(),
    }


def _parts(table: Table) -> dict[tuple[int, str], Table]:
    """Return the table cut by corpus and criterion."""
    keys = list(zip(table["seed"], table["criterion"], strict=True))
    return {
        key: {
            name: [value for value, own in zip(column, keys, strict=True) if own == key]
            for name, column in table.items()
        }
        for key in dict.fromkeys(keys)
    }
