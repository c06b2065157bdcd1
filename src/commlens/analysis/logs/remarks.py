"""What else there is to say of the answer to a message, in sentences: what nothing bears, and what does not agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlens.analysis.logs.asking import with_article
from commlens.analysis.logs.fitting import outside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.analysis.logs.asking import Found, Question
    from commlens.analysis.logs.said import Said
    from commlens.analysis.logs.searching import Searched


def remarks_on(question: Question, found: Found) -> Iterator[str]:
    """Yield what else there is to say.

    Args:
        question: the message and the modules.
        found: its answer.
    """
    is_found = bool(found.candidates)
    said, recognised = question.said, question.recognised
    if recognised.note is not None:
        yield recognised.note
    if recognised.doubt is not None:
        yield recognised.doubt
    yield from _on_itself(said)
    if not question.searched:
        return
    asked = question.asked
    yield from _on_ids(said, asked)
    if said.module is not None and not asked:
        yield f"no module is called {said.module}"
    for name in said.names or ():
        if not any(module.named(name) for module in asked):
            yield f"no collective is called {name}"
    if not is_found and recognised.note is None:
        yield from _on_elements(said, asked)
    yield from _on_devices(question, asked, is_found=is_found)
    if found.is_cut:
        yield f"more than these {len(found.candidates):,} are true in part; --full lists them all"


def _on_itself(said: Said) -> Iterator[str]:
    """Say what of the message does not agree with the rest of it."""
    devices, local = said.devices, said.num_local_participants
    if devices is not None and said.groups is not None and set(devices) not in [set(each) for each in said.groups]:
        yield "its devices are none of its own groups"
    if devices is not None and local is not None and local > len(devices):
        yield f"it names {local:,} local participants and {len(devices):,} devices, of which they are a part"


def _on_ids(said: Said, asked: list[Searched]) -> Iterator[str]:
    if said.channel is not None:
        yield from _on_channel(said, said.channel, asked)
    number = said.number
    if number is not None and not any(_knows(said, each, number) for each in asked):
        if said.kind is None:
            yield f"op_id {number} is no channel, no module and no instruction here"
        else:
            yield (
                f"op_id {number} is no module and no instruction here; with cross_replica XLA counts modules by "
                "it, so it does not tell collectives of one module apart"
            )


def _knows(said: Said, module: Searched, number: int) -> bool:
    """Whether a module or something in it has a number."""
    is_channel = said.kind is None and number in module.index.by_channel
    return is_channel or module.number == number or bool(module.numbered(number))


def _on_channel(said: Said, channel: int, asked: list[Searched]) -> Iterator[str]:
    opcode = said.opcode
    bearers = [(each, position) for each in asked for position in each.index.by_channel.get(channel, ())]
    rows = [module.rows[position] for module, position in bearers]
    if not rows:
        yield f"no collective has channel {channel}"
    elif opcode is not None and all(row.opcode != opcode for row in rows):
        bearer = f"{rows[0].name}, {with_article(rows[0].opcode)}"
        yield f"channel {channel} is that of {bearer}, not of {with_article(opcode)}"
    elif said.devices is not None and all(module.fits(said).of_row(position) is None for module, position in bearers):
        yield f"channel {channel} is that of {rows[0].name}, of which these devices are no group"


def _on_elements(said: Said, asked: list[Searched]) -> Iterator[str]:
    """Say that nothing has the operation, or its number of elements."""
    opcode = said.opcode
    if opcode is None or (said.elements_in is None and said.elements_out is None):
        return
    if not any(opcode in module.index.by_opcode for module in asked):
        yield f"no collective is {with_article(opcode)}"
    elif said.elements_in is None:
        yield f"no {opcode} has {said.elements_out:,} elements in its results"
    elif said.elements_out is None:
        yield f"no {opcode} has {said.elements_in:,} elements in its operands"
    else:
        yield f"no {opcode} has {said.elements_in:,} elements in its operands and {said.elements_out:,} in its results"


def _on_devices(question: Question, asked: list[Searched], *, is_found: bool) -> Iterator[str]:
    said = question.said
    named = said.devices or [device for group in said.groups or () for device in group]
    named = [*named, *(number for name, number in (said.numbers or {}).items() if name == "rank")]
    for module in asked:
        path = f"{module.report.module.path}: " if len(question.searched) > 1 else ""
        if named and module.num_devices is not None:
            beyond = next(outside(named, module.num_devices), None)
            if beyond is not None:
                yield f"{path}device {beyond} is none of the module's {module.num_devices:,} devices"
        if named and not is_found and module.index.has_written_ids:
            yield (
                f"{path}ids were compared as they are written, for nobody states the counts; "
                "give --replicas and --partitions"
            )
        if module.report.unread and not is_found:
            yield f"{path}{len(module.report.unread):,} things that may communicate could not be read"
