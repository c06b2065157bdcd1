"""Who uses whom in a computation of a proto: by ids, where ids and names lead to one instruction each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlens.hlo.graphs import Graph
from commlens.hlo.model import UnreadableError
from commlens.hlo.proto.decoding import decode
from commlens.hlo.proto.schema.commlens_hlo_pb2 import HloInstructionProto

if TYPE_CHECKING:
    from collections.abc import Sequence


def graph_by_ids(encoded: Sequence[bytes]) -> Graph | None:
    """Read the edges of a computation, each instruction decoded once.

    Args:
        encoded: its instructions.

    Returns:
        The edges, by positions in the list by id; None where two instructions share an id or a name, one cannot be
        decoded, or an operand or control predecessor is not defined: then they have to be looked at one by one.
    """
    ids: list[int] = []
    names: set[bytes] = set()
    operand_ids: list[tuple[int, ...]] = []  # tuples of numbers leave the collector
    control_ids: dict[int, tuple[int, ...]] = {}
    try:
        for data in encoded:
            message = decode(HloInstructionProto, data)
            ids.append(message.id)
            names.add(message.name)
            operand_ids.append(tuple(message.operand_ids))
            if message.control_predecessor_ids:
                control_ids[message.id] = tuple(message.control_predecessor_ids)
    except UnreadableError:
        return None
    order = sorted(range(len(ids)), key=ids.__getitem__)
    positions = {ids[place]: position for position, place in enumerate(order)}
    if not len(positions) == len(names) == len(ids):
        return None
    position_of = positions.__getitem__
    try:
        operands = [tuple(map(position_of, operand_ids[place])) for place in order]
        control = {position_of(number): tuple(map(position_of, control_ids[number])) for number in sorted(control_ids)}
    except KeyError:
        return None
    return Graph(operands, control, distinct=True)
