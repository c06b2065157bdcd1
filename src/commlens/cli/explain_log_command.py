"""``commlens explain-log``."""

from __future__ import annotations

import io
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Self

import click

from commlens.cli.inputs import STANDARD_INPUT, standard_input
from commlens.cli.messages import warn
from commlens.cli.options import full_option, input_options, mesh_option, output_options
from commlens.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlens.analysis import LogStream
    from commlens.cli.inputs import Inputs
    from commlens.cli.output import Output
    from commlens.hlo import Module
    from commlens.topology import Mesh

_LONGEST_MAGIC: Final = 8
_PIECE: Final = 1 << 20


def _optional_files(command: Callable[..., int]) -> Callable[..., int]:
    return input_options(command, required=False)


@click.command("explain-log", short_help="Show which collectives a hang or error is about.")
@click.argument("log", metavar="LOG")
@_optional_files
@mesh_option
@full_option
@output_options
def command(*, log: str, inputs: Inputs, mesh: Mesh | None, full: bool, output: Output) -> int:
    """Show which collectives of a module the messages of a log refer to, along which axes, and their peers.

    LOG is what a job printed when it hung or failed, compressed or not, or - for standard input: rendezvous that were
    not joined, cliques, communicators, watchdogs, names in a trace, messages of the Neuron runtime. FILE is anything
    that `commlens report` reads; without one the messages are shown alone. All collectives are listed that a message
    can be about, and what is not found is said.
    """
    from commlens.analysis import explain_log
    from commlens.neuron import LOG_MESSAGES
    from commlens.views import LogView

    if log == STANDARD_INPUT in inputs.paths:
        msg = "expected standard input to be the log or a module, found both"
        raise click.UsageError(msg)

    def question(module: Module) -> Module:
        return module

    with _LogFile(log, inputs.max_bytes) as file:
        answers = inputs.answer(question)
        answer = explain_log(
            _uncompressed(file, log, inputs.max_bytes), answers.found, mesh, kinds=LOG_MESSAGES, full=full
        )
    output.show(LogView(answer))
    warn(f"{report.module.path}: {note}" for report in answer.reports for note in report.notes)
    return answers.complain()


def _uncompressed(file: _LogFile, log: str, max_bytes: int | None) -> LogStream:
    """Return the log as it is, to be read piece by piece, or unpacked.

    Raises:
        InputError: it cannot be read or unpacked.
    """
    from commlens.hlo import compression_of, uncompressed

    head = file.read(_LONGEST_MAGIC)
    if compression_of(head) is None:
        file.put_back(head)
        return file
    packed = b"".join([head, *iter(lambda: file.read(_PIECE), b"")])
    limit = {} if max_bytes is None else {"max_bytes": max_bytes}
    return io.BytesIO(uncompressed(packed, log, **limit))


class _LogFile:
    """A log that is read piece by piece; faults of reading name it."""

    def __init__(self, log: str, max_bytes: int | None) -> None:
        self._path = log
        self._left = max_bytes
        self._head = b""
        try:
            self._stream: IO[bytes] = standard_input() if log == STANDARD_INPUT else Path(log).open("rb")  # noqa: SIM115
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from error

    def __enter__(self) -> Self:
        """Return the log."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file; standard input is not ours to close."""
        if self._path != STANDARD_INPUT:
            self._stream.close()

    def put_back(self, head: bytes) -> None:
        """Let the next read begin with this."""
        self._head = head

    def read(self, size: int, /) -> bytes:
        """Return the next bytes; none at the end.

        Raises:
            InputError: it cannot be read, or is too large.
        """
        try:
            piece = self._head + self._stream.read(size)
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from error
        if self._left is not None:
            self._left -= len(piece) - len(self._head)
            if self._left < 0:
                reason = "the log is larger than is taken; --max-bytes sets another limit"
                raise InputError(reason, path=self._path)
        self._head = b""
        return piece

    def _unreadable(self, error: OSError | ValueError) -> InputError:
        why = error.strerror if isinstance(error, OSError) else None
        return InputError(f"the log cannot be read: {(why or str(error)).lower()}", path=self._path)
