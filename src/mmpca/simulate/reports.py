"""Synthetic breast-biopsy reports from a grammar of the project's own: texts with known labels and sub-types.

Nothing in them comes from a patient or a hospital. What a report says is drawn finding by finding, with weights that
depend on its kind; kinds share most of their vocabulary, and findings are left out or borrowed from other kinds, as
no two tumours and no two pathologists are alike.
"""

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mmpca.simulate.checks import RandomState, as_generator, check_positive_integer

BENIGN, NON_SPECIAL, LOBULAR = "benign", "non-special-type carcinoma", "lobular carcinoma"

# The numbers of reports in the paper's section 5.
LABEL_WEIGHTS = {BENIGN: 232, NON_SPECIAL: 590, LOBULAR: 44}
# How many of 100 carcinomas of non-special type are of each sub-type; the paper does not tell.
SUBTYPE_WEIGHTS = {
    "high grade": 20,
    "stroma-rich": 20,
    "well differentiated": 25,
    "poorly differentiated": 15,
    "in situ with microcalcifications": 20,
}

BORROWED_SHARE = 0.05  # of the findings of a carcinoma of non-special type, drawn as for another sub-type
MOST_LEFT_OUT = 0.2  # share of the findings that the tersest pathologist does not mention
# What defines a kind is neither borrowed nor left out: the scores of a report would contradict its grade.
DEFINING = frozenset({"device", "side", "size", "invasion", "tubules", "nuclei", "mitoses", "lesion"})


class Reports(NamedTuple):
    """Synthetic reports with the truth that they were drawn from.

    Attributes
    ----------
    texts : list of str, length n
        The descriptive part of each report; there is no conclusion.
    labels : ndarray of str, shape (n,)
        "benign", "non-special-type carcinoma" or "lobular carcinoma".
    subtypes : ndarray of str, shape (n,)
        A finer truth: one of five sub-types for a carcinoma of non-special type, "lobular" or "benign" for the others.
    names : ndarray of str, shape (n,)
        "synthetic-001", "synthetic-002", ...
    """

    texts: list[str]
    labels: npt.NDArray[np.str_]
    subtypes: npt.NDArray[np.str_]
    names: npt.NDArray[np.str_]


def pathology_reports(n: int = 900, random_state: RandomState = None) -> Reports:
    """Write synthetic breast-biopsy reports, benign and malignant, without their conclusions.

    Labels come in the proportions of the paper's medical reports: 232 benign, 590 carcinomas of non-special type, 44
    lobular carcinomas. Every text is made up by a grammar; none is, or is derived from, a report on a patient.

    Parameters
    ----------
    n : int, default=900
        Number of reports.
    random_state : int, Generator, RandomState or None, default=None
        The same integer gives the same reports.

    Returns
    -------
    Reports
        `texts`, `labels`, `subtypes` and `names`.

    Examples
    --------
    >>> from mmpca.simulate import pathology_reports
    >>> reports = pathology_reports(n=866, random_state=0)
    >>> {str(label): int((reports.labels == label).sum()) for label in sorted(set(reports.labels))}
    {'benign': 232, 'lobular carcinoma': 44, 'non-special-type carcinoma': 590}
    >>> print(reports.names[0], "|", reports.texts[0])
    synthetic-001 | ... biopsy, ...
    """
    n = check_positive_integer(n, name="n")
    rng = as_generator(random_state)
    sizes = _shares(LABEL_WEIGHTS, n)
    kinds = _shares(SUBTYPE_WEIGHTS, sizes[NON_SPECIAL]) | {"lobular": sizes[LOBULAR], "benign": sizes[BENIGN]}
    subtypes = rng.permutation(np.repeat(list(kinds), list(kinds.values())))
    labels = np.where(subtypes == "benign", BENIGN, np.where(subtypes == "lobular", LOBULAR, NON_SPECIAL))
    width = max(3, len(str(n)))
    names = np.array([f"synthetic-{number:0{width}d}" for number in range(1, n + 1)])
    return Reports([_report(rng, str(kind)) for kind in subtypes], labels, subtypes, names)


def _shares(weights: dict[str, int], n: int) -> dict[str, int]:
    """Share n out in proportion to weights: rounded down, then one more each by the largest remainders."""
    exact = np.array(list(weights.values())) * n / sum(weights.values())
    numbers = exact.astype(int)
    numbers[np.argsort(numbers - exact, kind="stable")[: n - numbers.sum()]] += 1
    return dict(zip(weights, numbers.tolist(), strict=True))


@cache
def grammar() -> dict[str, Any]:
    """Read the grammar: `sentences` by finding and degree, and `kinds`: weights of degrees by kind and finding."""
    text = files("mmpca.simulate").joinpath("grammar", "breast_biopsy.toml").read_text(encoding="utf-8")
    read = tomllib.loads(text)
    common = read["kinds"].pop("all")
    read["kinds"] = {kind: common | own for kind, own in read["kinds"].items()}
    return read


def _report(rng: np.random.Generator, kind: str) -> str:
    """Write one report, its findings in the order of the grammar."""
    sentences, kinds = grammar()["sentences"], grammar()["kinds"]
    left_out = rng.uniform(0, MOST_LEFT_OUT)
    lines = []
    for finding, degrees in sentences.items():
        weights = kinds[_lender(rng, kind, finding)].get(finding, {"silent": 1})
        degree = _choose(rng, list(weights), weights.values())
        if degree != "silent" and (finding in DEFINING or rng.random() >= left_out):
            lines.append(expand(rng, degrees[degree]))
    return " ".join(lines)


def _lender(rng: np.random.Generator, kind: str, finding: str) -> str:
    """Return the kind that a finding is drawn from: mostly the report's own."""
    is_borrowed = kind in SUBTYPE_WEIGHTS and finding not in DEFINING and rng.random() < BORROWED_SHARE
    return _choose(rng, list(SUBTYPE_WEIGHTS)) if is_borrowed else kind


def _choose(rng: np.random.Generator, options: Sequence[str], weights: Iterable[float] | None = None) -> str:
    """Draw one of some options, by default all equally likely."""
    # Tens of thousands of small draws: Generator.choice would take most of the time.
    sums = list(accumulate(weights or [1] * len(options)))
    return options[bisect_right(sums, rng.random() * sums[-1])]


def expand(rng: np.random.Generator, sentence: str) -> str:
    """Make the choices of a sentence: ``[one|other]`` and ``<2-9>``.

    Examples
    --------
    >>> import numpy as np
    >>> expand(np.random.default_rng(0), "The [left|right] breast, <7-7> mm.")
    'The right breast, 7 mm.'
    """
    # Numbers first, and choices from the inside out: a choice may hold both.
    sentence = re.sub(r"<(\d+)-(\d+)>", lambda match: str(rng.integers(int(match[1]), int(match[2]) + 1)), sentence)
    while match := re.search(r"\[([^\[\]]*)\]", sentence):
        chosen = _choose(rng, match[1].split("|"))
        sentence = sentence[: match.start()] + chosen + sentence[match.end() :]
    return sentence
