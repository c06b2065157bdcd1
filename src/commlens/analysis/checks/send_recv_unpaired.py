"""Sends without a recv, recvs without a send, and pairs that differ."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from commlens.analysis.participant_keys import pairs_key
from commlens.hlo import Example, Finding, Rule, UnreadableError, shortened, signature_of, some_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from commlens.hlo import Instruction, Site, Subject

_OTHER: Final[Mapping[str, str]] = MappingProxyType({"send": "recv", "recv": "send"})
_ANY: Final = "any"
"""The channel of what does not state it in a way that can be read."""


def find(subject: Subject) -> Iterator[Finding]:
    """Look at the sends and recvs of each channel; transfers to and from the host have their other end outside."""
    channels: dict[int | None, dict[str, list[Site]]] = {}
    for site in subject.sites:
        opcode = site.signature.opcode
        if opcode in _OTHER and not site.signature.is_host_transfer:
            channels.setdefault(site.channel_id, {"send": [], "recv": []})[opcode].append(site)
    unread = _unread(subject)
    for channel, found in channels.items():
        hidden = frozenset(opcode for opcode, its in unread if its in (channel, _ANY))
        yield from _channel(channel, found["send"], found["recv"], hidden)


def _unread(subject: Subject) -> frozenset[tuple[str, int | str | None]]:
    """Return the opcodes and channels of sends and recvs that cannot be read; they may be the other end of others."""
    if not any(item.opcode in _OTHER for item in subject.found.unread):
        return frozenset()
    found: set[tuple[str, int | str | None]] = set()
    for each in subject.module.instructions_of(frozenset(_OTHER)):
        try:
            signature_of(each)
        except UnreadableError:
            found.add((each.opcode, _channel_of(each)))
    return frozenset(found)


def _channel_of(instruction: Instruction) -> int | str | None:
    try:
        return instruction.channel_id
    except UnreadableError:
        return _ANY


def _channel(
    channel: int | None, sends: Sequence[Site], recvs: Sequence[Site], hidden: frozenset[str]
) -> Iterator[Finding]:
    """Look at the sends and recvs of one channel; ``hidden`` are the opcodes of which some there are not read."""
    where = "without a channel id" if channel is None else f"on channel {channel}"
    if not sends or not recvs:
        for site in (*sends, *recvs):
            opcode = site.signature.opcode
            if _OTHER[opcode] in hidden:
                continue
            message = f"expected a {_OTHER[opcode]} {where} for this {opcode}, found none; give both one channel id"
            yield Finding.about(message, site)
    elif channel is not None and (len(sends) > 1 or len(recvs) > 1):
        message = (
            f"expected one send and one recv {where}, found {len(sends)} sends ({_names(sends)}) and {len(recvs)} "
            f"recvs ({_names(recvs)}); give each two an id of their own, for nobody can tell which belong together"
        )
        yield Finding.about(message, *sends, *recvs)
    elif channel is not None:
        yield from _pair(where, sends[0], recvs[0])


def _pair(where: str, send: Site, recv: Site) -> Iterator[Finding]:
    """Compare a send with its recv."""
    sent, received = send.signature, recv.signature
    stated = sent.pairs, received.pairs
    if stated[0] is not None and stated[1] is not None and pairs_key(stated[0]) != pairs_key(stated[1]):
        message = (
            f"expected the send and the recv {where} to state the same source-target pairs, found "
            f"{shortened(stated[0])} and {shortened(stated[1])}"
        )
        yield Finding.about(message, send, recv)
    if sent.operand_shapes != received.result_shapes:
        shapes = (", ".join(map(str, each)) for each in (sent.operand_shapes, received.result_shapes))
        message = f"expected the recv {where} to have the shape that is sent, {next(shapes)}, found {next(shapes)}"
        yield Finding.about(message, send, recv)


def _names(sites: Sequence[Site]) -> str:
    return some_of([site.name for site in sites])


RULE: Final = Rule(
    id="send-recv-unpaired",
    severity="error",
    title="A send and a recv that do not belong together",
    documentation=(
        "A send and its recv find each other by their channel id. Here a channel has only one of the two, or several "
        "of one kind, or the two state different source-target pairs or shapes: the device that waits does so for "
        "ever, or takes the wrong data. The order of pairs means nothing, and an end that cannot be read may be the "
        "missing one. Transfers to the host are left out, their other end is not in the module. Of "
        "a program that is split into several modules, each with one end, the rule is to be ignored. All on a channel "
        "are listed."
    ),
    source="VerifyChannels, xla/service/hlo_verifier.cc",
    bad=Example("""HloModule example, num_partitions=2
ENTRY e {
  x = f32[8] parameter(0)
  t = token[] after-all()
  s = (f32[8], u32[], token[]) send(x, t), channel_id=7
  d = token[] send-done(s), channel_id=7
  v = (f32[8], u32[], token[]) recv(t), channel_id=8
  ROOT w = (f32[8], token[]) recv-done(v), channel_id=8
}
"""),
    good=Example("""HloModule example, num_partitions=2
ENTRY e {
  x = f32[8] parameter(0)
  t = token[] after-all()
  s = (f32[8], u32[], token[]) send(x, t), channel_id=7
  d = token[] send-done(s), channel_id=7
  v = (f32[8], u32[], token[]) recv(t), channel_id=7
  ROOT w = (f32[8], token[]) recv-done(v), channel_id=7
}
"""),
    find=find,
)
