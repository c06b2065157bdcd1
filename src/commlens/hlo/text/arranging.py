"""Putting combined collectives into the list of their computation: only the lines that have to move do."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.hlo.edits import EditError
from commlens.hlo.formatting import as_text
from commlens.hlo.placement import Combination, place
from commlens.hlo.text.combining import Member, combined
from commlens.hlo.text.line import shape_end
from commlens.hlo.text.printed_lines import PrintedLines
from commlens.hlo.text.splices import Splice, spliced
from commlens.hlo.text.tokens import blank_comments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from commlens.hlo.edits import Combine
    from commlens.hlo.text.computation import TextComputation
    from commlens.hlo.text.instruction import TextInstruction
    from commlens.hlo.text.line import Line
    from commlens.hlo.text.tokens import Text


_BLANK: Final = ord(" ")
_DEFINED: Final = re.compile(rb"\n[ \t]++(?>ROOT[ \t]++)?+%?([^\s=%]++)[ \t]*+=")
"""The name of an instruction at the beginning of a line."""


class ParsedInstruction(NamedTuple):
    """An instruction, taken apart without fault.

    Attributes:
        instruction: the instruction.
        line: its parts.
        offset: offset in the file of what they were taken apart from.
    """

    instruction: TextInstruction
    line: Line
    offset: int

    @property
    def source(self) -> bytes:
        """The bytes it was taken apart from."""
        return self.instruction.computation.text[self.offset : self.offset + len(self.line.text)]


class Step(NamedTuple):
    """One combination: the edit, and its members taken apart."""

    edit: Combine
    members: Sequence[ParsedInstruction]


def arranged(
    computation: TextComputation,
    steps: Sequence[Step],
    others: Iterable[Splice],
    names: Callable[[str], bytes],
    *,
    indexed: bool,
) -> list[Splice]:
    """Find what changes in a computation when collectives are combined.

    Args:
        computation: the computation.
        steps: what is combined; no instruction is a member twice.
        others: other changes in the computation, which move along with their instructions.
        names: gives a new name for an instruction of an opcode.
        indexed: whether long lists have ``/*index=5*/`` comments.

    Returns:
        All splices, the others among them.

    Raises:
        EditError: members depend on each other, one cannot be combined, or a name is given twice.
    """
    _check_names(computation)
    lines, taken = _Lines(computation), _taken(computation, [edit.name for edit, _ in steps])
    contents: dict[int, list[bytes]] = {}
    combinations: list[Combination[int]] = []
    for number, (edit, members) in enumerate(steps):
        if edit.name.encode() in taken:
            msg = f"expected a new name for what is made of {members[0].line.name}, found {edit.name}, which is taken"
            raise EditError(msg)
        new, positions = -1 - number, [lines.position(member.offset) for member in members]
        spelled = combined(edit, [_member(each) for each in members], names, indexed=indexed)
        contents |= dict(zip(positions, spelled.members, strict=True)) | {new: spelled.lines}
        combinations.append(Combination(positions, new, edit.name))
    placement = place(range(len(lines)), lines.predecessors, combinations)
    own_places: Mapping[int, Sequence[int]] = {position: (position,) for position in contents if position >= 0}
    return list(_Spelling(lines, contents, sorted(others)).splices({**own_places, **placement.places}))


def _check_names(computation: TextComputation) -> None:
    """Refuse a computation with two instructions of one name: whose users move along, nobody can say.

    Raises:
        EditError: it has two such.
    """
    repeated = None if computation.graph().distinct else computation.definitions.repeated()
    if repeated is not None:
        name, (first, second) = as_text(repeated[0]), map(computation.module.line_of, repeated[1:])
        msg = f"expected each instruction of {computation.name} to have a name of its own, found {name} in the lines "
        msg += f"{first} and {second}: nothing can be combined there"
        raise EditError(msg, line=second, column=computation.module.column_of(repeated[2]))


def _taken(computation: TextComputation, names: Iterable[str]) -> frozenset[bytes]:
    """Return which of some names instructions have; of a printed computation no map is made for that."""
    doubtful = frozenset(name.encode() for name in names if not computation.module.is_fresh(name))
    if not doubtful:
        return doubtful
    if computation.starts is None:
        return doubtful.intersection(_DEFINED.findall(computation.text, computation.body - 1, computation.end))
    return frozenset(each for each in doubtful if computation.definitions.value_of(each, computation.end) is not None)


def _member(parsed: ParsedInstruction) -> Member:
    return Member(parsed.line, parsed.source, lambda: _operand_shape(parsed))


def _operand_shape(parsed: ParsedInstruction) -> bytes:
    """Return how the shape of a member's operand is spelled: beside it, or where it is defined.

    Raises:
        EditError: it stands at neither place.
    """
    member = Member(parsed.line, parsed.source, bytes)
    if member.states_type:
        return member.operand[: shape_end(member.operand, 0)]
    (name,) = parsed.line.operand_names()
    found = parsed.instruction.computation.defined(name, parsed.offset)
    parts = None if found is None else found.parts
    if parts is None or not parts.shape_span.start < parts.shape_span.end:
        msg = f"expected a shape of {name}, the operand of {parsed.line.name}, found none in the computation"
        raise EditError(msg)
    return parts.text[slice(*parts.shape_span)]


class _Lines:
    """The instructions of a computation that have lines of their own; others stand as operands in theirs."""

    def __init__(self, computation: TextComputation) -> None:
        self.text = computation.text
        self._graph = computation.graph()  # it may find that the computation is not as printed
        self._instructions = computation.instructions
        self._owned: Sequence[Sequence[int]] = ()
        if isinstance(self._instructions, PrintedLines):
            self._starts, self._stops = self._instructions.spans()
            return
        self._owned = _owned(self._instructions)
        self._tops = [owned[-1] for owned in self._owned]
        self._starts = [self._instructions[top].start for top in self._tops]
        self._stops = [self._instructions[top].end for top in self._tops]

    def __len__(self) -> int:
        return len(self._starts)

    def position(self, offset: int) -> int:
        """Return the position of the instruction in which an offset lies."""
        return bisect_right(self._starts, offset) - 1

    def start(self, position: int) -> int:
        """Return where an instruction starts."""
        return self._starts[position]

    def span(self, position: int) -> tuple[int, int]:
        """Return where an instruction stands, without blanks behind it."""
        start, stop = self._starts[position], self._stops[position]
        return start, stop if self.text[stop - 1] > _BLANK else start + len(self.text[start:stop].rstrip())

    @property
    def predecessors(self) -> Callable[[int], Iterable[int]]:
        """What must stand before an instruction, by its position."""
        if self._owned:
            return self._before_owned
        return self._graph.predecessors if self._graph.control_predecessors else self._graph.operands.__getitem__

    def _before_owned(self, position: int) -> Iterable[int]:
        needed = {each for owned in self._owned[position] for each in self._graph.predecessors(owned)}
        return [bisect_left(self._tops, each) for each in sorted(needed) if not self._instructions[each].nested]


def _owned(instructions: Sequence[TextInstruction]) -> list[list[int]]:
    """Return for every instruction with a line of its own the positions of those in its line, itself last."""
    found: list[list[int]] = []
    nested: list[int] = []
    for position, instruction in enumerate(instructions):
        nested.append(position)
        if not instruction.nested:
            found.append(nested)
            nested = []
    return found


@dataclass(frozen=True, slots=True)
class _Spelling:
    """How the changed places of a computation are written.

    Attributes:
        lines: its instructions.
        contents: what stands for new instructions and members, line by line.
        others: other changes, ascending.
    """

    lines: _Lines
    contents: Mapping[int, Sequence[bytes]]
    others: Sequence[Splice]

    def splices(self, places: Mapping[int, Sequence[int]]) -> Iterator[Splice]:
        """Yield the splices that give every place what stands there now."""
        text = self.lines.text
        if self.others:
            yield from self._unmoved(places)
        for position, row in places.items():
            start, end = self.lines.span(position)
            behind = self.lines.start(position + 1) if position + 1 < len(self.lines) else end
            if not row:
                yield Splice(start, behind, b"")
                continue
            line_end = _line_end(text, start)
            written = line_end.join(line for key in row for line in self._content(key))
            swallows = _ends_in_comment(written) and b"\n" not in text[end:behind]
            yield Splice(start, end, written + line_end if swallows else written)

    def _unmoved(self, places: Mapping[int, Sequence[int]]) -> Iterator[Splice]:
        """Yield the other changes of instructions that stay as they are but for these."""
        placed = {key for row in places.values() for key in row}
        spans = [self.lines.span(position) for position in sorted(placed | places.keys()) if position >= 0]
        starts = [start for start, _ in spans]
        for other in self.others:
            at = bisect_right(starts, other.start) - 1
            if at < 0 or other.start > spans[at][1]:
                yield other

    def _content(self, key: int) -> Sequence[bytes]:
        """Return what stands for an instruction, line by line."""
        known = self.contents.get(key)
        if known is not None:
            return [line.strip() for line in known]
        start, end = self.lines.span(key)
        if not self.others:
            return [self.lines.text[start:end]]
        first = bisect_left(self.others, start, key=_start)
        last = bisect_right(self.others, end, key=_start)
        return [spliced(self.lines.text, self.others[first:last], start, end)]


def _start(splice: Splice) -> int:
    return splice.start


def _line_end(text: Text, start: int) -> bytes:
    """Return what stands between two lines in the manner of the line on which an offset lies."""
    line = text.rfind(b"\n", 0, start) + 1
    before = text[line:start]
    return (b"\r\n" if text[line - 2 : line] == b"\r\n" else b"\n") + (b"  " if before.strip() else before)


def _ends_in_comment(written: bytes) -> bool:
    last = written[written.rfind(b"\n") + 1 :]
    return b"//" in last and blank_comments(written)[-1:] == b" "
