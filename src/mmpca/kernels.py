"""Compiled functions of the search, in one file; those of the topics are in :mod:`mmpca.topics.kernels`.

They share a file because numba's disk cache does not notice an edited callee in another file. Each names its
counterpart in plain NumPy in :mod:`mmpca.engine.bound` (``bound.name``), which a test compares it with; none checks its
input.
``state`` is a :class:`mmpca.engine.state.State`; the symbols are explained in ``docs/notation.md``. Kernels use loops,
not slice assignments, which take seconds to compile because they can raise.

Set ``MMPCA_CACHE=0`` to compile in every process, ``NUMBA_DISABLE_JIT=1`` to run everything as plain Python.
"""

import functools
import math
import os

import numba
import numpy as np

# `fastmath` is always explicit: numba lets a function without it inherit that of the kernel that happens to compile it
# first, and the last bits of a sum would then depend on the order of compilation.
_jit = functools.partial(
    numba.njit,
    nogil=True,
    no_cfunc_wrapper=True,
    error_model="numpy",
    cache=os.environ.get("MMPCA_CACHE", "1") != "0",
    fastmath=False,
)
# The compiler may reorder sums to use vector registers. Results stay the same from run to run, and NaN and infinity
# keep their meaning, which they would lose under full fastmath.
_jit_sums = functools.partial(_jit, fastmath={"reassoc", "contract"})

# Functions called by kernels alone need no Python wrapper, which takes longer to compile than most of them, and no
# place in the disk cache: they are compiled into their kernels.
_inner = functools.partial(_jit, no_cpython_wrapper=True, cache=False)
# Large functions called once in a kernel become part of it before anything is compiled. Otherwise LLVM would optimize
# them once alone and once more with the kernel. They take `fastmath` from there, so it must have none either.
_once = functools.partial(_inner, inline="always")
_inner_sums = functools.partial(_jit_sums, no_cpython_wrapper=True, cache=False)

TILE = 512  # features per tile, so that a pass over topics x features stays in cache
VE_DEFICIT = 1e-11  # the VE-step stops when the bound can gain at most this many nats
CLEARLY = 4.0  # how many times its estimated deficit a VE-step may lack when it stops early
# In place of rows: the cluster without any row added or taken away. The second also updates its tables.
ITSELF, ITS_TABLES = np.array([-1]), np.array([-2])
VE_MAX_ITER = 50
VE_MAX_GUARDED = 1000  # further iterations, with the bound checked at every step
LONGEST_STEP = 10.0  # of a log weight in one iteration
LONGEST_STRETCH = 1e6  # of a fixed-point step, where these are slow and the bound is checked
LEAST_WEIGHT = 1e-300  # exp(eta) of a topic that a cluster does not use: its logarithm must stay finite
# Error bounds of an expansion: shares of its second-order terms that grow with the change (see `expansion`).
ERROR_GROWTH = 3.0
FROZEN_ERROR = 0.01
FAR_SIDE = 0.3
LARGE_CHANGE = 0.5  # of the counts of a topic in a cluster, beyond which Newton steps lead astray
ROW_STEPS = 8  # of the fixed point over the features of a row
# Topics up to which U_qv is exact; beyond, an upper bound takes time proportional to their number, not its square.
EXACT_SPREAD_TOPICS = 32
# The fixed point over the topic shares of a row is slow where a topic has a small prior: steps become short long before
# the bound has converged, and by different amounts in different clusters.
SHARE_STEPS = 2000
SHARE_TOL = 1e-4  # counts of a topic by which its last step may change
NEGLIGIBLE = 1e-12  # probability of a feature in a topic, relative to the topic where it is most probable
SECOND_ORDER_SHARE = 0.05  # of a cluster's counts moved before its second-order quantities are recomputed


# --- special functions ------------------------------------------------------------------------------------------


@_jit_sums()
def digamma(x):
    """Return the logarithmic derivative of the gamma function, x > 0."""
    shift = 0.0
    while x < 10.0:
        shift -= 1.0 / x
        x += 1.0
    r = 1.0 / (x * x)
    series = r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r * (1 / 132 - r * 691 / 32760)))))
    return shift + math.log(x) - 0.5 / x - series


@_jit()
def trigamma(x):
    """Return the derivative of digamma, x > 0."""
    shift = 0.0
    while x < 10.0:
        shift += 1.0 / (x * x)
        x += 1.0
    r = 1.0 / (x * x)
    series = 1 / 6 - r * (1 / 30 - r * (1 / 42 - r * (1 / 30 - r * (5 / 66 - r * (691 / 2730 - r * 7 / 6)))))
    return shift + 1.0 / x + 0.5 * r + r * series / x


@_inner()
def xlogx(x):
    """Return x log x, with 0 log 0 = 0."""
    return x * math.log(x) if x > 0 else 0.0


@_inner()
def fill(x, value):
    """Set every entry of a vector, in place (a slice assignment can raise, so it takes seconds to compile)."""
    for j in range(x.size):
        x[j] = value


@_inner()
def copy_into(x, source):
    """Copy a vector, in place."""
    for j in range(x.size):
        x[j] = source[j]


@_inner()
def add_into(x, source, factor):
    """Add a multiple of a vector to another, in place."""
    for j in range(x.size):
        x[j] += factor * source[j]


# --- one cluster: the VE-step and what follows from it ----------------------------------------------------------


@_inner_sums()
def topic_weights(gamma, weight):
    """Write exp(eta) into `weight` (K,), eta = `bound.expected_log_theta`."""
    total = 0.0
    for k in range(gamma.size):
        total += gamma[k]
    base = digamma(total)
    for k in range(gamma.size):
        weight[k] = max(math.exp(digamma(gamma[k]) - base), LEAST_WEIGHT)


@_inner_sums()
def mix(beta, weight, mixture):
    """Write p_v = sum_k beta_kv weight_k into `mixture` (V,); equals `bound.mixture`."""
    fill(mixture, 0.0)
    for k in range(weight.size):
        w = weight[k]
        for v in range(mixture.size):
            mixture[v] += w * beta[k, v]


