"""No regular expression of the package takes more than linear time: each one runs on texts that are hard for it, counted."""

from __future__ import annotations

import ast
import importlib
import itertools
import pkgutil
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import commlens
from counted_regex import TooManyStepsError, end_of, hard_texts, loose_rounds, steps_of

SOURCE = Path(commlens.__file__).parent
ONCE = frozenset({"match", "fullmatch"})
SMALL = 12
LARGE = 4 * SMALL
STEPS_PER_CHARACTER = 400

ARGUMENTS: dict[str, str] = {
    "hlo.folders._DUMP": "runs on names of files, of at most 255 bytes",
    "hlo.text.grammar._STRING.0": "a value is held against it as a whole, by fullmatch",
    "hlo.text.graphs._OPERAND": "runs on what _OPERANDS has matched as a whole, so that every search succeeds at once",
    "hlo.text.sites._TYPED_NAME": "runs on what _TYPED has matched as a whole: no two blanks stand side by side",
}
"""Why a pattern that the counter refuses is linear all the same, by ``module.name``."""

MADE_WHILE_RUNNING: dict[str, str] = {
    "hlo.proto.module": "an escaped name, a dot and at most 18 digits",
    "hlo.text.module": "an escaped name, a dot and at most 18 digits",
}
"""Modules that make a pattern of their input, and what it is made of."""


def module_names() -> list[str]:
    """Return all modules of the package."""
    found = pkgutil.walk_packages(commlens.__path__, "commlens.")
    return [each.name for each in found if not each.name.endswith(("__main__", "_pb2"))]


@dataclass(frozen=True, slots=True)
class Use:
    """A pattern and the names that modules have for it.

    Attributes:
        pattern: the pattern.
        names: pairs of a file and a name in it.
    """

    pattern: re.Pattern[Any]
    names: list[tuple[Path, str]]

    @property
    def anywhere(self) -> bool:
        """Whether it is ever looked for behind the place where it is asked for, or handed on to who knows whom."""
        methods: set[str] = set()
        for path, name in self.names:
            methods.update(re.findall(rf"\b{name}\.(\w+)\(", path.read_text(encoding="utf-8")))
        return not methods or not methods <= ONCE


def patterns() -> dict[str, Use]:
    """Return every pattern that is compiled when the package is imported, by where it is first found."""
    found: dict[tuple[Any, int], str] = {}
    named: dict[str, Use] = {}
    for module_name in module_names():
        module = importlib.import_module(module_name)
        for name, value in vars(module).items():
            for number, each in enumerate(_inside(value)):
                own = f"{module_name.removeprefix('commlens.')}.{name}" + (f".{number}" if each is not value else "")
                label = found.setdefault((each.pattern, each.flags), own)
                named.setdefault(label, Use(each, [])).names.append((Path(str(module.__file__)), name))
    return named


def _inside(value: object) -> list[re.Pattern[Any]]:
    """Return the patterns that a module-level value is or holds."""
    if isinstance(value, re.Pattern):
        return [value]
    if isinstance(value, (tuple, list)):
        return [each for item in value for each in _inside(item)]
    fields = getattr(value, "__dataclass_fields__", {}) if not isinstance(value, type) else {}
    return [each for name in fields for each in _inside(getattr(value, name, None))]


PATTERNS = patterns()


def bounded(pattern: re.Pattern[Any], *, anywhere: bool) -> str | None:
    """Return a text on which the steps grow faster than the text, None where there is none."""
    for small, large in zip(hard_texts(pattern, SMALL), hard_texts(pattern, LARGE), strict=True):
        growth = (len(large) + 1) / (len(small) + 1)
        try:
            least = steps_of(pattern, small, anywhere=anywhere, limit=STEPS_PER_CHARACTER * (len(small) + 10))
            steps_of(pattern, large, anywhere=anywhere, limit=int(1.6 * growth * least) + 60)
        except TooManyStepsError:
            return small
    return None


@pytest.mark.parametrize("label", PATTERNS)
def test_steps_grow_with_the_text(label: str) -> None:
    """Four times the text takes four times the steps, at one place or, where it is searched for, all over the text."""
    use = PATTERNS[label]
    worst = bounded(use.pattern, anywhere=use.anywhere)
    assert worst is None or label in ARGUMENTS, f"{use.pattern.pattern!r} on texts like {worst!r}"


