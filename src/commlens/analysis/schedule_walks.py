"""Working out the schedule of a module: a walk through the computations in which something communicates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.analysis.meanings import meanings_in
from commlens.analysis.schedules import Part, Schedule, Step
from commlens.hlo import UnreadableError, in_schedule_order, trip_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from commlens.analysis.meanings import Meanings
    from commlens.analysis.reports import Report
    from commlens.hlo import Call, CallGraph, Computation, Discovery, Instruction, Site

_BODY: Final = "body"
_CONDITION: Final = "condition"
_BRANCH: Final = "branch"
_CALL: Final = "call"
_ENTRY: Final = "entry"
_LOOSE: Final = "loose"


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


class _Called(NamedTuple):
    """A call that leads to something that communicates.

    Attributes:
        caller: the instruction.
        callee: name of the computation that it runs.
        role: the role of the part that this is; ``"call"`` where it is none.
        outer: the role of the part that holds all that the instruction runs; empty where that is none.
        trips: how often it runs each time that the instruction does; None where that is not known.
        place: where it stands among the calls of its computation.
    """

    caller: Instruction
    callee: str
    role: str
    outer: str
    trips: int | None
    place: tuple[int, int]


class _Frame(NamedTuple):
    """A computation that is being walked through: where its items go, and which calls are still to come."""

    name: str
    part: int
    start: int
    calls: Iterator[tuple[_Called, int]]


class _Open(NamedTuple):
    """A part that is being filled."""

    role: str
    name: str
    trips: int | None
    again: bool
    items: list[int]


class _Walk:
    """A walk through the computations in which something communicates, from the entry."""

    def __init__(self, report: Report, found: Discovery, *, by_data: bool) -> None:
        self._module = report.module
        self._by_data = by_data
        self._sites: dict[str, dict[int, Site]] = {}
        for number, site in enumerate(found.sites):
            self._sites.setdefault(site.computation_name, {})[number] = site
        self._calls = _calls_by_caller(found.call_graph, self._sites)
        self._parts = [_Open("module", "", 1, again=False, items=[])]
        self._entered: set[str] = set()
        self._items: dict[str, list[int]] = {}

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
        return tuple(Part(each.role, each.name, tuple(each.items), each.trips, each.again) for each in self._parts)

    def _walk(self, name: str, role: str) -> None:
        stack = [self._enter(name, self._open(role, name, 0))]
        while stack:
            name, part, start, calls = stack[-1]
            call, outer = next(calls, (None, 0))
            if call is None:
                self._items[name] = self._parts[part].items[start:]
                stack.pop()
            elif call.callee in self._entered:
                again = self._open(call.role, call.callee, outer, call.trips, again=True)
                self._parts[again].items.extend(self._items_of(call.callee))
            elif call.outer:
                stack.append(self._enter(call.callee, self._open(call.role, call.callee, outer, call.trips)))
            else:
                stack.append(self._enter(call.callee, outer))

    def _open(self, role: str, name: str, outer: int, trips: int | None = 1, *, again: bool = False) -> int:
        """Begin a part at the end of another one."""
        self._parts.append(_Open(role, name, trips, again, []))
        self._parts[outer].items.append(~(len(self._parts) - 1))
        return len(self._parts) - 1

    def _items_of(self, name: str) -> Iterable[int]:
        """Return what a computation consists of that was entered before; of one that merely calls another, of that."""
        items = self._items.get(name)
        if items is None:  # it calls itself
            return self._sites.get(name, ())
        only = self._parts[~items[0]] if len(items) == 1 and items[0] < 0 else None
        return only.items if only is not None and only.again and only.role == _CALL else items

    def _enter(self, name: str, part: int) -> _Frame:
        self._entered.add(name)
        return _Frame(name, part, len(self._parts[part].items), self._filled(name, part))

    def _filled(self, name: str, part: int) -> Iterator[tuple[_Called, int]]:
        """Put the steps of a computation into a part, and yield the calls between them with where they belong."""
        sites, calls = self._sites.get(name, {}), self._calls.get(name, [])
        if not calls and not self._by_data:
            self._parts[part].items.extend(sites)
            return
        by_place: dict[Instruction, list[int | _Called]] = {}
        for number, site in sites.items():
            by_place.setdefault(site.instruction, []).append(number)
        for call in calls:
            by_place.setdefault(call.caller, []).append(call)
        for instruction in self._ordered(by_place):
            outer: int | None = None
            for item in by_place[instruction]:
                if isinstance(item, int):
                    self._parts[part].items.append(item)
                elif item.outer:
                    outer = self._open(item.outer, item.callee, part) if outer is None else outer
                    yield item, outer
                else:
                    yield item, part

    def _ordered(self, by_place: dict[Instruction, list[int | _Called]]) -> list[Instruction]:
        instructions = list(by_place)
        try:
            if not self._by_data:
                return in_schedule_order(instructions)
            ranks = _ranks(instructions[0].computation) if instructions else {}
            return sorted(instructions, key=lambda each: ranks.get(each.name, len(ranks)))
        except UnreadableError:
            return instructions


def _ranks(computation: Computation) -> dict[str, int]:
    return {instruction.name: rank for rank, instruction in enumerate(computation.post_order())}


def _calls_by_caller(graph: CallGraph, sites: dict[str, dict[int, Site]]) -> dict[str, list[_Called]]:
    """Return the calls that lead to something that communicates, by the computation in which they stand."""
    found: dict[str, dict[Instruction, list[Call]]] = {}
    pending, seen = list(sites), set(sites)
    while pending:
        for call in graph.calls_of(pending.pop()):
            caller = call.caller.computation.name
            found.setdefault(caller, {}).setdefault(call.caller, []).append(call)
            if caller not in seen:
                seen.add(caller)
                pending.append(caller)
    return {
        caller: sorted(
            (each for calls in by_instruction.values() for each in _called(calls)), key=lambda each: each.place
        )
        for caller, by_instruction in found.items()
    }


def _called(calls: Iterable[Call]) -> Iterator[_Called]:
    """Yield what one instruction runs, each with its place: branches in the order of their numbers.

    Branches are told apart by what picks them. One computation may be several branches: each call of it is another one.
    """
    taken: set[int] = set()
    for call in calls:
        place = _place_of(call, taken)
        number = _number_of(call, place)
        listed = (0, 0) if place is None else (call.caller.list_key, place if number is None else number)
        if call.role == _BRANCH:
            role = _BRANCH if number is None else f"{_BRANCH} {number}"
            yield _Called(call.caller, call.callee, role, "conditional", 1, listed)
        elif call.role in (_BODY, _CONDITION):
            trips = trip_count(call.caller)
            more = trips if trips is None or call.role == _BODY else trips + 1
            yield _Called(call.caller, call.callee, call.role, "loop", more, listed)
        else:
            yield _Called(call.caller, call.callee, _CALL, "", 1, listed)


def _place_of(call: Call, taken: set[int]) -> int | None:
    """Return the place of a call among those of its instruction, the first that no call before it has."""
    try:
        same = (place for place, called in enumerate(call.caller.called) if called == (call.role, call.callee))
        place = next((place for place in same if place not in taken), None)
    except UnreadableError:
        return None
    if place is not None:
        taken.add(place)
    return place


def _number_of(call: Call, place: int | None) -> int | None:
    """Return the number that picks a branch of a conditional, 1 for true; None where that cannot be made out."""
    if call.role != _BRANCH or place is None:
        return None
    try:
        number = sum(role == _BRANCH for role, _ in list(call.caller.called)[:place])
        return 1 - number if call.caller.operands[0].shape.element_type == "pred" else number
    except (UnreadableError, LookupError, ValueError):
        return None