@_inner_sums()
def topic_counts(m, beta, weight, mixture, s):
    """Write p_v = sum_k beta_kv weight_k into `mixture` (V,) and s_k = sum_v m_v phi_vk into `s` (K,).

    Equals `bound.mixture` and `bound.topic_counts`.
    """
    n_topics, n_features = beta.shape
    ratio = np.empty(TILE)
    fill(s, 0.0)
    for start in range(0, n_features, TILE):
        stop = min(start + TILE, n_features)
        x = m[start:stop]
        p = mixture[start:stop]
        fill(p, 0.0)
        for k in range(n_topics):
            add_into(p, beta[k, start:stop], weight[k])
        for v in range(x.size):
            ratio[v] = x[v] / p[v] if x[v] > 0.0 else 0.0
        for k in range(n_topics):
            topic = beta[k, start:stop]
            total = 0.0
            for v in range(x.size):
                total += topic[v] * ratio[v]
            s[k] += total
    for k in range(n_topics):
        s[k] *= weight[k]


@_inner_sums()
def topic_overlap(m, beta, weight, mixture, overlap):
    """Write S = sum_v m_v phi_v phi_v' into `overlap` (K, K); part of `bound.topic_curvature`."""
    n_topics, n_features = beta.shape
    ratio = np.empty(TILE)
    scaled = np.empty(TILE)
    for k in range(n_topics):
        fill(overlap[k], 0.0)
    for start in range(0, n_features, TILE):
        stop = min(start + TILE, n_features)
        x = m[start:stop]
        p = mixture[start:stop]
        for v in range(x.size):
            ratio[v] = x[v] / (p[v] * p[v]) if x[v] > 0.0 else 0.0
        for k in range(n_topics):
            topic = beta[k, start:stop]
            for v in range(x.size):
                scaled[v] = topic[v] * ratio[v]
            for j in range(k + 1):
                other = beta[j, start:stop]
                total = 0.0
                for v in range(x.size):
                    total += other[v] * scaled[v]
                overlap[k, j] += total
    for k in range(n_topics):
        for j in range(k + 1):
            overlap[k, j] *= weight[k] * weight[j]
            overlap[j, k] = overlap[k, j]


@_inner()
def information_inverse(gamma, scale):
    """Write 1 / trigamma(gamma) into `scale` (K,); return c with T^-1 = diag(scale) + c scale scale'.

    The inverse of `bound.information` by Sherman-Morrison; needs at least two topics.
    """
    total = 0.0
    sum_scale = 0.0
    for k in range(gamma.size):
        total += gamma[k]
        scale[k] = 1.0 / trigamma(gamma[k])
        sum_scale += scale[k]
    joint = trigamma(total)
    return joint / (1.0 - joint * sum_scale)


@_jit_sums()
def invert_positive(matrix):
    """Replace a symmetric matrix by its inverse, in place, by Cholesky; return False if it is not positive definite.

    All inner loops run along rows, which are contiguous.
    """
    n = matrix.shape[0]
    row = np.empty(n)
    for i in range(n):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            if i > j:
                matrix[i, j] = total / matrix[j, j]
            elif total > 0.0:
                matrix[j, j] = math.sqrt(total)
            else:
                return False
    # The inverse of the factor, in place, row by row.
    for i in range(n):
        scale = 1.0 / matrix[i, i]
        for j in range(i):
            row[j] = 0.0
        for k in range(i):
            factor = scale * matrix[i, k]
            for j in range(k + 1):
                row[j] -= factor * matrix[k, j]
        for j in range(i):
            matrix[i, j] = row[j]
        matrix[i, i] = scale
    # Its transpose times itself: row k is added to the rows up to k, and its place is taken by row k of the product.
    for k in range(n):
        for j in range(k + 1):
            row[j] = matrix[k, j]
            matrix[k, j] = 0.0
        for i in range(k + 1):
            factor = row[i]
            for j in range(i + 1):
                matrix[i, j] += factor * row[j]
    for i in range(n):
        for j in range(i):
            matrix[j, i] = matrix[i, j]
    return True


@_inner()
def topic_curvature(m, beta, alpha, gamma, weight, mixture, curvature):
    """Write A = (T^-1 - diag(gamma - alpha) + S)^-1 into `curvature`; return False if it is not positive definite.

    Equals `bound.topic_curvature`.
    """
    n_topics = gamma.size
    if n_topics == 1:
        curvature[0, 0] = 0.0
        return True
    topic_overlap(m, beta, weight, mixture, curvature)
    scale = np.empty(n_topics)
    c = information_inverse(gamma, scale)
    for k in range(n_topics):
        for j in range(n_topics):
            curvature[k, j] += c * scale[k] * scale[j]
        curvature[k, k] += scale[k] - (gamma[k] - alpha[k])
    return invert_positive(curvature)


@_inner_sums()
def quadratic(curvature, x, y):
    """Return x' A y."""
    total = 0.0
    for k in range(x.size):
        inner = 0.0
        for j in range(y.size):
            inner += curvature[k, j] * y[j]
        total += x[k] * inner
    return total


@_inner()
def log_normalizer(alpha):
    """Return log Gamma(sum alpha) - sum log Gamma(alpha), the logarithm of the Dirichlet density's constant."""
    total = 0.0
    parts = 0.0
    for k in range(alpha.size):
        total += alpha[k]
        if alpha[k] != 1.0:  # where the logarithm is zero
            parts += math.lgamma(alpha[k])
    return math.lgamma(total) - parts


@_inner_sums()
def cluster_value(m, alpha, gamma, weight, mixture):
    """Return J(m, gamma), where eta = log(weight) and the mixture are those of gamma; equals `bound.cluster_bound`.

    Between the two halves of a VE-step, where gamma = alpha + s(eta), this is the bound of that pair.
    """
    value = 0.0
    for v in range(m.size):
        if m[v] > 0.0:
            value += m[v] * math.log(mixture[v])
    n_topics = gamma.size
    total = 0.0
    for k in range(n_topics):
        total += gamma[k]
        value += math.lgamma(gamma[k]) - (gamma[k] - alpha[k]) * math.log(weight[k])
    return value - math.lgamma(total) + log_normalizer(alpha)


