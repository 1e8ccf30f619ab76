"""Every compiled function of the package, in one file.

They stand together because numba's disk cache does not notice an edited callee in another file. Each says what it
equals in :mod:`mmpca.engine.bound`; none checks its input. ``state`` is a
:class:`mmpca.engine.state.State`; the alphabet of symbols is in ``docs/notation.md``.

Set ``MMPCA_CACHE=0`` to compile anew in every process, ``NUMBA_DISABLE_JIT=1`` to run everything as plain Python.
"""

import functools
import math
import os

import numba
import numpy as np

_jit = functools.partial(numba.njit, nogil=True, error_model="numpy", cache=os.environ.get("MMPCA_CACHE", "1") != "0")
# Sums may be reordered once, by the compiler, so that they use vector registers: the result stays the same from
# run to run, and NaN and infinity keep their meaning, which they would not under the whole of fastmath.
_jit_sums = functools.partial(_jit, fastmath={"reassoc", "contract"})

# Functions that only kernels call need no way in from Python, which takes longer to compile than most of them.
_inner = functools.partial(_jit, no_cpython_wrapper=True)
_inner_sums = functools.partial(_jit_sums, no_cpython_wrapper=True)

TILE = 512  # features handled at a time: the working set of a pass over topics x features stays in cache
VE_DEFICIT = 1e-11  # the VE-step stops when the bound can still gain this many nats
VE_MAX_ITER = 50
VE_MAX_GUARDED = 1000  # and as many again with the bound watched at every step
LONGEST_STEP = 10.0  # of a log weight at a time
LONGEST_STRETCH = 1e6  # of a fixed-point step, where that is slow and the bound is watched
LEAST_WEIGHT = 1e-300  # exp(eta) of a topic that a cluster does not use: its logarithm must stay finite
# A bound on the error of an expansion: shares of its second-order terms that grow with the change (see `expansion`).
ERROR_GROWTH = 3.0
FROZEN_ERROR = 0.01
FAR_SIDE = 0.3
SECOND_ORDER_SHARE = 0.01  # of a cluster's counts moved before its second-order quantities are renewed


# --- special functions ------------------------------------------------------------------------------------------


@_jit()
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
    """Set every entry of a vector, in place (a slice assignment takes seconds to compile: it can fail in words)."""
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


@_inner()
def topic_weights(gamma, weight):
    """Write exp(eta), eta = digamma(gamma) - digamma(sum gamma), into `weight` (K,)."""
    total = 0.0
    for k in range(gamma.size):
        total += gamma[k]
    base = digamma(total)
    for k in range(gamma.size):
        weight[k] = max(math.exp(digamma(gamma[k]) - base), LEAST_WEIGHT)


@_inner_sums()
def mix(beta, weight, mixture):
    """Write p_v = sum_k beta_kv weight_k into `mixture` (V,)."""
    fill(mixture, 0.0)
    for k in range(weight.size):
        w = weight[k]
        for v in range(mixture.size):
            mixture[v] += w * beta[k, v]


@_inner_sums()
def topic_counts(m, beta, weight, mixture, s):
    """Write p_v = sum_k beta_kv weight_k into `mixture` (V,) and s_k = sum_v m_v phi_vk into `s` (K,)."""
    n_topics, n_features = beta.shape
    ratio = np.empty(TILE)
    fill(s, 0.0)
    for start in range(0, n_features, TILE):
        stop = min(start + TILE, n_features)
        for v in range(start, stop):
            mixture[v] = weight[0] * beta[0, v]
        for k in range(1, n_topics):
            w = weight[k]
            for v in range(start, stop):
                mixture[v] += w * beta[k, v]
        for v in range(start, stop):
            ratio[v - start] = m[v] / mixture[v] if m[v] > 0.0 else 0.0
        for k in range(n_topics):
            total = 0.0
            for v in range(start, stop):
                total += beta[k, v] * ratio[v - start]
            s[k] += total
    for k in range(n_topics):
        s[k] *= weight[k]


@_inner_sums()
def topic_overlap(m, beta, weight, mixture, overlap):
    """Write S = sum_v m_v phi_v phi_v' into `overlap` (K, K)."""
    n_topics, n_features = beta.shape
    ratio = np.empty(TILE)
    scaled = np.empty(TILE)
    for k in range(n_topics):
        fill(overlap[k], 0.0)
    for start in range(0, n_features, TILE):
        stop = min(start + TILE, n_features)
        for v in range(start, stop):
            ratio[v - start] = m[v] / (mixture[v] * mixture[v]) if m[v] > 0.0 else 0.0
        for k in range(n_topics):
            for v in range(start, stop):
                scaled[v - start] = beta[k, v] * ratio[v - start]
            for j in range(k + 1):
                total = 0.0
                for v in range(start, stop):
                    total += beta[j, v] * scaled[v - start]
                overlap[k, j] += total
    for k in range(n_topics):
        for j in range(k + 1):
            overlap[k, j] *= weight[k] * weight[j]
            overlap[j, k] = overlap[k, j]


