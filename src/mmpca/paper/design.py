"""The design that all experiments draw their data from: true topics, and the clusters that mix them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from mmpca.paper.experiment import Experiment, Figure, Record, Table, Task, columns, new_task
from mmpca.paper.figures import design_maps
from mmpca.simulate import paper_design
from mmpca.simulate.designs import ARTICLES

N_WORDS_SHOWN = 5  # in the summary of a topic


@dataclass(frozen=True)
class Design(Experiment):
    """The true topics, as the paper shows them: the probability of each word in each topic.

    Nothing is fitted, so there is a single task, whatever the number of replicates.
    """

    name: ClassVar[str] = "design"

    @classmethod
    def quick(cls) -> Self:
        """Return the design itself, which takes no time."""
        return cls()

    def tasks(self) -> list[Task]:
        """Return the only task."""
        return [new_task("design", seed=self.seed)]

    def run(self, task: Task) -> Record:
        """Return words, topics and the topic proportions of the clusters."""
        data = paper_design(n_samples=1, random_state=task["seed"])
        return {
            "words": [str(word) for word in data.feature_names],
            "topics": data.topics.tolist(),
            "cluster_topics": data.cluster_topics.tolist(),
        }

    def table(self, records: Mapping[Task, Record]) -> Table:
        """Return a row for each share of a topic in a cluster, then one for each word of a topic, sorted by topic."""
        (record,) = records.values()
        topics = np.array(record["topics"])  # (K, V)
        shares = [
            {"topic": ARTICLES[k], "kind": "cluster", "name": str(q), "probability": share}
            for q, mixture in enumerate(record["cluster_topics"])
            for k, share in enumerate(mixture)
        ]
        words = [
            {"topic": ARTICLES[k], "kind": "word", "name": record["words"][v], "probability": float(topics[k, v])}
            for v in word_order(topics)
            for k in np.flatnonzero(topics[:, v])
        ]
        return columns([*shares, *words])

    def summary(self, table: Table) -> Table:
        """Return the number of words of each topic, how many it shares, and its most probable words."""
        probabilities: dict[str, dict[str, float]] = {topic: {} for topic in table["topic"]}
        for topic, kind, word, probability in zip(*table.values(), strict=True):
            if kind == "word":
                probabilities[topic][word] = probability
        rows = []
        for topic, words in probabilities.items():
            others = set().union(*(other for name, other in probabilities.items() if name != topic))
            top = sorted(words, key=lambda word: -words[word])[:N_WORDS_SHOWN]
            shared = sum(probability for word, probability in words.items() if word in others)
            rows.append({"topic": topic, "words": len(words), "shared with others": f"{100 * shared:.0f}%",
                         "most probable": ", ".join(top)})  # fmt: skip
        return columns(rows)

    def draw(self, table: Table) -> Figure:
        """Draw the topics and the topic proportions of the clusters."""
        return design_maps(table)


def word_order(topics: np.ndarray) -> list[int]:
    """Return the words sorted by the topic they are most probable in, then by their probability there; topics: (K, V).

    Examples
    --------
    >>> word_order(np.array([[0.1, 0.6, 0.3], [0.7, 0.0, 0.3]]))
    [1, 2, 0]
    """
    main = topics.argmax(axis=0)
    return sorted(range(topics.shape[1]), key=lambda v: (main[v], -topics[main[v], v]))
