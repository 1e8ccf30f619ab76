"""Reference runs are read from folders and compared with our own fits."""

import gzip

import numpy as np
import pytest
from scipy import io

from mmpca import MMPCA
from mmpca.simulate import paper_design
from parity import compare, read, run_folders


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Write a short run of our own in the format of a reference run."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    folder.mkdir()
    data = paper_design(n_samples=60, random_state=0)
    start = np.arange(60) % 6
    model = MMPCA(6, 4, topics=data.topics, start=start, refit_topics=False, max_epochs=1, random_state=0).fit(data.X)
    with gzip.open(folder / "counts.mtx.gz", "wb") as file:
        io.mmwrite(file, data.X)
    for name, labels in (("labels", data.labels), ("start", start), ("final", model.labels_)):
        np.savetxt(folder / f"{name}.csv", labels, fmt="%d")
    np.savetxt(folder / "beta_init.csv", data.topics, delimiter=",")
    numbers = {"n_clusters": 6, "bound": repr(float(model.bound_)), "icl": repr(float(model.icl_))}
    (folder / "result.csv").write_text("name,value\n" + "".join(f"{n},{value}\n" for n, value in numbers.items()))
    return folder.parent


def test_our_own_run_meets_all_requirements(path):
    lines = compare([read(folder) for folder in run_folders(path)])
    assert [line.holds for line in lines if line.required is not None] == [True] * 5


def test_times_are_compared_if_the_run_has_them(path, tmp_path):
    (run,) = run_folders(path)
    timed = read(run)._replace(topic_seconds=50.0, search_seconds=100.0)
    lines = {line.measure: line.values for line in compare([timed])}
    assert lines["R: search from one start, seconds"] == [100.0]
    ratios = [values[0] for measure, values in lines.items() if measure.startswith("time of R / ")]
    assert len(ratios) == 3
    assert all(ratio > 0 for ratio in ratios)
    assert not any("time of R" in line.measure for line in compare([read(run)]))


def test_a_folder_without_runs_raises(tmp_path):
    with pytest.raises(FileNotFoundError):
        run_folders(tmp_path)


def test_an_incomplete_run_raises(path, tmp_path):
    (tmp_path / "run").mkdir()
    with pytest.raises(FileNotFoundError):
        run_folders(tmp_path)
