"""Findings as SARIF 2.1.0, the form that code scanning services take.

Source: Static Analysis Results Interchange Format Version 2.1.0, OASIS Standard.
"""

from __future__ import annotations

import hashlib
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from commlens.views.json_text import to_json
from commlens.views.words import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from commlens.analysis import Problem
    from commlens.hlo import Place, Rule

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"

_STANDARD_INPUT: Final = "-"
_UNRESERVED: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/")


def sarif_log(problems: Sequence[Problem], rules: Sequence[Rule], version: str) -> Iterator[str]:
    """Yield one SARIF log with one run, a result to a line.

    Args:
        problems: the findings.
        rules: all rules that were run.
        version: the program's version.
    """
    numbers = {rule.id: number for number, rule in enumerate(rules)}
    driver = {
        "name": "commlens",
        "version": version,
        "rules": [_descriptor(rule) for rule in rules],
    }
    head = to_json({"$schema": SCHEMA, "version": "2.1.0"})
    yield f'{head[:-1]}, "runs": [{{"tool": {to_json({"driver": driver})}, "results": ['
    for place, problem in enumerate(problems):
        yield (",\n" if place else "\n") + to_json(_result(problem, numbers[problem.rule.id]))
    yield "\n]}]}\n"


def _descriptor(rule: Rule) -> dict[str, object]:
    return {
        "id": rule.id,
        "shortDescription": {"text": f"{rule.title}."},
        "fullDescription": {"text": rule.documentation},
        "help": {"text": f"{rule.documentation}\n\nSource: {rule.source}.\n\nFound in:\n\n{rule.bad.text}"},
        "defaultConfiguration": {"level": rule.severity},
    }


def _result(problem: Problem, number: int) -> dict[str, object]:
    location: dict[str, object] = {"logicalLocations": _logical(problem)}
    if problem.path != _STANDARD_INPUT:
        region: Mapping[str, object] = {} if problem.line is None else {"region": {"startLine": problem.line}}
        location["physicalLocation"] = {"artifactLocation": {"uri": uri_of(problem.path)}, **region}
    return {
        "ruleId": problem.rule.id,
        "ruleIndex": number,
        "level": problem.severity,
        "message": {"text": _message(problem)},
        "locations": [location],
        "partialFingerprints": {"commlensFinding/v1": _fingerprint(problem)},
    }


def _message(problem: Problem) -> str:
    names = problem.instructions
    return printable(f"{names[0]}: {problem.message}" if len(names) == 1 else problem.message)


def _logical(problem: Problem) -> list[dict[str, object]]:
    """Return the instructions, or the module where it is that one: what a viewer shows for files without lines."""
    places = [place for place in problem.places if place.name]
    if not places:
        return [{"name": printable(problem.module), "kind": "module"}]
    return [_of_instruction(problem, place) for place in places]


def _of_instruction(problem: Problem, place: Place) -> dict[str, object]:
    path = "/".join(part for part in (problem.module, place.computation, place.name) if part)
    return {"name": printable(place.name), "fullyQualifiedName": printable(path), "kind": "instruction"}


def _fingerprint(problem: Problem) -> str:
    """Return what stays the same while lines move: rule, file as it was named, module, instructions and message."""
    parts = (problem.rule.id, PurePath(problem.path).as_posix(), problem.module, *problem.instructions, problem.message)
    return hashlib.sha256("\n".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:32]


def uri_of(path: str) -> str:
    """Return a path as a URI reference: relative ones stay relative, to whatever the reader takes as the root.

    Example:
        >>> uri_of("dumps/a step.txt"), uri_of("/x/100%.txt")
        ('dumps/a%20step.txt', 'file:///x/100%25.txt')
    """
    text = PurePath(path).as_posix()
    quoted = "".join(map(_quoted, text.encode("utf-8", "surrogateescape")))
    return f"file://{quoted}" if text.startswith("/") else quoted


def _quoted(byte: int) -> str:
    """Return a byte of a path as it stands in a URI (RFC 3986, section 2.3)."""
    return chr(byte) if byte in _UNRESERVED else f"%{byte:02X}"
