"""Findings as workflow commands: what GitHub Actions turns into annotations.

Source: "Workflow commands for GitHub Actions", the commands error, warning and notice.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from commlens.views.words import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from commlens.analysis import Problem
    from commlens.hlo import Severity

_COMMANDS: Final[Mapping[Severity, str]] = MappingProxyType({"error": "error", "warning": "warning", "note": "notice"})
_SHOWN: Final = 6
_STANDARD_INPUT: Final = "-"
"""A path that is no file, on which nothing can be annotated."""


def github_commands(problems: Sequence[Problem]) -> Iterator[str]:
    """Yield one command to a line for each finding."""
    for problem in problems:
        properties: list[str] = []
        if problem.path != _STANDARD_INPUT:
            properties.append(f"file={_property(problem.path)}")
            if problem.line is not None:
                properties.append(f"line={problem.line}")
        properties.append(f"title={_property(problem.rule.id)}")
        yield f"::{_COMMANDS[problem.severity]} {','.join(properties)}::{_data(_message(problem))}\n"


def _message(problem: Problem) -> str:
    names = problem.instructions
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}: {problem.message}" if names else problem.message


def _data(text: str) -> str:
    r"""Escape what would end a command.

    Example:
        >>> _data("100%")
        '100%25'
    """
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escape what would end a property.

    Example:
        >>> _property("a:b,c")
        'a%3Ab%2Cc'
    """
    return _data(text).replace(":", "%3A").replace(",", "%2C")
