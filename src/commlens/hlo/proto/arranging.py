"""Putting combined collectives into a computation: ids, the file's order, the schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from commlens.hlo.edits import EditError
from commlens.hlo.placement import Combination, place
from commlens.hlo.proto import descriptors
from commlens.hlo.proto.combining import combined
from commlens.hlo.proto.decoding import decode
from commlens.hlo.proto.instruction import ProtoInstruction
from commlens.hlo.proto.schema.commlens_hlo_pb2 import HloInstructionEdges

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from commlens.hlo.edit_plan import Step
    from commlens.hlo.proto.combining import Fresh, WrittenInstruction
    from commlens.hlo.proto.computation import ProtoComputation
    from commlens.hlo.proto.raw_message import RawMessage


@dataclass(frozen=True, slots=True)
class Arrangement:
    """What a computation becomes.

    Attributes:
        rows: by position in the file's list, what stands there now; a position that holds what it held is left out.
        root: the root's id, where that changes.
        sequence: the ids as scheduled; empty where the computation has no schedule.
    """

    rows: Mapping[int, Sequence[RawMessage]]
    root: int | None = None
    sequence: Sequence[int] = ()


def arranged(
    computation: ProtoComputation,
    steps: Sequence[Step[ProtoInstruction]],
    others: Mapping[int, RawMessage],
    fresh: Fresh,
) -> Arrangement:
    """Combine collectives of a computation.

    The new instruction takes the id of the first of its members by id, so that it stands in that place of the
    instruction list. That member gets a fresh id, under which all others name it from then on.

    Args:
        computation: the computation.
        steps: what is combined; no instruction is a member twice.
        others: by position, instructions that are changed otherwise.
        fresh: gives names and ids.

    Raises:
        EditError: members depend on each other, one cannot be combined, or ids are given twice.
        UnreadableError: an instruction of the computation cannot be decoded.
    """
    edges = _edges(computation)
    combinations = [
        Combination([member.message.id for member in step.members], fresh.number(), step.edit.name) for step in steps
    ]
    renames = {min(each.members): each.new for each in combinations}

    def renamed(number: int) -> int:
        return renames.get(number, number)

    pieces: dict[int, Sequence[WrittenInstruction]] = {}
    for step, combination in zip(steps, combinations, strict=True):
        made = combined(step.edit, step.members, min(combination.members), renamed, fresh)
        pieces |= {combination.new: made.new, **dict(zip(combination.members, made.members, strict=True))}

    def standing(key: int) -> list[RawMessage]:
        if key in pieces:
            return [piece.message for piece in pieces[key]]
        position = edges.positions[key]
        written = others.get(position) or ProtoInstruction(computation, position).raw
        if renames.keys().isdisjoint(edges.before[key]):
            return [written]
        return [_with_renames(written, decode(HloInstructionEdges, computation.encoded[position]), renames)]

    order = list(edges.positions)
    placement = place(order, edges.before.__getitem__, combinations)
    changed = {*edges.users(renames), *others, *(edges.positions[key] for key in pieces if key in edges.positions)}
    rows = {position: standing(order[position]) for position in changed - placement.places.keys()}
    for position, keys in placement.places.items():
        rows[position] = [written for key in keys for written in standing(key)]
    return Arrangement(
        rows, renames.get(computation.outline.root_id), _sequence(computation, edges, combinations, pieces)
    )


@dataclass(frozen=True, slots=True)
class _Edges:
    """What must run before what in a computation.

    Attributes:
        before: by id, in the file's order, the ids of operands and control predecessors.
        positions: positions by id, in the same order.
    """

    before: Mapping[int, Sequence[int]]
    positions: Mapping[int, int]

    def users(self, numbers: Mapping[int, int]) -> Iterator[int]:
        """Yield the positions of instructions that name one of some ids."""
        return (
            position for position, before in enumerate(self.before.values()) if not numbers.keys().isdisjoint(before)
        )


def _edges(computation: ProtoComputation) -> _Edges:
    before: dict[int, tuple[int, ...]] = {}
    for data in computation.encoded:
        edges = decode(HloInstructionEdges, data)
        before[edges.id] = (*edges.operand_ids, *edges.control_predecessor_ids)
    if len(before) < len(computation.encoded):
        msg = f"expected every instruction of the computation {computation.name} to have an id of its own"
        raise EditError(msg)
    return _Edges(before, {number: position for position, number in enumerate(before)})


def _with_renames(written: RawMessage, edges: HloInstructionEdges, renames: Mapping[int, int]) -> RawMessage:
    """Return an instruction that names others by their new ids."""
    ids = {
        descriptors.OPERAND_IDS: edges.operand_ids,
        descriptors.CONTROL_PREDECESSOR_IDS: edges.control_predecessor_ids,
    }
    return written.with_fields(
        {
            field: [renames.get(number, number) for number in numbers]
            for field, numbers in ids.items()
            if not renames.keys().isdisjoint(numbers)
        }
    )


def _sequence(
    computation: ProtoComputation,
    edges: _Edges,
    combinations: Sequence[Combination[int]],
    pieces: Mapping[int, Sequence[WrittenInstruction]],
) -> list[int]:
    """Return the ids of a computation as scheduled; none where it has no schedule.

    Raises:
        EditError: the schedule lacks a member, or has what the computation lacks.
    """
    scheduled = computation.module.schedule_of(computation.outline.id)
    if not scheduled:
        return []
    if set(scheduled) != set(edges.positions) or len(scheduled) > len(edges.positions):
        msg = f"expected the schedule of the computation {computation.name} to have each of its instructions once"
        raise EditError(msg)
    order = place(scheduled, edges.before.__getitem__, combinations).order(scheduled)
    return [number for key in order for number in ([piece.number for piece in pieces[key]] if key in pieces else [key])]
