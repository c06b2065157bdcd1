"""Who uses whom in a printed computation: one pattern per line, and a closer look at the lines that do not fit it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from commlens.hlo.graphs import Graph
from commlens.hlo.text.printed_lines import INDENT, PrintedLines
from commlens.hlo.text.tokens import NAME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commlens.hlo.text.computation import TextComputation
    from commlens.hlo.text.instruction import TextInstruction

_THIRD: Final = rb"\([^()\n]*+\)"
_SECOND: Final = rb"\((?>[^()\n]++|" + _THIRD + rb")*+\)"
_INSIDE: Final = rb"(?>[^()\n]++|" + _SECOND + rb")*+"
"""What stands in parentheses: tuples of tuples, whose layouts have tiles."""
_SHAPE: Final = rb"(?:[a-z][a-z0-9]*\[[^\]\n]*+\](?:\{[^{}\n]*+\})?|\(" + _INSIDE + rb"\))"
_LINE: Final = re.compile(
    rb"^  (?:ROOT )?%?(" + NAME + rb") = " + _SHAPE + rb" "
    rb"(?:(?:constant|parameter|iota)\(|[a-z][a-z0-9\-]*+\((" + _INSIDE + rb")\))[^\n]*+\n*+",
    re.MULTILINE,
)
_OPERAND: Final = re.compile(rb"(?:" + _SHAPE + rb" )?%?(" + NAME + rb")(?:, |\Z)")
_OPERANDS: Final = re.compile(rb"(?>(?:" + _SHAPE + rb" )?%?" + NAME + rb"(?:, |\Z))++")
_INDEX_COMMENT: Final = re.compile(rb"/\*index=\d+\*/")
_CONTROL: Final = re.compile(rb", control-predecessors=")


class _NotPrintedError(Exception):
    """A line is not one whole instruction."""


def printed_graph(computation: TextComputation) -> Graph | None:
    """Read the edges of a computation that seems to be laid out as compilers print it.

    Args:
        computation: the computation.

    Returns:
        The edges; None where a line turns out not to be one whole instruction: then it is damaged.

    Raises:
        UnreadableError: operands or attributes of an instruction cannot be made out.
    """
    lines = PrintedLines(computation)
    found: Sequence[tuple[bytes, bytes]] = _LINE.findall(computation.text, computation.body, computation.end)
    try:
        if len(found) != len(lines):
            found = [_name_and_operands(line) for line in lines]
        names = {name: position for position, (name, _) in enumerate(found)}
        operands, broken = _operands(lines, [written for _, written in found], names)
        control: dict[int, list[int]] = {}
        for mark in _CONTROL.finditer(computation.text, computation.body, computation.end):
            position = lines.position(mark.start())
            before = [names.get(name.encode()) for name in _whole(lines[position]).control_predecessors]
            if before:
                control[position] = [each for each in before if each is not None]
            if None in before:
                broken.add(position)
    except _NotPrintedError:
        return None
    return Graph(operands, control, frozenset(broken), len(names) == len(operands))


def _operands(
    lines: PrintedLines, written: Sequence[bytes], names: Mapping[bytes, int]
) -> tuple[list[Sequence[int]], set[int]]:
    """Return the positions of every line's operands, and of the lines with operands that are not defined."""
    found: list[Sequence[int]] = []
    broken: set[int] = set()
    position_of = names.__getitem__
    plain = b"\n".join(written).replace(b"%", b"").split(b"\n") if written else ()  # at once: it is felt
    for position, operands in enumerate(plain):
        if not operands:
            found.append(())
            continue
        try:
            found.append(tuple(map(position_of, operands.split(b", "))))  # a tuple of numbers leaves the collector
        except KeyError:
            known = [names.get(name) for name in _names(lines, position, operands)]
            found.append([each for each in known if each is not None])
            if None in known:
                broken.add(position)
    return found, broken


def _names(lines: PrintedLines, position: int, operands: bytes) -> list[bytes]:
    """Return the names of operands that have types or comments beside them, or are not defined."""
    plain = _INDEX_COMMENT.sub(b"", operands)
    if _OPERANDS.fullmatch(plain) is not None:
        return _OPERAND.findall(plain)
    return [name.encode() for name in _whole(lines[position]).operand_names]


def _name_and_operands(line: TextInstruction) -> tuple[bytes, bytes]:
    """Return the name of an instruction and its operands as written, in a computation where some line is odd."""
    match = _LINE.match(line.computation.text, line.start - INDENT, line.end)
    if match is not None:
        return match[1], match[2] or b""
    parts = _whole(line).parts
    return parts.name.encode(), b", ".join(name.encode() for name in line.operand_names)


def _whole(line: TextInstruction) -> TextInstruction:
    """Return a line that is one whole instruction.

    Raises:
        _NotPrintedError: it is not.
    """
    if not line.is_whole_line:
        raise _NotPrintedError
    return line