@_once()
def half_steps(m, beta, alpha, gamma, weight, mixture, gap, residual):
    """Map eta = log(weight) to gamma = alpha + s(eta) and back; write gamma, the mixture and eta(gamma) - eta.

    The difference goes into `gap`, and into `residual` as the equivalent change r of gamma, r = T^-1 gap. A common
    shift of eta changes nothing, which removes the nearly singular direction of T: r sums to zero. Returns the largest
    gap.
    """
    topic_counts(m, beta, weight, mixture, gamma)
    total = 0.0
    for k in range(gamma.size):
        gamma[k] += alpha[k]
        total += gamma[k]
    base = digamma(total)
    sum_scale = 0.0
    shift = 0.0
    for k in range(gamma.size):
        gap[k] = max(digamma(gamma[k]) - base, math.log(LEAST_WEIGHT)) - math.log(weight[k])
        residual[k] = 1.0 / trigamma(gamma[k])
        sum_scale += residual[k]
        shift += residual[k] * gap[k]
    largest = 0.0
    for k in range(gamma.size):
        gap[k] -= shift / sum_scale
        residual[k] *= gap[k]
        largest = max(largest, abs(gap[k]))
    return largest


@_inner_sums()
def possible_gain(curvature, gap, residual):
    """Return an estimate of what the bound can still gain: r' A r / 2, but at least r' T r / 2, where T r = gap."""
    at_least = 0.0
    for k in range(gap.size):
        at_least += gap[k] * residual[k]
    return 0.5 * max(quadratic(curvature, residual, residual), at_least)


@_inner()
def stretched(weight, step):
    """Return a weight after a bounded step of its logarithm."""
    return max(weight * math.exp(min(max(step, -LONGEST_STEP), LONGEST_STEP)), LEAST_WEIGHT)


@_inner()
def newton_step(curvature, residual, weight):
    """Remove a residual r of the fixed point to first order: add d eta = A r to log(weight), in place."""
    for k in range(weight.size):
        step = 0.0
        for j in range(weight.size):
            step += curvature[k, j] * residual[j]
        weight[k] = stretched(weight[k], step)


@_once()
def ve_step(m, beta, alpha, gamma, weight, curvature, mixture, tol, needed):
    """Maximize J(m, .) to within `tol` from the warm start eta = log(weight), in place; equals `bound.ve_step`.

    Returns how far J may be from its maximum: 0, unless the maximum is clearly less than `needed`, where it stops.

    `curvature` is A of a nearby maximum, or its first entry is NaN. Newton steps use it as long as they converge fast
    (a step then costs one pass over the topics), and A at the current point otherwise. The bound can still gain
    r' A r / 2, which decides when to stop. With A of another point this is an estimate, so it is not allowed to be less
    than r' T r / 2, with T of this point, and it must be small twice in a row. Where Newton steps do not converge,
    fixed-point steps, which never lower the bound, take over; where these are slow as well, Newton steps are shortened
    until they do not lower the bound either. On return, gamma, weight and mixture belong together as in
    `cluster_value`.
    """
    n_topics = gamma.size
    gap = np.empty(n_topics)
    residual = np.empty(n_topics)
    anchor = np.empty(n_topics)
    fixed = np.empty(n_topics)
    step = np.empty(n_topics)
    is_fresh = False  # whether the curvature was computed here
    # A costs as much as K / 4 passes over the topics, and saves all but two or three of those still to come.
    n_saved = 0.25 * n_topics + 3.0
    last = np.inf
    n_fixed = 0  # fixed-point steps to take before the next Newton step
    n_failures = 0
    best = -np.inf
    length = 1.0
    for iteration in range(VE_MAX_ITER + VE_MAX_GUARDED):
        largest = half_steps(m, beta, alpha, gamma, weight, mixture, gap, residual)
        is_guarded = iteration >= VE_MAX_ITER
        deficit = np.inf
        if n_fixed == 0 and not math.isnan(curvature[0, 0]):
            deficit = possible_gain(curvature, gap, residual)
        is_done = largest < 1e-14 or (deficit <= tol and (is_fresh or largest < 1e-6 or last <= tol))
        can_stop = needed > -np.inf and 0 < iteration < VE_MAX_ITER and deficit < last and not is_done
        value = 0.0
        if is_guarded or can_stop:
            value = cluster_value(m, alpha, gamma, weight, mixture)
        if is_guarded:
            if value < best - 1e-14 * abs(best):
                length *= 0.25
                for k in range(n_topics):
                    weight[k] = stretched(anchor[k], length * step[k] if length > 1e-3 else fixed[k])
                continue
            best = value
            copy_into(anchor, weight)
            copy_into(fixed, gap)
        if is_done:
            return 0.0
        if can_stop and value + CLEARLY * deficit < needed:
            return CLEARLY * deficit
        is_fast = deficit <= tol or math.log(deficit / tol) <= n_saved * math.log(last / deficit)
        if n_fixed == 0 and (is_guarded or not is_fast):
            is_astray = is_fresh and deficit > last and not is_guarded
            is_fresh = not is_astray and topic_curvature(m, beta, alpha, gamma, weight, mixture, curvature)
            deficit = possible_gain(curvature, gap, residual) if is_fresh else np.inf
            if deficit <= tol:
                return 0.0
            if not is_fresh:
                n_failures += 1
                n_fixed = 1 if is_guarded else 2 * n_failures
        if n_fixed > 0:
            n_fixed -= 1
            curvature[0, 0] = np.nan
            last = np.inf
            longest = LONGEST_STRETCH
            for k in range(n_topics):
                weight[k] = stretched(weight[k], gap[k])
        else:
            last = deficit
            longest = 1.0
            newton_step(curvature, residual, weight)
        if is_guarded:
            length = min(longest, 4.0 * length)
            for k in range(n_topics):
                step[k] = math.log(weight[k] / anchor[k])
                weight[k] = stretched(anchor[k], length * step[k])
    return 0.0


