"""Uses in the list of a proto of what is not listed before.

XLA looks up operands and control predecessors by id while it reads the list, so that one that comes later is none for
it: ``HloComputation::CreateFromProto``, xla/hlo/ir/hlo_computation.cc. Ids may rise or fall along the list; this
package sorts by them, and so reads what XLA refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlens.hlo.model import UnreadableError
from commlens.hlo.proto.computation import ProtoComputation
from commlens.hlo.proto.decoding import decode
from commlens.hlo.proto.instruction import ProtoInstruction
from commlens.hlo.proto.schema.commlens_hlo_pb2 import HloInstructionEdges
from commlens.hlo.use_before_definition import UseBeforeDefinition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commlens.hlo.model import Computation


def uses_before_definition_in_list(computation: Computation) -> Iterator[UseBeforeDefinition]:
    """Find the uses in a computation of a proto of what is not listed before.

    Args:
        computation: the computation; nothing is found in one of a text.

    Yields:
        The uses in the order of the list, once for each instruction and id. Where an instruction cannot be decoded,
        nothing is called undefined: it may be that one. Takes time in proportion to the computation.
    """
    if not isinstance(computation, ProtoComputation):
        return
    suspects, whole = _suspects(computation)
    places = _places(computation) if suspects else dict[int, int]()
    for place, edges in suspects.items():
        user = ProtoInstruction(computation, place)
        for number in dict.fromkeys((*edges.operand_ids, *edges.control_predecessor_ids)):
            listed = places.get(number)
            if listed is None:
                if whole:
                    yield UseBeforeDefinition(user, f"id {number}", "undefined")
            elif listed >= place:
                name = computation.name_at(listed)
                yield UseBeforeDefinition(user, name, "behind" if listed > place else "itself")


def _suspects(computation: ProtoComputation) -> tuple[Mapping[int, HloInstructionEdges], bool]:
    """Return by place the users of what is not listed before, and whether all could be decoded."""
    listed: set[int] = set()
    found: dict[int, HloInstructionEdges] = {}
    whole = True
    for place, data in enumerate(computation.encoded):
        try:
            edges = decode(HloInstructionEdges, data)
        except UnreadableError:
            whole = False
            continue
        if not (listed.issuperset(edges.operand_ids) and listed.issuperset(edges.control_predecessor_ids)):
            found[place] = edges
        listed.add(edges.id)
    return found, whole


def _places(computation: ProtoComputation) -> Mapping[int, int]:
    """Return where each id is listed first."""
    found: dict[int, int] = {}
    for place, data in enumerate(computation.encoded):
        try:
            found.setdefault(decode(HloInstructionEdges, data).id, place)
        except UnreadableError:
            continue
    return found
