"""A picture of devices in a grid, with borders between the groups.

A border is drawn wherever neighbours belong to different groups. A group that is not in one piece is known by its
letter (and, on a terminal, its colour).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.views.lines import BLANK, DIM, Line, Span
from commlens.views.words import cut, pad, printable, width_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_CROSSINGS: Final = " ╵╷│╴┘┐┤╶└┌├─┴┬┼"
"""The character of a crossing, by the borders that meet there: 1 above, 2 below, 4 left, 8 right."""

_HORIZONTAL, _VERTICAL = _CROSSINGS[12], _CROSSINGS[3]
_GAP: Final = "   "
_OUTSIDE: Final = -2
_NO_GROUP: Final = -1
_SHOWN_AXIS: Final = 16
_STYLES: Final = ("green", "cyan", "magenta", "yellow", "blue", "red", "bright_green", "bright_cyan")


class Member(NamedTuple):
    """The place of a device in the groups.

    Attributes:
        group: number of the group.
        rank: its place there.
        repeated: whether the device stands in the groups more than once; then this is the first place.
    """

    group: int
    rank: int
    repeated: bool = False


class Axis(NamedTuple):
    """An axis of a grid.

    Attributes:
        name: what to call it, may be empty.
        size: places along it.
        step: how far its coordinate grows from one place to the next.
    """

    name: str
    size: int
    step: int = 1

    def label(self, at: int) -> str:
        """Return the name of a place, empty where the axis has no name."""
        name = cut(printable(self.name), _SHOWN_AXIS)
        return f"{name} {at * self.step}" if name else ""


@dataclass(frozen=True, slots=True)
class Grid:
    """Devices in a grid.

    Attributes:
        axes: outermost first; the last runs along a line, the one before it from line to line, all others from block
            to block.
        devices: the devices in row-major order; None where the grid has a hole.
        members: where each device stands; devices of no group are missing.
    """

    axes: tuple[Axis, ...]
    devices: Sequence[int | None]
    members: Mapping[int, Member]

    @property
    def rows(self) -> int:
        """Lines of a block."""
        return self.axes[-2].size if len(self.axes) > 1 else 1

    @property
    def columns(self) -> int:
        """Devices in a line."""
        return self.axes[-1].size

    def group_of(self, device: int | None) -> int:
        """Return the group that a device is in; a negative number for a hole and for a device of no group."""
        member = None if device is None else self.members.get(device)
        return _NO_GROUP if member is None else member.group


def group_label(group: int) -> str:
    """Return the letter of a group: A to Z, then AA, AB and so on.

    Example:
        >>> group_label(0), group_label(25), group_label(26), group_label(702)
        ('A', 'Z', 'AA', 'AAA')
    """
    letters = ""
    group += 1
    while group:
        group, letter = divmod(group - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return letters


def group_style(group: int) -> str:
    """Return the colour of a group; colours repeat, letters do not."""
    return _STYLES[group % len(_STYLES)]


@dataclass(frozen=True, slots=True)
class Picture:
    """A grid, measured: what is drawn, before it becomes lines.

    Attributes:
        grid: the grid.
        cells: what each cell says, in the order of the devices.
        cell_width: columns of a cell with a blank on either side.
        margin: columns left of the grid, for the names of the lines.
        groups: for each line of all blocks, the groups that its devices are in, with the outside at both ends.
        has_border: for each line of a block, whether there is a border above it in any of the blocks.
    """

    grid: Grid
    cells: Sequence[str]
    cell_width: int
    margin: int
    groups: Sequence[Sequence[int]]
    has_border: Sequence[bool]

    @property
    def width(self) -> int:
        """Columns that the picture takes."""
        return self.margin + self.grid.columns * (self.cell_width + 1) + 1

    def lines(self, width: int) -> Iterator[Line]:
        """Yield the picture line by line, with as many blocks beside each other as fit the width."""
        blocks = self._blocks()
        abreast = max(1, (width + len(_GAP)) // (self.width + len(_GAP)))
        first = True
        while side_by_side := list(itertools.islice(blocks, abreast)):
            if not first:
                yield BLANK
            first = False
            for parts in zip(*side_by_side, strict=True):
                yield tuple(itertools.chain.from_iterable(self._filled(part) for part in parts))

    def _filled(self, part: Line) -> Line:
        """Fill up a line of a block, with a gap to the block on its right."""
        used = sum(width_of(span.text) for span in part)
        return (*part, Span(" " * (self.width - used) + _GAP))

    def _blocks(self) -> Iterator[list[Line]]:
        """Yield the blocks: all have the same number of lines, so that they can stand beside each other."""
        outer = self.grid.axes[:-2]
        for block, coordinates in enumerate(itertools.product(*(range(axis.size) for axis in outer))):
            names = [axis.label(at) for axis, at in zip(outer, coordinates, strict=True)]
            title = Span(cut(", ".join(filter(None, names)), self.width - self.margin), DIM)
            lines = list(self._block(block * self.grid.rows))
            yield [(Span(" " * self.margin), title), *lines] if outer else lines

    def _block(self, first_row: int) -> Iterator[Line]:
        """Yield one block, whose rows are counted over all blocks."""
        outside = above = [_OUTSIDE] * (self.grid.columns + 2)
        yield from self._column_heading()
        for at in range(self.grid.rows):
            row = first_row + at
            if self.has_border[at]:
                yield self._border(above, self.groups[row])
            cells = self.cells[row * self.grid.columns : (row + 1) * self.grid.columns]
            yield self._row(_row_name(self.grid, at), self.groups[row], cells)
            above = self.groups[row]
        yield self._border(above, outside)

    def _column_heading(self) -> Iterator[Line]:
        name = cut(printable(self.grid.axes[-1].name), _SHOWN_AXIS)
        if name:
            places = "".join(f" {at:^{self.cell_width}}" for at in range(self.grid.columns))
            yield (Span(pad(name, self.margin - 1, "right") + " " + places.rstrip(), DIM),)

    def _border(self, above: Sequence[int], below: Sequence[int]) -> Line:
        """Return the line between two lines of devices, given the groups of both, which begin and end outside."""
        text = ""
        for at in range(self.grid.columns + 1):
            right = above[at + 1] != below[at + 1]
            borders = (above[at] != above[at + 1]) + 2 * (below[at] != below[at + 1])
            borders += 4 * (above[at] != below[at]) + 8 * right
            text += _CROSSINGS[borders]
            if at < self.grid.columns:
                text += (_HORIZONTAL if right else " ") * self.cell_width
        return (Span(" " * self.margin + text),)

    def _row(self, name: str, groups: Sequence[int], cells: Sequence[str]) -> Line:
        spans = [Span(pad(name, self.margin - 1, "right") + " " if self.margin else "", DIM)]
        for place, cell in enumerate(cells):
            group = groups[place + 1]
            spans.append(Span(_VERTICAL if groups[place] != group else " "))
            spans.append(Span(f" {pad(cell, self.cell_width - 2, 'left')} ", group_style(group) if group >= 0 else DIM))
        return (*spans, Span(_VERTICAL))


def picture_of(grid: Grid) -> Picture:
    """Measure a grid.

    Example:
        >>> from commlens.views.lines import text_of
        >>> members = {device: Member(device // 2, device % 2) for device in range(4)}
        >>> for one in picture_of(Grid((Axis("data", 2), Axis("model", 2)), range(4), members)).lines(80):
        ...     print(text_of(one))
         model    0      1
               ┌─────────────┐
        data 0 │ 0 A0   1 A1 │
               ├─────────────┤
        data 1 │ 2 B0   3 B1 │
               └─────────────┘
    """
    groups = [[_OUTSIDE, *map(grid.group_of, devices), _OUTSIDE] for devices in _batched(grid.devices, grid.columns)]
    has_border = [
        at == 0 or any(groups[row] != groups[row - 1] for row in range(at, len(groups), grid.rows))
        for at in range(grid.rows)
    ]
    id_width = max((len(str(device)) for device in grid.devices if device is not None), default=1)
    cells = [_cell(device, grid.members, id_width) for device in grid.devices]
    row_names = [_row_name(grid, at) for at in range(grid.rows)]
    widest = max(width_of(name) for name in (*row_names, cut(printable(grid.axes[-1].name), _SHOWN_AXIS)))
    return Picture(grid, cells, 2 + max(map(len, cells)), widest + 1 if widest else 0, groups, has_border)


def _batched(values: Sequence[int | None], size: int) -> Iterator[Sequence[int | None]]:
    return (values[start : start + size] for start in range(0, len(values), size))


def _cell(device: int | None, members: Mapping[int, Member], id_width: int) -> str:
    """Return what a cell says: device, letter of the group, rank in it; ``+`` where it stands in the list again."""
    if device is None:
        return ""
    member = members.get(device)
    if member is None:
        return f"{device:>{id_width}} ·"
    return f"{device:>{id_width}} {group_label(member.group)}{member.rank}{'+' if member.repeated else ''}"


def _row_name(grid: Grid, at: int) -> str:
    return grid.axes[-2].label(at) if len(grid.axes) > 1 else ""
