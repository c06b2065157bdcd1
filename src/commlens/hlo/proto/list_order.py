"""Whether the list of a computation has operands before their users.

XLA looks up operands and control predecessors by id while it reads the list, so that one that comes later is none for
it: ``HloComputation::CreateFromProto``, xla/hlo/ir/hlo_computation.cc. Ids may rise or fall along the list; this
package sorts by them, and so reads what XLA refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commlens.hlo.model import UnreadableError
from commlens.hlo.proto.computation import ProtoComputation
from commlens.hlo.proto.decoding import decode
from commlens.hlo.proto.schema.commlens_hlo_pb2 import HloInstructionEdges

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo.model import Computation


class LateOperand(NamedTuple):
    """An instruction that the list has before something it needs.

    Attributes:
        user: its name.
        operand: the name of an operand or control predecessor that comes later, or is the instruction itself.
    """

    user: str
    operand: str


def late_operands(computation: Computation) -> Iterator[LateOperand]:
    """Find the instructions of a proto that are listed before what they need.

    Args:
        computation: the computation; one of a text has none.

    Yields:
        Them in the order of the list, each once for everything that comes too late. What is not defined at all, or
        cannot be decoded, is no operand that comes late. Takes time in proportion to the computation.
    """
    if not isinstance(computation, ProtoComputation):
        return
    edges = dict(_edges(computation))
    places = {edges[place].id: place for place in reversed(edges)}
    for place, each in edges.items():
        needed = dict.fromkeys((*each.operand_ids, *each.control_predecessor_ids))
        for late in (places[number] for number in needed if places.get(number, -1) >= place):
            yield LateOperand(computation.name_at(place), computation.name_at(late))


def _edges(computation: ProtoComputation) -> Iterator[tuple[int, HloInstructionEdges]]:
    """Yield what the instructions need, by place in the list; of one that cannot be decoded, nothing."""
    for place, data in enumerate(computation.encoded):
        try:
            yield place, decode(HloInstructionEdges, data)
        except UnreadableError:
            continue
