"""Settings of ``check`` in a file: ``commlens.toml``, or ``[tool.commlens.check]`` of a ``pyproject.toml``."""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final, TypeGuard

from commlens.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

OWN_FILE: Final = "commlens.toml"
PROJECT_FILE: Final = "pyproject.toml"

_PLACE: Final = re.compile(r" ?\(at (?:line (\d+), column (\d+)|end of document)\)$")
_TABLE: Final = "check"
_PER_FILE: Final = "per-file-ignores"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a file says of ``check``; what it does not say is None or empty.

    Attributes:
        path: the file; None where there is none.
        select: patterns of the rules to run.
        ignore: patterns of the rules to leave out.
        per_file_ignores: patterns of rules to leave out, by pattern of the file's path.
        target: the kind of machine.
        lnc: physical cores to a logical core.
        local_world_size: ranks on a node.
        mesh: the mesh, as ``--mesh`` takes it.
        baseline: the file with accepted findings.
    """

    path: Path | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    target: str | None = None
    lnc: int | None = None
    local_world_size: int | None = None
    mesh: str | None = None
    baseline: str | None = None

    def but(self, given: Settings) -> Settings:
        """Return these settings, except for what others say."""
        stated = {each.name: getattr(given, each.name) for each in fields(given)}
        return replace(self, **{name: value for name, value in stated.items() if value not in (None, ())})

    def ignored_in(self, path: str) -> tuple[str, ...]:
        """Return the patterns of rules to leave out of one file: its name or its whole path may match."""
        names = (path, PurePath(path).name)
        return tuple(
            rule
            for pattern, rules in self.per_file_ignores
            if any(fnmatchcase(name, pattern) for name in names)
            for rule in rules
        )


def find_settings() -> Settings:
    """Look for settings in the current folder and those above it; the nearest file that has any counts, and it alone.

    Raises:
        InputError: the file cannot be read, or says something that is no setting.
    """
    here = Path.cwd()
    for place in (here, *here.parents):
        own, project = (Path(os.path.relpath(place / name, here)) for name in (OWN_FILE, PROJECT_FILE))
        if own.is_file():
            return read_settings(own)
        if project.is_file() and (found := _read(project)).path is not None:
            return found
    return Settings()


def read_settings(path: Path) -> Settings:
    """Read settings from a file that somebody names; one called ``pyproject.toml`` has them in its table.

    Raises:
        InputError: the file cannot be read, or says something that is no setting.
    """
    found = _read(path)
    return found if found.path is not None else Settings(path)


def _read(path: Path) -> Settings:
    """Read a file; without a path where it has no table for us."""
    try:
        content: object = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise _misspelled(path, str(error)) from error
    except UnicodeDecodeError as error:
        reason = "expected settings in TOML, which is UTF-8, found other bytes"
        raise InputError(reason, path=str(path)) from error
    except OSError as error:
        reason = f"the settings cannot be read: {(error.strerror or str(error)).lower()}"
        raise InputError(reason, path=str(path)) from error
    steps = ("tool", "commlens", _TABLE) if path.name == PROJECT_FILE else (_TABLE,)
    table = content
    for place, step in enumerate(steps):
        if _is_table(table) and step == _TABLE:
            _check_tables(path, table, steps[:place])
        table = table.get(step) if _is_table(table) else None
    if table is None:
        return Settings()
    if not _is_table(table):
        reason = f"expected the table [{'.'.join(steps)}], found {_kind(table)}"
        raise InputError(reason, path=str(path))
    return _settings(path, table)


def _check_tables(path: Path, table: Mapping[str, object], outer: tuple[str, ...]) -> None:
    """Refuse what stands beside the settings of check in what is ours: a slip would make them count for nothing."""
    unknown = sorted(set(table) - {_TABLE})
    if unknown:
        found, known = (".".join((*outer, name)) for name in (unknown[0], _TABLE))
        reason = f"expected the table [{known}] alone, found {found}; did you mean {known}?"
        raise InputError(reason, path=str(path))


def _settings(path: Path, table: Mapping[str, object]) -> Settings:
    known = [field.name.replace("_", "-") for field in fields(Settings) if field.name != "path"]
    unknown = sorted(set(table) - set(known))
    if unknown:
        reason = f"expected settings of check ({', '.join(known)}), found {', '.join(unknown)}"
        raise InputError(reason, path=str(path))
    per_file = table.get(_PER_FILE, {})
    if not _is_table(per_file):
        raise _wrong(path, _PER_FILE, 'a table such as {"old/*.txt" = ["size-one-axis"]}', per_file)
    baseline = _text(path, table, "baseline")
    return Settings(
        path=path,
        select=_texts(path, table, "select"),
        ignore=_texts(path, table, "ignore"),
        per_file_ignores=tuple((pattern, _texts(path, per_file, pattern)) for pattern in per_file),
        target=_text(path, table, "target"),
        lnc=_count(path, table, "lnc"),
        local_world_size=_count(path, table, "local-world-size"),
        mesh=_text(path, table, "mesh"),
        baseline=None if baseline is None else str(path.parent / baseline),
    )


def _texts(path: Path, table: Mapping[str, object], key: str) -> tuple[str, ...]:
    """Read a list of texts, or one text for a list of one."""
    value = table.get(key, [])
    values = [value] if isinstance(value, str) else value
    if not _is_list(values) or not all(isinstance(each, str) for each in values):
        raise _wrong(path, key, 'a list of rules such as ["size-one-axis", "stream"]', value)
    return tuple(each for each in values if isinstance(each, str))


def _text(path: Path, table: Mapping[str, object], key: str) -> str | None:
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        raise _wrong(path, key, "a text", value)
    return value


def _count(path: Path, table: Mapping[str, object], key: str) -> int | None:
    value = table.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise _wrong(path, key, "a number of at least 1", value)
    return value


def _wrong(path: Path, key: str, wanted: str, value: object) -> InputError:
    shown = repr(value) if isinstance(value, (str, int, float)) else _kind(value)
    reason = f"expected {key} to be {wanted}, found {shown}"
    return InputError(reason, path=str(path))


def _misspelled(path: Path, text: str) -> InputError:
    """Turn what the reader of TOML says into a sentence with its place in front."""
    place = _PLACE.search(text)
    what = text if place is None else text[: place.start()]
    line, column = (None, None) if place is None or place[1] is None else (int(place[1]), int(place[2]))
    reason = f"expected settings in TOML: {what[:1].lower()}{what[1:]}"
    return InputError(reason, path=str(path), line=line, column=column)


def _kind(value: object) -> str:
    """Name the kind of a value."""
    for kind, name in ((dict, "a table"), (list, "a list"), (str, "a text")):
        if isinstance(value, kind):
            return name
    return "another value"


def _is_table(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)
