"""The stream id injector, as its tests run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commlens.neuron import NeuronCollectiveStreamIdInjector
from neuron_modules import Notation, module_of, stream_ids

if TYPE_CHECKING:
    from commlens.hlo import PassResult

INJECTOR = NeuronCollectiveStreamIdInjector()
TP, DP, ALL = [[0, 1], [2, 3]], [[0, 2], [1, 3]], [[0, 1, 2, 3]]


def gather(groups: list[list[int]] | None = None, **more: Any) -> dict[str, Any]:
    """Return an all-gather in a case's notation."""
    return {"op": "all-gather", **({} if groups is None else {"rg": groups}), **more}


def stamped(notation: Notation, backend: str) -> tuple[PassResult, list[list[str | None]]]:
    """Run the pass over a case; the result, and the stream ids in the new module."""
    result = INJECTOR.run(module_of(notation, backend))
    return result, stream_ids(result.module, notation)
