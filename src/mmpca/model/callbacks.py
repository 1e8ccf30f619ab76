"""Report the stages of a fit as tasks to scikit-learn's callbacks, such as its progress bar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from mmpca.monitor import Callback, Progress

try:
    from sklearn import callback as sklearn_callback
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in for the callbacks of scikit-learn, which this version does not have."""

    sklearn_callback = None

Method = TypeVar("Method", bound=Callable[..., Any])


def with_callbacks(fit: Method) -> Method:
    """Decorate `fit` so that scikit-learn's callbacks are closed at its end, even after an error."""
    return fit if sklearn_callback is None else cast(Method, sklearn_callback.with_callbacks(fit))


def callback_of(estimator: Any, callback: Callback | None) -> Callback | None:
    """Return the callback of a fit: the one given, or one that reports to those of ``estimator.set_callbacks``."""
    is_needed = callback is None and getattr(estimator, "_skl_callbacks", None)
    return FitTasks(estimator) if is_needed else callback


class FitTasks:
    """Callback that reports the stages of a fit to scikit-learn's callbacks, each as a task with a subtask per percent.

    Parameters
    ----------
    estimator : estimator with scikit-learn's callbacks
        Its `fit` has the decorator :func:`with_callbacks`.
    """

    def __init__(self, estimator: Any) -> None:
        self._estimator, self._stage, self._task, self._percent = estimator, "", None, 0
        self._fit = estimator._init_callback_context(max_subtasks=None)
        self._fit.call_on_fit_task_begin(estimator=estimator)

    def __call__(self, progress: Progress) -> bool:
        """Begin and end tasks; return True if a callback asks to stop."""
        asks = False
        if progress.stage != self._stage:
            asks |= self._end(self._task)
            self._stage, self._task, self._percent = progress.stage, None, 0
            if progress.stage == "done":
                return asks | self._end(self._fit)
            self._task = self._begun(self._fit, progress.stage, 100 if progress.n_steps else None)
        for _ in range(self._percent, int(100 * (progress.share or 0.0))):
            asks |= self._end(self._begun(self._task, "percent", 0))
            self._percent += 1
        return asks

    def _begun(self, parent: Any, name: str, max_subtasks: int | None) -> Any:
        task = parent.subcontext(task_name=name, max_subtasks=max_subtasks)
        return task.call_on_fit_task_begin(estimator=self._estimator)

    def _end(self, task: Any) -> bool:
        return task is not None and bool(task.call_on_fit_task_end(estimator=self._estimator))
