"""What a log refers to, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from commlens.analysis.records import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlens.analysis.logs.fitting import Match, Peers
    from commlens.analysis.logs.said import Said
    from commlens.analysis.reports import Report
    from commlens.analysis.row import Row


@dataclass(frozen=True, slots=True, eq=False)
class Candidate(Record):
    """A collective that a message can be about.

    Attributes:
        message: position of the message, counted from 0.
        match: ``"full"`` where all that the message says is true of it; ``"unknown"`` where nothing is wrong, but
            something cannot be told; ``"partial"`` where its devices, its channel or its name are those of the message
            and something else is not: of no collective all is true.
        path: where its module came from.
        module: name of its module.
        name: its name.
        opcode: the operation.
        line: its line in a text.
        why: what of the message is true of it, in words.
        axes: the mesh axes it runs along; None where they are not known.
        peers: the devices of the group that is meant; one list for each group that can be meant where there are
            several; None where they cannot be told or are too many to list.
        row: the collective.
    """

    message: int
    match: Match
    path: str
    module: str
    name: str
    opcode: str
    line: int | None
    why: str
    axes: list[str] | None
    peers: Peers
    row: Row

    def as_dict(self) -> dict[str, object]:
        """Return the JSON form."""
        return {**self, "row": self.row.as_dict()}


@dataclass(frozen=True, slots=True, eq=False)
class LogMessage(Record):
    """A message that was recognised in a log.

    Attributes:
        line: the line on which it stands first, counted from 1.
        count: how often it stands there.
        kind: what kind of message it is.
        text: the beginning of it.
        means: what it means, for messages of one kind of machine; None for others.
        said: its facts, as it stands there first.
        ranks: the places in the group of those who print it.
        found: whether a collective fits all of it that can be told.
        candidates: how many collectives it can be about; of those of which not all is true, how many are listed.
        notes: what else there is to say of it, in sentences.
    """

    line: int
    count: int
    kind: str
    text: str
    means: str | None
    said: Said
    ranks: list[int]
    found: bool
    candidates: int
    notes: list[str]

    def as_dict(self) -> dict[str, object]:
        """Return the JSON form; facts that the message does not speak of are left out."""
        return {**self, "said": {key: value for key, value in self.said.items() if value is not None}}


@dataclass(frozen=True, slots=True, eq=False)
class LogExplanation:
    """What the messages of a log refer to.

    Attributes:
        messages: the messages, each once, in the order of the log.
        candidates: the collectives they can be about, message by message, in row order.
        reports: the modules that were searched.
        notes: what else there is to say, in sentences.
        left_out: how many messages were not answered, for there are more different ones than are.
    """

    messages: Sequence[LogMessage]
    candidates: Sequence[Candidate]
    reports: Sequence[Report]
    notes: Sequence[str] = field(default_factory=tuple)
    left_out: int = 0

    @property
    def found(self) -> bool | None:
        """Whether some message can be about a collective of the modules; None: one of those left out may be."""
        return any(message.found for message in self.messages) or (None if self.left_out else False)

    def of(self, message: int) -> list[Candidate]:
        """Return the candidates of the message at a position."""
        return [candidate for candidate in self.candidates if candidate.message == message]
