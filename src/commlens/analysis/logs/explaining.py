"""What a log refers to: its messages, and the collectives of modules that each can be about."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from commlens.analysis.limits import id_limit
from commlens.analysis.logs.answers import Candidate, LogExplanation, LogMessage
from commlens.analysis.logs.fitting import Fitting, outside
from commlens.analysis.logs.hearing import hear
from commlens.analysis.logs.recognising import Listener
from commlens.analysis.logs.records import records_of
from commlens.analysis.logs.searching import Labels, Searched

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from commlens.analysis.figures import Figures
    from commlens.analysis.logs.fitting import Fit, Match
    from commlens.analysis.logs.hearing import Heard
    from commlens.analysis.logs.recognising import Joined, MessageKind, Recognised
    from commlens.analysis.logs.records import LogStream
    from commlens.analysis.logs.said import Said
    from commlens.analysis.meshes import MeshLike
    from commlens.analysis.row import Row
    from commlens.hlo import Module, Signature

MOST_MESSAGES: Final = 10_000
"""Most different messages of one log that are answered: half of them the first, half of them the last."""

_MOST_RANKS: Final = 8


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
    op_names = frozenset(row.op_name for each in searched for row in each.rows if row.op_name is not None)
    listener = Listener(Labels(searched), op_names, kinds)
    hearing = hear(records_of(_stream(log), listener.needles()), listener, MOST_MESSAGES)
    heard = hearing.messages()
    messages: list[LogMessage] = []
    candidates: list[Candidate] = []
    for position, each in enumerate(heard):
        asked = _Question(position, each.recognised, searched, id_limit(full=full))
        found = asked.candidates()
        messages.append(_answered(each, asked, found))
        candidates += found
    reports = [each.report for each in searched]
    notes = [_left_out(hearing.left_out, sum(each.count for each in heard))] if hearing.left_out else []
    return LogExplanation(messages, candidates, reports, notes, hearing.left_out)


def _left_out(number: int, answered: int) -> str:
    half = MOST_MESSAGES // 2
    return (
        f"{number:,} of {number + answered:,} messages were left out: the first {half:,} and the last {half:,} "
        "different ones are answered"
    )


def _stream(log: str | bytes | LogStream) -> LogStream:
    if isinstance(log, str):
        log = log.encode("utf-8", "surrogateescape")
    return io.BytesIO(log) if isinstance(log, bytes) else log


def _answered(heard: Heard, asked: _Question, found: Sequence[Candidate]) -> LogMessage:
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
        fitting = [each for each in found if each[0].match != "partial"]
        return self._by_number(fitting or found)

    def _asked(self) -> list[Searched]:
        """Return the modules that it can be about."""
        name = self.said.module
        return [each for each in self.searched if name is None or each.report.module.name == name]

    def _fitting(self, module: Searched) -> Iterator[tuple[Candidate, bool]]:
        """Yield what fits, each with whether it has the number that the message names."""
        said = self.said
        fitting = Fitting(said, module.num_devices, self.limit)
        fits: dict[Figures, Fit | None] = {}
        named = {position: how for name in said.names or () for position, how in module.named(name).items()}
        by_devices = said.devices is not None or said.groups is not None
        positions = range(len(module.rows)) if said.names is None or by_devices else sorted(named)
        for position in positions:
            row = module.rows[position]
            if row.figures not in fits:
                fits[row.figures] = fitting.fit(row.figures)
            fit = fits[row.figures]
            if fit is None or not self._is_of_kind(row):
                continue
            number = self._number_of(module, position)
            wrong = [*self._wrong(row, is_named=position in named)]
            is_meant = by_devices or position in named or bool(number)
            if (wrong and not (by_devices or position in named)) or (fit.wrong and not (is_meant or said.channel)):
                continue
            sure = fit.match == "full" and self.recognised.doubt is None and not row.ids
            match: Match = "partial" if wrong or fit.wrong else "full" if sure else "unknown"
            why = [
                named.get(position, ""),
                fit.why,
                fit.wrong,
                *self._true(row, number),
                *wrong,
                *_as_written(row, fit),
            ]
            yield self._candidate(module, row, match, why, fit), bool(number)

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

    def _true(self, row: Row, number: str) -> Iterator[str]:
        """Yield what it says that is true of a collective, apart from devices and names."""
        said = self.said
        if said.channel is not None and row.channel_id == said.channel:
            yield f"its channel is {said.channel}"
        elif said.channel is None and said.kind is not None:
            yield "it has a channel" if said.kind == "cross_module" else "it has no channel"
        if number:
            yield number
        if said.opcode is not None:
            yield f"it is {_a(said.opcode)}"
        if said.op_name is not None:
            yield f"its op_name is {said.op_name}"

    def _by_number(self, found: list[tuple[Candidate, bool]]) -> list[Candidate]:
        """Keep those of the number that it names; all where there is none, unless nothing else is said of them."""
        kept = [candidate for candidate, has_number in found if has_number]
        says_more = self.said.number is None or self.said.kind is not None or self.said.devices is not None
        return [candidate for candidate, _ in found] if says_more and not kept else kept

    def _number_of(self, module: Searched, position: int) -> str:
        """Say how a collective comes to the number that the message names: by its channel, name or module."""
        number = self.said.number
        if number is None:
            return ""
        if self.said.kind is None and module.rows[position].channel_id == number:
            return f"its channel is {number}"
        if position in module.numbered(number):
            return f"its name ends in {number}"
        return f"the number of its module is {number}" if module.number == number else ""

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
        if self.recognised.doubt is not None:
            yield self.recognised.doubt
        yield from self._notes_on_itself()
        if not self.searched:
            return
        yield from self._notes_on_ids()
        if said.module is not None and not self._asked():
            yield f"no module is called {said.module}"
        for name in said.names or ():
            if not any(module.named(name) for module in self._asked()):
                yield f"no collective is called {name}"
        yield from self._notes_on_devices(found)

    def _notes_on_ids(self) -> Iterator[str]:
        said = self.said
        asked = self._asked()
        if said.channel is not None:
            yield from self._notes_on_channel(said.channel)
        number = said.number
        if number is not None and not any(self._knows(each, number) for each in asked):
            if said.kind is None:
                yield f"op_id {number} is no channel, no module and no instruction here"
            else:
                yield (
                    f"op_id {number} is no module and no instruction here; with cross_replica XLA counts modules by "
                    "it, so it does not tell collectives of one module apart"
                )

    def _knows(self, module: Searched, number: int) -> bool:
        """Whether a module or something in it has a number."""
        is_channel = self.said.kind is None and number in module.by_channel
        return is_channel or module.number == number or bool(module.numbered(number))

    def _notes_on_channel(self, channel: int) -> Iterator[str]:
        opcode = self.said.opcode
        rows = [each.rows[position] for each in self._asked() for position in each.by_channel.get(channel, ())]
        if not rows:
            yield f"no collective has channel {channel}"
        elif opcode is not None and all(row.opcode != opcode for row in rows):
            yield f"channel {channel} is that of {rows[0].name}, {_a(rows[0].opcode)}, not of {_a(opcode)}"

    def _notes_on_itself(self) -> Iterator[str]:
        """Say what of the message does not agree with the rest of it."""
        said = self.said
        devices, local = said.devices, said.num_local_participants
        if devices is not None and said.groups is not None and set(devices) not in [set(each) for each in said.groups]:
            yield "its devices are none of its own groups"
        if devices is not None and local is not None and local > len(devices):
            yield f"it names {local:,} local participants and {len(devices):,} devices, of which they are a part"

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


def _a(opcode: str) -> str:
    return f"an {opcode}" if opcode.startswith("a") else f"a {opcode}"


def _as_written(row: Row, fit: Fit) -> Iterator[str]:
    if row.ids and fit.why:
        yield "ids as written, for nobody states the counts"
