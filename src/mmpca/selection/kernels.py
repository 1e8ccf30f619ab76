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
LARGE, SMALL = 1e250, 1e-250  # products between them have room for one more factor


@_inner()
def log_gamma_parts(x):
    """Return a and b such that log(gamma(x)) = a - log(b), x > 0.

    Callers multiply several b and take one logarithm. b is x (x + 1) ... (x + 7), or 1 if x is not small, in terms of
    y = x (x + 7): a loop that ends as soon as x is large would run for a different number of steps at each call, and
    the processor's wrong guesses would take longer than the steps.
    """
    raised = 1.0
    if x < 8.0:
        y = x * (x + 7.0)
        raised = y * (y + 6.0) * ((y + 10.0) * (y + 12.0))
        x += 8.0
    r = 1.0 / x
    r2 = r * r
    series = r * (1 / 12 - r2 * (1 / 360 - r2 * (1 / 1260 - r2 / 1680)))
    return (x - 0.5) * math.log(x) - x + HALF_LOG_2PI + series, raised


@_inner()
def log_gamma(x):
    """Return the logarithm of the gamma function, x > 0."""
    value, raised = log_gamma_parts(x)
    return value - math.log(raised)


@_inner()
def digamma_trigamma(x):
    """Return the first two derivatives of the logarithm of the gamma function, x > 0.

    With P = x (x + 1) ... (x + 9), the sum of 1 / (x + j) is P' / P, and that of their squares (P' / P)^2 - P'' / P:
    one division in place of twenty. P is a polynomial in y = x (x + 9), with derivative 2 x + 9.
    """
    sum_inverses, sum_squares = 0.0, 0.0
    if x < 10.0:
        y, along = x * (x + 9.0), 2.0 * x + 9.0
        product, slope, bend = y, 1.0, 0.0  # P and its derivatives in y
        for j in range(1, 5):
            factor = y + j * (9.0 - j)
            bend = bend * factor + 2.0 * slope
            slope = slope * factor + product
            product *= factor
        inverse = 1.0 / product
        slope *= inverse
        sum_inverses = along * slope
        sum_squares = along * along * (slope * slope - bend * inverse) - 2.0 * slope
        x += 10.0
    r = 1.0 / x
    r2 = r * r
    first = math.log(x) - 0.5 * r - r2 * (1 / 12 - r2 * (1 / 120 - r2 * (1 / 252 - r2 / 240)))
    second = r + 0.5 * r2 + r * r2 * (1 / 6 - r2 * (1 / 30 - r2 * (1 / 42 - r2 / 30)))
    return first - sum_inverses, second + sum_squares


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
            value, raised = base_total[q] - log_gamma(total[q] + totals[i]), 1.0
            for k in range(n_topics):
                if counts[i, k] > NEGLIGIBLE:
                    part, factor = log_gamma_parts(alphas[q, k] + counts[i, k])
                    value += part - base[q, k]
                    raised *= factor
                    if raised > LARGE or raised < SMALL:
                        value -= math.log(raised)
                        raised = 1.0
            joint[i, q] = value - math.log(raised)


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
            first, second = digamma_trigamma(total + totals[i])
            common_slope += w * first
            common_bend -= w * second
            for k in range(n_topics):
                first, second = digamma_trigamma(alphas[q, k] + counts[i, k])
                slope[k] += w * first
                bend[k] += w * second
        first, second = digamma_trigamma(total)
        common_slope -= sum_weights * first
        common_bend += sum_weights * second
        along, across = 0.0, 0.0
        for k in range(n_topics):
            a = alphas[q, k]
            first, second = digamma_trigamma(a)
            slope[k] -= sum_weights * first
            bend[k] -= sum_weights * second
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
