"""The progress bar."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from commlens.cli.progress import PATIENCE_S, Progress

if TYPE_CHECKING:
    from collections.abc import Callable


class Terminal(io.StringIO):
    """A stream with somebody in front of it."""

    def isatty(self) -> bool:
        """Say that it is a terminal."""
        return True


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.daemon = False
        self.started = False
        self.seconds = 0.0
        self._function: Callable[[], None] | None = None

    def later(self, seconds: float, function: Callable[[], None]) -> Clock:
        """Stand in for a timer."""
        self.seconds = seconds
        self._function = function
        return self

    def start(self) -> None:
        """Begin to wait."""
        self.started = True

    def cancel(self) -> None:
        """Give up waiting."""
        self._function = None

    def ring(self) -> None:
        """Let the time be over."""
        if self.started and self._function is not None:
            self._function()


@pytest.fixture(autouse=True)
def _usual_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")


def test_a_bar_appears_after_a_moment() -> None:
    """Once the time is over the bar shows which file is read, and how many are done; in the end it is taken away."""
    clock, terminal = Clock(), Terminal()
    with Progress(terminal, 2, later=clock.later) as progress:
        progress.begin("first.hlo")
        progress.end()
        progress.begin("second\x1b.hlo")
        assert terminal.getvalue() == ""
        clock.ring()
        shown = terminal.getvalue()
        assert "reading second\\x1b.hlo" in shown
        assert "1/2" in shown
        progress.end()
    assert clock.seconds == PATIENCE_S
    assert terminal.getvalue().endswith("\x1b[2K")  # the line is erased


def test_one_file_has_no_count() -> None:
    """Of one file nobody knows how far it is."""
    clock, terminal = Clock(), Terminal()
    with Progress(terminal, 1, later=clock.later) as progress:
        progress.begin("only.hlo")
        clock.ring()
    assert "reading only.hlo" in terminal.getvalue()
    assert "/1" not in terminal.getvalue()


def test_fast_work_shows_nothing() -> None:
    """What is done before the time is over needs no bar, not even when the timer was already on its way."""
    clock, terminal = Clock(), Terminal()
    progress = Progress(terminal, 1, later=clock.later)
    with progress:
        ring = clock.ring
        progress.begin("a.hlo")
        progress.end()
    ring()
    assert terminal.getvalue() == ""


def test_a_late_timer_shows_nothing() -> None:
    """A timer that could not be cancelled any more finds the work done."""
    functions: list[Callable[[], None]] = []
    clock, terminal = Clock(), Terminal()

    def later(seconds: float, function: Callable[[], None]) -> Clock:
        functions.append(function)
        return clock.later(seconds, function)

    with Progress(terminal, 1, later=later):
        pass
    functions[0]()
    assert terminal.getvalue() == ""


@pytest.mark.parametrize(("stream", "terminal"), [(io.StringIO(), "xterm"), (Terminal(), "dumb")], ids=["pipe", "dumb"])
def test_nobody_looks(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, terminal: str) -> None:
    """Into a pipe or on a terminal that cannot draw, nothing is ever shown."""
    monkeypatch.setenv("TERM", terminal)
    clock = Clock()
    with Progress(stream, 1, later=clock.later) as progress:
        progress.begin("a.hlo")
        clock.ring()
    assert not clock.started
    assert stream.getvalue() == ""
