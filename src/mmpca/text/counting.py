"""Counting the words of texts, in a way that can be written down and repeated on new texts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer
from sklearn.utils.validation import check_is_fitted

from mmpca.errors import CountsError
from mmpca.text.settings import check_settings

Analyzer = Callable[[str], list[str]]


class TextCounts(NamedTuple):
    """Counts of known words, and how many words were passed over.

    Attributes
    ----------
    X : csr_array of int32, shape (n_texts, n_words)
        Counts of the words of the vocabulary.
    n_unseen : ndarray of int64, shape (n_texts,)
        For each text, how many of its words (or n-grams) are not in the vocabulary; stop words and words that are too
        short are not counted.
    """

    X: sparse.csr_array
    n_unseen: NDArray[np.int64]


class CountTexts(TransformerMixin, BaseEstimator):
    """Counts of words in texts.

    A word is a run of letters, digits and underscores. scikit-learn's `CountVectorizer` does the counting; here, stop
    words and word lists go through the same preparation as the texts, words outside of the vocabulary are counted, and
    `settings` writes everything down as plain JSON, so that a model file can hold it.

    Parameters
    ----------
    min_df : int or float, default=1
        Leave out words that occur in fewer texts: a number of texts, or a share of them if it is a float.
    max_df : int or float, default=1.0
        Leave out words that occur in more texts.
    stop_words : {"english"}, sequence of str or None, default=None
        Words to leave out.
    ngram_range : tuple of two int, default=(1, 1)
        Count runs of at least and at most so many words.
    vocabulary : sequence of str or None, default=None
        Count these words only, in this order.
    strip_accents : {"unicode", "ascii"} or None, default=None
        Whether accents are removed: "ascii" drops what has no such letter, too.
    lowercase : bool, default=True
    min_length : int, default=2
        Leave out words with fewer characters.

    Attributes
    ----------
    words_ : ndarray of str objects, shape (n_words,)
        The vocabulary, in the order of the columns.

    Examples
    --------
    >>> from mmpca.text import CountTexts
    >>> counter = CountTexts(stop_words="english").fit(["The cat and the dog", "A dog, another dog"])
    >>> counter.get_feature_names_out()
    array(['cat', 'dog'], dtype=object)
    >>> counts = counter.count(["dog eats dog"])
    >>> counts.X.toarray(), counts.n_unseen
    (array([[0, 2]], dtype=int32), array([1]))
    """

    words_: NDArray[np.object_]

    def __init__(
        self,
        *,
        min_df: float = 1,
        max_df: float = 1.0,
        stop_words: str | Sequence[str] | None = None,
        ngram_range: tuple[int, int] = (1, 1),
        vocabulary: Sequence[str] | None = None,
        strip_accents: str | None = None,
        lowercase: bool = True,
        min_length: int = 2,
    ) -> None:
        self.min_df = min_df
        self.max_df = max_df
        self.stop_words = stop_words
        self.ngram_range = ngram_range
        self.vocabulary = vocabulary
        self.strip_accents = strip_accents
        self.lowercase = lowercase
        self.min_length = min_length

    # --- counting ---------------------------------------------------------------------------------

    def fit(self, texts: Iterable[str], y: object = None) -> Self:
        """Learn the vocabulary, or take the one that is given.

        Parameters
        ----------
        texts : iterable of str
        y : ignored

        Returns
        -------
        self
        """
        self.fit_transform(texts)
        return self

    def fit_transform(self, texts: Iterable[str], y: object = None) -> sparse.csr_array:
        """Learn the vocabulary and return the counts, csr_array of int32, shape (n_texts, n_words)."""
        check_settings(self.get_params(deep=False))
        checked = _check_texts(texts)
        if self.vocabulary is not None:
            self.words_ = self._given_words(self.vocabulary)
            return self.transform(checked)
        self._check_shares(len(checked))
        vectorizer = self._vectorizer(self._analyzer())
        try:
            X = vectorizer.fit_transform(checked)
        except ValueError as error:  # all words are left out
            raise CountsError(
                f"No word of the {len(checked)} texts is left ({str(error).rstrip('.')}). Leave out fewer: lower "
                "min_df or min_length, raise max_df, or shorten the list of stop words."
            ) from error
        self.words_ = vectorizer.get_feature_names_out().astype(object)
        return sparse.csr_array(X)

    def transform(self, texts: Iterable[str]) -> sparse.csr_array:
        """Return the counts of known words, csr_array of int32, shape (n_texts, n_words)."""
        return self.count(texts).X

    def count(self, texts: Iterable[str]) -> TextCounts:
        """Return the counts of known words, and for each text the number of those that are not known."""
        check_is_fitted(self)
        analyze, lengths = self._analyzer(), list[int]()

        def counting(text: str) -> list[str]:
            words = analyze(text)
            lengths.append(len(words))
            return words

        vectorizer = self._vectorizer(counting, vocabulary=self.words_.tolist())
        X = sparse.csr_array(vectorizer.transform(_check_texts(texts)))
        return TextCounts(X, np.array(lengths, dtype=np.int64) - np.asarray(X.sum(axis=1, dtype=np.int64)))

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the words in the order of the columns, shape (n_words,)."""
        check_is_fitted(self)
        return self.words_

    # --- settings ---------------------------------------------------------------------------------

    def settings(self) -> dict[str, Any]:
        """Return parameters and, once fitted, words, as a dictionary of what JSON knows."""
        parameters = self.get_params(deep=False)
        for name in ("stop_words", "vocabulary", "ngram_range"):
            if not (parameters[name] is None or isinstance(parameters[name], str)):
                parameters[name] = [_plain(item) for item in parameters[name]]
        if hasattr(self, "words_"):
            parameters["words"] = [str(word) for word in self.words_]
        return {name: _plain(value) for name, value in parameters.items()}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Return what `settings` described, fitted if it was.

        Raises
        ------
        ValueError
            If there is anything unknown in the settings, or of the wrong type.
        """
        parameters = dict(settings)
        words = parameters.pop("words", None)
        check_settings(parameters | ({} if words is None else {"words": words}))
        if parameters.get("ngram_range") is not None:
            parameters["ngram_range"] = tuple(parameters["ngram_range"])
        counter = cls(**parameters)
        if words is not None:
            counter.words_ = np.array(words, dtype=object)
        return counter

    # --- words ------------------------------------------------------------------------------------

    def _check_shares(self, n_texts: int) -> None:
        """Refuse limits between which no number of texts lies."""
        least, most = (
            limit * n_texts if isinstance(limit, float | np.floating) else limit for limit in (self.min_df, self.max_df)
        )
        if least > most:
            raise CountsError(
                f"min_df={self.min_df} and max_df={self.max_df} leave no word: of {n_texts} texts, one would have to "
                f"be in at least {least:g} and at most {most:g}. Lower min_df, or raise max_df."
            )

    def _vectorizer(self, analyzer: Analyzer, vocabulary: Sequence[str] | None = None) -> CountVectorizer:
        return CountVectorizer(
            analyzer=analyzer, vocabulary=vocabulary, min_df=self.min_df, max_df=self.max_df, dtype=np.int32
        )

    def _analyzer(self) -> Analyzer:
        """Return the function that makes words, or runs of words, of a text."""
        return self._plain_analyzer(self.ngram_range, self._stop_words())

    def _plain_analyzer(self, ngram_range: tuple[int, int], stop_words: list[str] | None) -> Analyzer:
        analyzer: Analyzer = CountVectorizer(
            lowercase=self.lowercase,
            strip_accents=self.strip_accents,
            token_pattern=rf"(?u)\b\w{{{self.min_length},}}\b",
            ngram_range=tuple(ngram_range),
            stop_words=stop_words,
        ).build_analyzer()
        return analyzer

    def _stop_words(self) -> list[str] | None:
        """Return the stop words as they look after preparation: "don't" is "don" by then."""
        if self.stop_words is None:
            return None
        words = sorted(ENGLISH_STOP_WORDS) if isinstance(self.stop_words, str) else self.stop_words
        prepare = self._plain_analyzer((1, 1), None)
        return sorted({prepared for word in words for prepared in prepare(word)})

    def _given_words(self, vocabulary: Sequence[str]) -> NDArray[np.object_]:
        """Return the given vocabulary, with a warning for words that no text can contain."""
        analyze = self._analyzer()
        unreachable = [word for word in vocabulary if word not in analyze(word)]
        if unreachable:
            warnings.warn(
                f"{len(unreachable)} of {len(vocabulary)} words of the vocabulary can never be found, among them "
                f"{unreachable[0]!r}: lower case, accents, stop words, min_length and ngram_range apply to texts.",
                UserWarning,
                stacklevel=4,
            )
        return np.array(list(vocabulary), dtype=object)


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as a Python one, and anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def _check_texts(texts: Iterable[str]) -> list[str]:
    """Return texts as a list, or say which of them is none."""
    if isinstance(texts, str):
        raise ValueError("Expected a list of texts, but found a single one. Put it into a list: [text].")
    checked = list(texts)
    for number, text in enumerate(checked):
        if not isinstance(text, str):
            raise TypeError(f"Expected texts, but text {number} is {text!r}. Convert it, or leave it out.")
    return checked
