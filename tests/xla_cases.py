"""The facts about upstream XLA in tests/data/xla_cases.json, as parameters of tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

_FILE = Path(__file__).parent / "data" / "xla_cases.json"


def cases(section: str) -> list[ParameterSet]:
    """Give the cases of a section as ``(given, expect)`` pairs under their ids."""
    content: dict[str, list[dict[str, Any]]] = json.loads(_FILE.read_text(encoding="utf-8"))
    return [pytest.param(case["input"], case["expect"], id=case["id"]) for case in content[section]]
