"""The rules about Neuron's ranks, groups and cores: what each finds or must leave alone beyond the documented cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checking import ids_of, module_of, one_of, problems_in
from neuron_checking import NEURON, braces, gathered, neuron_ids
from strategies import iota_groups

if TYPE_CHECKING:
    from commlens.hlo import Target
    from commlens.topology import IotaReplicaGroupList


@pytest.mark.parametrize(("line", "found"), [
    ("x = f32[8] all-reduce(p), replica_groups={{0,1},{-1}}, to_apply=add", True),
    ("x = f32[8] collective-permute(p), source_target_pairs={{0,-2}}", True),
    ("x = f32[8] all-reduce(p), replica_groups={{0,1},{2,3}}, to_apply=add", False),
    ("x = f32[8] all-reduce(p), replica_groups=[1,4]<=[4], to_apply=add", False),
    ("x = f32[8] all-reduce(p), replica_groups={}, to_apply=add", False),
])  # fmt: skip
def test_negative_ranks(line: str, found: bool) -> None:
    """Groups and pairs alike."""
    assert ("NEU-RANK-NEG" in neuron_ids(problems_in(module_of(line), target="trn2"))) is found


def test_uneven_groups_of_an_all_reduce() -> None:
    """XLA allows them there, Neuron does not; each collective is named."""
    lines = [f"{name} = f32[8] all-reduce(p), replica_groups={{{{0,1}},{{2}}}}, to_apply=add" for name in "ab"]
    assert ids_of(problems_in(module_of(*lines))) == []
    found = problems_in(module_of(*lines), target="inf2")
    assert [(each.rule.id, each.instructions) for each in found] == [
        ("NEU-GROUP-UNEVEN", ["a"]),
        ("NEU-GROUP-UNEVEN", ["b"]),
    ]


@pytest.mark.parametrize("cores", range(1, 200))
def test_cores_of_trn1(cores: int) -> None:
    """1, 2, 8, 16 and multiples of 32, counted over replicas and partitions."""
    fine = cores in (1, 2, 8, 16) or cores % 32 == 0
    header = f"replica_count={cores // 2}, num_partitions=2" if cores % 2 == 0 else f"replica_count={cores}"
    assert neuron_ids(problems_in(module_of(header=header), target="trn1")) == ["NEU-TRN1-CORES"] * (not fine)


def test_cores_need_known_counts() -> None:
    """Groups are no proof of how many cores there are."""
    line = gathered("g", "{{0,1,2,3}}", channel=1).replace("f32[16]", "f32[32]")
    assert neuron_ids(problems_in(module_of(line), target="trn1")) == []


@pytest.mark.parametrize("target", NEURON)
@pytest.mark.parametrize("lnc", [None, 1, 2, 4])
def test_lnc(target: Target, lnc: int | None) -> None:
    """The older two have 1 only, the newer two 1 or 2; where none is named nothing is said."""
    allowed = (1,) if target in ("trn1", "inf2") else (1, 2)
    found = neuron_ids(problems_in(module_of(), target=target, lnc=lnc))
    assert found == ["NEU-LNC-ARCH"] * (lnc is not None and lnc not in allowed)


def slow_symmetric(group: list[int], on_node: int) -> bool:
    """Whether every node of a group has the same places, found by looking at all pairs of ranks."""
    return all(
        any(other // on_node == node and other % on_node == rank % on_node for other in group)
        for rank in group
        for node in {each // on_node for each in group}
    )


@given(
    st.lists(st.lists(st.integers(0, 11), min_size=1, max_size=6, unique=True), min_size=1, max_size=3),
    st.integers(1, 4),
)
def test_symmetric_nodes(groups: list[list[int]], on_node: int) -> None:
    """Groups are unlike on their nodes when some rank has no partner in its place on another."""
    found = neuron_ids(problems_in(module_of(gathered("g", braces(groups))), target="trn2", ranks_per_node=on_node))
    assert ("NEU-SYMMETRIC-NODES" in found) is not all(slow_symmetric(group, on_node) for group in groups)


@given(iota_groups(), st.integers(1, 9))
def test_symmetric_nodes_of_lists_that_are_not_written_out(groups: IotaReplicaGroupList, on_node: int) -> None:
    """Lists in short are judged as they would be written out."""
    module = module_of(f"r = f32[8] all-reduce(p), replica_groups={groups}, to_apply=add")
    found = neuron_ids(problems_in(module, target="trn2", ranks_per_node=on_node))
    assert ("NEU-SYMMETRIC-NODES" in found) is not all(slow_symmetric(group, on_node) for group in groups.groups())


def test_a_long_group_is_named_by_its_first_ranks() -> None:
    """No number is cut in its middle."""
    module = module_of(gathered("g", braces([[*range(90, 130), 1000]])))
    found = one_of(problems_in(module, target="trn2", ranks_per_node=64), "NEU-SYMMETRIC-NODES")
    assert (
        "found 90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100, 101, 102, 103, 104, 105 and 25 more; pick" in found.message
    )


@pytest.mark.parametrize(
    ("target", "lnc", "odd"),
    [
        ("trn1", None, True),
        ("trn2", None, False),
        ("trn2", 2, False),
        ("trn2", 1, False),
        ("trn3", None, False),
        ("inf2", None, False),
    ],
)
def test_ranks_per_node_follow_from_the_machine(target: Target, lnc: int | None, odd: bool) -> None:
    """32 on trn1, 64 or 128 on trn2; where it is not known nothing is said."""
    module = module_of(gathered("g", "{{0,33},{1,32}}"))
    assert ("NEU-SYMMETRIC-NODES" in neuron_ids(problems_in(module, target=target, lnc=lnc))) is odd
    far = module_of(gathered("g", "{{0,65},{1,64}}"))
    assert ("NEU-SYMMETRIC-NODES" in neuron_ids(problems_in(far, target=target, lnc=lnc))) is (
        target == "trn1" or (target == "trn2" and lnc != 1)
    )


@pytest.mark.parametrize("size", range(1, 18))
def test_powers_of_two(size: int) -> None:
    """A size with more than one bit is noted, once for all collectives of a list."""
    ids = braces([[*range(size)]])
    lines = [f"{name} = f32[8] all-reduce(p), replica_groups={ids}, to_apply=add" for name in "ab"]
    found = [each for each in problems_in(module_of(*lines), target="trn2") if each.rule.id == "NEU-RDH-POW2"]
    assert [each.instructions for each in found] == [["a", "b"]] * (size.bit_count() > 1)
    assert all(each.severity == "note" for each in found)
