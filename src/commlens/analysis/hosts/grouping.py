"""Which modules of which hosts are to be held against each other."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from commlens.analysis.hosts.survey import HostModule

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
    by_host: dict[str, dict[tuple[str, int], HostModule]] = {}
    met: Counter[tuple[str, str]] = Counter()
    for host, member in zip(_hosts_of(members, inputs), members, strict=True):
        by_host.setdefault(host, {})[member.name, met[host, member.name]] = member
        met[host, member.name] += 1
    groups = _members_by_key(by_host)
    if len(set(inputs)) == 1:  # what the files of one folder have in common is what they are called
        return _by_name(by_host, groups, {}, members)
    return _one_from_each(by_host, groups) or _by_name(by_host, groups, _absent(by_host, groups), members)


def _hosts_of(members: Sequence[HostModule], inputs: Sequence[str]) -> list[str]:
    """Return the host of each module."""
    homes = _inputs_of([member.path for member in members], inputs)
    alone = len(set(inputs)) == 1
    repeated = Counter((home, member.name) for home, member in zip(homes, members, strict=True))
    many = {
        home
        for home, member in zip(homes, members, strict=True)
        if repeated[home, member.name] > 1 and (alone or not _DUMP.fullmatch(PurePath(member.path).name))
    }
    return [member.path if home in many else home for home, member in zip(homes, members, strict=True)]


def _inputs_of(paths: Sequence[str], inputs: Sequence[str]) -> list[str]:
    """Return the input that each file is or lies in, the longest of several; the file itself where there is none."""
    named = set(inputs)
    folders: dict[PurePath, str] = {}
    for each in inputs:
        place = PurePath(each)
        folders[place] = max(folders.get(place, each), each, key=len)
    holding = ([folders[place] for place in PurePath(path).parents if place in folders] for path in paths)
    return [
        max([*found, path] if path in named else found, key=len, default=path)
        for path, found in zip(paths, holding, strict=True)
    ]


def _members_by_key(by_host: _ByHost) -> dict[tuple[str, int], tuple[HostModule, ...]]:
    """Return the modules that belong together, in the order of the hosts."""
    found: dict[tuple[str, int], list[HostModule]] = {}
    for modules in by_host.values():
        for key, member in modules.items():
            found.setdefault(key, []).append(member)
    return {key: tuple(members) for key, members in found.items()}


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
