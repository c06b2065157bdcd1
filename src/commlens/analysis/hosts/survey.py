"""What is kept of each host's module: little enough for thousands of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING

from commlens.analysis.hosts.fingerprint import Fingerprint, fingerprint_of
from commlens.analysis.meanings import Meanings
from commlens.analysis.meshes import as_mesh
from commlens.analysis.participation import Counts
from commlens.analysis.reports import gc_paused, mesh_of, report_of
from commlens.analysis.schedule_walks import schedule_of
from commlens.hlo import discover

if TYPE_CHECKING:
    from collections.abc import Hashable

    from commlens.analysis.meshes import MeshLike
    from commlens.analysis.schedules import Schedule, Step
    from commlens.hlo import Module, Unread


@dataclass(frozen=True, slots=True, eq=False)
class HostModule:
    """The module of one host, as far as it is compared.

    Attributes:
        path: where it came from.
        name: the module's name.
        format: ``"text"`` or ``"proto"``.
        replica_count: replicas that it is for; None where nobody states them.
        num_partitions: partitions likewise.
        schedule: its collectives in order.
        flow: equal where the same collectives run equally often in the same order; whatever they are called.
        content: equal where the whole module is the same, byte by byte.
        fingerprint: what does not communicate in it.
        unread: what may communicate and could not be read.
        notes: what else to know of it, as in :class:`~commlens.analysis.reports.Report`.
    """

    path: str
    name: str
    format: str
    replica_count: int | None
    num_partitions: int | None
    schedule: Schedule
    flow: int
    content: bytes
    fingerprint: Fingerprint
    unread: tuple[Unread, ...]
    notes: tuple[str, ...] = ()

    @property
    def channels(self) -> tuple[int | None, ...]:
        """The channels of the collectives in the order in which they run."""
        return tuple(self.schedule.steps[number].channel for number in self.schedule.in_order())


class HostSurvey:
    """Looks at modules one by one and keeps what is needed to compare them.

    Modules with the same content share what is kept, and those with the same collectives their schedule, so that a
    thousand equal ones take the room of one.

    Args:
        mesh: the mesh that names axes, as for :func:`commlens.report`.

    Raises:
        CommlensError: ``mesh`` is no mesh.
    """

    def __init__(self, mesh: MeshLike | None = None) -> None:
        self._mesh = None if mesh is None else as_mesh(mesh)
        self.meanings = Meanings()
        self._flows: dict[Hashable, int] = {}
        self._seen: dict[Hashable, HostModule] = {}
        self._modules_at: Counter[str] = Counter()
        self._schedules: dict[Schedule, Schedule] = {}

    def look_at(self, module: Module) -> HostModule:
        """Take down what a module communicates; the module itself is not kept.

        Example:
            >>> from commlens.hlo import load
            >>> text = '''HloModule m, replica_count=2
            ... ENTRY e {{
            ...   p = f32[4] parameter(0)
            ...   ROOT {} = f32[4] all-reduce(p), replica_groups={}, to_apply=add
            ... }}'''
            >>> survey = HostSurvey()
            >>> first, second = (survey.look_at(load(text.format(*each))) for each in (("r", "{}"), ("s", "{{0,1}}")))
            >>> first.flow == second.flow, first.content == second.content
            (True, False)
        """
        content = blake2b(module.to_bytes(), digest_size=16).digest()
        place = self._modules_at[module.path]  # the bytes of a proto may hold several modules
        self._modules_at[module.path] += 1
        key = (content, place, module.name, module.format, module.replica_count, module.num_partitions)
        seen = self._seen.get(key)
        if seen is None:
            seen = self._seen[key] = self._read(module, content)
        return seen if seen.path == module.path else replace(seen, path=module.path)

    def _read(self, module: Module, content: bytes) -> HostModule:
        with gc_paused():
            found = discover(module)
            counts = Counts.of(module.replica_count, module.num_partitions)
            report = report_of(module, found, self._mesh or mesh_of(module, found), counts)
            schedule = schedule_of(report, found, self.meanings)
            fingerprint = fingerprint_of(module, found)
        schedule = self._schedules.setdefault(schedule, schedule)
        flow = self._flow(schedule)
        return HostModule(
            module.path,
            module.name,
            module.format,
            module.replica_count,
            module.num_partitions,
            schedule,
            flow,
            content,
            fingerprint,
            report.unread,
            report.notes,
        )

    def _flow(self, schedule: Schedule) -> int:
        """Return a number for what runs in which order."""
        return schedule.contents(run_of, self._flows, with_trips=True)[0]


def run_of(step: Step) -> tuple[int, int | None, bool]:
    """Return what has to be the same on all hosts of one step."""
    return step.meaning, step.runs, step.conditional
