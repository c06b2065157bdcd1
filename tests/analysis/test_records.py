from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, dataclass

import pytest

from commlens.analysis.records import Record


@dataclass(frozen=True, slots=True, eq=False)
class Pair(Record):
    left: int
    right: str
    _hidden: int = 0


def test_a_record_reads_as_attributes_and_as_a_mapping() -> None:
    """Attributes, keys, order, length and conversion to a dict agree."""
    pair = Pair(1, "b")
    assert (pair.left, pair["left"], list(pair), len(pair)) == (1, 1, ["left", "right"], 2)
    assert json.dumps(dict(pair)) == '{"left": 1, "right": "b"}'


def test_records_compare_by_keys_and_values() -> None:
    """Equal records are equal, and equal to a dict; what is hidden does not count."""
    assert Pair(1, "b", 2) == Pair(1, "b", 3)
    assert Pair(1, "b") == {"left": 1, "right": "b"}
    assert Pair(1, "b") != Pair(2, "b")


@pytest.mark.parametrize("key", ["_hidden", "middle", "keys"])
def test_only_keys_are_keys(key: str) -> None:
    """Hidden fields, methods and unknown names are no keys."""
    with pytest.raises(KeyError):
        Pair(1, "b")[key]


def test_records_are_frozen() -> None:
    """A record cannot be changed."""
    with pytest.raises(FrozenInstanceError):
        Pair(1, "b").left = 2  # pyright: ignore[reportAttributeAccessIssue]
