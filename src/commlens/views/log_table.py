"""The table of ``explain-log``: each message, and below it what it can be about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.views.alike import SHOWN
from commlens.views.columns import Column, Table, laid_out
from commlens.views.lines import BLANK, BOLD, DIM, WARNING, Line, Span, line, paragraph, styled, wrapped
from commlens.views.words import UNKNOWN, counted, cut, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.analysis import Candidate, LogExplanation, LogMessage, Said

_MOST_MESSAGES: Final = 100
_MOST_CANDIDATES: Final = 50
_MOST_TEXT: Final = 160
_MOST_WHY: Final = 400
_MOST_DEVICES: Final = 16
_INDENT: Final = " " * 8


def log_lines(answer: LogExplanation, width: int | None) -> Iterator[Line]:
    """Yield the table view of what a log refers to.

    Args:
        answer: the answer.
        width: columns of the terminal, None for as many as it takes.
    """
    yield from paragraph(summary_of(answer), BOLD, width)
    found = by_message(answer)
    for position, message in enumerate(answer.messages[:_MOST_MESSAGES]):
        yield BLANK
        yield from wrapped(_heading(message), width)
        yield from wrapped(_words(cut(printable(message.text), _MOST_TEXT), DIM), width, indent="    ")
        candidates = found[position]
        if candidates:
            yield BLANK
            yield from laid_out(candidate_table(candidates[:_MOST_CANDIDATES], answer, width), width)
        if len(candidates) > _MOST_CANDIDATES:
            yield line(styled(f"{len(candidates) - _MOST_CANDIDATES:,} more; --format json lists them all", DIM))
        for note, style in notes_of(message, answer):
            yield from paragraph(note, style, width)
    if len(answer.messages) > _MOST_MESSAGES:
        more = counted(len(answer.messages) - _MOST_MESSAGES, "more message")
        yield BLANK
        yield line(styled(f"{more}; --format json lists them all", DIM))
    for note in answer.notes:
        yield BLANK
        yield from paragraph(f"{note}.", DIM, width)


def by_message(answer: LogExplanation) -> list[list[Candidate]]:
    """Return the candidates of each message."""
    found: list[list[Candidate]] = [[] for _ in answer.messages]
    for candidate in answer.candidates:
        found[candidate.message].append(candidate)
    return found


def summary_of(answer: LogExplanation) -> str:
    """Say in one sentence what was found."""
    if not answer.messages:
        return "not found: the log holds no message about a collective that is known"
    messages = counted(len(answer.messages), "message")
    if not answer.reports:
        return f"{messages} about collectives; give the module to see which"
    found = sum(message.found for message in answer.messages)
    if not found and answer.left_out:
        return f"not found among the {messages} that are answered; {answer.left_out:,} more were left out"
    if not found:
        return f"not found: {messages} about collectives, none of which the modules have"
    if found == len(answer.messages):
        return f"found: {messages} about collectives"
    return f"found: {found:,} of {messages} about collectives"


def _heading(message: LogMessage) -> Iterator[Span]:
    times = "" if message.count == 1 else f", {message.count:,} times"
    yield Span(f"[line {message.line:,}]", BOLD)
    yield Span(f"{message.kind}{times}:", BOLD)
    yield from _words(said_of(message))


def said_of(message: LogMessage) -> str:
    """Say what a message says, in words."""
    said = message.said
    parts = [
        "" if said.devices is None else f"devices {_devices(said.devices)}",
        "" if said.groups is None else counted(len(said.groups), "group"),
        "" if said.num_participants is None else counted(said.num_participants, "participant"),
        "" if said.num_threads is None else f"{counted(said.num_threads, 'thread')} expected",
        f"rank {message.ranks[0]}" if len(message.ranks) == 1 else "",
        f"{len(message.ranks):,} ranks" if len(message.ranks) > 1 else "",
        said.kind or "",
        "" if said.op_id is None else f"op_id {said.op_id}",
        "" if said.channel_id is None else f"channel {said.channel_id}",
        said.opcode or "",
        _elements(said),
        "" if said.names is None else " or ".join(said.names),
        "" if said.op_name is None else f"op_name {said.op_name}",
        "" if said.module is None else f"in {said.module}",
        *(f"{name} {number}" for name, number in (said.numbers or {}).items()),
    ]
    return cut(printable(", ".join(part for part in parts if part)), _MOST_WHY) or "nothing of a collective's own"


def _elements(said: Said) -> str:
    """Say how many elements a message counts.

    Example:
        >>> from commlens.analysis import Said
        >>> _elements(Said(elements_in=1)), _elements(Said(elements_in=64, elements_out=256))
        ('1 element in', '64 elements in, 256 out')
    """
    put_in, got_out = said.elements_in, said.elements_out
    if put_in is None:
        return "" if got_out is None else f"{counted(got_out, 'element')} out"
    return f"{counted(put_in, 'element')} in" + ("" if got_out is None else f", {got_out:,} out")


def notes_of(message: LogMessage, answer: LogExplanation) -> Iterator[tuple[str, str]]:
    """Yield what else there is to say of a message, each with its style."""
    if message.means is not None:
        yield message.means, DIM
    if answer.reports and not message.found:
        near = "; only a part of what it says is true of these" if message.candidates else ""
        yield f"not found{near}.", WARNING
    yield from ((f"{printable(note)}.", DIM) for note in message.notes)


def candidate_table(
    candidates: Sequence[Candidate], answer: LogExplanation, width: int | None, *, in_one_line: bool = False
) -> Table:
    """Return the table of what a message can be about.

    Args:
        candidates: the candidates.
        answer: the whole answer.
        width: where the lines below rows are wrapped.
        in_one_line: whether the reason stands in a column of its own, instead of below.
    """
    several = len(answer.reports) > 1
    columns = (
        Column("fits"),
        Column("name"),
        Column("opcode"),
        Column("axes", least=12),
        Column("peers", least=12),
        *((Column("module", least=12),) if several else ()),
    )
    rows = [_cells(each, several=several) for each in candidates]
    if in_one_line:
        return Table(
            (*columns, Column("why")),
            [[*row, Span(cut(printable(each.why), _MOST_WHY))] for row, each in zip(rows, candidates, strict=True)],
        )
    below = [list(wrapped(_words(cut(printable(each.why), _MOST_WHY)), width, indent=_INDENT)) for each in candidates]
    return Table(columns, rows, below)


def _cells(candidate: Candidate, *, several: bool) -> list[Span]:
    axes = UNKNOWN if candidate.axes is None else cut(printable(",".join(candidate.axes)), SHOWN) or "none"
    where = "" if candidate.line is None else f" line {candidate.line}"
    module = [Span(cut(printable(candidate.path), SHOWN))] if several else []
    return [
        Span("yes" if candidate.match == "full" else candidate.match, "" if candidate.match == "full" else WARNING),
        Span(f"{cut(printable(candidate.name), SHOWN)}{where}"),
        Span(candidate.opcode),
        Span(axes, WARNING if axes == UNKNOWN else BOLD),
        Span(_peers(candidate)),
        *module,
    ]


def _peers(candidate: Candidate) -> str:
    peers = candidate.peers
    if peers is None:
        return UNKNOWN
    groups = [group for group in peers if isinstance(group, list)]
    if not groups:
        return _devices([device for device in peers if isinstance(device, int)])
    shown = " or ".join(_devices(group) for group in groups[:2])
    return cut(shown + (f" or {len(groups) - 2:,} more" if len(groups) > 2 else ""), SHOWN)


def _devices(devices: Sequence[int]) -> str:
    """Spell devices, in short where they are many.

    Example:
        >>> _devices([0, 4]), _devices(range(32))
        ('{0,4}', '{0,1,2,...,31} (32)')
    """
    if len(devices) <= _MOST_DEVICES:
        return "{" + ",".join(map(str, devices)) + "}"
    return "{" + ",".join(map(str, devices[:3])) + f",...,{devices[-1]}}} ({len(devices):,})"


def _words(text: str, style: str = "") -> Iterator[Span]:
    return (Span(word, style) for word in text.split())
