"""What a reducer computation does to its two parameters, where that is one of the reductions that XLA knows."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlens.hlo.model import Computation, Instruction

ReductionKind: TypeAlias = Literal["sum", "product", "min", "max"]
"""A reduction that XLA recognises."""

_KINDS: Final[Mapping[str, ReductionKind]] = MappingProxyType(
    {"add": "sum", "multiply": "product", "minimum": "min", "maximum": "max"}
)
_KINDS_OF_BOOLEANS: Final[Mapping[str, ReductionKind]] = MappingProxyType({"and": "min", "or": "max"})
_BOOLEAN: Final = "pred"
_BOTH: Final = ["0", "1"]


def reduction_kind(reducer: Computation) -> ReductionKind | None:
    """Return what a reducer does: its root is an operation on parameters 0 and 1, in either order.

    ``and`` and ``or`` are a minimum and a maximum, of booleans alone.

    Args:
        reducer: the computation that a collective applies.

    Returns:
        The kind; None for all else, such as an operation on converted parameters.

    Raises:
        UnreadableError: an instruction of it cannot be read.
        LookupError: the computation is empty.

    Source: ``MatchReductionComputation``, xla/service/collective_ops_utils.cc.

    Example:
        >>> from commlens.hlo import load
        >>> module = load('''
        ... larger {
        ...   a = f32[] parameter(0)
        ...   b = f32[] parameter(1)
        ...   ROOT c = f32[] maximum(b, a)
        ... }
        ... ENTRY e { ROOT p = f32[] parameter(0) }''')
        >>> reduction_kind(module.computations[0])
        'max'
    """
    root = reducer.root
    kind = _KINDS.get(root.opcode)
    if kind is None and root.shape.element_type == _BOOLEAN:
        kind = _KINDS_OF_BOOLEANS.get(root.opcode)
    if kind is None:
        return None
    numbers = {
        each.name: each.raw_attribute("parameter_number") for each in reducer.instructions if _is_parameter(each)
    }
    return kind if sorted(numbers.get(name) or "" for name in root.operand_names) == _BOTH else None


def _is_parameter(instruction: Instruction) -> bool:
    return instruction.opcode == "parameter"
