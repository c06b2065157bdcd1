"""A picture of devices in a grid, with walls between the groups.

Cells of one group lie in one room; a wall stands wherever neighbours belong to different groups. Groups that are not
in one piece are told apart by their letters (and, on a terminal, colours).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from commlens.views.lines import BLANK, DIM, Line, Span, line
from commlens.views.words import cut, pad, printable, width_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MOST_CELLS: Final = 1024
"""Largest number of devices of which a picture is drawn."""

_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_JUNCTIONS: Final = "  │" + " ┘┐┤ └┌├─┴┬┼"
_GROUP_STYLES: Final = ("green", "cyan", "magenta", "yellow", "blue", "red", "bright_green", "bright_cyan")


@dataclass(frozen=True, slots=True)
class Member:
    """The place of a device in a group.

    Attributes:
        group: number of the group.
        rank: its place there.
        repeated: whether the device stands in the list more than once.
    """

    group: int
    rank: int
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Grid:
    """Devices in a grid.

    Attributes:
        axes: names and sizes, outermost first; the last runs along a line, the one before it from line to line, all
            others from block to block. Names may be empty.
        devices: the devices in row-major order; None where the grid has a hole.
        members: where each device stands; devices of no group are missing.
    """

    axes: tuple[tuple[str, int], ...]
    devices: Sequence[int | None]
    members: Mapping[int, Member]


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
    return _GROUP_STYLES[group % len(_GROUP_STYLES)]


def grid_width(grid: Grid) -> int:
    """Return the columns that a picture takes."""
    columns = grid.axes[-1][1]
    return _margin(grid) + columns * (_cell_width(grid) + 1) + 1


def grid_lines(grid: Grid) -> Iterator[Line]:
    """Yield the picture of a grid.

    Example:
        >>> from commlens.views.lines import text_of
        >>> members = {device: Member(device // 2, device % 2) for device in range(4)}
        >>> for one in grid_lines(Grid((("data", 2), ("model", 2)), range(4), members)):
        ...     print(text_of(one))
                model 0  1
                ┌───────────┐
        data 0  │ 0 A0 1 A1 │
                ├───────────┤
        data 1  │ 2 B0 3 B1 │
                └───────────┘
    """
    *outer, (_, rows), (_, columns) = (("", 1), *grid.axes)[-max(2, len(grid.axes)) :]
    for place, block in enumerate(itertools.product(*(range(size) for _, size in outer))):
        if outer:
            names = [f"{name} {at}".strip() for (name, _), at in zip(outer, block, strict=True)]
            if place:
                yield BLANK
            yield line(" " * _margin(grid), Span(printable(", ".join(names)), DIM))
        first = place * rows * columns
        yield from _block_lines(grid, grid.devices[first : first + rows * columns], rows, columns)
