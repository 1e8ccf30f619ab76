"""Compiled functions of the mixture over topic counts; see :mod:`mmpca.selection.mixture`.

They follow the rules of :mod:`mmpca.kernels`. None calls a function of another file, because numba's disk cache does
not notice an edited callee there; hence further copies of the special functions.
"""

import math

import numpy as np

from mmpca.kernels import _inner, _jit

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
NEGLIGIBLE = 1e-9  # counts
LONGEST_STEP = 1.5  # of log(alpha)


@_inner()
def log_gamma(x):
    """Return the logarithm of the gamma function, x > 0."""
    product = 1.0
    while x < 8.0:
        product *= x
        x += 1.0
    r = 1.0 / (x * x)
    series = (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r / 1680))) / x
    return (x - 0.5) * math.log(x) - x + HALF_LOG_2PI + series - math.log(product)


@_inner()
def digamma(x):
    """Return the derivative of :func:`log_gamma`, x > 0."""
    shift = 0.0
    while x < 10.0:
        shift -= 1.0 / x
        x += 1.0
    r = 1.0 / (x * x)
    return shift + math.log(x) - 0.5 / x - r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r / 240)))


@_inner()
def trigamma(x):
    """Return the derivative of :func:`digamma`, x > 0."""
    shift = 0.0
    while x < 10.0:
        shift += 1.0 / (x * x)
        x += 1.0
    r = 1.0 / (x * x)
    return shift + 1.0 / x + 0.5 * r + r * (1 / 6 - r * (1 / 30 - r * (1 / 42 - r / 30))) / x


@_jit()
def log_densities(counts, totals, alphas, is_active, joint):
    """Write the log density of each active row and cluster into `joint` (N, Q), -inf for the others.

    counts: (N, K), totals: (N,), alphas: (Q, K), is_active: (N, Q). Equals
    :func:`mmpca.selection.mixture.plain_log_densities`.
    """
    n_rows, n_topics = counts.shape
    n_clusters = len(alphas)
    base, total, base_total = np.empty(alphas.shape), np.empty(n_clusters), np.empty(n_clusters)
    for q in range(n_clusters):
        total[q] = 0.0
        for k in range(n_topics):
            base[q, k] = log_gamma(alphas[q, k])
            total[q] += alphas[q, k]
        base_total[q] = log_gamma(total[q])
    for i in range(n_rows):
        for q in range(n_clusters):
            if not is_active[i, q]:
                joint[i, q] = -np.inf
                continue
            value = base_total[q] - log_gamma(total[q] + totals[i])
            for k in range(n_topics):
                if counts[i, k] > NEGLIGIBLE:
                    value += log_gamma(alphas[q, k] + counts[i, k]) - base[q, k]
            joint[i, q] = value


@_jit()
def newton_step(counts, totals, weights, alphas, most, step):
    """Write a Newton step in log(alpha) of the weighted log-likelihood of each cluster into `step` (Q, K).

    counts: (N, K), totals: (N,), weights: (N, Q), alphas: (Q, K). Rows with a weight below `most` are left out. Equals
    :func:`mmpca.selection.mixture.plain_newton_step`.
    """
    n_rows, n_topics = counts.shape
    slope, bend = np.empty(n_topics), np.empty(n_topics)
    for q in range(len(alphas)):
        total, common_slope, common_bend, sum_weights = 0.0, 0.0, 0.0, 0.0
        for k in range(n_topics):
            total += alphas[q, k]
            slope[k] = 0.0
            bend[k] = 0.0
        for i in range(n_rows):
            w = weights[i, q]
            if w < most:
                continue
            sum_weights += w
            common_slope += w * digamma(total + totals[i])
            common_bend -= w * trigamma(total + totals[i])
            for k in range(n_topics):
                slope[k] += w * digamma(alphas[q, k] + counts[i, k])
                bend[k] += w * trigamma(alphas[q, k] + counts[i, k])
        common_slope -= sum_weights * digamma(total)
        common_bend += sum_weights * trigamma(total)
        along, across = 0.0, 0.0
        for k in range(n_topics):
            a = alphas[q, k]
            slope[k] -= sum_weights * digamma(a)
            bend[k] -= sum_weights * trigamma(a)
            # The negative diagonal of the Hessian; where it has the wrong sign, its concave part.
            concave = max(a * common_slope, 1e-12)
            curvature = concave - a * slope[k] - a * a * bend[k]
            if curvature <= 1e-12:
                curvature = concave
            gradient = a * (slope[k] - common_slope)
            slope[k] = gradient / curvature
            bend[k] = a / curvature
            along += a * slope[k]
            across += a * bend[k]
        # The rest of the Hessian has rank one: Sherman and Morrison.
        divisor = 1.0 - common_bend * across
        share = common_bend / divisor if divisor > 0.0 else 0.0
        for k in range(n_topics):
            step[q, k] = min(max(slope[k] + bend[k] * share * along, -LONGEST_STEP), LONGEST_STEP)
