"""What a log refers to: its messages, and the collectives of modules that each can be about."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from commlens.analysis.limits import id_limit
from commlens.analysis.logs.answers import Candidate, LogExplanation, LogMessage
from commlens.analysis.logs.fitting import Fitting, outside
from commlens.analysis.logs.recognising import Listener
from commlens.analysis.logs.records import records_of
from commlens.analysis.logs.searching import Searched

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from commlens.analysis.figures import Figures
    from commlens.analysis.logs.fitting import Fit, Match
    from commlens.analysis.logs.recognising import Joined, MessageKind, Recognised
    from commlens.analysis.logs.records import LogStream
    from commlens.analysis.logs.said import Said
    from commlens.analysis.meshes import MeshLike
    from commlens.analysis.row import Row
    from commlens.hlo import Module, Signature

MOST_MESSAGES: Final = 10_000
"""Most different messages of one log that are answered."""

_EXCERPT: Final = 400
_MOST_RANKS: Final = 8


@dataclass(slots=True)
class _Heard:
    """A message and how often it was heard."""

    line: int
    text: str
    recognised: Recognised
    ranks: set[int]
    count: int = 1


def explain_log(
    log: str | bytes | LogStream,
    modules: Iterable[Module] = (),
    mesh: MeshLike | None = None,
    *,
    kinds: Sequence[MessageKind] = (),
    full: bool = False,
) -> LogExplanation:
    r"""Say which collectives of modules the messages of a log can be about.

    Each message is answered for itself: a collective is a candidate where everything that the message says is true of
    it (devices, channel, operation, name), and all of them are given where there are several.

    Args:
        log: the log: its text, its content, or a binary stream, which is read once and never held as a whole.
        modules: the modules that ran.
        mesh: the mesh that names axes, as for :func:`~commlens.analysis.report`.
        kinds: messages that only one kind of machine prints.
        full: whether ids are listed up to the high limit.

    Returns:
        The messages, each once, and their candidates. A log without any message is no error.

    Raises:
        CommlensError: ``mesh`` is no mesh.
        OSError: the log cannot be read.

    Example:
        >>> from commlens.hlo import load
        >>> module = load('''HloModule m, replica_count=8
        ... ENTRY e {
        ...   p = f32[16] parameter(0)
        ...   g = f32[64] all-gather(p), replica_groups=[2,4]<=[8], dimensions={0}
        ...   ROOT h = f32[32] all-gather(p), replica_groups=[4,2]<=[2,4]T(1,0), dimensions={0}
        ... }''')
        >>> log = "may be stuck: RendezvousKey{global_devices=[4, 5, 6, 7], collective_op_kind=cross_replica, op_id=0}"
        >>> answer = explain_log(log, [module], "data=2,model=4")
        >>> [(each.name, each.axes, each.peers) for each in answer.candidates]
        [('g', ['model'], [4, 5, 6, 7])]
    """
    searched = [Searched.of(module, mesh, full=full) for module in modules]
    heard, left_out = _heard(_stream(log), searched, kinds)
    messages: list[LogMessage] = []
    candidates: list[Candidate] = []
    for position, each in enumerate(heard):
        asked = _Question(position, each.recognised, searched, id_limit(full=full))
        found = asked.candidates()
        messages.append(_answered(each, asked, found))
        candidates += found
    notes = [f"{left_out:,} more messages were left out: no more than {MOST_MESSAGES:,} are answered"]
    return LogExplanation(messages, candidates, [each.report for each in searched], notes if left_out else [])


def _stream(log: str | bytes | LogStream) -> LogStream:
    if isinstance(log, str):
        log = log.encode("utf-8", "surrogateescape")
    return io.BytesIO(log) if isinstance(log, bytes) else log


def _heard(log: LogStream, searched: Sequence[Searched], kinds: Sequence[MessageKind]) -> tuple[list[_Heard], int]:
    """Return the messages of a log, each once, and how many there are beyond the limit."""
    listener = Listener(
        frozenset(name for each in searched for name in each.called),
        frozenset(row.op_name for each in searched for row in each.rows if row.op_name is not None),
        kinds,
    )
    heard: dict[tuple[object, ...], _Heard] = {}
    left_out: set[int] = set()
    for record in records_of(log, listener.needles()):
        for recognised in listener.messages(record.text):
            said = recognised.said
            key = (recognised.kind, recognised.note, *said.key)
            known = heard.get(key)
            ranks = set[int]() if said.rank is None else {said.rank}
            if known is not None:
                known.count += 1
                known.ranks |= ranks
            elif len(heard) < MOST_MESSAGES:
                heard[key] = _Heard(record.line, record.text[:_EXCERPT], recognised, ranks)
            else:
                left_out.add(hash(key))
    return sorted(heard.values(), key=lambda each: each.line), len(left_out)


def _answered(heard: _Heard, asked: _Question, found: Sequence[Candidate]) -> LogMessage:
    recognised = heard.recognised
    return LogMessage(
        heard.line,
        heard.count,
        recognised.kind,
        " ".join(heard.text.split()),
        None if recognised.own is None else recognised.own.means,
        recognised.said,
        sorted(heard.ranks),
        any(candidate.match != "partial" for candidate in found),
        len(found),
        [*asked.notes(found), *_silent(recognised.said, heard.ranks)],
    )


def _silent(said: Said, ranks: set[int]) -> Iterator[str]:
    """Say which ranks of a group the log does not name, where it names most of them: a rank is a place in the list."""
    devices = said.devices
    if devices is None or not ranks or max(ranks) >= len(devices):
        return
    silent = [rank for rank in range(len(devices)) if rank not in ranks]
    if 0 < len(silent) < len(ranks):
        shown = ", ".join(f"{rank} (device {devices[rank]})" for rank in silent[:_MOST_RANKS])
        more = len(silent) - _MOST_RANKS
        yield (
            f"the log names {len(ranks):,} ranks of {len(devices):,}; it does not name {shown}"
            + (f" and {more:,} more" if more > 0 else "")
        )


@dataclass(frozen=True, slots=True)
class _Question:
    """One message, asked of the modules.

    Attributes:
        position: its position among the messages.
        recognised: the message.
        searched: the modules.
        limit: most ids that an answer lists.
    """

    position: int
    recognised: Recognised
    searched: Sequence[Searched]
    limit: int

    @property
    def said(self) -> Said:
        """What the message says."""
        return self.recognised.said

    def candidates(self) -> list[Candidate]:
        """Return the collectives it can be about: those that fit, else those that fit but for their ids."""
        if self.recognised.note is not None:
            return []  # what it names could not be read
        if self.recognised.own is not None:
            return [each for module in self.searched for each in self._of_kind(module, self.recognised.own)]
        found = [each for module in self._asked() for each in self._fitting(module)]
        fitting = [each for each in found if each.match != "partial"]
        return self._by_number(fitting) if fitting else found

    def _asked(self) -> list[Searched]:
        """Return the modules that it can be about."""
        name = self.said.module
        return [each for each in self.searched if name is None or each.report.module.name == name]

    def _fitting(self, module: Searched) -> Iterator[Candidate]:
        said = self.said
        fitting = Fitting(said, module.num_devices, self.limit)
        fits: dict[Figures, Fit | None] = {}
        named = {position: how for name in said.names or () for position, how in module.named(name).items()}
        by_devices = said.devices is not None or said.groups is not None
        for position, row in enumerate(module.rows):
            if said.names is not None and position not in named and not by_devices:
                continue
            if row.figures not in fits:
                fits[row.figures] = fitting.fit(row.figures)
            fit = fits[row.figures]
            if fit is None or not self._is_of_kind(row):
                continue
            wrong = list(self._wrong(row, is_named=position in named))
            if wrong and not by_devices and position not in named:
                continue
            match: Match = "partial" if wrong else "unknown" if fit.match == "unknown" or row.ids else "full"
            why = [named.get(position, ""), fit.why, *self._true(row), *wrong, *_as_written(row, fit)]
            yield self._candidate(module, row, match, why, fit)

    def _is_of_kind(self, row: Row) -> bool:
        """Whether operation, metadata and channel are of the kind that it speaks of."""
        said = self.said
        return (
            (said.opcode is None or row.opcode == said.opcode)
            and (said.op_name is None or row.op_name == said.op_name)
            and (said.kind is None or (said.kind == "cross_module") == row.figures.signature.has_channel)
        )

    def _wrong(self, row: Row, *, is_named: bool) -> Iterator[str]:
        """Yield the ids that are others than those it names."""
        said = self.said
        if said.names is not None and not is_named:
            yield f"its name is {row.name}, not {' or '.join(said.names)}"
        if said.channel is not None and row.channel_id != said.channel:
            has = "it has no channel" if row.channel_id is None else f"its channel is {row.channel_id}"
            yield f"{has}, not {said.channel}"

    def _true(self, row: Row) -> Iterator[str]:
        """Yield what it says that is true of a collective, apart from devices and names."""
        said = self.said
        if said.channel is not None and row.channel_id == said.channel:
            yield f"its channel is {said.channel}"
        elif said.channel is None and said.kind is not None:
            yield "it has a channel" if said.kind == "cross_module" else "it has no channel"
        if said.opcode is not None:
            yield f"it is an {said.opcode}" if said.opcode[0] == "a" else f"it is a {said.opcode}"
        if said.op_name is not None:
            yield f"its op_name is {said.op_name}"

    def _by_number(self, found: list[Candidate]) -> list[Candidate]:
        """Keep those of the number that it names; all where there is none, unless nothing else is said of them."""
        number = self.said.number
        if number is None:
            return found
        kept = [each for each in found if self._has_number(each, number)]
        return kept if kept or (self.said.kind is None and self.said.devices is None) else found

    def _has_number(self, candidate: Candidate, number: int) -> bool:
        """Whether a number is that of its module, of its name, or, where it may be one, of its channel."""
        if self.said.kind is None and candidate.row.channel_id == number:
            return True
        for module in self.searched:
            if module.report.module.path == candidate.path and module.number == number:
                return True
            if any(module.rows[position] is candidate.row for position in module.numbered(number)):
                return True
        return False

    def _of_kind(self, module: Searched, kind: MessageKind) -> Iterator[Candidate]:
        """Yield what a message of one kind of machine can be about."""
        figures = list(dict.fromkeys(row.figures for row in module.rows))
        asked: list[tuple[Signature, Joined]] = []
        for each in figures:
            participation = each.participation
            joined = participation.groups if participation.pairs is None else participation.pairs
            asked.append((each.signature, joined))
        why = {
            figures[position]: words
            for position, words in kind.candidates(asked, module.num_devices, self.said.numbers or {})
        }
        fitting = Fitting(self.said, module.num_devices, self.limit)
        for row in module.rows:
            words = why.get(row.figures)
            if words is not None:
                fit = fitting.fit(row.figures)
                yield self._candidate(module, row, "unknown" if row.ids else "full", [words], fit)

    def _candidate(self, module: Searched, row: Row, match: Match, why: Iterable[str], fit: Fit | None) -> Candidate:
        return Candidate(
            self.position,
            match,
            module.report.module.path,
            module.report.module.name,
            row.name,
            row.opcode,
            row.line,
            "; ".join(part for part in why if part) or "the message does not say which collective it is about",
            row.axes,
            None if fit is None else fit.peers,
            row,
        )

    def notes(self, found: Sequence[Candidate]) -> Iterator[str]:
        """Yield what else there is to say of the answer."""
        said = self.said
        if self.recognised.note is not None:
            yield self.recognised.note
        if not self.searched:
            return
        yield from self._notes_on_ids(found)
        if said.module is not None and not self._asked():
            yield f"no module is called {said.module}"
        for name in said.names or ():
            if not any(module.named(name) for module in self._asked()):
                yield f"no collective is called {name}"
        yield from self._notes_on_devices(found)

    def _notes_on_ids(self, found: Sequence[Candidate]) -> Iterator[str]:
        said = self.said
        asked = self._asked()
        if said.channel is not None and not any(row.channel_id == said.channel for each in asked for row in each.rows):
            yield f"no collective has channel {said.channel}"
        number = said.number
        if number is not None and not any(self._has_number(each, number) for each in found):
            if said.kind is None:
                yield f"op_id {number} is no channel, no module and no instruction here"
            else:
                yield (
                    f"op_id {number} is no module and no instruction here; with cross_replica XLA counts modules by "
                    "it, so it does not tell collectives of one module apart"
                )

    def _notes_on_devices(self, found: Sequence[Candidate]) -> Iterator[str]:
        said = self.said
        named = said.devices or [device for group in said.groups or () for device in group]
        named = [*named, *(number for name, number in (said.numbers or {}).items() if name == "rank")]
        for module in self._asked():
            path = f"{module.report.module.path}: " if len(self.searched) > 1 else ""
            if named and module.num_devices is not None:
                beyond = next(outside(named, module.num_devices), None)
                if beyond is not None:
                    yield f"{path}device {beyond} is none of the module's {module.num_devices:,} devices"
            if named and not found and any(row.ids for row in module.rows):
                yield (
                    f"{path}ids were compared as they are written, for nobody states the counts; "
                    "give --replicas and --partitions"
                )
            if module.report.unread and not found:
                yield f"{path}{len(module.report.unread):,} things that may communicate could not be read"


def _as_written(row: Row, fit: Fit) -> Iterator[str]:
    if row.ids and fit.why:
        yield "ids as written, for nobody states the counts"
