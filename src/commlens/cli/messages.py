"""What goes to standard error: one line each, safe to show whatever a module's names hold."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import click

from commlens.views import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_WARNINGS: Final = 20


def complain(sentence: str) -> None:
    """Write an error."""
    _write(f"commlens: error: {one_line(sentence)}")


def warn(warnings: Iterable[str]) -> None:
    """Write warnings, the first of them in full and the others as a count."""
    left_out = 0
    for place, sentence in enumerate(warnings):
        if place < MOST_WARNINGS:
            _write(f"commlens: warning: {one_line(sentence)}")
        else:
            left_out += 1
    if left_out:
        _write(f"commlens: warning: {left_out} more like these; --format json lists them all")


def one_line(text: str) -> str:
    r"""Return a text as one printable line.

    Example:
        >>> one_line("no such\n  option \x1b[31m")
        'no such option \\x1b[31m'
    """
    return printable(" ".join(text.split()))


def sentence_of(error: Exception) -> str:
    """Return what a foreseen error says, with its place where it has one."""
    if isinstance(error, click.UsageError):
        context = error.ctx
        command = "commlens" if context is None else context.command_path
        return f"{error.format_message().rstrip('.')} (see {command} --help)"
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, OSError) and error.strerror is not None:
        place = "" if error.filename is None else f"{error.filename}: "
        return f"{place}{error.strerror.lower()}"
    return str(error)


def _write(text: str) -> None:
    with suppress(BrokenPipeError, ValueError):  # nobody reads it, or standard error is closed
        sys.stderr.write(text.encode(_encoding(), "backslashreplace").decode(_encoding()) + "\n")
        sys.stderr.flush()


def _encoding() -> str:
    return sys.stderr.encoding or "utf-8"
