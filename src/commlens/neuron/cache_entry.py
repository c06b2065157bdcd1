"""One entry of a Neuron compile cache: what stands in its folder, and whether that fits together.

Source: published listings of caches. An entry is a folder ``MODULE_<graph hash>+<flags hash>`` in a folder named after
the compiler, ``neuronxcc-<version>+<hash>``. The flags hash is the first 8 hexadecimal digits of the MD5 of the flags
file's bytes, which was found by trying it on public entries.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.errors import CommlensError
from commlens.hlo import UnreadableError, load, read_file
from commlens.neuron.cache_checks import groups_fault, lnc_fault
from commlens.neuron.cache_outline import Outline, outline_of
from commlens.neuron.cc_info import CCInfo
from commlens.neuron.cc_rows import PairRow, TopologyRow, pair_rows, topology_rows
from commlens.neuron.def_json import is_list
from commlens.neuron.lone_surrogates import with_escapes
from commlens.neuron.neff import Neff, read_neff

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Module

ENTRY_PREFIX: Final = "MODULE_"
NO_FLAGS: Final = hashlib.md5(b"", usedforsecurity=False).hexdigest()[:8]

_NAME: Final = re.compile(r"MODULE_(?P<module>[^+]+)\+(?P<flags>[0-9a-f]{8})")
_COMPILER: Final = "neuronxcc-"
_DONE: Final = "model.done"
_NEFF: Final = "model.neff"
_MODULES: Final = ("model.hlo_module.pb", "model.hlo.pb")
_FLAGS: Final = ("compile_flags.json", "compile_flags.txt")
_MOST_ID: Final = 2**31 - 1


class CacheProblem(NamedTuple):
    """Something that is wrong with an entry.

    Attributes:
        kind: a word for programs: ``"name"``, ``"unreadable"``, ``"not-done"``, ``"no-neff"``, ``"neff"``,
            ``"no-module"``, ``"module"``, ``"wide-ids"``, ``"no-flags"``, ``"flags"``,
            ``"flags-hash"``, ``"lnc"``, ``"groups-differ"``, ``"modules-differ"``,
            ``"neffs-differ"``, ``"not-everywhere"``.
        what: a sentence.
    """

    kind: str
    what: str


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One entry of a compile cache.

    Attributes:
        path: its folder.
        compiler: the compiler's folder that it stands in; None where it stands in none.
        module_hash: hash of the graph, from the name; None where the name has none.
        flags_hash: hash of the flags, from the name; None likewise.
        done: whether the compilation is marked as finished.
        neff_size: size of the NEFF in bytes; None where there is none.
        flags: the compiler's flags; None where no file says them.
        flags_match: whether the flags have the hash in the name; None where one or the other is not there.
        outline: what the module is; None where it is missing or cannot be read.
        lnc: physical cores per rank by the header of the NEFF; None where nobody says.
        info: the CC info of the NEFF, else of the module; None where neither can be read.
        info_from: ``"neff"`` or ``"module"``; None likewise.
        problems: what is wrong.
    """

    path: Path
    compiler: str | None
    module_hash: str | None
    flags_hash: str | None
    done: bool
    neff_size: int | None = None
    flags: tuple[str, ...] | None = None
    flags_match: bool | None = None
    outline: Outline | None = None
    lnc: int | None = None
    info: CCInfo | None = None
    info_from: str | None = None
    problems: tuple[CacheProblem, ...] = ()

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.path.name

    @property
    def module_name(self) -> str | None:
        """The name of its module; None where it is missing or cannot be read."""
        return None if self.outline is None else self.outline.name

    @property
    def world_size_documented(self) -> int | None:
        """Workers by the documented reading; None where it refuses, or nothing is known."""
        return None if self.info is None else self.info.size_or_refusal("documented")[0]

    @property
    def world_size_total(self) -> int | None:
        """Workers by the total reading; None likewise."""
        return None if self.info is None else self.info.size_or_refusal("total")[0]

    @property
    def complete(self) -> bool | None:
        """Whether the groups or pairs of every collective are known; None where nothing is known."""
        return None if self.info is None else self.info.complete

    @property
    def topologies(self) -> tuple[TopologyRow, ...]:
        """Its topologies, a row each; none where nothing is known."""
        return () if self.info is None else tuple(topology_rows(self.info))

    @property
    def pair_sets(self) -> tuple[PairRow, ...]:
        """Its sets of pairs, a row each; none where nothing is known."""
        return () if self.info is None else tuple(pair_rows(self.info))

    def as_dict(self) -> dict[str, object]:
        """Return the entry as JSON holds it."""
        info = self.info
        return {
            "path": str(self.path),
            "compiler": self.compiler,
            "module_hash": self.module_hash,
            "flags_hash": self.flags_hash,
            "module": self.module_name,
            "done": self.done,
            "neff_size": self.neff_size,
            "flags": None if self.flags is None else list(self.flags),
            "flags_match": self.flags_match,
            "lnc": self.lnc,
            "cc_from": self.info_from,
            "replica_groups": None if info is None else info.replica_groups,
            "src_target_pairs": None if info is None else info.src_target_pairs,
            "rank_world_size": None if info is None else info.rank_world_size,
            "topologies": None if info is None else [dict(topology) for topology in info.topologies],
            "has_cc": None if info is None else info.has_cc,
            "complete": self.complete,
            "world_size": self.world_size_documented,
            "world_size_documented": self.world_size_documented,
            "world_size_total": self.world_size_total,
            "problems": [{"kind": problem.kind, "what": with_escapes(problem.what)} for problem in self.problems],
        }


