"""Faults of texts that stand on the command line itself."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from commlens.errors import GrammarError, InputError

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def placed(name: str) -> Generator[None]:
    """Name the place of what breaks a grammar within: the text is line 1 of ``name``.

    Raises:
        InputError: in place of a grammar error.

    Example:
        >>> with placed("SPEC"):
        ...     raise GrammarError("expected ']'", position=7)
        Traceback (most recent call last):
        commlens.errors.InputError: SPEC:1:8: expected ']'
    """
    try:
        yield
    except GrammarError as error:
        raise InputError(str(error), path=name, line=1, column=error.position + 1) from error