@_inner()
def information_inverse(gamma, scale):
    """Write 1 / trigamma(gamma) into `scale` (K,); return c with T^-1 = diag(scale) + c scale scale'.

    Sherman-Morrison on T = diag(trigamma(gamma)) - trigamma(sum gamma) 1 1'; needs at least two topics.
    """
    total = 0.0
    sum_scale = 0.0
    for k in range(gamma.size):
        total += gamma[k]
        scale[k] = 1.0 / trigamma(gamma[k])
        sum_scale += scale[k]
    joint = trigamma(total)
    return joint / (1.0 - joint * sum_scale)


@_jit()
def invert_positive(matrix):
    """Replace a symmetric matrix by its inverse through Cholesky; return False if it is not positive definite."""
    n = matrix.shape[0]
    for j in range(n):
        for i in range(j, n):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            if i == j:
                if not total > 0.0:
                    return False
                matrix[j, j] = math.sqrt(total)
            else:
                matrix[i, j] = total / matrix[j, j]
    # The factor's inverse, in its own place, column by column.
    for j in range(n):
        matrix[j, j] = 1.0 / matrix[j, j]
        for i in range(j + 1, n):
            total = 0.0
            for k in range(j, i):
                total -= matrix[i, k] * matrix[k, j]
            matrix[i, j] = total / matrix[i, i]
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for k in range(i, n):
                total += matrix[k, i] * matrix[k, j]
            matrix[j, i] = total
    for i in range(n):
        for j in range(i):
            matrix[i, j] = matrix[j, i]
    return True


@_inner()
def topic_curvature(m, beta, alpha, gamma, weight, mixture, curvature):
    """Write A = (T^-1 - diag(gamma - alpha) + S)^-1 into `curvature`; return False if that is not positive definite."""
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
        curvature[k, k] += scale[k] - (gamma[k] - alpha)
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


@_inner_sums()
def cluster_value(m, alpha, gamma, weight, mixture):
    """Return J(m, gamma), eta = log(weight) and the mixture being those of gamma; equals `bound.cluster_bound`.

    Between the two halves of a VE-step, where gamma = alpha + s(eta), it is the bound of that pair instead.
    """
    value = 0.0
    for v in range(m.size):
        if m[v] > 0.0:
            value += m[v] * math.log(mixture[v])
    n_topics = gamma.size
    total = 0.0
    for k in range(n_topics):
        total += gamma[k]
        value += math.lgamma(gamma[k]) - (gamma[k] - alpha) * math.log(weight[k])
    return value - math.lgamma(total) + math.lgamma(n_topics * alpha) - n_topics * math.lgamma(alpha)


@_inner()
def half_steps(m, beta, alpha, gamma, weight, mixture, gap, residual):
    """Take eta = log(weight) to s(eta), gamma = alpha + s and back: write gamma, mixture and eta(gamma) - eta.

    That difference goes into `gap`, and into `residual` as the change r of gamma that it stands for, r = T^-1 gap.
    A common shift of eta changes nothing, which settles the nearly singular direction of T: r sums to zero.
    Returns the largest gap.
    """
    topic_counts(m, beta, weight, mixture, gamma)
    total = 0.0
    for k in range(gamma.size):
        gamma[k] += alpha
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


@_inner()
def stretched(weight, step):
    """Return a weight whose logarithm has taken a step, within bounds."""
    return max(weight * math.exp(min(max(step, -LONGEST_STEP), LONGEST_STEP)), LEAST_WEIGHT)


@_inner()
def newton_step(curvature, residual, weight):
    """Remove a residual r of the fixed point to first order: add d eta = A r to log(weight), in place."""
    for k in range(weight.size):
        step = 0.0
        for j in range(weight.size):
            step += curvature[k, j] * residual[j]
        weight[k] = stretched(weight[k], step)


