"""Findings that are accepted because they were there before."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard

from commlens.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlens.analysis.checks.problems import Problem

_SCHEMA: Final = "commlens.check/1"
_WANTED: Final = "expected the answer of commlens check --format json"


class _Key(NamedTuple):
    """What makes two findings the same: not lines, which move, nor folders, which differ from machine to machine."""

    rule: str
    file: str
    message: str
    instructions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """Findings held against a baseline.

    Attributes:
        problems: those that are new.
        accepted: how many the baseline has.
        gone: how many of the baseline's, of files that were checked, are no longer found.
    """

    problems: list[Problem]
    accepted: int
    gone: int


@dataclass(frozen=True, slots=True)
class Baseline:
    """Findings that are accepted.

    Attributes:
        path: the file they come from.
    """

    path: str
    _counts: Counter[_Key]

    def judge(self, problems: Iterable[Problem], paths: Iterable[str]) -> Judged:
        """Sort out what is accepted; a finding that occurs more often than in the baseline is new as often.

        Args:
            problems: the findings.
            paths: the files that were checked.
        """
        left = self._counts.copy()
        new: list[Problem] = []
        accepted = 0
        for problem in problems:
            key = _key(problem.as_dict())
            if key is not None and left[key] > 0:
                left[key] -= 1
                accepted += 1
            else:
                new.append(problem)
        files = {PurePath(path).name for path in paths}
        return Judged(new, accepted, sum(number for key, number in left.items() if key.file in files))


def read_baseline(path: str) -> Baseline:
    """Read a baseline: the answer that ``commlens check --format json`` gave.

    Raises:
        InputError: the file cannot be read, or is no such answer.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        reason = (
            f"the baseline cannot be read: {(error.strerror or str(error)).lower()}; make one with commlens check ... "
            f"--format json -o {path}"
        )
        raise InputError(reason, path=path) from error
    try:
        answer: object = json.loads(content)
    except json.JSONDecodeError as error:
        reason = f"{_WANTED}: {error.msg}"
        raise InputError(reason, path=path, line=error.lineno, column=error.colno) from error
    except (ValueError, RecursionError) as error:
        reason = f"{_WANTED}: {error}"
        raise InputError(reason, path=path) from error
    findings = answer.get("findings") if _is_object(answer) else None
    if not _is_list(findings):
        reason = f"{_WANTED}, found something without findings"
        raise InputError(reason, path=path)
    schema = answer.get("schema") if _is_object(answer) else None
    if schema != _SCHEMA:
        reason = f"{_WANTED}, whose schema is {_SCHEMA!r}, found {schema!r}; make it anew with this version"
        raise InputError(reason, path=path)
    keys = [_key(finding) if _is_object(finding) else None for finding in findings]
    if None in keys:
        reason = f"{_WANTED}, found finding number {keys.index(None) + 1} without rule, path, message or instructions"
        raise InputError(reason, path=path)
    return Baseline(path, Counter(key for key in keys if key is not None))


def _key(finding: dict[str, object]) -> _Key | None:
    """Return what a finding is known by; None for what is no finding."""
    rule, path, message = (finding.get(key) for key in ("rule", "path", "message"))
    names = finding.get("instructions")
    if not (isinstance(rule, str) and isinstance(path, str) and isinstance(message, str) and _is_list(names)):
        return None
    return _Key(rule, PurePath(path).name, message, tuple(str(name) for name in names))


def _is_object(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)
