"""Four short articles on unrelated subjects, and their word frequencies as topics.

The articles were written for this project. Each one uses words of its own, so that the topics have a clear
block structure: what makes the simulated data hard is the mixing of the topics, not their resemblance.
"""

import re
from collections import Counter
from functools import cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

ARTICLES = ("royal_birth", "black_holes", "uk_politics", "cancer_medicine")

_SHORTEST_WORD = 3


def read_article(name: str) -> str:
    """Read the raw text of one of the `ARTICLES`.

    Examples
    --------
    >>> read_article("black_holes")[:39]
    'A black hole is a region of space where'
    """
    return files("mmpca.simulate").joinpath("articles", f"{name}.txt").read_text(encoding="utf-8")


def tokenise(text: str) -> list[str]:
    """Split a text into lower-case words of three letters or more, without English stop words.

    Examples
    --------
    >>> tokenise("The queen and the King's 2 dogs.")
    ['queen', 'king', 'dogs']
    """
    words = re.findall(r"[a-z]+", text.lower())
    return [word for word in words if len(word) >= _SHORTEST_WORD and word not in ENGLISH_STOP_WORDS]


@cache
def article_topics() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.str_]]:
    """Compute the word frequencies of each article over the vocabulary of all four.

    Returns
    -------
    topics : ndarray of shape (4, n_words)
        One article per row, in the order of `ARTICLES`; rows sum to one. Read-only, because it is cached.
    words : ndarray of str, shape (n_words,)
        The vocabulary in alphabetical order. Read-only.

    Examples
    --------
    >>> topics, words = article_topics()
    >>> [str(words[row.argmax()]) for row in topics]
    ['baby', 'black', 'party', 'cells']
    """
    word_counts = [Counter(tokenise(read_article(name))) for name in ARTICLES]
    words = np.array(sorted(set().union(*word_counts)))
    counts = np.array([[counter[word] for word in words.tolist()] for counter in word_counts], dtype=np.float64)
    topics = counts / counts.sum(axis=1, keepdims=True)
    for array in (topics, words):
        array.setflags(write=False)
    return topics, words
