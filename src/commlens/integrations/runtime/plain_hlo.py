"""HLO as a compiler left it, put back into a form that XLA's CPU client compiles again.

The way to the client (HLO to StableHLO and back) knows no fusions, layouts, schedules and asynchronous pairs, and no
collectives of several operands. Each of these has a plain form that computes the same: a call, a reshape between
transposes, no order at all, the operation itself, one collective per operand. Shardings are dropped, as the module is
run as each device runs it. Groups spelled by mesh axes are written out, because that way keeps one mesh per module.

Works on text as jaxlib's printer writes it: one instruction per line, operands with their shapes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from commlens.errors import CommlensError
from commlens.topology import parse_replica_groups

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_INSTRUCTION: Final = re.compile(r"\s+(?P<root>ROOT )?(?P<name>%\S+) = (?=\S)")
_OPCODE: Final = re.compile(r" ?(?P<opcode>[a-z][\w\-]*)\(")
_INDEX: Final = re.compile(r"/\*index=\d+\*/")
_LAYOUT: Final = re.compile(r"(?<=\])\{[^{}]*\}")
_ARRAY: Final = re.compile(r"(?P<type>[a-z]\w*)\[(?P<dims>[\d,]*)\](?:\{(?P<layout>[\d,]*+)[^{}]*+\})?")

_SEVERAL: Final = re.compile(r"\) (?:all-gather|all-reduce|collective-permute|reduce-scatter)\(")
_NAMED_MESH: Final = re.compile(
    r'"(?>[^"\\\n]|\\.)*+"?|/\*(?>[^*]|\*(?!/))*+(?:\*/)?|'
    r'(?P<key>\breplica_groups *= *)(?P<groups>@[^@"\n{}]*+\{[^@"\n{}]*+\})'
)
"""Strings and comments, which hold no groups, and groups by the axes of a mesh as they were spelled at first."""

_BRACKETS: Final = {"(": ")", "{": "}", "[": "]"}
_DROPPED: Final = frozenset({"sharding", "metadata", "control-predecessors", "frontend_attributes", "origin"})
_SPLIT: Final = frozenset({"all-gather", "all-reduce", "collective-permute", "reduce-scatter"})

UNPARTITIONED: Final = re.compile(
    r'custom_call_target="(?:Sharding|SPMDFullToShardShape|SPMDShardToFullShape|xla\.sdy\.[\w.]*)"'
)
"""What stands only in modules that the partitioner has not seen."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One line of a computation.

    Attributes:
        root: whether it is the root.
        name: its name with ``%``.
        shape: its shape as printed.
        opcode: its opcode.
        operands: what stands between the parentheses, split at commas.
        attributes: the attributes as printed, ``key=value``.
    """

    root: bool
    name: str
    shape: str
    opcode: str
    operands: tuple[str, ...]
    attributes: tuple[str, ...]

    @property
    def operand_names(self) -> tuple[str, ...]:
        """The operands without their shapes."""
        return tuple(operand.rsplit(" ", 1)[-1] for operand in self.operands)

    def __str__(self) -> str:
        """Return the line without layouts and operand shapes."""
        literal = self.opcode in ("constant", "parameter", "iota")
        inside = ", ".join(self.operands if literal else self.operand_names)
        head = f"  {'ROOT ' if self.root else ''}{self.name} = {_LAYOUT.sub('', self.shape)} {self.opcode}({inside})"
        return ", ".join((head, *self.attributes))


def partitioner_of(text: str) -> str | None:
    """Return which partitioner a module is written for, None where it is written as each device runs it."""
    unpartitioned = UNPARTITIONED.search(text) is not None
    partitioned = any(each in text for each in ("is_scheduled=true", "replica_groups=", "source_target_pairs="))
    if not unpartitioned and (partitioned or "devices=[" not in text):
        return None
    return "shardy" if "xla.sdy." in text else "gspmd"


def readable(text: str) -> str:
    """Write out the groups that are spelled ``@mesh<...>``, which XLA's reader does not take.

    Example:
        >>> readable("replica_groups=@mesh<a=2,b=2> {b}, dimensions={0}")
        'replica_groups={{0,1},{2,3}}, dimensions={0}'
    """
    return _NAMED_MESH.sub(_listed, text) if "@" in text else text


def _listed(found: re.Match[str]) -> str:
    groups = found["groups"]
    if groups is None:
        return found[0]
    try:
        return f"{found['key']}{parse_replica_groups(groups).to_list()}"
    except CommlensError:
        return found[0]


def one_by_one(text: str) -> str:
    """Return a module as it is, but for its collectives of several operands: one for each of them.

    For a module that XLA is to partition: everything else in it says how.
    """
    return "\n".join(each for line in text.split("\n") for each in _parted(line))


def _parted(line: str) -> Sequence[str]:
    if _SEVERAL.search(line) is None or _INSTRUCTION.match(line) is None:
        return (line,)
    read = read_instruction(line)
    if read.opcode not in _SPLIT or len(read.operands) < 2:
        return (line,)
    sharding = next((each for each in read.attributes if each.startswith("sharding=")), None)
    others = tuple(each for each in read.attributes if each != sharding)
    *parts, whole = _one_by_one(replace(read, attributes=others))
    if sharding is not None:
        whole = replace(whole, attributes=(sharding,))
        shardings = _shardings(sharding.removeprefix("sharding="), len(parts))
        parts = [
            replace(part, attributes=(*part.attributes, f"sharding={each}"))
            for part, each in zip(parts, shardings, strict=True)
        ]
    return [str(each) for each in (*parts, whole)]


def _shardings(value: str, number: int) -> list[str]:
    """Return the sharding of each element of a tuple."""
    inside = value[1:-1]
    return [each.strip() for each in _pieces(inside)] if inside.startswith("{") else [value] * number


def plain(text: str) -> str:
    """Return a module in plain form.

    Args:
        text: the module as jaxlib prints it, with layouts, operand shapes and all constants.

    Returns:
        A module that computes the same.

    Raises:
        CommlensError: something has no plain form.

    Example:
        >>> print(plain('''HloModule m, is_scheduled=true
        ...
        ... ENTRY %main (p: f32[2,3]) -> f32[3,2] {
        ...   %p = f32[2,3]{1,0} parameter(0), sharding={replicated}
        ...   ROOT %b = f32[3,2]{0,1} bitcast(f32[2,3]{1,0} %p), metadata={op_name="t"}
        ... }
        ... '''))
        HloModule plain
        <BLANKLINE>
        ENTRY %main (p: f32[2,3]) -> f32[3,2] {
          %p = f32[2,3] parameter(0)
          ROOT %b = f32[3,2] transpose(%p), dimensions={1,0}
        }
        <BLANKLINE>
    """
    return "\n".join(line for each in text.split("\n") for line in _plain_lines(each))


def _plain_lines(line: str) -> Iterator[str]:
    if line.startswith("HloModule"):
        yield "HloModule plain"
    elif line.startswith("}"):
        yield "}"
    elif _INSTRUCTION.match(line) is None:
        yield _LAYOUT.sub("", line)
    else:
        yield from map(str, _plain_instructions(read_instruction(line)))


def read_instruction(line: str) -> Instruction:
    """Take a line apart.

    Raises:
        CommlensError: the line is no instruction as jaxlib prints it.

    Example:
        >>> read = read_instruction('  ROOT %t = (f32[2]{0}, s32[]) tuple(f32[2]{0} %a, s32[] %b), origin={t}')
        >>> read.root, read.name, read.shape, read.opcode, read.operand_names, read.attributes
        (True, '%t', '(f32[2]{0}, s32[])', 'tuple', ('%a', '%b'), ('origin={t}',))
    """
    line = _INDEX.sub("", line)
    head = _INSTRUCTION.match(line)
    after_shape = -1 if head is None else _end_of_shape(line, head.end())
    opcode = _OPCODE.match(line, after_shape) if after_shape >= 0 else None
    if head is None or opcode is None:
        msg = f"expected an instruction as jaxlib prints it, found {line.strip()[:80]!r}"
        raise CommlensError(msg)
    end = _end_of(line, opcode.end())
    operands = tuple(piece.strip() for piece in _pieces(line[opcode.end() : end]))
    attributes = tuple(_joined(piece.strip() for piece in _pieces(line[end + 1 :].removeprefix(","))))
    shape = line[head.end() : after_shape].strip()
    return Instruction(head["root"] is not None, head["name"], shape, opcode["opcode"], operands, attributes)


def _end_of_shape(line: str, start: int) -> int:
    """Return where a shape ends: behind its closing parenthesis, or at the blank behind it."""
    if line.startswith("(", start):
        return _end_of(line, start + 1) + 1
    return line.find(" ", start)


def _end_of(line: str, start: int) -> int:
    """Return where the bracket closes that is open at ``start``, the line's length where it does not."""
    depth = 1
    for place, quoted, character in _characters(line, start):
        if not quoted:
            depth += (character in _BRACKETS) - (character in _BRACKETS.values())
            if depth == 0:
                return place
    return len(line)


