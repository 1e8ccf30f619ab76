"""Exceptions and warnings that a caller may want to catch."""


class CountsError(ValueError):
    """The input is not a count matrix that the model can be fitted to; the message names the place."""


class ClusterError(ConnectionError):
    """Workers of a cluster, or what only they had, are lost for good; the message says what to do."""


class InputFileError(ValueError):
    """The file cannot be read as what it should be; the message names file and line, the reason and a remedy."""


class InterruptedSearchWarning(UserWarning):
    """The search was interrupted; the result is the best state that it had reached."""


class OverdispersionWarning(UserWarning):
    """The counts vary far more within clusters than the model allows; the message names the remedy."""


class ModelFileError(ValueError):
    """The file is not a model that this version of mmpca can read; the message says what is wrong with it."""


class StoreError(ValueError):
    """A folder cannot keep the results of this search; the message says why."""
