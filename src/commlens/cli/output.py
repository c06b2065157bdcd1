"""Where an answer goes: standard output or a file, as text or in colours."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from commlens.errors import InputError
from commlens.views import paint, plain_text

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from pathlib import Path

    from commlens.views import View

FORMATS: Final = ("table", "json", "csv", "markdown")

_PIPED_WIDTH: Final = 120
"""Columns where nobody says how wide it may be: the output goes into a file or a pipe."""

_ASCII_WALLS: Final = str.maketrans("─│┌┐└┘├┤┬┴┼…·", "-|+++++++++~.")


@dataclass(frozen=True, slots=True)
class Output:
    """How and where to show an answer.

    Attributes:
        form: one of :data:`FORMATS`.
        path: the file to write, None for standard output.
    """

    form: str
    path: Path | None

    def show(self, view: View) -> None:
        """Show an answer.

        Raises:
            InputError: the file cannot be written; an older one is left as it was.
        """
        if self.path is None and self.form == "table" and sys.stdout.isatty():
            with _reader_may_go():
                paint(view.table(shutil.get_terminal_size().columns), sys.stdout)
                sys.stdout.flush()
        else:
            self.emit(self._pieces(view))

    def emit(self, pieces: Iterable[str]) -> None:
        """Write an answer that is text already, piece by piece.

        Raises:
            InputError: the file cannot be written; an older one is left as it was.
        """
        if self.path is not None:
            write(self.path, "".join(pieces).encode("utf-8", "backslashreplace"), "the answer")
            return
        with _reader_may_go():
            for piece in pieces:
                sys.stdout.write(encodable(piece, sys.stdout.encoding))
            sys.stdout.flush()

    def _pieces(self, view: View) -> Iterator[str]:
        match self.form:
            case "json":
                return view.json()
            case "csv":
                return view.csv()
            case "markdown":
                return view.markdown()
            case _:
                return plain_text(view.table(shutil.get_terminal_size((_PIPED_WIDTH, 0)).columns))


def encodable(text: str, encoding: str | None) -> str:
    r"""Return a text that an encoding can hold: drawings in ASCII, other characters as escapes where it must be.

    Example:
        >>> encodable("┌─┐ é", "utf-8"), encodable("┌─┐ é", "latin-1"), encodable("é", "ascii")
        ('┌─┐ é', '+-+ é', '\\xe9')
    """
    if text.isascii() or encoding is None or encoding.lower().replace("-", "") == "utf8":
        return text
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII_WALLS).encode(encoding, "backslashreplace").decode(encoding)
    return text


def write(path: Path, content: bytes, what: str) -> None:
    """Write a file, all of it or nothing.

    Args:
        path: where to.
        content: all of it.
        what: what it is, for the message.

    Raises:
        InputError: it cannot be written; an older file is left as it was.
    """
    from commlens.hlo import write_atomically

    try:
        write_atomically(path, content)
    except OSError as error:
        reason = f"{what} cannot be written there: {(error.strerror or str(error)).lower()}"
        raise InputError(reason, path=str(path)) from error


def print_bytes(content: bytes) -> None:
    """Write a content to standard output as it is."""
    with _reader_may_go():
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


@contextmanager
def _reader_may_go() -> Generator[None]:
    """Take it as no fault when the reader of the pipe goes."""
    try:
        yield
    except BrokenPipeError:
        _forget_standard_output()


def _forget_standard_output() -> None:
    """Let the interpreter flush into nothing when it ends: the reader of the pipe has gone."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)
