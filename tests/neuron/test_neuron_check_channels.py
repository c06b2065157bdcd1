"""The rules about Neuron's channels and reductions: what each finds or must leave alone beyond the documented cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from checking import ADD, module_of, one_of, problems_in
from neuron_checking import gathered, lines_of, neuron_ids

if TYPE_CHECKING:
    pass


def test_sends_and_recvs() -> None:
    """Each needs an id, and one that the other end has; transfers to the host are left out."""
    pair = [*lines_of("send", 7, 0), *lines_of("recv", 7, 1)]
    assert neuron_ids(problems_in(module_of(*pair), target="trn2")) == []
    bare = [line.replace(", channel_id=7", "") for line in pair]
    assert neuron_ids(problems_in(module_of(*bare), target="trn2")) == ["NEU-SEND-RECV-CHANNEL"] * 2
    host = [line.replace("channel_id=7", "channel_id=7, is_host_transfer=true") for line in pair[:3]]
    assert neuron_ids(problems_in(module_of(*host), target="trn2")) == []


def test_channels_of_jax_are_an_error_on_neuron() -> None:
    """One id of 1 for all is a note elsewhere."""
    lines = [gathered("a", "{{0,1}}", channel=1), *lines_of("all-reduce", 1, 1), *lines_of("all-reduce", 1, 2)]
    found = problems_in(module_of(*lines, header="num_partitions=2"), target="trn2")
    assert one_of(found, "channel-two-opcodes").severity == "note"
    assert one_of(found, "NEU-CHANNEL-MIXED-OPCODES").instructions == ["a", "x1", "x2"]
    assert one_of(found, "NEU-CHANNEL-DUP").instructions == ["x1", "x2"]


@pytest.mark.parametrize(
    ("opcode", "header", "changed"),
    [
        ("all-reduce", "replica_count=2", []),
        ("all-reduce", "", []),
        ("all-reduce", "replica_count=2, num_partitions=2", ["x1", "x2"]),
        ("all-to-all", "replica_count=2", ["x1", "x2"]),
        ("collective-broadcast", "replica_count=2, num_partitions=2", []),
    ],
)
def test_second_collectives_without_an_id(opcode: str, header: str, changed: list[str]) -> None:
    """The enforcer takes no id for one value; named is what would then join other devices."""
    more = {"all-reduce": ", to_apply=add", "all-to-all": ", dimensions={0}"}.get(opcode, "")
    lines = [f"x{n} = f32[8] {opcode}(p), replica_groups={{{{0,1}}}}{more}" for n in range(3)]
    found = [
        each
        for each in problems_in(module_of(*lines, header=header), target="trn2")
        if each.rule.id == "NEU-CHANNEL-DUP"
    ]
    assert [each.instructions for each in found] == [changed] * bool(changed)


@pytest.mark.parametrize(
    ("element", "operation", "known"),
    [("f32", "add", True), ("f32", "maximum", True), ("s32", "minimum", True), ("f32", "multiply", False),
     ("pred", "and", True), ("pred", "or", True), ("s32", "or", False), ("f32", "subtract", False)],
)  # fmt: skip
def test_reductions(element: str, operation: str, known: bool) -> None:
    """Sums, maxima and minima are known, and and and or of booleans are among them."""
    reducer = ADD.replace("add {", "both {").replace("add(", f"{operation}(").replace("f32", element)
    lines = [
        f"a = {element}[8] parameter(2)",
        f"r = {element}[8] all-reduce(a), replica_groups={{{{0,1}}}}, to_apply=both",
    ]
    found = neuron_ids(problems_in(module_of(*lines, before=reducer), target="trn2"))
    assert found == ["NEU-REDUCE-OP"] * (not known)


@pytest.mark.parametrize(("operation", "known"), [("add", True), ("multiply", False)])
def test_reductions_in_a_wider_type(operation: str, known: bool) -> None:
    """Compilers widen the operands of a reducer and narrow its result: what counts is what stands between."""
    reducer = f"""
wide {{
  x = bf16[] parameter(0)
  a = f32[] convert(x)
  y = bf16[] parameter(1)
  b = f32[] convert(y)
  c = f32[] {operation}(a, b)
  ROOT d = bf16[] convert(c)
}}
"""
    lines = ["a = bf16[8] parameter(2)", "r = bf16[8] all-reduce(a), replica_groups={{0,1}}, to_apply=wide"]
    found = problems_in(module_of(*lines, before=reducer), target="trn2")
    assert [each.message.partition("found ")[2] for each in found] == [f"{operation} in wide"] * (not known)
