from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import twins_participants as twins
from commlens.topology import CollectiveDeviceList, IotaReplicaGroupList, Mesh, MeshAxesReplicaGroupList
from commlens.topology.group_modes import CollectiveOpGroupMode as Mode
from commlens.topology.verify import verify_groups, verify_pairs
from xla_cases import cases

OPCODES = ["all-reduce", "all-reduce-start", "all-gather", "reduce-scatter", "all-to-all", "collective-broadcast"]
MODES = [mode.snake for mode in Mode]
REASONS = {
    "groups must have one size (all-reduce is exempt)": "groups-uneven",
    "empty group": "group-empty",
    "repeated id": "id-repeated",
    "cross_replica must name all replicas": "groups-incomplete",
    "cross_partition must name all partitions": "groups-incomplete",
    "flattened_id needs groups": "flattened-without-groups",
}


@pytest.mark.parametrize(("question", "expect"), cases("replica_groups_verify"))
def test_verdicts_are_upstreams(question: dict[str, Any], expect: dict[str, Any]) -> None:
    """Valid and invalid groups are told apart as upstream's verifier does, for its reason."""
    faults = verify_groups(
        question["opcode"],
        question["replica_groups"],
        question["mode"],
        question["num_replicas"],
        question["num_partitions"],
    )
    assert (not faults) == expect["valid"]
    if not expect["valid"]:
        assert REASONS[expect["reason"]] in [fault.rule for fault in faults]


@given(
    st.sampled_from(OPCODES),
    st.sampled_from(MODES),
    st.lists(st.lists(st.integers(-1, 5), max_size=3), max_size=4),
    st.integers(1, 4),
    st.integers(1, 4),
)
@example("all-reduce", "cross_replica", [[0, 1]], 1, 4)
@example("all-gather", "flattened_id", [[0], [1]], 2, 1)
def test_verdicts_are_the_twins(
    opcode: str, mode: str, groups: list[list[int]], replicas: int, partitions: int
) -> None:
    """On arbitrary groups there are faults exactly where the rule, read word by word, is broken."""
    faults = verify_groups(opcode, groups, mode, replicas, partitions)
    assert (not faults) == twins.groups_valid(opcode, mode, groups, replicas, partitions)


@given(st.sampled_from(OPCODES), st.sampled_from(MODES), st.data())
def test_verdicts_on_partitions_of_the_ids(opcode: str, mode: str, data: st.DataObject) -> None:
    """Groups that are nearly right, cut out of a permutation, are judged as by the twin, in list and iota form."""
    replicas, partitions = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    ids = data.draw(st.permutations(range(data.draw(st.integers(1, 16)))))
    size = data.draw(st.integers(1, len(ids)))
    groups = [ids[start : start + size] for start in range(0, len(ids), size)]
    expected = twins.groups_valid(opcode, mode, groups, replicas, partitions)
    assert (not verify_groups(opcode, groups, mode, replicas, partitions)) == expected
    number = len(ids) // size
    iota = IotaReplicaGroupList(number, size)
    assert verify_groups(opcode, iota, mode, replicas, partitions) == verify_groups(
        opcode, iota.groups(), mode, replicas, partitions
    )


def test_all_faults_are_named_at_once() -> None:
    """A bad list is told everything that is wrong with it."""
    faults = verify_groups("all-gather", [[0, 1, 1], [-2], [], [9]], "cross_partition", None, 4)
    assert [(fault.rule, str(fault)) for fault in faults] == [
        ("group-empty", "expected ids in every group, found none in group 2, counted from 0; drop it"),
        ("id-repeated", "expected every id once in the groups, found 1 more often; keep one of each"),
        (
            "id-out-of-range",
            "expected partition ids in 0..3 in mode kCrossPartition, found -2 and 9; name only what the program has",
        ),
        (
            "groups-incomplete",
            "expected all of the partition ids 0..3 in the groups, found no 2 and 3; give every one a group",
        ),
        ("groups-uneven", "expected groups of one size in all-gather, found sizes 1 and 3; even them out"),
    ]


@pytest.mark.parametrize(
    ("mode", "replicas", "partitions"),
    [("cross_replica", None, 4), ("cross_partition", 4, None), ("flattened_id", None, 4), ("flattened_id", 4, None)],
)
def test_unknown_counts_say_nothing_about_range(mode: str, replicas: int | None, partitions: int | None) -> None:
    """Range and coverage are judged only against counts that are known; repeats and sizes always."""
    assert verify_groups("all-gather", [[7, -3]], mode, replicas, partitions) == ()
    faults = verify_groups("all-gather", [[7, 7], [1]], mode, replicas, partitions)
    assert [fault.rule for fault in faults] == ["id-repeated", "groups-uneven"]


