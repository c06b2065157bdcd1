"""Collectives inside an instruction that is another one: what a lost line break or a damaged line leaves."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from commlens.hlo.formatting import as_text
from commlens.hlo.model import Unread, UnreadableError
from commlens.hlo.text.tokens import DEFINITION, GAP, NAME, SKIPPED

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from commlens.hlo.text.computation_table import ComputationTable
    from commlens.hlo.text.instruction import TextInstruction
    from commlens.hlo.text.tokens import Text

_CALL: Final = re.compile(
    SKIPPED.pattern + rb"|(?<=[\s\]})\"'/])(?P<opcode>(?:all-reduce|all-gather|reduce-scatter|(?:ragged-)?all-to-all"
    rb"|collective-permute|collective-broadcast|cross-replica-sum)(?:-start)?|send|recv)" + GAP + rb"*+\(",
    re.DOTALL,
)
_IN_PLACE: Final = re.compile(
    SKIPPED.pattern
    + rb"|\b(?P<role>to_apply|condition|body|calls|true_computation|false_computation|branch_computations"
    + rb"|called_computations)="
    + GAP
    + rb"*+\{(?>[{,]|%?(?>"
    + NAME
    + rb")(?="
    + GAP
    + rb"*+[,}])|"
    + GAP
    + rb")*+"
    + DEFINITION,
    re.DOTALL,
)
"""A computation in an attribute, or in its list of computations, by its first definition."""
_WHY: Final = "expected an instruction of its own, found the call inside another item, which is damaged or not closed"
_EXCERPT: Final = 200
_DEEPEST_INDENT: Final = 256
"""Blanks before an opcode; what stands before it is looked for that far back only."""


def orphan_calls(table: ComputationTable, looked_into: Container[int]) -> Iterator[Unread]:
    """Yield the calls of collectives in a module's text that are the opcode of none of its instructions.

    A quote that was lost or added makes code of strings and strings of code, depending on where one begins to read. So
    a call counts that is seen from the beginning of the module, or of its computation, or of the part between two.
    """
    text, (start, behind) = table.text, table.span.part(len(table.text))
    irregular = [table.computation(number) for number in table.irregular]
    seen = _calls(text, start, behind)
    for computation in irregular:
        seen |= _calls(text, computation.body, computation.end)
    for computation in table.computations:
        seen |= _calls(text, start, computation.body)
        start = computation.end
    seen |= _calls(text, start, behind)
    places = sorted(seen)
    module = table.computations[0].module
    answered = set(_printed_calls(table))
    for computation in irregular:
        answered.update(_answered(computation.instructions, places, looked_into))
    answered.update(_names_of_computations(table, seen, places))
    for place in places:
        if place not in answered:
            call = seen[place].start("opcode")
            excerpt = as_text(text[call : min(behind, call + _EXCERPT)].strip())
            yield Unread(str(module.line_of(call)), excerpt, _WHY, opcode=as_text(seen[place]["opcode"]))


def inline_computations(table: ComputationTable) -> Iterator[Unread]:
    """Yield an unread item for each computation that stands in an attribute instead of its name.

    XLA reads such a text and never prints one. Here its instructions would be taken for those of the computation around
    it, which may run another number of times, so that neither counts nor edits could be trusted.
    """
    for number in table.irregular:
        computation = table.computation(number)
        for found in _IN_PLACE.finditer(table.text, computation.body, computation.end):
            if found["role"]:
                why = f"expected {as_text(found['role'])}= to name a computation, found one that stands in its place"
                yield Unread(str(computation.module.line_of(found.start())), as_text(found[0]), why)


def _calls(text: Text, start: int, end: int) -> dict[int, re.Match[bytes]]:
    """Return what seems to be called in a part of a text, by the offset of the parenthesis behind its opcode."""
    found = _CALL.finditer(text, start, end)
    return {call.end() - 1: call for call in found if call["opcode"] and _is_behind_a_shape(text, call)}


def _is_behind_a_shape(text: Text, call: re.Match[bytes]) -> bool:
    """Whether an opcode that does not touch its parenthesis is none of a log's words, nor the name of a computation."""
    start, end = call.span("opcode")
    before = text[max(0, start - _DEEPEST_INDENT) : start].rstrip()
    return end == call.end() - 1 or before.endswith((b"]", b"}", b")", b"=", b"*/"))


def _printed_calls(table: ComputationTable) -> Iterator[int]:
    """Yield the calls that are the opcodes of printed lines: those that stand in no string there."""
    index, irregular = table.span.index, frozenset(table.irregular)
    for number, hits in table.by_computation(index.hits):
        if number not in irregular:
            body = int(index.bodies[number])
            for paren, line in zip(index.hits[hits].tolist(), index.hit_lines[hits].tolist(), strict=True):
                if line >= body and table.text[line:paren].count(b'"') % 2 == 0:
                    yield paren


def _names_of_computations(
    table: ComputationTable, seen: Mapping[int, re.Match[bytes]], places: Sequence[int]
) -> Iterator[int]:
    """Yield the parentheses behind names of computations that are opcodes as well."""
    for computation in table.computations if places else ():
        first = bisect_left(places, computation.start)
        place = places[first] if first < len(places) else computation.body
        if place < computation.body and as_text(seen[place]["opcode"]) == computation.name:
            yield place


def _answered(
    instructions: Iterable[TextInstruction], places: Sequence[int], looked_into: Container[int]
) -> Iterator[int]:
    """Yield the calls that instructions stand for: their own, or the first in one that is an unread item itself.

    Args:
        instructions: the instructions of a computation, those that stand as operands of others too.
        places: the offsets of the parentheses behind all opcodes, in order.
        looked_into: the offsets of the instructions that become unread items if they cannot be read.
    """
    for instruction in instructions if places else ():
        try:
            line = instruction.parts
            yield instruction.end - len(line.text) + line.operand_span.start - 1
        except UnreadableError:
            first = bisect_left(places, instruction.start)
            if instruction.start in looked_into and first < len(places) and places[first] < instruction.end:
                yield places[first]
