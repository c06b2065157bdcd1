"""The report of one module: a row for everything that communicates, and totals."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from commlens.analysis.figures import FiguresContext
from commlens.analysis.meshes import as_mesh, mesh_as_json, module_mesh, size_fault
from commlens.analysis.participation import Counts
from commlens.analysis.row import Row
from commlens.analysis.totals import totals_of
from commlens.hlo import Unread, discover

if TYPE_CHECKING:
    from collections.abc import Generator

    from commlens.analysis.meshes import MeshLike
    from commlens.analysis.totals import Totals
    from commlens.hlo import Discovery, Module
    from commlens.topology import Mesh


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """What a module communicates.

    Attributes:
        module: the module.
        mesh: the mesh that names axes; None where none is known.
        collectives: the rows, computation by computation.
        totals: their sums by opcode and by axes.
        unread: what may communicate and could not be read.
        notes: what else to know of it, in sentences: that the mesh is for another number of devices than the module,
            so that groups have no axes on it.
    """

    module: Module
    mesh: Mesh | None
    collectives: tuple[Row, ...]
    totals: Totals
    unread: tuple[Unread, ...]
    notes: tuple[str, ...] = ()

    def as_dict(self, *, full: bool | None = None) -> dict[str, object]:
        """Return the report in its JSON form.

        Args:
            full: whether ids are listed up to the high limit; None: as the report was asked.

        Returns:
            The keys of a module in ``commlens report --format json``. Rows share parts: treat them as read-only.
        """
        module = self.module
        return {
            "path": module.path,
            "name": module.name,
            "format": module.format,
            "replica_count": module.replica_count,
            "num_partitions": module.num_partitions,
            "mesh": None if self.mesh is None else mesh_as_json(self.mesh),
            "collectives": [row.as_dict(full=full) for row in self.collectives],
            "totals": self.totals.as_dict(),
            "unread": [{each.name: getattr(item, each.name) for each in fields(Unread)} for item in self.unread],
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        """Return a short form for people."""
        return f"<report of {self.module.name}: {len(self.collectives)} collectives, {len(self.unread)} unread>"


def report(module: Module, mesh: MeshLike | None = None, *, full: bool = False) -> Report:
    """List everything in a module that communicates, with who takes part, along which axes, how much and how often.

    Args:
        module: the module.
        mesh: the mesh that names axes: a :class:`~commlens.topology.Mesh`, sizes by name, or a text such as
            ``"data=2,model=4"``. Without one the module's own is taken: the only mesh in its header, else the only one
            that its collectives name.
        full: whether rows list ids up to the high limit (:data:`~commlens.analysis.limits.FULL_LIMIT`).

    Returns:
        The report.

    Raises:
        CommlensError: ``mesh`` is no mesh. Faults of the module are no errors: they are listed in ``unread``.

    Example:
        >>> from commlens.hlo import load
        >>> module = load('''HloModule m, replica_count=8
        ... ENTRY e {
        ...   p = f32[16] parameter(0)
        ...   ROOT g = f32[64] all-gather(p), replica_groups=[2,4]<=[8], dimensions={0}
        ... }''')
        >>> (row,) = report(module, "data=2,model=4").collectives
        >>> row.name, row.axes, row.result_bytes, row.wire_bytes_per_device, row.trip_count
        ('g', ['model'], 256, 192, 1)
    """
    given = None if mesh is None else as_mesh(mesh)
    with gc_paused():
        found = discover(module)
        counts = Counts.of(module.replica_count, module.num_partitions)
        return report_of(module, found, given or mesh_of(module, found), counts, full=full)


def mesh_of(module: Module, found: Discovery) -> Mesh | None:
    """Return the mesh that names the axes of a module in which some things communicate; None where none is known."""
    signatures = dict.fromkeys([site.signature for site in found.sites])
    return module_mesh(module.mesh, (signature.groups for signature in signatures))


def report_of(
    module: Module, found: Discovery, mesh: Mesh | None, counts: Counts | None, *, full: bool = False
) -> Report:
    """Make the report of a module of which it is known what communicates in it, on a mesh and counts.

    Args:
        module: the module.
        found: what communicates in it.
        mesh: the mesh that names axes; None for none.
        counts: how many replicas and partitions it runs on; None where nobody knows.
        full: as for :func:`report`.
    """
    rows = _rows(found, FiguresContext(counts, mesh), full=full)
    fault = size_fault(mesh, None if counts is None else counts.devices)
    return Report(module, mesh, rows, totals_of(rows), found.unread, () if fault is None else (fault,))


def _rows(found: Discovery, context: FiguresContext, *, full: bool) -> tuple[Row, ...]:
    """Make the rows; what they share is looked up once per signature and once per run of sites in one computation."""
    rows: list[Row] = []
    graph = found.call_graph
    computation: str | None = None
    executions: int | None = None
    conditionals: tuple[str, ...] = ()
    for site in found.sites:
        if site.computation_name != computation:
            computation = site.computation_name
            executions = graph.executions(computation)
            conditionals = graph.conditionals(computation)
        rows.append(Row(site, context.figures_of(site.signature), executions, conditionals, full=full))
    return tuple(rows)


@contextmanager
def gc_paused() -> Generator[None]:
    """Keep Python's collector of cycles from walking over a hundred thousand new objects again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
