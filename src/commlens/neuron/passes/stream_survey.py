"""What the stream id injector sees of a module: the collectives it stamps, and what it passes by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.hlo import Site, UnreadableError, communication_in_list_order, instructions_restating, opcode_in_memory
from commlens.neuron.frontend_attributes import COLLECTIVE_TYPE, COLLECTIVE_TYPES, STREAM_ID
from commlens.neuron.opcodes import CUSTOM_CALLS
from commlens.neuron.passes.unread import check_read
from commlens.neuron.places import name_of
from commlens.neuron.predicates import CHANNEL_CLASS, COLLECTIVE_CLASS
from commlens.neuron.reading import attributes_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from commlens.hlo import Computation, Instruction, Json, Listed, Module, Refusals, Shape
    from commlens.topology import DeviceList

_INTEGERS: Final = frozenset(f"{sign}{bits}" for sign in "su" for bits in (1, 2, 4, 8, 16, 32, 64))
_NO_CLASS: Final = "is no HloCollectiveInstruction, the only class that the pass stamps"
_CUSTOM: Final = "is a custom call in XLA's memory, no collective"


@dataclass(frozen=True, slots=True, eq=False)
class Traits:
    """What decides about a collective; equal collectives share one, and it is compared by identity.

    Attributes:
        groups: its replica groups.
        collective_type: value of the attribute of that name, None where it is absent.
        stream_id: likewise.
    """

    groups: DeviceList
    collective_type: str | None
    stream_id: str | None


class Stampable(NamedTuple):
    """A collective that gets a stream id.

    Attributes:
        item: the instruction, as a site where it was read as one.
        traits: what decides about it.
    """

    item: Site | Instruction
    traits: Traits

    @property
    def instruction(self) -> Instruction:
        """The instruction."""
        return self.item.instruction if isinstance(self.item, Site) else self.item


@dataclass(frozen=True, slots=True)
class Survey:
    """The communication of a module as the injector sees it.

    Attributes:
        computations: what is stamped: computations in file order, instructions in list order.
        untouched: what communicates and is not stamped, by opcode or custom call target.
        beside: by what is stamped the starts, updates and dones that are stamped with it.
        left_out: what would have been stamped, or may have been, and cannot be read in full.
        marked_left_out: those of it that ``collective_type`` marks as far as they can be read.
    """

    computations: Sequence[tuple[Computation, Sequence[Stampable]]]
    untouched: Mapping[str, Sequence[Site | Instruction]]
    beside: Mapping[Instruction, Sequence[Instruction]]
    left_out: Sequence[Instruction]
    marked_left_out: Sequence[Instruction]

    def __iter__(self) -> Iterator[Stampable]:
        """Yield everything that is stamped."""
        for _, found in self.computations:
            yield from found

    def without(self, instructions: Collection[Instruction]) -> Survey:
        """Return the same without what could not be stamped."""
        if not instructions:
            return self
        kept = [
            (computation, [each for each in found if each.instruction not in instructions])
            for computation, found in self.computations
        ]
        return replace(self, computations=kept)

    def untouched_as_json(self) -> list[dict[str, Json]]:
        """Return what is not stamped with the reason, for the statistics."""
        return [
            {
                "opcode": opcode,
                "why": f"{opcode} {_NO_CLASS if opcode in CHANNEL_CLASS else _CUSTOM}",
                "instructions": [name_of(item) for item in items],
            }
            for opcode, items in self.untouched.items()
        ]


def survey(module: Module, refusals: Refusals) -> Survey:
    """Look through a module.

    Args:
        module: the module.
        refusals: takes what may be a collective and cannot be read in full.
    """
    by_signature: dict[object, Traits] = {}
    computations: list[tuple[Computation, list[Stampable]]] = []
    untouched: dict[str, list[Site | Instruction]] = {}
    left_out: list[Instruction] = []
    is_async = False
    for computation, items in communication_in_list_order(module):
        found: list[Stampable] = []
        for each in items:
            if each.opcode in COLLECTIVE_CLASS and each.site is not None:
                signature = each.site.signature
                traits = by_signature.get(signature)
                if traits is None:
                    traits = by_signature[signature] = _traits(each.site)
                    is_async = is_async or signature.is_async
                found.append(Stampable(each.site, traits))
            elif each.opcode in COLLECTIVE_CLASS or not each.opcode:
                read = _read(each, refusals)
                found += read
                left_out += [] if read else [each.instruction]
            elif each.opcode in CHANNEL_CLASS or each.opcode in CUSTOM_CALLS:
                untouched.setdefault(_label(each), []).append(each.item)
            else:
                is_async = True  # perhaps an async-start
        if found:
            computations.append((computation, found))
    marked = [each for each in left_out if _is_marked(each)]
    beside = instructions_restating(module, STREAM_ID) if is_async else dict["Instruction", "list[Instruction]"]()
    return Survey(computations, untouched, beside, left_out, marked)


def _is_marked(instruction: Instruction) -> bool:
    """Whether ``collective_type`` says what a collective is for that cannot be read in full."""
    try:
        overridden = instruction.computation.module.overridden_attributes.get(instruction)
        attributes = instruction.frontend_attributes if overridden is None else overridden
    except UnreadableError:
        return False
    return attributes.get(COLLECTIVE_TYPE) in COLLECTIVE_TYPES


def is_integer_shaped(stampable: Stampable) -> bool:
    """Whether every leaf of a collective's result is an array of integers (``Shape::AreAllLeavesIntegers``).

    pred is no integer, nor is a token; an empty tuple has no leaf that is none. A start in short stands for what it
    wraps, whose result is its second element.

    Raises:
        UnreadableError: the result's shape cannot be read.
    """
    instruction = stampable.instruction
    shape = instruction.shape
    if opcode_in_memory(instruction.opcode) != instruction.opcode and len(shape.elements) > 1:
        shape = shape.elements[1]
    return is_integer(shape)


def is_integer(shape: Shape) -> bool:
    """Whether every leaf of a shape is an array of integers.

    Example:
        >>> from commlens.hlo import parse_shape
        >>> [is_integer(parse_shape(text)) for text in ("(s32[4], u8[])", "pred[2]", "(s32[4], token[])", "()")]
        [True, False, False, True]
    """
    return all(leaf.element_type in _INTEGERS for leaf in shape.leaves())


def _traits(item: Site | Instruction) -> Traits:
    attributes = attributes_of(item)
    groups = item.signature.groups if isinstance(item, Site) else None
    if groups is None:
        groups = (item.instruction if isinstance(item, Site) else item).replica_groups
    return Traits(groups, attributes.get(COLLECTIVE_TYPE), attributes.get(STREAM_ID))


def _read(each: Listed, refusals: Refusals) -> list[Stampable]:
    """Read a collective that that the fast queries do not settle."""
    try:
        check_read(each.item)
        return [Stampable(each.item, _traits(each.item))]
    except UnreadableError as error:
        refusals.refuse(each.instruction, error)
        return []


def _label(each: Listed) -> str:
    """Return what to call something that is passed by: its opcode, or the target of a custom call."""
    if each.opcode not in CUSTOM_CALLS:
        return each.opcode
    return f"{each.opcode} {each.instruction.raw_attribute('custom_call_target')}"