@_inner_sums()
def write_columns(beta, weight, curvature, diagonal, release, common, with_spread, first, spread):
    """Write C_qv into the column `first` (V,) of the tables and, if asked for, U_qv into `spread` (V,).

    U equals `bound.spread`, or `bound.loose_spread` for many topics. `common` is trigamma(sum gamma_q). One pass over
    tiles serves both: with many topics, reading them from memory takes longer than the sums.
    """
    n_topics, n_features = beta.shape
    is_loose = n_topics > EXACT_SPREAD_TOPICS
    mixture = np.empty(TILE)
    inner = np.empty(TILE)
    total = np.empty(TILE)
    for start in range(0, n_features, TILE):
        stop = min(start + TILE, n_features)
        p = mixture[: stop - start]
        fill(p, 0.0)
        for k in range(n_topics):
            add_into(p, beta[k, start:stop], weight[k])
        for v in range(p.size):
            # A feature without probability is absent from the data: its entry is never used.
            first[start + v] = math.log(p[v]) if p[v] > 0.0 else 0.0
        if not with_spread:
            continue
        fill(total, 0.0)
        fill(inner, 0.0)
        for k in range(n_topics):
            topic = beta[k, start:stop]
            if is_loose:
                d = diagonal[k] * weight[k] ** 2
                add_into(inner[: p.size], topic, release[k] * weight[k])
                for v in range(p.size):
                    total[v] += d * topic[v] * topic[v]
                continue
            d = curvature[k, k] * weight[k] ** 2
            for v in range(p.size):
                inner[v] = d * topic[v]
            for j in range(k):
                add_into(inner[: p.size], beta[j, start:stop], 2.0 * curvature[k, j] * weight[k] * weight[j])
            for v in range(p.size):
                total[v] += inner[v] * topic[v]
        for v in range(p.size):
            square = 0.0
            if p[v] > 0.0:
                square = total[v] / p[v] ** 2
                if is_loose:
                    square += (inner[v] / p[v]) ** 2 - common
            spread[start + v] = math.sqrt(max(square, 0.0))


@_once()
def write_tables(topics, clusters, q, m, beta, own_mixture):
    """Write the columns of cluster q of the tables, in place; m, beta and the mixture are those of its own features.

    Second-order quantities (A - T and U) cost most and change least: they are recomputed when the counts moved since
    the last time exceed `SECOND_ORDER_SHARE` of the total.
    """
    n_topics = topics.beta.shape[0]
    gamma = clusters.gamma[q]
    weight = clusters.weight[q]
    curvature = clusters.curvature[q]
    coupling = clusters.coupling[q]
    diagonal = clusters.diagonal[q]
    release = clusters.release[q]
    spread = clusters.tables[:, clusters.sizes.size + q]
    is_aged = clusters.aged[q] > SECOND_ORDER_SHARE * clusters.totals[q] or math.isnan(curvature[0, 0])
    with_spread = False
    common = 0.0
    if is_aged:
        clusters.aged[q] = 0.0
        with_spread = topic_curvature(m, beta, topics.alpha, gamma, weight, own_mixture, curvature)
        for k in range(n_topics):
            common += gamma[k]
        common = trigamma(common)
        for k in range(n_topics):
            for j in range(n_topics):
                coupling[k, j] = curvature[k, j] + common
            diagonal[k] = trigamma(gamma[k])
            coupling[k, k] -= diagonal[k]
            release[k] = math.sqrt(max(coupling[k, k], 0.0))
        if not with_spread:  # nothing bounds the second-order term, so no move may be dropped
            curvature[0, 0] = np.nan
            coupling[0, 0] = np.nan
            fill(spread, np.inf)
    first = clusters.tables[:, q]
    write_columns(topics.beta, weight, curvature, diagonal, release, common, with_spread, first, spread)


# --- one row against one cluster --------------------------------------------------------------------------------


@_jit()
def move_row(state, i, new):
    """Call `make_move`."""
    make_move(state, i, new)


@_once()
def make_move(state, i, new):
    """Move row i to cluster `new` in place: labels, sizes, counts and the drift of both clusters' expansions."""
    topics = state.topics
    clusters = state.clusters
    old = int(state.labels[i])
    s = np.empty(topics.beta.shape[0])
    row_topic_counts(state.rows, i, topics.beta_rows, clusters.weight[old], s)
    add_into(clusters.drift[old], s, -1.0)
    row_topic_counts(state.rows, i, topics.beta_rows, clusters.weight[new], s)
    add_into(clusters.drift[new], s, 1.0)
    total = 0.0
    for p in range(state.rows.indptr[i], state.rows.indptr[i + 1]):
        v = state.rows.indices[p]
        x = float(state.rows.data[p])
        clusters.counts[old, v] -= x
        clusters.counts[new, v] += x
        total += x
    clusters.totals[old] -= total
    clusters.totals[new] += total
    clusters.moved[old] += total
    clusters.moved[new] += total
    clusters.sizes[old] -= 1
    clusters.sizes[new] += 1
    state.labels[i] = new


@_inner_sums()
def row_topic_counts(rows, i, beta_rows, weight, s):
    """Write s(d) of row i into `s`, for the cluster with these weights; equals `bound.topic_counts`."""
    n_topics = s.size
    fill(s, 0.0)
    for p in range(rows.indptr[i], rows.indptr[i + 1]):
        v = rows.indices[p]
        mixture = 0.0
        for k in range(n_topics):
            mixture += weight[k] * beta_rows[v, k]
        ratio = rows.data[p] / mixture
        for k in range(n_topics):
            s[k] += ratio * beta_rows[v, k]
    for k in range(n_topics):
        s[k] *= weight[k]


@_inner_sums()
def expansion(alpha, gamma, weight, coupling, drift, moved, s, sign, first):
    """Return the change of max J at M + sign d, accurate to second order, and bounds on its error below and above.

    `first` is G(d) and `s` is s(d) of the row d; the arguments before them belong to the cluster. The change equals
    `bound.expansion`, where it is derived; it is exact where topics share no feature.

    The error bounds are not a theorem: they are shares of the second-order terms, calibrated in
    ``tests/engine/test_expansion.py``, and widened once more before the search declares convergence.
    """
    change = sign * first
    released = 0.0
    before = 0.0
    after = 0.0
    frozen = 0.0
    for k in range(s.size):
        along_row = 0.0
        along_drift = 0.0
        for j in range(s.size):
            along_row += coupling[k, j] * s[j]
            along_drift += coupling[k, j] * drift[j]
        start = max(gamma[k] + drift[k], 0.5 * alpha[k])
        end = max(start + sign * s[k], 0.5 * alpha[k])
        before += start
        after += end
        change += math.lgamma(end) - math.lgamma(start) - sign * s[k] * math.log(weight[k])
        change += s[k] * (0.5 * along_row + sign * along_drift)
        frozen += 0.5 * s[k] * s[k] / start
        far = (s[k] + abs(drift[k])) / min(end, gamma[k])
        released += s[k] * (0.5 * abs(along_row) + abs(along_drift)) * min(1.0, ERROR_GROWTH * far)
    change -= math.lgamma(after) - math.lgamma(before)
    if math.isnan(change):  # without a curvature, the move is left to the exact evaluator
        return 0.0, np.inf, np.inf
    if s.size == 1:
        return change, 0.0, 0.0
    share = (abs(after - before) + moved) / min(after, before)
    error = FROZEN_ERROR * frozen * min(1.0, ERROR_GROWTH * share)
    # The curvature falls along an addition and grows along a removal, so the expansion errs to one side.
    if sign > 0.0:
        return change, error + released, error + FAR_SIDE * released
    return change, error + FAR_SIDE * released, error + released


