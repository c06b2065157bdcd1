"""The errors of the package.

Every error is a ``ValueError`` as well, so that code which knows nothing of this package can handle it, and its text is
one full sentence: what was expected, what was found, and what would be right.
"""

from __future__ import annotations

from typing import Final

_LONGEST: Final = 60
_BEFORE: Final = 20


def excerpt(text: str, at: int = 0, *, most: int = _LONGEST) -> str:
    """Return what an error quotes of a text that may be of any length: what stands around a place in it.

    Args:
        text: the text.
        at: the place, an offset.
        most: how much to quote.

    Example:
        >>> excerpt("f32[8]"), excerpt("id: 1 " * 50 + "id: zz", 304, most=26)
        ('f32[8]', '...1 id: 1 id: 1 id: 1 id: zz')
        >>> excerpt("9" * 5000, most=4)
        '9999...'
    """
    begin = max(0, min(at - _BEFORE, len(text) - most))
    end = begin + most
    return f"{'...' if begin else ''}{text[begin:end]}{'...' if end < len(text) else ''}"


class CommlensError(ValueError):
    """Base of all errors that the package raises on purpose."""


class GrammarError(CommlensError):
    """A text breaks the grammar it should follow.

    Attributes:
        position: offset of the fault in the text that was given, counted from 0.

    Example:
        >>> error = GrammarError("expected ']' after the axis sizes, found the end of the text", position=7)
        >>> error.position, str(error)
        (7, "expected ']' after the axis sizes, found the end of the text")
    """

    def __init__(self, message: str, *, position: int) -> None:
        super().__init__(message)
        self.position = position


class PlacedError(CommlensError):
    """Something cannot be done with an instruction, and the place of what stands in the way may be known.

    Attributes:
        line: line of the fault in the source, counted from 1; None where that has no lines or the place is not known.
        column: column of the fault counted from 1, or None.
    """

    def __init__(self, message: str, *, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class InputError(CommlensError):
    """An input (file, folder, standard input, command-line value) cannot be used.

    Attributes:
        path: the input as the user named it; None for what has no name.
        line: line of the fault counted from 1, or None (binary files).
        column: column of the fault counted from 1, or None.
        reason: the sentence without its place.

    Example:
        >>> str(InputError("the file is empty", path="step.hlo"))
        'step.hlo: the file is empty'
        >>> str(InputError("expected ']'", path="SPEC", line=1, column=8))
        "SPEC:1:8: expected ']'"
    """

    def __init__(
        self, reason: str, *, path: str | None = None, line: int | None = None, column: int | None = None
    ) -> None:
        place = [str(part) for part in (path, line, column) if part is not None]
        super().__init__(": ".join([":".join(place), reason]) if place else reason)
        self.path = path
        self.line = line
        self.column = column
        self.reason = reason
