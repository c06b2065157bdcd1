"""Which modules of which hosts are to be held against each other."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from commlens.analysis.hosts_survey import HostModule

_ByHost: TypeAlias = "Mapping[str, Mapping[tuple[str, int], HostModule]]"

_DUMP: Final = re.compile(r"module_[0-9]+\..*")
_SHOWN: Final = 4


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """The modules of some hosts, sorted.

    Attributes:
        hosts: the hosts, as they were named.
        groups: name of a module, and the modules of the hosts that have it.
        absent: name of a module -> the hosts that do not have it.
        notes: what to know of the sorting, in sentences.
    """

    hosts: tuple[str, ...]
    groups: tuple[tuple[str, tuple[HostModule, ...]], ...]
    absent: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]


def grouped(members: Sequence[HostModule], inputs: Sequence[str]) -> Grouping:
    """Sort the modules of some hosts by module.

    Each input is a host: a file, or a folder of dumps. A folder with several files of one module holds those of several
    hosts, unless it is one folder of some and XLA has numbered its files. Modules belong together by name, the first of
    a name in one host with the first in another. Where names leave one module in each host, those belong together as
    well.

    Args:
        members: the modules, in the order of the inputs.
        inputs: files and folders as they were named.
    """
    hosts = _hosts_of(members, inputs)
    by_host: dict[str, dict[tuple[str, int], HostModule]] = {host: {} for host in dict.fromkeys(hosts)}
    for host, member in zip(hosts, members, strict=True):
        modules = by_host[host]
        number = sum(name == member.name for name, _ in modules)
        modules[member.name, number] = member
    groups = {key: tuple(_members_with(by_host, key)) for key in dict.fromkeys(_keys(by_host))}
    if len(set(inputs)) == 1:  # what the files of one folder have in common is what they are called
        return _by_name(by_host, groups, {}, members)
    return _one_from_each(by_host, groups) or _by_name(by_host, groups, _absent(by_host, groups), members)


def _hosts_of(members: Sequence[HostModule], inputs: Sequence[str]) -> list[str]:
    """Return the host of each module."""
    homes = [_input_of(member.path, inputs) for member in members]
    alone = len(set(inputs)) == 1
    repeated = Counter((home, member.name) for home, member in zip(homes, members, strict=True))
    many = {
        home
        for home, member in zip(homes, members, strict=True)
        if repeated[home, member.name] > 1 and (alone or not _DUMP.fullmatch(PurePath(member.path).name))
    }
    return [member.path if home in many else home for home, member in zip(homes, members, strict=True)]


def _input_of(path: str, inputs: Sequence[str]) -> str:
    """Return the input that a file is or lies in, the longest of several."""
    place = PurePath(path)
    holding = [each for each in inputs if each == path or PurePath(each) in place.parents]
    return max(holding, key=len, default=path)


def _keys(by_host: _ByHost) -> Iterator[tuple[str, int]]:
    return (key for modules in by_host.values() for key in modules)


def _members_with(by_host: _ByHost, key: tuple[str, int]) -> Iterator[HostModule]:
    return (modules[key] for modules in by_host.values() if key in modules)


def _one_from_each(
    by_host: _ByHost,
    groups: Mapping[tuple[str, int], tuple[HostModule, ...]],
) -> Grouping | None:
    """Put together what names leave, where that is one module of each host; None where it is not."""
    shared = {key for key, members in groups.items() if len(members) == len(by_host)}
    left = [[modules[key] for key in modules if key not in shared] for modules in by_host.values()]
    if any(len(modules) != 1 for modules in left):
        return None
    rest = tuple(modules[0] for modules in left)
    names = list(dict.fromkeys(member.name for member in rest))
    note = f"the modules are named differently, {', '.join(names[:_SHOWN])}; they are compared all the same"
    found = [(key[0], groups[key]) for key in groups if key in shared]
    return Grouping(tuple(by_host), (*found, (names[0], rest)), {}, (note,))


def _absent(by_host: _ByHost, groups: Iterable[tuple[str, int]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, number in groups:
        lacking = [host for host, modules in by_host.items() if (name, number) not in modules]
        if lacking:
            found[name] = tuple(dict.fromkeys((*found.get(name, ()), *lacking)))
    return found


def _by_name(
    by_host: _ByHost,
    groups: Mapping[tuple[str, int], tuple[HostModule, ...]],
    absent: Mapping[str, tuple[str, ...]],
    members: Sequence[HostModule],
) -> Grouping:
    found = tuple((name, modules) for (name, _), modules in groups.items())
    alone = len(members) > 1 and len(found) == len(members)
    note = "no two modules have one name: nothing is compared"
    return Grouping(tuple(by_host), found, absent, (note,) if alone else ())
