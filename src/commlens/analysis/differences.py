"""What changed in the communication of a program from one module to another, whatever the spelling."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from commlens.analysis.change_details import Detail, spelling_details
from commlens.analysis.changes import ChangeKind, Moved, StepChange, step_changes
from commlens.analysis.inventory import Report, collector_off, mesh_of, report_of
from commlens.analysis.matching import match
from commlens.analysis.meanings import Meanings
from commlens.analysis.meshes import as_mesh, mesh_as_json
from commlens.analysis.participation import Counts
from commlens.analysis.schedules import schedule_of
from commlens.analysis.totals import OPCODES, Total, totals_of
from commlens.hlo import discover, is_scheduled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.analysis.axis_names import AxesKey
    from commlens.analysis.matching import Matching
    from commlens.analysis.meshes import MeshLike
    from commlens.analysis.row import Row
    from commlens.analysis.schedules import Schedule
    from commlens.hlo import Discovery, Module
    from commlens.topology import Mesh

HOST: "str" = "host"


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """One thing that differs between two modules.

    Attributes:
        kind: what became of it.
        opcode: the operation; of an order that of the first thing that moved.
        axes: the mesh axes that it runs along, in the first module where it is there; None where they are not known.
        before: its row in the first module; None where it is not there.
        after: its row in the second one.
        what: what exactly differs, in words.
        details: the same fact by fact.
        moved: of an order, everything that moved.
    """

    kind: ChangeKind
    opcode: str
    axes: tuple[str, ...] | None
    before: Row | None
    after: Row | None
    what: str
    details: tuple[Detail, ...]
    moved: tuple[Moved, ...]

    def as_dict(self) -> dict[str, object]:
        """Return the change in its JSON form."""
        return {
            "kind": self.kind,
            "opcode": self.opcode,
            "axes": None if self.axes is None else list(self.axes),
            "before": None if self.before is None else self.before.as_dict(),
            "after": None if self.after is None else self.after.as_dict(),
            "what": self.what,
            "details": [detail.as_dict() for detail in self.details],
            "moved": [move.as_dict() for move in self.moved],
        }
