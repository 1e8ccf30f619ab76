"""Section 5 of the paper on synthetic reports: from texts to clusters, compared with known labels and subtypes."""

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
from mmpca.model import MMPCA
from mmpca.paper.experiment import Experiment, Figure, Record, Table, Task, columns, new_task
from mmpca.paper.figures import confusions
from mmpca.paper.pathology import Reports, pathology_reports
from mmpca.paper.runner import write_csv
from mmpca.selection import GRID_CRITERIA, MMPCASearch
from mmpca.text import CountTexts

MIN_REPORTS, MIN_LETTERS = 10, 3  # of a word
N_FOLDS = 5  # of the counts, to choose the number of topics
N_WORDS = 10  # most probable words of a topic to save
SEPARATE = ("benign", "lobular carcinoma")  # labels that should have their own clusters


class Counted(NamedTuple):
    """Reports, the counts of their words, (N, V), and the words."""

    reports: Reports
    X: sparse.csr_array
    words: NDArray[np.object_]


@dataclass(frozen=True)
class BiopsyReports(Experiment):
    """Clusters of synthetic biopsy reports, with the numbers of clusters and topics chosen by each criterion.

    A data set is a corpus of reports.

    Parameters
    ----------
    n_reports : int, default=900
        Reports in a corpus.
    n_clusters, n_topics : tuple of int
        The grid; the paper's by default.
    """

    name: ClassVar[str] = "reports"
    shared_options: ClassVar[tuple[str, ...]] = ("n_reports", "n_clusters", "n_topics")

    n_reports: int = 900
    n_clusters: tuple[int, ...] = tuple(range(2, 11))
    n_topics: tuple[int, ...] = tuple(range(2, 8))

    @classmethod
    def quick(cls) -> Self:
        """Return one corpus of 300 reports, and fewer cells."""
        return cls(n_reports=300, n_clusters=(6, 7, 8), n_topics=(6, 7))

    def tasks(self) -> list[Task]:
        """Return a task for each corpus."""
        return [new_task("search", seed=seed) for seed in self.seeds]

    def counted(self, seed: int) -> Counted:
        """Return a corpus and the counts of its words with at least three letters that are in at least ten reports."""
        reports = pathology_reports(self.n_reports, random_state=seed)
        counter = CountTexts(stop_words="english", min_df=MIN_REPORTS, min_length=MIN_LETTERS)
        return Counted(reports, counter.fit_transform(reports.texts), counter.get_feature_names_out())

    def run(self, task: Task) -> Record:
        """Return the value of each criterion in each cell, and the best model by each criterion."""
        counted, seed = self.counted(task["seed"]), task["seed"]
        record: Record = {}
        grid: dict[str, Any] = {"n_clusters": self.n_clusters, "n_topics": self.n_topics, "n_folds": N_FOLDS}
        with TemporaryDirectory() as store:  # each cell is fitted only once
            for criterion in GRID_CRITERIA:
                search = MMPCASearch(**grid, criterion=criterion, store=store, random_state=seed, n_jobs=1)
                record[criterion] = _found(search.fit(counted.X), counted.words)
        return record | {"cells": {name: column.tolist() for name, column in search.results_.items()}}

    def model(self, counted: Counted, record: Record, criterion: str = GRID_CRITERIA[0]) -> MMPCA:
        """Return the model that a criterion chose, rebuilt from its record, with feature names."""
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
            for criterion in GRID_CRITERIA:
                found = record[criterion]
                chosen = {"seed": task["seed"], "criterion": criterion, "n_topics": found["n_topics"]}
                known = zip(reports.names.tolist(), reports.labels.tolist(), reports.subtypes.tolist(), strict=True)
                for (name, label, subtype), cluster in zip(known, found["labels"], strict=True):
                    rows.append({**chosen, "report": name, "label": label, "subtype": subtype, "cluster": cluster})
        return columns(rows)

    def summary(self, table: Table) -> Table:
        """Return the choice of each criterion and its agreement with labels and subtypes, one measure per row."""
        found: dict[str, dict[str, float]] = {}
        for (seed, criterion), part in _parts(table).items():
            label, subtype, cluster = (np.array(part[name]) for name in ("label", "subtype", "cluster"))
            chosen = {"clusters": len(np.unique(cluster)), "topics": part["n_topics"][0]}
            found[f"{criterion}, seed {seed}"] = chosen | agreement_with_truth(label, subtype, cluster)
        names = list(next(iter(found.values())))
        return {"": names} | {title: [values[name] for name in names] for title, values in found.items()}

    def draw(self, table: Table) -> Figure:
        """Draw subtypes against clusters by each criterion, for the first corpus."""
        first = [part for (seed, _), part in _parts(table).items() if seed == table["seed"][0]]
        return confusions({f"{part['criterion'][0]}": (part["subtype"], part["cluster"]) for part in first})


def agreement_with_truth(label: NDArray[Any], subtype: NDArray[Any], cluster: NDArray[Any]) -> dict[str, float]:
    """Return agreement with labels and subtypes, and the purity and completeness of the clusters of two labels.

    The clusters of a label are those in which most reports have it. Purity is the share of their reports that have the
    label; "found" is the share of the label's reports that are in them.

    Examples
    --------
    >>> import numpy as np
    >>> label = np.array(["benign", "benign", "lobular carcinoma", "other"])
    >>> found = agreement_with_truth(label, label, np.array([0, 0, 1, 1]))
    >>> found["benign: purity"], found["benign: found"]
    (1.0, 1.0)
    """
    is_other = ~np.isin(label, SEPARATE)
    found = {
        "labels: ARI": agreement(label, cluster).ari,
        "subtypes: ARI": agreement(subtype, cluster).ari,
        "subtypes of one label: ARI": agreement(subtype[is_other], cluster[is_other]).ari,
    }
    for name in SEPARATE:
        has_majority = np.bincount(cluster, label == name) > 0.5 * np.bincount(cluster)  # (Q,)
        is_in = has_majority[cluster]
        found[f"{name}: purity"] = float(np.mean(label[is_in] == name)) if is_in.any() else 0.0
        found[f"{name}: found"] = float(np.mean(is_in[label == name]))
    return found


def write_details(experiment: BiopsyReports, record: Record, folder: Path) -> list[Path]:
    """Write the cells of a search, and the topic shares and words by each criterion, as CSV; return the files."""
    tables = {"cells": record["cells"]}
    for criterion in GRID_CRITERIA:
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
    """Return the attributes to save for the best model of a search."""
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
    """Return the table split by corpus and criterion."""
    keys = list(zip(table["seed"], table["criterion"], strict=True))
    return {
        key: {
            name: [value for value, own in zip(column, keys, strict=True) if own == key]
            for name, column in table.items()
        }
        for key in dict.fromkeys(keys)
    }