@_inner()
def ve_step(m, beta, alpha, gamma, weight, curvature, mixture):
    """Maximise J(m, .) from the warm start eta = log(weight), in place; equals `bound.ve_step`.

    `curvature` is A of a nearby maximum, or its first entry is NaN: steps use it as long as they converge fast (then a
    step costs one pass over the topics) and replace it by A at the current point when they do not. What can still be
    gained is r' A r / 2, so that is what decides the stop. Fixed-point steps, which never lower the bound, take over
    where Newton's do not converge; where that is slow as well, Newton's steps are shortened until they do not lower it
    either. On return gamma, weight and mixture belong together as in `cluster_value`.
    """
    n_topics = gamma.size
    gap = np.empty(n_topics)
    residual = np.empty(n_topics)
    anchor = np.empty(n_topics)
    fixed = np.empty(n_topics)
    step = np.empty(n_topics)
    is_fresh = False  # the curvature was computed here, not taken over
    last = np.inf
    n_fixed = 0  # fixed-point steps to take before Newton's are tried again
    n_failures = 0
    best = -np.inf
    length = 1.0
    for iteration in range(VE_MAX_ITER + VE_MAX_GUARDED):
        largest = half_steps(m, beta, alpha, gamma, weight, mixture, gap, residual)
        is_guarded = iteration >= VE_MAX_ITER
        if is_guarded:
            value = cluster_value(m, alpha, gamma, weight, mixture)
            if value < best - 1e-14 * abs(best):
                length *= 0.25
                for k in range(n_topics):
                    weight[k] = stretched(anchor[k], length * step[k] if length > 1e-3 else fixed[k])
                continue
            best = value
            copy_into(anchor, weight)
            copy_into(fixed, gap)
        if largest < 1e-14:
            return
        deficit = np.inf
        if n_fixed == 0 and not math.isnan(curvature[0, 0]):
            deficit = 0.5 * quadratic(curvature, residual, residual)
        is_near = deficit <= VE_DEFICIT
        if is_near and (is_fresh or largest < 1e-6):  # a curvature from elsewhere may take a large residual for small
            return
        if n_fixed == 0 and (is_guarded or is_near or not deficit < 0.05 * last):
            is_astray = is_fresh and deficit > last and not is_guarded
            is_fresh = not is_astray and topic_curvature(m, beta, alpha, gamma, weight, mixture, curvature)
            deficit = 0.5 * quadratic(curvature, residual, residual) if is_fresh else np.inf
            if deficit <= VE_DEFICIT:
                return
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


@_inner_sums()
def spread_column(beta, weight, curvature, mixture, tables, q):
    """Write the root of phi_qv' A_q phi_qv into its column of the tables."""
    n_topics, n_features = beta.shape
    n_clusters = tables.shape[1] // 2
    factor = np.empty((n_topics, n_topics))
    for k in range(n_topics):
        for j in range(k):
            factor[k, j] = 2.0 * curvature[k, j] * weight[k] * weight[j]
        factor[k, k] = curvature[k, k] * weight[k] ** 2
    inner = np.empty(TILE)
    total = np.empty(TILE)
    for start in range(0, n_features, TILE):
        stop = min(start + TILE, n_features)
        fill(total, 0.0)
        for k in range(n_topics):
            for v in range(start, stop):
                inner[v - start] = factor[k, k] * beta[k, v]
            for j in range(k):
                f = factor[k, j]
                for v in range(start, stop):
                    inner[v - start] += f * beta[j, v]
            for v in range(start, stop):
                total[v - start] += inner[v - start] * beta[k, v]
        for v in range(start, stop):
            u = math.sqrt(max(total[v - start], 0.0)) / mixture[v] if mixture[v] > 0.0 else 0.0
            tables[v, n_clusters + q] = u


@_jit()
def refresh_cluster(state, q, with_tables):
    """Bring gamma, J and, for the screened evaluator, the table columns of cluster q up to date, in place.

    What belongs to the second order (A - T and U) costs most and changes least: it is renewed when the counts moved
    since the last time exceed `SECOND_ORDER_SHARE` of the total.
    """
    n_clusters = state.sizes.size
    mixture = np.empty(state.beta.shape[1])
    m = state.counts[q]
    gamma = state.gamma[q]
    weight = state.weight[q]
    curvature = state.curvature[q]
    if state.moved[q] > 0.0 and not math.isnan(curvature[0, 0]):
        newton_step(curvature, state.drift[q], weight)
    ve_step(m, state.beta, state.alpha, gamma, weight, curvature, mixture)
    topic_weights(gamma, weight)
    mix(state.beta, weight, mixture)
    state.value[q] = cluster_value(m, state.alpha, gamma, weight, mixture)
    state.aged[q] += state.moved[q]
    fill(state.drift[q], 0.0)
    state.moved[q] = 0.0
    if not with_tables:
        return
    for v in range(mixture.size):
        # A feature without probability is absent from the data: its entry is never used.
        state.tables[v, q] = math.log(mixture[v]) if mixture[v] > 0.0 else 0.0
    if state.aged[q] > SECOND_ORDER_SHARE * state.totals[q] or math.isnan(curvature[0, 0]):
        state.aged[q] = 0.0
        is_expandable = topic_curvature(m, state.beta, state.alpha, gamma, weight, mixture, curvature)
        total = 0.0
        for k in range(gamma.size):
            total += gamma[k]
        for k in range(gamma.size):
            for j in range(gamma.size):
                state.coupling[q, k, j] = curvature[k, j] + trigamma(total)
            state.coupling[q, k, k] -= trigamma(gamma[k])
        if is_expandable:
            spread_column(state.beta, weight, curvature, mixture, state.tables, q)
        else:  # nothing bounds the second-order term: let no move be dropped
            curvature[0, 0] = np.nan
            state.coupling[q, 0, 0] = np.nan
            for v in range(mixture.size):
                state.tables[v, n_clusters + q] = np.inf