def _pieces(text: str) -> Iterator[str]:
    """Split a text at commas outside brackets and quotes."""
    depth = start = 0
    for place, quoted, character in _characters(text, 0):
        if quoted:
            continue
        depth += (character in _BRACKETS) - (character in _BRACKETS.values())
        if character == "," and depth == 0:
            yield text[start:place]
            start = place + 1
    if text[start:].strip():
        yield text[start:]


def _characters(text: str, start: int) -> Iterator[tuple[int, bool, str]]:
    """Yield characters with their places and whether they stand in double quotes."""
    quoted = escaped = False
    for place in range(start, len(text)):
        character = text[place]
        yield place, quoted, character
        if escaped:
            escaped = False
        elif quoted and character == "\\":
            escaped = True
        elif character == '"':
            quoted = not quoted


def _joined(pieces: Iterator[str]) -> Iterator[str]:
    """Join what the comma inside a mesh with device ids has parted."""
    for piece in pieces:
        if piece.startswith("replica_groups=mesh[") and not piece.endswith("}"):
            yield f"{piece}, {next(pieces, '')}"
        else:
            yield piece


def _plain_instructions(read: Instruction) -> Sequence[Instruction]:
    kept = tuple(map(_written_out, (each for each in read.attributes if not _is_dropped(read.opcode, each))))
    read = _synchronous(replace(read, attributes=kept))
    if read.opcode == "fusion":
        called = next((each for each in kept if each.startswith("calls=")), "")
        return (replace(read, opcode="call", attributes=(called.replace("calls=", "to_apply=", 1),)),)
    if read.opcode == "bitcast":
        return tuple(_reshaped(read))
    if read.opcode in _SPLIT and len(read.operands) > 1:
        return tuple(_one_by_one(read))
    return (read,)


