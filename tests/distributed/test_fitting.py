"""A fit on parts is the fit on all rows."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from mmpca import MMPCA, engine
from mmpca.counts import as_counts
from mmpca.distributed import fit
from mmpca.distributed.crews import Cluster, Threads
from mmpca.distributed.sources import load
from mmpca.engine import loop, sweeps
from mmpca.engine.state import Clusters
from mmpca.errors import CountsError, StoreError
from mmpca.io import CountTable, write_counts


@pytest.mark.parametrize("n_parts", [1, 3, 7])
def test_few_rows_in_parts_are_fitted_as_at_hand(X, n_parts, blocks, options, at_hand, assert_same):
    assert_same(fit(MMPCA(**options), blocks(X, n_parts)), at_hand)


@pytest.mark.usefixtures("as_if_large")
@pytest.mark.parametrize("n_parts", [3, 7])
def test_many_rows_in_parts_are_fitted_as_at_hand(X, n_parts, blocks, options, assert_same):
    model = MMPCA(**options).fit(X)
    assert [start.kind for start in model.starts_] == ["kmeans", "random", "sample"]
    assert_same(fit(MMPCA(**options), blocks(X, n_parts)), model)
    assert_same(MMPCA(**options, n_jobs=2).fit(X), model)
    assert (np.diff(model.bound_history_) >= 0).all()


def test_blocks_that_grow_with_the_rows_are_the_same_in_parts_and_pieces(X, moving, blocks, assert_same, monkeypatch):
    monkeypatch.setattr(loop, "LARGE_BLOCK", 8)
    monkeypatch.setattr(loop, "MOST_BLOCKS", 4)
    model = MMPCA(**moving).fit(X)
    assert loop.block_size(X.shape[0], "greedy") == 32
    monkeypatch.setattr(sweeps, "ROWS_AT_ONCE", 5)
    assert_same(MMPCA(**moving, n_jobs=2).fit(X), model)
    assert_same(fit(MMPCA(**moving), blocks(X, 3)), model)


@pytest.mark.usefixtures("as_if_large")
def test_an_epoch_is_repaired_in_parts_as_at_hand(X, data, blocks, options, at_hand, assert_same, monkeypatch):
    counts, repaired, visit, repair = as_counts(X), [], sweeps.GreedySweep.visit, loop._repair

    def mislead_first(sweep, block, min_gain, caution):
        sweep.n_seen = getattr(sweep, "n_seen", 0) + len(block)
        if len(sweep.state.labels) < 300 or sweep.n_seen > 300:
            return visit(sweep, block, min_gain, caution)
        state = sweep.state._replace(rows=counts)
        for i in block[block % 5 == 0]:
            engine.move(state, i, (state.labels[i] + 1) % 6)
        return int((block % 5 == 0).sum())

    def watched(*arguments):
        repaired.append(repair(*arguments))
        return repaired[-1]

    monkeypatch.setattr(sweeps.GreedySweep, "visit", mislead_first)
    monkeypatch.setattr(loop, "_repair", watched)
    model = MMPCA(**options | {"topics": data.topics, "start": at_hand.labels_})
    assert_same(fit(clone(model), blocks(X, 3)), model.fit(X))
    assert len(repaired) >= 2


@pytest.mark.usefixtures("as_if_large")
@pytest.mark.parametrize("where", ["threads", "cluster"])
def test_stages_are_told_wherever_the_rows_are(X, where, blocks, options, assert_same, request):
    told, at_hand = [], []
    client = None if where == "threads" else request.getfixturevalue("client")
    model = fit(MMPCA(**options), blocks(X, 3), client, on_stage=told.append)
    assert_same(model, MMPCA(**options).fit(X, on_stage=at_hand.append))
    assert list(dict.fromkeys(now.name for now in told)) == list(dict.fromkeys(now.name for now in at_hand))
    if where == "threads":  # what workers of a cluster do is told when they have done it
        assert [now.text for now in told if now.name == "starts"] == [
            now.text for now in at_hand if now.name == "starts"
        ]
    shares = [stage.share for stage in told]
    assert shares == sorted(shares)
    assert told[-1].name == "done"


@pytest.mark.usefixtures("as_if_large")
@pytest.mark.parametrize("n_parts", [1, 3, 7])
def test_many_rows_in_parts_move_as_at_hand(X, n_parts, blocks, moving, assert_same):
    model = MMPCA(**moving).fit(X)
    assert model.n_epochs_ > 2
    assert_same(fit(MMPCA(**moving), blocks(X, n_parts)), model)


@pytest.mark.usefixtures("as_if_large")
def test_processes_find_the_same(X, client, blocks, on_cluster, options, assert_same):
    assert_same(fit(MMPCA(**options), blocks(X, 7), client), on_cluster)


@pytest.mark.parametrize("workers", ["client", "threaded_client"], ids=["two workers", "one worker of two threads"])
def test_workers_fit_many_rows_as_at_hand(X, workers, blocks, options, assert_same, workers_as_if_large, request):
    client = request.getfixturevalue(workers)
    with workers_as_if_large(client):
        model = fit(MMPCA(**options), blocks(X, 7), client)
    assert_same(model, MMPCA(**options).fit(X))


def test_a_dask_array_and_delayed_blocks_are_taken(X, client, blocks, options, at_hand, assert_same):
    import dask
    import dask.array as da

    delayed = [dask.delayed(block) for block in blocks(X, 3)]
    assert_same(fit(MMPCA(**options), delayed, client), at_hand)
    array = da.from_array(X.toarray(), chunks=(100, -1)).map_blocks(sparse.csr_matrix)
    assert_same(fit(MMPCA(**options), array), at_hand)


def test_files_are_read_by_the_workers(X, client, tmp_path, blocks, options, at_hand, assert_same):
    names = [f"word{v}" for v in range(X.shape[1])]
    paths = []
    for number, block in enumerate(blocks(X, 3)):
        paths.append(tmp_path / f"part{number}.npz")
        write_counts(paths[-1], CountTable(block, None, names, []))
    model = fit(MMPCA(**options), paths, client)
    assert_same(model, at_hand)
    assert model.feature_names_in_.tolist() == names


# --- checkpoints --------------------------------------------------------------------------------------------------


def test_a_checkpoint_of_other_data_or_parameters_is_refused(X, tmp_path, blocks, options):
    path = tmp_path / "checkpoint.npz"
    fit(MMPCA(**options), blocks(X, 2), checkpoint=path)
    with pytest.raises(StoreError, match="belongs to another fit: its n_topics is 4, here it is 3"):
        fit(MMPCA(**options | {"n_topics": 3}), blocks(X, 2), checkpoint=path)
    for other in (X * 2, X[::-1]):
        with pytest.raises(StoreError, match="belongs to another fit: its rows are others, or in another order"):
            fit(MMPCA(**options), blocks(other, 2), checkpoint=path)
    path.write_bytes(b"cut short")
    with pytest.raises(StoreError, match="cannot be read"):
        fit(MMPCA(**options), blocks(X, 2), checkpoint=path)


@pytest.mark.usefixtures("as_if_large")
@pytest.mark.parametrize("where", ["threads", "cluster"])
def test_a_checkpoint_is_known_however_the_rows_are_divided(X, where, tmp_path, blocks, moving, request):
    client = None if where == "threads" else request.getfixturevalue("client")
    path, model = tmp_path / "checkpoint.npz", MMPCA(**moving | {"max_epochs": 1})
    model.fit(X, checkpoint=path)
    for n_parts in (1, 5):
        again = fit(MMPCA(**moving | {"max_epochs": 0}), blocks(X, n_parts), client, checkpoint=path)
        assert again.starts_[0].kind == "checkpoint"
        np.testing.assert_array_equal(again.labels_, model.labels_)


# --- what it refuses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda X: [], ValueError, "at least one block of rows, but the list is empty"),
        (lambda X: X, TypeError, "X must be a dask array of row blocks"),
        (lambda X: [X, X[:, :900]], CountsError, "block 0 has [0-9]+ and block 1 has 900"),
        (lambda X: [X, -X], CountsError, "block 1 of X"),
        (lambda X: [X[:0]], CountsError, "all of its blocks are empty"),
        (lambda X: [X[:5]], ValueError, "n_clusters=6 clusters need as many rows, but n_samples = 5"),
    ],
)
def test_bad_data_are_refused(X, make, error, message, options):
    with pytest.raises(error, match=message):
        fit(MMPCA(**options), make(X))


def test_columns_in_blocks_are_refused(X, options):
    import dask.array as da

    with pytest.raises(ValueError, match="divided by rows alone, but it has 2 blocks of columns"):
        fit(MMPCA(**options), da.from_array(X.toarray(), chunks=(100, X.shape[1] // 2 + 1)))


def test_another_algorithm_is_refused(X, blocks, options):
    with pytest.raises(ValueError, match="algorithm must be 'greedy' for rows in parts, but it is 'vbem'"):
        fit(MMPCA(**options, algorithm="vbem"), blocks(X, 2))


def test_what_is_no_model_is_refused(X):
    with pytest.raises(TypeError, match=r"must be an MMPCA such as MMPCA\(8, 5\), but it is the class MMPCA"):
        fit(MMPCA, [X])


def test_empty_blocks_are_passed_over(X):
    with ThreadPoolExecutor(1) as pool:
        loaded = load([X[:10], X[:0], X[10:]], Threads(pool, 1))
    assert len(loaded.parts.futures) == 2
    assert loaded.parts.n_rows == 300


def test_a_cluster_sends_a_tuple_as_one_value(client):
    crew = Cluster(client)
    assert crew.gather([crew.submit(len, crew.send((1, 2, 3)))]) == [3]
    assert crew.gather([crew.send(as_counts([[1, 2]]))])[0].n_features == 2


@pytest.mark.usefixtures("as_if_large")
def test_clusters_that_have_not_changed_are_not_sent_again(X, options, data, blocks, monkeypatch):
    asked, sent = [], []
    submit, send = Threads.submit, Threads.send
    monkeypatch.setattr(Threads, "submit", lambda crew, *call: asked.append(call[1]) or submit(crew, *call))
    monkeypatch.setattr(Threads, "send", lambda crew, value: sent.append(type(value)) or send(crew, value))
    converged = MMPCA(**options | {"topics": data.topics}).fit(X)
    model = MMPCA(**options | {"topics": data.topics, "start": converged.labels_})
    fit(model, blocks(X, 1))
    np.testing.assert_array_equal(model.labels_, converged.labels_)
    assert 0 < sent.count(Clusters) < asked.count(sweeps.propose_rows) / 2
