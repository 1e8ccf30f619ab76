"""Compiled functions of the topics: EM, sums over rows that are exact in any order, and topic shares of rows.

They follow the rules of :mod:`mmpca.kernels`: no checks of the input, and no slice assignments, which take seconds to
compile. Each names its NumPy equivalent, in which X is the dense matrix of the counts `rows`. None calls a function of
another file, because numba's disk cache does not notice an edited callee there; hence a second :func:`digamma`.
"""

import math

import numpy as np

from mmpca.kernels import _inner_sums, _jit_sums

LEAST_WEIGHT = 1e-300  # exp(eta) of a topic that a row does not use: its logarithm must stay finite


@_inner_sums()
def fill(x, value):
    """Set every entry of a vector, in place."""
    for j in range(x.size):
        x[j] = value


@_jit_sums()
def digamma(x):
    """Return the logarithmic derivative of the gamma function, x > 0; equals :func:`scipy.special.digamma`."""
    shift = 0.0
    while x < 10.0:
        shift -= 1.0 / x
        x += 1.0
    r = 1.0 / (x * x)
    series = r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r * (1 / 132 - r * 691 / 32760)))))
    return shift + math.log(x) - 0.5 / x - series


@_inner_sums()
def topic_weights(gamma, weight):
    """Write exp(digamma(gamma) - digamma(sum gamma)) into `weight` (K,)."""
    total = 0.0
    for k in range(gamma.size):
        total += gamma[k]
    base = digamma(total)
    for k in range(gamma.size):
        weight[k] = max(math.exp(digamma(gamma[k]) - base), LEAST_WEIGHT)


@_jit_sums()
def em_block(rows, first, last, theta, beta_rows, row_prior, is_scored, new_theta, counts):
    """Make a step of EM for the rows `first` to `last - 1`; return their log-likelihood before it (0 unless is_scored).

    The probability that a token of feature v in row i belongs to topic k is proportional to theta_ik beta_vk. Writes
    the normalized sums of expected counts and `row_prior` into `new_theta` (N, K), and adds the expected counts of
    features, divided by `beta_rows` (V, K), to `counts` (V, K). Equals :func:`mmpca.topics.em.plain_step`.
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
                # A logarithm takes as long as the rest of the loop, so take most of them of products.
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
    """Add the rounded expected counts of features in topics, times `scale`, of some rows to `counts` (V, K), in place.

    `theta` (last - first, K) are the shares of these rows. Sums of whole numbers below 2**53 are exact in any order.
    Equals `beta_rows * (X / (theta @ beta_rows.T)).T @ theta`, except for scale and rounding.
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
    """Add the outer products of rows and their rounded positions, times `scale`, to `counts` (V, D), in place.

    Equals `X[some].T @ floor(scale * points + 0.5)`, with the points of :func:`project`; exact in any order.
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
    """Write the position of each row, the mean of `basis` (V, D) over its counts, into `points` (n, D).

    Equals `X[some] @ basis / X[some].sum(axis=1, keepdims=True)`.
    """
    for at in range(len(some)):
        _mean_of(rows, some[at], basis, points[at])


@_jit_sums()
def gather_nearest(rows, some, basis, centers, counts):
    """Add each row to the column of `counts` (V, K) of the center (K, D) nearest to its position, in place.

    Equals `X[some].T @ (nearest[:, None] == arange(K))`, with `nearest` the closest center to each point of
    :func:`project`.
    """
    mean = np.empty(basis.shape[1])
    for i in some:
        _mean_of(rows, i, basis, mean)
        nearest, least = 0, np.inf
        for k in range(len(centers)):
            distance = 0.0
            for d in range(len(mean)):
                distance += (mean[d] - centers[k, d]) ** 2
            if distance < least:
                nearest, least = k, distance
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            counts[rows.indices[p], nearest] += rows.data[p]


@_inner_sums()
def _mean_of(rows, i, basis, mean):
    """Write the mean of `basis` (V, D) over the counts of a row into `mean` (D,)."""
    fill(mean, 0.0)
    total = 0.0
    for p in range(rows.indptr[i], rows.indptr[i + 1]):
        total += rows.data[p]
        for d in range(len(mean)):
            mean[d] += rows.data[p] * basis[rows.indices[p], d]
    if total > 0.0:
        for d in range(len(mean)):
            mean[d] /= total


@_jit_sums()
def fit_shares(rows, first, last, beta_rows, row_prior, tol, max_iter, own, theta):
    """Write the most probable shares of the rows `first` to `last - 1` under fixed topics into `theta` (N, K).

    Repeats the step of :func:`em_block` for each row, from equal shares. `own` (n, K) is work space for rows with up to
    n entries; its type is that of the arithmetic. Equals :func:`mmpca.topics.em.plain_fitted_shares`.
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
                if mixture > 0.0:  # it may underflow
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
        total = 0.0  # in double precision, to make the shares sum to one
        for k in range(n_topics):
            total += share[k]
        for k in range(n_topics):
            theta[i, k] = share[k] / total


@_inner_sums()
def gather_row(rows, i, beta_rows, own, count):
    """Write the known counts of a row into `count` and their topics into `own`; return their number and their sum.

    Features with probability zero in all topics are left out. Equals `x[is_known]`, `beta_rows[is_known]`.
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
    """Write the parameters of q(theta_i) under fixed topics, for each row of `block`, into `gamma` (N, K).

    Normalized, they equal :func:`mmpca.topics.em.plain_topic_shares`.
    """
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
            gamma[i, k] = alpha[k] + length / n_topics
        for _ in range(max_iter):
            topic_weights(gamma[i], weight)
            fill(s, 0.0)
            for j in range(n_known):
                mixture = 0.0
                for k in range(n_topics):
                    mixture += weight[k] * own[j, k]
                if mixture > 0.0:  # it may underflow
                    ratio = count[j] / mixture
                    for k in range(n_topics):
                        s[k] += ratio * own[j, k]
            largest = 0.0
            for k in range(n_topics):
                s[k] = alpha[k] + s[k] * weight[k]
                largest = max(largest, abs(s[k] - gamma[i, k]))
                gamma[i, k] = s[k]
            if largest <= tol * (length + 1.0):
                break
