"""Several all-gathers as one."""

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
class NeuronAllGatherCombiner(Pass):
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
        threshold_bytes: most bytes of the results of one set; 0 or less disables the pass.
        threshold_count: most members of one set; likewise.
        combine_by_dim: whether different gather dimensions are kept apart. Where they are not, the new instruction has
            the dimension of most members (the lowest of several; 0 where the smallest result does not have it), and
            members with another one are transposed before and after.
        skip_while_bodies: whether bodies of while loops are left alone.
        mixed_dtypes: whether element types may differ.
        tp_group: ``"auto"`` to look for the groups of tensor parallelism, ``"off"`` to combine whatever the groups.

    Source: the pass of that name in neuronx_cc 2.24.5133, on the engine of stock XLA.

    Example:
        >>> str(NeuronAllGatherCombiner(threshold_count=8, tp_group="off"))
        'all-gather-combiner{threshold_count=8,tp_group=off}'
    """

    name: ClassVar[str] = "all-gather-combiner"
    threshold_bytes: int = 1 << 30
    threshold_count: int = 256
    combine_by_dim: bool = True
    skip_while_bodies: bool = False
    mixed_dtypes: bool = False
    tp_group: TpGroup = "auto"

    def run(self, module: Module, *, keep_going: bool = False) -> PassResult:
        """Combine the all-gathers of a module.

        Args:
            module: the module, which stays as it is.
            keep_going: whether to leave alone what cannot be understood, instead of refusing the module.

        Returns:
            The new module. ``stats``: the sets with what their members differed in, what disabled the pass, the groups
            of tensor parallelism, what could be in no set and why, and counts.

        Raises:
            InputError: an all-gather, or the computation of two that may be one, cannot be read.
        """
        rules = KeyRules("all-gather", combine_by_dim=self.combine_by_dim, mixed_dtypes=self.mixed_dtypes)
        limits = Limits(self.threshold_bytes, self.threshold_count)
        return Combiner(self.name, rules, limits, self.tp_group, self.skip_while_bodies).run(
            module, keep_going=keep_going
        )
