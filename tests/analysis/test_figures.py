from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.analysis.figures import FiguresContext, payload_bytes
from commlens.analysis.participation import Counts
from commlens.hlo import Signature, parse_shape
from commlens.topology import CollectiveDeviceList, IotaReplicaGroupList, Mesh, MeshAxesReplicaGroupList

MESH = Mesh({"data": 2, "model": 4})
CONTEXT = FiguresContext(Counts(1, 8), MESH)


def signature(
    opcode: str,
    operands: list[str],
    results: list[str],
    groups: CollectiveDeviceList | IotaReplicaGroupList | MeshAxesReplicaGroupList,
    tokens: tuple[int, ...] = (),
) -> Signature:
    """A collective of flattened ids."""
    return Signature(
        opcode,
        is_async=False,
        operand_shapes=tuple(map(parse_shape, operands)),
        result_shapes=tuple(map(parse_shape, results)),
        groups=groups,
        has_channel=True,
        use_global_device_ids=True,
        token_operands=tokens,
    )


@given(st.lists(st.tuples(st.sampled_from([("s4", 4), ("f32", 32), ("pred", 8), ("s1", 1)]), st.integers(0, 20))))
def test_bytes_are_summed_leaf_by_leaf_rounded_up(leaves: list[tuple[tuple[str, int], int]]) -> None:
    """Sub-byte types are packed, and every leaf takes whole bytes."""
    shapes = [f"{name}[{count}]" for (name, _), count in leaves]
    expected = sum(-(-bits * count // 8) for (_, bits), count in leaves)
    assert payload_bytes(signature("all-reduce", shapes, shapes, IotaReplicaGroupList(2, 4))) == (expected, expected)


def test_tokens_count_nothing_on_both_sides() -> None:
    """An operand that only orders things is left out, and so is the result that belongs to it."""
    gather = signature(
        "all-gather", ["bf16[8,8]", "bf16[]"], ["bf16[64,8]", "bf16[]"], IotaReplicaGroupList(1, 8), (1,)
    )
    assert payload_bytes(gather) == (128, 1024)
    assert CONTEXT.figures_of(gather).wire_bytes_per_device == 896


def test_a_dimension_without_a_bound_makes_bytes_unknown() -> None:
    """No bound, no bytes, no wire bytes: unknown and never zero."""
    figures = CONTEXT.figures_of(signature("all-gather", ["f32[?]"], ["f32[8]"], IotaReplicaGroupList(2, 4)))
    assert (figures.operand_bytes, figures.result_bytes, figures.wire_bytes_per_device) == (None, 32, 24)
    figures = CONTEXT.figures_of(signature("all-reduce", ["f32[?]"], ["f32[?]"], IotaReplicaGroupList(2, 4)))
    assert figures.wire_bytes_per_device is None


@given(st.lists(st.lists(st.integers(0, 7), max_size=5), min_size=1, max_size=5), st.integers(0, 1000))
def test_uneven_groups_have_a_figure_each(groups: list[list[int]], elements: int) -> None:
    """Where sizes differ there is one figure per group, in their order; else one figure; a lone device gets nothing."""
    sizes = [len(group) for group in groups]
    operand = elements * 4
    expected = [2 * operand * (size - 1) / size if size > 1 else 0 for size in sizes]
    shape = [f"f32[{elements}]"]
    found = CONTEXT.figures_of(signature("all-reduce", shape, shape, CollectiveDeviceList(groups)))
    if len(set(sizes)) == 1:
        assert found.wire_bytes_per_device == pytest.approx(expected[0])
    else:
        assert found.wire_bytes_per_device == pytest.approx(expected)
        assert float(found.largest_wire or 0) == pytest.approx(max(expected))


def test_figures_are_made_once_per_signature() -> None:
    """Asked twice, the same object; and groups that two signatures share are named once."""
    groups = IotaReplicaGroupList(2, 4)
    context = FiguresContext(Counts(1, 8), MESH)
    first, second = (signature("all-reduce", [shape], [shape], groups) for shape in ("f32[4]", "f32[8]"))
    assert context.figures_of(first) is context.figures_of(first)
    assert context.figures_of(first).participation is context.figures_of(second).participation


def test_shared_groups_are_named_by_the_flags_of_each_signature() -> None:
    """One list object under other flags joins other devices."""
    groups = IotaReplicaGroupList(2, 1)
    context = FiguresContext(Counts(2, 4), MESH)
    flags = ((False, None), (True, None), (True, False), (True, True))
    found = [
        context.figures_of(
            Signature(
                "all-reduce",
                is_async=False,
                operand_shapes=(),
                result_shapes=(),
                groups=groups,
                has_channel=channel,
                use_global_device_ids=flag,
            )
        )
        for channel, flag in flags
    ]
    assert [str(figures.mode) for figures in found] == [
        "kCrossReplica",
        "kCrossPartition",
        "kCrossReplicaAndPartition",
        "kFlattenedID",
    ]
    assert [figures.participants() for figures in found] == [
        [[0], [1], [2], [3], [4], [5], [6], [7]],
        [[0], [4], [1], [5]],
        [[0, 1, 2, 3], [4, 5, 6, 7]],
        [[0], [1]],
    ]


def test_what_a_ragged_exchange_moves_depends_on_data() -> None:
    """ragged-all-to-all has a payload, but nobody can tell what a device receives."""
    figures = CONTEXT.figures_of(signature("ragged-all-to-all", ["f32[8]"], ["f32[8]"], IotaReplicaGroupList(2, 4)))
    assert (figures.operand_bytes, figures.wire_bytes_per_device) == (32, None)


def test_axes_are_named_on_the_mesh_of_the_module() -> None:
    """Any spelling is named on the module's mesh, a mesh of its own notwithstanding."""
    lists = (
        IotaReplicaGroupList(2, 4),
        CollectiveDeviceList([[0, 1, 2, 3], [4, 5, 6, 7]]),
        MeshAxesReplicaGroupList(Mesh({"x": 2, "y": 2, "z": 2}), ["y", "z"]),
    )
    for groups in lists:
        figures = CONTEXT.figures_of(signature("all-reduce", [], [], groups))
        assert (figures.axes, figures.axes_key.text, figures.own_mesh) == (("model",), "model", None)


def test_without_a_mesh_a_row_is_named_on_its_own() -> None:
    """No mesh of the module: a mesh_axes list names its own axes and counts as unknown; other lists have no axes."""
    context = FiguresContext(Counts(1, 8), None)
    own = context.figures_of(signature("all-reduce", [], [], MeshAxesReplicaGroupList(MESH, ["model", "data"])))
    assert (own.axes, own.axes_key.text, own.own_mesh) == (("model", "data"), "?", MESH)
    other = context.figures_of(signature("all-reduce", [], [], IotaReplicaGroupList(2, 4)))
    assert (other.axes, other.axes_key.text, other.own_mesh) == (None, "?", None)


@pytest.mark.parametrize(
    "groups",
    [[[0, 1]], [[0, 1], [2, 3, 4, 5, 6, 7]], [[0, 3], [1, 2], [4, 7], [5, 6]], [[0, 8], [1, 9], [2, 10], [3, 11]]],
)
def test_groups_that_fit_no_axes_have_none(groups: list[list[int]]) -> None:
    """Partial, uneven, irregular, outside the mesh: axes are unknown."""
    figures = CONTEXT.figures_of(signature("all-reduce", [], [], CollectiveDeviceList(groups)))
    assert (figures.axes, figures.axes_key.text) == (None, "?")


def test_groups_of_one_device_run_along_no_axis() -> None:
    """Nobody to talk to: no axes, and that is known."""
    figures = CONTEXT.figures_of(signature("all-reduce", ["f32[4]"], ["f32[4]"], IotaReplicaGroupList(8, 1)))
    assert (figures.axes, figures.axes_key.text, figures.wire_bytes_per_device) == ((), "none", 0)
