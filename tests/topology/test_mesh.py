from __future__ import annotations

import copy
import tracemalloc
from itertools import product
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import twins
from commlens.topology import AxisRef, IotaTileAssignment, Mesh
from commlens.topology.digits import Digit
from strategies import meshes, order_of
from xla_cases import cases


def ref_of(given: dict[str, Any]) -> AxisRef:
    """The axis reference of a case."""
    return AxisRef(given["axis"], given.get("pre_size"), given.get("size"))


def numbered(sizes: list[int]) -> Mesh:
    """A mesh of these sizes."""
    return Mesh([(f"x{axis}", size) for axis, size in enumerate(sizes)])


# --- references to axes


@pytest.mark.parametrize(("given_", "expect"), cases("axis_to_string"))
def test_axis_text(given_: dict[str, Any], expect: str) -> None:
    """A reference prints as upstream prints it, by name or by index."""
    names = given_["axis_names"]
    axis = names[given_["axis"]] if names else given_["axis"]
    assert str(AxisRef(axis, given_["pre_size"], given_["size"])) == expect


@pytest.mark.parametrize(("given_", "expect"), cases("axis_coexist"))
def test_coexistence(given_: dict[str, Any], expect: bool) -> None:
    """Two references go together, either way round, where upstream says so."""
    a, b = ref_of(given_["a"]), ref_of(given_["b"])
    assert a.can_coexist(b) is expect
    assert b.can_coexist(a) is expect


@pytest.mark.parametrize("size", [12, 18, 24, 30])
def test_sub_axes_coexist_exactly_where_they_cut_the_axis(size: int) -> None:
    """Of all pairs of sub-axes, those go together whose members, all combined, cut the axis into like groups."""
    for a, b in product(twins.parts([size]), repeat=2):
        if size not in (a[2], b[2]):
            together = AxisRef("a", *a[1:]).can_coexist(AxisRef("a", *b[1:]))
            assert together == (twins.tile([size], [a, b]) is not None)


@pytest.mark.parametrize(("given_", "expect"), cases("axis_can_merge"))
def test_merging_is_possible(given_: dict[str, Any], expect: bool) -> None:
    """A sub-axis continues another, in this order, where upstream says so."""
    assert ref_of(given_["a"]).can_merge(ref_of(given_["b"])) is expect


@pytest.mark.parametrize(("given_", "expect"), cases("axis_merge"))
def test_merging(given_: dict[str, Any], expect: dict[str, Any]) -> None:
    """Merging gives upstream's sub-axis, or None where there is nothing to merge."""
    merged = ref_of(given_["a"]).merge(ref_of(given_["b"]), given_["axis_size"])
    assert merged == (ref_of(expect["result"]) if expect["merged"] else None)


def test_merging_to_the_whole_axis_drops_the_sub_axis() -> None:
    """A sub-axis of full size is written as the whole axis."""
    assert AxisRef("a", 1, 2).merge(AxisRef("a", 2, 4), axis_size=8) == AxisRef("a")


@pytest.mark.parametrize(("given_", "expect"), cases("axis_validate"))
def test_one_reference_is_checked(given_: dict[str, Any], expect: dict[str, Any]) -> None:
    """A reference is refused where upstream refuses it."""
    mesh = numbered(given_["mesh_sizes"])
    assert _passes(lambda: mesh.resolve(ref_of(given_["axis_ref"]))) is expect["valid"]


@pytest.mark.parametrize(("given_", "expect"), cases("axes_validate"))
def test_lists_of_references_are_checked(given_: dict[str, Any], expect: dict[str, Any]) -> None:
    """A list of references is refused where upstream refuses it."""
    mesh = numbered(given_["mesh_sizes"])
    assert _passes(lambda: mesh.resolve_all([ref_of(each) for each in given_["axes"]])) is expect["valid"]


