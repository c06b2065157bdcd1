"""Questions about a few instructions, answered without parsing all of their text or decoding all of their computation.

Each answer is the one that the properties of :class:`~commlens.hlo.Instruction` and :class:`~commlens.hlo.Computation`
give; where the printed form of a line does not show it at once, those are asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Generic, TypeVar

from commlens.hlo.model import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from commlens.hlo.model import Computation, Instruction

Position = TypeVar("Position", bound="Hashable")

_BYTES_PER_STEP = 256
"""A step in a text takes as long as making out the edges of about so many bytes, two or three lines."""
_INSTRUCTIONS_PER_STEP = 2
"""And likewise in a proto."""
_FEW = 32
"""So many steps are always made."""
_PARAMETERS = 2
"""What a reducer of one array has."""


def opcode_of(instruction: Instruction) -> str:
    r"""Return the opcode as the module spells it, without parsing what stands behind the operands.

    Raises:
        UnreadableError: it cannot be made out.

    Example:
        >>> from commlens.hlo.loading import load
        >>> module = load("ENTRY e {\n  p = f32[8] parameter(0)\n  ROOT n = f32[8] negate(p)\n}\n")
        >>> opcode_of(module.instruction("n"))
        'negate'
    """
    from commlens.hlo.text.fast_queries import summary_of
    from commlens.hlo.text.instruction import TextInstruction

    summary = summary_of(instruction) if isinstance(instruction, TextInstruction) else None
    return instruction.opcode if summary is None else summary.opcode


def first_operand(instruction: Instruction) -> Instruction | None:
    r"""Return operand 0, without parsing what stands behind the operands; None where there are no operands.

    Raises:
        UnreadableError: it cannot be made out, or is not defined in the computation.

    Example:
        >>> from commlens.hlo.loading import load
        >>> module = load("ENTRY e {\n  p = f32[8] parameter(0)\n  ROOT n = f32[8] negate(p)\n}\n")
        >>> first_operand(module.instruction("n"))
        <parameter p>
    """
    from commlens.hlo.text.fast_queries import summary_of
    from commlens.hlo.text.instruction import TextInstruction

    if isinstance(instruction, TextInstruction):
        summary = summary_of(instruction)
        name = None if summary is None else summary.operand
        found = None if name is None else instruction.computation.defined(name, instruction.start)
        if found is not None:
            return found
    return instruction.operands[0] if instruction.operand_names else None


def to_apply_name(collective: Instruction) -> str | None:
    r"""Return the name in ``to_apply`` of a collective, without parsing what stands behind it.

    Returns:
        The name of the computation; None where the collective applies none.

    Raises:
        UnreadableError: it cannot be made out.

    Example:
        >>> from commlens.hlo.loading import load
        >>> module = load("ENTRY e {\n  p = f32[8] parameter(0)\n  ROOT r = f32[8] all-reduce(p), to_apply=add\n}\n")
        >>> to_apply_name(module.instruction("r"))
        'add'
    """
    from commlens.hlo.text.fast_queries import to_apply_at
    from commlens.hlo.text.instruction import TextInstruction

    name = to_apply_at(collective) if isinstance(collective, TextInstruction) else None
    return next((name for role, name in collective.called if role == "apply"), None) if name is None else name


def has_attribute(instruction: Instruction, name: str) -> bool:
    r"""Whether an instruction states one of the attributes of :meth:`~commlens.hlo.Instruction.raw_attribute`.

    Raises:
        UnreadableError: the name stands in its text, and the attributes cannot be taken apart.

    Example:
        >>> from commlens.hlo.loading import load
        >>> module = load('ENTRY e {\n  ROOT c = f32[8] custom-call(), custom_call_target="f"\n}\n')
        >>> [has_attribute(module.instruction("c"), name) for name in ("custom_call_target", "backend_config")]
        [True, False]
    """
    from commlens.hlo.text.instruction import TextInstruction

    if isinstance(instruction, TextInstruction):
        text = instruction.computation.text
        if text.find(name.encode(), instruction.start, instruction.end) < 0:
            return False
    return instruction.raw_attribute(name) is not None


def reducer_opcode(computation: Computation) -> str | None:
    """Return the opcode of a reducer whose root is an operation on two different parameters; None of any other.

    Raises:
        UnreadableError: it cannot be made out.
        LookupError: the computation is empty.

    Example:
        >>> from commlens.hlo.loading import load
        >>> module = load('''
        ... larger {
        ...   a = f32[] parameter(0)
        ...   b = f32[] parameter(1)
        ...   ROOT c = f32[] maximum(b, a)
        ... }
        ... ENTRY e { ROOT p = f32[] parameter(0) }''')
        >>> reducer_opcode(module.computations[0])
        'maximum'
    """
    from commlens.hlo.text.computation import TextComputation
    from commlens.hlo.text.fast_queries import reducer_opcode_at

    opcode = reducer_opcode_at(computation) if isinstance(computation, TextComputation) else None
    if opcode is not None:
        return opcode
    root = computation.root
    operands = root.operands
    on_two = len(operands) == len({*operands}) == _PARAMETERS
    return root.opcode if on_two and all(operand.opcode == "parameter" for operand in operands) else None


def list_keys(computation: Computation) -> list[int]:
    r"""Return the list keys of all instructions, in list order, without an instruction made of each line.

    Example:
        >>> from commlens.hlo.loading import load
        >>> module = load("ENTRY e {\n  p = f32[8] parameter(0)\n  ROOT n = f32[8] negate(p)\n}\n")
        >>> list_keys(module.entry) == [each.list_key for each in module.entry.instructions]
        True
    """
    from commlens.hlo.text.printed_lines import PrintedLines

    instructions = computation.instructions
    printed = isinstance(instructions, PrintedLines)
    return instructions.spans()[0] if printed else [each.list_key for each in instructions]


def post_order_keys(computation: Computation) -> list[int]:
    r"""Return the list keys of :meth:`~commlens.hlo.Computation.post_order`, without an instruction made of each line.

    Raises:
        UnreadableError: an instruction cannot be taken apart.

    Example:
        >>> from commlens.hlo.loading import load
        >>> module = load("ENTRY e {\n  p = f32[8] parameter(0)\n  ROOT n = f32[8] negate(p)\n}\n")
        >>> post_order_keys(module.entry) == [each.list_key for each in module.entry.post_order()]
        True
    """
    order = computation.graph().post_order()  # it may find that the computation is not as printed
    keys = list_keys(computation)
    return [keys[position] for position in order]


def are_provably_chained(computation: Computation, chains: Iterable[Sequence[Instruction]]) -> bool:
    """Whether in each of several sequences every instruction is seen to depend on the one before it.

    Only what stands between the two is looked at, operand 0 first, and only so much that it costs less than
    :meth:`~commlens.hlo.Computation.graph`.

    Args:
        computation: where they stand.
        chains: instructions of it, in list order.

    Returns:
        True where it is so; False where it is not, or was not found out in that time.

    Example:
        >>> from commlens.hlo.loading import load
        >>> module = load('''ENTRY e {
        ...   p = f32[8] parameter(0)
        ...   x = f32[8] negate(p)
        ...   y = f32[8] add(p, x)
        ...   ROOT z = f32[8] negate(y)
        ... }''')
        >>> p, x, y, z = module.entry.instructions
        >>> [are_provably_chained(module.entry, chains) for chains in ([[x, y, z], [p, x]], [[p, x], [z, y]])]
        [True, False]
    """
    from commlens.hlo.proto.computation import ProtoComputation
    from commlens.hlo.text.computation import TextComputation
    from commlens.hlo.text.fast_queries import operands_behind

    if isinstance(computation, TextComputation):
        steps = (computation.end - computation.body) // _BYTES_PER_STEP + _FEW
        search = _Search(partial(operands_behind, computation), steps)
        starts = ([each.list_key for each in chain] for chain in chains)
        return computation.starts is None and all(search.is_chain(each) for each in starts)
    size = len(computation.encoded) if isinstance(computation, ProtoComputation) else len(computation.instructions)
    search = _Search(_operands_behind, size // _INSTRUCTIONS_PER_STEP + _FEW)
    return all(search.is_chain(chain) for chain in chains)


@dataclass(slots=True)
class _Search(Generic[Position]):
    """A search for ways from users to operands.

    Attributes:
        operands_behind: yields operands of an instruction, none that comes before another one.
        steps: at how many more instructions it may look.
    """

    operands_behind: Callable[[Position, Position], Iterator[Position]]
    steps: int

    def is_chain(self, places: Sequence[Position]) -> bool:
        """Whether each is seen to depend on the one before it."""
        return all(self._leads(source, user) for source, user in pairwise(places))

    def _leads(self, source: Position, user: Position) -> bool:
        """Whether a path from a user to a source is found before the steps are used up."""
        seen = {user}
        way = [self.operands_behind(user, source)]
        while way and self.steps > 0:
            operand = next(way[-1], None)
            if operand is None:
                way.pop()
            elif operand == source:
                return True
            elif operand not in seen:
                self.steps -= 1
                seen.add(operand)
                way.append(self.operands_behind(operand, source))
        return False


def _operands_behind(user: Instruction, first: Instruction) -> Iterator[Instruction]:
    try:
        yield from (each for each in user.operands if each.list_key >= first.list_key)
    except UnreadableError:
        return
