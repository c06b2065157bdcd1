"""Ids for new instructions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from commlens.hlo.edits import EditError
from commlens.hlo.proto.decoding import decode_or_empty
from commlens.hlo.proto.schema.commlens_hlo_pb2 import HloInstructionEdges

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlens.hlo.proto.schema.commlens_hlo_pb2 import HloComputationOutline

_HALF: Final = 32
_LARGEST_LOCAL: Final = 2**31 - 1
_LARGEST: Final = 2**63 - 1


@dataclass(slots=True)
class FreshIds:
    """Gives ids that no instruction of a module has.

    XLA numbers an instruction by its computation and its place there, ``computation << 32 | local``. In a module that
    does so throughout, new ids are the next ones of the computation. Older files number the instructions of all
    computations in a row: there they come behind the largest.

    Attributes:
        largest: the largest id of each computation, by the computation's position in the file.
        most: the largest of all.
        is_local: whether every id is made of two halves.
    """

    largest: dict[int, int]
    most: int
    is_local: bool

    def take(self, number: int) -> int:
        """Return an id for an instruction.

        Args:
            number: position of its computation in the file.

        Raises:
            EditError: none is left.
        """
        taken = 1 + (self.largest[number] if self.is_local else self.most)
        if taken > _LARGEST or (self.is_local and taken % 2**_HALF > _LARGEST_LOCAL):
            msg = f"expected an id that no instruction of the module has, found all up to {taken - 1} to be given"
            raise EditError(msg)
        self.largest[number] = taken
        self.most = max(self.most, taken)
        return taken


def fresh_ids(computations: Iterable[HloComputationOutline]) -> FreshIds:
    """Look at all ids of a module.

    Args:
        computations: its computations.
    """
    largest: dict[int, int] = {}
    halves: set[int] = set()
    is_local = True
    for number, computation in enumerate(computations):
        ids = [decode_or_empty(HloInstructionEdges, data).id for data in computation.instructions]
        is_local = is_local and computation.id not in halves and all(each >> _HALF == computation.id for each in ids)
        halves.add(computation.id)
        largest[number] = max(ids, default=(computation.id << _HALF) - 1)
    return FreshIds(largest, max(largest.values(), default=0), is_local)
