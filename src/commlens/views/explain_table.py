"""The table view of ``explain`` and ``groups``: a sentence, a picture, the groups, the spellings, the digits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.views.columns import Column, Table, laid_out
from commlens.views.device_grid import group_label, group_style
from commlens.views.explain_grid import explanation_picture
from commlens.views.lines import BLANK, BOLD, DIM, WARNING, Line, Span, line, styled, wrapped
from commlens.views.words import UNKNOWN, counted, cut, pad, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.analysis import CollectiveGroups, Explanation, Unfolding

_MOST_GROUPS: Final = 16
_MOST_MEMBERS: Final = 16
_MOST_STEPS: Final = 8
_MOST_TEXT: Final = 500
_PICTURE_WIDTH: Final = 120
_LABEL_WIDTH: Final = 13


def explanation_lines(explanation: Explanation, width: int | None) -> Iterator[Line]:
    """Yield the table view of a replica group list.

    Args:
        explanation: the list.
        width: columns of the terminal, None for as many as it takes. Spellings are never broken: they are there to be
            copied.
    """
    yield line(styled(cut(printable(explanation.text), _MOST_TEXT), BOLD))
    yield from _paragraph(explanation.meaning, width)
    yield from _picture(explanation, width)
    yield from _groups(explanation, width)
    yield from _facts(explanation)
    unfolding = explanation.unfolding
    if unfolding is not None:
        yield from _unfolding(unfolding, width)


def collective_groups_lines(groups: CollectiveGroups, width: int | None) -> Iterator[Line]:
    """Yield the attributes to paste, then the table view of the groups."""
    yield line(styled(groups.attributes, BOLD))
    yield BLANK
    yield from explanation_lines(groups, width)


def _paragraph(text: str, width: int | None) -> Iterator[Line]:
    return wrapped([styled(word, "") for word in text.split()], width)


def _picture(explanation: Explanation, width: int | None) -> Iterator[Line]:
    picture = explanation_picture(explanation, width or _PICTURE_WIDTH)
    if picture is None:
        return
    yield BLANK
    yield from picture.lines()
    yield (Span("device id, letter of its group, rank in the group", DIM),)
    if any(member.repeated for member in picture.grid.members.values()):
        yield (Span("+: the device stands in the groups more than once", WARNING),)


def _groups(explanation: Explanation, width: int | None) -> Iterator[Line]:
    number = explanation.num_replica_groups
    if not number:
        return
    yield BLANK
    for group, devices in enumerate(_first_groups(explanation)):
        label = Span(pad(group_label(group), 2, "left"), group_style(group))
        words = [Span(word) for word in devices]
        for place, one in enumerate(wrapped(words, None if width is None else width - _LABEL_WIDTH)):
            name = f"group {group}" if place == 0 else ""
            yield (label if place == 0 else Span("  "), Span(f" {pad(name, 9, 'left')} ", DIM), *one)
    if number > _MOST_GROUPS:
        yield (Span(f"... and {counted(number - _MOST_GROUPS, 'more group', 'more groups')}", DIM),)


def _first_groups(explanation: Explanation) -> Iterator[list[str]]:
    """Yield the words that show the first groups; long ones show their beginning and end."""
    number = min(explanation.num_replica_groups, _MOST_GROUPS)
    unfolding = explanation.unfolding
    if explanation.groups is not None:
        yield from (_shortened(group) for group in explanation.groups[:number])
    elif unfolding is not None:
        for group in range(number):
            first = [unfolding.step(group, rank).device for rank in range(min(unfolding.group_size, _MOST_MEMBERS))]
            last = unfolding.step(group, unfolding.group_size - 1).device
            yield _ends(first, last, unfolding.group_size)
    elif explanation.device_list.is_written_out:
        yield from (_shortened(explanation.device_list.group(group)) for group in range(number))


def _shortened(devices: Sequence[int]) -> list[str]:
    return _ends(devices[:_MOST_MEMBERS], devices[-1] if devices else None, len(devices))


def _ends(first: Sequence[int], last: int | None, size: int) -> list[str]:
    words = [str(device) for device in first] or ["(nobody)"]
    if size > len(first):
        words += ["...", str(last), f"({size:,})"]
    return words


def _facts(explanation: Explanation) -> Iterator[Line]:
    yield BLANK
    for name, text, style in _fact_texts(explanation):
        yield (Span(pad(name, _LABEL_WIDTH, "left"), DIM), styled(cut(printable(text), _MOST_TEXT), style))


def _fact_texts(explanation: Explanation) -> Iterator[tuple[str, str, str]]:
    yield "as list", explanation.list or "too many ids to write out (--full lists up to 16,777,216)", ""
    yield "as iota", explanation.iota or "none: the ids do not count through a transposed array", ""
    mesh = explanation.mesh
    if mesh is None:
        yield "axes", f"{UNKNOWN} (--mesh data=2,model=4 names them)", ""
    else:
        yield "as mesh axes", explanation.mesh_axes or f"none: the groups are no axes of {mesh} in this order", ""
        yield "axes", _axes(explanation.axes), ""
    whole = "yes" if explanation.is_partition else "no: a device is missing, stands there twice, or does not exist"
    yield "partition", whole, "" if explanation.is_partition else WARNING
    if explanation.mode is not None:
        participants = explanation.participants
        ids = " (ids as written: give --replicas and --partitions)" if explanation.ids else ""
        yield "mode", explanation.mode, ""
        yield "participants", (UNKNOWN if participants is None else _braces(participants)) + ids, ""


def _axes(axes: Sequence[str] | None) -> str:
    if axes is None:
        return f"{UNKNOWN} (the groups do not lie along axes of the mesh)"
    return ", ".join(axes) or "none (groups of one device)"


def _braces(groups: Sequence[Sequence[int]]) -> str:
    return "{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in groups) + "}"


def _unfolding(unfolding: Unfolding, width: int | None) -> Iterator[Line]:
    """Show how the iota form unfolds: where the digits of an id go, and the way of the first few."""
    dims, perm = unfolding.reshape_dims, unfolding.transpose_perm
    digits = [f"d{dim}" for dim in range(len(dims))]
    moved = [digits[dim] for dim in perm]
    yield BLANK
    yield line(styled("digit by digit", BOLD))
    limits = ", ".join(f"{digit} < {size:,}" for digit, size in zip(digits, dims, strict=True))
    yield line("device   = ", _number(digits, dims), styled(f"    {limits}", DIM))
    yield line("position = ", _number(moved, unfolding.position_dims))
    yield line(f"group    = position div {unfolding.group_size}, rank = position mod {unfolding.group_size}")
    if len(dims) > 1:
        yield BLANK
        yield from laid_out(_steps(unfolding, digits, moved), width)
        if unfolding.num_devices > _MOST_STEPS:
            yield line(styled(f"... and {unfolding.num_devices - _MOST_STEPS:,} more", DIM))


def _number(digits: Sequence[str], sizes: Sequence[int]) -> str:
    """Write a number in mixed radix as a sum: ``4*d0 + d1``."""
    terms: list[str] = []
    weight = 1
    for digit, size in zip(reversed(digits), reversed(sizes), strict=True):
        terms.append(digit if weight == 1 else f"{weight}*{digit}")
        weight *= size
    return " + ".join(reversed(terms))


def _steps(unfolding: Unfolding, digits: Sequence[str], moved: Sequence[str]) -> Table:
    numbers = (Column("group", "right"), Column("rank", "right"), Column("position", "right"))
    columns = (
        *numbers,
        Column(f"= ({','.join(moved)})"),
        Column(f"-> ({','.join(digits)})"),
        Column("= device", "right"),
    )
    rows = [
        [
            Span(str(step.group), group_style(step.group)),
            Span(str(step.rank)),
            Span(str(step.position)),
            Span(f"({','.join(map(str, step.digits))})"),
            Span(f"({','.join(map(str, step.moved))})"),
            Span(str(step.device), BOLD),
        ]
        for step in unfolding.steps(_MOST_STEPS)
    ]
    return Table(columns, rows)