@_once()
def expand_end(state, q, s, sign, first):
    """Call `expansion` for cluster q."""
    topics = state.topics
    clusters = state.clusters
    return expansion(
        topics.alpha,
        clusters.gamma[q],
        clusters.weight[q],
        clusters.coupling[q],
        clusters.drift[q],
        clusters.moved[q],
        s,
        sign,
        first,
    )


def refresh_cluster(state, q, with_tables):
    """Recompute gamma and J of cluster q from its counts and, if asked for, its columns of the tables; in place."""
    nothing = np.full(2, -np.inf)
    maximize(state, q, ITS_TABLES if with_tables else ITSELF, nothing[:1], nothing[1:], VE_DEFICIT)


def exact_changes(state, q, rows, changes, needed, tol):
    """Write max J at M_q + d (M_q - d for rows of cluster q) minus max J at M_q for each row d into `changes`.

    An evaluation stops early when the change is clearly less than `needed` (R,), where it leaves how much larger the
    change may be; 0 for the others. Cluster q must be fresh; `tol` is the precision in nats, at best `VE_DEFICIT`.
    Equals `bound.exact_change`.
    """
    maximize(state, q, rows, changes, needed, tol)


@_jit()
def maximize(state, q, rows, changes, needed, tol):
    """Maximize J of cluster q with each row of `rows`, as in `exact_changes`, or without one, as in `refresh_cluster`.

    A negative row stands for the cluster itself: its parameters change in place and, if the row is -2, its tables. Both
    are one kernel, because each kernel that calls the VE-step takes seconds to compile.

    A cluster with few features is evaluated on these and on those of the row alone, in arrays whose size depends on
    nothing else: the result for a row does not depend on other rows, not even through rounding.
    """
    topics = state.topics
    clusters = state.clusters
    n_topics, n_features = topics.beta.shape
    counts = clusters.counts[q]
    support = cluster_support(counts)
    position = np.empty(0, dtype=np.int32)
    size = -1
    beta = topics.beta
    m = np.empty(0)
    mixture = np.empty(0)
    gamma = np.empty(n_topics)
    weight = np.empty(n_topics)
    curvature = np.empty((n_topics, n_topics))
    for b in range(rows.size):
        i = rows[b]
        is_itself = i < 0
        sign = 1.0
        start = 0
        stop = 0
        if is_itself:
            gamma = clusters.gamma[q]
            weight = clusters.weight[q]
            curvature = clusters.curvature[q]
            if clusters.moved[q] > 0.0 and not math.isnan(curvature[0, 0]):
                newton_step(curvature, clusters.drift[q], weight)
        else:
            sign = -1.0 if state.labels[i] == q else 1.0
            start = state.rows.indptr[i]
            stop = state.rows.indptr[i + 1]
            copy_into(weight, clusters.weight[q])
            for k in range(n_topics):
                copy_into(curvature[k], clusters.curvature[q, k])
            warm_start(state.rows, i, topics.beta_rows, topics.alpha, clusters.gamma[q], sign, gamma, weight, curvature)
        wanted = compact_size(support.size, stop - start, n_features)
        is_compact = wanted < n_features
        if wanted != size:
            size = wanted
            m = np.empty(size)
            mixture = np.empty(size)
            beta = np.empty((n_topics, size)) if is_compact else topics.beta
            if is_compact:
                if position.size == 0:
                    position = positions(support, n_features)
                for j in range(support.size):
                    gather_feature(topics.beta_rows, support[j], j, beta)
        if is_compact:
            for j in range(support.size):
                m[j] = counts[support[j]]
        else:
            copy_into(m, counts)
        used = support.size if is_compact else n_features
        for p in range(start, stop):
            v = state.rows.indices[p]
            x = sign * state.rows.data[p]
            if not is_compact:
                m[v] += x
            elif position[v] >= 0:
                m[position[v]] += x
            else:
                m[used] = x
                gather_feature(topics.beta_rows, v, used, beta)
                used += 1
        # Columns that a longer row would fill hold no counts.
        for j in range(used, size):
            m[j] = 0.0
            for k in range(n_topics):
                beta[k, j] = 0.0
        at_least = needed[b] + clusters.value[q]
        needed[b] = ve_step(m, beta, topics.alpha, gamma, weight, curvature, mixture, tol, at_least)
        if is_itself:
            topic_weights(gamma, weight)
            mix(beta, weight, mixture)
        value = cluster_value(m, topics.alpha, gamma, weight, mixture)
        if is_itself:
            clusters.value[q] = value
            clusters.aged[q] += clusters.moved[q]
            fill(clusters.drift[q], 0.0)
            clusters.moved[q] = 0.0
            if i == -2:
                write_tables(topics, clusters, q, m, beta, mixture)
        else:
            changes[b] = value - clusters.value[q]


@_inner()
def compact_size(n_support, n_entries, n_features):
    """Return how many features a cluster and a row are evaluated on: those they may contain if these are few, or all.

    The space for the row is a power of two, so that rows of similar length share arrays.
    """
    room = min(64, 64 * n_entries)
    while room < n_entries:
        room *= 2
    return n_support + room if 2 * (n_support + room) < n_features else n_features


@_inner()
def positions(support, n_features):
    """Return the position of each feature among those of a cluster, -1 for the others."""
    position = np.empty(n_features, dtype=np.int32)
    for v in range(n_features):
        position[v] = -1
    for j in range(support.size):
        position[support[j]] = j
    return position


