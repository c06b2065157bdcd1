"""A progress bar on standard error, for people who wait."""

from __future__ import annotations

import os
from threading import Lock, Timer
from typing import TYPE_CHECKING, Final, Protocol, Self, TextIO

from commlens.views import printable

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

PATIENCE_S: Final = 1.0
"""Seconds before the bar appears: what is done by then needs none."""


class Later(Protocol):
    """A function that will run; :class:`threading.Timer` by its part that is used here."""

    daemon: bool

    def start(self) -> None:
        """Begin to wait."""
        ...

    def cancel(self) -> None:
        """Give up waiting."""
        ...


class Progress:
    """Shows which file is being read once that takes longer than a moment; shows nothing where nobody looks.

    Args:
        stream: standard error; without a terminal behind it nothing is ever shown.
        number: how many files there are.
        later: what runs a function after some seconds, unless it is cancelled.
    """

    def __init__(
        self, stream: TextIO, number: int, *, later: Callable[[float, Callable[[], None]], Later] = Timer
    ) -> None:
        self._stream = stream
        self._number = number
        self._done = 0
        self._current = ""
        self._lock = Lock()
        self._over = False
        self._bar: tuple[RichProgress, TaskID] | None = None
        self._timer = later(PATIENCE_S, self._show)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        """Start waiting."""
        if self._stream.isatty() and os.environ.get("TERM") != "dumb":
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Take the bar away."""
        self._timer.cancel()
        with self._lock:
            self._over = True
            if self._bar is not None:
                self._bar[0].stop()

    def begin(self, path: str) -> None:
        """Say what is read now."""
        with self._lock:
            self._current = printable(path)
            self._refresh()

    def end(self) -> None:
        """Say that it has been read."""
        with self._lock:
            self._done += 1
            self._refresh()

    def _refresh(self) -> None:
        if self._bar is not None:
            bar, task = self._bar
            bar.update(task, description=self._current, completed=self._done)

    def _show(self) -> None:
        """Put the bar up; runs in the timer's thread."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        several = [MofNCompleteColumn()] if self._number > 1 else []
        with self._lock:
            if self._over:
                return
            bar = RichProgress(
                SpinnerColumn(),
                TextColumn("reading {task.description}", markup=False),
                BarColumn(),
                *several,
                TimeElapsedColumn(),
                console=Console(file=self._stream, markup=False, emoji=False, highlight=False),
                transient=True,
            )
            # how far a single file has come is not known: its bar pulses
            task = bar.add_task(self._current, total=self._number if several else None, completed=self._done)
            self._bar = (bar, task)
            bar.start()
