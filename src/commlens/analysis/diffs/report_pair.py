"""What two modules have to share before their collectives can be compared: counts, and a mesh that names axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from commlens.analysis.meshes import as_mesh
from commlens.analysis.participation import Counts
from commlens.analysis.reports import mesh_of, report_of
from commlens.hlo import discover

if TYPE_CHECKING:
    from commlens.analysis.meshes import MeshLike
    from commlens.analysis.reports import Report
    from commlens.hlo import Discovery, Module
    from commlens.topology import Mesh


@dataclass(frozen=True, slots=True, eq=False)
class ReportPair:
    """Two modules, ready to be compared.

    Attributes:
        reports: their reports.
        found: what those were made of.
        counts: how many replicas and partitions they run on; None where nobody knows.
        notes: what had to be taken from the other module or differs, in sentences.
    """

    reports: tuple[Report, Report]
    found: tuple[Discovery, Discovery]
    counts: tuple[Counts | None, Counts | None]
    notes: tuple[str, ...]


def report_pair(before: Module, after: Module, mesh: MeshLike | None, *, full: bool = False) -> ReportPair:
    """Make the reports of two modules on the same counts and the same mesh, as far as there are such.

    Where only one module states its counts, the other is taken to run on them too, unless its mesh is of another size.
    Axes of both are named on one mesh: the one given from outside, else the only one that the modules have, where its
    size fits both; of two meshes of as many devices the one with real names, else the first. Meshes of different
    numbers of devices name the axes each of its own module.

    Args:
        before: the first module.
        after: the second module.
        mesh: the mesh given from outside.
        full: whether rows list ids up to the high limit.

    Raises:
        CommlensError: ``mesh`` is no mesh.
    """
    given = None if mesh is None else as_mesh(mesh)
    notes: list[str] = []
    found = (discover(before), discover(after))
    own = (mesh_of(before, found[0]), mesh_of(after, found[1]))
    counts = _counts(before, after, own, notes)
    meshes = (given, given) if given is not None else _meshes(own, counts, notes)
    reports = (
        report_of(before, found[0], meshes[0], counts[0], full=full),
        report_of(after, found[1], meshes[1], counts[1], full=full),
    )
    return ReportPair(reports, found, counts, tuple(notes))


def _counts(
    before: Module, after: Module, own: tuple[Mesh | None, Mesh | None], notes: list[str]
) -> tuple[Counts | None, Counts | None]:
    first, second = (Counts.of(each.replica_count, each.num_partitions) for each in (before, after))
    if first is None and second is not None:
        first = _taken(before, own[0], after, second, notes)
    elif second is None and first is not None:
        second = _taken(after, own[1], before, first, notes)
    elif first is not None and second is not None and first != second:
        notes.append(f"the modules run on different counts: {first.in_words}, then {second.in_words}")
    return first, second


def _taken(silent: Module, mesh: Mesh | None, other: Module, counts: Counts, notes: list[str]) -> Counts | None:
    """Return the counts of the other module for one that states none, unless they are not those of its mesh."""
    if mesh is None or _fits(mesh, counts):
        taken = f"is taken to run on those of {other.path}: {counts.in_words}"
        notes.append(f"{silent.path} states no counts and {taken}")
        return counts
    size = f"its mesh, {mesh}, is of {mesh.num_devices:,} devices"
    notes.append(
        f"{silent.path} states no counts, and {size}: those of {other.path}, {counts.in_words}, are not its own"
    )
    return None


def _fits(mesh: Mesh | None, counts: Counts | None) -> bool:
    """Whether a mesh may be that of a module on some counts: of all devices, the replicas or the partitions alone."""
    if mesh is None or counts is None:
        return True
    return mesh.num_devices in (counts.devices, counts.replicas, counts.partitions)


def _meshes(
    own: tuple[Mesh | None, Mesh | None], counts: tuple[Counts | None, Counts | None], notes: list[str]
) -> tuple[Mesh | None, Mesh | None]:
    first, second = own
    if first is None:
        return (second if _fits(second, counts[0]) else None), second
    if second is None:
        return first, (first if _fits(first, counts[1]) else None)
    if first == second:
        return own
    if first.num_devices != second.num_devices:
        notes.append(f"axes are those of two meshes: {first}, then {second}")
        return own
    common = second if first.has_generated_names and not second.has_generated_names else first
    notes.append(f"the modules have different meshes, {first}, then {second}; axes of both are named on {common}")
    return common, common
