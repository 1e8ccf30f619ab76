"""Ready-made parameters for the simulator: the paper's design, and random topics.

The topics of the paper's design are the word frequencies of four short articles, written for this project, on unrelated
subjects. They hardly share words, as in the paper: the simulated data are hard because clusters mix the topics, not
because topics resemble each other.
"""

import re
from collections import Counter
from functools import cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from mmpca.parameters import Rule, check_parameters, integer, real
from mmpca.simulate.generative import Array, RandomState, Simulation, as_generator, simulate_mmpca

ARTICLES = ("royal_birth", "black_holes", "uk_politics", "cancer_medicine")
_SHORTEST_WORD = 3

_POSITIVE = Rule(lambda value: real(0).holds(value) and value > 0, "a finite number above 0")
_BALANCE = Rule(lambda value: real(0, 1).holds(value) and value > 0, "a number above 0 and at most 1")


def paper_design(
    n_samples: int = 400,
    length: int = 250,
    noise: float = 0.0,
    balance: float = 1.0,
    random_state: RandomState = None,
) -> Simulation:
    """Draw documents from the paper's simulation: six clusters that mix four topics.

    The topics are the word frequencies of four articles that hardly share any words. Four clusters prefer one topic
    each, the fifth prefers topics 0 and 2, the sixth topics 1 and 3.

    Parameters
    ----------
    n_samples : int, default=400
        Number of documents (the paper's N).
    length : int, default=250
        Words in each document (the paper's L).
    noise : float, default=0.0
        The probability that a word's topic is drawn uniformly (the paper's epsilon).
    balance : float, default=1.0
        How even the cluster sizes are (the paper's lambda), above 0 and at most 1: cluster q = 1, ..., 6 has a weight
        proportional to ``balance ** (6 - q)``; 1 gives equal weights.
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
    check_parameters({"length": length, "balance": balance}, {"length": integer(1), "balance": _BALANCE})
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


def _paper_cluster_topics() -> Array:
    """Return the paper's theta, (6, 4), normalized: its printed rows are rounded and do not all sum to one."""
    one_topic = [np.roll([0.5, 0.17, 0.17, 0.17], k) for k in range(4)]
    two_topics = [np.roll([0.33, 0.17, 0.33, 0.17], k) for k in range(2)]
    rows = np.array(one_topic + two_topics)
    return rows / rows.sum(axis=1, keepdims=True)


def sparse_topics(
    n_topics: int,
    n_features: int,
    concentration: float = 0.05,
    random_state: RandomState = None,
) -> Array:
    """Draw topics from a symmetric Dirichlet distribution.

    Parameters
    ----------
    n_topics, n_features : int
        Number of topics and of features.
    concentration : float, default=0.05
        The parameter of the Dirichlet distribution; any positive number. The smaller it is, the fewer features carry
        most of a topic's probability.
    random_state : int, Generator, RandomState or None, default=None
        The same integer gives the same topics.

    Returns
    -------
    topics : ndarray of shape (n_topics, n_features)
        Rows sum to one. All entries are positive, so their logarithms are finite.

    Examples
    --------
    >>> from mmpca.simulate import sparse_topics
    >>> topics = sparse_topics(2, 1000, random_state=0)
    >>> bool((topics > 0).all())
    True
    >>> (topics > 1e-3).sum(axis=1)  # a topic uses few of the features
    array([117, 129])
    """
    check_parameters(
        {"n_topics": n_topics, "n_features": n_features, "concentration": concentration},
        {"n_topics": integer(1), "n_features": integer(1), "concentration": _POSITIVE},
    )
    log_weights = _log_gamma_draws(as_generator(random_state), float(concentration), (n_topics, n_features))
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    topics = weights / weights.sum(axis=1, keepdims=True)
    # Draws below the range of floats become the smallest normal number, which changes no sum.
    return np.maximum(topics, np.finfo(np.float64).tiny)


def _log_gamma_draws(rng: np.random.Generator, concentration: float, shape: tuple[int, int]) -> Array:
    """Draw logarithms of gamma variables; the variables themselves could underflow to zero.

    If G ~ Gamma(a + 1) and U is uniform, then G U^(1/a) ~ Gamma(a); and -log U is exponential.
    """
    # Keeps the division from overflowing; topics are single features long before this limit matters.
    a = max(concentration, 1e-300)
    return np.log(rng.standard_gamma(a + 1, shape)) - rng.standard_exponential(shape) / a


# --- the articles -----------------------------------------------------------------------------------------------


def read_article(name: str) -> str:
    """Return the text of one of the `ARTICLES`.

    Examples
    --------
    >>> read_article("black_holes")[:39]
    'A black hole is a region of space where'
    """
    return files("mmpca.simulate").joinpath("articles", f"{name}.txt").read_text(encoding="utf-8")


def tokenize(text: str) -> list[str]:
    """Split a text into lower-case words of three letters or more, without English stop words.

    Examples
    --------
    >>> tokenize("The queen and the King's 2 dogs.")
    ['queen', 'king', 'dogs']
    """
    words = re.findall(r"[a-z]+", text.lower())
    return [word for word in words if len(word) >= _SHORTEST_WORD and word not in ENGLISH_STOP_WORDS]


@cache
def article_topics() -> tuple[Array, npt.NDArray[np.str_]]:
    """Return the word frequencies of each article, (4, n_words), and the words of all four in alphabetical order.

    Both arrays are read-only, because they are cached.

    Examples
    --------
    >>> topics, words = article_topics()
    >>> [str(words[row.argmax()]) for row in topics]
    ['baby', 'black', 'party', 'cells']
    """
    word_counts = [Counter(tokenize(read_article(name))) for name in ARTICLES]
    words = np.array(sorted(set().union(*word_counts)))
    counts = np.array([[counter[word] for word in words.tolist()] for counter in word_counts], dtype=np.float64)
    topics = counts / counts.sum(axis=1, keepdims=True)
    for array in (topics, words):
        array.setflags(write=False)
    return topics, words
