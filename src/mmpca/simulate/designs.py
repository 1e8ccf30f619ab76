"""Ready-made parameters for the simulator: the paper's design and random topics."""

import numpy as np
import numpy.typing as npt

from mmpca.simulate.checks import (
    RandomState,
    as_generator,
    check_positive_integer,
    check_positive_number,
)
from mmpca.simulate.corpus import article_topics
from mmpca.simulate.generative import Simulation, simulate_mmpca


def paper_design(
    n_samples: int = 400,
    length: int = 250,
    noise: float = 0.0,
    balance: float = 1.0,
    random_state: RandomState = None,
) -> Simulation:
    """Draw documents from the paper's simulation: six clusters that mix four topics.

    The topics are the word frequencies of four articles, of which two seldom share a word. Four clusters
    prefer one topic each, the fifth prefers topics 0 and 2, the sixth topics 1 and 3.

    Parameters
    ----------
    n_samples : int, default=400
        Number of documents (the paper's N).
    length : int, default=250
        Words in each document (the paper's L).
    noise : float, default=0.0
        The probability that the topic of a word is uniform (the paper's epsilon).
    balance : float, default=1.0
        How even the clusters are (the paper's lambda), above 0 and at most 1: cluster q of 1, ..., 6 has a
        weight proportional to ``balance ** (6 - q)``, so that 1 gives equal weights.
    random_state : int, Generator, RandomState or None, default=None
        The same integer gives the same data.

    Returns
    -------
    Simulation
        The counts `X`, the true `labels`, and the parameters.

    Examples
    --------
    >>> from mmpca.simulate import paper_design
    >>> data = paper_design(n_samples=100, noise=0.2, random_state=0)
    >>> data.X.shape
    (100, 917)
    >>> data.cluster_topics.round(2)
    array([[0.5 , 0.17, 0.17, 0.17],
           [0.17, 0.5 , 0.17, 0.17],
           [0.17, 0.17, 0.5 , 0.17],
           [0.17, 0.17, 0.17, 0.5 ],
           [0.33, 0.17, 0.33, 0.17],
           [0.17, 0.33, 0.17, 0.33]])
    """
    check_positive_integer(length, name="length")
    balance = check_positive_number(balance, name="balance", at_most=1.0)
    topics, words = article_topics()
    cluster_topics = _paper_cluster_topics()
    n_clusters = len(cluster_topics)
    return simulate_mmpca(
        n_samples,
        topics=topics,
        cluster_topics=cluster_topics,
        weights=balance ** np.arange(n_clusters - 1, -1, -1),
        lengths=length,
        noise=noise,
        feature_names=words,
        random_state=random_state,
    )


def _paper_cluster_topics() -> npt.NDArray[np.float64]:
    """Build the paper's theta, (6, 4); its printed rows are rounded and do not all sum to one."""
    one_topic = [np.roll([0.5, 0.17, 0.17, 0.17], k) for k in range(4)]
    two_topics = [np.roll([0.33, 0.17, 0.33, 0.17], k) for k in range(2)]
    rows = np.array(one_topic + two_topics)
    return rows / rows.sum(axis=1, keepdims=True)


def sparse_topics(
    n_topics: int,
    n_features: int,
    concentration: float = 0.05,
    random_state: RandomState = None,
) -> npt.NDArray[np.float64]:
    """Draw topics from a symmetric Dirichlet distribution.

    Parameters
    ----------
    n_topics, n_features : int
        Number of topics, and of features that each is a distribution over.
    concentration : float, default=0.05
        The parameter of the Dirichlet distribution. The smaller, the fewer features share a topic's mass;
        any positive number is safe.
    random_state : int, Generator, RandomState or None, default=None
        The same integer gives the same topics.

    Returns
    -------
    topics : ndarray of shape (n_topics, n_features)
        Rows sum to one. All entries are positive, if only just, so that their logarithm is finite.

    Examples
    --------
    >>> from mmpca.simulate import sparse_topics
    >>> topics = sparse_topics(2, 1000, random_state=0)
    >>> bool((topics > 0).all())
    True
    >>> (topics > 1e-3).sum(axis=1)  # a topic uses few of the features
    array([117, 129])
    """
    shape = (
        check_positive_integer(n_topics, name="n_topics"),
        check_positive_integer(n_features, name="n_features"),
    )
    concentration = check_positive_number(concentration, name="concentration")
    log_weights = _log_gamma_draws(as_generator(random_state), concentration, shape)
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    topics = weights / weights.sum(axis=1, keepdims=True)
    # Draws below the range of floats become the smallest normal number: no sum changes by that.
    return np.maximum(topics, np.finfo(np.float64).tiny)


def _log_gamma_draws(rng: np.random.Generator, concentration: float, shape: tuple[int, int]) -> npt.NDArray[np.float64]:
    """Draw logarithms of gamma variables, which would underflow to zero themselves.

    If G ~ Gamma(a + 1) and U is uniform, then G U^(1/a) ~ Gamma(a); and -log U is exponential.
    """
    # The division must not overflow; topics are single features long before this bound matters.
    a = max(concentration, 1e-300)
    return np.log(rng.standard_gamma(a + 1, shape)) - rng.standard_exponential(shape) / a
