"""The whole collection before XLA: read, written and read again, as it is and after every pass. Minutes; ``make soak``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlens import Module, load_all
from rereading import SPECS, all_files, changed_by_passes, changed_by_reading, collected

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.corpus


@pytest.fixture(scope="module")
def modules(corpus: Path) -> dict[str, Module]:
    """Return all modules of the collection that XLA may read."""
    return collected(all_files(corpus), corpus)


def test_load_and_write_is_the_identity(modules: dict[str, Module]) -> None:
    """Every module, written and loaded again, has the same bytes."""
    for name, module in modules.items():
        (again,) = load_all(module.to_bytes())
        assert again.to_bytes() == module.to_bytes(), name


def test_rows_are_the_same_after_xla(modules: dict[str, Module], xla_python: str) -> None:
    """Rows of the module, of XLA's proto and of XLA's text; no module ends XLA."""
    changed, read = changed_by_reading(modules, xla_python)
    assert changed == []
    assert read > 100


@pytest.mark.parametrize("spec", SPECS)
def test_xla_reads_every_module_after_every_pass(spec: str, modules: dict[str, Module], xla_python: str) -> None:
    """XLA reads what it read before, and prints the rows that the pass made."""
    changed, made = changed_by_passes(modules, SPECS[spec], xla_python)
    assert changed == []
    assert made > 20 or spec == "collective-stream-id-checker"
