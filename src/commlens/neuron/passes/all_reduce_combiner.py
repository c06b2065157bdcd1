"""Several all-reduces as one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from commlens.hlo import Pass
from commlens.neuron.combiner_engine import Limits
from commlens.neuron.combiner_keys import KeyRules
from commlens.neuron.passes.combining import Combiner

if TYPE_CHECKING:
    from commlens.hlo import Module, PassResult


@dataclass(frozen=True, slots=True)
class NeuronAllReduceCombiner(Pass):
    """Makes one variadic all-reduce of several that do not depend on each other.

    They must share: opcode and element type of the reducer's root, element type, whether they have a channel id,
    ``use_global_device_ids``, the sharding domain, the frontend attribute ``collective_group_key``, and the groups with
    the order of groups and members, however spelt. Which channel id they have does not count; the new instruction has
    that of the first.

    What may surprise, all of it documented:

    - Two reducers with equal roots are one reducer, and any operation will do. A reducer that is not two parameters and
      one operation, as where sums are made in a wider type, excludes its all-reduces.
    - A set ends at the first all-reduce that would make it too large or that depends on a member.
    - One layout-constrained all-reduce in the module disables the pass.
    - Control dependencies exclude an all-reduce, those that lead to it and those that come from it.
    - All-reduces with several operands, asynchronous ones and those in fusions are left alone.

    Attributes:
        name: ``"all-reduce-combiner"``, number 79 of the registry.
        threshold_bytes: most bytes of the results of one set; 0 or less disables the pass.
        threshold_count: most members of one set; likewise.
        skip_while_bodies: whether bodies of while loops are left alone.
        mixed_dtypes: whether element types may differ, as far as the element type of the reducer allows.

    Source: the pass of that name in neuronx_cc 2.24.5133, on the engine of stock XLA.

    Example:
        >>> from commlens.hlo import load
        >>> module = load('''
        ... add {
        ...   a = f32[] parameter(0)
        ...   b = f32[] parameter(1)
        ...   ROOT c = f32[] add(a, b)
        ... }
        ... ENTRY e {
        ...   p = f32[8] parameter(0)
        ...   x = f32[8] all-reduce(p), channel_id=1, replica_groups={{0,1},{2,3}}, to_apply=add
        ...   y = f32[8] all-reduce(p), channel_id=2, replica_groups=[2,2]<=[4], to_apply=add
        ...   ROOT t = (f32[8], f32[8]) tuple(x, y)
        ... }''')
        >>> result = NeuronAllReduceCombiner().run(module)
        >>> [(each["name"], each["members"], each["channel_ids_gone"]) for each in result.stats["combined"]]
        [('all-reduce.1', ['x', 'y'], [2])]
    """

    name: ClassVar[str] = "all-reduce-combiner"
    threshold_bytes: int = 1 << 30
    threshold_count: int = 256
    skip_while_bodies: bool = False
    mixed_dtypes: bool = False

    def run(self, module: Module, *, keep_going: bool = False) -> PassResult:
        """Combine the all-reduces of a module.

        Args:
            module: the module, which stays as it is.
            keep_going: whether to leave alone what cannot be understood, instead of refusing the module.

        Returns:
            The new module. ``stats``: the sets with what their members differed in, what disabled the pass, what could
            be in no set and why, and counts.

        Raises:
            InputError: an all-reduce, its reducer, or the computation of two that may be one, cannot be read.
        """
        rules = KeyRules("all-reduce", combine_by_dim=False, mixed_dtypes=self.mixed_dtypes)
        limits = Limits(self.threshold_bytes, self.threshold_count)
        return Combiner(self.name, rules, limits, skip_while_bodies=self.skip_while_bodies).run(
            module, keep_going=keep_going
        )
