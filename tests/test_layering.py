"""The house rules that hold between files: who may import whom, how long a file may be, which words stay out.

The import rules themselves stand in pyproject.toml and tools/import-cycles.toml. Here they are broken on purpose, so
that a rule which has gone blind is noticed, and what no static reading can see is tried: what an import really loads.
"""

from __future__ import annotations

import ast
import importlib
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import get_origin

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "commlens"
SOURCES = sorted(path for path in PACKAGE.rglob("*.py") if not path.name.endswith("_pb2.py"))

OPTIONAL = ("jax", "jaxlib", "jinja2", "pyarrow", "dask", "distributed", "fsspec", "zstandard")
TERMINAL = ("click", "rich")

LIGHT = {
    "commlens": (*OPTIONAL, *TERMINAL, "numpy", "google"),
    "commlens.errors": (*OPTIONAL, *TERMINAL, "numpy", "google"),
    "commlens.topology": (*OPTIONAL, *TERMINAL, "google"),
    "commlens.hlo": (*OPTIONAL, *TERMINAL),
    "commlens.analysis": (*OPTIONAL, *TERMINAL),
    "commlens.neuron": (*OPTIONAL, *TERMINAL),
    "commlens.views": OPTIONAL,
    "commlens.cli": (*OPTIONAL, "rich", "numpy", "google"),
    "commlens.integrations": OPTIONAL,
}
"""Area -> what importing it must not load. The command line answers --help without loading the maths."""


def names(paths: list[Path]) -> list[str]:
    """Return readable test ids."""
    return [path.relative_to(ROOT).as_posix() for path in paths]


# --- what an import loads -------------------------------------------------------------------------------------------


def test_every_area_is_listed() -> None:
    """A new area must say what it may load."""
    areas = {f"commlens.{path.parent.name}" for path in PACKAGE.glob("*/__init__.py")}
    assert areas <= set(LIGHT)


@pytest.mark.parametrize("area", LIGHT)
def test_import_loads_nothing_heavy(area: str) -> None:
    """A fresh interpreter that imports an area has loaded none of the packages that this area must do without."""
    script = f"import sys, {area}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert set(LIGHT[area]).isdisjoint(done.stdout.split())


# --- the import rules notice what breaks them -----------------------------------------------------------------------


@dataclass(frozen=True)
class Plant:
    """An import that must not be: where it is planted, what it says, which rule must name it."""

    file: str
    line: str
    rule: str


