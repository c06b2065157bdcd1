from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.analysis.figures import Figures, FiguresContext
from commlens.analysis.participation import Counts
from commlens.analysis.row import Row
from commlens.analysis.totals import OPCODES, totals_of
from commlens.hlo import Signature, Site, parse_shape
from commlens.topology import CollectiveDeviceList, IotaReplicaGroupList, Mesh, SourceTargetPairs

if TYPE_CHECKING:
    from collections.abc import Sequence

MESH = Mesh({"data": 2, "model": 4})
CONTEXT = FiguresContext(Counts(1, 8), MESH)


class Place(Site):
    """A site that is nowhere in particular."""

    __slots__ = ("channel_id", "signature")

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self.channel_id = None

    @property
    def name(self) -> str:
        """A name."""
        return "x"

    @property
    def computation_name(self) -> str:
        """A name."""
        return "e"

    @property
    def line(self) -> int | None:
        """No line."""
        return None

    @property
    def op_name(self) -> str | None:
        """No metadata."""
        return None

    @property
    def source(self) -> str | None:
        """No metadata."""
        return None


def collective(opcode: str, shape: str, groups: list[list[int]] | IotaReplicaGroupList) -> Figures:
    """Figures of a collective of flattened ids whose operand and result have one shape."""
    shapes = (parse_shape(shape),)
    listed = CollectiveDeviceList(groups) if isinstance(groups, list) else groups
    return CONTEXT.figures_of(
        Signature(
            opcode,
            is_async=False,
            operand_shapes=shapes,
            result_shapes=shapes,
            groups=listed,
            has_channel=True,
            use_global_device_ids=True,
        )
    )


def point_to_point(opcode: str, pairs: SourceTargetPairs | None = None, *, host: bool | None = None) -> Figures:
    """Figures of something between two ends."""
    shapes = (parse_shape("f32[8]"),)
    return CONTEXT.figures_of(
        Signature(
            opcode,
            is_async=False,
            operand_shapes=shapes,
            result_shapes=shapes,
            pairs=pairs,
            has_channel=True,
            is_host_transfer=host,
        )
    )


KINDS = [
    collective("all-reduce", "f32[100]", IotaReplicaGroupList(2, 4)),
    collective("all-reduce", "f32[3]", IotaReplicaGroupList(4, 2, (2, 4), (1, 0))),
    collective("all-reduce", "f32[100]", [[0, 1], [2, 3, 4, 5, 6, 7]]),
    collective("all-gather", "f32[?]", IotaReplicaGroupList(1, 8)),
    collective("ragged-all-to-all", "f32[8]", IotaReplicaGroupList(1, 8)),
    collective("all-to-all", "f32[7]", IotaReplicaGroupList(8, 1)),
    point_to_point("collective-permute", SourceTargetPairs([(0, 4)])),
    point_to_point("send", host=True),
]


def slow_sum(rows: Sequence[tuple[Figures, int | None]]) -> object:
    """Add rows one by one; what equals the sum up to rounding."""
    total: dict[str, float] = dict.fromkeys(
        ("count", "executions", "operand_bytes", "result_bytes", "wire_bytes_per_device", "unknown"), 0
    )
    for figures, trips in rows:
        wire = figures.wire_bytes_per_device
        if isinstance(wire, list):
            wire = max(each for each in wire if each is not None)
        total["count"] += 1
        unknown = trips is None
        for key, figure in (
            ("operand_bytes", figures.operand_bytes),
            ("result_bytes", figures.result_bytes),
            ("wire_bytes_per_device", wire),
        ):
            unknown = unknown or figure is None
            total[key] += 0 if trips is None or figure is None else trips * figure
        total["executions"] += trips or 0
        total["unknown"] += unknown
    return pytest.approx(total)


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.none() | st.integers(0, 50)), max_size=20))
def test_totals_add_every_row_once(rows: list[tuple[Figures, int | None]]) -> None:
    """Sums by opcode and by axes are those of adding one row after the other; the host is left out of axes."""
    totals = totals_of([Row(Place(figures.signature), figures, trips, ()) for figures, trips in rows]).as_dict()
    opcodes = {figures.signature.opcode for figures, _ in rows}
    assert totals["by_opcode"] == {
        opcode: slow_sum([row for row in rows if row[0].signature.opcode == opcode]) for opcode in opcodes
    }
    devices = [row for row in rows if not row[0].signature.is_host_transfer]
    keys = {figures.axes_key.text for figures, _ in devices}
    assert totals["by_axes"] == {key: slow_sum([row for row in devices if row[0].axes_key.text == key]) for key in keys}


def test_keys_stand_in_order() -> None:
    """Opcodes in the order of tables, axes in mesh order, then none, then unknown."""
    totals = totals_of([Row(Place(figures.signature), figures, 1, ()) for figures in reversed(KINDS)])
    assert list(totals.by_opcode) == [opcode for opcode in OPCODES if opcode in totals.by_opcode]
    assert list(totals.by_axes) == ["data", "data,model", "model", "none", "?"]


@pytest.mark.parametrize("name", ["none", "?"])
def test_an_axis_may_be_called_as_what_has_no_axes(name: str) -> None:
    """Rows along such an axis and rows that lie along no axes have one key, and none of them is lost."""
    survey = FiguresContext(Counts(1, 8), Mesh({name: 2, "model": 4}))
    lists = [IotaReplicaGroupList(4, 2, (2, 4), (1, 0)), IotaReplicaGroupList(8, 1), [[0, 5], [1, 4], [2, 7], [3, 6]]]
    figures = [survey.figures_of(collective("all-reduce", "f32[8]", groups).signature) for groups in lists]
    totals = totals_of([Row(Place(each.signature), each, 1, ()) for each in figures])
    assert {key: total.count for key, total in totals.by_axes.items()} == {"none": 1, "?": 1} | {name: 2}


def test_fractions_add_up_exactly() -> None:
    """Three thirds are one: nothing is rounded before the end."""
    third = collective("all-gather", "f32[1]", IotaReplicaGroupList(1, 3))
    (total,) = totals_of([Row(Place(third.signature), third, trips, ()) for trips in (1, 2)]).by_opcode.values()
    assert third.wire_bytes_per_device == pytest.approx(8 / 3)
    assert (total.wire_bytes_per_device, type(total.wire_bytes_per_device)) == (8, int)


def test_a_total_reads_as_attributes_and_keys() -> None:
    """Both spellings reach the same figure, also through the totals themselves."""
    totals = totals_of([Row(Place(KINDS[0].signature), KINDS[0], 3, ())])
    assert totals.by_axes["model"].executions == 3
    assert totals["by_axes"] == {"model": totals.by_axes["model"]}
    assert dict(totals.by_axes["model"])["executions"] == 3
