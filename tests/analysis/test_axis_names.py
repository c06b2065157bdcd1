from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from commlens.analysis.axis_names import axes_key, axes_of_pairs
from commlens.topology import AxisRef, Mesh, SourceTargetPairs

MESH = Mesh({"data": 4, "model": 4})


@given(strategies.meshes(), st.data())
def test_a_pair_moves_along_the_axes_whose_coordinate_differs(mesh: Mesh, data: st.DataObject) -> None:
    """Axes of pairs are found as one finds them by hand: compare the coordinates of both ends, pair by pair."""
    ids = st.integers(0, mesh.num_devices - 1)
    pairs = data.draw(st.lists(st.tuples(ids, ids), max_size=5))
    expected: list[str] = []
    for axis, name in enumerate(mesh.axis_names):
        for ends in pairs:
            source, target = (mesh.coordinates_of(end) for end in ends)
            if source is not None and target is not None and source[axis] != target[axis] and name not in expected:
                expected.append(name)
    found = axes_of_pairs(SourceTargetPairs(pairs), mesh)
    assert found is not None
    assert [ref.label for ref in found] == expected


@pytest.mark.parametrize("pair", [(0, 16), (-1, 0)])
def test_pairs_outside_the_mesh_have_no_axes(pair: tuple[int, int]) -> None:
    """An id that the mesh does not have: unknown, not none."""
    assert axes_of_pairs(SourceTargetPairs([(0, 1), pair]), MESH) is None


@pytest.mark.parametrize("pairs", [[], [(3, 3)]])
def test_pairs_that_move_nothing_run_along_no_axis(pairs: list[tuple[int, int]]) -> None:
    """No pairs, and self pairs: no axes, and that is known."""
    assert axes_of_pairs(SourceTargetPairs(pairs), MESH) == ()


@given(strategies.mesh_groups())
def test_a_key_does_not_depend_on_the_order_of_members(groups: strategies.MeshAxesReplicaGroupList) -> None:
    """Totals count the same axes under one key, whatever their order, spelled as a valid list in mesh order."""
    key = axes_key(groups.axes, groups.mesh)
    assert axes_key(reversed(groups.axes), groups.mesh) == key
    names = [text.split(":")[0] for text in key.text.split(",")]
    if groups.axes:
        assert names == sorted(names, key=groups.mesh.axis_names.index)


@pytest.mark.parametrize(
    ("refs", "text"),
    [
        ([AxisRef("model"), AxisRef("data")], "data,model"),
        ([AxisRef("data", 2, 2)], "data:(2)2"),
        ([AxisRef("data", 2, 2), AxisRef("data", 1, 2)], "data"),
        ([AxisRef("model", 1, 2), AxisRef("data", 1, 2)], "data:(1)2,model:(1)2"),
        ([], "none"),
        (None, "?"),
    ],
)
def test_keys_are_spelled_as_the_rows_spell_axes(refs: list[AxisRef] | None, text: str) -> None:
    """Whole axes by name, parts with their sizes, parts that meet as one; none and unknown have words of their own."""
    assert axes_key(refs, MESH).text == text


def test_without_a_mesh_of_the_module_nothing_is_named() -> None:
    """Axes on a row's own mesh count as unknown."""
    assert axes_key([AxisRef("data")], None).text == "?"


def test_keys_sort_in_mesh_order() -> None:
    """Axes by their place in the mesh, then none, then unknown."""
    lists = [
        None,
        [],
        [AxisRef("model")],
        [AxisRef("data"), AxisRef("model")],
        [AxisRef("data", 1, 2)],
        [AxisRef("data")],
    ]
    keys = sorted(axes_key(refs, MESH) for refs in lists)
    assert [key.text for key in keys] == ["data", "data,model", "data:(1)2", "model", "none", "?"]
