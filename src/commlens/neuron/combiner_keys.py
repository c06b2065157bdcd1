"""What collectives must share to become one: the keys of the three combiners.

Source: ``GetAllReduceKey``, xla/service/all_reduce_key.cc; ``CombineKey`` of xla/hlo/transforms/collectives/
{all_gather,reduce_scatter}_combiner.cc; the combiners of neuronx_cc 2.24.5133.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from commlens.hlo import UnreadableError, reduction_kind
from commlens.topology import replica_groups_equal

if TYPE_CHECKING:
    from commlens.hlo import Instruction, Module, Signature
    from commlens.topology import DeviceList

CombinedOpcode: TypeAlias = Literal["all-gather", "all-reduce", "reduce-scatter"]
"""An opcode that has a combiner."""

GROUP_KEY: Final = "collective_group_key"
"""Frontend attribute that keeps collectives apart: different values are never combined, nor a value and none."""

_REDUCER_INSTRUCTIONS: Final = 3
_REDUCER_PARAMETERS: Final = 2


@dataclass(frozen=True, slots=True)
class KeyRules:
    """What counts as a difference.

    Attributes:
        opcode: the collectives that are combined.
        combine_by_dim: whether the gather or scatter dimension does; an all-reduce has none.
        mixed_dtypes: whether the element type of the result does not.
        tp_groups: the groups of tensor parallelism: what has others is left alone; None: nothing is.
    """

    opcode: CombinedOpcode
    combine_by_dim: bool
    mixed_dtypes: bool
    tp_groups: DeviceList | None = None

    @property
    def reduces(self) -> bool:
        """Whether the collectives apply a reducer; control dependencies then exclude them."""
        return self.opcode != "all-gather"


class Excluded(NamedTuple):
    """Why something is not combined.

    Attributes:
        why: the reason, to be read behind the instruction's name.
    """

    why: str


class StatedKey(NamedTuple):
    """What a collective says of itself, its name, channel number and reducer aside.

    Attributes:
        element_type: of the result; None where types may mix.
        dimension: gather or scatter dimension; None where it does not count.
        has_channel: whether it has a channel id; which one does not count.
        use_global_device_ids: the flag.
        groups: number of its replica groups among those seen, the same for all spellings.
        group_key: the value of :data:`GROUP_KEY`.
    """

    element_type: str | None
    dimension: int | None
    has_channel: bool
    use_global_device_ids: bool
    groups: int
    group_key: str | None


class Reducer(NamedTuple):
    """What a key has of a reducer: two computations with equal roots are one reducer.

    Attributes:
        opcode: of the root.
        element_type: of the root.
    """

    opcode: str
    element_type: str


@dataclass(slots=True)
class KeyReader:
    """Reads the keys of one module; each signature, group list and reducer is looked at once.

    Attributes:
        rules: what counts as a difference.
        module: the module.
    """

    rules: KeyRules
    module: Module
    _stated: dict[Signature, StatedKey | Excluded] = field(default_factory=dict["Signature", "StatedKey | Excluded"])
    _arrays: dict[Signature, bool] = field(default_factory=dict["Signature", bool])
    _groups: dict[DeviceList, int] = field(default_factory=dict["DeviceList", int])
    _why_foreign: Excluded | None = None
    _reducers: dict[str, Reducer | Excluded] = field(default_factory=dict[str, "Reducer | Excluded"])

    def stated(self, signature: Signature) -> StatedKey | Excluded:
        """Return what a collective says of itself."""
        known = self._stated.get(signature)
        if known is None:
            known = self._stated[signature] = self._read(signature)
        return known

    def _read(self, signature: Signature) -> StatedKey | Excluded:
        rules, groups = self.rules, signature.groups
        if groups is None or len(signature.result_shapes) != 1:
            return _NO_ARRAY
        if signature.result_shapes[0].num_bytes is None:
            return Excluded("its result has a dimension without a bound, so its size is not known")
        foreign = self._foreign(groups)
        if foreign is not None:
            return foreign
        dimensions = signature.dimensions if rules.combine_by_dim else None
        return StatedKey(
            element_type=None if rules.mixed_dtypes else signature.result_shapes[0].element_type,
            dimension=dimensions[0] if dimensions else None,
            has_channel=signature.has_channel,
            use_global_device_ids=bool(signature.use_global_device_ids),
            groups=self._number(groups),
            group_key=signature.frontend_attributes.get(GROUP_KEY),
        )

    def _foreign(self, groups: DeviceList) -> Excluded | None:
        """Return why something is left alone because of its groups, if it is; said once, for it may be long."""
        wanted = self.rules.tp_groups
        if wanted is None or replica_groups_equal(groups, wanted):
            return None
        if self._why_foreign is None:
            self._why_foreign = Excluded(f"its groups are not those of tensor parallelism, {wanted}")
        return self._why_foreign

    def _number(self, groups: DeviceList) -> int:
        """Return a number that all spellings of the same groups share."""
        known = self._groups.get(groups)
        if known is None:
            canonical_groups = groups.to_iota() or groups.to_list()
            known = self._groups[groups] = self._groups.setdefault(canonical_groups, len(self._groups))
        return known

    def reducer(self, instruction: Instruction, signature: Signature) -> Reducer | Excluded | None:
        """Return what else than the stated key counts: the reducer, None where the collectives have none.

        Args:
            instruction: a collective with one operand.
            signature: its signature.

        Raises:
            UnreadableError: its result, or the reducer, is missing or cannot be read.
        """
        is_array = self._arrays.get(signature)
        if is_array is None:
            is_array = self._arrays[signature] = instruction.shape.is_array
        if not is_array:
            return _NO_ARRAY
        if not self.rules.reduces:
            return None
        name = next((name for role, name in instruction.called if role == "apply"), "")
        known = self._reducers.get(name)
        if known is None:
            known = self._reducers[name] = self._read_reducer(name)
        return known

    def _read_reducer(self, name: str) -> Reducer | Excluded:
        computation = self.module.computation(name) if name else None
        if computation is None or not computation.instructions:
            msg = f"expected to_apply= to name a computation of the module, found {name or 'none'}"
            raise UnreadableError(msg)
        opcodes = [each.opcode for each in computation.instructions]
        if len(opcodes) != _REDUCER_INSTRUCTIONS or opcodes.count("parameter") != _REDUCER_PARAMETERS:
            return Excluded("its reducer is not two parameters and one operation")
        if self.rules.opcode == "reduce-scatter" and reduction_kind(computation) is None:
            return Excluded("its reducer is no reduction that XLA recognises")
        return Reducer(computation.root.opcode, computation.root.shape.element_type)


_NO_ARRAY: Final = Excluded("its result is no array")
