"""Several all-gathers as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from commlens.neuron.combiner_keys import CombinedOpcode
from commlens.neuron.passes.dimension_combiner import DimensionCombiner


@dataclass(frozen=True, slots=True)
class NeuronAllGatherCombiner(DimensionCombiner):
    """Makes one variadic all-gather of several that do not depend on each other.

    They must share: element type, gather dimension, whether they have a channel id, ``use_global_device_ids``, the
    sharding domain, the frontend attribute ``collective_group_key``, and the groups with the order of groups and
    members, however spelt. Which channel id they have does not count; the new instruction has that of the first.

    What may surprise, all of it documented:

    - A set ends at the first all-gather that would make it too large or that depends on a member. Nothing behind is
      looked at for it. Sizes are those of the results.
    - One layout-constrained all-gather in the module disables the pass.
    - Control dependencies do not exclude an all-gather, as they do in the other two combiners.
    - All-gathers with several operands, asynchronous ones and those in fusions are left alone.
    - Where a reduce-scatter of a dot shows the groups of tensor parallelism, only all-gathers with those are combined.

    Attributes:
        name: ``"all-gather-combiner"``, number 77 of the registry.

    The options are those of :class:`~commlens.neuron.passes.dimension_combiner.DimensionCombiner`.

    Source: the pass of that name in neuronx_cc 2.24.5133, on the engine of stock XLA.

    Example:
        >>> str(NeuronAllGatherCombiner(threshold_count=8, tp_group="off"))
        'all-gather-combiner{threshold_count=8,tp_group=off}'
    """

    name: ClassVar[str] = "all-gather-combiner"
    opcode: ClassVar[CombinedOpcode] = "all-gather"
