"""What the combiners of collectives with a dimension share: options, and what they answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from commlens.hlo import Pass
from commlens.neuron.combiner_engine import Limits
from commlens.neuron.combiner_keys import CombinedOpcode, KeyRules
from commlens.neuron.passes.combining import Combiner, TpGroup

if TYPE_CHECKING:
    from commlens.hlo import Module, PassResult


@dataclass(frozen=True, slots=True)
class DimensionCombiner(Pass):
    """A combiner of all-gathers or reduce-scatters.

    Attributes:
        opcode: what it combines.
        threshold_bytes: most bytes of the results of one set; 0 or less disables the pass.
        threshold_count: most members of one set; likewise.
        combine_by_dim: whether different gather or scatter dimensions are kept apart. Where they are not, the new
            instruction has the dimension of most members (the lowest of several; 0 where the smallest result does not
            have it), and members with another one are transposed before and after.
        skip_while_bodies: whether bodies of while loops are left alone.
        mixed_dtypes: whether element types may differ; in what reduces, as far as the element type of the reducer
            allows.
        tp_group: ``"auto"`` to look for the groups of tensor parallelism, ``"off"`` to combine whatever the groups.
    """

    opcode: ClassVar[CombinedOpcode]
    threshold_bytes: int = 1 << 30
    threshold_count: int = 256
    combine_by_dim: bool = True
    skip_while_bodies: bool = False
    mixed_dtypes: bool = False
    tp_group: TpGroup = "auto"

    def run(self, module: Module, *, keep_going: bool = False) -> PassResult:
        """Combine the collectives of a module.

        Args:
            module: the module, which stays as it is.
            keep_going: whether to leave alone what cannot be understood, instead of refusing the module.

        Returns:
            The new module. ``stats``: the sets with what their members differed in, what disabled the pass, the groups
            of tensor parallelism, what could be in no set and why, and counts.

        Raises:
            InputError: one that is combined, its reducer, or the computation of two that may be one, cannot be read.
        """
        rules = KeyRules(self.opcode, combine_by_dim=self.combine_by_dim, mixed_dtypes=self.mixed_dtypes)
        limits = Limits(self.threshold_bytes, self.threshold_count)
        return Combiner(self.name, rules, limits, self.tp_group, self.skip_while_bodies).run(
            module, keep_going=keep_going
        )
