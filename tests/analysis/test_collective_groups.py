from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
import twins_participants
from commlens.analysis import groups_from_sharding, groups_over
from commlens.errors import CommlensError, GrammarError
from commlens.topology import parse_replica_groups


@given(strategies.mesh_groups())
def test_groups_over_axes_are_those_of_the_mesh(groups: strategies.MeshAxesReplicaGroupList) -> None:
    """The answer lists the groups of the axes in the order given, and its attributes read back as the same groups."""
    if groups.axes:
        answer = groups_over(groups.mesh, ",".join(ref.label for ref in groups.axes), channel_id=7)
        assert (answer.groups, answer.mesh_axes) == (groups.groups(), str(groups))
        head, text, tail = answer.attributes.partition(answer.iota or answer.list or "")
        assert (head, tail) == ("channel_id=7, replica_groups=", ", use_global_device_ids=true")
        assert parse_replica_groups(text).groups() == groups.groups()


def test_the_order_of_axes_is_the_order_in_a_group() -> None:
    """A then b, and b then a, list the same devices in another order."""
    mesh = {"a": 2, "b": 2}
    assert groups_over(mesh, "a,b").groups == [[0, 1, 2, 3]]
    assert groups_over(mesh, "b,a").groups == [[0, 2, 1, 3]]
    assert groups_over(mesh, "b,a").axes == ["b", "a"]


def test_attributes_hold_an_iota_where_one_exists_else_the_list() -> None:
    """Device orders that count unevenly are written out."""
    assert groups_over("data=2,model=4", "model").attributes == (
        "channel_id=1, replica_groups=[2,4]<=[8], use_global_device_ids=true"
    )
    uneven = groups_over("mesh['a'=2,'b'=2], device_ids=(0,3,1,2)", "b", channel_id=2)
    assert uneven.iota is None
    assert uneven.attributes == "channel_id=2, replica_groups={{0,3},{1,2}}, use_global_device_ids=true"


def test_parts_of_axes_are_taken() -> None:
    """A sub-axis names a part of an axis."""
    answer = groups_over("a=4,b=2", "a:(1)2")
    assert (answer.groups, answer.axes) == ([[0, 4], [1, 5], [2, 6], [3, 7]], ["a:(1)2"])


@pytest.mark.parametrize(("over", "position"), [("c", 0), ("a,", 2), ("a:(3)2", 0), ("a,a", 0), ("a:(1)", 5)])
def test_axes_that_the_mesh_does_not_have_are_refused(over: str, position: int) -> None:
    """Unknown, invalid and overlapping axes are errors with a place."""
    with pytest.raises(GrammarError) as caught:
        groups_over("a=4,b=2", over)
    assert caught.value.position == position


@given(st.data())
def test_groups_from_a_sharding_differ_in_the_dimensions_asked_for(data: st.DataObject) -> None:
    """Devices that agree on all other tile coordinates form a group, in iota and list spelling alike."""
    tile = data.draw(strategies.tiles().filter(lambda each: each.num_elements > 1))
    dims = data.draw(st.lists(st.integers(0, tile.ndim - 1), unique=True))
    ids = twins_participants.iota_ids(tile.reshape_dims, tile.transpose_perm)
    expected = twins_participants.rows(ids, tile.dims, {dim: tile.dims[dim] for dim in dims})
    shape = ",".join(map(str, tile.dims))
    for sharding in (f"{{{tile}}}", f"{{devices=[{shape}]{','.join(map(str, ids))}}}"):
        answer = groups_from_sharding(sharding, dims)
        assert answer.groups == expected
        assert answer.is_partition


def test_dimensions_count_in_ascending_order() -> None:
    """Members count through the sorted dimensions, whatever order they are given in."""
    assert groups_from_sharding("{devices=[2,2]<=[4]}", [1, 0]).groups == [[0, 1, 2, 3]]


def test_a_mesh_names_the_axes_of_a_sharding() -> None:
    """With a mesh the groups of a sharding have axes."""
    answer = groups_from_sharding("{devices=[4,2]<=[8]}", [0], mesh="x=4,y=2")
    assert (answer.axes, answer.mesh_axes) == (["x"], "mesh['x'=4,'y'=2] {'x'}")


@pytest.mark.parametrize(
    "sharding", ["{replicated}", "{maximal device=0}", "{manual}", "{{replicated}, {devices=[2]<=[2]}}"]
)
def test_a_sharding_that_cuts_nothing_has_no_groups(sharding: str) -> None:
    """Only tiled shardings have dimensions to communicate along."""
    with pytest.raises(CommlensError, match="expected a tiled sharding"):
        groups_from_sharding(sharding, [0])


def test_dimensions_and_channels_are_checked() -> None:
    """A dimension that the tile does not have, and channel 0, are errors."""
    with pytest.raises(CommlensError):
        groups_from_sharding("{devices=[4,2]<=[8]}", [2])
    with pytest.raises(CommlensError, match="at least 1"):
        groups_over("a=2", "a", channel_id=0)


def test_huge_groups_have_attributes_without_a_list() -> None:
    """2^40 devices: the iota form is the answer."""
    side = 1 << 20
    answer = groups_over({"a": side, "b": side}, "a")
    assert (answer.groups, answer.list) == (None, None)
    assert f"replica_groups=[{side},{side}]<=[{side},{side}]T(1,0)," in answer.attributes
