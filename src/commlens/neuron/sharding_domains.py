"""Sharding domains: instructions that ``domain`` instructions part from others.

A domain instruction states the sharding on its operand's side and on its users' side. In a text the first is called
``exit`` and the second ``entry``; in a proto it is the other way round.
Source: ``HloDomainMap``, xla/service/hlo_domain_map.cc; ``HloDomainInstruction``, xla/hlo/ir/hlo_instructions.cc.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.hlo import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commlens.hlo import Graph, Instruction

DOMAIN: Final = "domain"
"""The opcode."""

NO_DOMAIN: Final = 0
"""The id of what no domain instruction touches."""

_SIDES: Final = re.compile(r"\b(entry|exit)\s*=\s*\{")
_BLANKS: Final = re.compile(r"\s+|/\*(?>[^*]++|\*(?!/))*+(?:\*/|\Z)")


def domain_ids(instructions: Sequence[Instruction], graph: Graph) -> list[int]:
    """Number the sharding domains of a computation.

    A domain is what hangs together through operands and users without passing a domain instruction. Domains whose
    metadata are equal have one number: the users' side of a domain instruction that leads in, else the operand's side
    of one that leads out. XLA takes any of several, here it is the first in the list.

    Args:
        instructions: all instructions of the computation.
        graph: its edges.

    Returns:
        By position the number of the domain, :data:`NO_DOMAIN` where no domain instruction leads in or out.

    Raises:
        UnreadableError: the metadata of a domain instruction cannot be read.
    """
    borders = {position: _sides(each) for position, each in enumerate(instructions) if each.opcode == DOMAIN}
    parts = _connected(graph, borders)
    leads_out: dict[int, str] = {}
    leads_in: dict[int, str] = {}
    for position, operands in enumerate(graph.operands):
        for operand in operands:
            if position in borders and operand not in borders:
                leads_out.setdefault(parts[operand], borders[position].operand)
            elif operand in borders and position not in borders:
                leads_in.setdefault(parts[position], borders[operand].users)
    metadata = {**leads_out, **leads_in}
    numbers = {text: number for number, text in enumerate(dict.fromkeys(metadata.values()), NO_DOMAIN + 1)}
    return [numbers[metadata[part]] if part in metadata else NO_DOMAIN for part in parts]


class _Sides(NamedTuple):
    """The metadata of a domain instruction, as text that is equal where they are."""

    operand: str
    users: str


def _sides(instruction: Instruction) -> _Sides:
    written = instruction.raw_attribute(DOMAIN)
    if written is None:
        fields = instruction.other_attributes()
        return _Sides(*(fields.get(name, b"").hex() for name in ("domain_entry_sharding", "domain_exit_sharding")))
    text = _BLANKS.sub("", written)
    found = {match[1]: _braced(text, match.end()) for match in _SIDES.finditer(text)}
    if len(found) != len(_Sides._fields):
        msg = f"expected the domain instruction {instruction.name} to state entry={{...}} and exit={{...}}"
        raise UnreadableError(msg)
    return _Sides(operand=found["exit"], users=found["entry"])


def _braced(text: str, start: int) -> str:
    """Return what stands up to the brace that closes one opened right before ``start``."""
    depth = 1
    for position in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return text[start:position]
    return text[start:]


def _connected(graph: Graph, borders: Mapping[int, object]) -> list[int]:
    """Return, by position, one position that stands for all that hangs together without passing a border."""
    parents = list(range(len(graph.operands)))

    def representative(position: int) -> int:
        while parents[position] != position:
            parents[position] = parents[parents[position]]
            position = parents[position]
        return position

    for position, operands in enumerate(graph.operands):
        if position not in borders:
            for operand in operands:
                if operand not in borders:
                    parents[representative(operand)] = representative(position)
    return [representative(position) for position in range(len(parents))]