# --- one row against one cluster --------------------------------------------------------------------------------


@_jit()
def move_row(state, i, new):
    """Move row i to cluster `new` in place: labels, sizes, counts and the drift of both clusters' expansions."""
    old = state.labels[i]
    s = np.empty(state.beta.shape[0])
    row_topic_counts(state.rows, i, state.beta_rows, state.weight[old], s)
    add_into(state.drift[old], s, -1.0)
    row_topic_counts(state.rows, i, state.beta_rows, state.weight[new], s)
    add_into(state.drift[new], s, 1.0)
    total = 0.0
    for p in range(state.rows.indptr[i], state.rows.indptr[i + 1]):
        v = state.rows.indices[p]
        x = float(state.rows.data[p])
        state.counts[old, v] -= x
        state.counts[new, v] += x
        total += x
    state.totals[old] -= total
    state.totals[new] += total
    state.moved[old] += total
    state.moved[new] += total
    state.sizes[old] -= 1
    state.sizes[new] += 1
    state.labels[i] = new


@_inner_sums()
def row_topic_counts(rows, i, beta_rows, weight, s):
    """Write s(d)_k = sum_v d_v phi_vk of row i into `s`, phi being that of the cluster with these weights."""
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
    """Return the change of max J at M + sign d, right to second order, and how far below and above the truth may be.

    `first` is G(d) and `s` is s(d) for the row d; what stands before them belongs to the cluster. With the
    responsibilities of all tokens held fixed, the change is exactly
    ``sign (G(d) - s' eta) + log B(gamma + sign s) - log B(gamma)``, B the multivariate beta function; letting them go
    adds ``s' (A - T) s / 2`` to second order. So the error is of third order in the overlap of the topics alone: none
    where no feature is shared, however small the cluster. Rows D moved since the last refresh enter through
    their drift s(D) in the same way.

    The errors' bounds are no theorem: they are shares of the second-order terms, measured in
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
        start = max(gamma[k] + drift[k], 0.5 * alpha)
        end = max(start + sign * s[k], 0.5 * alpha)
        before += start
        after += end
        change += math.lgamma(end) - math.lgamma(start) - sign * s[k] * math.log(weight[k])
        change += s[k] * (0.5 * along_row + sign * along_drift)
        frozen += 0.5 * s[k] * s[k] / start
        far = (s[k] + abs(drift[k])) / min(end, gamma[k])
        released += s[k] * (0.5 * abs(along_row) + abs(along_drift)) * min(1.0, ERROR_GROWTH * far)
    change -= math.lgamma(after) - math.lgamma(before)
    if math.isnan(change):  # no curvature at this point: leave the move to the exact evaluator
        return 0.0, np.inf, np.inf
    if s.size == 1:
        return change, 0.0, 0.0
    share = (abs(after - before) + moved) / min(after, before)
    error = FROZEN_ERROR * frozen * min(1.0, ERROR_GROWTH * share)
    # The curvature falls along an addition and grows along a removal, so that the expansion errs to one side.
    if sign > 0.0:
        return change, error + released, error + FAR_SIDE * released
    return change, error + FAR_SIDE * released, error + released


@_inner()
def expand_end(state, q, s, sign, first):
    """Call `expansion` for cluster q."""
    return expansion(
        state.alpha,
        state.gamma[q],
        state.weight[q],
        state.coupling[q],
        state.drift[q],
        state.moved[q],
        s,
        sign,
        first,
    )


@_jit()
def exact_changes(state, q, rows, changes):
    """Write max J at M_q + d minus max J at M_q for each row d of `rows` into `changes`, at M_q - d for q's own rows.

    M_q must be fresh. A cluster of few features is evaluated on these and the row's alone, in arrays whose size depends
    on nothing else: what is found for a row does not depend, not even by rounding, on the others.
    """
    n_topics, n_features = state.beta.shape
    support = cluster_support(state.counts[q])
    position = np.empty(0, dtype=np.int32)
    size = -1
    beta = state.beta
    m = np.empty(0)
    mixture = np.empty(0)
    gamma = np.empty(n_topics)
    weight = np.empty(n_topics)
    curvature = np.empty((n_topics, n_topics))
    for b in range(rows.size):
        i = rows[b]
        sign = -1.0 if state.labels[i] == q else 1.0
        start = state.rows.indptr[i]
        stop = state.rows.indptr[i + 1]
        wanted = compact_size(support.size, stop - start, n_features)
        is_compact = wanted < n_features
        if wanted != size:
            size = wanted
            m = np.empty(size)
            mixture = np.empty(size)
            beta = np.empty((n_topics, size)) if is_compact else state.beta
            if is_compact:
                if position.size == 0:
                    position = positions(support, n_features)
                for j in range(support.size):
                    gather_feature(state.beta_rows, support[j], j, beta)
        warm_start(state, i, q, sign, gamma, weight, curvature)
        if is_compact:
            for j in range(support.size):
                m[j] = state.counts[q, support[j]]
        else:
            copy_into(m, state.counts[q])
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
                gather_feature(state.beta_rows, v, used, beta)
                used += 1
        # What a longer row would fill holds no counts here.
        for j in range(used, size):
            m[j] = 0.0
            for k in range(n_topics):
                beta[k, j] = 0.0
        ve_step(m, beta, state.alpha, gamma, weight, curvature, mixture)
        changes[b] = cluster_value(m, state.alpha, gamma, weight, mixture) - state.value[q]


@_inner()
def compact_size(n_support, n_entries, n_features):
    """Return how many features a cluster and a row are evaluated on: those they can have, or all if these are not few.

    Room for the row is a power of two, so that rows of about the same length share their arrays.
    """
    room = 64
    while room < n_entries:
        room *= 2
    return n_support + room if 2 * (n_support + room) < n_features else n_features


@_inner()
def positions(support, n_features):
    """Return the place of each feature among those of a cluster, -1 for the others."""
    position = np.empty(n_features, dtype=np.int32)
    for v in range(n_features):
        position[v] = -1
    for j in range(support.size):
        position[support[j]] = j
    return position


@_inner()
def warm_start(state, i, q, sign, gamma, weight, curvature):
    """Write weights near the maximum at M_q + sign d, d being row i, and A_q; `gamma` is work space.

    The first Newton step needs no pass over the features: its residual is s_q(d).
    """
    for k in range(weight.size):
        copy_into(curvature[k], state.curvature[q, k])
    copy_into(weight, state.weight[q])
    if not math.isnan(curvature[0, 0]):
        row_topic_counts(state.rows, i, state.beta_rows, state.weight[q], gamma)
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
    """Visit the rows of `block` in turn, as in Algorithm 1: evaluate every move exactly, make the best; in place.

    Returns the number of moves.
    """
    n_clusters = state.sizes.size
    change = np.empty(1)
    n_moves = 0
    for b in range(block.size):
        i = block[b]
        old = state.labels[i]
        if state.sizes[old] == 1:
            continue
        removal = 0.0
        best = old
        best_gain = min_gain
        # The removal first. One call serves both ends of a move, or the compiler would copy the whole VE-step.
        for j in range(-1, n_clusters):
            if j != old:
                exact_changes(state, old if j < 0 else j, block[b : b + 1], change)
                if j < 0:
                    removal = change[0] + leave_change(state.sizes, old)
                elif removal + change[0] + join_change(state.sizes, j) > best_gain:
                    best_gain = removal + change[0] + join_change(state.sizes, j)
                    best = j
        if best != old:
            move_row(state, i, best)
            refresh_cluster(state, old, False)
            refresh_cluster(state, best, False)
            n_moves += 1
    return n_moves


@_inner_sums()
def screen_row(rows, i, tables, sums):
    """Write G_q(d) of row i for every cluster into `sums` (2 Q,), then sum_v d_v U_qv for every cluster.

    Both at a time: a row waits for its features' lines of the tables, and these hold both.
    """
    fill(sums, 0.0)
    for p in range(rows.indptr[i], rows.indptr[i + 1]):
        v = rows.indices[p]
        x = float(rows.data[p])
        for c in range(sums.size):
            sums[c] += x * tables[v, c]


@_jit()
def propose(state, size_changes, min_gain, caution, last_caution, block, found):
    """Write the best move of each row of `block` against the frozen state into `found.target`, -1 for none.

    Clusters are dropped by the true bound on their second-order term first; the rest are expanded to second order.
    `found.is_open` marks the rows for which the expansion's error leaves the decision open, against staying or between
    clusters. All bounds on errors are multiplied by `caution`. `found.upper` gets what each row can gain at the most,
    with errors multiplied by `last_caution`; what stands behind these, and is written for rows that are open only in
    part, is explained in `expand_row`. `size_changes` (2, Q) are those of n log n for leaving and joining a cluster.
    """
    n_clusters = state.sizes.size
    sums = np.empty(2 * n_clusters)
    s = np.empty(state.beta.shape[0])
    for b in range(block.size):
        i = block[b]
        found.target[b] = -1
        found.is_open[b] = False
        found.upper[b] = np.inf  # a row that is alone may move when another has joined it
        old = state.labels[i]
        if state.sizes[old] == 1:
            continue
        estimate = found.estimate[b]
        below = found.below[b]
        above = found.above[b]
        best, found.rest[b], top = expand_row(
            state, i, size_changes, min_gain, caution, last_caution, sums, s, estimate, below, above
        )
        found.upper[b] = max(found.rest[b], top)
        if best < 0:
            continue
        floor = max(min_gain, estimate[best] - below[best] - below[old])
        is_certain = floor > min_gain
        has_stale = state.moved[old] > 0.0
        for q in range(n_clusters):
            if q != old and estimate[q] + above[q] + above[old] > floor:
                found.is_open[b] |= q != best or not is_certain
                has_stale |= state.moved[q] > 0.0
        # A stale cluster has no exact value to settle by: the move is proposed as it stands and weighed on applying.
        found.is_open[b] &= not has_stale
        if estimate[best] > min_gain:
            found.target[b] = best


@_inner()
def expand_row(state, i, size_changes, min_gain, caution, last_caution, sums, s, estimate, below, above):
    """Write the second-order gains of row i and how far below and above the truth may be.

    The errors are those of the addition; the removal's own stand at the row's own cluster, and its change in
    `estimate` there. Clusters that cannot gain keep minus infinity. `sums` (2 Q,) and `s` (K,) are work space. Returns
    the best cluster, -1 if none is left, and what can be gained at the most under the last caution: in clusters
    without an estimate, and in the others.
    """
    leave = size_changes[0]
    join = size_changes[1]
    old = state.labels[i]
    screen_row(state.rows, i, state.tables, sums)
    first, spread = sums[: leave.size], sums[leave.size :]
    own = 0.5 * spread[old] ** 2
    # The removal's second-order term grows on the way to M_old - d, at the most to twice its mean (a topic that
    # vanishes with the row); an addition's falls.
    # Being true bounds, these need less caution than the expansions.
    widening = math.sqrt(caution)
    last_widening = math.sqrt(last_caution)
    removal = 2.0 * widening * own - first[old] + leave[old]
    last_removal = 2.0 * last_widening * own - first[old] + leave[old]
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
        if first[q] + join[q] - min_gain + widening * half + removal + above[old] <= 0.0:
            rest = max(rest, first[q] + join[q] + last_widening * half + last_removal)
            continue
        row_topic_counts(state.rows, i, state.beta_rows, state.weight[q], s)
        change, below[q], above[q] = expand_end(state, q, s, 1.0, first[q])
        if state.moved[q] > 0.0 or state.moved[old] > 0.0:
            top = np.inf  # the estimate is ahead of the tables: nothing follows from it when these have caught up
        change += join[q]
        at_most = change + last_caution * above[q]
        below[q] *= caution
        above[q] *= caution
        if change + above[q] - min_gain + removal + above[old] <= 0.0:
            rest = max(rest, at_most + last_removal)
            continue
        if not is_removal_known:
            row_topic_counts(state.rows, i, state.beta_rows, state.weight[old], s)
            removal, below[old], above[old] = expand_end(state, old, s, -1.0, first[old])
            removal += leave[old]
            last_removal = removal + last_caution * above[old]
            below[old] *= caution
            above[old] *= caution
            is_removal_known = True
        estimate[q] = removal + change
        top = max(top, at_most + last_removal)
        if best < 0 or estimate[q] > estimate[best]:
            best = q
    estimate[old] = removal
    return best, rest, top


@_inner_sums()
def first_order(rows, i, tables, q):
    """Return G_q(d) = sum_v d_v C_qv of row i."""
    total = 0.0
    for p in range(rows.indptr[i], rows.indptr[i + 1]):
        total += rows.data[p] * tables[rows.indices[p], q]
    return total


@_jit()
def expanded_gain(state, i, new):
    """Return the second-order gain of moving row i to `new` now, and how far below and above it the truth may be."""
    s = np.empty(state.beta.shape[0])
    old = state.labels[i]
    row_topic_counts(state.rows, i, state.beta_rows, state.weight[old], s)
    removal, below, above = expand_end(state, old, s, -1.0, first_order(state.rows, i, state.tables, old))
    row_topic_counts(state.rows, i, state.beta_rows, state.weight[new], s)
    change, change_below, change_above = expand_end(state, new, s, 1.0, first_order(state.rows, i, state.tables, new))
    gain = removal + leave_change(state.sizes, old) + change + join_change(state.sizes, new)
    return gain, below + change_below, above + change_above


@_jit()
def apply(state, block, target, is_touched, start, min_gain, stale_share):
    """Make the proposed moves that still gain, in the block's order from `start` on, in place, until a refresh is due.

    A move is weighed again when one of its clusters has changed since it was proposed (`is_touched` keeps book, shape
    (Q,)): made if its gain is positive beyond the expansion's error, and left to the next epoch otherwise, which there
    will be. A refresh is due when the counts moved since a cluster's last refresh exceed `stale_share` of its total.
    Returns where to go on, the cluster to refresh first (-1: none, the block is done), and the number of moves.
    """
    n_moves = 0
    for b in range(start, block.size):
        i = block[b]
        old = state.labels[i]
        new = target[b]
        if new < 0 or new == old or state.sizes[old] == 1:
            continue
        if is_touched[old] or is_touched[new] or state.moved[old] > 0.0 or state.moved[new] > 0.0:
            estimate, below, _ = expanded_gain(state, i, new)
            if estimate - below <= min_gain:
                continue
        move_row(state, i, new)
        n_moves += 1
        is_touched[old] = True
        is_touched[new] = True
        # The row stays at this place of the block: it is passed over when the search goes on, having moved.
        if state.moved[old] > stale_share * state.totals[old]:
            return b, old, n_moves
        if state.moved[new] > stale_share * state.totals[new]:
            return b, new, n_moves
    return block.size, -1, n_moves


@_jit()
def assign(state, block, target):
    """Write the cluster that fits each row of `block` best into `target`, all parameters held fixed (C-VEM)."""
    n_clusters = state.sizes.size
    score = np.empty(n_clusters)
    for b in range(block.size):
        i = block[b]
        fill(score, 0.0)
        for p in range(state.rows.indptr[i], state.rows.indptr[i + 1]):
            v = state.rows.indices[p]
            for q in range(n_clusters):
                score[q] += state.rows.data[p] * state.tables[v, q]
        best = state.labels[i]
        top = score[best] + math.log(state.sizes[best])
        for q in range(n_clusters):
            value = score[q] + math.log(state.sizes[q])
            if value > top:
                top = value
                best = q
        target[b] = best


@_jit()
def reassign(state, block, target):
    """Move the rows of `block` to their targets in place, but leave no cluster empty; return the number of moves."""
    n_moves = 0
    for b in range(block.size):
        i = block[b]
        if target[b] != state.labels[i] and state.sizes[state.labels[i]] > 1:
            move_row(state, i, target[b])
            n_moves += 1
    return n_moves


# --- rows beside their clusters ---------------------------------------------------------------------------------


@_jit_sums()
def row_deviations(rows, profiles, concentration, some, labels, deviations):
    """Write sum_v (x_iv - L_i p_v)^2 / L_i of some rows into `deviations`, p being the profile of a row's cluster.

    `profiles` (Q, V) have sums of squares `concentration` (Q,). The square is written out, sum_v x^2 - 2 L sum_v x p +
    L^2 sum_v p^2, so that only entries that are not zero count. Equals
    :func:`mmpca.model.dispersion.plain_deviations`.
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


