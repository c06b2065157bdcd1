"""What may communicate in a module, and what runs other computations."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commlens.hlo.signature import Site
from commlens.hlo.text.hidden import hidden_calls
from commlens.hlo.text.printed_lines import INDENT
from commlens.hlo.text.sites import IrregularLineError, LineReader, Other, is_caller, must_be_looked_into
from commlens.hlo.text.values import LOOKED_AT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo.model import Instruction, Unread
    from commlens.hlo.text.computation import TextComputation
    from commlens.hlo.text.instruction import TextInstruction
    from commlens.hlo.text.layout import Layout


class Communication(NamedTuple):
    """What the lines of interest of a module say.

    Attributes:
        layout: the layout, now that it is known which computations only seemed printed.
        found: what may communicate, by computation, in file order.
        callers: the instructions that run other computations, fusions left out.
        hidden: calls of collectives that belong to no instruction.
    """

    layout: Layout
    found: list[tuple[TextComputation, list[Site | Instruction]]]
    callers: list[TextInstruction]
    hidden: list[Unread]


def read_communication(layout: Layout) -> Communication:
    """Read all lines of interest of a module."""
    found: dict[int, list[Site | Instruction]] = {}
    callers: list[TextInstruction] = []
    looked_into: set[int] = set()
    for number, reads in _read_lines(layout, LineReader()):
        kept: list[Site | Instruction] = []
        for read in reads:
            if isinstance(read, Site):
                kept.append(read)
                continue
            if is_caller(read):
                callers.append(read.instruction)
            if must_be_looked_into(read):
                kept.append(read.instruction)
                looked_into.add(read.instruction.start)
        if kept:
            found[number] = kept
    by_computation = [(layout.computation(number), found[number]) for number in sorted(found)]
    hidden = () if _as_printed(layout) else hidden_calls(layout, looked_into)
    return Communication(layout, by_computation, callers, list(hidden))


def _as_printed(layout: Layout) -> bool:
    """Whether the text is laid out as compilers print it, and every call that was seen at a glance in a computation."""
    if layout.irregular:
        return False
    index = layout.span.index
    for number, which in layout.by_computation(index.hits):
        hits = index.hits[which]
        if int(hits[0]) < int(index.bodies[number]) or int(hits[-1]) >= int(index.ends[number]):
            return False
    return True


def _read_lines(layout: Layout, reader: LineReader) -> Iterator[tuple[int, list[Site | Other]]]:
    """Yield what stands on the lines of interest, computation by computation."""
    known = frozenset(layout.irregular)
    for number, hits in layout.by_computation(layout.span.index.hits):
        if number not in known:
            try:
                yield number, _read_printed(layout, reader, number, hits)
            except IrregularLineError:
                layout.read_carefully(number)
    for number in layout.irregular:
        yield number, _read_irregular(layout.computation(number), reader)


def _read_printed(layout: Layout, reader: LineReader, number: int, hits: slice) -> list[Site | Other]:
    """Read the printed lines of one computation, given which hits are its."""
    index, computation, text = layout.span.index, layout.computation(number), layout.text
    columns = (index.hits, index.hit_lines, index.hit_ends, index.hit_numbers)
    found: list[Site | Other] = []
    last_line = -1
    for paren, line_start, end, line in zip(*(column[hits].tolist() for column in columns), strict=True):
        if line_start != last_line:
            last_line = line_start
            read = reader.read(computation, paren, line_start + INDENT, end, line)
            found.append(read)
            if isinstance(read, Site) or text[line_start:paren].endswith(read.opcode):
                continue
        if text[line_start:paren].count(b'"') % 2 == 0:
            raise IrregularLineError  # a call that is not the line's own, and stands in no string
    return found


def _read_irregular(computation: TextComputation, reader: LineReader) -> list[Site | Other]:
    found: list[Site | Other] = []
    for instruction in computation.instructions:
        seen = LOOKED_AT.search(computation.text, instruction.start, instruction.end)
        if seen is not None:
            found.append(reader.read_written(instruction, seen.end() - 1))
    return found


def printed_fusions(layout: Layout) -> Iterator[TextInstruction]:
    """Yield the fusions of printed computations, without taking them apart."""
    fusions = layout.span.index.fusions
    known = frozenset(layout.irregular)
    for number, which in layout.by_computation(fusions):
        if number not in known:
            yield from map(layout.computation(number).at, fusions[which].tolist())
