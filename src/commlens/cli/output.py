"""Where an answer goes: standard output or a file, as text or in colours."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TextIO

from commlens.errors import InputError
from commlens.views import paint, plain_text

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from pathlib import Path

    from commlens.views import View

FORMATS: Final = ("table", "json", "csv", "markdown")

STANDARD_OUTPUT_NAME: Final = "-"

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
        if self.path is None and self.form == "table" and standard_output().isatty():
            with _reader_may_go() as stream:
                paint(view.table(shutil.get_terminal_size().columns), stream)
                stream.flush()
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
        with _reader_may_go() as stream:
            for piece in pieces:
                stream.write(encodable(piece, stream.encoding))
            stream.flush()

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
    except BrokenPipeError:
        return  # who reads only the beginning gets that
    except OSError as error:
        reason = f"{what} cannot be written there: {(error.strerror or str(error)).lower()}"
        raise InputError(reason, path=str(path)) from error


def print_bytes(content: bytes) -> None:
    """Write a content to standard output as it is.

    Raises:
        InputError: standard output is closed or cannot be written.
    """
    with _reader_may_go() as stream:
        stream.flush()
        stream.buffer.write(content)
        stream.buffer.flush()


def standard_output() -> TextIO:
    """Return the stream.

    Raises:
        InputError: the process has none.
    """
    stream: TextIO | None = sys.stdout  # None where the process was started without one
    if stream is None or stream.closed:
        reason = "standard output is closed: expected it open, or -o with the name of a file"
        raise InputError(reason, path=STANDARD_OUTPUT_NAME)
    return stream


@contextmanager
def _reader_may_go() -> Generator[TextIO]:
    """Give standard output to write to; it is no fault when the reader of the pipe goes.

    Raises:
        InputError: it is closed or cannot be written.
    """
    stream = standard_output()
    try:
        yield stream
    except BrokenPipeError:
        _forget(stream)
    except OSError as error:
        _forget(stream)
        reason = f"standard output cannot be written: {(error.strerror or str(error)).lower()}"
        raise InputError(reason, path=STANDARD_OUTPUT_NAME) from error


def _forget(stream: TextIO) -> None:
    """Let the interpreter flush into nothing when it ends: nobody takes what is left."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)
