"""Setting attributes on printed lines, quickly where they are spelled like others before them.

A printed line is cut at fixed marks; what is left of its attributes, without the channel number, the reducer's name and
the metadata, is looked up among the spellings seen so far. Only a new spelling is taken apart, and a line without those
marks is left to the careful road: both give the same splices.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.errors import GrammarError
from commlens.hlo.agreement import AttributeChange
from commlens.hlo.edits import EditError
from commlens.hlo.text.attribute_edits import attribute_splices
from commlens.hlo.text.lexis import NAME, SINGLE_QUOTED, STRING, unbalanced
from commlens.hlo.text.line import parse_line
from commlens.hlo.text.splices import Splice

if TYPE_CHECKING:
    from commlens.hlo.text.instruction import TextInstruction

_TILE: Final = rb"\([^()\n\"']*+\)"
_TUPLE: Final = rb"\((?:[^()\n\"']++|" + _TILE + rb")*+\)"
_INSIDE: Final = rb"(?:[^()\n\"']++|" + _TUPLE + rb")*+"
_HEAD: Final = re.compile(
    rb"(?:ROOT )?%?" + NAME + rb" = (?:[a-z][a-z0-9]*\[[^\]\n\"']*+\](?:\{[^{}\n\"']*+\})?|\(" + _INSIDE + rb"\)) "
    rb"[a-z][a-z0-9\-]*+\(" + _INSIDE + rb"\)(?P<channel>, channel_id=(?P<number>\d{1,18})(?!\d))?"
)
_REDUCER: Final = re.compile(rb", to_apply=%?" + NAME + rb"(?=,|\Z)")
_METADATA_MARK: Final = b", metadata={"
_METADATA: Final = re.compile(re.escape(_METADATA_MARK) + rb"(?:[^{}\"'\n]++|" + STRING + rb")*+\}")
_WORN: Final = (b", to_apply=r", b", metadata={}", b", channel_id=0")
"""What stands in a spelling for the parts that differ from line to line."""
_CLOSED: Final = re.compile(rb"(?:[^\"'/\n]++|" + STRING + b"|" + SINGLE_QUOTED + rb")*+")
"""A text without comments in which all strings are closed."""
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
        values: the frontend attributes to be set.
    """

    front: bytes
    back: bytes | None
    has_channel: bool
    values: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class QuickEditor:
    """Finds splices on the printed lines of one module.

    Attributes:
        spellings: what changes, by spelling; None where the careful road must say. Bounded.
    """

    spellings: dict[_Spelling, tuple[_Anchored, ...] | None] = field(
        default_factory=dict["_Spelling", "tuple[_Anchored, ...] | None"]
    )

    def splices(self, instruction: TextInstruction, change: AttributeChange) -> list[Splice] | None:
        """Find which bytes of the file change when attributes of an instruction do.

        Args:
            instruction: a line of a printed computation.
            change: what changes.

        Returns:
            The splices in ascending order; None where the instruction must be taken apart.
        """
        text, end = instruction.computation.text, instruction.end
        head = _HEAD.match(text, instruction.start, end)
        if head is None or end == len(text):
            return None
        begin = head.end()
        rest = text[begin:end]
        mark = rest.find(_METADATA_MARK)
        if mark < 0:
            front, back, mark = rest, None, len(rest)
        else:
            metadata = _METADATA.match(rest, mark)
            if metadata is None:
                return None
            front, back = rest[:mark], rest[metadata.end() :]
        reducer = _REDUCER.search(front) if b", to_apply=" in front else None
        if reducer is not None:
            front = front[: reducer.start()] + _WORN[0] + front[reducer.end() :]
        number = head["number"]
        anchored = self._spelled(_Spelling(front, back, number is not None, tuple(change.frontend_attributes.items())))
        if anchored is None:
            return None
        found: list[Splice] = []
        if change.channel_id is not None:
            if number is None:
                found.append(Splice(begin, begin, b", channel_id=%d" % change.channel_id))
            elif int(number) != change.channel_id:
                found.append(Splice(*head.span("number"), b"%d" % change.channel_id))
        anchors = (begin, begin + mark, end)
        for anchor, start, stop, replacement in anchored:
            base = anchors[anchor]
            found.append(Splice(base + start, base + stop, replacement))
        return found

    def _spelled(self, spelling: _Spelling) -> tuple[_Anchored, ...] | None:
        if spelling in self.spellings:
            return self.spellings[spelling]
        found = _anchored(spelling)
        if len(self.spellings) < _MOST_SPELLINGS:
            self.spellings[spelling] = found
        return found


def _anchored(spelling: _Spelling) -> tuple[_Anchored, ...] | None:
    """Take a spelling apart; None where the line must be."""
    front, back, has_channel, values = spelling
    if not (_CLOSED.fullmatch(front) and _CLOSED.fullmatch(back or b"")):
        return None
    before = b"x = f32[] op()" + (_WORN[2] if has_channel else b"")
    until_back = before + front + (b"" if back is None else _WORN[1])
    text = until_back + (back or b"")
    try:
        line = parse_line(text)
        splices = attribute_splices(line, text, AttributeChange(None, dict(values)))
    except (GrammarError, EditError):
        return None
    odd = line.fault is not None or "all_reduce_id" in line.attributes or unbalanced(text, 0, len(text)) is not None
    if odd or ("channel_id" in line.attributes) != has_channel:
        return None
    if not has_channel and any(start == end == len(before) for start, end, _ in splices):
        return None  # where a channel would go as well
    reducer = _REDUCER.search(front)
    first, behind = (len(before) + edge for edge in ((0, 0) if reducer is None else reducer.span()))
    found: list[_Anchored] = []
    for start, end, replacement in splices:
        if back is not None and start >= len(until_back):
            found.append(_Anchored(2, start - len(text), end - len(text), replacement))
        elif behind <= start:
            front_end = len(before) + len(front)
            found.append(_Anchored(1, start - front_end, end - front_end, replacement))
        elif end <= first:
            found.append(_Anchored(0, start - len(before), end - len(before), replacement))
        else:
            return None
    return tuple(found)