# --- topics of single rows --------------------------------------------------------------------------------------


@_jit_sums()
def em_block(rows, first, last, theta, beta_rows, row_prior, is_scored, new_theta, counts):
    """Make a step of EM for the rows `first` to `last - 1`; return their log-likelihood before it, or 0 unless asked.

    A token of feature v in row i is of topic k in proportion to theta_ik beta_vk. `new_theta` (N, K) gets the expected
    counts of topics in rows plus `row_prior`, normalised; `counts` (V, K) is increased by those of topics in features,
    each divided by `beta_rows` (V, K). Equals :func:`mmpca.topics.em.plain_step`.
    """
    n_topics = beta_rows.shape[1]
    s = np.empty(n_topics)
    value = 0.0
    product = 1.0
    for i in range(first, last):
        fill(s, 0.0)
        length = 0.0
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            v = rows.indices[p]
            x = rows.data[p]
            mixture = 0.0
            for k in range(n_topics):
                mixture += theta[i, k] * beta_rows[v, k]
            ratio = x / mixture
            for k in range(n_topics):
                s[k] += ratio * beta_rows[v, k]
                counts[v, k] += ratio * theta[i, k]
            length += x
            if is_scored:
                # A logarithm takes as long as the rest of the loop: most of them are taken of products.
                if x <= 4 and mixture > 1e-60:
                    for _ in range(x):
                        product *= mixture
                    if product < 1e-60:
                        value += math.log(product)
                        product = 1.0
                else:
                    value += x * math.log(mixture)
        for k in range(n_topics):
            new_theta[i, k] = (row_prior + theta[i, k] * s[k]) / (length + n_topics * row_prior)
    return value + math.log(product)


