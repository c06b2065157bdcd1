"""Recognising the messages of a log: what XLA, its GPU libraries and its traces print about a collective.

Source of the texts: ``RendezvousKey`` in xla/service/rendezvous.h and collective_ops_utils.h (``global_devices``,
``num_local_participants``, ``collective_op_kind``, ``op_id``); ``GpuCliqueKey::ToString`` in
xla/backends/gpu/collectives/gpu_clique_key.cc (``devices``, ``groups``, ``is_p2p`` or the older ``stream``);
``op_id`` is set by ``CollectiveConfig::SetCollectiveOpKindAndID``: the channel, or without one the module's number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from commlens.analysis.logs import libraries
from commlens.analysis.logs.libraries import of_library, works_of
from commlens.analysis.logs.operations import OPCODES, bare_operation, operation
from commlens.analysis.logs.records import Needles
from commlens.analysis.logs.said import MOST_DEVICES, Kind, Said, number_of_devices, read_devices, read_groups

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from commlens.hlo import Signature
    from commlens.topology import DeviceList, SourceTargetPairs

    Joined: TypeAlias = DeviceList | SourceTargetPairs | None
    """The groups or pairs of global ids that a collective joins; None where they cannot be told."""

_OWN_NAME: Final = re.compile(
    rf"(?:{OPCODES})(?:[-_](?:start|update|done))?(?:\.[0-9]{{1,12}}|_[0-9]{{1,12}}|\.clone|\.remat){{1,8}}"
)
_TOKEN: Final = re.compile(r"%?[A-Za-z_][\w.\-]*")
_SUFFIX: Final = re.compile(r"\.\d")
_NAMED: Final = re.compile(
    r"[`'\"]%?([A-Za-z_][\w.\-]{0,400})[`'\"]"
    r"|\b(?:hlo_op|instruction|thunk)\s{0,2}[=:]?\s{0,2}%?([A-Za-z_][\w.\-]{0,400})"
)
_SUFFIXED_AT: Final = r"\.(?:(?<=[A-Za-z_]\.)|(?<=[A-Za-z_][0-9]\.)|(?<=[A-Za-z_][0-9][0-9]\.))[0-9]"
_SUFFIXED: Final = re.compile(_SUFFIXED_AT)
_SUFFIXED_BYTES: Final = re.compile(_SUFFIXED_AT.encode())
_MARKED_BYTES: Final = re.compile(rb"%[A-Za-z_]")
_OP_NAME: Final = re.compile(r"op_name\s{0,2}[=:]\s{0,2}\"([^\"\n]{1,4000})\"")
_MODULE: Final = re.compile(r"\bhlo_module\s{0,2}[=:]\s{0,2}[`'\"]?([A-Za-z_][\w.\-]{0,400})")

_DEVICES: Final = re.compile(
    r"\b(global_)?devices\s{0,2}=\s{0,2}[\[{]"
    r"([0-9\s,;.…:\-]{0,16777216}(?:GlobalDeviceId\(\d{1,18}\)[\s,;]{0,8}){0,1048576})[\]}](?!\s{0,4}(?:<=|[0-9]))"
)
_GROUPS: Final = re.compile(r"\bgroups\s{0,2}=\s{0,2}[\[{]")
_BRACKET: Final = re.compile(r"[\[{]|[\]}]")
_IN_CLIQUE: Final = re.compile(
    r"[Cc]lique|[Rr]endezvous|[Cc]ommunicator|;\s{0,4}(?:stream|is_p2p|groups|root|num_local_participants|incarnations)\b"
)
_KIND: Final = re.compile(r"\b(?:(?:collective_)?op_)?kind\s{0,2}[=:]?\s{0,2}(cross[-_](?:replica|module))\b")
_KINDS: Final[Mapping[str, Kind]] = MappingProxyType({"cross_replica": "cross_replica", "cross_module": "cross_module"})
_OP_ID: Final = re.compile(
    r"\bop_id\s{0,2}=\s{0,2}(\d{1,18})(?!\d)|\bfirst call to collective operation (\d{1,18})(?!\d)"
)
_TOO_LONG: Final = re.compile(
    r"\b(?:op_id\s{0,2}=|first call to collective operation|channel[ _]id\s{0,2}[=:]?)\s{0,2}(\d{19,400})"
)
_CHANNEL: Final = re.compile(r"\bchannel[ _]id\s{0,2}[=:]?\s{0,2}(\d{1,18})\b")
_CHANNEL_IN_WORDS: Final = re.compile(
    rf"(?:\b(?:on|with|in|at|for|over|using|{OPCODES}|(?:All|Reduce|Collective)[A-Z][A-Za-z]{{2,30}})\s|[(\[{{,;:]\s?)"
    r"channel\s{0,2}[=:]?\s{0,2}(\d{1,18})(?![\w/]|\s{0,2}(?:of\b|/|->))"
)
_HAS_CHANNELS_OF_ITS_OWN: Final = re.compile(r"CCL|P2P|grpc|GRPC|gRPC")
_LOCAL: Final = re.compile(r"\bnum_local_participants\s{0,2}=\s{0,2}(\d{1,18})\b")
_THREADS: Final = re.compile(r"Expected (\d{1,9}) threads to join the rendezvous")
_RANKS: Final = re.compile(
    r"(?:\bn_?[rR]anks\s{0,2}[=:]?|#ranks\s{0,2}=)\s{0,2}(\d{1,9})\b"
    r"|\brank\s{1,2}#?\d{1,9} (?:of|out of) (\d{1,9})\b"
)
_RANK: Final = re.compile(r"\brank\s{0,2}[=:#]?\s{0,2}#?(\d{1,9})\b")
_COMMUNICATOR: Final = re.compile(r"[Cc]lique|[Rr]endezvous|NCCL|RCCL|[Cc]ommunicator|[Cc]ollective|\bn_?[rR]anks\b")
_HANG: Final = re.compile(
    r"may be stuck|[Cc]ollective operation timed out|to join the rendezvous|Termination timeout for"
)
_OWN_ID: Final = re.compile(r"\bop_id\b|first call to collective operation")
_LISTING: Final = re.compile(r"\bglobal_devices\s{0,2}=")
_KEYS: Final = ("RendezvousKey{", "CliqueKey{")
_UNREADABLE: Final = "its list of devices cannot be read: expected ids with commas between, in brackets"
_UNREADABLE_GROUPS: Final = "its groups cannot be read: expected lists of ids in brackets, with commas between"

WORDS: Final = (
    *("endezvous", "lique", "ommunicator", "global_devices", "op_id", "channel_id", "channel id", "op_name", "anks"),
    *("hlo_op", "thunk", "may be stuck", "ollective op", "ermination", "channel ", "channel=", "channel:"),
    *libraries.WORDS,
)
"""Pieces of words of which every message that is recognised here holds one, names of instructions apart."""


class MessageKind(Protocol):
    """A message that only one kind of machine prints, and what it can be about."""

    @property
    def name(self) -> str:
        """What to call the kind."""
        ...

    @property
    def words(self) -> Sequence[str]:
        """Pieces of text of which the message holds one."""
        ...

    @property
    def pattern(self) -> re.Pattern[str]:
        """The message; its named groups are whole numbers."""
        ...

    @property
    def means(self) -> str:
        """What it means, in a sentence."""
        ...

    def candidates(
        self, collectives: Sequence[tuple[Signature, Joined]], devices: int | None, numbers: Mapping[str, int]
    ) -> Iterator[tuple[int, str]]:
        """Yield the positions of the collectives that it can be about, each with why.

        Those that are alike in operation, channel, groups and participants are given once.
        """
        ...


@dataclass(frozen=True, slots=True)
class Recognised:
    """A message that was recognised in a record.

    Attributes:
        kind: ``"rendezvous"``, ``"clique"``, ``"communicator"``, ``"channel"``, ``"instruction"``, ``"hang"``,
            ``"watchdog"``, or the name of a kind that one kind of machine prints.
        said: its facts.
        own: the kind that one kind of machine prints; None for others.
        note: what of it could not be read, so that nobody can tell what it is about; None where there is nothing.
        doubt: what of it could not be read though the rest says what it is about; None where there is nothing.
    """

    kind: str
    said: Said
    own: MessageKind | None = None
    note: str | None = None
    doubt: str | None = None


@dataclass(frozen=True, slots=True)
class Listener:
    """What to listen for in a log.

    Attributes:
        labels: names of the collectives of the modules at hand, and of what belongs to them.
        op_names: the ``op_name`` of their metadata; that of another instruction is no message.
        kinds: the messages of one kind of machine.
    """

    labels: Container[str]
    op_names: Container[str] = ()
    kinds: Sequence[MessageKind] = ()

    def needles(self) -> Needles:
        """Return what a line that can hold something holds."""
        words = dict.fromkeys([*WORDS, *(word for kind in self.kinds for word in kind.words)])
        return Needles(tuple(word.encode() for word in words), (_SUFFIXED_BYTES, _MARKED_BYTES))

    def messages(self, text: str) -> list[Recognised]:
        """Return the messages of a record, all that it says of one collective together."""
        own = [found for kind in self.kinds for found in _own(kind, text)]
        if own:
            return own
        works = [Recognised("watchdog", work.said, note=work.note, doubt=work.doubt) for work in works_of(text)]
        if works:
            return works
        names = self._names(text)
        keys = [match for match in _DEVICES.finditer(text) if match[1] or _IN_CLIQUE.search(text)]
        if keys:
            bounds = [*(match.start() for match in keys[1:]), len(text)]
            head = text[: keys[0].start()]
            parts = ((match, text[match.start() : bound]) for match, bound in zip(keys, bounds, strict=True))
            return [_of_key(match, head, part, names, text) for match, part in parts]
        return list(self._without_key(text, names))

    def _without_key(self, text: str, names: list[str]) -> Iterator[Recognised]:
        """Yield what a record without devices says."""
        said = _with_channel(_said(text, names), text)
        too_long = _too_long(text)
        if too_long is not None and (_OWN_ID.search(text) or _COMMUNICATOR.search(text) or bare_operation(text)):
            yield Recognised("rendezvous", said, note=too_long)
        elif _LISTING.search(text) or any(_is_open(key, text) for key in _KEYS):
            yield Recognised("rendezvous", said, note=_UNREADABLE)
        elif (said.op_name is not None and said.op_name in self.op_names) or len(names) == 1:
            yield Recognised("instruction", said)
        elif names:
            yield from (Recognised("instruction", _said(text, [name])) for name in names)
        elif said.channel is not None and (said.op_id is not None or _COMMUNICATOR.search(text) or said.opcode):
            yield Recognised("rendezvous" if said.op_id is not None else "channel", said)
        elif said.op_id is not None or said.num_threads is not None:
            yield Recognised("rendezvous", said)
        elif said.num_participants is not None and _COMMUNICATOR.search(text):
            yield Recognised("communicator", _with_operation(said, text))
        elif _HANG.search(text):
            yield Recognised("hang", _with_operation(said, text))

    def _names(self, text: str) -> list[str]:
        """Return what in a text is the name of a collective, each once."""
        quoted = {name for match in _NAMED.finditer(text) for name in match.groups() if name}
        if not quoted and "%" not in text and _SUFFIXED.search(text) is None:
            return []
        found: dict[str, None] = {}
        for match in _TOKEN.finditer(text):
            token = match.group()
            name = token.removeprefix("%").rstrip(".-")
            is_marked = token[0] == "%" or name in quoted or _SUFFIX.search(name) is not None
            if (is_marked and name in self.labels) or _OWN_NAME.fullmatch(name):
                found[name] = None
        return list(found)


def _own(kind: MessageKind, text: str) -> Iterator[Recognised]:
    if not any(word in text for word in kind.words):
        return
    for match in kind.pattern.finditer(text):
        numbers = {name: int(value) for name, value in match.groupdict().items() if value is not None}
        yield Recognised(kind.name, Said(numbers=numbers or None), kind)


def _of_key(match: re.Match[str], head: str, part: str, names: list[str], text: str) -> Recognised:
    """Read the key of a rendezvous or of a clique: what stands in front of all keys holds for each."""
    devices = read_devices(match[2])
    groups = _groups_text(part)
    listed = None if groups is None else read_groups(groups)
    both = f"{part}\n{head}"
    said = _said(
        both,
        names,
        devices=None if devices is None else list(devices),
        groups=None if listed is None else [list(group) for group in listed],
    )
    said = _with_elements(said, both)
    note = _too_long(both) if devices is not None else _unreadable(match[2])
    doubt = _UNREADABLE_GROUPS if groups and listed is None else None
    return Recognised("rendezvous" if match[1] or "RendezvousKey" in text else "clique", said, note=note, doubt=doubt)


def _groups_text(text: str) -> str | None:
    """Return what stands between the outer brackets of groups, all there is where they are not closed; None: no groups.

    Example:
        >>> _groups_text("groups=[[0,1]]}; x"), _groups_text("groups=[]"), _groups_text("groups=[[0,1],[2")
        ('[0,1]', '', '[0,1],[2')
    """
    start = _GROUPS.search(text)
    if start is None:
        return None
    depth = 1
    for bracket in _BRACKET.finditer(text, start.end()):
        depth += 1 if bracket.group() in "[{" else -1
        if not depth:
            return text[start.end() : bracket.start()].strip()
    return text[start.end() :]


def _unreadable(devices: str) -> str:
    """Say why a list of devices cannot be read."""
    number = number_of_devices(devices)
    if number is None:
        return _UNREADABLE
    return f"its list of devices cannot be read: it has {number:,} ids, and at most {MOST_DEVICES:,} are read"


def _too_long(text: str) -> str | None:
    match = _TOO_LONG.search(text)
    return None if match is None else f"its id {match[1]} cannot be read: expected at most 18 digits"


def _is_open(key: str, text: str) -> bool:
    """Whether the last key of a kind is not closed any more."""
    place = text.rfind(key)
    return place >= 0 and "}" not in text[place:]


def _said(
    text: str, names: list[str], *, devices: list[int] | None = None, groups: list[list[int]] | None = None
) -> Said:
    has_ranks = "ank" in text
    participants = _number(_RANKS, text) if has_ranks else None
    rank = _number(_RANK, text) if has_ranks and (devices is not None or participants is not None) else None
    kind = _word(_KIND, text) if "kind" in text else None
    return Said(
        devices=devices,
        groups=groups,
        num_participants=participants,
        num_local_participants=_number(_LOCAL, text) if "num_local" in text else None,
        num_threads=_number(_THREADS, text) if devices is None and "Expected" in text else None,
        rank=rank,
        kind=None if kind is None else _KINDS[kind.replace("-", "_")],
        op_id=_number(_OP_ID, text),
        channel_id=_number(_CHANNEL, text) if "channel" in text else None,
        opcode=operation(text),
        names=names or None,
        op_name=_word(_OP_NAME, text) if "op_name" in text else None,
        module=_word(_MODULE, text) if "hlo_module" in text else None,
    )


def _number(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    return None if match is None else next(int(value) for value in match.groups() if value is not None)


def _word(pattern: re.Pattern[str], text: str) -> str | None:
    match = pattern.search(text)
    return None if match is None else match[1]


def _with_operation(said: Said, text: str) -> Said:
    """Add the operation of a message that speaks of one alone, and its elements where a library counts them."""
    said = _with_elements(said, text)
    return said if said.opcode is not None else replace(said, opcode=bare_operation(text))


def _with_elements(said: Said, text: str) -> Said:
    """Add what a library says of the operation and its elements, unless the text names another one."""
    counted = of_library(text)
    if counted is None or said.opcode not in (None, counted.opcode):
        return said
    return replace(said, opcode=counted.opcode, elements_in=counted.elements_in, elements_out=counted.elements_out)


def _with_channel(said: Said, text: str) -> Said:
    """Add the operation that a channel is of, and the channel of ``all-reduce hung on channel 2``.

    Libraries have channels of their own, which are none of HLO.
    """
    if said.channel is not None:
        return said if said.opcode is not None else replace(said, opcode=bare_operation(text))
    if said.op_id is not None or "channel" not in text or _HAS_CHANNELS_OF_ITS_OWN.search(text):
        return said
    channels = {int(channel) for channel in _CHANNEL_IN_WORDS.findall(text)}
    opcode = said.opcode or bare_operation(text)
    if opcode is None or len(channels) != 1:
        return said
    return replace(said, opcode=opcode, channel_id=channels.pop())
