from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from commlens.analysis import ROW_KEYS
from commlens.topology import Mesh

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlens.analysis import Report

KEYS = [
    "name",
    "opcode",
    "async",
    "computation",
    "line",
    "operand_shapes",
    "result_shapes",
    "operand_bytes",
    "result_bytes",
    "wire_bytes_per_device",
    "channel_id",
    "use_global_device_ids",
    "constrain_layout",
    "dimensions",
    "group_mode",
    "replica_groups",
    "source_target_pairs",
    "participants",
    "axes",
    "ids",
    "mesh",
    "via",
    "token_operands",
    "host_transfer",
    "frontend_attributes",
    "collective_type",
    "stream_id",
    "trip_count",
    "conditional",
    "op_name",
    "source",
]

LINES = (
    "g = f32[64] all-gather(p), channel_id=7, replica_groups=[2,4]<=[8], dimensions={0}, use_global_device_ids=true,"
    ' frontend_attributes={collective_type="fsdp_all_gather",stream_id="1"},'
    ' metadata={op_name="jit(f)/all_gather" source_file="a.py" source_line=3}',
    "r = f32[16] all-reduce(p), replica_groups={}, to_apply=add",
    "c = f32[16] collective-permute(p), channel_id=1, source_target_pairs={{0,4},{4,0}}",
    "t = token[] after-all()",
    "s = (f32[16], u32[], token[]) send(p, t), channel_id=2, is_host_transfer=true",
    "n = token[] send-done(s), channel_id=2, is_host_transfer=true",
)


def test_the_keys_are_those_that_are_written(report_of: Callable[..., Report]) -> None:
    """A row has all documented keys in the documented order, as a dict and through its mapping face."""
    report = report_of(*LINES, header="num_partitions=8", mesh="data=2,model=4")
    assert list(ROW_KEYS) == KEYS
    for row in report.collectives:
        assert list(row.as_dict()) == KEYS
        assert list(dict(row)) == KEYS


def test_attributes_and_json_agree(report_of: Callable[..., Report]) -> None:
    """Each attribute is what the JSON form says under its key."""
    for row in report_of(*LINES, header="num_partitions=8", mesh="data=2,model=4").collectives:
        for key, value in row.as_dict().items():
            assert getattr(row, key) == row[key] == value, key


def test_a_row_says_what_its_line_says(report_of: Callable[..., Report]) -> None:
    """All keys of a gather, one by one."""
    (row,) = report_of(LINES[0], header="num_partitions=8", mesh="data=2,model=4").collectives
    groups = [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert row.as_dict() == {
        "name": "g",
        "opcode": "all-gather",
        "async": False,
        "computation": "e",
        "line": 13,
        "operand_shapes": ["f32[16]"],
        "result_shapes": ["f32[64]"],
        "operand_bytes": 64,
        "result_bytes": 256,
        "wire_bytes_per_device": 192,
        "channel_id": 7,
        "use_global_device_ids": True,
        "constrain_layout": False,
        "dimensions": [0],
        "group_mode": "kFlattenedID",
        "replica_groups": {
            "form": "iota",
            "text": "[2,4]<=[8]",
            "num_replica_groups": 2,
            "num_devices_per_group": 4,
            "groups": groups,
        },
        "source_target_pairs": None,
        "participants": groups,
        "axes": ["model"],
        "ids": None,
        "mesh": None,
        "via": None,
        "token_operands": [],
        "host_transfer": None,
        "frontend_attributes": {"collective_type": "fsdp_all_gather", "stream_id": "1"},
        "collective_type": "fsdp_all_gather",
        "stream_id": "1",
        "trip_count": 1,
        "conditional": [],
        "op_name": "jit(f)/all_gather",
        "source": "a.py:3",
    }


def test_what_does_not_apply_is_null(report_of: Callable[..., Report]) -> None:
    """Keys that an opcode does not have are None, not empty and not false."""
    _, reduce, permute, send = report_of(*LINES, header="num_partitions=8").collectives
    assert (reduce.dimensions, reduce.source_target_pairs, reduce.collective_type) == (None, None, None)
    assert (permute.replica_groups, permute.use_global_device_ids, permute.constrain_layout) == (None, None, None)
    assert (send.group_mode, send.participants, send.axes, send.host_transfer) == (None, None, None, True)


def test_groups_read_as_attributes_and_as_keys(report_of: Callable[..., Report]) -> None:
    """The group list of a row can be asked in both ways and cannot be changed."""
    (row,) = report_of(LINES[1], header="replica_count=4").collectives
    groups = row.replica_groups
    assert groups is not None
    assert (groups.text, groups["text"], groups.form, groups["groups"]) == ("{}", "{}", "empty", [])
    with pytest.raises(AttributeError):
        groups.text = "{{0}}"  # pyright: ignore[reportAttributeAccessIssue]


def test_lists_belong_to_the_caller(report_of: Callable[..., Report]) -> None:
    """Changing an answer does not change the row."""
    (row,) = report_of(LINES[0], header="num_partitions=8", mesh="data=2,model=4").collectives
    for key in ("axes", "operand_shapes", "participants", "dimensions", "conditional", "token_operands"):
        answer = row[key]
        assert isinstance(answer, list)
        answer.append("changed")
        assert "changed" not in getattr(row, key)
    row.frontend_attributes["changed"] = "yes"
    assert "changed" not in row.frontend_attributes


def test_unknown_names_are_refused(report_of: Callable[..., Report]) -> None:
    """A misspelled key or attribute is an error that names the right ones."""
    (row,) = report_of(LINES[1]).collectives
    with pytest.raises(KeyError):
        row["figures"]
    with pytest.raises(AttributeError, match=r"no attribute 'axis'; it has name, opcode"):
        getattr(row, "ax" + "is")


def test_ids_above_the_limit_are_left_out_unless_all_are_asked_for(report_of: Callable[..., Report]) -> None:
    """4096 ids are listed, more only with full, and 2^24 at most."""
    line = (
        "g = f32[16] all-reduce(p), channel_id=1, replica_groups=[{},4]<=[{}], use_global_device_ids=true, to_apply=add"
    )
    for number, full, listed in ((4096, False, True), (4100, False, False), (4100, True, True), (1 << 25, True, False)):
        (row,) = report_of(line.format(number // 4, number), full=full).collectives
        assert row.replica_groups is not None
        assert (row.replica_groups.groups is not None, row.participants is not None) == (listed, listed)
        assert (row.as_dict()["participants"] is not None) == listed
        assert row.replica_groups.num_replica_groups == number // 4
    (row,) = report_of(line.format(1025, 4100)).collectives
    assert row.as_dict(full=True)["participants"] is not None


def test_a_row_is_json(report_of: Callable[..., Report]) -> None:
    """Everything in the JSON form can be written, a mesh of its own included."""
    mesh = Mesh({"r": 2, "c": 2}, [0, 2, 1, 3])
    line = f"r = f32[16] all-reduce(p), channel_id=1, replica_groups={mesh} {{'c'}}, use_global_device_ids=true, to_apply=add"
    other = "t = f32[16] all-reduce(p), channel_id=1, replica_groups=mesh['x'=4] {'x'}, use_global_device_ids=true, to_apply=add"
    row, _ = report_of(line, other).collectives
    written = json.loads(json.dumps(row.as_dict()))
    assert written["mesh"] == {"axes": {"r": 2, "c": 2}, "device_ids": [0, 2, 1, 3]}
    assert row.mesh == mesh
