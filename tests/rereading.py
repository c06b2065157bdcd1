"""Modules read again by XLA, many at once, and what that may change in what we read of them: nothing.

The child is ``oracles/reread_modules.py``, run by any interpreter that has jaxlib.
"""

from __future__ import annotations

import base64
import json
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

from commlens import CommlensError, load, load_all, report
from commlens.hlo import UnreadableError, serialized_module
from commlens.neuron import NEURON_PIPELINE, PASSES, parse_passes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from commlens import Module

CHILD: Final = Path(__file__).parent / "oracles" / "reread_modules.py"
SECONDS: Final = 600

PATTERNS: Final = ("*.txt*", "*.pb*", "*.hlo*")
SPECS: Final = {**{each.name: each.name for each in PASSES}, "pipeline": ",".join(NEURON_PIPELINE)}

PLACES: Final = frozenset({"name", "computation", "line", "conditional", "op_name", "source"})
"""Keys of a row that say where it stands: XLA gives names and places of its own, and prints no metadata of old texts."""

MOVED_LISTS: Final = ("jax-0.5.", "jax-0.6.", "jax-0.8.", "torch_xla-2.9.")
"""Releases whose protos keep iota lists where XLA looks no longer: it leaves those groups out."""

Rows = tuple[Counter[str], int]


@dataclass(frozen=True, slots=True)
class Reread:
    """What XLA made of a module.

    Attributes:
        proto: the proto that it wrote; None where it refused the module.
        text: that proto, read and printed by XLA.
        refused: why it refused the module, or how it died of it; None where it did neither.
        died: whether the module ended the process.
    """

    proto: bytes | None = None
    text: str | None = None
    refused: str | None = None
    died: bool = False


def reread(modules: Mapping[str, Module], python: str) -> dict[str, Reread]:
    """Have XLA read modules.

    A module that ends the process costs nothing but its own answer: those behind it go to the next process.

    Args:
        modules: texts or binary protos, by name.
        python: an interpreter that has jaxlib.
    """
    questions = list(map(_question, modules.values()))
    found: list[Reread] = []
    while len(found) < len(questions):
        answers, last = _asked(questions[len(found) :], python)
        found += answers
        if len(found) < len(questions):
            found.append(Reread(refused=last, died=True))
    return dict(zip(modules, found, strict=True))


def _question(module: Module) -> str:
    content = serialized_module(module)
    if module.format == "text":
        return json.dumps({"text": content.decode("utf-8", "surrogateescape")})
    return json.dumps({"proto": base64.b64encode(content).decode()})


def _asked(questions: Sequence[str], python: str) -> tuple[list[Reread], str]:
    """Ask one process; return the answers that it gave, and its last words."""
    with tempfile.TemporaryFile("w+") as asked, tempfile.TemporaryFile("w+") as errors:
        asked.write("".join(f"{question}\n" for question in questions))
        asked.seek(0)
        child = subprocess.run(
            [python, str(CHILD)], stdin=asked, stdout=subprocess.PIPE, stderr=errors, timeout=SECONDS, check=False
        )
        errors.seek(0)
        written = errors.read().splitlines()
    fatal = next((line for line in written if line.startswith("F")), written[-1] if written else "no word")
    last = f"exit status {child.returncode}: {fatal}"
    assert child.returncode <= 0, f"{python} does not ask XLA: {last}"
    return list(map(_answer, child.stdout.decode().splitlines())), last


def _answer(line: str) -> Reread:
    said: dict[str, str] = json.loads(line)
    if "refused" in said:
        return Reread(refused=said["refused"])
    return Reread(base64.b64decode(said["proto"]), said["text"])


# --- the collection -------------------------------------------------------------------------------------------------


def collected(files: Iterable[Path], folder: Path) -> dict[str, Module]:
    """Load all modules of some files that XLA may read, by file and number."""
    return {
        f"{file.relative_to(folder)} {number}": module
        for file in files
        for number, module in zip(count(), _modules_of(file), strict=False)
    }


def _modules_of(file: Path) -> Iterator[Module]:
    try:
        modules = load_all(file)
        for module in modules:
            serialized_module(module)
    except (CommlensError, UnreadableError):
        return
    yield from modules


