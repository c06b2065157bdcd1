"""The facts about Neuron in tests/data/neuron_cases.json, as parameters of tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

_FILE = Path(__file__).parent / "data" / "neuron_cases.json"


def section(name: str) -> Any:
    """Return a section as it stands."""
    content: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return content[name]


def cases(name: str) -> list[ParameterSet]:
    """Give the cases of a section that is a list, one parameter each, under their names or numbers."""
    return [pytest.param(case, id=f"{name}-{case.get('name', number)}") for number, case in enumerate(section(name))]
