"""The fast path from edits to splices: printed lines that are spelled like others before them.

A printed line is cut at fixed marks; what is left of its attributes, without the channel number, the reducer's name and
the metadata, is looked up among the spellings seen so far. Only a new spelling is taken apart, and a line without those
marks is left to the slow path: both give the same splices.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar

from commlens.errors import GrammarError
from commlens.hlo.edit_plan import AttributeChange
from commlens.hlo.edits import EditError
from commlens.hlo.text.attribute_edits import attribute_splices
from commlens.hlo.text.grammar import LAYOUT, METADATA, grammar_fault, layout_fault
from commlens.hlo.text.line import parse_line
from commlens.hlo.text.rewriting import CUSTOM_CALL, custom_call_attributes, custom_call_splices
from commlens.hlo.text.splices import Splice, spliced
from commlens.hlo.text.tokens import NAME, SINGLE_QUOTED, STRING, unbalanced

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlens.hlo.edits import BecomeCustomCall
    from commlens.hlo.text.instruction import TextInstruction
    from commlens.hlo.text.line import Line

_Key = TypeVar("_Key", bound=Hashable)
_Answer = TypeVar("_Answer")

_FLAT: Final = rb"[^()\[\]{}\"'/\n]"
_PARTS: Final = _FLAT + rb"++|\[" + _FLAT + rb"*+\]|" + LAYOUT + rb"|/\*index=\d++\*/"
_TUPLE: Final = rb"\((?>" + _PARTS + rb")*+\)"
_LIST: Final = rb"\((?>" + _PARTS + rb"|" + _TUPLE + rb")*+\)"
"""The parts of a tuple, or operands with their types: tuples of tuples, whose layouts have tiles."""
_HEAD: Final = re.compile(
    rb"(?:ROOT )?%?"
    + NAME
    + rb" = (?P<shape>[a-z][a-z0-9]*+\["
    + _FLAT
    + rb"*+\](?>"
    + LAYOUT
    + rb")?+|"
    + _LIST
    + rb") "
    rb"(?P<operation>(?P<opcode>[a-z][a-z0-9\-]*+)" + _LIST + rb")(?>, channel_id=(?P<number>\d{1,18})(?!\d))?+"
)
_REDUCER: Final = re.compile(rb", to_apply=%?" + NAME + rb"(?=,|\Z)")
_METADATA_MARK: Final = b", metadata={"
_METADATA: Final = re.compile(rb", metadata=" + METADATA)
_ANY_REDUCER: Final = b", to_apply=r"
_ANY_METADATA: Final = b", metadata={}"
_ANY_CHANNEL: Final = b", channel_id=0"
"""What stands in a spelling, or a line made up for it, for the parts that differ from line to line."""
_NEW_ATTRIBUTES: Final = b", custom_call_target="
"""Stands for the attributes of a custom call."""
_CLOSED: Final = re.compile(rb"(?>[^\"'/\n]++|" + STRING + b"|" + SINGLE_QUOTED + rb")*+")
"""A text without comments in which all strings are closed."""
_UNCACHEABLE: Final = frozenset({"all_reduce_id", "control-predecessors"})
"""Attributes whose edits depend on more than how they are spelled."""
_MOST_SPELLINGS: Final = 4096


class _Anchored(NamedTuple):
    """A splice whose place does not depend on the parts that differ from line to line.

    Attributes:
        anchor: 0 where offsets count from the first attribute but the channel, 1 from where the metadata begin (or the
            line ends), 2 from the end of the line.
        start: offset of the first byte that goes.
        end: offset behind the last one.
        replacement: the new bytes.
    """

    anchor: int
    start: int
    end: int
    replacement: bytes


class _Spelling(NamedTuple):
    """What is left of a line without the parts that differ.

    Attributes:
        front: the attributes before the metadata, without channel and reducer's name.
        back: what stands behind the metadata; None where there are none.
        has_channel: whether a channel stands right behind the operands.
    """

    front: bytes
    back: bytes | None
    has_channel: bool


class _Cut(NamedTuple):
    """A printed line, cut at its marks.

    Attributes:
        head: what stands before the attributes, and the channel behind the operands.
        mark: offset of the metadata; of the line's end where there are none.
        behind: offset of what stands behind the metadata.
        spelling: what is left.
    """

    head: re.Match[bytes]
    mark: int
    behind: int
    spelling: _Spelling


_Values: TypeAlias = tuple[tuple[str, str], ...]
_Kept: TypeAlias = tuple[bytes, bytes]


@dataclass(slots=True)
class FastEditor:
    """Finds splices on the printed lines of one module.

    Attributes:
        shapes: whether the layouts of a result's shape are in order, by how it is written; bounded.
        spellings: what changes, by spelling and the frontend attributes to be set; None where the slow path must
            say. Bounded.
        kept: what a custom call keeps before and behind the metadata, by spelling, likewise.
    """

    shapes: dict[bytes, bool | None] = field(default_factory=dict[bytes, "bool | None"])
    spellings: dict[tuple[_Spelling, _Values], tuple[_Anchored, ...] | None] = field(
        default_factory=dict[tuple["_Spelling", "_Values"], "tuple[_Anchored, ...] | None"]
    )
    kept: dict[_Spelling, _Kept | None] = field(default_factory=dict["_Spelling", "_Kept | None"])

    def splices(self, instruction: TextInstruction, change: AttributeChange) -> list[Splice] | None:
        """Find which bytes of the file change when attributes of an instruction do.

        Args:
            instruction: an instruction.
            change: what changes.

        Returns:
            The splices in ascending order; None where the instruction must be taken apart.
        """
        cut = _cut(instruction)
        if cut is None or not _remembered(self.shapes, cut.head["shape"], _in_order):
            return None
        key = cut.spelling, tuple(change.frontend_attributes.items())
        anchored = _remembered(self.spellings, key, _anchored)
        if anchored is None:
            return None
        head, begin = cut.head, cut.head.end()
        found: list[Splice] = []
        if change.channel_id is not None:
            if head["number"] is None:
                found.append(Splice(begin, begin, b", channel_id=%d" % change.channel_id))
            elif int(head["number"]) != change.channel_id:
                found.append(Splice(*head.span("number"), b"%d" % change.channel_id))
        anchors = (begin, cut.mark, instruction.end)
        for anchor, start, stop, replacement in anchored:
            base = anchors[anchor]
            found.append(Splice(base + start, base + stop, replacement))
        return found

    def custom_call(self, instruction: TextInstruction, edit: BecomeCustomCall) -> list[Splice] | None:
        """Find which bytes of the file change when a collective becomes a custom call.

        Args:
            instruction: an instruction.
            edit: what it becomes.

        Returns:
            The splices in ascending order; None where the instruction must be taken apart.
        """
        cut = _cut(instruction)
        if cut is None or not _remembered(self.shapes, cut.head["shape"], _in_order):
            return None
        kept = _remembered(self.kept, cut.spelling, _kept)
        if kept is None:
            return None
        start, stop = cut.head.span("operation")
        operands = instruction.computation.text[cut.head.end("opcode") : stop]
        found = [Splice(start, cut.mark, CUSTOM_CALL + operands + custom_call_attributes(edit) + kept[0])]
        if kept[1] != (cut.spelling.back or b""):
            found.append(Splice(cut.behind, instruction.end, kept[1]))
        return found


def _cut(instruction: TextInstruction) -> _Cut | None:
    """Cut a line at its marks; None where they are not those of a printed line."""
    computation, end = instruction.computation, instruction.end
    text = computation.text
    head = _HEAD.match(text, instruction.start, end) if computation.starts is None else None
    if head is None or end == len(text):
        return None
    begin = head.end()
    rest = text[begin:end]
    mark = behind = rest.find(_METADATA_MARK)
    if mark < 0:
        front, back, mark = rest, None, len(rest)
    else:
        metadata = _METADATA.match(rest, mark)
        if metadata is None:
            return None
        behind = metadata.end()
        front, back = rest[:mark], rest[behind:]
    reducer = _REDUCER.search(front) if b", to_apply=" in front else None
    if reducer is not None:
        front = front[: reducer.start()] + _ANY_REDUCER + front[reducer.end() :]
    return _Cut(head, begin + mark, begin + behind, _Spelling(front, back, head["number"] is not None))


def _remembered(
    answers: dict[_Key, _Answer | None], key: _Key, answer: Callable[[_Key], _Answer | None]
) -> _Answer | None:
    """Return an answer that is worked out once for each key, as long as there are not too many."""
    if key in answers:
        return answers[key]
    found = answer(key)
    if len(answers) < _MOST_SPELLINGS:
        answers[key] = found
    return found


def _in_order(shape: bytes) -> bool:
    """Whether the layouts of a result's shape are those of its arrays."""
    return layout_fault(shape, 0, len(shape)) is None