def flags_hash_of(content: bytes) -> str:
    """Return the hash that names an entry after its flags.

    Args:
        content: the bytes of the flags file.

    Example:
        >>> flags_hash_of(b"--model-type=transformer --auto-cast=none"), flags_hash_of(b"")
        ('2c2d707e', 'd41d8cd9')
    """
    return hashlib.md5(content, usedforsecurity=False).hexdigest()[:8]


def flags_of(content: bytes) -> tuple[str, ...]:
    """Return the flags in a flags file: a JSON list of strings in new caches, words in old ones.

    Example:
        >>> flags_of(b'["--lnc=2", "--target=trn2"]'), flags_of(b"--lnc=2 --target=trn2")
        (('--lnc=2', '--target=trn2'), ('--lnc=2', '--target=trn2'))
    """
    try:
        parsed: object = json.loads(content)
    except (ValueError, RecursionError):
        parsed = None
    if is_list(parsed):
        return tuple(with_escapes(str(flag)) for flag in parsed)
    return tuple(content.decode("utf-8", "backslashreplace").split())


def read_entry(folder: Path) -> CacheEntry:
    """Read one entry; whatever cannot be read becomes a problem of it.

    Args:
        folder: a folder ``MODULE_*``.
    """
    problems: list[CacheProblem] = []
    match = _NAME.fullmatch(folder.name)
    module_hash, flags_hash = (None, None) if match is None else (match["module"], match["flags"])
    if match is None:
        problems.append(CacheProblem("name", "expected a folder named MODULE_<graph hash>+<flags hash>"))
    try:
        names = {path.name for path in folder.iterdir() if path.is_file()}
    except OSError as error:
        problems.append(CacheProblem("unreadable", f"the folder cannot be read: {error.strerror or error}".lower()))
        return CacheEntry(folder, None, module_hash, flags_hash, done=False, problems=tuple(problems))
    done = _DONE in names
    neff = _read_neff(folder, done, problems)
    module = _read_module(folder, problems)
    flags, flags_match = _read_flags(folder, flags_hash, problems)
    info = _info(folder, neff, module, problems)
    lnc = None if neff is None else neff.header.lnc_size or None
    problems += _misfits(info, module, flags, lnc, compiled=neff is not None)
    size = (folder / _NEFF).stat().st_size if (folder / _NEFF).is_file() else None
    outline = None if module is None else _outline(module, problems)
    if module is not None and size is None:
        _note_wide_ids(module, problems)
    compiler = folder.parent.name
    return CacheEntry(
        path=folder,
        compiler=compiler if compiler.startswith(_COMPILER) else None,
        module_hash=module_hash,
        flags_hash=flags_hash,
        done=done,
        neff_size=size,
        flags=flags,
        flags_match=flags_match,
        outline=outline,
        lnc=lnc,
        info=info,
        info_from=None if info is None else "module" if neff is None else "neff",
        problems=tuple(problems),
    )


def _read_neff(folder: Path, done: bool, problems: list[CacheProblem]) -> Neff | None:
    path = folder / _NEFF
    if not done:
        problems.append(
            CacheProblem("not-done", f"there is no {_DONE}: the compilation failed, was stopped, or still runs")
        )
    if not path.is_file():
        if done:
            problems.append(CacheProblem("no-neff", f"the entry is marked as done, and there is no {_NEFF}"))
        return None
    try:
        return read_neff(path)
    except CommlensError as error:
        problems.append(CacheProblem("neff", _inside(folder, error)))
        return None


