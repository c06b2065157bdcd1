"""Two streams: which collective goes to which is told by its groups."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from commlens.hlo import Pass, Refusals, SetFrontendAttribute, UnreadableError, figures, pass_result, shares
from commlens.neuron.frontend_attributes import FSDP_TYPES, STREAM_ID, TP_TYPES
from commlens.neuron.passes.exemplars import find_exemplar
from commlens.neuron.passes.stream_survey import survey
from commlens.neuron.places import listed, name_of, place_of
from commlens.topology import CollectiveDeviceList, replica_groups_equal

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from commlens.hlo import Edit, Instruction, Json, Module, PassResult
    from commlens.neuron.passes.exemplars import Exemplar
    from commlens.neuron.passes.stream_survey import Stampable, Survey, Traits
    from commlens.topology import DeviceList

_NOT_FOUND: Final = CollectiveDeviceList(None)
"""What an exemplar is that nobody found: the empty list, which equals absent groups."""

_STREAM_OF_TYPE: Final[Mapping[str, str]] = MappingProxyType(
    {**dict.fromkeys(TP_TYPES, "0"), **dict.fromkeys(FSDP_TYPES, "1")}
)


@dataclass(frozen=True, slots=True)
class NeuronCollectiveStreamIdInjector(Pass):
    """Gives every collective the frontend attribute ``stream_id``: "0", or "1" where its groups are those of FSDP.

    First two exemplars are looked for: a collective that ``collective_type`` marks as one of tensor parallelism (TP),
    and one that it marks as one of fully sharded data parallelism (FSDP). In each computation the first in post-order
    counts, and later computations overwrite. Then every collective gets "0" where its groups equal those of the TP
    exemplar, else "1" where they equal those of the FSDP exemplar, else "0".

    What may surprise, all of it documented:

    - Only the class ``HloCollectiveInstruction`` is stamped: no collective-permute, send, recv or custom call. Of an
      asynchronous start it is the wrapped operation; one that is written in short counts where its line stands.
    - Where a text states frontend attributes of an async-start, update or done, XLA puts the last of them in the place
      of those of what is wrapped. They are the ones that count then, and both are stamped. So is every other one of the
      three that has a ``stream_id`` already, in a proto too: it would contradict the new one. ``stats`` lists them.
    - Collectives whose result holds integers only make no exemplar and are stamped all the same.
    - A collective's own ``collective_type`` says nothing about its stream.
    - The order of groups and of members counts, the spelling does not. A third geometry gets "0".
    - An exemplar that was not found is the empty list, and equals absent groups: with a TP exemplar alone, a collective
      without groups gets "1". A warning names it.
    - Equal exemplars leave "0" for everybody.
    - A ``stream_id`` that is there already is overwritten.
    - ``changed`` says that an exemplar was found, not that anything differs: it is false for a module without marked
      collectives, all of which get "0", and true on a second run. ``modified`` says what really differs.

    Attributes:
        name: ``"aws_neuron_collective_stream_id_injector"``, number 81 of the registry.

    Source: ``xla::hilo::NeuronCollectiveStreamIdInjector`` of neuronx_cc 2.24.5133.
    """

    name: ClassVar[str] = "aws_neuron_collective_stream_id_injector"

    def run(self, module: Module, *, keep_going: bool = False) -> PassResult:
        """Stamp the collectives of a module.

        Args:
            module: the module, which stays as it is.
            keep_going: whether to leave alone what cannot be read in full, instead of refusing the module.

        Returns:
            The new module. ``stats``: both exemplars, how many were stamped and how many of them had the value already,
            how many by stream and by groups, values that were overwritten, what was stamped beside the operation that
            it starts or ends, and what was not stamped and why.

        Raises:
            InputError: a collective that the pass stamps, or what may be one, cannot be read in full or edited; or the
                order of two exemplars cannot be made out, which nothing can be left alone for.
        """
        refusals = Refusals(module, keep_going)
        refusals.check_structure()
        seen = survey(module, refusals)
        streams = _Streams(find_exemplar(seen, TP_TYPES), find_exemplar(seen, FSDP_TYPES))
        stamps = {traits: streams.stamp(traits) for traits in {each.traits for each in seen}}
        edits = [edit for each in seen for edit in _edits(each, stamps[each.traits].value, seen.beside)]
        operations = {other: operation for operation, others in seen.beside.items() for other in others}
        made = refusals.apply(edits, partial(_operation, operations) if operations else None)
        done = seen.without(made.missing(edits))
        stats = _stats(done, streams, stamps, _beside(made.edits, operations))
        return pass_result(
            self.name,
            refusals,
            made,
            changed=streams.tp is not None or streams.fsdp is not None,
            stats=stats.as_json(),
            facts=stats.facts(),
            warnings=_warnings(done, streams, stamps),
        )


def _edits(
    each: Stampable, value: str, beside: Mapping[Instruction, Sequence[Instruction]]
) -> Iterator[SetFrontendAttribute]:
    """Yield what gives a collective a stream id, and what speaks of it beside the collective."""
    if each.traits.stream_id != value:
        yield SetFrontendAttribute(each.instruction, STREAM_ID, value)
    for other in beside.get(each.instruction, ()) if beside else ():
        if _stated(other) != value:
            yield SetFrontendAttribute(other, STREAM_ID, value)


def _stated(instruction: Instruction) -> str | None:
    """Return the stream id that stands there; none where the edit will show that it cannot be read."""
    try:
        return instruction.frontend_attributes.get(STREAM_ID)
    except UnreadableError:
        return None


def _operation(operations: Mapping[Instruction, Instruction], edit: Edit) -> Instruction | None:
    """Return the collective that an edit is about: it is stamped everywhere or nowhere."""
    return operations.get(edit.instruction, edit.instruction) if isinstance(edit, SetFrontendAttribute) else None


@dataclass(frozen=True, slots=True)
class _Stamp:
    """A stream id, and whose groups decided about it.

    Attributes:
        value: ``"0"`` or ``"1"``.
        equals: the exemplar whose groups are the collective's, ``"TP"`` or ``"FSDP"``; None for neither.
        by_absence: whether that exemplar was never found.
    """

    value: str
    equals: str | None = None
    by_absence: bool = False


@dataclass(frozen=True, slots=True)
class _Streams:
    """The two exemplars, None where there is none."""

    tp: Exemplar | None
    fsdp: Exemplar | None

    def stamp(self, traits: Traits) -> _Stamp:
        if replica_groups_equal(traits.groups, _groups(self.tp)):
            return _Stamp("0", "TP", self.tp is None)
        if replica_groups_equal(traits.groups, _groups(self.fsdp)):
            return _Stamp("1", "FSDP", self.fsdp is None)
        return _Stamp("0")


def _groups(exemplar: Exemplar | None) -> DeviceList:
    return _NOT_FOUND if exemplar is None else exemplar.groups


@dataclass(frozen=True, slots=True)
class _Stats:
    """What was stamped, in figures.

    Attributes:
        streams: the exemplars.
        by_stream: how many collectives got which stream.
        by_groups: how many by their groups and what decided about those.
        as_before: how many had the value already.
        overwritten: those that had another one.
        beside: starts, updates and dones that got the value of the operation that they start or end.
        untouched: what was passed by, and why.
    """

    streams: _Streams
    by_stream: Mapping[str, int]
    by_groups: Mapping[tuple[str, _Stamp], int]
    as_before: int
    overwritten: Sequence[Json]
    beside: Sequence[Json]
    untouched: Sequence[Json]

    def as_json(self) -> dict[str, Json]:
        tp, fsdp = self.streams.tp, self.streams.fsdp
        return {
            "tp_exemplar": None if tp is None else tp.as_json(),
            "fsdp_exemplar": None if fsdp is None else fsdp.as_json(),
            "stamped": sum(self.by_stream.values()),
            "as_before": self.as_before,
            "streams": self.by_stream,
            "by_groups": [
                {"groups": groups, "stream_id": stamp.value, "equals": stamp.equals, "count": count}
                for (groups, stamp), count in self.by_groups.items()
            ],
            "overwritten": self.overwritten,
            "stamped_beside": self.beside,
            "untouched": self.untouched,
        }

    def facts(self) -> Iterator[str]:
        tp, fsdp = self.streams.tp, self.streams.fsdp
        yield from figures(
            tp_exemplar=None if tp is None else name_of(tp.item),
            fsdp_exemplar=None if fsdp is None else name_of(fsdp.item),
            stamped=sum(self.by_stream.values()),
            as_before=self.as_before,
        )
        yield from shares("streams", self.by_stream)
        yield from figures(
            by_groups=len(self.by_groups),
            overwritten=len(self.overwritten),
            stamped_beside=len(self.beside),
            untouched=len(self.untouched),
        )


def _stats(done: Survey, streams: _Streams, stamps: Mapping[Traits, _Stamp], beside: Sequence[Json]) -> _Stats:
    counts = Counter(each.traits for each in done)
    by_stream, by_groups = Counter[str](), Counter[tuple[str, _Stamp]]()
    for traits, count in counts.items():
        by_stream[stamps[traits].value] += count
        by_groups[str(traits.groups), stamps[traits]] += count
    return _Stats(
        streams=streams,
        by_stream={"0": by_stream["0"], "1": by_stream["1"]},
        by_groups=by_groups,
        as_before=sum(count for traits, count in counts.items() if traits.stream_id == stamps[traits].value),
        overwritten=[
            {**place_of(each.item), "old": each.traits.stream_id, "new": stamps[each.traits].value}
            for each in done
            if each.traits.stream_id not in (None, stamps[each.traits].value)
        ],
        beside=beside,
        untouched=done.untouched_as_json(),
    )


def _beside(edits: Iterable[Edit], operations: Container[Instruction]) -> list[Json]:
    """Tell of the starts, updates and dones that were stamped."""
    found = [edit for edit in edits if isinstance(edit, SetFrontendAttribute) and edit.instruction in operations]
    return [
        {
            **place_of(edit.instruction),
            "opcode": edit.instruction.opcode,
            "old": edit.instruction.frontend_attributes.get(STREAM_ID),
            "new": edit.value,
        }
        for edit in found
    ]


def _warnings(seen: Survey, streams: _Streams, stamps: Mapping[Traits, _Stamp]) -> Iterator[str]:
    stamped = list(seen)
    tp, fsdp = streams.tp, streams.fsdp
    if stamped and tp is None and fsdp is None:
        read = " that could be read in full" if seen.left_out else ""
        yield (
            f"no collective{read} is marked as one of TP or FSDP by collective_type: all {len(stamped)} get stream_id"
            ' "0", and `changed` is false all the same, as documented'
        )
    if seen.marked_left_out:
        yield (
            f"collective_type marks {listed(seen.marked_left_out)}, left out because not all of it can be read: its"
            " groups stand for no stream, so others may get another stream_id than with it"
        )
    if tp is not None and fsdp is not None and replica_groups_equal(tp.groups, fsdp.groups):
        yield (
            f"the exemplars of TP, {listed([tp.item])}, and of FSDP, {listed([fsdp.item])}, have the same groups"
            f' {tp.groups}: every collective gets stream_id "0"'
        )
    for absent in (_Stamp("0", "TP", by_absence=True), _Stamp("1", "FSDP", by_absence=True)):
        found = [each.item for each in stamped if stamps[each.traits] == absent]
        if found:
            yield (
                f"no replica groups are stated by {listed(found)}: they equal the empty groups of the {absent.equals}"
                f' exemplar, which was not found, and so get stream_id "{absent.value}"'
            )
    found = [each.item for each in stamped if stamps[each.traits].value != _expected(each.traits, stamps)]
    if found:
        yield f"by their groups, not as their own collective_type says, the stream was chosen for {listed(found)}"


def _expected(traits: Traits, stamps: Mapping[Traits, _Stamp]) -> str:
    """Return the stream that a collective's own type would suggest; the one it has where its type says nothing."""
    return _STREAM_OF_TYPE.get(traits.collective_type or "", stamps[traits].value)
