"""Exceptions and warnings that a caller may want to catch."""


class CountsError(ValueError):
    """The input is not a count matrix that the model can be fitted to; the message names the place."""


class InterruptedSearchWarning(UserWarning):
    """The search was interrupted; the result is the best state that it had reached."""


class OverdispersionWarning(UserWarning):
    """The counts vary far more within clusters than the model allows; the message names the remedy."""
