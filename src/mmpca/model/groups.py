r"""Clusters over time and by group: sizes, topic shares and words of each period or group of rows, with intervals.

Sizes are counts of rows, and their shares have Wilson intervals. The share of topic k in a group is
:math:`\sum_i s_{ik} / \sum_i L_i` over its rows, where :math:`s_{ik} = \sum_v x_{iv} \phi_{qvk}` divides the counts of
row i among the topics as its cluster does. It is a ratio of sums over rows, so its standard error is
:math:`\sqrt{n / (n - 1) \sum_i (s_{ik} - p L_i)^2} / \sum_i L_i`; the interval is symmetric in log-odds, which keeps it
between 0 and 1. The words of a cluster in a group are more frequent there than in its other rows, by the measure of
:mod:`mmpca.model.results`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from mmpca.engine.bound import responsibilities
from mmpca.model import explanation, prediction, results

if TYPE_CHECKING:
    from mmpca.counts import Counts
    from mmpca.model.estimator import MMPCA

Array = NDArray[np.float64]

MOST_PERIODS = 24  # if the period is chosen automatically
N_BINS = 10  # of numbers with more distinct values than that
LEAST_Z = 2.0  # of a feature that is more frequent in one group: most features do not change
_DATE = r"(\d{1,2})([./-])(\d{1,2})\2(\d{2}|\d{4})(?:[ T].*)?"  # not year first
LAST_MONTH = 12
FREQUENCIES = ("D", "W", "M", "Q", "Y")  # from fine to coarse


class Groups(NamedTuple):
    """The group of each row, and the names of the groups in their order."""

    codes: NDArray[np.intp]  # -1 for a row without a value, (N,)
    names: list[Any]


def group_values(values: Any, bins: str | int | None = None) -> Groups:
    """Return groups of rows by their values: dates by period, numbers by bins, everything else by value.

    Examples
    --------
    >>> group_values(["2024-01-30", "2024-02-01", "2024-02-28"], "M").names
    ['2024-01', '2024-02']
    >>> group_values(["b", "a", None, "b"]).codes.tolist()
    [1, 0, -1, 1]
    """
    series = series_of(values)
    import pandas as pd

    if (
        isinstance(bins, str)
        or isinstance(series.dtype, pd.DatetimeTZDtype | pd.PeriodDtype)
        or (series.dtype.kind == "M")
    ):
        series = _periods(series, bins, pd)
    elif pd.api.types.is_numeric_dtype(series) and not pd.api.types.is_bool_dtype(series):
        if bins is None and series.nunique() > MOST_PERIODS:
            bins = N_BINS
        if bins is not None:
            series = pd.qcut(series, bins, duplicates="drop", precision=6)
    elif bins is not None:
        raise ValueError("bins requires dates or numbers, but values are neither. Omit bins.")
    codes, found = pd.factorize(series, sort=not isinstance(series.dtype, pd.CategoricalDtype))
    if isinstance(series.dtype, pd.CategoricalDtype):  # in the order of the categories, those without rows left out
        order = np.argsort(pd.Categorical(found, series.cat.categories).codes)
        codes, found = np.append(np.argsort(order), -1)[codes], [found[at] for at in order]
    names = [x if isinstance(x, int | float | np.number) else str(x) for x in found]
    return Groups(np.asarray(codes, dtype=np.intp), [x.item() if isinstance(x, np.generic) else x for x in names])


def series_of(values: Any) -> Any:
    """Return values of any library as a Series of pandas that is indexed by position."""
    try:
        import pandas as pd
    except ImportError:
        raise ImportError('clusters_over needs pandas: pip install "mmpca[tables]"') from None
    values = values.to_pylist() if hasattr(values, "to_pylist") else values
    return pd.Series(values if hasattr(values, "dtype") else list(values)).reset_index(drop=True)


def parsed(texts: Sequence[str]) -> Any:
    """Return texts as numbers or as dates if all of them can be converted; empty texts are missing values.

    Examples
    --------
    >>> parsed(["1", "", "2.5"]).tolist()
    [1.0, nan, 2.5]
    >>> [str(date.date()) for date in parsed(["03.04.2024", "25.12.2024"])]
    ['2024-04-03', '2024-12-25']
    """
    import pandas as pd

    series = pd.Series([text.strip() or None for text in texts], dtype=object)
    for parse in (pd.to_numeric, partial(pd.to_datetime, format="ISO8601")):
        try:
            return parse(series)
        except (ValueError, TypeError):
            continue
    is_date = series.isna() | series.str.fullmatch(_DATE)
    return _dates(series, pd) if is_date.all() else series


def _dates(series: Any, pd: Any) -> Any:
    """Return values as dates; of dates such as 25/12/2024, those that can only be read in one way decide for all.

    Raises
    ------
    ValueError
        They can be read with the day or with the month first, or some of them only in one way and some in the other.
    """
    texts = [value for value in series if isinstance(value, str)]
    found = [parts for text in texts if (parts := re.fullmatch(_DATE, text.strip())) is not None]
    day_first = [parts for parts in found if parts[2] == "." or int(parts[1]) > LAST_MONTH]
    month_first = [parts for parts in found if parts[2] != "." and int(parts[3]) > LAST_MONTH]
    is_open = any(parts[1] != parts[3] for parts in found) and not (day_first or month_first)
    if is_open or (day_first and month_first):
        shown = repr((month_first or found)[0][0])
        both = f" and {day_first[0][0]!r}" if day_first else ""
        raise ValueError(
            f"Dates such as {shown}{both} may have the day or the month first. Write them as 2024-12-25, or, in "
            "Python, pass the result of pandas.to_datetime with a format."
        )
    return pd.to_datetime(series, dayfirst=bool(day_first), format="mixed") if found else pd.to_datetime(series)


def _periods(series: Any, bins: str | int | None, pd: Any) -> Any:
    """Return the periods of dates: those requested, or the finest that are not too many."""
    if isinstance(bins, int):
        raise ValueError(f"bins of dates must be a period such as 'M' or 'Y', but it is {bins}.")
    if not isinstance(series.dtype, pd.PeriodDtype):
        series = _dates(series, pd)
        if series.dt.tz is not None:
            series = series.dt.tz_convert("UTC").dt.tz_localize(None)  # periods have no time zone
        for period in FREQUENCIES if bins is None else (bins,):
            found = series.dt.to_period(period)
            if found.nunique() <= MOST_PERIODS:
                break
        return found
    return series if bins is None else series.dt.asfreq(bins)


def wilson(size: Array, total: Array, level: float) -> tuple[Array, Array]:
    """Return the Wilson interval of shares size / total; from 0 to 1 if the total is 0.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = wilson(np.array([0.0, 5.0]), np.array([10.0, 10.0]), 0.95)
    >>> low.round(2), high.round(2)
    (array([0.  , 0.24]), array([0.28, 0.76]))
    """
    z, n = -ndtri((1 - level) / 2), np.maximum(total, 1e-300)
    share, spread = size / n, np.sqrt(size * (1 - size / n) / n**2 + z**2 / (4 * n**2))
    center, scale = share + z**2 / (2 * n), 1 + z**2 / n
    low = np.where(size > 0, (center - z * spread) / scale, 0.0)  # rounding
    high = np.where(size < n, (center + z * spread) / scale, 1.0)
    return np.where(total > 0, np.clip(low, 0, 1), 0.0), np.where(total > 0, np.clip(high, 0, 1), 1.0)


def ratio_interval(own: Array, totals: Array, level: float) -> tuple[float, float, float]:
    """Return the share sum(own) / sum(totals) over rows, and its interval; own, totals: (n,)."""
    total, n = float(totals.sum()), len(totals)
    if total == 0:
        return 0.0, 0.0, 1.0
    share = float(own.sum()) / total
    if n < 2 or not 0 < share < 1:
        return share, 0.0, 1.0
    error = np.sqrt(n / (n - 1) * ((own - share * totals) ** 2).sum()) / total
    odds, width = np.log(share / (1 - share)), -ndtri((1 - level) / 2) * error / (share * (1 - share))
    low, high = 1 / (1 + np.exp(-(odds - width))), 1 / (1 + np.exp(-(odds + width)))
    return share, float(low), float(high)


def over_columns(
    model: MMPCA, values: Any, X: Any = None, *, bins: str | int | None, n_features: int, level: float
) -> results.Columns:
    """Return the table of :meth:`mmpca.MMPCA.clusters_over`."""
    if not 0 < level < 1:
        raise ValueError(f"level must be a number between 0 and 1, got {level!r}.")
    counts = None if X is None else model._counts(X, reset=False)
    clusters = model.labels_ if counts is None else _clusters(model, counts)
    groups = group_values(values, bins)
    if len(groups.codes) != len(clusters):
        raise ValueError(
            f"values must have one entry for each of the {len(clusters):,} rows, but has {len(groups.codes):,}. "
            "For rows other than the fitted ones, pass X as well."
        )
    n_groups, n_clusters = len(groups.names), len(model.weights_)
    sizes = np.zeros((n_groups, n_clusters))
    known = (groups.codes >= 0) & (clusters >= 0)  # rows without counts are in no cluster
    np.add.at(sizes, (groups.codes[known], clusters[known]), 1.0)
    totals = sizes.sum(axis=1, keepdims=True)
    low, high = wilson(sizes, np.broadcast_to(totals, sizes.shape), level)
    names = results.group_names(model, "cluster")
    features = None if counts is None else _features(model, counts, clusters, groups, n_features)
    shares = sizes / totals
    lines: list[tuple[Any, ...]] = [
        ("cluster", q, names[q], groups.names[g], int(totals[g, 0]), int(sizes[g, q]), float(shares[g, q]),
         float(low[g, q]), float(high[g, q]), [] if features is None else features[q][g])
        for q in range(n_clusters) for g in range(n_groups)
    ]  # fmt: skip
    if counts is not None:
        names, lengths = results.group_names(model, "topic"), counts.row_totals().astype(np.float64)
        expected = _topic_counts(model, counts, clusters)  # (N, K)
        for k in range(expected.shape[1]):
            for g in range(n_groups):
                own = groups.codes == g
                interval = ratio_interval(expected[own, k], lengths[own], level)
                size = float(expected[own, k].sum())
                lines.append(("topic", k, names[k], groups.names[g], int(own.sum()), size, *interval, []))
    columns = ["kind", "number", "name", "group", "group_rows", "size", "share", "lower", "upper", "features"]
    if counts is None:
        columns.remove("features")
    return {name: [line[at] for line in lines] for at, name in enumerate(columns)}


def _clusters(model: MMPCA, counts: Counts) -> NDArray[np.int32]:
    """Return the labels of the fitted rows, or the most probable clusters of others."""
    rows = model.units.convert(counts)
    fitted = explanation.fitted_labels(rows, model)
    if (fitted >= 0).any():
        return fitted
    return prediction.joint_log_likelihood(rows, model.mixture()).argmax(axis=1).astype(np.int32)


def _topic_counts(model: MMPCA, counts: Counts, clusters: NDArray[np.int32]) -> Array:
    """Return the counts of each row divided among the topics as in its cluster, (N, K)."""
    found = np.zeros((counts.n_rows, len(model.components_)))
    present = (model.components_ > 0).sum(axis=0)[:, None] > 0
    for q, gamma in enumerate(model.cluster_topic_params_):
        members = np.flatnonzero(clusters == q)
        phi = np.where(present, responsibilities(model.components_, gamma), 0.0)  # (V, K)
        found[members] = counts.take(members).to_csr() @ phi
    return found


def _features(
    model: MMPCA, counts: Counts, clusters: NDArray[np.int32], groups: Groups, n_features: int
) -> list[list[list[str]]]:
    """Return the features of each cluster that are more frequent in each group than in the others."""
    known, n_groups = results.feature_names(model), len(groups.names)
    found = []
    for q in range(len(model.weights_)):
        members = np.flatnonzero((clusters == q) & (groups.codes >= 0))
        rows, codes = counts.take(members), groups.codes[members]
        own = rows.group_sums(codes, n_groups)  # (G, V)
        seen = rows._replace(data=np.ones_like(rows.data)).group_sums(codes, n_groups)
        all_counts, all_rows = own.sum(axis=0), seen.sum(axis=0)
        lists: list[list[str]] = []
        for g in range(n_groups):
            if not own[g].any() or not (all_counts - own[g]).any():  # nothing to compare
                lists.append([])
                continue
            measures = results.measure(own[g], seen[g], all_counts, all_rows, seen[g] >= 2)
            is_distinctive = (measures.z > LEAST_Z) & measures.can_lead
            order = np.lexsort((-measures.share, -measures.z))
            lists.append([known[v] for v in order[is_distinctive[order]][:n_features]])
        found.append(lists)
    return found
