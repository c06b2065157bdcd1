from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
import twins_participants
from commlens.analysis import Explanation, Unfolding, explain
from commlens.analysis.explanation import is_partition
from commlens.errors import CommlensError, GrammarError
from commlens.topology import CollectiveDeviceList, CollectiveOpGroupMode, Mesh

REQUIRED = {
    "form",
    "num_replica_groups",
    "num_devices_per_group",
    "groups",
    "list",
    "iota",
    "mesh_axes",
    "axes",
    "is_partition",
    "participants",
}


def keys_of(explained: Explanation) -> dict[str, object]:
    """Take the keys that follow from the groups alone, whatever their spelling."""
    return {key: value for key, value in explained.as_dict().items() if key not in ("form", "text", "meaning")}


@given(strategies.iota_groups(), st.data())
def test_every_spelling_gets_the_same_answer(groups: strategies.IotaReplicaGroupList, data: st.DataObject) -> None:
    """The list, the iota and the axes spelling of one thing differ in form and wording only."""
    mesh = data.draw(strategies.meshes(groups.num_devices))
    explained = explain(str(groups), mesh)
    assert keys_of(explain(str(groups.to_list()), mesh)) == keys_of(explained)
    if explained.mesh_axes is not None:
        assert keys_of(explain(explained.mesh_axes, mesh)) == keys_of(explained)
        assert keys_of(explain(explained.mesh_axes)) == keys_of(explained)
    assert explained.groups == groups.groups()
    assert explained.is_partition


@given(strategies.explicit_groups, st.none() | st.integers(1, 20))
def test_a_partition_holds_every_device_once(groups: list[list[int]], devices: int | None) -> None:
    """Groups partition 0..n-1 when every id in that range, and no other, stands there once; {} means everybody."""
    ids = [each for group in groups for each in group]
    number = devices if devices is not None else max(ids, default=-1) + 1
    expected = not groups or (all(groups) and len(ids) == number and set(ids) == set(range(number)))
    assert is_partition(CollectiveDeviceList(groups), devices) == expected


@given(strategies.mesh_groups(), st.none() | st.integers(1, 30))
def test_axes_of_a_mesh_partition_its_devices(groups: strategies.MeshAxesReplicaGroupList, devices: int | None) -> None:
    """Compact spellings partition exactly the devices that they count through."""
    assert is_partition(groups, devices) == is_partition(groups.to_list(), devices)
    iota = groups.to_iota()
    if iota is not None:
        assert is_partition(iota, devices) == is_partition(groups.to_list(), devices)


def test_the_one_device_of_a_maximal_mesh_is_a_partition_only_if_it_is_device_0() -> None:
    """A mesh of one device with another id leaves the ids before it out."""
    assert not explain("maximal_mesh[device_id=5] {}").is_partition
    assert explain("maximal_mesh[device_id=0] {}").is_partition


def test_the_keys_are_there_and_are_json() -> None:
    """All required keys, values that JSON knows, attributes that agree."""
    explained = explain("[4,2]<=[2,4]T(1,0)", "data=2,model=4", mode="flattened_id", devices=8)
    written = json.loads(json.dumps(explained.as_dict()))
    assert set(written) >= REQUIRED
    assert all(getattr(explained, key) == value for key, value in written.items())
    assert (explained["list"], explained.participants) == ("{{0,4},{1,5},{2,6},{3,7}}", explained.groups)


@given(
    mode=st.sampled_from(CollectiveOpGroupMode),
    groups=strategies.iota_groups(),
    other=st.integers(1, 4),
)
def test_participants_are_those_of_the_mode(
    mode: CollectiveOpGroupMode, groups: strategies.IotaReplicaGroupList, other: int
) -> None:
    """With counts and a mode, who takes part is told."""
    own = groups.num_devices
    replicas, partitions = (other, own) if mode is CollectiveOpGroupMode.CROSS_PARTITION else (own, other)
    explained = explain(str(groups), replicas=replicas, partitions=partitions, mode=mode.snake)
    expected = twins_participants.participants(mode.snake, groups.groups(), replicas, partitions)
    assert (explained.participants, explained.mode) == (expected, str(mode))
    assert (explained.ids, explained.why_no_participants) == (None, None)


def test_a_count_left_out_is_one_when_the_other_is_given() -> None:
    """Replicas alone mean one partition, as in a module's header."""
    explained = explain("{{0,1}}", replicas=2, mode="kCrossReplicaAndPartition")
    assert explained.participants == [[0, 1]]


