"""Pictures of devices."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.views.device_grid import Axis, Grid, Member, Picture, group_label, picture_of
from commlens.views.explain_grid import members_of
from commlens.views.lines import text_of

CROSSINGS = {
    " ": "",
    "│": "ud",
    "─": "lr",
    "┌": "dr",
    "┐": "dl",
    "└": "ur",
    "┘": "ul",
    "├": "udr",
    "┤": "udl",
    "┬": "dlr",
    "┴": "ulr",
    "┼": "udlr",
}


def drawn(picture: Picture, width: int = 1000) -> list[str]:
    """Return the lines of a picture as text."""
    return [text_of(one) for one in picture.lines(width)]


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    """Nameless grids of two axes with any groups, devices of no group among them."""
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    owners = draw(st.lists(st.integers(-1, 3), min_size=rows * columns, max_size=rows * columns))
    members = {device: Member(group, 0) for device, group in enumerate(owners) if group >= 0}
    return Grid((Axis("", rows), Axis("", columns)), range(rows * columns), members)


@given(grids())
def test_borders_stand_between_groups_alone(grid: Grid) -> None:
    """Two neighbours in a line have a border between them exactly if they belong to different groups."""
    picture = picture_of(grid)
    lines = [one for one in drawn(picture) if re.search(r"\d", one)]
    assert len(lines) == grid.rows
    for at, one in enumerate(lines):
        groups = [grid.group_of(device) for device in grid.devices[at * grid.columns : (at + 1) * grid.columns]]
        borders = [one[place * (picture.cell_width + 1)] == "│" for place in range(1, grid.columns)]
        assert borders == [left != right for left, right in pairwise(groups)]


@given(grids())
def test_every_device_is_drawn_once(grid: Grid) -> None:
    """Each device stands in the picture once, with the letter of its group or a dot."""
    text = "\n".join(drawn(picture_of(grid)))
    found = {int(device): mark for device, mark in re.findall(r"(\d+) ([A-Z]|·)", text)}
    expected = {device: "·" for device in range(len(grid.devices))}
    expected |= {device: group_label(member.group) for device, member in grid.members.items()}
    assert found == expected


@given(grids())
def test_borders_meet(grid: Grid) -> None:
    """The borders are whole: each piece of one has its continuation on the other side."""
    lines = drawn(picture_of(grid))
    width = max(map(len, lines))
    borders = [[CROSSINGS.get(character, "") for character in one.ljust(width)] for one in lines]
    for above, below in pairwise(borders):
        for upper, lower in zip(above, below, strict=True):
            assert ("d" in upper) == ("u" in lower)
    for line in borders:
        for left, right in pairwise(line):
            assert ("r" in left) == ("l" in right)


@given(grids())
def test_the_width_is_known_before(grid: Grid) -> None:
    """A picture is as wide as it says."""
    picture = picture_of(grid)
    assert max(map(len, drawn(picture))) == picture.width


def test_blocks_stand_beside_each_other() -> None:
    """The outer axes make blocks: side by side where there is room, else one below another."""
    grid = Grid((Axis("pod", 2), Axis("data", 1), Axis("model", 2)), range(4), members_of([[0, 1], [2, 3]]))
    picture = picture_of(grid)
    assert drawn(picture, 2 * picture.width + 3) == [
        "       pod 0                    pod 1",
        " model    0      1        model    0      1",
        "       ┌─────────────┐          ┌─────────────┐",
        "data 0 │ 0 A0   1 A1 │   data 0 │ 2 B0   3 B1 │",
        "       └─────────────┘          └─────────────┘",
    ]
    assert len(drawn(picture, picture.width)) == 2 * len(drawn(picture, 2 * picture.width + 3)) + 1


def test_repeated_devices_are_marked() -> None:
    """A device that the groups name twice stands at its first place and bears a plus."""
    members = members_of([[0, 1], [1, 0]])
    assert members == {0: Member(0, 0, repeated=True), 1: Member(0, 1, repeated=True)}
    assert "0 A0+   1 A1+" in drawn(picture_of(Grid((Axis("", 2),), range(2), members)))[1]


def test_hostile_axis_names_are_harmless() -> None:
    """Names of axes are shown as printable text and cut."""
    grid = Grid((Axis("\x1b[31m", 1), Axis("x" * 1000, 2)), range(2), members_of([[0, 1]]))
    text = "\n".join(drawn(picture_of(grid)))
    assert "\x1b" not in text
    assert "\\x1b[31m 0" in text
    assert max(map(len, text.splitlines())) < 60


@pytest.mark.parametrize(("group", "label"), [(0, "A"), (25, "Z"), (26, "AA"), (51, "AZ"), (701, "ZZ"), (702, "AAA")])
def test_letters_of_groups(group: int, label: str) -> None:
    """Groups are lettered like the columns of a spreadsheet."""
    assert group_label(group) == label


@given(st.integers(0, 10**6))
def test_letters_are_a_number(group: int) -> None:
    """Read back as a number without a zero, the letters give the group."""
    value = 0
    for letter in group_label(group):
        value = value * 26 + ord(letter) - ord("A") + 1
    assert value - 1 == group
