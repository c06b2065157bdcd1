"""The table view of ``explain`` and ``groups``: a sentence, a picture, the groups, the spellings, the digits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.views.columns import Column, Table, laid_out
from commlens.views.device_grid import group_label, group_style
from commlens.views.explain_grid import participants_picture, written_picture
from commlens.views.lines import BLANK, BOLD, DIM, WARNING, Line, Span, line, paragraph, styled, wrapped
from commlens.views.words import UNKNOWN, counted, cut, pad, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.analysis import CollectiveGroups, Explanation, Unfolding
    from commlens.views.device_grid import Picture

_MOST_GROUPS: Final = 16
_MOST_LARGE_GROUPS: Final = 4
_MOST_MEMBERS: Final = 16
_MOST_STEPS: Final = 8
_MOST_TEXT: Final = 500
_PICTURE_WIDTH: Final = 120
_LABEL_WIDTH: Final = 13


def explanation_lines(
    explanation: Explanation, width: int | None, counts: tuple[int, int] | None = None
) -> Iterator[Line]:
    """Yield the table view of a replica group list.

    Args:
        explanation: the list.
        width: columns of the terminal, None for as many as it takes. Spellings are never broken: they are there to be
            copied.
        counts: replicas and partitions, where they are known.
    """
    yield line(styled(cut(printable(explanation.text), _MOST_TEXT), BOLD))
    yield from paragraph(explanation.meaning, "", width)
    yield from _picture(written_picture(explanation, width or _PICTURE_WIDTH), width)
    if explanation.num_replica_groups:
        yield BLANK
        yield from _groups(explanation, width)
    yield BLANK
    yield from _facts(explanation)
    if explanation.participants and counts is not None:
        yield from _picture(participants_picture(explanation.participants, counts, width or _PICTURE_WIDTH), width)
    unfolding = explanation.unfolding
    if unfolding is not None:
        yield BLANK
        yield from _unfolding(unfolding, width)


def collective_groups_lines(groups: CollectiveGroups, width: int | None) -> Iterator[Line]:
    """Yield the attributes to paste, then the table view of the groups."""
    yield line(styled(groups.attributes, BOLD))
    yield BLANK
    yield from explanation_lines(groups, width)


def _picture(picture: Picture | None, width: int | None) -> Iterator[Line]:
    if picture is None:
        return
    yield BLANK
    yield from picture.lines(width or _PICTURE_WIDTH)
    yield (Span("id, letter of its group, rank in the group", DIM),)
    if any(member.repeated for member in picture.grid.members.values()):
        yield (Span("+: the id stands in the groups more than once", WARNING),)


def _groups(explanation: Explanation, width: int | None) -> Iterator[Line]:
    """Yield the first groups, a letter and the ids of each."""
    size = explanation.num_devices_per_group
    shown = _MOST_GROUPS if size is None or size <= _MOST_MEMBERS else _MOST_LARGE_GROUPS
    for group, words in enumerate(_first_groups(explanation, shown)):
        beginning = (Span(pad(group_label(group), 2, "left"), group_style(group)), Span(f" group {group:<4}", DIM))
        room = None if width is None else width - _LABEL_WIDTH
        for place, one in enumerate(wrapped([Span(word) for word in words], room)):
            yield (*beginning, *one) if place == 0 else (Span(" " * _LABEL_WIDTH), *one)
    left_out = explanation.num_replica_groups - shown
    if left_out > 0:
        yield (Span(f"... and {counted(left_out, 'more group', 'more groups')}", DIM),)


def _first_groups(explanation: Explanation, number: int) -> Iterator[list[str]]:
    """Yield the words that show the first groups; of long ones the beginning and the end."""
    number = min(number, explanation.num_replica_groups)
    unfolding = explanation.unfolding
    if explanation.groups is not None:
        yield from (_shortened(group) for group in explanation.groups[:number])
    elif unfolding is not None:
        for group in range(number):
            size = unfolding.group_size
            first = [unfolding.step(group, rank).device for rank in range(min(size, _MOST_MEMBERS))]
            yield _ends(first, unfolding.step(group, size - 1).device, size)
    elif explanation.device_list.is_written_out:
        yield from (_shortened(explanation.device_list.group(group)) for group in range(number))


def _shortened(devices: Sequence[int]) -> list[str]:
    return _ends(devices[:_MOST_MEMBERS], devices[-1] if devices else 0, len(devices))


def _ends(first: Sequence[int], last: int, size: int) -> list[str]:
    words = [str(device) for device in first] or ["nobody"]
    if size > len(first):
        words += ["...", str(last), f"({size:,} in all)"]
    return words


def _facts(explanation: Explanation) -> Iterator[Line]:
    for name, text, style in _fact_texts(explanation):
        whole = printable(text)
        short = cut(whole, _MOST_TEXT)
        rest = "" if short == whole else " (--format json has all of it)"
        yield (Span(pad(name, _LABEL_WIDTH, "left"), DIM), Span(short, style), Span(rest, DIM))


def _fact_texts(explanation: Explanation) -> Iterator[tuple[str, str, str]]:
    yield "as list", explanation.list or "too many ids to write out (--full lists up to 16,777,216)", ""
    if explanation.num_replica_groups:
        yield "as iota", explanation.iota or "none: the ids do not count through a transposed array", ""
    mesh = explanation.mesh
    if mesh is None:
        yield "axes", f"{UNKNOWN} (--mesh data=2,model=4 names them)", ""
    else:
        if explanation.num_replica_groups:
            yield "as mesh axes", explanation.mesh_axes or f"none: the groups are no axes of {mesh} in this order", ""
        yield "axes", _axes(explanation), ""
    whole = "yes" if explanation.is_partition else "no: a device is missing, stands there twice, or does not exist"
    yield "partition", whole, "" if explanation.is_partition else WARNING
    if explanation.mode is not None:
        yield "mode", explanation.mode, ""
        yield "participants", _participants(explanation), ""


def _participants(explanation: Explanation) -> str:
    if explanation.participants is None:
        why = explanation.why_no_participants or "too many ids to write out (--full lists up to 16,777,216)"
        return f"{UNKNOWN} ({why})"
    ids = " (ids as written: give --replicas and --partitions)" if explanation.ids else ""
    return _braces(explanation.participants) + ids


def _axes(explanation: Explanation) -> str:
    if explanation.axes is None:
        return f"{UNKNOWN} ({explanation.why_no_participants or _why_no_axes(explanation)})"
    return ", ".join(explanation.axes) or "none (groups of one device)"


def _why_no_axes(explanation: Explanation) -> str:
    if explanation.mode is None and not explanation.num_replica_groups:
        return "no groups are written: --mode, --replicas and --partitions tell who takes part"
    return "the groups do not lie along axes of the mesh"


def _braces(groups: Sequence[Sequence[int]]) -> str:
    return "{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in groups) + "}"


def _unfolding(unfolding: Unfolding, width: int | None) -> Iterator[Line]:
    """Show how the iota form unfolds: where the digits of an id go, and the way of the first few."""
    dims, perm = unfolding.reshape_dims, unfolding.transpose_perm
    digits = [f"d{dim}" for dim in range(len(dims))]
    moved = [digits[dim] for dim in perm]
    spelling = f"[{unfolding.num_groups},{unfolding.group_size}]<=[{','.join(map(str, dims))}]"
    order = f"T({','.join(map(str, perm))})" if len(dims) > 1 else ""
    yield line(styled("digit by digit", BOLD), f"  {spelling}{order}")
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