def _is_dropped(opcode: str, attribute: str) -> bool:
    key = attribute.split("=", 1)[0]
    return key in _DROPPED or (key == "backend_config" and opcode != "custom-call")


def _written_out(attribute: str) -> str:
    key, _, value = attribute.partition("=")
    if key != "replica_groups" or not value.startswith("mesh["):
        return attribute
    return f"{key}={parse_replica_groups(value).to_list()}"


def _synchronous(read: Instruction) -> Instruction:
    """Put the operation in the place of its start, and let the pieces behind it hand on its result."""
    operation, _, half = read.opcode.rpartition("-")
    if half in ("done", "update") and operation:
        return replace(read, opcode="opt-barrier", shape=_payload(operation, read.shape, half), attributes=())
    if half != "start" or not operation:
        return read
    return replace(read, opcode=operation, shape=_payload(operation, read.shape, half))


def _payload(operation: str, shape: str, half: str) -> str:
    """Return the shape of the result in the shape of an asynchronous piece."""
    if half == "done" or (operation == "all-reduce" and not shape.startswith("((")):  # as an async-start it nests
        return shape
    parts = [part.strip() for part in _pieces(shape[1:-1])]
    if len(parts) < 2:
        msg = f"expected the shape of an asynchronous {operation} to be a tuple, found {shape}"
        raise CommlensError(msg)
    return parts[1]  # of a copy both are alike


def _one_by_one(read: Instruction) -> Iterator[Instruction]:
    """Write a collective of several operands as one for each."""
    shapes = [shape.strip() for shape in _pieces(read.shape[1:-1])]
    names = [f"{read.name}--part{place}" for place in range(len(read.operands))]
    for name, shape, operand in zip(names, shapes, read.operands, strict=True):
        yield replace(read, root=False, name=name, shape=shape, operands=(operand,))
    yield replace(read, opcode="tuple", operands=tuple(names), attributes=())


def _reshaped(read: Instruction) -> Iterator[Instruction]:
    """Write a bitcast as what it does to the values: transpose to the order in memory, reshape, transpose back."""
    source, target = (_ARRAY.match(text) for text in (read.operands[0], read.shape))
    if source is None or target is None or source["type"] != target["type"]:
        msg = f"expected a bitcast between arrays of one type, found one from {read.operands[0]} to {read.shape}"
        raise CommlensError(msg)
    dtype = target["type"]
    before, after = (_ints(match["dims"]) for match in (source, target))
    inward, outward = _memory_order(source, before), _memory_order(target, after)
    steps: list[tuple[str, list[int], list[int]]] = []  # opcode, dimensions of the result, permutation
    in_memory, back = [before[each] for each in inward], [after[each] for each in outward]
    if inward != sorted(inward):
        steps.append(("transpose", in_memory, inward))
    if in_memory != back:
        steps.append(("reshape", back, []))
    if outward != sorted(outward):
        steps.append(("transpose", after, [outward.index(each) for each in range(len(outward))]))
    operand = read.operand_names[0]
    for place, (opcode, dims, permutation) in enumerate(steps or [("reshape", after, [])]):
        last = place >= len(steps) - 1
        attributes = (f"dimensions={{{_text(permutation)}}}",) if opcode == "transpose" else ()
        name = read.name if last else f"{read.name}--step{place}"
        yield Instruction(read.root and last, name, f"{dtype}[{_text(dims)}]", opcode, (operand,), attributes)
        operand = name


def _memory_order(array: re.Match[str], dims: Sequence[int]) -> list[int]:
    """Return the dimensions of an array from the slowest to the fastest in memory."""
    layout = array["layout"]
    return list(range(len(dims))) if layout is None else _ints(layout)[::-1]


def _ints(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def _text(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))
