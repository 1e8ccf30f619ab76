"""Rows on workers give the same results as rows in memory."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from mmpca.backend import LocalRows, column_totals, group_sums, map_rows, row_entries, row_totals
from mmpca.distributed.sources import load
from mmpca.distributed.workers import Workers
from mmpca.model.starts import Start
from mmpca.monitor import Monitor
from mmpca.topics import Budget, fit_lda

SOME = {
    "all": np.arange(300),
    "some": np.array([5, 17, 120, 121, 299]),
    "unordered": np.array([250, 3, 77, 4]),
    "twice": np.array([7, 7, 250, 7]),
}
each_choice = pytest.mark.parametrize("some", SOME.values(), ids=SOME)


@pytest.fixture(scope="module")
def local(rows):
    return LocalRows(rows)


def test_sizes_are_those_of_all_rows(dask_rows, local):
    assert (dask_rows.n_rows, dask_rows.n_features) == (local.n_rows, local.n_features)


@each_choice
@pytest.mark.parametrize("call", [row_totals, row_entries])
def test_results_of_rows_come_in_the_order_of_the_rows(dask_rows, local, some, call):
    np.testing.assert_array_equal(map_rows(dask_rows, call, some), map_rows(local, call, some))


@each_choice
def test_sums_are_those_of_all_blocks(dask_rows, local, some):
    groups = some % 3
    found, expected = (backend.map_reduce(group_sums, some, groups, shared=(3,)) for backend in (dask_rows, local))
    np.testing.assert_array_equal(found, expected)


@each_choice
def test_rows_are_collected_in_the_given_order(dask_rows, X, some):
    np.testing.assert_array_equal(dask_rows.take(some).to_csr().toarray(), X[some].toarray())
    applied = dask_rows.apply(lambda counts, power: counts.to_csr().toarray() ** power, some, 2)
    np.testing.assert_array_equal(applied, X[some].toarray() ** 2)


def test_no_rows_can_be_collected(dask_rows):
    none = dask_rows.take(np.arange(0))
    assert (none.n_rows, none.n_features) == (0, dask_rows.n_features)


def test_as_many_rows_as_a_block_has_are_not_taken_for_the_block(dask_rows, local):
    some = np.concatenate([[0], np.arange(dask_rows.first[1] - 1)])
    np.testing.assert_array_equal(map_rows(dask_rows, row_totals, some), map_rows(local, row_totals, some))


def test_tasks_return_their_results_in_order_and_share_broadcasts(dask_rows, local, X):
    def scaled(counts, first, factor, last):
        return first, counts.to_csr().toarray() * factor, last

    for backend in (dask_rows, local):
        factor = backend.broadcast(3)
        results = backend.map(scaled, [(some, "first", factor, [i]) for i, some in enumerate(SOME.values())])
        for i, (some, (first, values, last)) in enumerate(zip(SOME.values(), results, strict=True)):
            assert (first, last) == ("first", [i])
            np.testing.assert_array_equal(values, 3 * X[some].toarray())


def test_a_broadcast_is_sent_once(dask_rows, monkeypatch):
    sent, send = [], dask_rows.workers.send
    monkeypatch.setattr(dask_rows.workers, "send", lambda value: sent.append(value) or send(value))
    shared = dask_rows.broadcast({"factor": 3})
    for _ in range(3):
        found = map_rows(
            dask_rows,
            lambda block, rows, value, threads: np.full(len(rows), value["factor"]),
            SOME["all"],
            shared=(shared,),
        )
        np.testing.assert_array_equal(found, np.full(300, 3))
    assert sent == [{"factor": 3}]


def test_a_tuple_is_sent_as_one_value(client):
    workers = Workers(client)
    assert workers.gather([workers.submit(len, workers.send((1, 2, 3)))]) == [3]


def test_a_call_takes_one_task_per_worker_however_many_blocks_there_are(X, client, blocks, monkeypatch):
    backend = load(blocks(X, 7), Workers(client)).backend
    backend.map_reduce(column_totals, SOME["all"])  # all of them are there
    submitted, submit = [], backend.workers.submit
    monkeypatch.setattr(
        backend.workers, "submit", lambda call, *arguments: submitted.append(call) or submit(call, *arguments)
    )
    map_rows(backend, row_totals, SOME["all"])
    assert 1 <= len(submitted) <= 2
    submitted.clear()
    backend.take(SOME["all"])
    assert 1 <= len(submitted) <= 2


def test_rows_that_die_with_a_worker_during_a_call_are_restored(X, client, local, tmp_path):
    def deadly(block, rows, path, threads):
        try:
            Path(path).touch(exist_ok=False)
        except FileExistsError:
            return column_totals(block, rows, threads)
        os.kill(os.getpid(), signal.SIGKILL)

    backend = load([X], Workers(client)).backend  # one block: the worker takes all rows with it
    found = backend.map_reduce(deadly, SOME["all"], shared=(str(tmp_path / "dead"),))
    assert (tmp_path / "dead").exists()
    np.testing.assert_array_equal(found, local.map_reduce(column_totals, SOME["all"]))
    client.wait_for_workers(2, timeout=300)


# --- topics and searches ----------------------------------------------------------------------------------------


def test_topics_of_many_rows_are_the_same_on_workers(dask_rows, rows):
    budget = Budget(search_work=4 * 8_000, search_cover=1, final_work=4 * 16_000)
    found, expected = (
        fit_lda(backend, 4, rng=np.random.default_rng(0), budget=budget) for backend in (dask_rows, rows)
    )
    np.testing.assert_array_equal(found.beta, expected.beta)
    assert found._replace(beta=None) == expected._replace(beta=None)
    tiny = budget._replace(search_work=4 * 1_000)  # from groups of rows
    found, expected = (fit_lda(backend, 4, rng=np.random.default_rng(0), budget=tiny) for backend in (dask_rows, rows))
    np.testing.assert_array_equal(found.beta, expected.beta)


def test_starts_on_a_sample_and_the_search_of_all_rows_are_the_same_on_workers(
    dask_rows, local, search_many, assert_same_outcomes
):
    starts = [Start("kmeans", 1), Start("random", 2)]
    expected = search_many(local, starts=starts)
    assert [len(outcome.labels) for outcome in expected] == [150, 150, 300]
    assert_same_outcomes(search_many(dask_rows, starts=starts), expected)


def test_moves_of_all_rows_are_the_same_on_workers(X, client, blocks, local, search_many, assert_same_outcomes):
    expected = search_many(local)
    assert expected[0].history.n_epochs > 2
    for n_blocks in (1, 7):
        backend = load(blocks(X, n_blocks), Workers(client)).backend
        assert_same_outcomes(search_many(backend), expected)


def test_labels_are_checkpointed_after_each_epoch(dask_rows, local, search_many):
    saved, expected = [], []
    for backend, labels in ((dask_rows, saved), (local, expected)):
        monitor = Monitor(checkpoint=lambda found, labels=labels: labels.append(found.copy()))
        (outcome,) = search_many(backend, max_epochs=3, monitor=monitor)
    assert len(saved) == outcome.history.n_epochs == 3
    np.testing.assert_array_equal(saved, expected)


def test_a_worker_killed_between_two_blocks_costs_only_time(
    dask_rows, client, local, search_many, assert_same_outcomes
):
    killed = []

    def kill(progress):
        if not killed and progress.epoch == 1 and progress.n_moves:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    found = search_many(dask_rows, max_epochs=2, monitor=Monitor(kill))
    client.wait_for_workers(2, timeout=300)
    assert killed
    assert killed[0] not in client.run(os.getpid).values()
    assert_same_outcomes(found, search_many(local, max_epochs=2))


def test_clusters_that_have_not_changed_are_not_sent_again(dask_rows, local, search_many, monkeypatch):
    converged = search_many(local)[-1].labels
    sent, send = [], dask_rows.workers.send
    calls, submit = [], dask_rows.workers.submit
    monkeypatch.setattr(dask_rows.workers, "send", lambda value: sent.append(type(value).__name__) or send(value))
    monkeypatch.setattr(
        dask_rows.workers, "submit", lambda task, *arguments: calls.append(arguments[0]) or submit(task, *arguments)
    )
    (outcome,) = search_many(dask_rows, starts=[Start("given", 0, converged)])
    np.testing.assert_array_equal(outcome.labels, converged)
    n_proposals = sum(getattr(call, "__name__", "") == "propose_moves" for call in calls)
    assert 0 < sent.count("Clusters") + sent.count("Tables") < n_proposals / 2
