"""What a log refers to: its messages, and the collectives of modules that each can be about."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

from commlens.analysis.limits import FULL_LIMIT
from commlens.analysis.logs.answers import LogExplanation, LogMessage
from commlens.analysis.logs.asking import MOST_PARTIAL, Question
from commlens.analysis.logs.hearing import hear
from commlens.analysis.logs.recognising import Listener
from commlens.analysis.logs.records import records_of
from commlens.analysis.logs.remarks import remarks_on
from commlens.analysis.logs.searching import Labels, Searched

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from commlens.analysis.logs.answers import Candidate
    from commlens.analysis.logs.asking import Found
    from commlens.analysis.logs.hearing import Heard
    from commlens.analysis.logs.recognising import MessageKind
    from commlens.analysis.logs.records import LogStream
    from commlens.analysis.logs.said import Said
    from commlens.analysis.meshes import MeshLike
    from commlens.hlo import Module

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
        full: whether ids are listed up to the high limit, and all collectives of which only a part is true.

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
        asked = Question(position, each.recognised, searched, FULL_LIMIT if full else MOST_PARTIAL)
        found = asked.found()
        messages.append(_answered(each, asked, found))
        candidates += found.candidates
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


def _answered(heard: Heard, asked: Question, found: Found) -> LogMessage:
    recognised = heard.recognised
    return LogMessage(
        heard.line,
        heard.count,
        recognised.kind,
        " ".join(heard.text.split()),
        None if recognised.own is None else recognised.own.means,
        recognised.said,
        sorted(heard.ranks),
        any(candidate.match != "partial" for candidate in found.candidates),
        len(found.candidates),
        [*remarks_on(asked, found), *_silent(recognised.said, heard.ranks)],
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
