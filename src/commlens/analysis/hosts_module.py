"""One module as several hosts have it: where their schedules part, who lacks what, who would wait for whom."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from commlens.analysis.change_details import listed_shapes, times
from commlens.analysis.changes import described, step_changes
from commlens.analysis.hosts_answers import (
    FirstDifference,
    HostChange,
    HostDifference,
    HostPlace,
    ModuleOnHosts,
    RestOfHosts,
)
from commlens.analysis.hosts_deadlocks import deadlocks_of
from commlens.analysis.hosts_survey import run_of
from commlens.analysis.matching import match
from commlens.analysis.schedules import AGAIN

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from commlens.analysis.changes import ChangeKind, StepChange
    from commlens.analysis.hosts_answers import HostChangeKind
    from commlens.analysis.hosts_survey import HostModule
    from commlens.analysis.matching import Matching
    from commlens.analysis.meanings import Meanings
    from commlens.analysis.schedules import Schedule

_Order: TypeAlias = Literal["listed", "running"]

_STEP: Final = "step"

_KINDS: Final[Mapping[ChangeKind, HostChangeKind]] = MappingProxyType(
    {"removed": "missing", "added": "extra", "changed": "changed", "order": "order"}
)


def compare_module(name: str, members: Sequence[HostModule], meanings: Meanings) -> ModuleOnHosts:
    """Compare one module as several hosts have it.

    What most hosts run is what the others are held against; where several are equally many, the first of them.

    Args:
        name: the module's name.
        members: the module of each host, at least one.
        meanings: what the numbers of meanings mean.
    """
    alike: dict[int, list[HostModule]] = {}
    for member in members:
        alike.setdefault(member.flow, []).append(member)
    usual = max(alike.values(), key=len)
    others = [each for each in alike.values() if each is not usual]
    matchings = [match(usual[0].schedule, each[0].schedule, meanings) for each in others]
    lacking, beyond = _lacking(usual, others, matchings)
    order, positions = _partings(usual, others, members)
    return ModuleOnHosts(
        module=name,
        paths=tuple(member.path for member in members),
        agree=_agree(members, others),
        first_difference=_first_difference(name, members, order, min(positions), meanings) if positions else None,
        missing=lacking,
        extra=beyond,
        differences=tuple(
            _difference(usual, each, matching, position, meanings)
            for each, matching, position in zip(others, matchings, positions, strict=True)
        ),
        rest=tuple(_rest(members)),
        notes=tuple(_notes(alike.values())),
    )


def _agree(members: Sequence[HostModule], others: Sequence[object]) -> bool | None:
    if others:
        return False
    same = len({member.content for member in members}) == 1
    return True if same or not any(member.unread for member in members) else None


# --- where they part -------------------------------------------------------------------------------------------------


def _first_difference(
    name: str, members: Sequence[HostModule], order: _Order, position: int, meanings: Meanings
) -> FirstDifference:
    descriptions = {member.path: _at(member.schedule, position, order, meanings) for member in members}
    return FirstDifference(position, order, name, descriptions)


def _partings(
    usual: Sequence[HostModule], others: Sequence[Sequence[HostModule]], members: Sequence[HostModule]
) -> tuple[_Order, list[int]]:
    """Return how positions are counted, and where each kind of hosts parts from most others."""
    schedules = [each[0].schedule for each in (usual, *others)]
    order: _Order = "listed" if _lists_tell(schedules, members) else "running"
    tokens = [[*(_listed if order == "listed" else _running)(schedule)] for schedule in schedules]
    return order, [_parting(tokens[0], each) for each in tokens[1:]]


def _lists_tell(schedules: Sequence[Schedule], members: Sequence[HostModule]) -> bool:
    """Whether the rows as they are listed show how each schedule differs from the first.

    They do not where only loops or branches stand elsewhere, and a text lists computations in another order than a
    proto.
    """
    lists = [[*_listed(schedule)] for schedule in schedules]
    return len({member.format for member in members}) == 1 and all(each != lists[0] for each in lists[1:])


def _parting(mine: Sequence[tuple[str, Hashable]], theirs: Sequence[tuple[str, Hashable]]) -> int:
    """Return how many steps two lists have in common before they part."""
    pairs = enumerate(zip(mine, theirs, strict=False))
    place = next((place for place, (a, b) in pairs if a != b), min(len(mine), len(theirs)))
    return sum(kind == _STEP for kind, _ in mine[:place])


def _listed(schedule: Schedule) -> Iterator[tuple[str, Hashable]]:
    """Yield the steps as they are listed."""
    return ((_STEP, run_of(step)) for step in schedule.steps)


def _running(schedule: Schedule) -> Iterator[tuple[str, Hashable]]:
    """Yield the steps as they run, and where parts begin and end."""
    pending: list[int | None] = [~0]
    while pending:
        item = pending.pop()
        if item is None:
            yield "end", None
        elif item >= 0:
            yield _STEP, run_of(schedule.steps[item])
        else:
            part = schedule.parts[~item]
            if part.role == AGAIN:
                yield part.role, tuple(run_of(schedule.steps[step]) for step in part.items)
            else:
                yield "begin", part.role
                pending += [None, *reversed(part.items)]


def _at(schedule: Schedule, position: int, order: _Order, meanings: Meanings) -> str:
    """Describe what a schedule has at a position."""
    numbers = range(len(schedule.steps)) if order == "listed" else schedule.in_order()
    if position >= len(numbers):
        return f"nothing: its schedule ends after {len(numbers):,}"
    step = schedule.steps[numbers[position]]
    meaning = meanings[step.meaning]
    channel = "" if step.channel is None else f", channel {step.channel}"
    shapes = listed_shapes(meaning.operand_shapes)
    line = "" if step.line is None else f" line {step.line}"
    runs = "" if step.runs == 1 else f", runs {times(step.runs)}"
    branch = ", in a branch of a conditional" if step.conditional else ""
    what = f"{meaning.opcode} {step.name}{channel}, {described(meanings, step.meaning)}"
    return f"{what}, operands {shapes}{runs}{branch}, in {step.computation}{line}"


# --- who lacks what -------------------------------------------------------------------------------------------------


def _lacking(
    usual: Sequence[HostModule], others: Sequence[Sequence[HostModule]], matchings: Sequence[Matching]
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """Return the names of what each host lacks, and of what it has beyond most others.

    What a minority has most others do not lack; where no majority is, both sides lack something.
    """
    lacking: dict[str, dict[str, None]] = {}
    beyond: dict[str, dict[str, None]] = {}
    undecided = len(usual) <= sum(map(len, others))
    for each, matching in zip(others, matchings, strict=True):
        first = usual[0].schedule
        missing = [first.steps[number].name for number in matching.removed]
        for member in each if missing else ():
            lacking.setdefault(member.path, {}).update(dict.fromkeys(missing))
        for member in each if matching.added else ():
            beyond.setdefault(member.path, {}).update(dict.fromkeys(_names(each[0], member, matching.added)))
        if undecided and matching.added:
            names = _names(each[0], each[0], matching.added)
            for member in usual:
                lacking.setdefault(member.path, {}).update(dict.fromkeys(names))
    return _frozen(lacking), _frozen(beyond)


def _names(first: HostModule, member: HostModule, numbers: Sequence[int]) -> list[str]:
    """Return what a host calls steps that are given as numbers in the module of another one that runs the same."""
    if member.schedule is first.schedule:
        return [member.schedule.steps[number].name for number in numbers]
    steps = dict(zip(first.schedule.in_order(), member.schedule.in_order(), strict=True))
    return [member.schedule.steps[steps[number]].name for number in numbers]


def _frozen(names: dict[str, dict[str, None]]) -> dict[str, tuple[str, ...]]:
    return {path: tuple(each) for path, each in names.items()}


# --- what differs ---------------------------------------------------------------------------------------------------


def _difference(
    usual: Sequence[HostModule], those: Sequence[HostModule], matching: Matching, position: int, meanings: Meanings
) -> HostDifference:
    schedules = (usual[0].schedule, those[0].schedule)
    changes = step_changes(*schedules, matching, meanings)
    paths = (usual[0].path, those[0].path)
    return HostDifference(
        paths=tuple(member.path for member in those),
        usual=paths[0],
        position=position,
        changes=tuple(_change(change, schedules, meanings) for change in changes),
        deadlocks=tuple(deadlocks_of(schedules[0], matching.reorders, meanings, paths)),
    )


def _change(change: StepChange, schedules: tuple[Schedule, Schedule], meanings: Meanings) -> HostChange:
    schedule, number = (schedules[1], change.after) if change.before is None else (schedules[0], change.before)
    opcode = "" if number is None else meanings[schedule.steps[number].meaning].opcode
    usual, here = HostPlace.of(schedules[0], change.before), HostPlace.of(schedules[1], change.after)
    return HostChange(_KINDS[change.kind], opcode, usual, here, change.what, change.moved)


def _rest(members: Sequence[HostModule]) -> Iterator[RestOfHosts]:
    """Yield the hosts by what does not communicate: most of them first, then what differs from those of its format."""
    alike: dict[tuple[str, str | bytes], list[HostModule]] = {}
    for member in members:
        alike.setdefault((member.format, member.rest.fingerprint or member.content), []).append(member)
    first: dict[str, HostModule] = {}
    for (form, _), found in sorted(alike.items(), key=lambda entry: -len(entry[1])):
        known = first.setdefault(form, found[0]).rest.computations
        here = found[0].rest.computations
        names = [name for name in {**known, **here} if known.get(name) != here.get(name)]
        yield RestOfHosts(form, found[0].rest.fingerprint, tuple(member.path for member in found), tuple(names))


def _notes(alike: Iterable[Sequence[HostModule]]) -> Iterator[str]:
    for members in alike:
        channels = members[0].channels
        different = next((member for member in members if member.channels != channels), None)
        if different is not None:
            pairs = zip(channels, different.channels, strict=True)
            number = sum(a != b for a, b in pairs)
            yield (
                f"{members[0].path} and {different.path} run the same collectives on other channels: "
                f"{number:,} channel ids differ"
            )
