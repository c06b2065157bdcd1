"""Who gets nothing any more: what a collective-permute leaves behind when its pairs change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlens.analysis.change_details import Detail
from commlens.hlo import some_of
from commlens.topology import SourceTargetPairs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from commlens.analysis.meanings import Meaning


def lost_targets(before: Meaning, after: Meaning, added: Iterable[tuple[str, Meaning]]) -> Iterator[Detail]:
    """Yield what became of the pairs that a collective-permute has lost.

    A device that is no target of a collective-permute gets zeros from it (``collective-permute`` in
    https://openxla.org/xla/operation_semantics). Where the permute was split, others of its shape take pairs over.

    Args:
        before: what it did.
        after: what it does.
        added: names and meanings of the collectives that are new.
    """
    first, second = before.joined, after.joined
    if not isinstance(first, SourceTargetPairs) or not isinstance(second, SourceTargetPairs):
        return
    gone = set(first) - set(second)
    receiving = {target for _, target in second}
    for name, other in added if gone else ():
        if other.opcode == before.opcode and other.operand_shapes == before.operand_shapes:
            pairs = set(other.joined) if isinstance(other.joined, SourceTargetPairs) else set[tuple[int, int]]()
            receiving |= {target for _, target in pairs}
            taken = sorted(gone & pairs)
            if taken:
                words = some_of([f"{{{source},{target}}}" for source, target in taken])
                yield Detail("taken_over", None, name, f"{words} now in {name}")
    left = sorted({target for _, target in gone} - receiving)
    if left:
        who = some_of([str(device) for device in left])
        yield Detail("zeros", [], left, f"device {who} gets zeros" if len(left) == 1 else f"devices {who} get zeros")
