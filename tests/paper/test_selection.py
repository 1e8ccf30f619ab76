"""How often each criterion chooses each cell."""

from mmpca.paper import make, write_output


def test_the_summary_counts_how_often_each_cell_is_chosen(tmp_path):
    experiment = make("selection", quick=True)
    cells = [(q, k) for k in experiment.n_topics for q in experiment.n_clusters]

    def found(task):
        # icl is right only on the first data set, the other criterion always.
        icl = (6, 4) if task["seed"] == 1000 else (5, 4)
        return {
            "n_clusters": [q for q, _ in cells],
            "n_topics": [k for _, k in cells],
            "icl": [float(cell == icl) for cell in cells],
            "predictive": [float(cell == (6, 4)) for cell in cells],
        }

    table, _ = write_output(experiment, {task: found(task) for task in experiment.tasks()}, tmp_path)
    summary = experiment.summary(table)
    assert summary["balance"] == [1.0, 0.85, 0.7]
    assert summary["data sets"] == [2, 2, 2]
    assert (summary["icl right"], summary["predictive right"]) == ([1, 1, 1], [2, 2, 2])
    assert summary["icl instead"] == ["(5, 4) x 1"] * 3
    assert len(table["icl"]) == 6 * 9


def test_a_task_searches_the_grid():
    experiment = make("selection", quick=True, n_clusters=(2, 3), n_topics=(2,), n_samples=40)
    record = experiment.run(experiment.tasks()[0])
    assert (record["n_clusters"], record["n_topics"]) == ([2, 3], [2, 2])
    assert all(len(record[name]) == 2 for name in ("icl", "predictive"))
