"""Golden texts: what a module communicates, small enough to be read in a review, the same for every spelling.

A golden text is a version, the axes of the mesh, and a table with one line for all collectives that are alike::

    # commlens golden 1
    # What the program communicates, however it is spelled. Renew it: pytest --commlens-update
    mesh: data=2, model=4

    count  opcode      axes   groups  types  bytes      runs
    2      all-gather  model  2 of 4  f32    64 -> 256  12

``groups`` is "number of groups of members each" where axes say the rest, else the devices; ``bytes`` are those of a
device's operands and results; ``runs`` is how often each runs in one execution of the entry computation, with
``conditional`` beside it where that depends. Names, lines, channels, order, layouts, and whether something is
asynchronous, fused or combined of several texts are none of it. Cells are separated by two blanks or more.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.analysis.axis_names import UNKNOWN_AXES
from commlens.analysis.effective_axes import axes_up_to_order, effective_axes_key
from commlens.analysis.meanings import devices_text
from commlens.analysis.participant_keys import order_of, participant_keys_of
from commlens.analysis.totals import OPCODES
from commlens.errors import InputError
from commlens.topology import CollectiveDeviceList

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from commlens.analysis.figures import Figures
    from commlens.analysis.participant_keys import Order
    from commlens.analysis.reports import Report
    from commlens.analysis.row import Row
    from commlens.topology import DeviceList, Mesh

VERSION: Final = 1
"""Version of the text: another one when the same communication is written otherwise."""

_TITLE: Final = f"# commlens golden {VERSION}"
_ADVICE: Final = "# What the program communicates, however it is spelled. Renew it: pytest --commlens-update"
_HEADS: Final = ("count", "opcode", "axes", "groups", "types", "bytes", "runs")
_GAP: Final = re.compile(r" {2,}")
_MOST_IDS: Final = 64
_UNKNOWN: Final = "?"


class GoldenLine(NamedTuple):
    """What collectives that are alike have in common, as cells of the table.

    Attributes:
        opcode: the operation.
        axes: the mesh axes; in the order of the members where that decides who gets what.
        groups: how many groups of how many, or the devices.
        types: element types.
        size: bytes of a device's operands and results.
        runs: how often each of them runs.
    """

    opcode: str
    axes: str
    groups: str
    types: str
    size: str
    runs: str


@dataclass(frozen=True, slots=True)
class Golden:
    """What a golden text says.

    Attributes:
        mesh: the axes of the mesh with their sizes; ``"none"`` where nothing names axes.
        lines: how many collectives there are of each kind.
    """

    mesh: str
    lines: Mapping[GoldenLine, int]

    def __str__(self) -> str:
        """Return the text."""
        table = [_HEADS, *((str(count), *line) for line, count in sorted(self.lines.items(), key=_place))]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        rows = ("  ".join(map(str.ljust, cells, widths)).rstrip() for cells in table)
        return "\n".join([_TITLE, _ADVICE, f"mesh: {self.mesh}", "", *rows, ""])


def golden_of(report: Report) -> tuple[Golden, Mapping[GoldenLine, list[Row]]]:
    """Return what a report says in a golden text, and the rows behind each line.

    Args:
        report: a report without anything unread.

    Example:
        >>> from commlens.analysis import report
        >>> from commlens.hlo import load
        >>> module = load('''HloModule m, replica_count=4
        ... ENTRY e {
        ...   p = f32[8] parameter(0)
        ...   ROOT g = f32[32] all-gather(p), replica_groups={{0,1,2,3}}, dimensions={0}
        ... }''')
        >>> golden, rows = golden_of(report(module, "data=2,model=2"))
        >>> print(str(golden).splitlines()[-1])
        1      all-gather  data,model  1 of 4  f32    32 -> 128  1
    """
    rows: dict[GoldenLine, list[Row]] = {}
    for row in report.collectives:
        rows.setdefault(_line(row, report.mesh), []).append(row)
    axes = () if report.mesh is None else report.mesh.axes
    mesh = ", ".join(f"{_one_word(name)}={size}" for name, size in dict(axes).items()) or "none"
    return Golden(mesh, Counter({line: len(alike) for line, alike in rows.items()})), rows


def read_golden(text: str, *, path: str) -> Golden:
    """Read a golden text.

    Args:
        text: the text; blanks beyond two between cells, empty lines and lines that begin with ``#`` mean nothing.
        path: name of the file, for messages.

    Raises:
        InputError: it is no golden text, one of another version, or one of its lines is none.
    """
    lines = text.splitlines()
    if not lines or lines[0].rstrip() != _TITLE:
        found = f"{lines[0][:40]!r}" if lines else "an empty file"
        reason = f"expected {_TITLE!r} in the first line of a golden file, found {found}; delete the file and renew it"
        raise InputError(reason, path=path, line=1, column=1)
    said = [(number, line.rstrip()) for number, line in enumerate(lines, 1) if line.strip() and line[0] != "#"]
    mesh: str | None = None
    heads = False
    counts: Counter[GoldenLine] = Counter()
    for number, line in said:
        if mesh is None:
            mesh = _mesh_in(line, path, number)
        elif not heads:
            heads = _are_heads(line, path, number)
        else:
            entry, count = _entry_in(line, path, number)
            counts[entry] += count
    if mesh is None or not heads:
        reason = "expected a golden file to state the mesh and the heads of its table, found its end; renew it"
        raise InputError(reason, path=path, line=len(lines) or 1, column=1)
    return Golden(mesh, counts)


def differences(before: Golden, after: Golden) -> tuple[list[str], list[GoldenLine]]:
    """Return what differs between two golden texts as lines with ``-`` and ``+``, and of what there is more or new.

    Example:
        >>> line = GoldenLine("all-gather", "model", "2 of 4", "f32", "64 -> 256", "1")
        >>> differences(Golden("model=4", {line: 1}), Golden("model=4", {line: 3}))[0]
        ['- 1  all-gather  model  2 of 4  f32  64 -> 256  1', '+ 3  all-gather  model  2 of 4  f32  64 -> 256  1']
    """
    lines: list[str] = []
    if before.mesh != after.mesh:
        lines += [f"- mesh: {before.mesh}", f"+ mesh: {after.mesh}"]
    grown: list[GoldenLine] = []
    for line in sorted({*before.lines, *after.lines}, key=lambda line: _place((line, 0))):
        counts = [golden.lines.get(line, 0) for golden in (before, after)]
        if counts[0] == counts[1]:
            continue
        signed = zip("-+", counts, strict=True)
        lines += [f"{sign} {'  '.join((str(count), *line))}" for sign, count in signed if count]
        if counts[1] > counts[0]:
            grown.append(line)
    return lines, grown


def _line(row: Row, mesh: Mesh | None) -> GoldenLine:
    figures = row.figures
    sizes = (figures.operand_bytes, figures.result_bytes)
    runs = _UNKNOWN if row.trip_count is None else f"{row.trip_count:,}"
    return GoldenLine(
        opcode=row.opcode,
        axes=_axes(figures, mesh),
        groups=_groups(figures, mesh),
        types=",".join(sorted(set(_types(figures)))) or "none",
        size=" -> ".join(_UNKNOWN if size is None else f"{size:,}" for size in sizes),
        runs=f"{runs} conditional" if row.conditional else runs,
    )


def _types(figures: Figures) -> Iterator[str]:
    signature = figures.signature
    for shape in (*signature.operand_shapes, *signature.result_shapes):
        yield from (leaf.element_type for leaf in shape.arrays())


def _axes(figures: Figures, mesh: Mesh | None) -> str:
    """Return the axes in the order of the members where that decides who gets what, else in mesh order."""
    key = effective_axes_key(figures, mesh).text
    if figures.axes and key != UNKNOWN_AXES and order_of(figures.signature.opcode) == "all":
        key = ",".join(figures.axes)
    return _one_word(key)


def _groups(figures: Figures, mesh: Mesh | None) -> str:
    """Return how many groups there are where axes name them, else the devices, however they are spelled."""
    participation, signature = figures.participation, figures.signature
    groups, pairs = participation.groups, participation.pairs
    if signature.is_host_transfer:
        return devices_text(figures)
    if groups is not None and mesh is not None and _are_told_by_axes(figures, groups, mesh):
        return f"{groups.num_replica_groups} of {groups.num_devices_per_group}"
    said = f" {participation.ids}" if participation.ids else ""
    if groups is None and pairs is None:
        groups, pairs = signature.groups, signature.pairs
        said = f" in mode {participation.mode or _UNKNOWN}"
    if pairs is not None:
        short = len(pairs) * 2 <= _MOST_IDS
        return f"{_canonical(pairs.groups(), 'all') if short else f'{len(pairs)} pairs {_fingerprint(figures)}'}{said}"
    if groups is None:
        return devices_text(figures)
    if groups.num_devices <= _MOST_IDS:
        return f"{_canonical(groups.groups(), order_of(signature.opcode))}{said}"
    size = "uneven" if groups.num_devices_per_group is None else groups.num_devices_per_group
    return f"{groups.num_replica_groups} of {size} {_fingerprint(figures)}{said}"


def _are_told_by_axes(figures: Figures, groups: DeviceList, mesh: Mesh) -> bool:
    """Whether the axes say all of some groups, the order of the members where that means something."""
    order = order_of(figures.signature.opcode)
    return figures.axes is not None or (order != "all" and axes_up_to_order(groups, mesh, order) is not None)


def _canonical(groups: Iterable[list[int]], order: Order) -> str:
    """Write groups or pairs in one order, whatever the order in which they are listed."""
    if order == "any":
        groups = [sorted(group) for group in groups]
    elif order == "first":
        groups = [[*group[:1], *sorted(group[1:])] for group in groups]
    return str(CollectiveDeviceList(sorted(groups)))


def _fingerprint(figures: Figures) -> str:
    """Return a short word that is the same for the same devices in every spelling."""
    key = ",".join(part.hex() if isinstance(part, bytes) else str(part) for part in participant_keys_of(figures).key)
    return f"#{blake2b(key.encode(), digest_size=8).hexdigest()}"


def _one_word(text: str) -> str:
    r"""Keep a name from breaking the table.

    Example:
        >>> _one_word("data,model"), _one_word("a  b\n")
        ('data,model', 'a\\x20\\x20b\\n')
    """
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text).replace(" ", "\\x20")


def _place(item: tuple[GoldenLine, int]) -> tuple[int, GoldenLine]:
    line, _ = item
    return OPCODES.index(line.opcode), line


def _mesh_in(line: str, path: str, number: int) -> str:
    word, _, mesh = line.partition(": ")
    if word == "mesh" and mesh:
        return mesh
    reason = f"expected the mesh, such as 'mesh: data=2, model=4', found {line[:40]!r}; renew the golden file"
    raise InputError(reason, path=path, line=number, column=1)


def _are_heads(line: str, path: str, number: int) -> bool:
    if tuple(_GAP.split(line)) == _HEADS:
        return True
    reason = f"expected the heads {', '.join(_HEADS)}, found {line[:40]!r}; renew the golden file"
    raise InputError(reason, path=path, line=number, column=1)


def _entry_in(line: str, path: str, number: int) -> tuple[GoldenLine, int]:
    count, *cells = _GAP.split(line.strip())
    if len(cells) == len(GoldenLine._fields) and count.isascii() and count.isdecimal() and cells[0] in OPCODES:
        return GoldenLine(*cells), int(count)
    reason = f"expected a count, an opcode and {len(_HEADS) - 2} more cells, found {line[:40]!r}; renew the golden file"
    raise InputError(reason, path=path, line=number, column=1)
