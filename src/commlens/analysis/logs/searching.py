"""The modules that a log is held against: their collectives, by everything that a log may call them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from commlens.analysis.limits import id_limit
from commlens.analysis.logs.fits import Fits
from commlens.analysis.logs.indexing import Index
from commlens.analysis.meshes import as_mesh
from commlens.analysis.participation import Counts
from commlens.analysis.reports import gc_paused, mesh_of, report_of
from commlens.analysis.totals import OPCODES
from commlens.hlo import UnreadableError, base_opcode, discover

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.analysis.logs.said import Said
    from commlens.analysis.meshes import MeshLike
    from commlens.analysis.reports import Report
    from commlens.analysis.row import Row
    from commlens.hlo import Computation, Instruction, Module, Site

_DUMPED: Final = re.compile(r"module_(\d{1,18})\.")
_RENDEZVOUS: Final = "_xla_host_transfer_rendezvous"
_SCHEDULED_AS: Final = "scheduling_name"
_HALVES: Final = frozenset({"done", "update"})
_BELONGING: Final = frozenset(
    ["cross-replica-sum", "async-done", "async-update"]
    + [f"{opcode}{half}" for opcode in OPCODES for half in ("", "-done", "-update")]
)
_DEEPEST: Final = 16


@dataclass(frozen=True)
class Searched:
    """A module, with what its collectives are called.

    Attributes:
        report: its rows.
        sites: where each row stands.
        limit: most ids that an answer lists.
    """

    report: Report
    sites: Sequence[Site]
    limit: int

    @classmethod
    def of(cls, module: Module, mesh: MeshLike | None, *, full: bool) -> Searched:
        """Look at a module.

        Raises:
            CommlensError: ``mesh`` is no mesh.
        """
        given = None if mesh is None else as_mesh(mesh)
        with gc_paused():
            found = discover(module)
            counts = Counts.of(module.replica_count, module.num_partitions)
            report = report_of(module, found, given or mesh_of(module, found), counts, full=full)
        return cls(report, found.sites, id_limit(full=full))

    @property
    def rows(self) -> Sequence[Row]:
        """Its rows."""
        return self.report.collectives

    @cached_property
    def index(self) -> Index:
        """Its rows by what a message can say of them."""
        return Index(self.rows)

    def fits(self, said: Said) -> Fits:
        """Return which of its rows fit what a message says of devices; made once for messages that say the same."""
        key = said.key_of_devices
        fits = self._fits.get(key)
        if fits is None:
            fits = self._fits[key] = Fits.of(said, self.index, self.num_devices, self.limit)
        return fits

    @cached_property
    def _fits(self) -> dict[tuple[object, ...], Fits]:
        return {}

    @property
    def num_devices(self) -> int | None:
        """How many devices it runs on; None where nobody states the counts."""
        module = self.report.module
        if module.replica_count is None or module.num_partitions is None:
            return None
        return module.replica_count * module.num_partitions

    @cached_property
    def number(self) -> int | None:
        """The number that XLA gave the module, which stands in the names of its dumps; None where it is not known."""
        match = _DUMPED.match(PurePath(self.report.module.path).name)
        return None if match is None else int(match[1])

    @cached_property
    def called(self) -> dict[str, dict[int, str]]:
        """What its collectives are called -> positions of the rows, each with how they come to that name."""
        found: dict[str, dict[int, str]] = {}
        for position, site in enumerate(self.sites):
            for name, how in _names(site):
                found.setdefault(name, {}).setdefault(position, how)
        return found

    def named(self, name: str) -> dict[int, str]:
        """Return the positions of the rows that a name means, each with how.

        A done or update stands for its start, and a collective that is wrapped for what wraps it.
        """
        found = self.called.get(name)
        if found is not None:
            return found
        belonging = self._belonging.get(name)
        if belonging is None:
            return {}
        how = "" if belonging == name else f"the {_SCHEDULED_AS} of {belonging}, which belongs to it, is {name}"
        start = self._start_of(belonging)
        return dict.fromkeys(self.index.by_name.get(start, ()) if start else (), how or f"{name} belongs to it")

    def numbered(self, number: int) -> set[int]:
        """Return the positions of the rows that end in a number, as ``all-reduce.534`` does."""
        return self.index.by_number.get(number, set())

    def knows(self, name: str) -> bool:
        """Whether something is called so that communicates, or belongs to what does."""
        return name in self.called or name in self._belonging

    @cached_property
    def _belonging(self) -> dict[str, str]:
        """What done, update and wrapped instructions are called -> their names."""
        found: dict[str, str] = {}
        scheduled: dict[str, str] = {}
        for instruction in self.report.module.instructions_of(_BELONGING):
            found[instruction.name] = instruction.name
            also = _scheduled(instruction)
            if also is not None:
                scheduled.setdefault(also, instruction.name)
        return {**scheduled, **found}

    def _start_of(self, name: str) -> str | None:
        """Return the name of the row to which another instruction belongs."""
        module = self.report.module
        try:
            instruction = module.instruction(name)
            for _ in range(_DEEPEST):
                if instruction.name in self.index.by_name:
                    return instruction.name
                before = _before(instruction, module)
                if before is None:
                    return None
                instruction = before
        except (LookupError, UnreadableError):
            return None
        return None


class Labels:
    """What the collectives of some modules are called, and what belongs to them: asked name by name.

    Args:
        searched: the modules.
    """

    def __init__(self, searched: Sequence[Searched]) -> None:
        self._searched = searched

    def __contains__(self, name: object) -> bool:
        """Whether a module has such a name."""
        return isinstance(name, str) and any(each.knows(name) for each in self._searched)


def _names(site: Site) -> Iterator[tuple[str, str]]:
    name = site.name
    yield name, f"its name is {name}"
    rendezvous = site.signature.frontend_attributes.get(_RENDEZVOUS)
    if rendezvous is not None:
        yield rendezvous, f"its rendezvous is {rendezvous}"
    scheduled = _scheduled(site.instruction)
    if scheduled is not None:
        yield scheduled, f"its {_SCHEDULED_AS} is {scheduled}"


def _scheduled(instruction: Instruction) -> str | None:
    """Return what the metadata call an instruction; None where they do not, or cannot be read."""
    try:
        scheduled = instruction.metadata_fields().get(_SCHEDULED_AS)
    except UnreadableError:
        return None
    return None if scheduled is None else _text(scheduled)


def _text(field: bytes) -> str:
    r"""Return the string of a metadata field as it is written: with its key in a text, quoted or bare in a proto.

    Example:
        >>> [_text(each) for each in (b'scheduling_name="rs.1"', b'"rs.1"', b"rs.1")]
        ['rs.1', 'rs.1', 'rs.1']
    """
    quoted = field.partition(b'"')[2].rpartition(b'"')[0] if b'"' in field else field
    return quoted.decode("utf-8", "replace")


def _before(instruction: Instruction, module: Module) -> Instruction | None:
    """Return the start of a done or update, or what runs the computation that an instruction stands in."""
    if base_opcode(instruction.opcode)[1] in _HALVES:
        return next(iter(instruction.operands), None)
    computation: Computation = instruction.computation
    callers = [call.caller for call in module.callers({computation.name}) if call.role in ("async", "fusion")]
    return callers[0] if len(callers) == 1 else None