@pytest.mark.parametrize(
    ("refs", "words"),
    [
        pytest.param([AxisRef(2)], "Axis index must be less than number of axes", id="index"),
        pytest.param(["c"], "not a valid axis name or index in mesh", id="name"),
        pytest.param([AxisRef("a", 3, 2)], "Sub-axis next_pre_size must divide the full axis size", id="divide"),
        pytest.param([AxisRef("a", 1, 8)], "Sub-axis size must be strictly less than the full axis size", id="whole"),
        pytest.param(["a", AxisRef("a", 1, 2)], "Axes cannot coexist or axes overlap", id="overlap"),
        pytest.param([AxisRef("a", 1, 2), AxisRef("a", 2, 2)], "Adjacent axes in dimension sharding", id="adjacent"),
    ],
)
def test_words_of_refusal(refs: list[AxisRef | str], words: str) -> None:
    """Refusals say what upstream says."""
    with pytest.raises(ValueError, match=words):
        Mesh({"a": 8, "b": 4}).resolve_all(refs)


def test_words_of_refusal_do_not_grow_with_names() -> None:
    """Of a long name the beginning is quoted."""
    long = "x" * 8000
    with pytest.raises(ValueError, match="not a valid axis name") as caught:
        Mesh({long: 8, "b": 4}).axis_index(long + "y")
    assert len(str(caught.value)) < 250
    for axes in ([(long, 2), (long, 2)], [(long, 0)]):
        with pytest.raises(ValueError, match="axis") as caught:
            Mesh(axes)
        assert len(str(caught.value)) < 150


@pytest.mark.parametrize(
    "parts",
    [("a", 0, 2), ("a", 1, 1), ("a", 1, None), ("a", None, 2), (-1,)],
    ids=["pre-size-0", "size-1", "no-size", "no-pre-size", "negative-index"],
)
def test_no_reference(parts: tuple[Any, ...]) -> None:
    """A reference that no mesh could have is refused at once."""
    with pytest.raises(ValueError, match="is not valid"):
        AxisRef(*parts)


def test_a_name_wins_over_an_index() -> None:
    """A number in quotes is a name where there is such an axis, else an index."""
    mesh = Mesh({"1": 2, "b": 4})
    assert (mesh.axis_index("1"), mesh.axis_index(1), mesh.axis_index("0")) == (0, 1, 0)
    with pytest.raises(ValueError, match="Axis index"):
        mesh.axis_index("9" * 5000)


def test_an_error_names_a_few_axes() -> None:
    """The known axes stand in the error, if they are many only the first."""
    with pytest.raises(ValueError, match=r"'x0', 'x1', .*'x7', \.\.\.$"):
        Mesh({f"x{axis}": 1 for axis in range(20)}).axis_index("y")


def test_labels_and_quotes() -> None:
    """For people there are no quotes; in HLO text a quote inside a name is escaped."""
    assert AxisRef("a", 1, 2).label == "a:(1)2"
    assert str(AxisRef("it's")) == r"'it\'s'"


def test_references_survive_messages() -> None:
    """What is written to proto fields reads back equal."""
    for ref in (AxisRef(1), AxisRef(1, 2, 4)):
        fields: dict[str, Any] = ref.to_proto_fields(1)
        part = SimpleNamespace(**fields["sub_axis_info"]) if ref.is_sub_axis else None
        message: Any = SimpleNamespace(mesh_axis_index=1, sub_axis_info=part)
        assert AxisRef.from_proto(message) == ref


# --- meshes


@pytest.mark.parametrize(("given_", "expect"), cases("mesh_to_string"))
def test_mesh_text(given_: dict[str, Any], expect: str) -> None:
    """A mesh prints as upstream prints it; the cases without axes are the two special meshes."""
    if "maximal_device" in given_:
        mesh = Mesh.maximal(given_["maximal_device"])
    elif not given_["axes"]:
        mesh = Mesh.empty()
    else:
        order = given_.get("iota")
        ids = (order["reshape_dims"], order["transpose_perm"]) if order else given_.get("device_ids")
        mesh = Mesh([(name, size) for name, size in given_["axes"]], ids)
    assert str(mesh) == expect


@pytest.mark.parametrize(("given_", "expect"), cases("mesh_validate"))
def test_meshes_are_checked(given_: dict[str, Any], expect: dict[str, Any]) -> None:
    """A mesh is refused where upstream refuses it; here one more or fewer name than sizes cannot even be said."""
    if len(given_["axis_names"]) != len(given_["sizes"]):
        assert expect["valid"] is False
        return
    axes: list[tuple[str, int]] = list(zip(given_["axis_names"], given_["sizes"], strict=True))
    identity = given_["device_ids"] == list(range(prod(given_["sizes"])))
    assert _passes(lambda: Mesh(axes, given_["device_ids"])) is (expect["valid"] or identity)


