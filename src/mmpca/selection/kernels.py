"""Compiled functions of the mixture over topic counts; see :mod:`mmpca.selection.mixture`.

They follow the rules of :mod:`mmpca.kernels`. None calls a function of another file, because numba's disk cache does
not notice an edited callee there; hence further copies of the special functions.
"""

import math

import numpy as np

from mmpca.kernels import _inner, _inner_sums, _jit

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
LOG_2 = math.log(2.0)
# Bits of a double-precision number: mask of the fraction, fraction of sqrt(2), and the exponent bits of 1/2 and of 1.
FRACTION, FRACTION_OF_ROOT = 0xFFFFFFFFFFFFF, 0x6A09E667F3BCD
BITS_OF_HALF, BITS_OF_ONE = 0x3FE0000000000000, 0x3FF0000000000000
LONGEST_STEP = 1.5  # of log(alpha)
LARGE, SMALL = 1e250, 1e-250  # a product between them can take one more factor without overflow


@_inner()
def log_gamma(x):
    """Return the logarithm of the gamma function, x > 0."""
    raised = 1.0
    if x < 8.0:
        y = x * (x + 7.0)
        raised = y * (y + 6.0) * ((y + 10.0) * (y + 12.0))
        x += 8.0
    r = 1.0 / x
    series = r * (1 / 12 - r * r * (1 / 360 - r * r * (1 / 1260 - r * r / 1680)))
    return (x - 0.5) * math.log(x) - x + HALF_LOG_2PI + series - math.log(raised)


@_inner_sums()
def sum_log_gamma(work, bits):
    """Return the sum of :func:`log_gamma` of the first row of `work` (4, K), all of which is overwritten.

    The search for the number of clusters spends half of its time here, so the loops have neither branches nor calls,
    and the compiler vectorizes them. If x < 8, gamma(x) = gamma(x + 8) / (x (x + 1) ... (x + 7)), where the denominator
    is a polynomial in x (x + 7). The exponent of x and its mantissa m are read from `bits`, the memory of `work` viewed
    as integers; log(m) = 2 artanh(s) with s = (m - 1) / (m + 1) has a short series, because m is close to 1.
    """
    n_topics = work.shape[1]
    for k in range(n_topics):
        x = work[0, k]
        y = x * (x + 7.0)
        work[1, k] = y * (y + 6.0) * ((y + 10.0) * (y + 12.0)) if x < 8.0 else 1.0
        work[0, k] = x + 8.0 if x < 8.0 else x
    for k in range(n_topics):
        is_upper = (bits[0, k] & FRACTION) > FRACTION_OF_ROOT  # m between sqrt(1/2) and 1, instead of 1 and sqrt(2)
        bits[2, k] = (bits[0, k] & FRACTION) | (BITS_OF_HALF if is_upper else BITS_OF_ONE)
        bits[3, k] = (bits[0, k] >> 52) - (1022 if is_upper else 1023)
    total = 0.0
    for k in range(n_topics):
        x, m = work[0, k], work[2, k]
        s = (m - 1.0) / (m + 1.0)
        z = s * s
        artanh = 1 / 11 + z * (1 / 13 + z * (1 / 15 + z / 17))
        artanh = s * (1.0 + z * (1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9 + z * artanh)))))
        log = bits[3, k] * LOG_2 + 2.0 * artanh
        r = 1.0 / x
        series = r * (1 / 12 - r * r * (1 / 360 - r * r * (1 / 1260 - r * r / 1680)))
        total += (x - 0.5) * log - x + HALF_LOG_2PI + series
    product = 1.0  # one logarithm for several topics
    for k in range(n_topics):
        product *= work[1, k]
        if product > LARGE or product < SMALL:
            total -= math.log(product)
            product = 1.0
    return total - math.log(product)


@_inner()
def digamma_trigamma(x):
    """Return the first two derivatives of the logarithm of the gamma function, x > 0.

    With P = x (x + 1) ... (x + 9), the sum of 1 / (x + j) is P' / P, and that of their squares is (P' / P)^2 - P'' / P:
    one division instead of twenty. P is a polynomial in y = x (x + 9), whose derivative is 2 x + 9.
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
    work = np.empty((4, n_topics))
    bits = work.view(np.int64)
    total, base = np.empty(n_clusters), np.empty(n_clusters)
    for q in range(n_clusters):
        total[q] = 0.0
        for k in range(n_topics):
            work[0, k] = alphas[q, k]
            total[q] += alphas[q, k]
        base[q] = log_gamma(total[q]) - sum_log_gamma(work, bits)
    for i in range(n_rows):
        for q in range(n_clusters):
            if not is_active[i, q]:
                joint[i, q] = -np.inf
                continue
            for k in range(n_topics):
                work[0, k] = alphas[q, k] + counts[i, k]
            joint[i, q] = base[q] - log_gamma(total[q] + totals[i]) + sum_log_gamma(work, bits)


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
