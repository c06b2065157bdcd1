"""What may communicate in a module, and what runs other computations."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commlens.hlo.signature import Site
from commlens.hlo.text.orphans import orphan_calls
from commlens.hlo.text.printed_lines import INDENT
from commlens.hlo.text.sites import IrregularLineError, LineReader, Other, is_caller, may_communicate
from commlens.hlo.text.values import OF_INTEREST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo.model import Instruction, Unread
    from commlens.hlo.text.computation import TextComputation
    from commlens.hlo.text.computation_table import ComputationTable
    from commlens.hlo.text.instruction import TextInstruction


class Communication(NamedTuple):
    """What the lines of interest of a module say.

    Attributes:
        table: the module's computations, now that it is known which of them only seemed printed.
        found: what may communicate, by computation, in file order.
        callers: the instructions that run other computations, fusions left out.
        orphans: calls of collectives that belong to no instruction.
    """

    table: ComputationTable
    found: list[tuple[TextComputation, list[Site | Instruction]]]
    callers: list[TextInstruction]
    orphans: list[Unread]


def read_communication(table: ComputationTable) -> Communication:
    """Read all lines of interest of a module."""
    found: dict[int, list[Site | Instruction]] = {}
    callers: list[TextInstruction] = []
    looked_into: set[int] = set()
    for number, reads in _read_lines(table, LineReader()):
        kept: list[Site | Instruction] = []
        for read in reads:
            if isinstance(read, Site):
                kept.append(read)
                continue
            if is_caller(read):
                callers.append(read.instruction)
            if may_communicate(read):
                kept.append(read.instruction)
                looked_into.add(read.instruction.start)
        if kept:
            found[number] = kept
    by_computation = [(table.computation(number), found[number]) for number in sorted(found)]
    orphans = () if _as_printed(table) else orphan_calls(table, looked_into)
    return Communication(table, by_computation, callers, list(orphans))


def _as_printed(table: ComputationTable) -> bool:
    """Whether the text is laid out as compilers print it, and every call that the index has in a computation."""
    if table.irregular:
        return False
    index = table.span.index
    for number, which in table.by_computation(index.hits):
        hits = index.hits[which]
        if int(hits[0]) < int(index.bodies[number]) or int(hits[-1]) >= int(index.ends[number]):
            return False
    return True


def _read_lines(table: ComputationTable, reader: LineReader) -> Iterator[tuple[int, list[Site | Other]]]:
    """Yield what stands on the lines of interest, computation by computation."""
    known = frozenset(table.irregular)
    for number, hits in table.by_computation(table.span.index.hits):
        if number not in known:
            try:
                yield number, _read_printed(table, reader, number, hits)
            except IrregularLineError:
                table.read_leniently(number)
    for number in table.irregular:
        yield number, _read_irregular(table.computation(number), reader)


def _read_printed(table: ComputationTable, reader: LineReader, number: int, hits: slice) -> list[Site | Other]:
    """Read the printed lines of one computation, given which hits are its."""
    index, computation, text = table.span.index, table.computation(number), table.text
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
        seen = OF_INTEREST.search(computation.text, instruction.start, instruction.end)
        if seen is not None:
            found.append(reader.read_written(instruction, seen.end() - 1))
    return found


def printed_fusions(table: ComputationTable) -> Iterator[TextInstruction]:
    """Yield the fusions of printed computations, without taking them apart."""
    fusions = table.span.index.fusions
    known = frozenset(table.irregular)
    for number, which in table.by_computation(fusions):
        if number not in known:
            yield from map(table.computation(number).at, fusions[which].tolist())
