"""Reading what a command line names."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from typing import IO, TYPE_CHECKING, Final, Generic, Literal, TextIO, TypeAlias, TypeVar

from commlens.cli.messages import complain
from commlens.cli.progress import Progress
from commlens.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from commlens.hlo import Module

Stage: TypeAlias = Literal["last", "before", "after", "all"]
STAGES: Final[tuple[Stage, ...]] = ("last", "before", "after", "all")

STANDARD_INPUT: Final = "-"

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Answers(Generic[Answer]):
    """What came of the inputs.

    Attributes:
        found: one answer per module.
        faults: why inputs were left out.
    """

    found: list[Answer]
    faults: list[InputError]

    def complain(self) -> int:
        """Write the faults to standard error and return the exit code that they make."""
        for fault in self.faults:
            complain(str(fault))
        return 2 if self.faults else 0


@dataclass(frozen=True, slots=True)
class Inputs:
    """Files and folders to read, and how.

    Attributes:
        paths: as the user named them; ``-`` is standard input.
        stage: which dumps of a folder are wanted.
        max_bytes: largest content; None for the usual limit.
        replicas: replica count stated by the user.
        partitions: partition count stated by the user.
        keep_going: whether to go on when an input holds no module.
    """

    paths: tuple[str, ...]
    stage: Stage
    max_bytes: int | None
    replicas: int | None
    partitions: int | None
    keep_going: bool

    def answer(self, question: Callable[[Module], Answer]) -> Answers[Answer]:
        """Put a question to every module, with a progress bar where that takes long.

        Raises:
            InputError: an input holds no module, unless faults are to be kept for later.
        """
        answers: Answers[Answer] = Answers([], [])
        with Progress(sys.stderr, len(self.paths)) as progress:
            for path in self.paths:
                progress.begin(path)
                for module in self._modules(path):
                    if not isinstance(module, InputError):
                        answers.found.append(question(module))
                    elif self.keep_going:
                        answers.faults.append(module)
                    else:
                        raise module
                progress.end()
        return answers

    def _modules(self, path: str) -> Iterator[Module | InputError]:
        from commlens.hlo import load_inputs

        load = load_inputs if self.max_bytes is None else partial(load_inputs, max_bytes=self.max_bytes)
        return load(
            [path],
            stdin=standard_input() if path == STANDARD_INPUT else None,
            stage=self.stage,
            replicas=self.replicas,
            partitions=self.partitions,
        )


def standard_input() -> IO[bytes]:
    """Return the binary stream behind ``-``.

    Raises:
        InputError: the process has none.
    """
    stream: TextIO | None = sys.stdin  # None where the process was started without one
    if stream is None or stream.closed:
        reason = "expected a module on standard input, which is closed"
        raise InputError(reason, path=STANDARD_INPUT)
    return stream.buffer