PLANTS = {
    "topology-hlo": Plant("topology/planted.py", "import commlens.hlo", "Areas are layered"),
    "topology-hlo-in-a-function": Plant(
        "topology/planted.py", "def f():\n    from commlens.hlo import load\n    return load", "Areas are layered"
    ),
    "topology-hlo-for-types-alone": Plant(
        "topology/planted.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from commlens.hlo import Module",
        "Areas are layered",
    ),
    "topology-through-the-package": Plant("topology/planted.py", "from commlens import Module", "Areas are layered"),
    "analysis-cli": Plant("analysis/planted.py", "import commlens.cli", "Areas are layered"),
    "hlo-analysis": Plant("hlo/planted.py", "import commlens.analysis", "Areas are layered"),
    "analysis-neuron": Plant("analysis/planted.py", "import commlens.neuron", "Areas are layered"),
    "neuron-analysis": Plant("neuron/planted.py", "import commlens.analysis", "Areas are layered"),
    "views-neuron": Plant("views/planted.py", "import commlens.neuron.registry", "Outside neuron, use its facade"),
    "cli-integrations": Plant("cli/planted.py", "import commlens.integrations", "Areas are layered"),
    "new-area": Plant("planted/__init__.py", "", "Areas are layered"),
    "topology-files": Plant("topology/planted.py", "import pathlib", "topology and errors are pure"),
    "topology-rich": Plant("topology/planted.py", "import rich", "topology and errors are pure"),
    "analysis-jax": Plant("analysis/planted.py", "import jax", "Reading and analysis need no optional package"),
    "views-click": Plant("views/planted.py", "import click", "Views know nothing of jax, clusters or the command line"),
    "hlo-pickle": Plant("hlo/planted.py", "import pickle", "Modules are untrusted"),
    "hlo-google": Plant(
        "hlo/planted.py", "import google.protobuf", "protobuf and generated code are seen by hlo.proto"
    ),
    "analysis-generated-code": Plant(
        "analysis/planted.py", "import commlens.hlo.proto.schema", "protobuf and generated code are seen by hlo.proto"
    ),
    "integrations-click": Plant("integrations/planted.py", "import click", "click is seen by cli alone"),
    "integrations-rich": Plant("integrations/planted.py", "import rich", "rich is seen by views and cli alone"),
    "hlo-inside-topology": Plant("hlo/planted.py", "import commlens.topology.iota", "Outside topology, use its facade"),
    "cli-inside-hlo": Plant("cli/planted.py", "import commlens.hlo.model", "Outside hlo, use its facade"),
    "topology-cycle": Plant(
        "topology/planted.py", "import commlens.topology.planted_too", "No import cycles inside an area"
    ),
}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the source tree and its import rules."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "import-cycles.toml", tmp_path / "tools")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def broken_rules(tree: Path) -> list[str]:
    """Run the import rules as ``make test`` does and return the names of those that are broken."""
    done = subprocess.run(
        [
            *(sys.executable, "-c", "from importlinter.cli import lint_imports_command as main; main()"),
            *("--no-logo", "--no-cache", "pyproject.toml", "tools/import-cycles.toml"),
        ],
        cwd=tree,
        env={"PYTHONPATH": "src", "PATH": "", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Contracts: " in done.stdout, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if " BROKEN" in line]


def test_rules_hold_on_the_tree_as_it_is(copy: Path) -> None:
    """Without a planted import no rule is broken: what the other tests see is what they planted."""
    assert broken_rules(copy) == []


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS.keys())
def test_planted_import_is_caught(copy: Path, plant: Plant) -> None:
    """An import that breaks a rule is reported under that rule's name."""
    planted = copy / "src" / "commlens" / plant.file
    planted.parent.mkdir(exist_ok=True)
    planted.write_text(plant.line + "\n")
    planted.with_name("planted_too.py").write_text(f"import commlens.{planted.parent.name}.planted\n")
    assert any(line.startswith(plant.rule) for line in broken_rules(copy))


# --- size, words, examples ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SOURCES, ids=names(SOURCES))
def test_file_is_short(path: Path) -> None:
    """400 lines is the point to split a file."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


OWN_TEXTS = sorted(
    path
    for pattern in ("src/**/*", "docs/**/*", "benchmarks/*", "tools/*", ".ci/*", "*")
    for path in ROOT.glob(pattern)
    if path.is_file()
    and path.suffix in {"", ".md", ".proto", ".py", ".pyi", ".toml"}
    and "_build" not in path.parts
    and not any(part.startswith(".") and part != ".ci" for part in path.relative_to(ROOT).parts[:-1])
)

FOREIGN = re.compile(
    r"(?<![\w.])/(?:home|root|work|tmp|Users)/\w"  # places on somebody's machine
    r"|https?://[^\s)\"']*(?:py" + r"pi|python" + r"hosted|npm" + r"js|deb" + r"ian)",  # package registries
    re.IGNORECASE,
)


@pytest.mark.parametrize("path", OWN_TEXTS, ids=names(OWN_TEXTS))
def test_file_names_no_machine(path: Path) -> None:
    """No path of one machine and no registry's address stands in the repository: it works anywhere."""
    assert FOREIGN.findall(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "area", ["commlens", "commlens.topology", "commlens.hlo", "commlens.analysis", "commlens.neuron"]
)
def test_facade_is_documented(area: str) -> None:
    """Every public name of an area exists, and every class and function among them has a docstring."""
    facade = importlib.import_module(area)
    named = {name: getattr(facade, name) for name in facade.__all__}
    public = {name: value for name, value in named.items() if get_origin(value) is None}  # type aliases have none
    assert [name for name, value in public.items() if callable(value) and not getattr(value, "__doc__", None)] == []


TOPOLOGY = sorted((PACKAGE / "topology").glob("*.py"))


@pytest.mark.parametrize("path", TOPOLOGY, ids=names(TOPOLOGY))
def test_public_topology_functions_show_an_example(path: Path) -> None:
    """The docstring of every exported class and function of the maths holds an example that runs."""
    exported = set(importlib.import_module("commlens.topology").__all__)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    definitions = (node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef))
    wanting = [node.name for node in definitions if node.name in exported and ">>>" not in _docstrings_of(node)]
    assert wanting == []


def _docstrings_of(node: ast.ClassDef | ast.FunctionDef) -> str:
    """Return a definition's docstring; of a class, with those of its methods."""
    inner = [part for part in node.body if isinstance(part, ast.FunctionDef)] if isinstance(node, ast.ClassDef) else []
    return "\n".join(ast.get_docstring(part) or "" for part in [node, *inner])


def test_version_is_stated_alike() -> None:
    """The version of the project's metadata is the one that the package reports."""
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert importlib.import_module("commlens").__version__ == metadata["project"]["version"]
