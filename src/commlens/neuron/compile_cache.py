"""Neuron compile caches: what is in them, and what is wrong with it."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from commlens.errors import CommlensError, InputError
from commlens.hlo import load
from commlens.neuron.cache_entry import ENTRY_PREFIX, CacheEntry, CacheProblem, module_file, read_entry
from commlens.neuron.module_content import digest_without_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


@dataclass(frozen=True, slots=True)
class CompileCache:
    """A compile cache.

    Attributes:
        path: its folder, as the user named it.
        entries: its entries, by path.
    """

    path: str
    entries: tuple[CacheEntry, ...]

    @property
    def num_problems(self) -> int:
        """How many things are wrong in all."""
        return sum(len(entry.problems) for entry in self.entries)

    def as_dict(self) -> dict[str, object]:
        """Return the cache as JSON holds it."""
        return {"path": self.path, "entries": [entry.as_dict() for entry in self.entries]}


def entry_folders(folder: Path) -> list[Path]:
    """Return the folders ``MODULE_*`` in a folder, at any depth, sorted; the folder itself if it is one.

    Links to folders are not followed.

    Raises:
        InputError: a folder cannot be listed, so that entries could be missed.
    """
    if folder.resolve().name.startswith(ENTRY_PREFIX):
        return [folder]
    found: list[Path] = []
    for place, names, _ in os.walk(folder, onerror=_refuse):
        found += [Path(place) / name for name in names if name.startswith(ENTRY_PREFIX)]
        names[:] = [name for name in names if not name.startswith(ENTRY_PREFIX)]
    return sorted(found)


def _refuse(error: OSError) -> None:
    if isinstance(error, FileNotFoundError):
        return  # a folder that is not there has no entries
    reason = f"expected a folder that can be listed: {(error.strerror or str(error)).lower()}"
    raise InputError(reason, path=str(error.filename)) from error


def read_compile_cache(folder: str | os.PathLike[str], *, seen: Callable[[str], None] | None = None) -> CompileCache:
    """Read a compile cache.

    Args:
        folder: the cache, one of its parts, or a folder with several caches, such as one per host or rank.
        seen: called with the name of each entry before it is read.

    Returns:
        The entries with their problems. Besides what is wrong in an entry these are: entries that have the name,
        arguments, result and flags of another one and are another module, which ranks of one job must not be; entries
        that hold something else than those of the same name in other caches; and entries that some of them lack.

    Raises:
        InputError: there is no entry, or a folder around entries cannot be listed.
    """
    paths = entry_folders(Path(folder))
    if not paths:
        reason = f"expected a Neuron compile cache, with folders {ENTRY_PREFIX}*, found none"
        raise InputError(reason, path=str(folder))
    entries: list[CacheEntry] = []
    for path in paths:
        if seen is not None:
            seen(path.name)
        entries.append(read_entry(path))
    more: defaultdict[Path, list[CacheProblem]] = defaultdict(list)
    _compare_modules(entries, more)
    _compare_namesakes(entries, more)
    _compare_caches(entries, more)
    return CompileCache(
        str(folder), tuple(replace(entry, problems=(*entry.problems, *more[entry.path])) for entry in entries)
    )


def _compare_modules(entries: Iterable[CacheEntry], more: dict[Path, list[CacheProblem]]) -> None:
    """Find entries that look like the same step of a program and are different modules."""
    alike: defaultdict[tuple[object, ...], list[CacheEntry]] = defaultdict(list)
    for entry in entries:
        if entry.outline is not None:
            alike[entry.compiler, entry.flags_hash, entry.outline.name, entry.outline.interface].append(entry)
    for same in alike.values():
        first = same[0]
        for entry in same[1:]:
            if _content(entry) != _content(first) and not _differ_in_spelling_alone(first, entry):
                more[entry.path].append(CacheProblem("modules-differ", _difference(first, entry)))


def _content(entry: CacheEntry) -> str | None:
    return None if entry.outline is None else entry.outline.content


def _differ_in_spelling_alone(first: CacheEntry, entry: CacheEntry) -> bool:
    """Whether two modules are the same but for the spelling of their replica groups; both have an outline."""
    before, after = first.outline, entry.outline
    if before is None or after is None or before.meaning != after.meaning:
        return False
    files = module_file(first.path), module_file(entry.path)
    try:
        digests = {digest_without_groups(load(file)) for file in files if file is not None}
    except CommlensError:
        return False  # it was there a moment ago
    return len(digests) == 1


def _difference(first: CacheEntry, entry: CacheEntry) -> str:
    """Say how two modules differ in communication; both have an outline."""
    meant = [() if each.outline is None else each.outline.meaning for each in (entry, first)]
    written = [() if each.outline is None else each.outline.communication for each in (entry, first)]
    common = min(map(len, meant))
    place = next((number for number in range(common) if meant[0][number] != meant[1][number]), common)
    if meant[0] == meant[1]:
        how = "they communicate alike"
    else:
        here, there = (each[place] if place < len(each) else "nothing" for each in written)
        how = f"collective {place + 1} is {here} here and {there} there"
    return (
        f"name, arguments, result and flags are those of {first.name}, the module is another: {how}; ranks of one job "
        "must not run both"
    )


def _compare_namesakes(entries: Iterable[CacheEntry], more: dict[Path, list[CacheProblem]]) -> None:
    """Find entries that stand in several caches and are something else there: another module, or a NEFF of one.

    Modules of the same name, arguments and result have been compared before.
    """
    namesakes: defaultdict[str, list[CacheEntry]] = defaultdict(list)
    for entry in entries:
        namesakes[_key(entry)].append(entry)
    for same in namesakes.values():
        for first, entry in _with_first(each for each in same if each.outline is not None):
            if _looks(entry) != _looks(first):
                both = f"{first.module_name} there and {entry.module_name} here"
                how = "other arguments or results" if entry.module_name == first.module_name else both
                what = f"the entry of this name in {first.path.parent} holds another module: {how}"
                more[entry.path].append(CacheProblem("modules-differ", what))
        for first, entry in _with_first(each for each in same if each.info_from == "neff"):
            if entry.info != first.info:
                what = f"the entry of this name in {first.path.parent} has a NEFF with other groups, pairs or ranks"
                more[entry.path].append(CacheProblem("neffs-differ", what))


def _with_first(entries: Iterable[CacheEntry]) -> Iterator[tuple[CacheEntry, CacheEntry]]:
    """Yield each entry but the first, the first before it."""
    listed = list(entries)
    return ((listed[0], entry) for entry in listed[1:])


def _looks(entry: CacheEntry) -> tuple[object, ...]:
    return () if entry.outline is None else (entry.outline.name, entry.outline.interface)


def _compare_caches(entries: Sequence[CacheEntry], more: dict[Path, list[CacheProblem]]) -> None:
    """Find entries that some of several caches lack: hosts or ranks that compiled something else."""
    caches: defaultdict[Path, set[str]] = defaultdict(set)
    for entry in entries:
        caches[_cache_of(entry)].add(_key(entry))
    for entry in entries:
        lacking = [str(cache) for cache, keys in caches.items() if _key(entry) not in keys]
        if lacking:
            what = f"not in {', '.join(lacking)}: their ranks compiled something else, or nothing yet"
            more[entry.path].append(CacheProblem("not-everywhere", what))


def _cache_of(entry: CacheEntry) -> Path:
    return entry.path.parent if entry.compiler is None else entry.path.parent.parent


def _key(entry: CacheEntry) -> str:
    return f"{entry.compiler}/{entry.name}"
