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
        notes: what had to be taken from the other module or differs, in sentences.
    """

    reports: tuple[Report, Report]
    found: tuple[Discovery, Discovery]
    notes: tuple[str, ...]


def report_pair(before: Module, after: Module, mesh: MeshLike | None, *, full: bool = False) -> ReportPair:
    """Make the reports of two modules on the same counts and the same mesh, as far as there are such.

    Where only one module states its counts, the other is taken to run on them too. Axes of both are named on one mesh:
    the one given from outside, else the only one that the modules have; of two meshes of as many devices the one with
    real names, else the first. Meshes of different numbers of devices name the axes each of its own module.

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
    counts = _counts(before, after, notes)
    own = (mesh_of(before, found[0]), mesh_of(after, found[1]))
    meshes = (given, given) if given is not None else _meshes(own, notes)
    reports = (
        report_of(before, found[0], meshes[0], counts[0], full=full),
        report_of(after, found[1], meshes[1], counts[1], full=full),
    )
    return ReportPair(reports, found, tuple(notes))


def _counts(before: Module, after: Module, notes: list[str]) -> tuple[Counts | None, Counts | None]:
    first, second = (Counts.of(each.replica_count, each.num_partitions) for each in (before, after))
    if first is None and second is not None:
        notes.append(_taken(before, after, second))
        return second, second
    if second is None and first is not None:
        notes.append(_taken(after, before, first))
        return first, first
    if first is not None and second is not None and first != second:
        notes.append(f"the modules run on different counts: {first.in_words}, then {second.in_words}")
    return first, second


def _taken(silent: Module, other: Module, counts: Counts) -> str:
    return f"{silent.path} states no counts and is taken to run on those of {other.path}: {counts.in_words}"


def _meshes(own: tuple[Mesh | None, Mesh | None], notes: list[str]) -> tuple[Mesh | None, Mesh | None]:
    first, second = own
    if first is None or second is None or first == second:
        common = first or second
        return common, common
    if first.num_devices != second.num_devices:
        notes.append(f"axes are those of two meshes: {first}, then {second}")
        return own
    common = second if first.has_generated_names and not second.has_generated_names else first
    notes.append(f"the modules have different meshes, {first}, then {second}; axes of both are named on {common}")
    return common, common