def _inside(folder: Path, error: CommlensError) -> str:
    """Return what is wrong with a file, named as one of its folder: where that is stands in the row of the entry."""
    return str(error).removeprefix(f"{folder}/")


def module_file(folder: Path) -> Path | None:
    """Return the file of an entry's module; None where there is none."""
    return next((folder / name for name in _MODULES if (folder / name).is_file()), None)


def _read_module(folder: Path, problems: list[CacheProblem]) -> Module | None:
    path = module_file(folder)
    if path is None:
        problems.append(CacheProblem("no-module", f"there is no {_MODULES[0]}"))
        return None
    try:
        return load(path)
    except CommlensError as error:
        problems.append(CacheProblem("module", _inside(folder, error)))
        return None


def _read_flags(
    folder: Path, stated: str | None, problems: list[CacheProblem]
) -> tuple[tuple[str, ...] | None, bool | None]:
    path = next((folder / name for name in _FLAGS if (folder / name).is_file()), None)
    if path is None:
        if stated not in (None, NO_FLAGS):
            problems.append(
                CacheProblem("no-flags", f"there is no {_FLAGS[0]}, and the name speaks of flags: {stated}")
            )
        return None, None
    try:
        content = read_file(path)
    except CommlensError as error:
        problems.append(CacheProblem("no-flags", _inside(folder, error)))
        return None, None
    found = flags_hash_of(content)
    if stated is not None and found != stated:
        what = f"{path.name} has the hash {found}, the name says {stated}: these are not the flags of the compilation"
        problems.append(CacheProblem("flags-hash", what))
    flags_match = None if stated is None else found == stated
    if content and path.suffix == ".json" and not _is_list_of_texts(content):
        what = f"{path.name}: expected a JSON list of texts, one for each flag, found something else"
        problems.append(CacheProblem("flags", what))
        return None, flags_match
    return flags_of(content), flags_match


def _is_list_of_texts(content: bytes) -> bool:
    try:
        parsed: object = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return is_list(parsed) and all(isinstance(flag, str) for flag in parsed)


def _info(folder: Path, neff: Neff | None, module: Module | None, problems: list[CacheProblem]) -> CCInfo | None:
    """Return the CC info of the NEFF, else that of the module."""
    try:
        if neff is not None:
            kind, info = "neff", CCInfo.from_neff(neff)
        elif module is not None:
            kind, info = "module", CCInfo.from_module(module)
        else:
            return None
    except CommlensError as error:
        problems.append(CacheProblem("module" if neff is None else "neff", _inside(folder, error)))
        return None
    problems += [CacheProblem(kind, note) for note in info.notes]
    return info


def _misfits(
    info: CCInfo | None, module: Module | None, flags: tuple[str, ...] | None, lnc: int | None, *, compiled: bool
) -> Iterator[CacheProblem]:
    """Find where a NEFF is not the compilation of the module and the flags beside it."""
    fault = lnc_fault(flags, lnc)
    if fault is not None:
        yield CacheProblem("lnc", fault)
    fault = groups_fault(info, module) if compiled and info is not None and module is not None else None
    if fault is not None:
        yield CacheProblem("groups-differ", fault)


def _outline(module: Module, problems: list[CacheProblem]) -> Outline | None:
    try:
        return outline_of(module)
    except UnreadableError as error:
        problems.append(CacheProblem("module", str(error)))
        return None


def _note_wide_ids(module: Module, problems: list[CacheProblem]) -> None:
    """Name ids that a compiler could have stumbled over: newer XLA counts in 32 bits per computation."""
    if module.format != "proto":
        return  # a text has no ids
    instructions = (each for computation in module.computations for each in computation.instructions)
    widest = max((each.list_key for each in instructions), default=0)
    if widest > _MOST_ID:
        computation, number = split_id(widest)
        what = (
            f"instruction ids go up to {widest} (instruction {number} of computation {computation}), more than 31 bits "
            "hold: older neuronx-cc refuses such modules until they are renumbered"
        )
        problems.append(CacheProblem("wide-ids", what))


def split_id(wide: int) -> tuple[int, int]:
    """Return the computation's part and the instruction's own part of an id as newer XLA writes it.

    Example:
        >>> split_id(21474836481)
        (5, 1)
    """
    return wide >> 32, wide & 0xFFFFFFFF