@_once()
def warm_start(rows, i, beta_rows, alpha, own_gamma, sign, gamma, weight, curvature):
    """Replace the weights and A of a cluster by those near the maximum with row i added or removed, in place.

    `own_gamma` is gamma of the cluster; `gamma` is work space.

    The first Newton step needs no pass over the features: its residual is s_q(d). Where the row changes the counts of a
    topic by a large share, a Newton step leads astray. There the fixed point is iterated over the features of the row
    alone, with the responsibilities of the cluster's other tokens held fixed, and A is that of these responsibilities.
    Under a prior below one, with several maxima, Newton steps lead to the one that a move will end in.
    """
    is_concave = True
    for k in range(weight.size):
        is_concave &= alpha[k] >= 1.0
    n_steps = 0
    step = 0
    while True:
        row_topic_counts(rows, i, beta_rows, weight, gamma)
        if step == 0:
            for k in range(weight.size):
                if is_concave and gamma[k] > LARGE_CHANGE * own_gamma[k]:
                    n_steps = ROW_STEPS if sign > 0.0 else 1
        if step == n_steps:
            break
        for k in range(weight.size):
            gamma[k] = max(own_gamma[k] + sign * gamma[k], alpha[k])
        topic_weights(gamma, weight)
        step += 1
    if n_steps > 0:
        curvature[0, 0] = np.nan
    elif not math.isnan(curvature[0, 0]):
        for k in range(weight.size):
            gamma[k] *= sign
        newton_step(curvature, gamma, weight)


@_inner()
def gather_feature(beta_rows, v, j, beta):
    """Copy feature v into column j of the compact topics."""
    for k in range(beta_rows.shape[1]):
        beta[k, j] = beta_rows[v, k]


@_inner()
def cluster_support(m):
    """Return the features with counts in a cluster, in order."""
    support = np.empty(m.size, dtype=np.int32)
    size = 0
    for v in range(m.size):
        support[size] = v
        size += m[v] > 0.0
    return support[:size]


@_inner()
def leave_change(sizes, q):
    """Return the change of n_q log n_q when a row leaves cluster q."""
    n = float(sizes[q])
    return xlogx(n - 1.0) - xlogx(n)


@_inner()
def join_change(sizes, q):
    """Return the change of n_q log n_q when a row joins cluster q."""
    n = float(sizes[q])
    return xlogx(n + 1.0) - xlogx(n)


# --- sweeps -----------------------------------------------------------------------------------------------------


@_jit()
def sweep_exact(state, min_gain, block):
    """Visit the rows of `block` in turn, as in Algorithm 1: evaluate every move exactly and make the best; in place.

    Returns the number of moves.
    """
    clusters = state.clusters
    n_clusters = clusters.sizes.size
    change = np.empty(1)
    needed = np.empty(1)
    itself = np.full(1, -1)  # a global array is read-only, another signature of `maximize`
    n_moves = 0
    for b in range(block.size):
        i = block[b]
        old = np.int64(state.labels[i])  # for labels of 32 bits, `maximize` would be compiled again
        if clusters.sizes[old] == 1:
            continue
        removal = 0.0
        best = old
        best_gain = min_gain
        # The removal comes first. One call serves both ends of a move; with two, the compiler would copy the VE-step.
        for j in range(-1, n_clusters):
            if j != old:
                needed[0] = -np.inf
                maximize(state, old if j < 0 else j, block[b : b + 1], change, needed, VE_DEFICIT)
                if j < 0:
                    removal = change[0] + leave_change(clusters.sizes, old)
                elif removal + change[0] + join_change(clusters.sizes, j) > best_gain:
                    best_gain = removal + change[0] + join_change(clusters.sizes, j)
                    best = j
        if best != old:
            make_move(state, i, best)
            for j in range(2):
                needed[0] = -np.inf
                maximize(state, best if j else old, itself, change, needed, VE_DEFICIT)
            n_moves += 1
    return n_moves


@_inner_sums()
def screen_row(rows, i, tables, sums):
    """Write G_q(d) of row i for every cluster into `sums` (2 Q,), then sum_v d_v U_qv for every cluster.

    Both come from the same lines of the tables, so one pass waits for memory only once.
    """
    fill(sums, 0.0)
    for p in range(rows.indptr[i], rows.indptr[i + 1]):
        v = rows.indices[p]
        x = float(rows.data[p])
        for c in range(sums.size):
            sums[c] += x * tables[v, c]


@_jit()
def propose(state, screen, block, found):
    """Write the best move of each row of `block` against the frozen state into `found.target`, -1 for none.

    Clusters are dropped by a true bound on their second-order term first; the rest are expanded to second order.
    `found.is_open` marks rows for which the error of the expansion leaves the decision open, against staying or between
    clusters. Error bounds are multiplied by `screen.error_factor`; `found.upper`, an upper bound on the gain of any
    move of the row, by `screen.verify_factor`. `expand_row` explains the other arrays.
    """
    topics = state.topics
    clusters = state.clusters
    n_clusters = clusters.sizes.size
    sums = np.empty(2 * n_clusters)
    s = np.empty(topics.beta.shape[0])
    for b in range(block.size):
        i = block[b]
        found.target[b] = -1
        found.is_open[b] = False
        found.upper[b] = np.inf  # the only row of a cluster may move when another has joined it
        old = int(state.labels[i])
        if clusters.sizes[old] == 1:
            continue
        estimate = found.estimate[b]
        below = found.below[b]
        above = found.above[b]
        best, found.rest[b], top = expand_row(state, screen, i, sums, s, estimate, below, above)
        found.upper[b] = max(found.rest[b], top)
        if best < 0:
            continue
        floor = max(screen.min_gain, estimate[best] - below[best] - below[old])
        is_certain = floor > screen.min_gain
        has_stale = clusters.moved[old] > 0.0
        for q in range(n_clusters):
            if q != old and estimate[q] + above[q] + above[old] > floor:
                found.is_open[b] |= q != best or not is_certain
                has_stale |= clusters.moved[q] > 0.0
        # A stale cluster has no exact value to decide by: the move is proposed unchecked, and checked when applied.
        found.is_open[b] &= not has_stale
        if estimate[best] > screen.min_gain:
            found.target[b] = best