class _Sample(NamedTuple):
    """A line made up to stand for all lines of a spelling.

    Attributes:
        line: it, taken apart.
        attributes: offset of the first attribute but the channel.
        behind: offset of what stands behind the metadata; of the end where there are none.
    """

    line: Line
    attributes: int
    behind: int


def _sample(spelling: _Spelling) -> _Sample | None:
    """Make up a line of a spelling and parse it; None where each line must be parsed itself."""
    front, back, has_channel = spelling
    if not (_CLOSED.fullmatch(front) and _CLOSED.fullmatch(back or b"")):
        return None
    before = b"x = f32[] op()" + (_ANY_CHANNEL if has_channel else b"")
    until_back = before + front + (b"" if back is None else _ANY_METADATA)
    text = until_back + (back or b"")
    try:
        line = parse_line(text)
    except GrammarError:
        return None
    odd = (
        line.fault is not None
        or not _UNCACHEABLE.isdisjoint(line.attributes)
        or unbalanced(text, 0, len(text)) is not None
    )
    if odd or ("channel_id" in line.attributes) != has_channel or grammar_fault(line) is not None:
        return None
    return _Sample(line, len(before), len(until_back))


def _kept(spelling: _Spelling) -> _Kept | None:
    """Return what a custom call keeps before and behind the metadata; None where the line must be taken apart."""
    sample = _sample(spelling)
    if sample is None:
        return None
    text = spliced(sample.line.text, custom_call_splices(sample.line, _NEW_ATTRIBUTES))
    kept = text[text.index(_NEW_ATTRIBUTES) + len(_NEW_ATTRIBUTES) :]
    front, mark, back = (kept, b"", b"") if spelling.back is None else kept.partition(_ANY_METADATA)
    if _ANY_REDUCER in front or (spelling.back is not None and not mark):
        return None
    return front, back


def _anchored(key: tuple[_Spelling, _Values]) -> tuple[_Anchored, ...] | None:
    """Return what changes on the lines of a spelling; None where a line must be taken apart."""
    spelling, values = key
    sample = _sample(spelling)
    if sample is None:
        return None
    text, attributes = sample.line.text, sample.attributes
    try:
        splices = attribute_splices(sample.line, text, AttributeChange(None, dict(values)))
    except EditError:
        return None
    if not spelling.has_channel and any(start == end == attributes for start, end, _ in splices):
        return None  # where a channel would go as well
    reducer = _REDUCER.search(spelling.front)
    first, behind = (attributes + edge for edge in ((0, 0) if reducer is None else reducer.span()))
    front_end = attributes + len(spelling.front)
    found: list[_Anchored] = []
    for start, end, replacement in splices:
        if spelling.back is not None and start >= sample.behind:
            found.append(_Anchored(2, start - len(text), end - len(text), replacement))
        elif behind <= start:
            found.append(_Anchored(1, start - front_end, end - front_end, replacement))
        elif end <= first:
            found.append(_Anchored(0, start - attributes, end - attributes, replacement))
        else:
            return None
    return tuple(found)
