from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

import strategies
from commlens.analysis.meshes import as_mesh, mesh_as_json, mesh_from_json, module_mesh, read_mesh
from commlens.errors import CommlensError, GrammarError, InputError
from commlens.topology import CollectiveDeviceList, Mesh, MeshAxesReplicaGroupList

if TYPE_CHECKING:
    from pathlib import Path

DATA_MODEL = Mesh({"data": 2, "model": 4})


def on(mesh: Mesh) -> MeshAxesReplicaGroupList:
    """Groups of one device that name a mesh."""
    return MeshAxesReplicaGroupList(mesh, [])


def test_a_mesh_is_taken_in_all_forms(tmp_path: Path) -> None:
    """A mesh, sizes by name, a spec, HLO text and a file mean the same."""
    file = tmp_path / "a=b.json"
    file.write_text(json.dumps({"axes": {"data": 2, "model": 4}}))
    for form in (DATA_MODEL, {"data": 2, "model": 4}, "data=2,model=4", "mesh['data'=2,'model'=4]", str(file)):
        assert as_mesh(form) == DATA_MODEL


@pytest.mark.parametrize(
    ("text", "position"), [("data=2,model", 12), ("data=2,model=x", 13), ("data=0", 0), ("nowhere", 0), ("=2", 0)]
)
def test_a_spec_that_is_no_mesh_points_at_the_fault(text: str, position: int) -> None:
    """The error knows where the fault is."""
    with pytest.raises(GrammarError) as caught:
        read_mesh(text)
    assert caught.value.position == position


@given(strategies.meshes())
def test_json_gives_the_mesh_back(mesh: Mesh) -> None:
    """What is written is read back as the same mesh, in whatever order its devices are."""
    again = mesh_from_json(json.dumps(mesh_as_json(mesh)), path="m")
    assert (again.axes, strategies.order_of(again)) == (mesh.axes, strategies.order_of(mesh))


def test_device_ids_may_be_nested() -> None:
    """Ids nested like the axes are read row-major."""
    nested = {"axes": {"a": 2, "b": 3}, "device_ids": [[5, 4, 3], [2, 1, 0]]}
    assert mesh_from_json(json.dumps(nested), path="m") == Mesh({"a": 2, "b": 3}, [5, 4, 3, 2, 1, 0])


def test_a_huge_transposed_mesh_is_written_without_its_ids() -> None:
    """Above the limit the order is stated by its dims, and read back."""
    huge = Mesh({"a": 1 << 20, "b": 1 << 20}, ((1 << 20, 1 << 20), (1, 0)))
    stated = mesh_as_json(huge)
    assert stated["device_ids"] == {"reshape_dims": [1 << 20, 1 << 20], "transpose_perm": [1, 0]}
    assert mesh_from_json(json.dumps(stated), path="m") == huge


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "m:1:2: expected a mesh in JSON"),
        ("[1]", "found no axes"),
        ('{"axes": [2]}', "found no axes"),
        ('{"axes": {"a": true}}', "the size of axis 'a' to be an integer"),
        ('{"axes": {"a": 2}, "device_ids": [0, 0]}', "permutation"),
        ('{"axes": {"a": 2}, "device_ids": [0, 1.5]}', "everything in device_ids"),
        ('{"axes": {"a": 2}, "device_ids": 3}', "device_ids to be a list"),
        ('{"axes": {"a": 2}, "devices": [0, 1]}', "found devices"),
        ('{"axes": {"a": 2, "a": 2}}', "found a several times"),
        ('{"axes": {}}', "at least one axis"),
        ("[" * 100_000, "expected a mesh in JSON"),
        (b"\xff\xfe", "expected a mesh in JSON"),
    ],
)
def test_a_mesh_file_that_is_none_says_why(content: str | bytes, message: str) -> None:
    """Every fault of a mesh file is an error about that file."""
    with pytest.raises(InputError, match=message) as caught:
        mesh_from_json(content, path="m")
    assert str(caught.value).startswith("m:")


def test_a_mesh_file_that_cannot_be_opened_is_an_error_about_the_file(tmp_path: Path) -> None:
    """A folder in place of a file, and a missing file, are told apart from a bad spec."""
    with pytest.raises(InputError, match="cannot be read"):
        read_mesh(str(tmp_path))
    with pytest.raises(GrammarError, match="name of a JSON file"):
        read_mesh(str(tmp_path / "missing.json"))
    with pytest.raises(GrammarError, match="found ''"):
        read_mesh("")


def test_the_header_names_the_mesh_first() -> None:
    """The mesh of the header wins over those of the collectives."""
    assert module_mesh(DATA_MODEL, [on(Mesh({"x": 8}))]) == DATA_MODEL


def test_real_names_win_over_generated_ones() -> None:
    """The only mesh with real names is taken, however many generated ones there are."""
    lists = [on(Mesh({"axis_0": 8})), on(DATA_MODEL), on(Mesh({"axis_0": 2, "axis_1": 4})), on(DATA_MODEL)]
    assert module_mesh(None, lists) == DATA_MODEL


def test_generated_meshes_that_differ_in_trivial_axes_are_one() -> None:
    """Axes of size 1 are dropped and the others numbered anew before generated meshes are counted."""
    lists = [on(Mesh({"axis_0": 1, "axis_1": 8})), on(Mesh({"axis_0": 8})), None, CollectiveDeviceList([[0]])]
    assert module_mesh(None, lists) == Mesh({"axis_0": 8})


def test_two_meshes_with_real_names_leave_the_only_generated_one() -> None:
    """Where real names contradict each other the generated mesh may still be the only one."""
    lists = [on(DATA_MODEL), on(Mesh({"x": 8})), on(Mesh({"axis_0": 8}))]
    assert module_mesh(None, lists) == Mesh({"axis_0": 8})


def test_the_order_of_devices_tells_meshes_apart() -> None:
    """Two meshes with the same axes over different orders are two."""
    lists = [on(Mesh({"axis_0": 2, "axis_1": 2})), on(Mesh({"axis_0": 2, "axis_1": 2}, [0, 2, 1, 3]))]
    assert module_mesh(None, lists) is None


def test_without_a_mesh_there_is_none() -> None:
    """No collective that names a mesh: no mesh; a mesh of one device without axes names nothing."""
    assert module_mesh(None, [on(Mesh.maximal(3)), CollectiveDeviceList(None)]) is None


def test_no_form_of_mesh_is_silently_accepted() -> None:
    """Sizes that make no mesh are refused."""
    with pytest.raises(CommlensError):
        as_mesh({"data": 0})
