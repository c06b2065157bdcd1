"""Files that are rewritten: parts of a text, and what names of products promise. The rest stands with ``commlens opt``."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from commlens.errors import InputError
from commlens.hlo import SourceFile, read_source_file

if TYPE_CHECKING:
    from pathlib import Path

    from commlens import Module

TEXT = "HloModule m\nENTRY e {\n  ROOT p = f32[8] parameter(0)\n}\n"


class Part:
    """A module that is a part of a text."""

    format = "text"

    def __init__(self, text: bytes) -> None:
        self._text = text

    def to_bytes(self) -> bytes:
        """Return the part."""
        return self._text


def test_parts_of_a_text_are_found_one_behind_the_other() -> None:
    """Equal parts are told apart by their order, and what stands before, between and behind them stays."""
    content = b"<same|same|>"
    original = SourceFile("x", content, content, [cast("Module", Part(b"same")) for _ in range(2)])
    parts = iter([Part(b"first"), Part(b"2nd")])
    assert original.rewritten(lambda _: cast("Module", next(parts))) == b"<first|2nd|>"


def test_the_original_as_it_was_read(tmp_path: Path) -> None:
    """Its bytes, its content and its modules; what is not changed is the content itself."""
    path = tmp_path / "m.hlo"
    path.write_text(TEXT + TEXT)
    original = read_source_file(str(path))
    assert (original.raw, original.content, len(original.modules)) == (TEXT.encode() * 2, TEXT.encode() * 2, 2)
    assert (original.form, original.ending) == ("HLO text", ".txt")
    assert original.rewritten(lambda module: module) == original.content
    assert original.modules[1].path == str(path)


def test_text_with_control_characters_is_text(tmp_path: Path) -> None:
    """What a file holds is what its modules say, not what its first bytes look like."""
    path = tmp_path / "m"
    path.write_text(TEXT.replace("parameter(0)", 'parameter(0), metadata={op_name="\x01"}'))
    original = read_source_file(str(path))
    assert original.form == "HLO text"
    original.check_target("out.txt")
    with pytest.raises(InputError, match="^out.pb: expected a name such as out.txt, for .* holds HLO text"):
        original.check_target("out.pb")
