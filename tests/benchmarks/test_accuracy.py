"""Requirements on accuracy are checked on means, worst cells and standard errors; labeled data come from folders."""

import gzip

import numpy as np
import pytest
from scipy import io, sparse

from accuracy import (
    compare,
    gain_over_published,
    invariance_rows,
    labeled_rows,
    reference_rows,
    share_above_truth,
    share_of_ceiling,
    values,
    worst_cell,
)
from accuracy_tasks import (
    InvarianceTask,
    LabeledTask,
    ReferenceTask,
    SimulatedTask,
    data_folders,
    invariance_tasks,
    labeled_tasks,
    read_labeled,
    simulated_tasks,
)


def grid(ari, *, above_truth=(1.0,), n_seeds=2, noises=(0.0, 0.4)):
    """Return results of a grid; `ari` maps methods to a constant or to a function of the task."""
    results = {}
    for task in simulated_tasks(n_seeds, balances=(1.0, 0.7), noises=noises):
        value = ari.get(task.method, 0.5)
        results[task] = {
            "ari": value(task) if callable(value) else value,
            "above_truth": above_truth[len(results) // 5 % len(above_truth)],
        }
    return results


def test_every_task_has_its_own_key():
    tasks = simulated_tasks(5)
    assert len({task.key for task in tasks}) == len(tasks) == 3 * 5 * 5 * 5
    assert len({task.key for task in invariance_tasks(3)}) == 6


def test_all_methods_of_a_data_set_see_the_same_rows():
    first, second = (SimulatedTask(0.7, 0.4, 3, method, 30).draw().X for method in ("default", "cvem"))
    assert (first != second).nnz == 0


def test_a_method_and_the_ceiling_are_measured_on_simulated_rows():
    ours, ceiling = (SimulatedTask(1.0, 0.0, 0, method, 60).run() for method in ("default", "ceiling"))
    assert 0 < ours["ari"] <= 1
    assert ours["above_truth"] > -1e3
    assert ceiling["ari"] > 0.9


def test_values_are_those_of_the_chosen_cells():
    results = grid({"default": lambda task: task.noise + task.seed})
    np.testing.assert_allclose(values(results, "default", noise=0.4, balance=1.0), [0.4, 1.4])


def test_a_comparison_pairs_the_data_sets():
    results = grid({"default": lambda task: 0.5 + task.seed, "published": lambda task: 0.4 + task.seed}, n_seeds=3)
    assert compare(results, "default", "published", noise=0.0, balance=1.0) == pytest.approx((0.1, 0.0))


@pytest.mark.parametrize(("ours", "holds"), [(0.66, True), (0.64, False)])
def test_the_mean_over_the_grid_must_exceed_the_published_recipe(ours, holds):
    assert gain_over_published(grid({"default": ours, "published": 0.6})).holds is holds


@pytest.mark.parametrize(("losses", "holds"), [((0.0, 0.1), True), ((0.1, 0.1), False)])
def test_a_cell_may_be_worse_only_by_its_standard_error(losses, holds):
    def ours(task):
        return 0.9 - (losses[task.seed] + 0.3 if (task.balance, task.noise) == (0.7, 0.4) else 0.0)

    assert worst_cell(grid({"default": ours, "published": lambda t: 0.6 if t.noise else 0.5})).holds is holds


def test_the_share_of_the_ceiling_is_checked_by_noise():
    results = grid({"default": lambda task: 0.95 - task.noise / 4, "ceiling": 0.95})
    assert share_of_ceiling(results, 0.0).holds
    assert share_of_ceiling(results, 0.4).value == pytest.approx(0.85 / 0.95)
    assert share_of_ceiling(results, 0.4).holds


def test_a_noise_without_requirement_is_only_reported():
    assert share_of_ceiling(grid({}, noises=(0.6,)), 0.6).holds is None


@pytest.mark.parametrize(("above", "holds"), [((0.0, 3.0, -1e-9, 5.0), True), ((1.0, -1.0), False)])
def test_bounds_at_or_above_the_truth_are_counted(above, holds):
    assert share_above_truth(grid({}, above_truth=above)).holds is holds


def test_one_pair_of_different_fits_breaks_an_invariance():
    results = {task: {"ari": 1.0} for task in invariance_tasks(3)}
    assert all(row.holds for row in invariance_rows(results))
    results[InvarianceTask("rows permuted", 1)] = {"ari": 0.9}
    results[InvarianceTask("two threads", 2)] = {"ari": 0.0}
    assert not any(row.holds for row in invariance_rows(results))


def test_only_labeled_data_with_requirements_are_checked():
    results = {
        LabeledTask("any/oaks", 2, "sqrt"): {"ari": 0.95, "overdispersion": 2.0},
        LabeledTask("any/oaks", 2, "default"): {"ari": 0.05, "overdispersion": 140.0},
        LabeledTask("any/acl_venues", 1, "default"): {"ari": 0.4, "overdispersion": 5.0},
        LabeledTask("any/another", 1, "default"): {"ari": 0.4, "overdispersion": 5.0},
    }
    assert [row.holds for row in labeled_rows(results)] == [True, True, False]


def test_reference_runs_are_checked_by_their_mean_and_their_lowest_bound():
    results = {
        ReferenceTask(f"any/{name}"): {"ari": 0.8 + 0.1 * n, "ari_of_run": 0.7, "above_run": float(n)}
        for n, name in enumerate(("first", "second"))
    }
    mean, lowest = reference_rows(results)
    assert mean.value == pytest.approx(0.85)
    assert not mean.holds
    assert lowest.holds
    assert lowest.note == "first"


# --- labeled data -----------------------------------------------------------------------------------------------


def write(folder, X, names):
    folder.mkdir()
    with gzip.open(folder / "counts.mtx.gz", "wb") as file:
        io.mmwrite(file, sparse.coo_array(X))
    (folder / "labels.csv").write_text("label\n" + "".join(f'"{name}"\n' for name in names))


@pytest.fixture
def path(tmp_path):
    write(tmp_path / "small", np.array([[1, 2, 0], [0, 0, 0], [3, 0, 1]]), ["b, or c", "a", "a"])
    write(tmp_path / "wide", np.ones((3, 6), dtype=int), ["x", "y", "z"])
    (tmp_path / "notes").mkdir()
    return tmp_path


def test_empty_rows_are_dropped_with_their_class(path):
    X, classes = read_labeled(path / "small")
    np.testing.assert_array_equal(X.toarray(), [[1, 2, 0], [3, 0, 1]])
    np.testing.assert_array_equal(classes, [1, 0])


def test_twice_as_many_topics_as_clusters_need_enough_features(path):
    tasks = labeled_tasks(path)
    assert {(task.name, task.factor) for task in tasks} == {("small", 1), ("wide", 1), ("wide", 2)}
    assert len({task.key for task in tasks}) == len(tasks)


def test_large_data_sets_can_be_left_out(path):
    assert {task.name for task in labeled_tasks(path, max_rows=2)} == {"small"}


def test_a_folder_without_data_sets_raises(tmp_path):
    with pytest.raises(FileNotFoundError):
        data_folders(tmp_path)