@_jit_sums()
def gather_topics(rows, first, last, theta, beta_rows, scale, counts):
    """Increase `counts` (V, K) by the expected counts of topics in features times `scale`, each rounded, of some rows.

    Sums of whole numbers below 2**53 are exact: they do not depend on the order of the rows.
    """
    n_topics = beta_rows.shape[1]
    for i in range(first, last):
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            v = rows.indices[p]
            mixture = 0.0
            for k in range(n_topics):
                mixture += theta[i - first, k] * beta_rows[v, k]
            ratio = scale * rows.data[p] / mixture
            for k in range(n_topics):
                counts[v, k] += math.floor(ratio * theta[i - first, k] * beta_rows[v, k] + 0.5)


@_jit_sums()
def gather_products(rows, some, basis, scale, counts):
    """Increase `counts` (V, D) by each row's counts times its mean of `basis` (V, D) times `scale`, rounded.

    Sums of whole numbers below 2**53 are exact: they do not depend on the order of the rows.
    """
    mean = np.empty(basis.shape[1])
    for i in some:
        _mean_of(rows, i, basis, mean)
        for d in range(len(mean)):
            mean[d] = math.floor(mean[d] * scale + 0.5)
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            for d in range(len(mean)):
                counts[rows.indices[p], d] += rows.data[p] * mean[d]


