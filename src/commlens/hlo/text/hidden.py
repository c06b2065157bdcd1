"""Collectives inside an instruction that is another one: what a lost line break or a damaged line leaves."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from commlens.hlo.model import Unread, UnreadableError
from commlens.hlo.text.lexis import SKIPPED, as_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from commlens.hlo.text.computation import TextComputation
    from commlens.hlo.text.instruction import TextInstruction

_CALL: Final = re.compile(
    SKIPPED.pattern + rb"|(?<=[\s\]})])(?P<opcode>(?:all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all"
    rb"|collective-permute|collective-broadcast|cross-replica-sum)(?:-start)?|send|recv)\(",
    re.DOTALL,
)
_WHY: Final = "expected an instruction of its own, found the call inside another item, which is damaged or not closed"
_EXCERPT: Final = 200


def hidden_calls(
    computation: TextComputation, start: int, end: int, instructions: Iterable[TextInstruction]
) -> Iterator[Unread]:
    """Yield the calls of collectives in a part of a text that are the opcode of none of its instructions.

    Args:
        computation: whose text it is.
        start: offset where the part begins.
        end: offset behind it.
        instructions: the instructions in it, those that stand as operands of others too.
    """
    text = computation.text
    calls = {token.end() - 1: token for token in _CALL.finditer(text, start, end) if token["opcode"]}
    places = list(calls)
    answered = {_call_of(instruction, places) for instruction in instructions} if places else set[int]()
    for call in (calls[place] for place in places if place not in answered):
        line = str(computation.module.line_of(call.start()))
        excerpt = as_text(text[call.start() : min(end, call.start() + _EXCERPT)].strip())
        yield Unread(line, excerpt, _WHY, opcode=as_text(call["opcode"]))


def _call_of(instruction: TextInstruction, calls: Sequence[int]) -> int:
    """Return the offset of the parenthesis behind an instruction's opcode.

    One that cannot be read is an unread item itself, and answers for the first call in it.
    """
    try:
        line = instruction.parts
    except UnreadableError:
        return calls[min(bisect_left(calls, instruction.start), len(calls) - 1)]
    return instruction.end - len(line.text) + line.operand_span.start - 1
