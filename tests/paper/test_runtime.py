"""Times and the fit of their growth."""

import pytest

from mmpca.paper import make, write_output
from mmpca.paper.runs import FIT, PARTS, SEARCH, START, TOPICS, fit_growth, shortest_time

SIZES = (20, 30, 40, 60, 80)


def test_every_part_is_timed():
    experiment = make("runtime", quick=True, sizes=(20,), repeats=1)
    record = experiment.run(experiment.tasks()[0])
    assert set(record) == set(PARTS)
    assert all(seconds > 0 for seconds in record.values())


def test_the_summary_fits_exponents_and_fixed_times(tmp_path):
    experiment = make("runtime", quick=True, sizes=SIZES, repeats=1, replicates=2)
    records = {}
    for task in experiment.tasks():
        size = task["n_samples"]
        records[task] = dict.fromkeys(PARTS, 0.1) | {
            SEARCH: size**1.5,
            TOPICS: 1.0 - size / 1000,
            START: 0.5 + size ** (1.0 if task["seed"] == 1000 else 1.2) / 20,
        }
    table, _ = write_output(experiment, records, tmp_path)
    summary = experiment.summary(table)
    assert summary["part"] == list(PARTS)
    rows = {part: {name: column[place] for name, column in summary.items()} for place, part in enumerate(PARTS)}
    assert rows[SEARCH]["exponent"] == pytest.approx(1.5)
    assert rows[SEARCH]["exponent of the rest"] == "1.50 (1.50 to 1.50)"
    assert rows[SEARCH]["fixed, s"] == pytest.approx(0.0, abs=1e-6)
    assert rows[TOPICS]["fixed, s"] is rows[TOPICS]["exponent of the rest"] is None  # it does not grow
    assert rows[START]["exponent"] < 1.0
    assert rows[START]["fixed, s"] == pytest.approx(0.5, abs=0.05)
    assert rows[START]["exponent of the rest"].endswith("(1.00 to 1.20)")  # the two seeds grow differently
    assert rows[FIT]["exponent"] == pytest.approx(0.0, abs=1e-9)


def test_a_long_part_is_measured_once():
    def times(*seconds):
        """Return a clock that makes the measurements these seconds long."""
        return iter([t for length in seconds for t in (0.0, length)]).__next__

    assert shortest_time(list, 3, times(5.0)) == 5.0
    assert shortest_time(list, 3, times(0.7, 0.5, 0.6)) == 0.5


def test_a_growth_is_fitted_only_where_it_can_be_determined():
    sizes = [50, 100, 200, 400, 800]
    growth = fit_growth(sizes, [0.1, 0.2, 0.4, 0.8, 1.6])
    assert growth.fixed == pytest.approx(0.0, abs=1e-9)
    assert growth.exponent == pytest.approx(1.0, abs=0.005)
    assert fit_growth(sizes[:4], [0.1, 0.2, 0.4, 0.8]) is None
    assert fit_growth(sizes, [0.5, 0.5, 0.4, 0.4, 0.4]) is None