@given(meshes())
def test_positions_and_devices_lead_back(mesh: Mesh) -> None:
    """Positions, coordinates and devices agree one by one, as arrays, and with the array of devices."""
    order = order_of(mesh)
    assert sorted(order) == list(range(mesh.num_devices))
    assert mesh.device_array().shape == mesh.axis_sizes
    assert mesh.device_array().reshape(-1).tolist() == order
    assert [mesh.position_of(device) for device in order] == list(range(mesh.num_devices))
    assert [mesh.coordinates_of(device) for device in order] == list(product(*map(range, mesh.axis_sizes)))
    positions = mesh.order.positions_of(np.array(order))
    assert positions is not None
    assert positions.tolist() == list(range(mesh.num_devices))


@given(meshes())
def test_meshes_survive_text_fields_and_copies(mesh: Mesh) -> None:
    """Proto fields and copies give back an equal mesh with an equal hash."""
    assert Mesh.from_proto(_message(mesh)) == mesh
    assert copy.deepcopy(mesh) == mesh
    assert hash(Mesh.from_proto(_message(mesh))) == hash(mesh)


@given(meshes())
def test_representations_build_the_mesh(mesh: Mesh) -> None:
    """A mesh is shown as the call that makes it."""
    names = {"Mesh": Mesh, "IotaTileAssignment": IotaTileAssignment}
    assert eval(repr(mesh), names) == mesh  # noqa: S307 - text of our own


@given(meshes())
def test_axes_of_size_1_can_be_left_out(mesh: Mesh) -> None:
    """Without them the devices stand in the same order; a mesh of ones keeps one axis."""
    smaller = mesh.without_trivial_axes()
    assert order_of(smaller) == order_of(mesh)
    assert 1 not in smaller.axis_sizes or len(smaller.axes) == 1
    assert smaller.without_trivial_axes(renumber=True).axis_names == tuple(
        f"axis_{index}" for index in range(len(smaller.axes))
    )


@given(meshes(), st.data())
def test_used_and_unused_digits_make_up_the_mesh(mesh: Mesh, data: st.DataObject) -> None:
    """Sub-axes and what they leave count through all positions together."""
    name, size = data.draw(st.sampled_from(mesh.axes))
    parts = [(p, s) for p in range(1, size) for s in range(2, size) if size % (p * s) == 0]
    refs = [AxisRef(name, *data.draw(st.sampled_from(parts)))] if parts else [AxisRef(name)]
    digits = [*mesh.unused_digits(refs), *map(mesh.digit_of, refs)]
    tile = IotaTileAssignment.from_digits((mesh.num_devices,), digits)
    assert tile is not None


def test_identity_orders_are_none() -> None:
    """The order 0..n-1 is stored as None in whatever form it comes."""
    axes = {"a": 2, "b": 4}
    same = [list(range(8)), np.arange(8).reshape(2, 4), ((4, 2), (0, 1)), IotaTileAssignment((8,)), range(8)]
    assert all(Mesh(axes, ids).device_ids is None for ids in same)
    assert all(Mesh(axes, ids) == Mesh(axes) for ids in same)


def test_transposed_orders_stay_compact() -> None:
    """An iota given as a pair is kept as an iota; the same ids written out are kept written out, and differ."""
    compact = Mesh({"a": 2, "b": 4}, ((4, 2), (1, 0)))
    assert compact.device_ids == IotaTileAssignment((2, 4), (4, 2), (1, 0))
    written = Mesh({"a": 2, "b": 4}, compact.device_array())
    assert written.device_ids == (0, 2, 4, 6, 1, 3, 5, 7)
    assert written != compact


def test_special_meshes() -> None:
    """The maximal mesh has one device of any id, the empty one none; neither has axes."""
    maximal, empty = Mesh.maximal(5), Mesh.empty()
    assert (maximal.num_devices, maximal.position_of(5), maximal.position_of(0)) == (1, 0, None)
    assert (empty.num_devices, empty.position_of(0), empty.axis_names) == (0, None, ())
    assert (repr(maximal), repr(empty)) == ("Mesh.maximal(5)", "Mesh.empty()")
    assert maximal.device_array().tolist() == [5]
    assert maximal.is_maximal
    assert not empty.is_maximal
    assert empty.without_trivial_axes() == empty
    assert (Mesh.from_proto(_message(maximal)), Mesh.from_proto(_message(empty))) == (maximal, empty)