def test_participants_that_cannot_be_told_say_why() -> None:
    """No counts, and ids without a device: no participants, and a reason."""
    unknown = explain("{{0,1}}", mode="kCrossReplicaAndPartition")
    assert unknown.participants is None
    assert "nobody states" in str(unknown.why_no_participants)
    outside = explain("{{0,9}}", mode="kCrossReplica", replicas=2)
    assert outside.participants is None
    assert "found 9" in str(outside.why_no_participants)
    written = explain("{{0,9}}", mode="kCrossReplica")
    assert (written.participants, written.ids) == ([[0, 9]], "as written")


def test_axes_are_those_of_the_participants_where_a_mode_is_given() -> None:
    """Replica ids alone fit no axes of all devices; the devices behind them do."""
    mesh = {"replica": 2, "partition": 4}
    assert explain("{{0},{1}}", mesh).axes is None
    explained = explain("{{0},{1}}", mesh, mode="cross_replica_and_partition", replicas=2, partitions=4)
    assert explained.axes == ["partition"]


@pytest.mark.parametrize(
    ("spec", "meaning"),
    [
        ("{}", "No groups are written: all replicas or partitions, as the mode has it, form one group."),
        ("{{3}}", "1 group of 1 device, written out."),
        ("{{0,1},{2,3}}", "2 groups of 2 devices, written out."),
        ("{{0,1},{2}}", "2 groups of 1 to 2 devices, written out."),
        ("[2,4]<=[8]", "2 groups of 4 devices: the ids 0..7 in their order, cut into rows of 4."),
        (
            "[4,2]<=[2,2,2]T(2,0,1)",
            "4 groups of 2 devices: the ids 0..7 laid out as 4 x 2, read with dimension 1 outermost, then 0, "
            "cut into rows of 2.",
        ),
        (
            "mesh['a'=2,'b'=4] {'b','a'}",
            "1 group of 8 devices: on the mesh a 2 x b 4, the members of a group differ along b, then a.",
        ),
        (
            "mesh['a'=2,'b'=2], device_ids=(0,2,1,3) {}",
            "4 groups of 1 device: on the mesh a 2 x b 2, its devices in an order of their own, every device is a "
            "group of its own.",
        ),
    ],
)
def test_the_meaning_is_one_sentence(spec: str, meaning: str) -> None:
    """Each spelling is said in words."""
    assert explain(spec).meaning == meaning


def test_the_iota_spelling_unfolds_whatever_was_written() -> None:
    """Digits are shown for every list that has an iota form, and for no other."""
    assert explain("{{0,4},{1,5},{2,6},{3,7}}").unfolding == Unfolding(4, 2, (2, 4), (1, 0))
    assert explain("{{0,3},{1,2}}").unfolding is None


def test_lists_above_the_limit_are_not_built() -> None:
    """10^10 devices are explained without a list; 4100 are listed in full only when asked for."""
    tracemalloc.start()
    explained = explain("[100000,100000]<=[10000000000]", mode="kCrossReplica", replicas=10**10, partitions=8)
    assert (explained.groups, explained.list, explained.participants) == (None, None, None)
    assert (explained.is_partition, explained.iota) == (True, "[100000,100000]<=[10000000000]")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20
    assert explain("[1025,4]<=[4100]").groups is None
    full = explain("[1025,4]<=[4100]", full=True)
    assert full.groups is not None
    assert full.list is not None


@pytest.mark.parametrize(("spec", "position"), [("[2,2]<=[8]", 0), ("{{0,1}", 6), ("mesh['a'=2] {'b'}", 13), ("", 0)])
def test_a_spec_that_breaks_the_grammar_points_at_the_fault(spec: str, position: int) -> None:
    """The error knows where the fault is."""
    with pytest.raises(GrammarError) as caught:
        explain(spec)
    assert caught.value.position == position


@pytest.mark.parametrize("spec", ["{{0,0},{5}}", "{{-1}}", "{{},{0}}", "{{0,1},{1,2}}"])
def test_wrong_values_are_explained_and_not_refused(spec: str) -> None:
    """Repeated, negative and missing ids are values; they make no partition."""
    explained = explain(spec)
    assert (explained.text, explained.is_partition) == (spec, False)


def test_counts_and_modes_are_checked() -> None:
    """No devices, and a mode that does not exist, are errors."""
    with pytest.raises(CommlensError, match="at least 1 of the devices"):
        explain("{{0}}", devices=0)
    with pytest.raises(CommlensError, match="expected a group mode"):
        explain("{{0}}", mode="kEverybody")


def test_the_mesh_in_the_spelling_names_axes_unless_another_is_given() -> None:
    """A list on its own mesh names its own axes; a mesh that is given wins."""
    spec = "mesh['a'=2,'b'=4] {'b'}"
    assert (explain(spec).axes, explain(spec).mesh) == (["b"], Mesh({"a": 2, "b": 4}))
    assert explain(spec, "x=2,y=2,z=2").axes == ["y", "z"]