@_once()
def expand_row(state, screen, i, sums, s, estimate, below, above):
    """Write the second-order gains of row i into `estimate`, and how far below and above them the truth may be.

    Errors of a cluster are those of joining it; the row's own cluster holds the change and the errors of leaving it.
    Clusters that cannot gain keep minus infinity. `sums` (2 Q,) and `s` (K,) are work space. Returns the best cluster,
    -1 if none is left, and two upper bounds on the gain under the verifying factor: over clusters without an estimate,
    and over the others. The first bound is :func:`mmpca.engine.bound.screened_gain`.
    """
    topics = state.topics
    clusters = state.clusters
    min_gain = screen.min_gain
    leave = screen.size_changes[0]
    join = screen.size_changes[1]
    old = int(state.labels[i])
    screen_row(state.rows, i, clusters.tables, sums)
    first, spread = sums[: leave.size], sums[leave.size :]
    own = 0.5 * spread[old] ** 2
    # On the way to M_old - d the second-order term of a removal grows, at most to twice its mean (when a topic vanishes
    # with the row); that of an addition falls.
    # True bounds need less widening than the error bounds of expansions.
    widening = math.sqrt(screen.error_factor)
    verify_widening = math.sqrt(screen.verify_factor)
    removal = 2.0 * widening * own - first[old] + leave[old]
    verify_removal = 2.0 * verify_widening * own - first[old] + leave[old]
    above[old] = 0.0
    best = -1
    rest = -np.inf
    top = -np.inf
    is_removal_known = False
    for q in range(first.size):
        estimate[q] = -np.inf
        if q == old:
            continue
        half = 0.5 * spread[q] ** 2
        if not is_removal_known and first[q] + join[q] - min_gain + widening * half + removal > 0.0:
            row_topic_counts(state.rows, i, topics.beta_rows, clusters.weight[old], s)
            removal, below[old], above[old] = expand_end(state, old, s, -1.0, first[old])
            removal += leave[old]
            verify_removal = removal + screen.verify_factor * above[old]
            below[old] *= screen.error_factor
            above[old] *= screen.error_factor
            is_removal_known = True
        if half < np.inf and first[q] + join[q] - min_gain + widening * half + removal + above[old] > 0.0:
            row_topic_counts(state.rows, i, topics.beta_rows, clusters.weight[q], s)
            half = min(half, second_order_bound(clusters.diagonal[q], clusters.release[q], s))
        elif half == np.inf:
            row_topic_counts(state.rows, i, topics.beta_rows, clusters.weight[q], s)
        if first[q] + join[q] - min_gain + widening * half + removal + above[old] <= 0.0:
            rest = max(rest, first[q] + join[q] + verify_widening * half + verify_removal)
            continue
        change, below[q], above[q] = expand_end(state, q, s, 1.0, first[q])
        if clusters.moved[q] > 0.0 or clusters.moved[old] > 0.0:
            top = np.inf  # the estimate is ahead of the tables, so it says nothing about the gain after a refresh
        change += join[q]
        at_most = change + screen.verify_factor * above[q]
        below[q] *= screen.error_factor
        above[q] *= screen.error_factor
        if change + above[q] - min_gain + removal + above[old] <= 0.0:
            rest = max(rest, at_most + verify_removal)
            continue
        estimate[q] = removal + change
        top = max(top, at_most + verify_removal)
        if best < 0 or estimate[q] > estimate[best]:
            best = q
    estimate[old] = removal
    return best, rest, top


@_inner_sums()
def second_order_bound(diagonal, release, s):
    """Return an upper bound on s' A s / 2 from the diagonals of A - T and, without its common part, T.

    Equals half the square of `bound.loose_spread` for a single responsibility s, with T at least as large.
    """
    frozen = 0.0
    released = 0.0
    for k in range(s.size):
        frozen += s[k] * s[k] * diagonal[k]
        released += s[k] * release[k]
    return 0.5 * (frozen + released * released)


@_inner_sums()
def first_order(rows, i, tables, q):
    """Return G_q(d) = sum_v d_v C_qv of row i; equals `bound.first_order`."""
    total = 0.0
    for p in range(rows.indptr[i], rows.indptr[i + 1]):
        total += rows.data[p] * tables[rows.indices[p], q]
    return total


@_jit()
def expanded_gain(state, i, new):
    """Call `expand_move`."""
    return expand_move(state, i, new)


@_once()
def expand_move(state, i, new):
    """Return the second-order gain of moving row i to `new`, and how far below and above it the truth may be."""
    topics = state.topics
    clusters = state.clusters
    s = np.empty(topics.beta.shape[0])
    old = int(state.labels[i])
    row_topic_counts(state.rows, i, topics.beta_rows, clusters.weight[old], s)
    removal, below, above = expand_end(state, old, s, -1.0, first_order(state.rows, i, clusters.tables, old))
    row_topic_counts(state.rows, i, topics.beta_rows, clusters.weight[new], s)
    change, change_below, change_above = expand_end(
        state, new, s, 1.0, first_order(state.rows, i, clusters.tables, new)
    )
    gain = removal + leave_change(clusters.sizes, old) + change + join_change(clusters.sizes, new)
    return gain, below + change_below, above + change_above


@_jit()
def apply(state, block, target, is_touched, start, min_gain, stale_share):
    """Make the proposed moves that still gain, in order from `start` on, in place, until a refresh is due.

    A move is checked again if one of its clusters has changed since it was proposed (recorded in `is_touched` (Q,)):
    it is made if it gains more than the error of the expansion, and left to the next epoch otherwise. A refresh is due
    when the counts moved since a cluster's last refresh exceed `stale_share` of its total. Returns where to continue,
    the cluster to refresh first (-1 at the end of the block), and the number of moves.
    """
    clusters = state.clusters
    n_moves = 0
    for b in range(start, block.size):
        i = block[b]
        old = int(state.labels[i])
        new = int(target[b])
        if new < 0 or new == old or clusters.sizes[old] == 1:
            continue
        if is_touched[old] or is_touched[new] or clusters.moved[old] > 0.0 or clusters.moved[new] > 0.0:
            estimate, below, _ = expand_move(state, i, new)
            if estimate - below <= min_gain:
                continue
        make_move(state, i, new)
        n_moves += 1
        is_touched[old] = True
        is_touched[new] = True
        # The search continues at this row, which is then skipped because it has moved.
        if clusters.moved[old] > stale_share * clusters.totals[old]:
            return b, old, n_moves
        if clusters.moved[new] > stale_share * clusters.totals[new]:
            return b, new, n_moves
    return block.size, -1, n_moves


