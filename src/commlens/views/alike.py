"""Rows that say the same, put together: what a table shows instead of thousands of equal lines."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from commlens.views.words import UNKNOWN, cut, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from commlens.analysis import ReplicaGroups, Row

SHOWN: Final = 64
"""Columns that a name, a spelling of groups or a list of shapes may take; CSV and JSON have all of it."""

_SHOWN_AXES: Final = 40


@dataclass(frozen=True, slots=True)
class Kind:
    """What a table says of a collective apart from its place and how often it runs.

    Attributes:
        opcode: the operation.
        form: what else there is to say of its form: ``("async",)``, ``("via all-reduce-scatter",)``.
        axes: the mesh axes joined by commas, ``"none"`` or ``"?"``; in parentheses on the row's own mesh.
        size: groups x devices in each.
        spelling: the groups or pairs as the module writes them, cut where they are long.
        devices: the devices that exchange data, where those are not the ids as written.
        shapes: operands -> results.
        operand_bytes: bytes of a device's operands, None where not known.
        result_bytes: bytes of its results likewise.
        received: bytes that a device receives; the largest where groups differ.
        uneven: whether groups differ in what they receive.
    """

    opcode: str
    form: tuple[str, ...]
    axes: str
    size: str
    spelling: str
    devices: str
    shapes: str
    operand_bytes: int | None
    result_bytes: int | None
    received: float | None
    uneven: bool


@dataclass(frozen=True, slots=True)
class Alike:
    """Rows of one kind that run equally often under the same conditions.

    Attributes:
        kind: what they are.
        runs: how often each runs; None where that is not known.
        conditional: the conditionals they stand in.
        rows: the rows in order.
    """

    kind: Kind
    runs: int | None
    conditional: tuple[str, ...]
    rows: Sequence[Row]


def alike(rows: Iterable[Row]) -> list[Alike]:
    """Put rows together that a table would show alike, in the order of the first of each."""
    kinds: dict[object, Kind] = {}  # rows that are spelled alike share their figures: look at each only once
    together: dict[tuple[Kind, int | None, tuple[str, ...]], list[Row]] = {}
    for row in rows:
        kind = kinds.get(row.figures)
        if kind is None:
            kind = kinds[row.figures] = kind_of(row)
        together.setdefault((kind, row.trip_count, tuple(row.conditional)), []).append(row)
    return [Alike(*key, members) for key, members in together.items()]


def kind_of(row: Row) -> Kind:
    """Return what a table says of a row."""
    received = row.wire_bytes_per_device
    return Kind(
        opcode=row.opcode,
        form=_form(row),
        axes=_axes(row),
        size=_size(row),
        spelling=_spelling(row),
        devices=_devices(row),
        shapes=_shapes(row),
        operand_bytes=row.operand_bytes,
        result_bytes=row.result_bytes,
        received=_largest(received) if isinstance(received, list) else received,
        uneven=isinstance(received, list),
    )


def _largest(figures: Sequence[float | None]) -> float | None:
    known = [figure for figure in figures if figure is not None]
    return max(known, default=0) if len(known) == len(figures) else None


def _form(row: Row) -> tuple[str, ...]:
    parts = [
        "async" if row.is_async else "",
        f"via {row.via}" if row.via else "",
        "host transfer" if row.host_transfer else "",
        "invalid flags" if row.group_mode is None and row.replica_groups is not None else "",
        "ids as written" if row.ids else "",
    ]
    return tuple(part for part in parts if part)


def _axes(row: Row) -> str:
    if row.axes is None:
        return UNKNOWN
    text = cut(printable(",".join(row.axes)), _SHOWN_AXES) or "none"
    return text if row.mesh is None else f"({text})"


def _size(row: Row) -> str:
    if row.source_target_pairs is not None:
        pairs = len(row.source_target_pairs)
        return f"{pairs} pair" if pairs == 1 else f"{pairs} pairs"
    groups = row.replica_groups
    if groups is None:
        return "-"
    if groups.form == "empty":
        return "all"
    return f"{groups.num_replica_groups}x{_group_size(groups)}"


def _group_size(groups: ReplicaGroups) -> str:
    """Return the devices in a group, as ``3..5`` where groups differ."""
    if groups.num_devices_per_group is not None:
        return str(groups.num_devices_per_group)
    sizes = [len(group) for group in groups.groups or ()]
    return f"{min(sizes)}..{max(sizes)}" if sizes else UNKNOWN


def _spelling(row: Row) -> str:
    if row.source_target_pairs is not None:
        return _braces(row.source_target_pairs)
    return "" if row.replica_groups is None else cut(printable(row.replica_groups.text), SHOWN)


def _devices(row: Row) -> str:
    """Return who takes part, where the ids as written do not say so already."""
    groups, participants = row.replica_groups, row.participants
    written = row.source_target_pairs if groups is None else groups.groups
    if participants is None or participants == written:
        return ""
    return _braces(participants)


def _braces(groups: Sequence[Sequence[int]]) -> str:
    text = "{"
    for place, group in enumerate(groups):
        text += ("," if place else "") + "{" + ",".join(map(str, group)) + "}"
        if len(text) > SHOWN:
            break
    return cut(text + "}", SHOWN)


def _shapes(row: Row) -> str:
    operands, results = _listed(row.operand_shapes), _listed(row.result_shapes)
    return operands if operands == results else f"{operands or '()'} -> {results or '()'}"


def _listed(shapes: Sequence[str]) -> str:
    """Return shapes with equal neighbours counted: ``2 f32[8], bf16[4]``."""
    runs = ((shape, len([*equal])) for shape, equal in groupby(shapes))
    return cut(printable(", ".join(shape if count == 1 else f"{count} {shape}" for shape, count in runs)), SHOWN)
