"""Splices: parts of a text replaced, every byte outside them as it was."""

from __future__ import annotations

import pytest

from commlens.hlo import EditError, load
from commlens.hlo.text.splices import Splice, spliced
from text_edits import source


@pytest.mark.parametrize(
    "splices",
    [
        pytest.param([Splice(1, 4, b"x"), Splice(3, 5, b"y")], id="overlapping"),
        pytest.param([Splice(2, 2, b"x"), Splice(2, 2, b"y")], id="at the same place"),
        pytest.param([Splice(1, 4, b"x"), Splice(2, 2, b"y")], id="inside another"),
        pytest.param([Splice(1, 3, b"x"), Splice(1, 3, b"x")], id="the same twice"),
        pytest.param([Splice(8, 11, b"x")], id="behind the end"),
        pytest.param([Splice(0, 1, b"x")], id="before the start"),
    ],
)
def test_splices_that_contradict(splices: list[Splice]) -> None:
    """No byte is changed twice, and none outside the part."""
    with pytest.raises(EditError, match=r"^expected "):
        spliced(b"0123456789", splices, 1)


def test_splices_side_by_side() -> None:
    """Neighbouring splices are made in the order of the text, whatever their own."""
    splices = [Splice(4, 6, b""), Splice(3, 4, b"C"), Splice(4, 4, b"+"), Splice(9, 9, b"!")]
    assert spliced(b"0123456789", splices) == b"012C+678!9"
    assert spliced(b"0123456789", [], 2, 5) == b"234"
    assert load(source("  x = f32[8]{0} copy(a)").decode()).edited([]).name == "m"