def all_files(folder: Path) -> list[Path]:
    """Return the files of the collection that may hold modules."""
    return sorted({path for pattern in PATTERNS for path in folder.glob(f"*/{pattern}") if path.is_file()})


def one_file_per_program(folder: Path) -> list[Path]:
    """Return one file of every program, those of all releases and both forms in turn."""
    by_program: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*-*/*.*")):
        if path.name.split(".")[2] in ("txt", "pb"):
            by_program.setdefault(path.name.split(".")[0], []).append(path)
    return [paths[number % len(paths)] for number, paths in enumerate(by_program.values())]


# --- what must not change -------------------------------------------------------------------------------------------


def rows(module: Module) -> Rows:
    """Return what the rows of a module say beside their places, and how much of it is unread."""
    found = report(module)
    return Counter(_said(dict(row)) for row in found.collectives), len(found.unread)


def _said(row: dict[str, object]) -> str:
    attributes = row["frontend_attributes"]
    kept = {key: value for key, value in row.items() if key not in PLACES}
    return repr({**kept, "frontend_attributes": sorted(attributes.items()) if isinstance(attributes, dict) else None})


def changed_by_reading(modules: Mapping[str, Module], python: str) -> tuple[list[str], int]:
    """Return which modules have other rows once XLA has read and written them, and how many it read.

    The rows of the module, of the proto that XLA makes of it, and of what XLA prints of that proto are held against
    each other. What XLA refuses counts for nothing; what it dies of is named.
    """
    changed: list[str] = []
    read = 0
    for name, answer in reread(modules, python).items():
        if answer.died:
            changed.append(f"{name}: XLA died of it: {answer.refused}")
        if answer.proto is None or answer.text is None:
            continue
        read += 1
        module = modules[name]
        proto, text = (rows(_like(module, form)) for form in (answer.proto, answer.text))
        if proto != text:
            changed.append(f"{name}: proto and text of XLA differ")
        elif proto != rows(module) and not _lost_lists(name, module, proto):
            changed.append(f"{name}: its own rows and those of XLA's proto differ")
    return changed, read


def _lost_lists(name: str, module: Module, proto: Rows) -> bool:
    """Whether XLA's rows are those of an older proto but for iota lists that XLA leaves out."""
    if module.format != "proto" or not name.startswith(MOVED_LISTS):
        return False
    (own, unread), (seen, unread_there) = rows(module), proto
    return unread == unread_there and all("form='iota'" in row for row in own - seen) and own.total() == seen.total()


def changed_by_passes(modules: Mapping[str, Module], spec: str, python: str) -> tuple[list[str], int]:
    """Return which modules XLA read and reads no longer, or otherwise, after some passes, and how many were changed.

    A pass may refuse a module. A send and a recv that the enforcer gave channels of their own are no program to XLA,
    which is documented. Rows count where XLA keeps those of the module itself.
    """
    after = {name: made for name, module in modules.items() if (made := _after(spec, module)) is not None}
    before = reread({name: modules[name] for name in after}, python)
    readable = {name: made for name, made in after.items() if before[name].text is not None}
    changed: list[str] = []
    for name, answer in reread(readable, python).items():
        module, printed = modules[name], before[name].text or ""
        parted = "enforcer" in spec and any(True for _ in module.instructions_of({"send", "recv"}))
        if answer.text is None and not parted:
            changed.append(f"{name} after {spec}: {'died' if answer.died else 'refused'}: {answer.refused}")
        if answer.text is None or rows(_like(module, printed)) != rows(module):
            continue
        if rows(_like(module, answer.text)) != rows(after[name]):
            changed.append(f"{name} after {spec}: XLA prints other rows")
    return changed, len(readable)


def _like(module: Module, content: bytes | str) -> Module:
    """Load what XLA made of a module, with the counts of the module: a proto has none."""
    return load(content, replicas=module.replica_count, partitions=module.num_partitions)


def _after(spec: str, module: Module) -> Module | None:
    """Return the module that passes make of another one, None where they refuse it or leave it as it is."""
    made = module
    try:
        for each in parse_passes(spec):
            made = each.run(made).module
    except CommlensError:
        return None
    return None if made.to_bytes() == module.to_bytes() else made
