"""The channel id enforcer, as its tests run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commlens.neuron import NeuronUniqueChannelIdEnforcer
from neuron_modules import Notation, channel_ids, module_of

if TYPE_CHECKING:
    from commlens.hlo import PassResult

ENFORCER = NeuronUniqueChannelIdEnforcer()
SAFE = NeuronUniqueChannelIdEnforcer(safe=True)
GROUPS = [[0, 1], [2, 3]]


def enforced(
    notation: Notation, backend: str, enforcer: NeuronUniqueChannelIdEnforcer = ENFORCER
) -> tuple[PassResult, list[list[int | None]]]:
    """Run the pass over a case; the result, and the channel ids in the new module."""
    result = enforcer.run(module_of(notation, backend))
    return result, channel_ids(result.module, notation)


def row(*pairs: tuple[str, int | None]) -> list[dict[str, Any]]:
    """Return a computation in a case's notation from opcodes and channel ids."""
    return [{"op": op, "ch": ch} for op, ch in pairs]


PAIR = row(("send", 7), ("send-done", 7), ("recv", 7), ("recv-done", 7))