@_jit_sums()
def project(rows, some, basis, points):
    """Set each of the `points` (n, D) to the mean of `basis` (V, D) over the counts of a row."""
    for at in range(len(some)):
        _mean_of(rows, some[at], basis, points[at])


@_jit_sums()
def gather_nearest(rows, some, basis, centres, counts):
    """Increase a column of `counts` (V, K) by the counts of each row: that of the centre (K, D) nearest to it."""
    mean = np.empty(basis.shape[1])
    for i in some:
        _mean_of(rows, i, basis, mean)
        nearest, least = 0, np.inf
        for k in range(len(centres)):
            distance = 0.0
            for d in range(len(mean)):
                distance += (mean[d] - centres[k, d]) ** 2
            if distance < least:
                nearest, least = k, distance
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            counts[rows.indices[p], nearest] += rows.data[p]


@_inner_sums()
def _mean_of(rows, i, basis, mean):
    """Set `mean` (D,) to the mean of `basis` (V, D) over the counts of a row."""
    mean[:] = 0.0
    total = 0.0
    for p in range(rows.indptr[i], rows.indptr[i + 1]):
        total += rows.data[p]
        for d in range(len(mean)):
            mean[d] += rows.data[p] * basis[rows.indices[p], d]
    if total > 0.0:
        mean /= total


