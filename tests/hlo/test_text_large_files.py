"""Large texts are read, so that what others do to their files does not matter."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from commlens.hlo import discover, load

if TYPE_CHECKING:
    from pathlib import Path

TEXT = (
    b"HloModule m\n\nENTRY e {\n  p = f32[8]{0} parameter(0)\n  ROOT g = f32[16]{0} all-gather(p), dimensions={0}\n}\n"
)


def test_a_file_may_be_cut_short_while_its_module_is_in_use(tmp_path: Path) -> None:
    """A text of many megabytes is the module's own: what another process writes over its file is not seen."""
    path = tmp_path / "large.txt"
    path.write_bytes(TEXT + b"\n" * (20 * 2**20))
    module = load(path)
    os.truncate(path, 10)
    assert [site.name for site in discover(module).sites] == ["g"]
    assert module.to_bytes().startswith(TEXT)
    assert len(module.to_bytes()) == len(TEXT) + 20 * 2**20
