"""Which files of a folder hold the modules one wants: XLA dumps, Neuron compile caches, folders of HLO files."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from commlens.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

Stage = Literal["last", "before", "after", "all"]
"""Which dumps of a module are wanted; ``"last"`` is after optimisation where there is such a one, else before."""

_DUMP: Final = re.compile(
    r"(?P<module>module_\d+\..+?)\."
    r"(?:(?P<platform>(?:sm_\d+\.\d+_)?[A-Za-z0-9:+\-]+(?:_[A-Za-z0-9]+)*)_)?(?P<stage>before|after)_optimizations"
    r"\.(?P<kind>txt|hlo|hlo\.pb|pb|hlo\.pbtxt|pbtxt)(?:\.(?:gz|xz|bz2|zst))?"
)
_MAYBE: Final = frozenset({"hlo", "hlotxt", "log", "pb", "pbtxt", "txt"})
_NEURON: Final = ("model.hlo_module.pb", "model.hlo.pb")
_MODULE_FOLDER: Final = "MODULE_"


class _Dump(NamedTuple):
    """A dump of one module.

    Attributes:
        module: the module's number and name.
        platform: what it was compiled for, where the file's name says so.
        stage: ``"before"`` or ``"after"``.
        is_text: whether it is text.
        path: the file.
    """

    module: str
    platform: str
    stage: str
    is_text: bool
    path: Path


def module_files(folder: Path, stage: Stage = "last") -> tuple[list[Path], bool]:
    """Find the files in a folder that hold modules.

    Args:
        folder: a folder that XLA dumped to (``--xla_dump_to``), a Neuron compile cache or one of its parts, or a folder
            of HLO files.
        stage: which dumps are wanted.

    Returns:
        The files, sorted, and whether each of them must hold a module. Where no name says so, all files that may are
        returned, and those that do not are to be passed over.

    Raises:
        InputError: the folder cannot be listed, or has no dump of the stage.
    """
    try:
        files = sorted(path for path in folder.iterdir() if path.is_file())
        cached = [path for inner in _neuron_folders(folder) for path in _neuron_file(inner)]
    except OSError as error:
        reason = f"the folder cannot be listed: {error.strerror}"
        raise InputError(reason, path=str(folder)) from error
    dumps = [dump for dump in map(_dump, files) if dump is not None]
    if not dumps and not cached:
        return [path for path in files if _MAYBE.intersection(path.name.split(".")[1:])], False
    wanted = _wanted(dumps, stage)
    if not wanted and not cached:
        reason = f"the folder has no dump from {stage} optimisation"
        raise InputError(reason, path=str(folder))
    return [*sorted(wanted), *cached], True


def _dump(path: Path) -> _Dump | None:
    match = _DUMP.fullmatch(path.name)
    if match is None:
        return None
    return _Dump(match["module"], match["platform"] or "", match["stage"], match["kind"] in ("txt", "hlo"), path)


def _wanted(dumps: Iterable[_Dump], stage: Stage) -> list[Path]:
    """Choose per module and stage the text, else the proto; then the stages."""
    chosen: dict[tuple[str, str, str], _Dump] = {}
    for dump in dumps:
        key = (dump.module, dump.platform, dump.stage)
        if key not in chosen or (dump.is_text and not chosen[key].is_text):
            chosen[key] = dump
    finished = {dump.module for dump in chosen.values() if dump.stage == "after"}
    if stage == "last":
        return [dump.path for dump in chosen.values() if dump.stage == "after" or dump.module not in finished]
    return [dump.path for dump in chosen.values() if stage in ("all", dump.stage)]


def _neuron_folders(folder: Path) -> list[Path]:
    """Return the ``MODULE_*`` folders in a compile cache, or the folder itself if it is one."""
    if folder.name.startswith(_MODULE_FOLDER):
        return [folder]
    found: list[Path] = []
    for place, names, _ in os.walk(folder):
        found += [Path(place) / name for name in names if name.startswith(_MODULE_FOLDER)]
        names[:] = [name for name in names if not name.startswith(_MODULE_FOLDER)]
    return sorted(found)


def _neuron_file(folder: Path) -> list[Path]:
    """Return the module of a cache entry: under its new name, else under the old one."""
    present = [path for path in (folder / name for name in _NEURON) if path.is_file()]
    return present[:1]
