"""The three predicates by name and by number, against the documented sets and against their masks bit by bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from commlens import hlo
from commlens.neuron import OPCODES_2_24, has_channel, is_collective, is_collective_stream_checked
from commlens.neuron.predicates import (
    CHANNEL_CLASS,
    COLLECTIVE_CLASS,
    ENFORCED_OPCODES,
    NEXT_CHANNEL_ID_LISTING,
)
from neuron_cases import cases, section
from xla_cases import cases as xla_cases

Predicate = Callable[[str | int], bool]

PREDICATES: dict[str, Predicate] = {
    "neuron::IsCollective": is_collective,
    "checker58": is_collective_stream_checked,
    "NextChannelId": has_channel,
}
EDGES = {"IsCollective": is_collective, "checker58": is_collective_stream_checked, "NextChannelId": has_channel}
EVERY = pytest.mark.parametrize("predicate", PREDICATES.values(), ids=PREDICATES)


def test_opcodes_are_those_of_the_build() -> None:
    """123 names, each at its number."""
    table = section("opcode_table_2_24")
    assert list(OPCODES_2_24) == table["names_in_order"]
    assert len(OPCODES_2_24) == table["count"]
    assert {name: OPCODES_2_24[int(number, 16)] for number, name in table["anchors"].items()} == {
        name: name for name in table["anchors"].values()
    }


@pytest.mark.parametrize(
    "case",
    [case for case in section("predicates") if case["predicate"] in PREDICATES],
    ids=lambda case: case["predicate"],
)
def test_predicate_chooses_the_documented_opcodes(case: dict[str, Any]) -> None:
    """By name and by number it holds for the listed opcodes and for nothing else."""
    predicate = PREDICATES[case["predicate"]]
    assert sorted(name for name in OPCODES_2_24 if predicate(name)) == case["names"]
    assert [number for number in range(256) if predicate(number)] == [int(each, 16) for each in case["opcodes_hex"]]


def test_names_of_the_sets() -> None:
    """The sets that passes go by are those of the cases, the thirteen of the listing and the class of #81 included."""
    known = {case["predicate"]: set(case.get("names", ())) for case in section("predicates")}
    assert known["neuron::IsCollective"] == ENFORCED_OPCODES
    assert known["checker58"] == known["DynCast<HloCollectiveInstruction> (#81)"] == COLLECTIVE_CLASS
    assert known["NextChannelId"] == CHANNEL_CLASS
    [listing] = [case for case in section("predicates") if case["predicate"] == "NextChannelId_seed_listing"]
    assert {OPCODES_2_24.index(name) for name in NEXT_CHANNEL_ID_LISTING} == {
        int(each, 16) for each in listing["opcodes_hex"]
    }
    assert set(listing["missing_vs_evidence"]) == CHANNEL_CLASS - NEXT_CHANNEL_ID_LISTING


@pytest.mark.parametrize("case", cases("predicate_edges"))
def test_edges_of_the_masks(case: dict[str, Any]) -> None:
    """Numbers beside the bounds, below the base of a mask and behind its last bit."""
    assert {name: predicate(case["op"]) for name, predicate in EDGES.items()} == {name: case[name] for name in EDGES}


def selected(low: int, high: int, base: int, bound: int) -> set[int]:
    """List what two masks select, position by position, without any shifting of numbers below the base."""
    direct = {position for position in range(4, 32) if low & (1 << position)}
    rebased = {(base + position) % 256 for position in range(bound) if high & (1 << position)}
    return direct | rebased | {7}


def test_masks_and_bases_belong_together() -> None:
    """Each predicate is its own two masks with its own base, and the checker has nothing beyond them."""
    assert {n for n in range(256) if is_collective(n)} == selected(0x20000410, 0x80011, 0x53, 0x14)
    stock = selected(0x650, 0x810000000000001, 0x1C, 0x3C)
    assert {n for n in range(256) if is_collective_stream_checked(n)} == stock
    beyond = {0x1D, 0x1F, 0x53, 0x54, 0x66, 0x67}
    assert {n for n in range(256) if has_channel(n)} == stock | beyond
    assert stock & beyond == set()


@EVERY
def test_names_and_numbers_agree(predicate: Predicate) -> None:
    """A name and its number get the same answer; numbers without a name get none."""
    assert [predicate(name) for name in OPCODES_2_24] == [predicate(number) for number in range(len(OPCODES_2_24))]
    assert not any(predicate(number) for number in range(len(OPCODES_2_24), 256))


@EVERY
@pytest.mark.parametrize(
    "opcode", [-1, 256, 1 << 40, True, "", "acos", "all_gather", "All-Gather", "7", 1.5, None, b"send", [7]]
)
def test_what_is_no_opcode_of_the_build_is_refused(predicate: Callable[[Any], bool], opcode: object) -> None:
    """No number outside a byte, no truth value, no name that the build does not have, nothing of another type."""
    with pytest.raises(ValueError, match=r"^expected (one of the 123 opcodes|the number of an opcode)"):
        predicate(opcode)


def test_a_near_name_is_suggested() -> None:
    """What is started in short is no opcode in memory; the message says what may be meant."""
    with pytest.raises(ValueError, match="found 'reduce-scatter-start'; did you mean 'reduce-scatter'?"):
        is_collective("reduce-scatter-start")


@pytest.mark.parametrize(("given", "expect"), xla_cases("class_membership"))
def test_sets_are_upstreams_classes(given: dict[str, Any], expect: list[str]) -> None:
    """Two predicates are classes of upstream XLA; the other classes lie in them, or outside all, as theirs do."""
    known = set(expect)
    match given["class"].split()[0]:
        case "collective":
            assert known == COLLECTIVE_CLASS
        case "channel":
            assert known == CHANNEL_CLASS
        case "all_reduce_base":
            assert known < COLLECTIVE_CLASS
        case "IsNonFusionCollective":
            assert {each for each in known if not each.endswith("-done")} == set(
                filter(hlo.is_collective, OPCODES_2_24)
            )
        case "IsAsyncCollectiveStartOp":
            assert known - {"async-start"} == {each for each in CHANNEL_CLASS if each.endswith("-start")}
        case other:
            assert other == "IsAsyncCollectiveDoneOp"
            assert not known & (CHANNEL_CLASS | COLLECTIVE_CLASS | ENFORCED_OPCODES)
