"""Opcode, operands and reducer of printed lines by one pattern each; None for a line that is written otherwise."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.hlo.formatting import as_text
from commlens.hlo.text.tokens import NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo.text.computation import TextComputation
    from commlens.hlo.text.instruction import TextInstruction

_ARRAY: Final = rb"[a-z][a-z0-9]*+\[[^\]\n]*+\](?>\{[^{}\n]*+\})?+"
_TUPLE: Final = rb'\((?>[^()"\n]++|\([^()"\n]*+\))*+\)'
_OPERAND: Final = rb"%?" + NAME
_PRINTED: Final = re.compile(
    rb"(?:ROOT )?" + _OPERAND + rb" = (?:" + _ARRAY + rb"|" + _TUPLE + rb") (?!constant\()"
    rb"(?P<opcode>[a-z][a-z0-9\-]*+)\((?P<operands>" + _OPERAND + rb"(?>, " + _OPERAND + rb")*+)?\)"
)
_VALUE: Final = rb"(?:[\w.\-]++|\[[\d,]*+\]<=\[[\d,]*+\](?>T\([\d,]*+\))?+|\{(?>[^{}\"'/\n]++|\{[^{}\"'/\n]*+\})*+\})"
_APPLIES: Final = re.compile(
    rb"(?>, (?!to_apply=)[a-z_]++=" + _VALUE + rb")*+, to_apply=%?(?P<name>" + NAME + rb")(?=,|\Z)"
)
_SCALAR: Final = rb"[a-z][a-z0-9]*+\[\](?>\{\})?+"
_BRACED: Final = rb"=\{(?>[^{}\"'/\n]++|\"(?>[^\"\\\n]++|\\[^\n])*+\")*+\}"
_TAIL: Final = rb"(?>, frontend_attributes" + _BRACED + rb")?+(?>, metadata" + _BRACED + rb")?+\n"
_PARAMETER: Final = rb" = " + _SCALAR + rb" parameter\(\d++\)" + _TAIL
_REDUCER: Final = re.compile(
    rb"\n?  %?(?P<one>" + NAME + rb")" + _PARAMETER + rb"  %?(?P<other>" + NAME + rb")" + _PARAMETER + rb"  ROOT "
    + _OPERAND + rb" = " + _SCALAR + rb" (?P<opcode>[a-z][a-z0-9\-]*+)\(%?(?P<left>" + NAME + rb"), %?(?P<right>"
    + NAME + rb")\)" + _TAIL
)  # fmt: skip
_LINE_START: Final = b"\n  "
_NEAR: Final = 8192
"""How far above its use a definition is looked for; to find all of them costs a map of the computation."""


class LineSummary(NamedTuple):
    """What the pattern of a printed line says.

    Attributes:
        opcode: the opcode.
        operand: the name of operand 0; None where it has no operands.
    """

    opcode: str
    operand: str | None


def summary_of(line: TextInstruction) -> LineSummary | None:
    """Return opcode and operand 0 of a printed line; None where it has to be parsed."""
    computation = line.computation
    match = _PRINTED.match(computation.text, line.start, line.end) if computation.starts is None else None
    if match is None:
        return None
    operands: bytes | None = match["operands"]
    name = None if operands is None else as_text(operands.partition(b",")[0].removeprefix(b"%"))
    return LineSummary(as_text(match["opcode"]), name)


def to_apply_at(line: TextInstruction) -> str | None:
    """Return the name in ``to_apply`` of a printed line; None where it has to be parsed."""
    computation = line.computation
    printed = _PRINTED.match(computation.text, line.start, line.end) if computation.starts is None else None
    match = None if printed is None else _APPLIES.match(computation.text, printed.end(), line.end)
    return None if match is None else as_text(match["name"])


def reducer_opcode_at(reducer: TextComputation) -> str | None:
    """Return the opcode of an operation on two scalar parameters that is all of a computation; None for all else."""
    match = _REDUCER.fullmatch(reducer.text, reducer.body, reducer.end) if reducer.starts is None else None
    if match is None or {match["left"], match["right"]} != {match["one"], match["other"]}:
        return None
    return as_text(match["opcode"])


def operands_behind(computation: TextComputation, user: int, first: int) -> Iterator[int]:
    """Yield where operands of a printed line start: those that are defined not far above it.

    Args:
        computation: a computation that is laid out as compilers print it.
        user: where the line's instruction starts.
        first: where the first line starts that counts.
    """
    text = computation.text
    match = _PRINTED.match(text, user, computation.end)
    operands: bytes | None = None if match is None else match["operands"]
    top = max(first - len(_LINE_START), user - _NEAR)
    for operand in () if operands is None else operands.split(b", "):
        found = text.rfind(_LINE_START + operand + b" = ", top, user)
        if found >= 0:
            yield found + len(_LINE_START)
