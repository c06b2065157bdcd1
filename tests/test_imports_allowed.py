"""What each area may import from outside the package: a list of what is allowed, so that nothing new slips in."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "commlens"

PURE = {
    *("__future__", "abc", "array", "bisect", "collections", "contextlib", "dataclasses", "enum", "fractions"),
    *("functools", "itertools", "math", "operator", "re", "reprlib", "string", "types", "typing"),
}
"""The part of the standard library that is mathematics and data: no files, no clocks, no processes."""

NEVER = {
    *(
        "asyncio",
        "ctypes",
        "dbm",
        "ftplib",
        "http",
        "imaplib",
        "marshal",
        "multiprocessing",
        "pickle",
        "pickletools",
        "poplib",
    ),
    *(
        "shelve",
        "smtplib",
        "socket",
        "socketserver",
        "ssl",
        "subprocess",
        "telnetlib",
        "urllib",
        "webbrowser",
        "wsgiref",
    ),
    *("xmlrpc", "_pickle", "_socket"),
}
"""Modules are untrusted: no network, no shell, no pickle."""

THIRD_PARTY = {
    "topology": {"numpy"},
    "errors.py": set[str](),
    "hlo": {"numpy", "google", "zstandard"},
    "analysis": {"numpy"},
    "neuron": {"numpy"},
    "views": {"rich"},
    "cli": {"click", "rich"},
    "integrations": {"jax", "numpy", "pytest"},
}

STARTS_PROCESSES = Path("integrations", "runtime", "children.py")
"""The one file that starts processes: XLA lives in those."""


def imported(path: Path) -> set[str]:
    """Return the top names of everything that a file imports, at any depth of its code."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found - {"commlens"}


def forbidden(area: str, names: set[str]) -> set[str]:
    """Return what an area must not import."""
    library = PURE if area in ("topology", "errors.py") else set(sys.stdlib_module_names) - NEVER
    return names - library - THIRD_PARTY.get(area, set())


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_imports_are_allowed_ones(path: Path) -> None:
    """Every import is the package's own, an allowed part of the standard library, or its area's own library."""
    area = path.relative_to(SOURCE).parts[0]
    allowed = {"subprocess"} if path.relative_to(SOURCE) == STARTS_PROCESSES else set[str]()
    assert forbidden(area, imported(path)) - allowed == set()


@pytest.mark.parametrize(
    ("area", "name"),
    [
        *(("topology", name) for name in ("asyncio", "ml_dtypes", "scipy", "os", "time", "json", "rich", "google")),
        *(
            ("hlo", name)
            for name in ("xmlrpc", "webbrowser", "_pickle", "dill", "pandas", "rich", "click", "jaxlib", "socket")
        ),
        *(("analysis", name) for name in ("google", "rich", "subprocess", "pandas")),
        *(("neuron", name) for name in ("google", "rich", "click", "jax", "subprocess")),
        *(("views", name) for name in ("click", "numpy", "google")),
        *(("cli", name) for name in ("numpy", "google", "jax")),
    ],
)
def test_others_are_not(area: str, name: str) -> None:
    """Planted imports are refused."""
    assert forbidden(area, {name, "typing", "re"}) == {name}
