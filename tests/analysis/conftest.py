"""Small modules for tests of the analysis: write the lines that matter, get the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlens.analysis import Report, report
from commlens.hlo import load
from golden_texts import DATA_MODEL, text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlens.analysis import MeshLike

ADD = """
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
"""


@pytest.fixture
def report_of() -> Callable[..., Report]:
    """Return what makes reports; operands ``p`` (f32[16]) and ``q`` (f32[64]) and the reducer ``add`` are there."""

    def make(
        *lines: str, header: str = "", before: str = "", mesh: MeshLike | None = None, full: bool = False
    ) -> Report:
        body = "\n".join(f"  {line}" for line in ("p = f32[16] parameter(0)", "q = f32[64] parameter(1)", *lines))
        text = f"HloModule m{', ' if header else ''}{header}\n{ADD}\n{before}\nENTRY e {{\n{body}\n}}\n"
        return report(load(text), mesh, full=full)

    return make


@pytest.fixture
def golden(report_of: Callable[..., Report]) -> Callable[..., str]:
    """Return what makes the golden text of a module on eight partitions."""

    def make(
        *lines: str, mesh: dict[str, int] | None = DATA_MODEL, header: str = "num_partitions=8", before: str = ""
    ) -> str:
        return text_of(report_of(*lines, header=header, mesh=mesh, before=before))

    return make
