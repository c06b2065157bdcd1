"""What a collective does to data and devices, apart from how it is spelled, where it stands and what it is called."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from commlens.analysis.participant_keys import Key, ParticipantKeys, order_of, participant_keys_of
from commlens.analysis.reductions import Reductions
from commlens.topology import SourceTargetPairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.analysis.figures import Figures
    from commlens.analysis.participation import Participation
    from commlens.analysis.reductions import Reduction
    from commlens.hlo import Module, Site
    from commlens.topology import DeviceList

_MOST_IDS: Final = 64
_MOST_TEXT: Final = 80

STREAM: Final = "stream_id"
"""The frontend attribute that says on which stream a collective runs."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a collective does. Two that are equal can be exchanged for each other.

    Attributes:
        opcode: the operation.
        members: who takes part, and in which order where that decides who gets what.
        operand_shapes: shapes of the operands in order.
        result_shapes: shapes of the results in order.
        dimension: along which dimension data are gathered, scattered or split.
        reduction: what it reduces with; None where it reduces nothing or does not say.
        token_operands: positions of operands that only order things.
        host_transfer: whether the peer of a send or recv is the host.
        stream: the stream that it is to run on, where an attribute says so.
        sets: who takes part, whatever their order.
        devices: who takes part, to be read.
        axes: the mesh axes that it runs along; None where they are not known.
        operand_bytes: bytes of a device's operands; None where they are not known.
        result_bytes: bytes of its results likewise.
        joined: the groups or pairs of global ids, as they are written where those cannot be told; None without any.
    """

    opcode: str
    members: Key
    operand_shapes: tuple[str, ...]
    result_shapes: tuple[str, ...]
    dimension: int | None
    reduction: Reduction | None
    token_operands: tuple[int, ...]
    host_transfer: bool
    stream: str | None
    sets: Key = field(compare=False)
    devices: str = field(compare=False)
    axes: tuple[str, ...] | None = field(compare=False)
    operand_bytes: int | None = field(compare=False)
    result_bytes: int | None = field(compare=False)
    joined: DeviceList | SourceTargetPairs | None = field(compare=False)

    @property
    def is_paired(self) -> bool:
        """Whether devices exchange data in pairs."""
        return isinstance(self.joined, SourceTargetPairs)


class Meanings:
    """The different meanings met so far, numbered: what compares many modules by whole numbers."""

    def __init__(self) -> None:
        self._numbers: dict[Meaning, int] = {}
        self._known: list[Meaning] = []

    def number(self, meaning: Meaning) -> int:
        """Return the number of a meaning, a new one where it was never met."""
        number = self._numbers.setdefault(meaning, len(self._known))
        if number == len(self._known):
            self._known.append(meaning)
        return number

    def __getitem__(self, number: int) -> Meaning:
        """Return the meaning of a number, as it was first met."""
        return self._known[number]


def meanings_in(module: Module, sites: Iterator[tuple[Site, Figures]], meanings: Meanings) -> Iterator[int]:
    """Yield the numbers of what the collectives of one module mean.

    Args:
        module: the module.
        sites: its collectives, each with its figures.
        meanings: where they are numbered.
    """
    reductions = Reductions(module)
    members: dict[
        tuple[int, str], ParticipantKeys
    ] = {}  # signatures share participations, and the module's figures keep them
    known: dict[tuple[Figures, Reduction | None], int] = {}
    for site, figures in sites:
        opcode = figures.signature.opcode
        reduction = reductions.of(site.instruction, opcode)
        number = known.get((figures, reduction))
        if number is None:
            shared = (id(figures.participation), order_of(opcode))
            if figures.participation.num_ids is None or shared not in members:
                members[shared] = participant_keys_of(figures)
            number = meanings.number(_meaning(figures, members[shared], reduction))
            known[figures, reduction] = number
        yield number


def _meaning(figures: Figures, members: ParticipantKeys, reduction: Reduction | None) -> Meaning:
    signature, participation = figures.signature, figures.participation
    dimensions = signature.dimensions
    return Meaning(
        opcode=signature.opcode,
        members=members.key,
        operand_shapes=figures.operand_shapes,
        result_shapes=figures.result_shapes,
        dimension=dimensions[0] if dimensions else None,
        reduction=reduction,
        token_operands=signature.token_operands,
        host_transfer=bool(signature.is_host_transfer),
        stream=signature.frontend_attributes.get(STREAM),
        sets=members.sets,
        devices=devices_text(figures),
        axes=figures.axes,
        operand_bytes=figures.operand_bytes,
        result_bytes=figures.result_bytes,
        joined=participation.groups or participation.pairs or signature.groups or signature.pairs,
    )


def devices_text(figures: Figures) -> str:
    """Name the devices that take part: one by one where there are few, else as their list is spelled.

    Example:
        >>> from commlens.analysis import report
        >>> from commlens.hlo import load
        >>> module = load('''HloModule m, num_partitions=4
        ... ENTRY e {
        ...   p = f32[8] parameter(0)
        ...   ROOT r = f32[8] all-reduce(p), channel_id=1, replica_groups={}, use_global_device_ids=false, to_apply=add
        ... }''')
        >>> devices_text(report(module).collectives[0].figures)
        '{{0,1,2,3}}'
    """
    signature, participation = figures.signature, figures.participation
    if signature.is_host_transfer:
        return "the host"
    known = _listed(participation)
    if known is not None:
        return known if participation.ids is None else f"{known} {participation.ids}"
    written = signature.pairs if signature.groups is None else signature.groups
    if written is None:
        return "not stated"
    text = _shortened(written)
    return (
        f"{text}, in a mode that nobody knows" if participation.mode is None else f"{text} in mode {participation.mode}"
    )


def _listed(participation: Participation) -> str | None:
    listed = participation.listed(_MOST_IDS)
    if listed is not None:
        return "{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in listed) + "}"
    joined = participation.pairs if participation.groups is None else participation.groups
    return None if joined is None else _shortened(joined)


def _shortened(joined: DeviceList | SourceTargetPairs) -> str:
    text = str(joined)
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}..."
