"""How long the fuzzers run: over a fixed sample, or for as long as ``--soak`` says."""

from __future__ import annotations

import itertools
import random
import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from types import FrameType

SECONDS_PER_INPUT = 30
"""After this long a reader hangs: its inputs here take milliseconds."""


@pytest.fixture
def numbers(request: pytest.FixtureRequest) -> Callable[[int], Iterator[int]]:
    """Return what gives the numbers of the inputs to try: ``0..count-1``, or new ones until the time is over."""
    minutes = float(request.config.getoption("--soak") or 0)

    def draw(count: int) -> Iterator[int]:
        if not minutes:
            yield from range(count)
            return
        start = random.SystemRandom().randrange(2**40)
        end = time.monotonic() + 60 * minutes
        yield from itertools.takewhile(lambda _: time.monotonic() < end, itertools.count(start))

    return draw


@contextmanager
def _bounded() -> Generator[None]:
    def hangs(_signal: int, _frame: FrameType | None) -> None:
        msg = f"an input of a few kilobytes took more than {SECONDS_PER_INPUT} seconds"
        raise TimeoutError(msg)

    previous = signal.signal(signal.SIGALRM, hangs)
    signal.setitimer(signal.ITIMER_REAL, SECONDS_PER_INPUT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@pytest.fixture
def one_input() -> Callable[[int], _Named]:
    """Return what surrounds the work on one input: it names the input when that fails, and ends a reader that hangs."""
    return _Named


class _Named:
    """Names an input when the work on it fails."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._bounded = _bounded()

    def __enter__(self) -> None:
        self._bounded.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._bounded.__exit__(None, None, None)
        if error is not None:
            error.add_note(f"the input is number {self._number}")