@pytest.mark.parametrize(
    ("axes", "ids", "words"),
    [
        pytest.param({}, None, "at least one axis", id="no-axes"),
        pytest.param([("a", 2), ("a", 2)], None, "duplicate axis names: 'a'", id="duplicate"),
        pytest.param({"a": 0}, None, "size of at least 1", id="size-0"),
        pytest.param({f"x{axis}": 1 for axis in range(257)}, None, "256 axes at most", id="too-many-axes"),
        pytest.param({"a": 2.0}, None, "integers", id="float-size"),
        pytest.param([(1, 2)], None, "must be a string", id="name-is-a-number"),
        pytest.param({"a": 4}, [0, 1, 2], "expected 4 device_ids", id="too-few"),
        pytest.param({"a": 3}, [[0], [1, 2], [3]], "rows of different lengths", id="ragged"),
        pytest.param({"a": 4}, [0, 1, 2, 2], "an id occurs twice", id="repeated"),
        pytest.param({"a": 4}, [0, 1, 2, -3], "-3 is not one of them", id="negative"),
        pytest.param({"a": 4}, [0.0, 2.0, 1.0, 3.0], "must be integers", id="float-ids"),
        pytest.param({"a": 4}, ((2, 4), (1, 0)), "as many ids as places", id="iota-too-large"),
        pytest.param({"a": 1 << 32, "b": 1 << 32}, None, "64 bits", id="too-many-devices"),
    ],
)
def test_no_mesh(axes: Any, ids: Any, words: str) -> None:
    """What is no mesh is refused in words."""
    with pytest.raises(ValueError, match=words):
        Mesh(axes, ids)


def test_no_maximal_mesh() -> None:
    """Its device has an id of 0 or more, and a proto holds either ids or an iota."""
    with pytest.raises(ValueError, match="0 or more"):
        Mesh.maximal(-1)
    both = _message(Mesh({"a": 4}, (3, 2, 1, 0)))
    both.iota_transform = SimpleNamespace(reshape_dims=[2, 2], transpose_perm=[1, 0])
    with pytest.raises(ValueError, match="not both"):
        Mesh.from_proto(both)


def test_places_outside() -> None:
    """A position outside is refused; a device outside has no position."""
    mesh = Mesh({"a": 4})
    with pytest.raises(ValueError, match=r"0\.\.3"):
        mesh.device_at(4)
    assert (mesh.position_of(4), mesh.position_of(-1), mesh.coordinates_of(4)) == (None, None, None)
    assert mesh.order.positions_of(np.array([0, 4])) is None


def test_a_mesh_of_2_to_the_40_devices_builds_nothing() -> None:
    """Compact orders answer questions about single devices in the number of their axes."""
    tracemalloc.start()
    mesh = Mesh({"a": 1 << 20, "b": 1 << 20}, ((1 << 20, 1 << 20), (1, 0)))
    assert mesh.coordinates_of(5) == (5, 0)
    assert mesh.device_at(1) == 1 << 20
    assert mesh.digit_of("a") == Digit(1 << 20, 1 << 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


def _passes(build: Any) -> bool:
    """Whether a value is accepted."""
    try:
        build()
    except ValueError:
        return False
    return True


def _message(mesh: Mesh) -> Any:
    """The mesh as an object with the attributes of a MeshProto."""
    fields: dict[str, Any] = mesh.to_proto_fields()
    transform = fields.get("iota_transform")
    return SimpleNamespace(
        axes=[SimpleNamespace(**axis) for axis in fields["axes"]],
        device_ids=fields.get("device_ids", []),
        iota_transform=SimpleNamespace(**transform) if transform else None,
    )


@pytest.mark.parametrize("device", [-1, 1 << 63, 1 << 70, 1.5])
def test_the_id_of_a_maximal_mesh_is_an_int64(device: Any) -> None:
    """As in HLO text and protos, so that its groups can be an array."""
    with pytest.raises(ValueError, match="64 bits|integers"):
        Mesh.maximal(device)
    largest = Mesh.maximal((1 << 63) - 1)
    assert largest.device_array().tolist() == [(1 << 63) - 1]
