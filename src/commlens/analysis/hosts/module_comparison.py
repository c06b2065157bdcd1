"""One module as several hosts have it: how many devices it is for, who lacks what, who would wait for whom."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from commlens.analysis.diffs.changes import step_changes
from commlens.analysis.diffs.matching import match
from commlens.analysis.hosts.answers import (
    HostChange,
    HostCounts,
    HostDifference,
    HostPlace,
    ModuleOnHosts,
    RestOfHosts,
)
from commlens.analysis.hosts.deadlocks import deadlocks_of
from commlens.analysis.hosts.divergence import divergence_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from commlens.analysis.diffs.changes import ChangeKind, StepChange
    from commlens.analysis.diffs.matching import Matching
    from commlens.analysis.hosts.answers import HostChangeKind
    from commlens.analysis.hosts.survey import HostModule
    from commlens.analysis.meanings import Meanings
    from commlens.analysis.schedules import Schedule

_SHOWN: Final = 3

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
    divergence = divergence_of([usual, *others], members)
    differences = tuple(
        _difference(usual, each, matching, position, meanings)
        for each, matching, position in zip(others, matchings, divergence.positions, strict=True)
    )
    counts = tuple(_counts(members))
    return ModuleOnHosts(
        module=name,
        paths=tuple(member.path for member in members),
        agree=_agree(members, others, counts),
        first_difference=divergence.first_difference(name, members, meanings) if others else None,
        missing=lacking,
        extra=beyond,
        differences=differences,
        counts=counts,
        rest=tuple(_rest(members)),
        notes=(*_notes_on_counts(counts), *_notes_on_channels(alike.values()), *_notes_on_deadlocks(differences)),
    )


def _agree(members: Sequence[HostModule], others: Sequence[object], counts: Sequence[HostCounts]) -> bool | None:
    if others or not _fit(counts):
        return False
    same = len({member.content for member in members}) == 1
    return True if same or not any(member.unread for member in members) else None


# --- how many devices they are for -----------------------------------------------------------------------------------


def _counts(members: Sequence[HostModule]) -> Iterator[HostCounts]:
    """Yield the hosts by the counts that their modules are for, most of them first."""
    alike: dict[tuple[int | None, int | None], list[str]] = {}
    for member in members:
        alike.setdefault((member.replica_count, member.num_partitions), []).append(member.path)
    for (replicas, partitions), paths in sorted(alike.items(), key=lambda entry: -len(entry[1])):
        yield HostCounts(replicas, partitions, tuple(paths))


def _fit(counts: Sequence[HostCounts]) -> bool:
    """Whether hosts can be of one job: what several of them state is the same."""
    columns = ({each.replica_count for each in counts}, {each.num_partitions for each in counts})
    return all(len(column - {None}) <= 1 for column in columns)


def _notes_on_counts(counts: Sequence[HostCounts]) -> Iterator[str]:
    if not _fit(counts):
        yield "the hosts are not for the same numbers of replicas and partitions: " + ", ".join(map(_counted, counts))


def _counted(counts: HostCounts) -> str:
    paths, more = counts.paths[:_SHOWN], len(counts.paths) - _SHOWN
    *some, last = [*paths, f"{more:,} more"] if more > 0 else paths
    who = f"{', '.join(some)} and {last}" if some else last
    replicas, partitions = (
        "unknown" if each is None else each for each in (counts.replica_count, counts.num_partitions)
    )
    return f"{who} (replicas {replicas}, partitions {partitions})"


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
    deadlocks, complete = deadlocks_of(schedules, matching, meanings, paths)
    return HostDifference(
        paths=tuple(member.path for member in those),
        usual=paths[0],
        position=position,
        changes=tuple(_change(change, schedules, meanings) for change in changes),
        deadlocks=deadlocks,
        deadlocks_complete=complete,
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
        alike.setdefault((member.format, member.fingerprint.whole or member.content), []).append(member)
    first: dict[str, HostModule] = {}
    for (form, _), found in sorted(alike.items(), key=lambda entry: -len(entry[1])):
        known = first.setdefault(form, found[0]).fingerprint.computations
        here = found[0].fingerprint.computations
        names = [name for name in {**known, **here} if known.get(name) != here.get(name)]
        yield RestOfHosts(form, found[0].fingerprint.whole, tuple(member.path for member in found), tuple(names))


def _notes_on_channels(alike: Iterable[Sequence[HostModule]]) -> Iterator[str]:
    for members in alike:
        first = members[0].schedule  # equal schedules are one object: few are looked through
        channels = members[0].channels
        others = (member for member in members if member.schedule is not first)
        different = next((member for member in others if member.channels != channels), None)
        if different is not None:
            pairs = zip(channels, different.channels, strict=True)
            number = sum(a != b for a, b in pairs)
            yield (
                f"{members[0].path} and {different.path} run the same collectives on other channels: "
                f"{number:,} channel ids differ"
            )


def _notes_on_deadlocks(differences: Iterable[HostDifference]) -> Iterator[str]:
    for difference in differences:
        if not (difference.deadlocks or difference.deadlocks_complete):
            who = f"{difference.usual} and {difference.paths[0]}"
            yield (
                f"whether devices of {who} can wait for each other is not known: "
                "who takes part is not, or more orders would have to be tried than are"
            )
