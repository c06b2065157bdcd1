"""What there is to say of one module that several hosts have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlens.analysis.diffs.changes import Moved
    from commlens.analysis.hosts.deadlocks import Deadlock
    from commlens.analysis.schedules import Schedule

HostChangeKind: TypeAlias = Literal["missing", "extra", "changed", "order"]
"""How a collective of one host differs from that of most others."""


@dataclass(frozen=True, slots=True)
class FirstDifference:
    """Where the schedules of some hosts part.

    Attributes:
        position: how many collectives are the same on all hosts before it.
        order: what the position counts: rows as the report lists them, or collectives as they run, where the lists are
            the same and only loops and branches stand elsewhere.
        running_position: how many collectives run in the same way on all hosts before they part.
        module: name of the module.
        members: path -> what the host does there.
    """

    position: int
    order: Literal["listed", "running"]
    running_position: int
    module: str
    members: Mapping[str, str]

    def as_dict(self) -> dict[str, object]:
        """Return the difference in its JSON form."""
        return {
            "position": self.position,
            "module": self.module,
            "members": dict(self.members),
            "order": self.order,
            "running_position": self.running_position,
        }


@dataclass(frozen=True, slots=True)
class HostPlace:
    """A collective in a host's module.

    Attributes:
        name: the instruction's name.
        computation: the computation it stands in.
        line: its line in a text; None in a proto.
    """

    name: str
    computation: str
    line: int | None

    @classmethod
    def of(cls, schedule: Schedule, number: int | None) -> HostPlace | None:
        """Return the place of a step; None for none."""
        if number is None:
            return None
        step = schedule.steps[number]
        return cls(step.name, step.computation, step.line)

    def as_dict(self) -> dict[str, object]:
        """Return the place in its JSON form."""
        return {"name": self.name, "computation": self.computation, "line": self.line}


@dataclass(frozen=True, slots=True)
class HostChange:
    """One thing that a host does in another way than most others.

    Attributes:
        kind: how it differs.
        opcode: the operation.
        usual: where it stands in the module of most hosts; None for what those lack.
        here: where it stands in this host's module; None for what this one lacks.
        what: what exactly differs, in words.
        moved: of an order, everything that runs elsewhere.
    """

    kind: HostChangeKind
    opcode: str
    usual: HostPlace | None
    here: HostPlace | None
    what: str
    moved: tuple[Moved, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Return the change in its JSON form."""
        return {
            "kind": self.kind,
            "opcode": self.opcode,
            "usual": None if self.usual is None else self.usual.as_dict(),
            "here": None if self.here is None else self.here.as_dict(),
            "what": self.what,
            "moved": [move.as_dict() for move in self.moved],
        }


@dataclass(frozen=True, slots=True)
class HostDifference:
    """How some hosts, all in the same way, differ from most others.

    Attributes:
        paths: the modules of these hosts.
        usual: a module of the others.
        position: where they part from it, counted as :class:`FirstDifference` says.
        changes: what differs.
        deadlocks: collectives in which devices of the two can wait for each other.
        deadlocks_complete: whether there are none where none is named; False where it is not known who takes part, or
            more would have to be tried than is.
    """

    paths: tuple[str, ...]
    usual: str
    position: int
    changes: tuple[HostChange, ...]
    deadlocks: tuple[Deadlock, ...]
    deadlocks_complete: bool

    @property
    def order_only(self) -> bool:
        """Whether the hosts run the same collectives, in another order."""
        return all(change.kind == "order" for change in self.changes)

    def as_dict(self) -> dict[str, object]:
        """Return the difference in its JSON form."""
        return {
            "paths": list(self.paths),
            "usual": self.usual,
            "position": self.position,
            "order_only": self.order_only,
            "changes": [change.as_dict() for change in self.changes],
            "deadlocks": [deadlock.as_dict() for deadlock in self.deadlocks],
            "deadlocks_complete": self.deadlocks_complete,
        }


@dataclass(frozen=True, slots=True)
class HostCounts:
    """Some hosts whose modules are for the same number of devices.

    Attributes:
        replica_count: replicas; None where nobody states them.
        num_partitions: partitions likewise.
        paths: their modules.
    """

    replica_count: int | None
    num_partitions: int | None
    paths: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """Return them in their JSON form."""
        return {"replica_count": self.replica_count, "num_partitions": self.num_partitions, "paths": list(self.paths)}


@dataclass(frozen=True, slots=True)
class RestOfHosts:
    """Some hosts that are the same in everything that does not communicate.

    Attributes:
        format: ``"text"`` or ``"proto"``; fingerprints of different formats cannot be compared.
        fingerprint: the fingerprint of that; None where something cannot be read.
        paths: their modules.
        differs_in: computations that differ from those of the first hosts listed of the format.
    """

    format: str
    fingerprint: str | None
    paths: tuple[str, ...]
    differs_in: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """Return them in their JSON form."""
        return {
            "format": self.format,
            "fingerprint": self.fingerprint,
            "paths": list(self.paths),
            "differs_in": list(self.differs_in),
        }


@dataclass(frozen=True, slots=True, eq=False)
class ModuleOnHosts:
    """One module as several hosts have it.

    Attributes:
        module: its name.
        paths: where the hosts have it.
        agree: whether they run the same collectives equally often in the same order and are for the same number of
            devices; None where that cannot be claimed, because something is unread and the modules are not the same
            byte by byte.
        first_difference: where they part; None where they do not.
        missing: path -> names of the collectives that others have and the host lacks.
        extra: path -> names of the collectives that the host has and most others lack.
        differences: how hosts differ from most others.
        counts: the hosts by the numbers of replicas and partitions that they state, the most first.
        rest: the hosts by what does not communicate, the most first; texts and protos apart.
        notes: what to know of the comparison, in sentences.
    """

    module: str
    paths: tuple[str, ...]
    agree: bool | None
    first_difference: FirstDifference | None
    missing: Mapping[str, tuple[str, ...]]
    extra: Mapping[str, tuple[str, ...]]
    differences: tuple[HostDifference, ...]
    counts: tuple[HostCounts, ...]
    rest: tuple[RestOfHosts, ...]
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        """Return the module in its JSON form."""
        first = self.first_difference
        return {
            "module": self.module,
            "paths": list(self.paths),
            "agree": self.agree,
            "first_difference": None if first is None else first.as_dict(),
            "missing": {path: list(names) for path, names in self.missing.items()},
            "extra": {path: list(names) for path, names in self.extra.items()},
            "differences": [difference.as_dict() for difference in self.differences],
            "counts": [each.as_dict() for each in self.counts],
            "rest": [each.as_dict() for each in self.rest],
            "notes": list(self.notes),
        }
