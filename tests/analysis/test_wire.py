from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.analysis.wire import largest, point_to_point_bytes, ring_bytes, shown

RING_OPCODES = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all")


def received_on_a_ring(opcode: str, size: int, operand: int, result: int) -> Fraction:
    """Send blocks round a ring, step by step, and count what device 0 receives."""
    received = Fraction(0)
    if opcode == "all-to-all":  # one block of my operand's size for me from each other device
        for peer in range(size):
            received += Fraction(operand, size) if peer != 0 else 0
        return received
    rounds = {"all-gather": [result], "reduce-scatter": [operand], "all-reduce": [operand, operand]}[opcode]
    for payload in rounds:
        blocks = 1  # that device 0 has seen; the first is its own
        while blocks < size:
            blocks += 1
            received += Fraction(payload, size)
    return received


@given(
    opcode=st.sampled_from(RING_OPCODES),
    size=st.integers(1, 40),
    operand=st.integers(0, 10**6),
    result=st.integers(0, 10**6),
)
def test_ring_figures_count_the_blocks_that_arrive(opcode: str, size: int, operand: int, result: int) -> None:
    """A device receives exactly the blocks that the ring brings it, however the size divides them."""
    figure = ring_bytes(opcode, size, operand_bytes=operand, result_bytes=result)
    assert figure == received_on_a_ring(opcode, size, operand, result)


@pytest.mark.parametrize("opcode", [*RING_OPCODES, "collective-broadcast"])
def test_a_lone_device_receives_nothing_even_of_unknown_size(opcode: str) -> None:
    """In a group of one nothing arrives, and that is known without the payload."""
    assert ring_bytes(opcode, 1, operand_bytes=None, result_bytes=None) == 0


@pytest.mark.parametrize("opcode", [*RING_OPCODES, "collective-broadcast"])
def test_an_unknown_payload_is_unknown_and_never_zero(opcode: str) -> None:
    """Without the payload the figure is None."""
    assert ring_bytes(opcode, 2, operand_bytes=None, result_bytes=None) is None


def test_a_broadcast_hands_the_whole_payload_on() -> None:
    """The size of the group does not matter to collective-broadcast."""
    assert ring_bytes("collective-broadcast", 7, operand_bytes=32, result_bytes=32) == 32


@pytest.mark.parametrize(
    ("opcode", "self_pairs", "figure"),
    [
        ("collective-permute", False, 10),
        ("collective-permute", True, 0),
        ("send", False, 0),
        ("recv", False, 20),
        ("recv", True, 20),
    ],
)
def test_point_to_point_figures(opcode: str, figure: int, *, self_pairs: bool) -> None:
    """A permute receives its operand unless all pairs are self pairs, a recv its result, a send nothing."""
    found = point_to_point_bytes(opcode, operand_bytes=10, result_bytes=20, all_self_pairs=self_pairs)
    assert found == figure


def test_whole_figures_are_ints_and_others_the_nearest_float() -> None:
    """No figure is rounded that need not be; figures beyond the range of floats are rounded to an int."""
    assert (shown(Fraction(6, 3)), type(shown(Fraction(6, 3)))) == (2, int)
    assert shown(Fraction(2000, 3)) == pytest.approx(666.667, abs=1e-3)
    assert shown(Fraction(10**400 + 1, 2)) == (10**400 + 1) // 2


def test_the_largest_of_figures_is_unknown_when_one_is() -> None:
    """A maximum over something unknown is unknown."""
    assert largest([Fraction(3), Fraction(7, 2)]) == Fraction(7, 2)
    assert largest([Fraction(3), None]) is None
    assert largest([]) == 0
