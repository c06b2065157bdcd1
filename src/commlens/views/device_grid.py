"""A picture of devices in a grid, with walls between the groups.

Devices of one group lie in one room; a wall stands wherever neighbours belong to different groups. A group that is not
in one piece is known by its letter (and, on a terminal, its colour).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.views.lines import BLANK, DIM, Line, Span
from commlens.views.words import cut, pad, printable, width_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_WALLS: Final = " ╵╷│╴┘┐┤╶└┌├─┴┬┼"
"""The character of a crossing, by the walls that meet there: 1 above, 2 below, 4 left, 8 right."""

_HORIZONTAL, _VERTICAL = _WALLS[12], _WALLS[3]
_OUTSIDE: Final = -2
_NO_GROUP: Final = -1
_SHOWN_AXIS: Final = 16
_STYLES: Final = ("green", "cyan", "magenta", "yellow", "blue", "red", "bright_green", "bright_cyan")


@dataclass(frozen=True, slots=True)
class Member:
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

    def room(self, device: int | None) -> int:
        """Return the group that a device lies in."""
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
    """

    grid: Grid
    cells: Sequence[str]
    cell_width: int
    margin: int

    @property
    def width(self) -> int:
        """Columns that the picture takes."""
        return self.margin + self.grid.columns * (self.cell_width + 1) + 1

    def lines(self) -> Iterator[Line]:
        """Yield the picture line by line, one block after another."""
        grid = self.grid
        outer = grid.axes[:-2]
        for block, coordinates in enumerate(itertools.product(*(range(axis.size) for axis in outer))):
            if block:
                yield BLANK
            if outer:
                names = [axis.label(at) for axis, at in zip(outer, coordinates, strict=True)]
                yield (Span(" " * self.margin), Span(", ".join(filter(None, names)), DIM))
            yield from self._block(block * grid.rows)

    def _block(self, first_row: int) -> Iterator[Line]:
        """Yield one block, whose rows are counted over all blocks."""
        grid = self.grid
        outside = [_OUTSIDE] * (grid.columns + 2)
        above = outside
        yield from self._column_heading()
        for at in range(grid.rows):
            start = (first_row + at) * grid.columns
            devices = grid.devices[start : start + grid.columns]
            rooms = [_OUTSIDE, *(grid.room(device) for device in devices), _OUTSIDE]
            if above != rooms:
                yield self._wall(above, rooms)
            yield self._row(_row_name(grid, at), rooms, self.cells[start : start + grid.columns])
            above = rooms
        yield self._wall(above, outside)

    def _column_heading(self) -> Iterator[Line]:
        name = cut(printable(self.grid.axes[-1].name), _SHOWN_AXIS)
        if name:
            places = "".join(f" {at:^{self.cell_width}}" for at in range(self.grid.columns))
            yield (Span(pad(name, self.margin - 1, "right") + " " + places.rstrip(), DIM),)

    def _wall(self, above: Sequence[int], below: Sequence[int]) -> Line:
        """Return the line between two rows of rooms; both begin and end outside."""
        text = ""
        for at in range(self.grid.columns + 1):
            right = above[at + 1] != below[at + 1]
            walls = (above[at] != above[at + 1]) + 2 * (below[at] != below[at + 1])
            walls += 4 * (above[at] != below[at]) + 8 * right
            text += _WALLS[walls]
            if at < self.grid.columns:
                text += (_HORIZONTAL if right else " ") * self.cell_width
        return (Span(" " * self.margin + text),)

    def _row(self, name: str, rooms: Sequence[int], cells: Sequence[str]) -> Line:
        spans = [Span(pad(name, self.margin - 1, "right") + " " if self.margin else "", DIM)]
        for place, cell in enumerate(cells):
            room = rooms[place + 1]
            spans.append(Span(_VERTICAL if rooms[place] != room else " "))
            spans.append(Span(f" {pad(cell, self.cell_width - 2, 'left')} ", group_style(room) if room >= 0 else DIM))
        return (*spans, Span(_VERTICAL))


def picture_of(grid: Grid) -> Picture:
    """Measure a grid.

    Example:
        >>> from commlens.views.lines import text_of
        >>> members = {device: Member(device // 2, device % 2) for device in range(4)}
        >>> for one in picture_of(Grid((Axis("data", 2), Axis("model", 2)), range(4), members)).lines():
        ...     print(text_of(one))
         model    0      1
               ┌─────────────┐
        data 0 │ 0 A0   1 A1 │
               ├─────────────┤
        data 1 │ 2 B0   3 B1 │
               └─────────────┘
    """
    id_width = max((len(str(device)) for device in grid.devices if device is not None), default=1)
    cells = [_cell(device, grid.members, id_width) for device in grid.devices]
    row_names = [_row_name(grid, at) for at in range(grid.rows)]
    widest = max(width_of(name) for name in (*row_names, cut(printable(grid.axes[-1].name), _SHOWN_AXIS)))
    return Picture(grid, cells, 2 + max(len(cell) for cell in cells), widest + 1 if widest else 0)


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
