"""Where answers go."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.cli import main
from commlens.cli.output import encodable

if TYPE_CHECKING:
    from command_line import Run

STEP = "data/train_step.hlo"


class Terminal(io.StringIO):
    """A stream with somebody in front of it."""

    def isatty(self) -> bool:
        """Say that it is a terminal."""
        return True


def standard_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Put a terminal with colours behind standard output."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    return terminal


def without_colours(text: str) -> str:
    """Take the commands for colours out of a text."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("arguments", [("report", STEP, "--mesh", "data=2,model=4"), ("explain", "[4,2]<=[2,4]T(1,0)")])
@pytest.mark.parametrize("columns", [80, 200])
def test_colours_are_added_and_nothing_else(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], columns: int
) -> None:
    """On a terminal the same text comes in colours; into a pipe it comes without."""
    plain = run(*arguments, columns=columns).out
    assert "\x1b" not in plain
    terminal = standard_terminal(monkeypatch)
    run(*arguments, columns=columns)
    assert "\x1b[1m" in terminal.getvalue()
    assert without_colours(terminal.getvalue()) == plain


def test_no_colours_where_none_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR turns colours off on a terminal too."""
    terminal = standard_terminal(monkeypatch)
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["explain", "{{0,1}}"]) == 0
    assert "0 A0" in terminal.getvalue()
    assert re.search(r"\x1b\[[39][0-9]m", terminal.getvalue()) is None


@pytest.mark.parametrize("form", ["json", "csv", "markdown"])
def test_forms_for_programs_are_never_coloured(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """Only the table has colours."""
    terminal = standard_terminal(monkeypatch)
    assert main(["explain", "{{0,1}}", "--format", form]) == 0
    assert "{{0,1}}" in terminal.getvalue()
    assert "\x1b" not in terminal.getvalue()


def test_markup_in_names_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """What looks like the terminal library's markup is text."""
    terminal = standard_terminal(monkeypatch)
    assert main(["explain", "mesh['[red]x[/red]'=2,':smile:'=2] {':smile:'}"]) == 0
    text = without_colours(terminal.getvalue())
    assert "[red]x[/red] 1" in text
    assert ":smile:" in text


@given(st.text(), st.sampled_from(["ascii", "latin-1", "cp1252", "utf-8"]))
def test_every_text_can_be_written(text: str, encoding: str) -> None:
    """What is written in an encoding is encodable in it, and left alone where it was so already."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    written = encodable(text, encoding)
    written.encode(encoding)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        assert written != text
    else:
        assert written == text
