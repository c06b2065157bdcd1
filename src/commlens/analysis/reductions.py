"""What a collective reduces with, as something to compare."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from commlens.hlo import UnreadableError, base_opcode, reducer_of, reduction_kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlens.hlo import Computation, Instruction, Module

REDUCING: Final = frozenset({"all-reduce", "reduce-scatter"})
"""Collectives that reduce."""

_TARGET: Final = re.compile(r"AwsNeuron(?:AllReduce|ReduceScatter)(Add|Max|Min)_[a-z0-9]+")
_TARGET_KINDS: Final[Mapping[str, str]] = MappingProxyType({"Add": "sum", "Max": "max", "Min": "min"})
_SAYING: Final = ("parameter_number", "literal", "direction", "index")
_DEEPEST: Final = 4
_SUFFIX: Final = re.compile(r"\d+|clone|remat\d*")


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction.

    Attributes:
        key: what makes it equal to others.
        text: what to call it; two different ones may be called alike.
    """

    key: tuple[object, ...]
    text: str = field(compare=False)


class Reductions:
    """The reductions of one module, each reducer looked at once.

    Args:
        module: the module.
    """

    def __init__(self, module: Module) -> None:
        self._module = module
        self._known: dict[str, Reduction | None] = {}

    def of(self, instruction: Instruction, opcode: str) -> Reduction | None:
        """Return what an instruction reduces with.

        Args:
            instruction: the collective, the start of one, or what stands for one.
            opcode: the operation that it is.

        Returns:
            XLA's four reductions by their meaning, other reducers by what they compute, reducers that the module does
            not have by their name; None for operations that reduce nothing, and where nothing is said of a reducer.
        """
        if opcode not in REDUCING:
            return None
        try:
            return self._of(instruction)
        except (UnreadableError, LookupError):
            return None

    def _of(self, instruction: Instruction) -> Reduction | None:
        target = _TARGET.fullmatch(instruction.raw_attribute("custom_call_target") or "")
        if target is not None:
            kind = _TARGET_KINDS[target[1]]
            return Reduction(("kind", kind), kind)
        called = dict(instruction.called)
        if "fusion" in called:
            return self._inside(called["fusion"])
        reducer = reducer_of(instruction)
        name = called.get("custom-call", called.get("apply")) if reducer is None else reducer.name
        return None if name is None else self._named(name)

    def _inside(self, fused: str) -> Reduction | None:
        """Return what the one reducing collective of a fused computation reduces with."""
        computation = self._module.computation(fused)
        inner = () if computation is None else computation.instructions
        found = [each for each in inner if base_opcode(each.opcode)[0] in REDUCING]
        return self._of(found[0]) if len(found) == 1 and "fusion" not in dict(found[0].called) else None

    def _named(self, name: str) -> Reduction | None:
        if name not in self._known:
            computation = self._module.computation(name)
            if computation is None:
                base = _without_suffixes(name)
                self._known[name] = Reduction(("name", base), f"{base}, which the module does not have")
            else:
                self._known[name] = _reduction(computation)
        return self._known[name]


def _without_suffixes(name: str) -> str:
    """Return the name of a computation without what XLA appends to those of copies, such as ``.clone.3``."""
    pieces = name.split(".")
    while len(pieces) > 1 and _SUFFIX.fullmatch(pieces[-1]):
        pieces.pop()
    return ".".join(pieces)


def _reduction(reducer: Computation) -> Reduction:
    kind = reduction_kind(reducer)
    if kind is not None:
        return Reduction(("kind", kind), kind)
    return Reduction(("computation", *_formula(reducer, _DEEPEST)), reducer.name)


def _formula(computation: Computation, depth: int) -> tuple[object, ...]:
    """Return what a computation computes, without its names; below ``depth`` calls the names count."""
    module, edges = computation.module, computation.graph().operands
    return tuple(
        (
            instruction.opcode,
            str(instruction.shape),
            tuple(operands),
            instruction.is_root,
            *(instruction.raw_attribute(key) for key in _SAYING),
            *(_called(module.computation(name), name, depth) for _, name in instruction.called),
        )
        for instruction, operands in zip(computation.instructions, edges, strict=True)
    )


def _called(callee: Computation | None, name: str, depth: int) -> object:
    return name if callee is None or not depth else _formula(callee, depth - 1)
