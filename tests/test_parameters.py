"""Rules for parameters: the values they accept, and the error that names the parameter."""

import numpy as np
import pytest

from mmpca.parameters import (
    BOOLEAN,
    N_JOBS,
    NONE,
    PRIOR,
    VERBOSE,
    Rule,
    array,
    check_parameters,
    either,
    integer,
    one_of,
    real,
)

# Each rule with values that it accepts, and values that it does not.
RULES = {
    "integer": (
        integer(1),
        [1, np.int8(3), np.uint64(2), 10**30],
        [0, -1, 2.5, 2.0, "3", True, np.True_, None, np.nan, np.inf, [2], np.array([1, 2])],
    ),
    "real": (real(0.0), [0, 0.5, np.float32(0.5), 10**30], [-1e-12, np.nan, np.inf, "0", None, True, [1.0]]),
    "real with limits": (real(0.0, 1.0), [0, 0.5, 1], [-0.1, 1.1, np.nan]),
    "one_of": (one_of("lda", "random"), ["lda", "random"], ["LDA", "ld", "", None, 1, ["lda"]]),
    "either": (either(one_of("auto"), integer(1)), ["auto", 3], ["Auto", 0, True, None]),
    "array": (
        array("of labels"),
        [[0, 1], (0, 1), np.zeros(3), np.zeros((2, 2)), []],
        ["labels", 3, None, {}, [[1.0], [0.5, 0.5]], np.float64(3)],
    ),
    "NONE": (NONE, [None], [0, "", False, []]),
    "BOOLEAN": (BOOLEAN, [True, False, np.True_], [0, 1, "yes", None, [True]]),
    "N_JOBS": (N_JOBS, [None, 1, -1, -100, 1000, np.int64(2)], [0, 1.5, "2", True, [2]]),
    "VERBOSE": (VERBOSE, [0, 1, 2, True], [-1, 1.5, "1", None, [1]]),
    "PRIOR": (PRIOR, [1e-6, 1, 1e8], [0, -1, 1e-7, 1e9, 10**30, np.nan, np.inf, "1", None, True, [1.0, 1.0]]),
}


@pytest.mark.parametrize(("rule", "accepted", "rejected"), RULES.values(), ids=RULES)
def test_each_rule_accepts_what_it_should_and_nothing_else(rule, accepted, rejected):
    for value in accepted:
        check_parameters({"x": value}, {"x": rule})
    for value in rejected:
        with pytest.raises(ValueError, match="x"):
            check_parameters({"x": value}, {"x": rule})


def test_the_first_parameter_that_breaks_its_rule_is_named():
    rules = {"good": integer(1), "bad": integer(1), "worse": integer(1)}
    with pytest.raises(ValueError, match=r"\bbad\b") as caught:
        check_parameters({"good": 1, "bad": 0, "worse": None}, rules)
    assert "worse" not in str(caught.value)


def test_the_error_contains_the_expectation_and_the_value():
    with pytest.raises(ValueError, match=r"an even number.* 7\b"):
        check_parameters({"x": 7}, {"x": Rule(lambda value: value % 2 == 0, "an even number")})


@pytest.mark.parametrize(("value", "shown"), [("s" * 10_000, "sss"), (np.zeros((300, 200)), r"\(300, 200\)")])
def test_a_long_value_is_shortened_in_the_error(value, shown):
    with pytest.raises(ValueError, match=shown) as caught:
        check_parameters({"x": value}, {"x": integer(1)})
    assert len(str(caught.value)) < 200
