from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import twins_participants as twins
from commlens.errors import GrammarError
from commlens.topology.pairs import SourceTargetPairs, parse_source_target_pairs
from xla_cases import cases

INT64 = st.integers(-(2**63), 2**63 - 1)
PAIRS = st.lists(st.tuples(INT64, INT64), max_size=8)
SMALL_PAIRS = st.lists(st.tuples(st.integers(-1, 5), st.integers(-1, 5)), max_size=6)
GAPS = st.sampled_from(["", " ", "\n\t", "/* , } */", "// {\n", " /**/ "])


@pytest.mark.parametrize(("question", "expect"), cases("source_target_max_id"))
def test_max_id_is_upstreams(question: dict[str, Any], expect: int) -> None:
    """The largest id, and -1 for no pairs."""
    assert SourceTargetPairs(question["source_target_pairs"]).max_id == expect


@pytest.mark.parametrize(("question", "expect"), cases("source_target_to_string"))
def test_text_is_upstreams(question: dict[str, Any], expect: str) -> None:
    """Pairs print without spaces, and what is printed reads back."""
    pairs = SourceTargetPairs(question["source_target_pairs"])
    assert str(pairs) == expect
    assert parse_source_target_pairs(expect) == pairs


@pytest.mark.parametrize(("question", "expect"), cases("source_target_cycle_type"))
def test_cycle_type_is_upstreams(question: dict[str, Any], expect: str) -> None:
    """Only rings over all ids, closing pair in its place, are cycles."""
    assert SourceTargetPairs(question["source_target_pairs"]).cycle_type() == expect


@pytest.mark.parametrize(("question", "expect"), cases("source_target_cycle_indices"))
def test_cycle_indices_are_upstreams(question: dict[str, Any], expect: dict[str, Any]) -> None:
    """The older rule goes by the direction of most pairs."""
    direction, indices = SourceTargetPairs(question["source_target_pairs"]).cycle_indices()
    assert (direction, list(indices)) == (expect["type"], expect["indices"])


@pytest.mark.parametrize(("question", "expect"), cases("source_target_validate"))
def test_validity_is_upstreams(question: dict[str, Any], expect: dict[str, Any]) -> None:
    """Validation raises exactly where upstream's verifier objects, for the reason it gives."""
    words = {"source twice": "every source in one pair", "negative": "found -1", "target >= limit": "found 4"}
    pairs = SourceTargetPairs(question["source_target_pairs"])
    if expect["valid"]:
        pairs.validate(question["limit"])
    else:
        with pytest.raises(ValueError, match=words[expect["reason"]]):
            pairs.validate(question["limit"])


@pytest.mark.parametrize(("question", "expect"), cases("source_target_groups"))
def test_groups_of_pairs_are_upstreams(question: dict[str, Any], expect: list[list[int]] | str) -> None:
    """Each pair is a group of two, in order.

    Upstream's helper also answers for other asynchronous opcodes, with their own groups, and refuses synchronous ones;
    here pairs have no opcode, so those cases have nothing to ask.
    """
    if question["opcode"] == "collective-permute-start":
        assert SourceTargetPairs(question["source_target_pairs"]).groups() == expect


@given(st.integers(0, 6), st.sampled_from([-2, -1, 1, 2]), st.booleans())
def test_rings_by_building_them(size: int, step: int, flip: bool) -> None:
    """cycle_type agrees with the twin on rings, near-rings and rings in another order."""
    ring = [(each, (each + step) % size) for each in range(size)]
    listed = ring[::-1] if flip else ring
    assert SourceTargetPairs(listed).cycle_type() == twins.cycle_type(listed)


@given(SMALL_PAIRS)
def test_cycle_questions_by_looking(listed: list[tuple[int, int]]) -> None:
    """Both rules agree with a reading of them in loops."""
    pairs = SourceTargetPairs(listed)
    assert pairs.cycle_type() == twins.cycle_type(listed)
    forward = sum(source < target for source, target in listed) > sum(source >= target for source, target in listed)
    closing = [index for index, (s, t) in enumerate(listed) if (s > t if forward else s < t)]
    assert pairs.cycle_indices() == ("forward" if forward else "backward", tuple(closing))


