"""Several reduce-scatters as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from commlens.hlo import Pass
from commlens.neuron.combiner_engine import Limits
from commlens.neuron.combiner_keys import KeyRules
from commlens.neuron.passes.combining import Combiner, TpGroup

if TYPE_CHECKING:
    from commlens.hlo import Module, PassResult


@dataclass(frozen=True, slots=True)
class NeuronReduceScatterCombiner(Pass):
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
        threshold_bytes: most bytes of the results of one set; 0 or less disables the pass.
        threshold_count: most members of one set; likewise.
        combine_by_dim: whether different scatter dimensions are kept apart. Where they are not, the new instruction has
            the dimension of most members (the lowest of several; 0 where the smallest result does not have it), and
            members with another one are transposed before and after.
        skip_while_bodies: whether bodies of while loops are left alone.
        mixed_dtypes: whether element types may differ, as far as the element type of the reducer allows.
        tp_group: ``"auto"`` to look for the groups of tensor parallelism, ``"off"`` to combine whatever the groups.

    Source: the pass of that name in neuronx_cc 2.24.5133, on the engine of stock XLA.

    Example:
        >>> str(NeuronReduceScatterCombiner(combine_by_dim=False))
        'reduce-scatter-combiner{combine_by_dim=false}'
    """

    name: ClassVar[str] = "reduce-scatter-combiner"
    threshold_bytes: int = 1 << 30
    threshold_count: int = 256
    combine_by_dim: bool = True
    skip_while_bodies: bool = False
    mixed_dtypes: bool = False
    tp_group: TpGroup = "auto"

    def run(self, module: Module, *, keep_going: bool = False) -> PassResult:
        """Combine the reduce-scatters of a module.

        Args:
            module: the module, which stays as it is.
            keep_going: whether to leave alone what cannot be understood, instead of refusing the module.

        Returns:
            The new module. ``stats``: the sets with what their members differed in, what disabled the pass, the groups
            of tensor parallelism, what could be in no set and why, and counts.

        Raises:
            InputError: a reduce-scatter, its reducer, or the computation of two that may be one, cannot be read.
        """
        rules = KeyRules("reduce-scatter", combine_by_dim=self.combine_by_dim, mixed_dtypes=self.mixed_dtypes)
        limits = Limits(self.threshold_bytes, self.threshold_count)
        return Combiner(self.name, rules, limits, self.tp_group, self.skip_while_bodies).run(
            module, keep_going=keep_going
        )