def test_patterns_that_are_made_while_running_have_an_argument() -> None:
    """Whatever is not compiled at module level stands in the list above."""
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                found |= {module for call in ast.walk(function) if _makes_a_pattern(call)}
    assert found == set(MADE_WHILE_RUNNING)


def _makes_a_pattern(call: ast.AST) -> bool:
    """Whether ``re`` is called with a pattern that is no literal."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=name), args=[first, *_]):
            return (name != "escape" and not isinstance(first, ast.Constant)) or name == "compile"
        case _:
            return False


def test_arguments_are_for_patterns_that_need_one() -> None:
    """An argument goes when its pattern goes, or no longer needs it."""
    assert [
        label for label in ARGUMENTS if label not in PATTERNS or not bounded(PATTERNS[label].pattern, anywhere=True)
    ] == []


@pytest.mark.parametrize(
    ("pattern", "anywhere", "good"),
    [
        (r"(a+)+b", False, False),
        (r"(?:a|aa)+b", False, False),
        (r"\s*\s*=", False, False),
        (r"[a-z]+[a-z0-9]*\(", False, False),
        (r"(?:\w+\s*)+;", False, False),
        (r".*x.*y", False, False),
        (r"\s*=", True, False),
        (r"\w+=", True, False),
        (r"/\*.*?\*/", True, False),
        (r'"[^"\\]*(?:\\.[^"\\]*)*"', False, True),
        (r"'[^'\\]*(?:\\.[^'\\]*)*'", True, False),
        (r"(?<=\])\{[^{}]*\}", True, True),
        (r"\{[^{}]*\}", True, True),
        (r"\s*=", False, True),
        (r"[a-z]++[a-z0-9]*\(", False, True),
        (r"(?<!\w)\w++=", True, True),
        (r"(?>a+)+b", False, True),
        (r'"(?:[^"\\]|\\.)*"', False, True),
        (r"(?:[^a]++|a)*+$", False, True),
        (r"^\s*x", True, True),
        (r"a{1,8}b", True, True),
    ],
)
def test_the_counter_tells_linear_from_worse(pattern: str, anywhere: bool, good: bool) -> None:
    """Nested, adjacent and searched repeats are caught; possessive, atomic, anchored and limited ones pass."""
    assert (bounded(re.compile(pattern), anywhere=anywhere) is None) == good


@pytest.mark.parametrize("label", PATTERNS)
def test_the_counter_matches_what_re_matches(label: str) -> None:
    """On its hard texts every pattern ends where the counter says, or matches nowhere."""
    pattern = PATTERNS[label].pattern
    for text in itertools.islice(hard_texts(pattern, 6), 60):
        read = text if isinstance(pattern.pattern, str) else text.encode("latin-1", "ignore").decode("latin-1")
        found = pattern.match(read if isinstance(pattern.pattern, str) else read.encode("latin-1"))
        assert end_of(pattern, read) == (None if found is None else found.end()), read


@pytest.mark.parametrize("label", PATTERNS)
def test_rounds_of_possessive_repeats_are_atomic(label: str) -> None:
    """``(?>ab)*+``, never ``(?:ab)*+``: before Python 3.11.5 that one ends where a failed round had come to."""
    assert loose_rounds(PATTERNS[label].pattern) == []


@pytest.mark.parametrize(
    ("pattern", "loose"),
    [
        (r"(?:ab)*+", 1),
        (r"(?:a(?:b|cd)?+)++", 2),
        (r"(?P<x>ab)?+", 1),
        (r"(?=(?:ab){2,3}+)", 1),
        (r"(?>ab)*+", 0),
        (r"(?>a(?>b|cd)?+)++", 0),
        (r"(?>(?P<x>ab))?+", 0),
        (r"(?:[ab])*+a++\w?+.{2,3}+", 0),
        (r"(?:a|b)*+", 0),
        (r"(?:ab)*", 0),
    ],
)
def test_loose_rounds_are_told_from_atomic_ones(pattern: str, loose: int) -> None:
    """Rounds of one character cannot fail half-way."""
    assert len(loose_rounds(re.compile(pattern))) == loose