@_jit_sums()
def fit_shares(rows, first, last, beta_rows, row_prior, tol, max_iter, own, theta):
    """Repeat the step of :func:`em_block` for each row alone, the topics held fixed, from equal shares; in place.

    `own` (n, K) is work space for rows of up to n entries; its type is that of the arithmetic.
    """
    n_topics = beta_rows.shape[1]
    real = own.dtype.type
    count = np.empty(len(own), own.dtype)
    share = np.empty(n_topics, own.dtype)
    s = np.empty(n_topics, own.dtype)
    for i in range(first, last):
        n_known, length = gather_row(rows, i, beta_rows, own, count)
        scale = real(1.0 / (length + n_topics * row_prior))
        fill(share, real(1.0 / n_topics))
        for _ in range(max_iter):
            fill(s, real(0.0))
            for j in range(n_known):
                mixture = real(0.0)
                for k in range(n_topics):
                    mixture += share[k] * own[j, k]
                if mixture > 0.0:  # it may be too small a number
                    ratio = count[j] / mixture
                    for k in range(n_topics):
                        s[k] += ratio * own[j, k]
            change = real(0.0)
            for k in range(n_topics):
                new = (real(row_prior) + share[k] * s[k]) * scale
                change = max(change, abs(new - share[k]))
                share[k] = new
            if change <= tol:
                break
        total = 0.0  # in double precision: shares sum to one
        for k in range(n_topics):
            total += share[k]
        for k in range(n_topics):
            theta[i, k] = share[k] / total


@_inner_sums()
def gather_row(rows, i, beta_rows, own, count):
    """Write the counts of a row into `count` and their topics into `own`; return how many, and their sum.

    A feature that no topic knows says nothing, and is left out.
    """
    n_known = 0
    length = 0.0
    for p in range(rows.indptr[i], rows.indptr[i + 1]):
        v = rows.indices[p]
        known = 0.0
        for k in range(beta_rows.shape[1]):
            own[n_known, k] = beta_rows[v, k]
            known += beta_rows[v, k]
        if known > 0.0:
            count[n_known] = rows.data[p]
            length += rows.data[p]
            n_known += 1
    return n_known, length


@_jit_sums()
def fold_in(rows, block, beta_rows, alpha, tol, max_iter, gamma):
    """Write the parameters of q(theta_i) of each row of `block`, the topics held fixed, into `gamma` (N, K)."""
    n_topics = beta_rows.shape[1]
    longest = 0
    for i in block:
        longest = max(longest, rows.indptr[i + 1] - rows.indptr[i])
    own = np.empty((longest, n_topics))
    count = np.empty(longest)
    weight = np.empty(n_topics)
    s = np.empty(n_topics)
    for i in block:
        n_known, length = gather_row(rows, i, beta_rows, own, count)
        for k in range(n_topics):
            gamma[i, k] = alpha + length / n_topics
        for _ in range(max_iter):
            topic_weights(gamma[i], weight)
            fill(s, 0.0)
            for j in range(n_known):
                mixture = 0.0
                for k in range(n_topics):
                    mixture += weight[k] * own[j, k]
                if mixture > 0.0:  # it may be too small a number
                    ratio = count[j] / mixture
                    for k in range(n_topics):
                        s[k] += ratio * own[j, k]
            largest = 0.0
            for k in range(n_topics):
                s[k] = alpha + s[k] * weight[k]
                largest = max(largest, abs(s[k] - gamma[i, k]))
                gamma[i, k] = s[k]
            if largest <= tol * (length + 1.0):
                break
