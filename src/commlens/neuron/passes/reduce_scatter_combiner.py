"""Several reduce-scatters as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from commlens.neuron.combiner_keys import CombinedOpcode
from commlens.neuron.passes.dimension_combiner import DimensionCombiner


@dataclass(frozen=True, slots=True)
class NeuronReduceScatterCombiner(DimensionCombiner):
    """Makes one variadic reduce-scatter of several that do not depend on each other.

    They must share what all-reduces must (:class:`~commlens.neuron.NeuronAllReduceCombiner`) and the scatter dimension,
    and their reducer must be a reduction that XLA recognises (:func:`~commlens.hlo.reduction_kind`).

    What may surprise, all of it documented:

    - Sizes are those of the results, so the parts count, not the whole.
    - A set ends at the first reduce-scatter that would make it too large or that depends on a member.
    - One layout-constrained reduce-scatter in the module disables the pass.
    - Control dependencies exclude a reduce-scatter, those that lead to it and those that come from it.
    - Reduce-scatters with several operands, asynchronous ones and those in fusions are left alone.
    - Where a reduce-scatter of a dot shows the groups of tensor parallelism, only those with these groups are combined.

    Attributes:
        name: ``"reduce-scatter-combiner"``, number 78 of the registry.

    The options are those of :class:`~commlens.neuron.passes.dimension_combiner.DimensionCombiner`.

    Source: the pass of that name in neuronx_cc 2.24.5133, on the engine of stock XLA.

    Example:
        >>> str(NeuronReduceScatterCombiner(combine_by_dim=False))
        'reduce-scatter-combiner{combine_by_dim=false}'
    """

    name: ClassVar[str] = "reduce-scatter-combiner"
    opcode: ClassVar[CombinedOpcode] = "reduce-scatter"
