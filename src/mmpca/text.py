"""Raw texts: count their words with settings that can be saved and applied to new texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral
from reprlib import repr as short_repr
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer
from sklearn.utils.validation import check_is_fitted

from mmpca.errors import CountsError, UnsegmentedTextWarning, warn
from mmpca.io.texts import Texts, read_texts
from mmpca.parameters import BOOLEAN, NONE, Rule, check_parameters, either, is_integer, one_of, real

__all__ = ["CountTexts", "TextCounts", "Texts", "read_texts"]

Analyzer = Callable[[str], list[str]]

# A list of these names is a list of languages, even if the package with their stop words is not installed.
_LANGUAGES = {
    *(
        "arabic",
        "bulgarian",
        "catalan",
        "chinese",
        "czech",
        "danish",
        "dutch",
        "english",
        "finnish",
        "french",
        "german",
    ),
    *("greek", "gujarati", "hebrew", "hindi", "hungarian", "indonesian", "italian", "japanese", "korean", "malaysian"),
    *("norwegian", "persian", "polish", "portuguese", "romanian", "russian", "slovak", "spanish", "swedish", "turkish"),
    *("ukrainian", "vietnamese"),
}

_CHINESE_OR_JAPANESE = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_CHECKED_CHARACTERS = 100_000  # for languages without spaces
_LONGEST_WORDS = 4.0  # characters, on average; Chinese and Japanese words have about two


# --- counting words ---------------------------------------------------------------------------------------------


def _is_list_of_words(value: Any) -> bool:
    is_sequence = isinstance(value, (list, tuple, set, frozenset, np.ndarray))
    return is_sequence and all(isinstance(word, str) for word in value)


def _is_vocabulary(value: Any) -> bool:
    return _is_list_of_words(value) and not isinstance(value, (set, frozenset)) and 0 < len(set(value)) == len(value)


def _is_ngram_range(value: Any) -> bool:
    is_pair = isinstance(value, (list, tuple)) and len(value) == 2
    return is_pair and all(is_integer(size, 1) for size in value) and value[0] <= value[1] <= 10


def _is_document_frequency(value: Any) -> bool:
    return is_integer(value, 1) or (not isinstance(value, Integral) and real(0, 1).holds(value))


def words_to_ignore(given: str | Iterable[str]) -> list[str]:
    """Return the words of a list, or the stop words of a language or of a list of languages.

    A list in which every entry is the English name of a language is a list of languages; codes such as "de" are
    treated as words.
    """
    if isinstance(given, str):
        return sorted(_language_words(given))
    words = [str(word) for word in given]
    if words and all(word.lower() in _LANGUAGES for word in words):
        return sorted({word for language in words for word in _language_words(language.lower())})
    return words


def _language_words(language: str) -> list[str]:
    """Return the stop words of a language, given by its English name or its code."""
    if language == "english":
        return sorted(ENGLISH_STOP_WORDS)
    try:
        import stop_words
    except ImportError:
        raise ImportError(
            f"Stop words in {language!r} need a package that is not installed: pip install 'mmpca[languages]'. Or pass "
            "a list of words."
        ) from None
    names = stop_words.LANGUAGE_MAPPING | {name: name for name in stop_words.AVAILABLE_LANGUAGES}
    if language.lower() not in names:
        known = ", ".join(sorted(stop_words.AVAILABLE_LANGUAGES))
        raise ValueError(f"stop_words must be a list of words or a language ({known}), but it is {language!r}.")
    words: list[str] = stop_words.get_stop_words(names[language.lower()])
    return words


_DOCUMENT_FREQUENCY = Rule(
    _is_document_frequency, "a number of texts (an integer of at least 1) or a share of the texts (a float from 0 to 1)"
)
_VOCABULARY = Rule(_is_vocabulary, "a list of at least one word, without duplicates")
_RULES = {
    "min_df": _DOCUMENT_FREQUENCY,
    "max_df": _DOCUMENT_FREQUENCY,
    "max_features": either(Rule(lambda value: is_integer(value, 1), "a whole number of at least 1"), NONE),
    "stop_words": either(
        Rule(
            lambda value: isinstance(value, str) or _is_list_of_words(value),
            "a language such as 'english', a list of languages, or a list of words",
        ),
        NONE,
    ),
    "tokenizer": either(Rule(callable, "a function"), NONE),
    "ngram_range": Rule(_is_ngram_range, "two whole numbers from 1 to 10 in ascending order"),
    "vocabulary": either(_VOCABULARY, NONE),
    "strip_accents": either(one_of("unicode", "ascii"), NONE),
    "lowercase": BOOLEAN,
    "min_length": Rule(lambda value: is_integer(value, 1) and value <= 1000, "a whole number from 1 to 1000"),
}


class TextCounts(NamedTuple):
    """Counts of the words of a vocabulary, and numbers of words outside it.

    Attributes
    ----------
    X : csr_array of int32, shape (n_texts, n_words)
        Counts of the words in the vocabulary.
    n_unseen : ndarray of int64, shape (n_texts,)
        Number of words (or n-grams) of each text that are not in the vocabulary, not counting stop words and words
        that are too short.
    """

    X: sparse.csr_array
    n_unseen: NDArray[np.int64]


class CountTexts(TransformerMixin, BaseEstimator):
    """Count words in texts.

    A word is a run of letters, digits and underscores. The counting is done by scikit-learn's `CountVectorizer`.
    In addition, stop words are preprocessed like the texts, words outside the vocabulary are counted, and `settings`
    returns parameters and vocabulary as JSON, which a model file can include.

    Parameters
    ----------
    min_df : int or float, default=1
        Ignore words that occur in fewer texts than this. An integer is a number of texts, a float a share of all texts.
    max_df : int or float, default=1.0
        Ignore words that occur in more texts than this.
    max_features : int or None, default=None
        Count only this many words, the most frequent ones.
    stop_words : str, sequence of str or None, default=None
        Words to ignore: a list; a language such as "english", "german" or "fr"; or a list of names of languages, such
        as ``["english", "german"]``. Languages other than English need the package `stop-words`:
        ``pip install "mmpca[languages]"``.
    ngram_range : tuple of two int, default=(1, 1)
        Smallest and largest number of consecutive words to count as one.
    vocabulary : sequence of str or None, default=None
        Count only these words, in this order.
    strip_accents : {"unicode", "ascii"} or None, default=None
        How to remove accents; "ascii" also drops characters without an ASCII equivalent.
    lowercase : bool, default=True
        Whether to convert texts to lower case.
    min_length : int, default=2
        Ignore words with fewer characters than this.
    tokenizer : callable or None, default=None
        Function that splits a text into words, such as ``jieba.lcut`` for Chinese or a spaCy pipeline that returns
        lemmas. Its words are then filtered by `min_length` and `stop_words`; words without letters and digits are
        ignored. It is not saved with a model: pass it again when you load one.

    Attributes
    ----------
    words_ : ndarray of str objects, shape (n_words,)
        The vocabulary, in column order.

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
        max_features: int | None = None,
        tokenizer: Callable[[str], Iterable[str]] | None = None,
    ) -> None:
        self.min_df = min_df
        self.max_df = max_df
        self.stop_words = stop_words
        self.ngram_range = ngram_range
        self.vocabulary = vocabulary
        self.strip_accents = strip_accents
        self.lowercase = lowercase
        self.min_length = min_length
        self.max_features = max_features
        self.tokenizer = tokenizer

    def fit(self, texts: Iterable[str], y: object = None) -> Self:
        """Learn the vocabulary from texts, unless it is a parameter.

        Parameters
        ----------
        texts : iterable of str
            Training texts.
        y : None
            Ignored.

        Returns
        -------
        self : CountTexts
        """
        self.fit_transform(texts)
        return self

    def fit_transform(self, texts: Iterable[str], y: object = None) -> sparse.csr_array:
        """Learn the vocabulary and count its words.

        Parameters
        ----------
        texts : iterable of str
            Training texts.
        y : None
            Ignored.

        Returns
        -------
        csr_array of int32, shape (n_texts, n_words)

        Raises
        ------
        CountsError
            If no word is left.

        Warns
        -----
        UnsegmentedTextWarning
            If the texts are in Chinese or Japanese without spaces between words.
        """
        check_parameters(self.get_params(deep=False), _RULES)
        checked = _check_texts(texts)
        if self.vocabulary is not None:
            self.words_ = self._given_words(self.vocabulary)
            return self.transform(checked)
        self._check_limits(len(checked))
        if self.tokenizer is None:
            _warn_of_unsegmented(checked)
        vectorizer = self._vectorizer(self._analyzer(self._stop_words()))
        try:
            X = vectorizer.fit_transform(checked)
        except ValueError as error:  # no word is left
            raise CountsError(
                f"No words are left in {len(checked)} texts ({str(error).rstrip('.')}). Lower min_df or min_length, "
                "raise max_df, or use fewer stop words."
            ) from error
        self.words_ = vectorizer.get_feature_names_out().astype(object)
        return sparse.csr_array(X)

    def transform(self, texts: Iterable[str]) -> sparse.csr_array:
        """Count the words of the vocabulary in texts.

        Parameters
        ----------
        texts : iterable of str

        Returns
        -------
        csr_array of int32, shape (n_texts, n_words)
        """
        return self.count(texts).X

    def count(self, texts: Iterable[str]) -> TextCounts:
        """Count the words of the vocabulary in texts, and the words outside it.

        Parameters
        ----------
        texts : iterable of str

        Returns
        -------
        TextCounts
            `X` (csr_array of int32, shape (n_texts, n_words)) and `n_unseen` (shape (n_texts,)).
        """
        check_is_fitted(self)
        analyze, lengths = self._analyzer(self._stop_words()), list[int]()

        def analyze_and_measure(text: str) -> list[str]:
            """Return the words of a text, and keep their number."""
            words = analyze(text)
            lengths.append(len(words))
            return words

        vectorizer = self._vectorizer(analyze_and_measure, vocabulary=self.words_.tolist())
        X = sparse.csr_array(vectorizer.transform(_check_texts(texts)))
        return TextCounts(X, np.array(lengths, dtype=np.int64) - np.asarray(X.sum(axis=1, dtype=np.int64)))

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the words in column order.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        ndarray of str objects, shape (n_words,)
        """
        check_is_fitted(self)
        return self.words_

    def settings(self) -> dict[str, Any]:
        """Return the parameters and, once fitted, the vocabulary.

        Returns
        -------
        dict
            JSON values only; see `from_settings`.

        Examples
        --------
        >>> settings = CountTexts(min_length=3).fit(["a sunny day"]).settings()
        >>> settings["min_length"], settings["words"]
        (3, ['day', 'sunny'])
        >>> CountTexts.from_settings(settings).transform(["day and night"]).toarray()
        array([[1, 0]], dtype=int32)
        """
        parameters = self.get_params(deep=False)
        if self.stop_words is not None and not (isinstance(self.stop_words, str) and self.stop_words == "english"):
            parameters["stop_words"] = words_to_ignore(self.stop_words)  # needs no package when it is loaded
        if self.tokenizer is not None:  # a name for the error message: a file runs no code
            parameters["tokenizer"] = getattr(self.tokenizer, "__qualname__", type(self.tokenizer).__qualname__)
        for name in ("max_features", "tokenizer"):
            if parameters[name] is None:
                del parameters[name]
        for name in ("stop_words", "vocabulary", "ngram_range"):
            if not (parameters[name] is None or isinstance(parameters[name], str)):
                parameters[name] = [_plain(item) for item in parameters[name]]
        if hasattr(self, "words_"):
            parameters["words"] = [str(word) for word in self.words_]
        return {name: _plain(value) for name, value in parameters.items()}

    @classmethod
    def from_settings(
        cls, settings: Mapping[str, Any], *, tokenizer: Callable[[str], Iterable[str]] | None = None
    ) -> Self:
        """Create a transformer from the result of `settings`, fitted if the original was.

        Parameters
        ----------
        settings : mapping
        tokenizer : callable, optional
            The tokenizer of the original, if it had one.

        Returns
        -------
        CountTexts

        Raises
        ------
        ValueError
            If a setting is unknown or has an invalid value, or if the tokenizer is missing.
        """
        parameters = dict(settings)
        if (name := parameters.pop("tokenizer", None)) is not None and tokenizer is None:
            raise ValueError(
                f"These texts were divided into words by the tokenizer {str(name)[:80]!r}, which is not saved. Pass it "
                "again in Python: tokenizer=..."
            )
        parameters["tokenizer"] = tokenizer
        words = parameters.pop("words", None)
        unknown = [name for name in parameters if name not in _RULES]
        if unknown:
            raise ValueError(f"Unknown setting {unknown[0]!r}: expected only {', '.join(_RULES)} and words.")
        words_only = {"stop_words": either(one_of("english"), either(Rule(_is_list_of_words, "a list of words"), NONE))}
        check_parameters(parameters, {name: (_RULES | words_only)[name] for name in parameters})
        check_parameters({"words": words}, {"words": either(_VOCABULARY, NONE)})
        if "ngram_range" in parameters:
            parameters["ngram_range"] = tuple(parameters["ngram_range"])
        counter = cls(**parameters)
        if words is not None:
            counter.words_ = np.array(words, dtype=object)
        return counter

    def _check_limits(self, n_texts: int) -> None:
        """Raise CountsError if min_df exceeds max_df."""
        least, most = (
            limit * n_texts if isinstance(limit, float | np.floating) else limit for limit in (self.min_df, self.max_df)
        )
        if least > most:
            raise CountsError(
                f"min_df={self.min_df} and max_df={self.max_df} leave no words: with {n_texts} texts, a word would "
                f"have to occur in at least {least:g} and at most {most:g} of them. Lower min_df, or raise max_df."
            )

    def _vectorizer(self, analyzer: Analyzer, vocabulary: Sequence[str] | None = None) -> CountVectorizer:
        return CountVectorizer(
            analyzer=analyzer,
            vocabulary=vocabulary,
            min_df=self.min_df,
            max_df=self.max_df,
            max_features=self.max_features,
            dtype=np.int32,
        )

    def _analyzer(self, stop_words: list[str] | None, ngram_range: tuple[int, int] | None = None) -> Analyzer:
        """Return the function that splits a text into words or n-grams."""
        analyze: Analyzer = CountVectorizer(
            lowercase=self.lowercase,
            strip_accents=self.strip_accents,
            tokenizer=None if self.tokenizer is None else self._split,
            token_pattern=rf"(?u)\b\w{{{self.min_length},}}\b" if self.tokenizer is None else None,
            ngram_range=tuple(ngram_range or self.ngram_range),
            stop_words=stop_words,
        ).build_analyzer()
        # A letter with its accent as two characters would end a word in the middle.
        return lambda text: analyze(unicodedata.normalize("NFC", text))

    def _split(self, text: str) -> list[str]:
        """Return the words that the given tokenizer finds."""
        assert self.tokenizer is not None
        words = (str(word) for word in self.tokenizer(text))
        return [word for word in words if len(word) >= self.min_length and any(map(str.isalnum, word))]

    def _stop_words(self) -> list[str] | None:
        """Return the stop words after preprocessing, which makes "don" of "don't"."""
        if self.stop_words is None:
            return None
        words = words_to_ignore(self.stop_words)
        preprocess = self._analyzer(None, (1, 1))
        return sorted({piece for word in words for piece in preprocess(word)})

    def _given_words(self, vocabulary: Sequence[str]) -> NDArray[np.object_]:
        """Return the given vocabulary, and warn about words that cannot be found in any text."""
        analyze = self._analyzer(self._stop_words())
        vocabulary = [unicodedata.normalize("NFC", word) for word in vocabulary]  # like the texts
        unreachable = [word for word in vocabulary if word not in analyze(word)]
        if unreachable:
            warn(
                f"{len(unreachable)} of the {len(vocabulary)} words in the vocabulary can never be found, for example "
                f"{unreachable[0]!r}, because lowercase, strip_accents, stop_words, min_length and ngram_range apply "
                "to the texts.",
                UserWarning,
            )
        return np.array(vocabulary, dtype=object)


def _plain(value: Any) -> Any:
    """Convert NumPy scalars to Python ones."""
    return value.item() if isinstance(value, np.generic) else value


def _warn_of_unsegmented(texts: Sequence[str]) -> None:
    """Warn about Chinese and Japanese texts without spaces between their words."""
    n_characters, runs = 0, list[int]()
    for text in texts:
        runs += [len(run) for run in _CHINESE_OR_JAPANESE.findall(text)]
        n_characters += len(text)
        if n_characters > _CHECKED_CHARACTERS:
            break
    if sum(runs) > 0.3 * n_characters and sum(runs) > _LONGEST_WORDS * len(runs):
        warn(
            "The texts are in Chinese or Japanese and have no spaces between words, so whole phrases would be counted "
            "as words. Separate the words with spaces, or, in Python, pass a function that finds them, such as "
            "tokenizer=jieba.lcut for Chinese or a MeCab tagger for Japanese.",
            UnsegmentedTextWarning,
        )


def _check_texts(texts: Iterable[str]) -> list[str]:
    """Return texts as a list, or raise an error for the first that is not a string."""
    if isinstance(texts, str):
        raise ValueError("Expected a list of texts, but found a single text. Put it in a list: [text].")
    if hasattr(texts, "columns"):
        shown = ", ".join(short_repr(name) for name in list(getattr(texts, "column_names", texts.columns))[:20])
        raise ValueError(f"Expected a list of texts, but found a table with the columns {shown}. Pass one of them.")
    checked = list(texts)
    for number, text in enumerate(checked):
        if not isinstance(text, str):
            raise TypeError(
                f"Expected texts, but text {number} is {short_repr(text)}. Convert it to a string, or leave it out."
            )
    return checked
