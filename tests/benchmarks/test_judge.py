"""Requirements are judged from results as they are worded: means, worst cells, standard errors."""

import numpy as np
import pytest

from judge import compare, promise_rows, real_rows, reference_rows, simulated_rows, values
from real import Real, Referenced
from simulated import Promise, Simulated, promise_tasks, simulated_tasks


def grid(ari, *, above_truth=(1.0,), n_seeds=2, noises=(0.0, 0.4)):
    """Return results of a grid; `ari` maps methods to what they have everywhere, or a function of the task."""
    results = {}
    for task in simulated_tasks(n_seeds, balances=(1.0, 0.7), noises=noises):
        value = ari.get(task.method, 0.5)
        results[task] = {
            "ari": value(task) if callable(value) else value,
            "above_truth": above_truth[len(results) // 5 % len(above_truth)],
        }
    return results


def row(rows, text):
    """Return the one row whose measure holds a text."""
    (found,) = [each for each in rows if text in each.measure]
    return found


def test_every_cell_seed_and_method_has_a_file_of_its_own():
    tasks = simulated_tasks(5)
    assert len({task.key for task in tasks}) == len(tasks) == 3 * 5 * 5 * 5
    assert len({task.key for task in promise_tasks(3)}) == 6


def test_all_methods_of_a_data_set_see_the_same_rows():
    first, second = (Simulated(0.7, 0.4, 3, method, 30).draw().X for method in ("default", "cvem"))
    assert (first != second).nnz == 0


def test_values_are_those_of_the_cells_asked_for():
    results = grid({"default": lambda task: task.noise + task.seed})
    np.testing.assert_allclose(values(results, "default", noise=0.4, balance=1.0), [0.4, 1.4])


def test_a_comparison_pairs_the_data_sets():
    results = grid({"default": lambda task: 0.5 + task.seed, "published": lambda task: 0.4 + task.seed}, n_seeds=3)
    gain = compare(results, "default", "published", noise=0.0, balance=1.0)
    assert gain.mean == pytest.approx(0.1)
    assert gain.error == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("ours", "holds"), [(0.66, True), (0.64, False)])
def test_the_mean_over_the_grid_has_to_exceed_the_published_recipe(ours, holds):
    rows = simulated_rows(grid({"default": ours, "published": 0.6}))
    assert row(rows, "default - published").holds is holds


@pytest.mark.parametrize(("losses", "holds"), [((0.0, 0.1), True), ((0.1, 0.1), False)])
def test_a_cell_may_be_lower_by_its_standard_error_only(losses, holds):
    def ours(task):
        return 0.9 - (losses[task.seed] + 0.3 if (task.balance, task.noise) == (0.7, 0.4) else 0.0)

    rows = simulated_rows(grid({"default": ours, "published": lambda t: 0.6 if t.noise else 0.5}))
    found = row(rows, "worst cell")
    assert found.holds is holds
    assert "lambda 0.7, epsilon 0.4" in found.note


def test_the_share_of_the_ceiling_is_judged_by_noise():
    rows = simulated_rows(grid({"default": lambda task: 0.95 - task.noise / 4, "ceiling": 0.95}))
    assert row(rows, "epsilon 0:").holds
    assert row(rows, "epsilon 0.4").value == pytest.approx(0.85 / 0.95)
    assert row(rows, "epsilon 0.4").holds


def test_a_noise_without_requirement_is_reported_only():
    rows = simulated_rows(grid({}, noises=(0.6,)))
    assert row(rows, "epsilon 0.6").holds is None


@pytest.mark.parametrize(("above", "holds"), [((0.0, 3.0, -1e-9, 5.0), True), ((1.0, -1.0), False)])
def test_bounds_at_or_above_that_of_the_truth_are_counted(above, holds):
    assert row(simulated_rows(grid({}, above_truth=above)), "true labels").holds is holds


def test_one_data_set_whose_fits_disagree_breaks_a_promise():
    results = {task: {"ari": 1.0} for task in promise_tasks(3)}
    assert all(each.holds for each in promise_rows(results))
    results[Promise("rows permuted", 1)] = {"ari": 0.9}
    results[Promise("two threads", 2)] = {"ari": 0.0}
    assert not any(each.holds for each in promise_rows(results))


def test_real_data_are_judged_where_something_is_required():
    results = {
        Real("any/oaks", 2, "sqrt"): {"ari": 0.95, "overdispersion": 2.0},
        Real("any/oaks", 2, "default"): {"ari": 0.05, "overdispersion": 140.0},
        Real("any/acl_venues", 1, "default"): {"ari": 0.4, "overdispersion": 5.0},
        Real("any/another", 1, "default"): {"ari": 0.4, "overdispersion": 5.0},
    }
    rows = real_rows(results)
    assert [each.holds for each in rows] == [True, True, False]


def test_the_reference_runs_are_judged_by_their_mean_and_their_lowest():
    results = {Referenced(f"any/{name}"): {"ari": 0.8 + 0.1 * n, "ari_of_run": 0.7, "above_run": float(n)}
               for n, name in enumerate(("first", "second"))}  # fmt: skip
    mean, lowest = reference_rows(results)
    assert mean.value == pytest.approx(0.85)
    assert not mean.holds
    assert lowest.holds
    assert lowest.note == "first"