@_jit()
def assign(state, block, target):
    """Write the cluster that fits each row of `block` best into `target`, with all parameters held fixed (C-VEM).

    The cluster is the largest of `bound.assignment_scores`; ties go to the row's own cluster, then to the first.
    """
    clusters = state.clusters
    n_clusters = clusters.sizes.size
    score = np.empty(n_clusters)
    for b in range(block.size):
        i = block[b]
        fill(score, 0.0)
        for p in range(state.rows.indptr[i], state.rows.indptr[i + 1]):
            v = state.rows.indices[p]
            for q in range(n_clusters):
                score[q] += state.rows.data[p] * clusters.tables[v, q]
        best = state.labels[i]
        top = score[best] + math.log(clusters.sizes[best])
        for q in range(n_clusters):
            value = score[q] + math.log(clusters.sizes[q])
            if value > top:
                top = value
                best = q
        target[b] = best


@_jit()
def reassign(state, block, target):
    """Move the rows of `block` to their targets, in place, leaving no cluster empty; return the number of moves."""
    clusters = state.clusters
    n_moves = 0
    for b in range(block.size):
        i = block[b]
        if target[b] != state.labels[i] and clusters.sizes[state.labels[i]] > 1:
            make_move(state, i, target[b])
            n_moves += 1
    return n_moves


# --- rows compared with their clusters ----------------------------------------------------------------------------


@_jit_sums()
def row_deviations(rows, profiles, concentration, some, labels, deviations):
    """Write sum_v (x_iv - L_i p_v)^2 / L_i of some rows into `deviations`, where p is the profile of the row's cluster.

    `profiles` (Q, V) have sums of squares `concentration` (Q,). The square is expanded to sum_v x^2 - 2 L sum_v x p +
    L^2 sum_v p^2, so that only nonzero entries are visited. Equals :func:`mmpca.model.dispersion.plain_deviations`.
    """
    for b in range(some.size):
        profile = profiles[labels[b]]
        total = 0.0
        squares = 0.0
        product = 0.0
        for p in range(rows.indptr[some[b]], rows.indptr[some[b] + 1]):
            x = float(rows.data[p])
            total += x
            squares += x * x
            product += x * profile[rows.indices[p]]
        deviations[b] = max(squares / total - 2.0 * product + total * concentration[labels[b]], 0.0)


# --- rows whose topic shares vary within a cluster ------------------------------------------------------------------


@_inner()
def row_topics(rows, i, beta_rows, largest, active):
    """Write the topics that matter for row i into `active`, and return their number and that of its known features.

    `largest` (V,) holds the largest probability of each feature; it is zero for unknown features.
    """
    n_known = 0
    for p in range(rows.indptr[i], rows.indptr[i + 1]):
        n_known += largest[rows.indices[p]] > 0
    n_active = 0
    for k in range(active.size):
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            v = rows.indices[p]
            if beta_rows[v, k] > NEGLIGIBLE * largest[v]:
                active[n_active] = k
                n_active += 1
                break
    return n_active, n_known


@_inner_sums()
def share_evidence(x, beta, prior, total, s, weight):
    """Return the bound on log p(x) of counts x, (n,), and leave expected topic counts in `s`; see `plain_evidence`.

    `beta` (n, K) and `prior` (K,) are those of some topics, `total` is the sum of the prior over all of them.
    """
    n_topics, length = s.size, 0.0
    for j in range(x.size):
        length += x[j]
    base = digamma(total + length)
    for k in range(n_topics):
        # From counts shared evenly: a topic of small prior would take many steps to grow from its prior share.
        s[k] = length / n_topics
        weight[k] = max(math.exp(digamma(prior[k] + s[k]) - base), LEAST_WEIGHT)
    new = np.empty(n_topics)
    for _ in range(SHARE_STEPS):
        fill(new, 0.0)
        for j in range(x.size):
            mixture = 0.0
            for k in range(n_topics):
                mixture += weight[k] * beta[j, k]
            ratio = x[j] / mixture
            for k in range(n_topics):
                new[k] += ratio * beta[j, k]
        change = 0.0
        for k in range(n_topics):
            new[k] *= weight[k]
            change = max(change, abs(new[k] - s[k]))
            s[k] = new[k]
            weight[k] = max(math.exp(digamma(prior[k] + s[k]) - base), LEAST_WEIGHT)
        if change < SHARE_TOL:
            break
    value = math.lgamma(total) - math.lgamma(total + length)
    for j in range(x.size):
        mixture = 0.0
        for k in range(n_topics):
            mixture += weight[k] * beta[j, k]
        value += x[j] * math.log(mixture)
    for k in range(n_topics):
        value += math.lgamma(prior[k] + s[k]) - math.lgamma(prior[k]) - s[k] * math.log(weight[k])
    return value


@_jit()
def evidence_of_rows(rows, beta_rows, largest, priors, some, own, own_priors, evidence, weights):
    """Write the bound on log p(x_i | cluster q) of some rows into `evidence`, (n, Q).

    Topic shares of a row are Dirichlet(`priors[q]`), priors: (Q, K). In the cluster `own[b]`, unless that is negative,
    they are Dirichlet(`own_priors[b]`): the cluster without the row. Unknown features, whose `largest` probability (V,)
    is zero, are skipped, and so are clusters whose evidence is already minus infinity. Equals
    :func:`mmpca.engine.shares.plain_evidence` for each row and cluster. Unless `weights` is empty, exp(eta_k) of each
    row and cluster is written into it, (n, Q, K).
    """
    n_clusters, n_topics = priors.shape
    active = np.empty(n_topics, np.int64)
    for b in range(some.size):
        i = some[b]
        n_active, n_known = row_topics(rows, i, beta_rows, largest, active)
        x, beta = np.empty(n_known), np.empty((n_known, n_active))
        j = 0
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            v = rows.indices[p]
            if largest[v] > 0:
                x[j] = rows.data[p]
                for a in range(n_active):
                    beta[j, a] = beta_rows[v, active[a]]
                j += 1
        s, weight, prior = np.empty(n_active), np.empty(n_active), np.empty(n_active)
        for q in range(n_clusters):
            if evidence[b, q] == -np.inf:
                continue
            source = own_priors[b] if q == own[b] else priors[q]
            total = 0.0
            for k in range(n_topics):
                total += source[k]
            for a in range(n_active):
                prior[a] = source[active[a]]
            evidence[b, q] = share_evidence(x, beta, prior, total, s, weight)
            if weights.size > 0:
                for a in range(n_active):
                    weights[b, q, active[a]] = weight[a]
