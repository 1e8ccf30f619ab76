"""Clusters over time and by group."""

import numpy as np
import pandas as pd
import pytest

from mmpca import MMPCA
from mmpca.model.groups import group_values, parsed, ratio_interval, wilson
from mmpca.simulate import paper_design


@pytest.fixture(scope="module")
def data():
    return paper_design(n_samples=300, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return MMPCA(6, 4, topics="lda", n_init=2, random_state=0).fit(data.X)


def test_sizes_and_shares_add_up_within_each_group(model, data):
    groups = np.random.default_rng(0).choice(["north", "south", "west"], 300)
    table = model.clusters_over(groups, data.X)
    of_clusters = table[table["kind"] == "cluster"]
    expected = pd.crosstab(model.labels_, groups)
    for q, name, size in of_clusters[["number", "group", "size"]].itertuples(index=False):
        assert size == expected.loc[q, name]
    for kind in ("cluster", "topic"):
        shares = table[table["kind"] == kind].groupby("group")["share"].sum()
        np.testing.assert_allclose(shares, 1.0, rtol=1e-9)
    assert ((table["lower"] <= table["share"]) & (table["share"] <= table["upper"])).all()
    totals = table[table["kind"] == "topic"].groupby("group")["size"].sum()
    np.testing.assert_allclose(totals, pd.Series(data.X.sum(axis=1)).groupby(groups).sum(), rtol=1e-9)


def test_words_that_a_cluster_uses_in_one_period_only_are_listed_there(model, data):
    X, word = data.X.toarray(), 5
    year = np.where(np.arange(300) < 150, 2020, 2021)
    q = int(model.labels_[0])
    X[(model.labels_ == q) & (year == 2021), word] += 15
    fitted = MMPCA(6, 4, start=model.labels_, max_epochs=0, topics="lda", random_state=0).fit(X)
    table = fitted.clusters_over(year, X)
    own = table[(table["kind"] == "cluster") & (table["number"] == q)].set_index("group")["features"]
    assert f"feature {word}" in own[2021]
    assert f"feature {word}" not in own[2020]


def test_intervals_contain_the_true_share_about_as_often_as_they_say():
    rng, hits, misses = np.random.default_rng(0), 0, 0
    for _ in range(400):
        size = np.array([float(rng.binomial(40, 0.15))])
        low, high = wilson(size, np.array([40.0]), 0.9)
        hits += bool(low[0] <= 0.15 <= high[0])
        totals = rng.poisson(50, 60) + 1.0
        own = rng.binomial(totals.astype(int), rng.beta(2, 6, 60))
        _, lower, upper = ratio_interval(own, totals, 0.9)
        misses += not lower <= 0.25 <= upper
    assert 0.85 < hits / 400 < 0.96
    assert 0.05 < misses / 400 < 0.15


def test_dates_are_put_into_periods_and_missing_ones_left_out(model):
    dates = pd.Series(pd.date_range("2024-01-01", periods=300, freq="D"))
    dates[3] = pd.NaT
    table = model.clusters_over(dates)
    assert table["group"].unique().tolist() == [f"2024-{month:02}" for month in range(1, 11)]
    assert table.groupby("group")["size"].sum().sum() == 299
    assert model.clusters_over(dates.astype(str).replace("NaT", None), bins="Y")["group"].unique().tolist() == ["2024"]


def test_numbers_are_put_into_bins_of_about_equal_size(model):
    table = model.clusters_over(np.random.default_rng(0).normal(size=300))
    assert table.groupby("group")["group_rows"].first().tolist() == [30] * 10


def test_categories_keep_their_order():
    values = pd.Categorical(["low", "high", "low"], categories=["high", "middle", "low"])
    groups = group_values(values)
    assert groups.names == ["high", "low"]
    assert groups.codes.tolist() == [1, 0, 1]


def test_texts_are_parsed_as_numbers_or_dates_if_all_are():
    assert parsed(["3", "4"]).tolist() == [3, 4]
    assert parsed(["2024-01-01", ""]).dtype.kind == "M"
    assert parsed(["3", "north"]).tolist() == ["3", "north"]


def test_polars_tables_have_the_same_columns(model, data):
    groups = ["a", "b"] * 150
    ours, theirs = (model.clusters_over(groups, data.X, backend=backend) for backend in ("pandas", "polars"))
    assert list(ours.columns) == list(theirs.columns)
    assert ours["share"].tolist() == theirs["share"].to_list()


@pytest.mark.parametrize(
    ("values", "options"), [(range(299), {}), (["a"] * 300, {"bins": 3}), (range(300), {"level": 1})]
)
def test_values_that_do_not_fit_are_an_error(model, values, options):
    with pytest.raises(ValueError, match=r"values|bins|level"):
        model.clusters_over(values, **options)


@pytest.mark.parametrize("texts", [["03.04.2024", "05.06.2024"], ["03/04/2024", "25/06/2024"], ["3-4-24", "25-6-24"]])
def test_european_dates_have_the_day_first(texts):
    for values in (parsed(texts), texts):
        assert group_values(values, "M").names == ["2024-04", "2024-06"]


def test_american_dates_have_the_month_first():
    assert group_values(parsed(["03/04/2024", "06/25/2024"]), "M").names == ["2024-03", "2024-06"]


@pytest.mark.parametrize("texts", [["03/04/2024", "05/06/2024"], ["25/04/2024", "06/25/2024"]])
def test_dates_that_can_be_read_in_two_ways_are_an_error(texts):
    with pytest.raises(ValueError, match="2024"):
        parsed(texts)
    with pytest.raises(ValueError, match="2024"):
        group_values(texts, "M")
