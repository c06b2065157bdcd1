"""The rules about Neuron's topologies, streams and tags: what each finds or must leave alone beyond the documented cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from checking import module_of, one_of, problems_in
from neuron_checking import braces, distinct_lists, gathered, neuron_ids

if TYPE_CHECKING:
    pass


@pytest.mark.parametrize(("number", "named"), [(12, []), (13, ["g13"]), (15, ["g13", "g14", "g15"])])
def test_too_many_topologies(number: int, named: list[str]) -> None:
    """The first collective of each list beyond the twelfth is named."""
    found = [
        each
        for each in problems_in(module_of(*distinct_lists(number)), target="trn1")
        if each.rule.id == "NEU-COMM-MAX"
    ]
    assert [each.instructions for each in found] == [named] * bool(named)
    assert all(f"found {number};" in each.message for each in found)


def test_spellings_are_one_topology() -> None:
    """A list and an iota of the same groups count once; another order of the groups counts again."""
    lists = distinct_lists(12)
    same = [gathered("a", "[8,2]<=[16]"), gathered("b", braces([[at, at + 1] for at in range(0, 16, 2)]))]
    turned = gathered("c", braces([[at, at + 1] for at in range(14, -1, -2)]))
    assert "NEU-COMM-MAX" not in neuron_ids(problems_in(module_of(*lists, *same), target="trn2"))
    assert "NEU-COMM-MAX" in neuron_ids(problems_in(module_of(*lists, *same, turned), target="trn2"))


@pytest.mark.parametrize(
    ("value", "rule"),
    [("0", None), ("3", None), ("03", None), ("4", "MAX"), ("17", "MAX"), ("9" * 50, "MAX"), ("", "NONDIGIT"),
     ("-1", "NONDIGIT"), ("1.0", "NONDIGIT"), ("٣", "NONDIGIT"), ("٩", "NONDIGIT"), ("a", "NONDIGIT")],
)  # fmt: skip
def test_stream_ids(value: str, rule: str | None) -> None:
    """Digits of 0 to 3 are streams; larger numbers and other texts are none."""
    found = neuron_ids(problems_in(module_of(gathered("g", "{{0,1}}", f'stream_id="{value}"')), target="trn3"))
    assert found == ([] if rule is None else [f"NEU-STREAM-{rule}"])


def test_one_stream_per_topology_in_both_voices() -> None:
    """Without a target it is a warning of stream-split, with one of Neuron's an error; never both."""
    module = module_of(
        gathered("a", "{{0,1},{2,3}}", 'stream_id="0"'),
        gathered("b", "[2,2]<=[4]", 'stream_id="1"'),
        gathered("c", "{{0,2},{1,3}}", 'stream_id="1"'),
    )
    [plain] = [each for each in problems_in(module) if each.rule.id.startswith("stream")]
    [target] = [each for each in problems_in(module, target="trn1") if "STREAM" in each.rule.id.upper()]
    assert (plain.rule.id, plain.severity, plain.instructions) == ("stream-split", "warning", ["a", "b"])
    assert (target.rule.id, target.severity, target.instructions) == ("NEU-STREAM-PER-GROUP", "error", ["a", "b"])
    assert "found 0 (a); 1 (b)" in plain.message


def test_topologies_are_those_of_devices() -> None:
    """Groups of replicas and groups of global ids are one topology where the same devices meet."""
    lines = [gathered("a", "{{0,1}}", 'stream_id="0"'), gathered("b", "{{0,2},{1,3}}", 'stream_id="1"', channel=1)]
    header = "replica_count=2, num_partitions=2"
    assert one_of(problems_in(module_of(*lines, header=header)), "stream-split").instructions == ["a", "b"]
    assert neuron_ids(problems_in(module_of(*lines))) == []


def test_partly_stamped() -> None:
    """Those without a stream id are named; permutes, sends and recvs never have one."""
    permute = "c = f32[8] collective-permute(p), source_target_pairs={{0,1}}"
    stamped = gathered("a", "{{0,1},{2,3}}", 'stream_id="0"')
    found = problems_in(module_of(stamped, gathered("b", "{{0,2},{1,3}}"), permute))
    assert one_of(found, "stream-partial").instructions == ["b"]
    assert neuron_ids(problems_in(module_of(stamped, permute))) == []
    assert neuron_ids(problems_in(module_of(gathered("b", "{{0,2},{1,3}}"), permute))) == []


@pytest.mark.parametrize(
    ("tag", "contradicts"),
    [("fsdp_all_gather", False), ("tp_all_gather", False), ("all_gather", False), ("my_tag", False), ("gather", False),
     ("fsdp_reduce_scatter", True), ("tp_all_reduce", True), ("all_to_all", True), ("all_gather_reduce", False)],
)  # fmt: skip
def test_tags_that_contradict(tag: str, contradicts: bool) -> None:
    """Only a tag that ends in another operation's name contradicts the opcode."""
    found = neuron_ids(problems_in(module_of(gathered("g", "{{0,1}}", f'collective_type="{tag}"'))))
    assert found == ["stream-type-opcode"] * contradicts


def test_tags_of_one_kind_over_several_lists() -> None:
    """Exemplars that compete are all named, per kind of parallelism; other tags and lists do not matter."""
    lines = [
        gathered("a", "{{0,1},{2,3}}", 'collective_type="tp_all_gather"'),
        gathered("b", "[2,2]<=[4]", 'collective_type="tp_all_gather"'),
        gathered("c", "{{0,2},{1,3}}", 'collective_type="fsdp_all_gather"'),
        gathered("d", "{{0,3},{1,2}}", 'collective_type="moe_all_gather"'),
    ]
    assert neuron_ids(problems_in(module_of(*lines))) == []
    also = gathered("e.1", "{{0,2},{1,3}}", 'collective_type="tp_all_gather"')
    assert one_of(problems_in(module_of(*lines, also)), "stream-type-groups").instructions == ["a", "b", "e.1"]