@given(SMALL_PAIRS, st.none() | st.integers(1, 6))
def test_faults_by_counting(listed: list[tuple[int, int]], limit: int | None) -> None:
    """There are faults exactly where counting finds an id out of range or a repeated source or target."""
    ids = [each for pair in listed for each in pair]
    expected = ["id-out-of-range"] * any(each < 0 or (limit is not None and each >= limit) for each in ids)
    for role in (0, 1):
        column = [pair[role] for pair in listed]
        expected += ["pair-repeated"] * (len(set(column)) < len(column))
    pairs = SourceTargetPairs(listed)
    assert [fault.rule for fault in pairs.faults(limit)] == expected
    if expected:
        with pytest.raises(ValueError, match="expected"):
            pairs.validate(limit)
    else:
        pairs.validate(limit)


def test_all_faults_are_named_at_once() -> None:
    """One error carries every fault, each with its ids."""
    with pytest.raises(ValueError, match=r"found -1 and 9;.*found source 0 in several;.*found target 1 in several"):
        SourceTargetPairs([(0, 1), (0, 1), (-1, 9)]).validate(4)


@given(PAIRS)
def test_values_round_trip(listed: list[tuple[int, int]]) -> None:
    """Pairs give back what they hold in every form, hash and compare by place, and survive pickling."""
    pairs = SourceTargetPairs(listed)
    assert pairs.pairs == tuple(listed) == tuple(pairs)
    assert [pairs[index] for index in range(len(pairs))] == listed
    assert pairs.to_array().tolist() == pairs.groups() == [list(pair) for pair in listed]
    same = SourceTargetPairs(np.array(listed, dtype=np.int64).reshape(-1, 2))
    assert (pairs, hash(pairs)) == (same, hash(same))
    assert (pairs == SourceTargetPairs(listed[::-1])) == (listed == listed[::-1])
    assert pickle.loads(pickle.dumps(pairs)) == pairs  # noqa: S301 - our own bytes
    assert SourceTargetPairs(pairs) == pairs


def test_pairs_are_frozen() -> None:
    """Neither the array nor the attributes can be changed."""
    pairs = SourceTargetPairs([(0, 1)])
    with pytest.raises(ValueError, match="read-only"):
        pairs.to_array()[0, 0] = 5
    with pytest.raises(AttributeError):
        pairs.pairs = ()  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue]
    assert pairs != [(0, 1)]


@pytest.mark.parametrize(
    "values",
    [
        [(0, 1, 2)],
        [(0,)],
        [(0, 1), (2,)],
        [0, 1],
        [(0.5, 1)],
        [(2**63, 0)],
        [(-1, 2**63)],
        [("0", "1")],
        [(True, False)],
        5,
    ],
)
def test_what_is_no_pair_is_refused(values: Any) -> None:
    """Only pairs of ints that fit 64 bits are pairs."""
    with pytest.raises(ValueError, match="expected pairs of two ints that fit in 64 bits"):
        SourceTargetPairs(values)


@given(PAIRS, st.data())
def test_text_round_trips_with_any_spacing(listed: list[tuple[int, int]], data: st.DataObject) -> None:
    """White space and comments may stand between all tokens."""
    tokens = ["{"]
    for index, (source, target) in enumerate(listed):
        tokens += ([","] if index else []) + ["{", str(source), ",", str(target), "}"]
    text = "".join(token + data.draw(GAPS) for token in [*tokens, "}"])
    assert parse_source_target_pairs(text).pairs == tuple(listed)
    assert parse_source_target_pairs(str(SourceTargetPairs(listed))).pairs == tuple(listed)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 0),
        ("  ", 2),
        ("{0,1}", 1),
        ("{{0,1,2}}", 1),
        ("{{0,1},{2}}", 7),
        ("{{0,1}, {} }", 8),
        ("{{0,1},}", 7),
        ("{{0,1}{1,0}}", 6),
        ("{{0 1}}", 4),
        ("{{0,a}}", 4),
        ("{{0,1}", 6),
        ("{{0,1}} x", 8),
        ("{{0,9223372036854775808}}", 4),
        ("{{0,-9223372036854775809}}", 4),
        ("{{0,1}, /* open", 8),
        ("[[0,1]]", 0),
        ("{{0,1}, {٣,1}}", 9),
    ],
)
def test_faults_of_the_text_are_placed(text: str, position: int) -> None:
    """Every fault of the grammar says where it is."""
    with pytest.raises(GrammarError) as caught:
        parse_source_target_pairs(text)
    assert caught.value.position == position


def test_long_lists_are_read() -> None:
    """A ring of a hundred thousand devices is read, printed and recognised."""
    ring = SourceTargetPairs([(each, (each + 1) % 100_000) for each in range(100_000)])
    assert parse_source_target_pairs(str(ring)) == ring
    assert ring.cycle_type() == "forward"
    assert ring.faults(100_000) == ()
