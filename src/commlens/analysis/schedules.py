"""The order in which the collectives of a module run: its schedule, as a tree of loops and branches.

A collective stands in a computation, and a computation runs where it is called. So the order in which collectives run
is that of the entry computation, with the body of each loop and the branches of each conditional as a part of their own
at the place of the call; a plain call or fusion is no part of its own, what it runs stands among the things around it.
Whether a compiler has inlined a function makes no difference then, whether it has moved a collective in front of a loop
does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.analysis.meanings import meanings_in
from commlens.hlo import UnreadableError, in_running_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.analysis.meanings import Meanings
    from commlens.analysis.reports import Report
    from commlens.hlo import Call, CallGraph, Computation, Discovery, Instruction, Site

_PARTS: Final = frozenset({"body", "condition", "branch"})
"""What a called computation is to its caller where it runs as often as something decides."""

AGAIN: Final = "again"
"""The role of a part whose computation stands somewhere before."""

_ENTRY: Final = "entry"
_LOOSE: Final = "loose"


class Step(NamedTuple):
    """One collective of a schedule.

    Attributes:
        name: the instruction's name.
        meaning: the number of what it does.
        runs: how often it runs in one run of the entry; None where that is not known.
        conditional: whether it stands in a branch of a conditional.
        computation: the computation it stands in.
        channel: its channel, None where it has none.
        line: its line in a text.
    """

    name: str
    meaning: int
    runs: int | None
    conditional: bool
    computation: str
    channel: int | None
    line: int | None


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a schedule.

    Attributes:
        role: ``"entry"``, ``"body"``, ``"condition"`` or ``"branch"``; ``"loose"`` for what nothing leads to;
            ``"again"`` for a computation that stands somewhere before.
        name: name of the computation.
        items: what it consists of in order: the number of a step, or ``~n`` for part n.
    """

    role: str
    name: str
    items: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """The schedule of one module.

    Attributes:
        steps: the collectives, in the order of the report's rows.
        parts: the parts; the first holds all others, and each stands before those inside it.
    """

    steps: tuple[Step, ...]
    parts: tuple[Part, ...]

    def in_order(self) -> list[int]:
        """Return the numbers of the steps in the order in which they run, each where it runs first."""
        found: list[int] = []
        pending = [~0]
        while pending:
            item = pending.pop()
            if item >= 0:
                found.append(item)
            elif self.parts[~item].role != AGAIN:
                pending.extend(reversed(self.parts[~item].items))
        return found


def schedule_of(report: Report, found: Discovery, meanings: Meanings, *, by_data: bool = False) -> Schedule:
    """Work out in which order the collectives of a module run.

    Args:
        report: the rows.
        found: what they were made of.
        meanings: where meanings are numbered.
        by_data: whether the instructions of a computation count in the order that data prescribe, as XLA prints them
            where there is no schedule, rather than as they are listed.
    """
    rows = report.collectives
    sites = zip(found.sites, (row.figures for row in rows), strict=True)
    steps = tuple(
        Step(
            row.name, meaning, row.trip_count, bool(row.conditional), site.computation_name, site.channel_id, site.line
        )
        for row, site, meaning in zip(rows, found.sites, meanings_in(report.module, sites, meanings), strict=True)
    )
    return Schedule(steps, _Walk(report, found, by_data=by_data).parts())


class _Walk:
    """A walk through the computations in which something communicates, from the entry."""

    def __init__(self, report: Report, found: Discovery, *, by_data: bool) -> None:
        self._module = report.module
        self._by_data = by_data
        self._sites: dict[str, dict[int, Site]] = {}
        for number, site in enumerate(found.sites):
            self._sites.setdefault(site.computation_name, {})[number] = site
        self._calls = _calls_by_caller(found.call_graph, self._sites)
        self._parts: list[tuple[str, str, list[int]]] = [("module", "", [])]
        self._entered: set[str] = set()

    def parts(self) -> tuple[Part, ...]:
        """Return the parts."""
        entry = self._module.entry
        called = {call.callee for calls in self._calls.values() for call in calls}
        names = [*dict.fromkeys([*self._calls, *self._sites])]
        roots = [name for name in names if name not in called]
        if entry is not None and entry.name in names:
            self._walk(entry.name, _ENTRY)
        for name in (*roots, *names):
            if name not in self._entered:
                self._walk(name, _LOOSE)
        return tuple(Part(role, name, tuple(items)) for role, name, items in self._parts)

    def _walk(self, name: str, role: str) -> None:
        stack = [self._enter(name, self._open(name, role, 0))]
        while stack:
            call, part = next(stack[-1], (None, 0))
            if call is None:
                stack.pop()
            elif call.callee in self._entered:
                again = self._open(call.callee, AGAIN, part)
                self._parts[again][2].extend(self._sites.get(call.callee, ()))
            elif call.role in _PARTS:
                stack.append(self._enter(call.callee, self._open(call.callee, call.role, part)))
            else:
                stack.append(self._enter(call.callee, part))

    def _open(self, name: str, role: str, outer: int) -> int:
        """Begin a part at the end of another one."""
        self._parts.append((role, name, []))
        self._parts[outer][2].append(~(len(self._parts) - 1))
        return len(self._parts) - 1

    def _enter(self, name: str, part: int) -> Iterator[tuple[Call, int]]:
        """Put the steps of a computation into a part, and yield the calls between them."""
        self._entered.add(name)
        sites, calls = self._sites.get(name, {}), self._calls.get(name, [])
        if not calls and not self._by_data:
            self._parts[part][2].extend(sites)
            return
        by_place: dict[Instruction, list[int | Call]] = {}
        for number, site in sites.items():
            by_place.setdefault(site.instruction, []).append(number)
        for call in calls:
            by_place.setdefault(call.caller, []).append(call)
        for instruction in self._ordered(by_place):
            for item in by_place[instruction]:
                if isinstance(item, int):
                    self._parts[part][2].append(item)
                else:
                    yield item, part

    def _ordered(self, by_place: dict[Instruction, list[int | Call]]) -> list[Instruction]:
        instructions = list(by_place)
        try:
            if not self._by_data:
                return in_running_order(instructions)
            ranks = _ranks(instructions[0].computation) if instructions else {}
            return sorted(instructions, key=lambda each: ranks.get(each.name, len(ranks)))
        except UnreadableError:
            return instructions


def _ranks(computation: Computation) -> dict[str, int]:
    return {instruction.name: rank for rank, instruction in enumerate(computation.post_order())}


def _calls_by_caller(graph: CallGraph, sites: dict[str, dict[int, Site]]) -> dict[str, list[Call]]:
    """Return the calls that lead to something that communicates, by the computation in which they stand."""
    found: dict[str, list[Call]] = {}
    pending, seen = list(sites), set(sites)
    while pending:
        for call in graph.calls_of(pending.pop()):
            caller = call.caller.computation.name
            found.setdefault(caller, []).append(call)
            if caller not in seen:
                seen.add(caller)
                pending.append(caller)
    return {caller: sorted(calls, key=_place_in_caller) for caller, calls in found.items()}


def _place_in_caller(call: Call) -> tuple[int, int]:
    """Sort the calls of one instruction as it names them, and those of several as they are listed."""
    try:
        called = list(call.caller.called)
        return call.caller.list_key, called.index((call.role, call.callee))
    except (UnreadableError, ValueError):
        return 0, 0