def test_a_count_of_one_counts_when_asked_to() -> None:
    """Upstream takes a count of 1 for not stated; a count that is known to be 1 can be held against the ids."""
    groups = [[0, 1, 2, 3]]
    for listed in (groups, IotaReplicaGroupList(1, 4), CollectiveDeviceList(IotaReplicaGroupList(1, 4))):
        assert verify_groups("all-to-all", listed, "cross_partition", 4, 1) == ()
        faults = verify_groups("all-to-all", listed, "cross_partition", 4, 1, check_single=True)
        assert [fault.rule for fault in faults] == ["id-out-of-range"]
        assert "found 1, 2 and 3" in faults[0].message


def test_iota_and_mesh_lists_of_many_devices_are_judged_at_once() -> None:
    """Nothing is written out for lists of 2^40 ids, nor for counts of 2^40."""
    iota = IotaReplicaGroupList(2**20, 2**20)
    mesh_axes = MeshAxesReplicaGroupList(Mesh({"a": 2**20, "b": 2**20}), ["a"])
    for groups in (iota, mesh_axes):
        assert verify_groups("all-gather", groups, Mode.FLATTENED_ID, 2**20, 2**20) == ()
        (fault,) = verify_groups("all-gather", groups, Mode.FLATTENED_ID, 2**20, 2**21)
        assert fault.message.endswith("1099511627783 and 1099511627768 more; give every one a group")
        (fault,) = verify_groups("all-gather", groups, Mode.CROSS_REPLICA, 2**20, 2)
        assert fault.rule == "id-out-of-range"
    (fault,) = verify_groups("all-gather", [[1, 3]], Mode.CROSS_REPLICA, 2**40, 1)
    assert "found no 0, 2, 4, 5, 6, 7, 8, 9 and 1099511627766 more" in fault.message


def test_mesh_axes_over_a_permuted_mesh_are_looked_at() -> None:
    """A mesh whose devices are written out is judged by its ids."""
    groups = MeshAxesReplicaGroupList(Mesh({"a": 2, "b": 2}, (3, 1, 0, 2)), ["a"])
    assert verify_groups("all-gather", groups, Mode.FLATTENED_ID, 2, 2) == ()
    assert [fault.rule for fault in verify_groups("all-gather", groups, Mode.FLATTENED_ID, 4, 2)] == [
        "groups-incomplete"
    ]


@pytest.mark.parametrize(
    ("pairs", "mode", "counts", "rules"),
    [
        ([(0, 1), (1, 0)], "cross_replica", (2, 1), []),
        ([(0, 2)], "cross_replica", (2, 4), ["id-out-of-range"]),
        ([(0, 2)], "cross_partition", (2, 4), []),
        ([(0, 2)], "cross_replica", (1, 4), []),
        ([(0, 2)], "cross_replica", (None, 4), []),
        ([(-1, 2)], "cross_replica", (1, 4), ["id-out-of-range"]),
        ([(0, 1), (0, 2), (3, 2)], "cross_partition", (1, 4), ["pair-repeated", "pair-repeated"]),
    ],
)
def test_pairs_by_upstreams_rule(
    pairs: list[tuple[int, int]], mode: str, counts: tuple[int | None, int | None], rules: list[str]
) -> None:
    """The limit goes by the mode, is skipped at 1, and each source and target stands once."""
    assert [fault.rule for fault in verify_pairs(pairs, mode, *counts)] == rules


def test_pairs_against_a_single_device_when_asked_to() -> None:
    """A count that is known to be 1 can be held against pairs as well."""
    assert verify_pairs([(0, 1)], "cross_replica", 1, 1) == ()
    assert [fault.rule for fault in verify_pairs([(0, 1)], "cross_replica", 1, 1, check_single=True)] == [
        "id-out-of-range"
    ]


def test_counts_beyond_64_bits_are_judged() -> None:
    """The number of global ids is a product, which no file bounds."""
    for groups in (IotaReplicaGroupList(2, 2), [[0, 1], [2, 3]]):
        (fault,) = verify_groups("all-gather", groups, Mode.FLATTENED_ID, 2**40, 2**40)
        assert fault.message.endswith(
            f"found no 4, 5, 6, 7, 8, 9, 10, 11 and {2**80 - 12} more; give every one a group"
        )
    assert verify_pairs([(0, 1)], Mode.FLATTENED_ID, 2**40, 2**40) == ()
