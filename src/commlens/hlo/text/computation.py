"""A computation of a text."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from itertools import count, islice
from typing import TYPE_CHECKING, Final

from commlens.hlo.formatting import as_text
from commlens.hlo.graphs import graph_of
from commlens.hlo.model import Computation, UnreadableError
from commlens.hlo.text.definitions import Definitions
from commlens.hlo.text.graphs import printed_graph
from commlens.hlo.text.instruction import TextInstruction
from commlens.hlo.text.lenient_scanner import find_instructions
from commlens.hlo.text.line import ANONYMOUS, nested_spans
from commlens.hlo.text.printed_lines import INDENT, PrintedLines
from commlens.hlo.text.tokens import HEADER_GAP, NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from commlens.hlo.graphs import Graph
    from commlens.hlo.model import Instruction
    from commlens.hlo.signature import Site
    from commlens.hlo.text.module import TextModule

_HEADER: Final = re.compile(HEADER_GAP + rb"(?P<entry>ENTRY\b" + HEADER_GAP + rb")?%?(?P<name>" + NAME + rb")?")
_DEEPEST_NESTING: Final = 20
_FEW: Final = 32
"""Up to so many instructions are kept, so that each is taken apart once: reducers are asked again and again."""
_CALL: Final = re.compile(rb"[a-z0-9]\s*+(?:\(|/[*/])")
_PRINTED_ROOT: Final = re.compile(rb"\n  ROOT(?=[\s%])")
_ROOT: Final = re.compile(rb"\s*ROOT(?![\w.\-])")


class TextComputation(Computation):
    """One computation of a text.

    Args:
        module: the module it belongs to.
        number: its place in the index of the file.
        start: where its header's line starts.
        body: offset behind its opening brace.
        end: offset of its closing brace.
        starts: where its instructions start, for one that is not laid out as compilers print it.
        loose: whether these are instructions without a computation.
        closed: whether a brace closes it.
    """

    def __init__(
        self,
        module: TextModule,
        number: int,
        start: int,
        body: int,
        end: int,
        starts: Sequence[int] | None,
        *,
        loose: bool,
        closed: bool,
    ) -> None:
        self._module = module
        self.number = number
        self.start = start
        self.body = body
        self.end = end
        self.starts = starts
        self.is_loose = loose
        self.is_closed = closed
        self.text = module.text

    def read_leniently(self) -> None:
        """Find the instructions token by token: the computation is not laid out as compilers print it after all.

        That shows when the lines that may communicate are read, before anybody is told of the others.
        """
        self.starts = find_instructions(self.text, self.body)[0]
        vars(self).pop("definitions", None)  # operands were looked up already

    @property
    def module(self) -> TextModule:
        """The module it belongs to."""
        return self._module

    @property
    def name(self) -> str:
        """The name without ``%``; empty for loose instructions."""
        return self._name

    @cached_property
    def _name(self) -> str:
        if self.is_loose:
            return ""
        match = _HEADER.match(self.text, self.start, self.body)
        name = None if match is None else match["name"]
        return "" if name is None else as_text(name)

    @property
    def is_marked_entry(self) -> bool:
        """Whether ``ENTRY`` stands before it."""
        match = None if self.is_loose else _HEADER.match(self.text, self.start, self.body)
        return match is not None and match["entry"] is not None

    @property
    def is_entry(self) -> bool:
        """Whether it is the module's entry."""
        entry = self._module.entry
        return entry is not None and entry.number == self.number

    @cached_property
    def definitions(self) -> Definitions:
        """Where names are defined."""
        return Definitions(self.text, self.body, self.end, self.starts)

    @property
    def instructions(self) -> Sequence[TextInstruction]:
        """All instructions as written."""
        return self._instructions

    @cached_property
    def _instructions(self) -> Sequence[TextInstruction]:
        if self.starts is not None:
            stops = [*self.starts[1:], self.end]  # a body without instructions has one stop and no start
            written = [TextInstruction(self, start, stop) for start, stop in zip(self.starts, stops, strict=False)]
            return tuple(each for instruction in written for each in (*_nested_in(instruction), instruction))
        lines = PrintedLines(self)
        return tuple(lines) if len(lines) <= _FEW else lines

    def instruction(self, name: str) -> TextInstruction | None:
        """Return the instruction of that name, None if there is none."""
        return self.defined(name, self.end)

    def defined(self, name: str, before: int) -> TextInstruction | None:
        """Return the instruction of a name that is used at an offset: most stand a few lines above their use."""
        value = self.definitions.value_of(name.encode(), before)
        if value is None:
            return self._nested[1].get(name) if ANONYMOUS in name else None
        return self.at(value)

    def nested_name(self, start: int) -> str | None:
        """Return the name of the instruction that stands as an operand at an offset, None where none does."""
        return self._nested[0].get(start)

    def at(self, position: int) -> TextInstruction:
        """Return the instruction that stands at a position, none that is an operand of another."""
        if self.starts is None:
            stop = self.text.find(b"\n", position, self.end)
            start = self.text.rfind(b"\n", 0, position) + 1 + INDENT
            return TextInstruction(self, start, self.end if stop < 0 else stop)
        behind = bisect_right(self.starts, position)
        stop = self.starts[behind] if behind < len(self.starts) else self.end
        return TextInstruction(self, self.starts[behind - 1], stop)

    @cached_property
    def _nested(self) -> tuple[dict[int, str], dict[str, TextInstruction]]:
        """The names of the instructions that stand as operands, by where they start, and those instructions by name.

        XLA numbers what bears the same name as it reads it, here from one in every computation.
        """
        nested = [each for each in self.instructions if each.nested] if self.starts is not None else []
        taken = {each.name for each in self.instructions if not each.nested} if nested else set[str]()
        names: dict[int, str] = {}
        numbers: dict[str, Iterator[int]] = {}
        for each in nested:
            name = base = _written_name(each)
            while name in taken:
                name = f"{base}.{next(numbers.setdefault(base, count(1)))}"
            taken.add(name)
            names[each.start] = name
        return names, {names[each.start]: each for each in nested}

    @property
    def root(self) -> TextInstruction:
        """The root: the instruction marked so, else the last.

        Raises:
            LookupError: the computation is empty.
        """
        return self._root

    @cached_property
    def _root(self) -> TextInstruction:
        if not self.instructions:
            msg = f"the computation {self.name} has no instructions"
            raise LookupError(msg)
        if self.starts is None:
            printed = _PRINTED_ROOT.search(self.text, self.body - 1, self.end)
            return self.instructions[-1] if printed is None else self.at(printed.end())
        marked = [each for each in self.instructions if _ROOT.match(self.text, each.start)]
        return marked[0] if marked else self.instructions[-1]

    def graph(self) -> Graph:
        """Return who uses whom, by positions in the list."""
        return self._graph

    @cached_property
    def _graph(self) -> Graph:
        printed = printed_graph(self) if self.starts is None else None
        return graph_of(self.instructions) if printed is None else printed

    def communication(self) -> Iterable[Site | Instruction]:
        """Return what may communicate, as written."""
        return self._module.communication_in(self.number)


def _written_name(nested: TextInstruction) -> str:
    try:
        return nested.written_name
    except UnreadableError:
        return ANONYMOUS.removeprefix(".")  # there is something, and nobody can say what


def _nested_in(instruction: TextInstruction, depth: int = 0) -> list[TextInstruction]:
    """Return the instructions that stand as operands of another, innermost first, to a depth that people write."""
    text = instruction.computation.text
    quote = text.find(b'"', instruction.start, instruction.end)
    stop = instruction.end if quote < 0 or text.find(b"/", instruction.start, quote) >= 0 else quote  # in a comment?
    calls = _CALL.finditer(text, instruction.start, stop)
    if depth > _DEEPEST_NESTING or len([*islice(calls, 2)]) < 2:
        return []
    try:
        line = instruction.parts
    except UnreadableError:
        return []
    offset = instruction.end - len(line.text)
    found: list[TextInstruction] = []
    for start, end in nested_spans(line):
        inner = TextInstruction(instruction.computation, start + offset, end + offset, nested=True)
        found += [*_nested_in(inner, depth + 1), inner]
    return found
