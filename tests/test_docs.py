"""The documentation says what the program does: every shown command prints what stands below it.

The Python examples of the same pages run as doctests.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from console_blocks import Shown, agrees, run, shown_commands, with_output

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(path for path in ROOT.glob("docs/**/*.md") if "_build" not in path.parts)])
SHOWING = [path for path in PAGES if shown_commands(path.read_text(encoding="utf-8"))]
PROVING = [
    path for path in SHOWING if re.search(r"(?m)^\$ commlens prove (?!--help)", path.read_text(encoding="utf-8"))
]


def page_names(pages: list[Path]) -> list[str]:
    """Return readable test ids."""
    return [path.relative_to(ROOT).as_posix() for path in pages]


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.xla] * (page in PROVING)) for page in SHOWING],
    ids=page_names(SHOWING),
)
def test_page_shows_what_is_printed(page: Path) -> None:
    """Each command of a page prints what the page says (``python tools/console_blocks.py --write`` mends a page)."""
    commands = shown_commands(page.read_text(encoding="utf-8"))
    for shown, printed in zip(commands, run(commands), strict=True):
        assert agrees(shown.output, printed), f"{page.name}:{shown.line}: $ {shown.command}\n" + "\n".join(printed)


@pytest.mark.parametrize("page", PAGES, ids=page_names(PAGES))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    """A relative link names a file of the repository."""
    targets = re.findall(r"\]\((?!https?://|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


# --- the reader of the blocks itself --------------------------------------------------------------------------------

PAGE = """Text
```console
$ echo one; echo two
one
two
$ true
```
```sh
$ never run
```
"""


def test_commands_are_found_with_their_output() -> None:
    """Only console blocks count; output belongs to the command above it."""
    assert shown_commands(PAGE) == [Shown(3, "echo one; echo two", ("one", "two")), Shown(6, "true", ())]


def test_commands_really_run() -> None:
    """Output and error output come as a terminal shows them, in one folder that holds the examples."""
    commands = [Shown(1, command, ()) for command in ("echo a >f; echo b >&2", "cat f", "ls")]
    assert run(commands) == [("b",), ("a",), ("examples", "f")]


def test_differing_output_is_noticed_and_written() -> None:
    """A wrong line does not agree, three dots do, and writing puts the printed lines in place."""
    assert not agrees(("one", "2"), ("one", "two"))
    assert not agrees(("one",), ("one", "two"))
    assert agrees(("one", "..."), ("one", "two", "three"))
    commands = shown_commands(PAGE)
    assert with_output(PAGE, commands, [("new",), ()]) == PAGE.replace("one\ntwo\n", "new\n", 1)


# --- what pages claim about the repository --------------------------------------------------------------------------


def test_fidelity_names_tests_that_exist() -> None:
    """Every test file or folder that docs/fidelity.md names is there."""
    named = set(re.findall(r"`(tests/[\w/]+(?:\.py)?)`", (ROOT / "docs" / "fidelity.md").read_text(encoding="utf-8")))
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("area", ["commlens", "commlens.topology"])
def test_design_note_names_what_is_exported(area: str) -> None:
    """Every name that the note on public names lists for an area can be imported from it."""
    note = (ROOT / "docs" / "design" / "0001-public-names.md").read_text(encoding="utf-8")
    [section] = re.findall(rf"### `{re.escape(area)}`\n(.*?)\n\n(?:#|`)", note, flags=re.DOTALL)
    names = re.findall(r"`(\w+)(?:\(.*?\))?`", section)
    assert len(names) > 5
    facade = importlib.import_module(area)
    assert [name for name in names if name != "jax" and not hasattr(facade, name)] == []
