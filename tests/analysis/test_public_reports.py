"""Public reports of trouble with collectives, reduced to small inputs with their right answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlens.analysis import explain, groups_from_sharding, groups_over
from commlens.errors import GrammarError
from commlens.topology import IotaTileAssignment, Mesh, parse_sharding, tile_to_mesh

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlens.analysis import Report

FLAG = "use_global_device_ids=true"


def test_b01_groups_of_replicas_join_all_their_partitions(report_of: Callable[..., Report]) -> None:
    """openxla/xla#5655: {0} is a replica id; with a channel and no flag both partitions take part."""
    (row,) = report_of(
        "x = f32[4] parameter(2)",
        "ar = f32[4] all-reduce(x), channel_id=7, replica_groups={{0}}, to_apply=add",
        header="num_partitions=2",
    ).collectives
    assert (row.group_mode, row.participants, row.wire_bytes_per_device) == (
        "kCrossReplicaAndPartition",
        [[0, 1]],
        16,
    )


def test_b03_a_mesh_over_a_transposed_order() -> None:
    """jax-ml/jax#39659: the order of devices is iota(2,2) transposed, in both places where it is written."""
    mesh = "mesh['axis_0'=2,'axis_1'=2], device_ids=([2,2]T(1,0))"
    for spec in (f"{mesh} {{'axis_1'}}", "mesh['axis_0'=2,'axis_1'=2, device_ids=([2,2]T(1,0))] {'axis_1'}"):
        explained = explain(spec)
        assert (explained.groups, explained.axes) == ([[0, 2], [1, 3]], ["axis_1"])
    assert groups_over(mesh, "axis_0").groups == [[0, 1], [2, 3]]


def test_b04_a_gather_inside_hosts_and_a_reduce_across_them(report_of: Callable[..., Report]) -> None:
    """NVIDIA/nccl#1772: two trips of a loop; the gather runs inside a host, the reduce between hosts."""
    before = f"""
body {{
  t = (s32[], f32[512]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  a = f32[512] get-tuple-element(t), index=1
  g = f32[4096] all-gather(a), channel_id=1, replica_groups=[2,8]<=[16], dimensions={{0}}, {FLAG}
  s = f32[512] slice(g), slice={{[0:512]}}
  r = f32[512] all-reduce(s), channel_id=2, replica_groups=[8,2]<=[2,8]T(1,0), {FLAG}, to_apply=add
  ROOT o = (s32[], f32[512]) tuple(i, r)
}}

cond {{
  t = (s32[], f32[512]) parameter(0)
  ROOT c = pred[] constant(true)
}}
"""
    report = report_of(
        "i = s32[] constant(0)",
        "a = f32[512] parameter(2)",
        "t = (s32[], f32[512]) tuple(i, a)",
        'w = (s32[], f32[512]) while(t), condition=cond, body=body, backend_config={"known_trip_count":{"n":"2"}}',
        before=before,
        header="num_partitions=16",
        mesh="host=2,local=8",
    )
    gather, reduce = report.collectives
    assert (gather.axes, gather.wire_bytes_per_device, gather.trip_count) == (["local"], 14_336, 2)
    assert report.totals.by_axes["local"].wire_bytes_per_device == 28_672
    assert (reduce.axes, reduce.operand_bytes, reduce.trip_count) == (["host"], 2_048, 2)
    assert gather.participants == [[*range(8)], [*range(8, 16)]]
    assert reduce.participants == [[device, device + 8] for device in range(8)]


def test_b05_strided_groups_are_the_leading_axis(report_of: Callable[..., Report]) -> None:
    """openxla/xla#4062: groups with stride 2 run along the outer axis of x=4, y=2."""
    rows = report_of(
        "u = f32[2048,8192] parameter(2)",
        "v = f32[8192,4096] parameter(3)",
        "a = f32[8192,8192] all-gather(u), replica_groups={{0,2,4,6},{1,3,5,7}}, dimensions={0}",
        "b = f32[8192,8192] all-gather(v), replica_groups={{0,1},{2,3},{4,5},{6,7}}, dimensions={1}",
        mesh="x=4,y=2",
    ).collectives
    assert [(row.axes, row.wire_bytes_per_device) for row in rows] == [(["x"], 201_326_592), (["y"], 134_217_728)]


def test_b09_permutes_move_between_the_listed_devices_only(report_of: Callable[..., Report]) -> None:
    """openxla/xla#44530: each permute has its own pair of devices; none is a fault."""
    report = report_of(
        "c0 = f32[16] collective-permute(p), channel_id=1, source_target_pairs={{0,1}}",
        "c1 = f32[16] collective-permute(c0), channel_id=2, source_target_pairs={{2,3}}",
        "c2 = f32[16] collective-permute(c1), channel_id=3, source_target_pairs={{1,2}}",
        header="num_partitions=4",
        mesh="x=2,y=2",
    )
    assert [row.participants for row in report.collectives] == [[[0, 1]], [[2, 3]], [[1, 2]]]
    assert [row.axes for row in report.collectives] == [["y"], ["y"], ["x", "y"]]
    assert report.unread == ()


def test_b11_empty_groups_are_all_replicas(report_of: Callable[..., Report]) -> None:
    """aws-neuron/aws-neuron-sdk#1107: one group per rank was asked for, but the module joins all eight."""
    (row,) = report_of(
        "x = f32[2] parameter(2)",
        "k = f32[] constant(0)",
        "r = (f32[2], f32[]) all-reduce(x, k), replica_groups={}, to_apply=add",
        header="replica_count=8",
    ).collectives
    assert (row.group_mode, row.participants) == ("kCrossReplica", [[*range(8)]])


def test_b14_a_start_and_its_done_are_one_collective(report_of: Callable[..., Report]) -> None:
    """NVIDIA/TransformerEngine#3398: written in one piece or in two, the payload counts once."""
    whole = report_of("v = f32[256] parameter(2)", "r = f32[256] all-reduce(v), replica_groups={}, to_apply=add")
    parted = report_of(
        "v = f32[256] parameter(2)",
        "s = f32[256] all-reduce-start(v), replica_groups={}, to_apply=add",
        "d = f32[256] all-reduce-done(s)",
    )
    for report in (whole, parted):
        assert dict(report.totals.by_opcode["all-reduce"])["count"] == 1
        (row,) = report.collectives
        assert (row.opcode, row.operand_bytes, row.result_bytes) == ("all-reduce", 1_024, 1_024)
    assert [report.collectives[0].is_async for report in (whole, parted)] == [False, True]


def test_b15_a_name_in_the_metadata_proves_nothing(report_of: Callable[..., Report]) -> None:
    """jax-ml/jax#40572: a variadic gather of 8-bit floats; what the scheduler called it does not make it async."""
    (row,) = report_of(
        "a = f8e4m3fn[2,512,512] parameter(2)",
        "b = f8e8m0fnu[2,512,16] parameter(3)",
        "g = (f8e4m3fn[4,512,512], f8e8m0fnu[4,512,16]) all-gather(a, b), channel_id=1,"
        " replica_groups=mesh['axis_0'=2,'axis_1'=2] {'axis_1'}, dimensions={0}, use_global_device_ids=true,"
        ' metadata={scheduling_name="all-gather-start"}',
        header="num_partitions=4",
    ).collectives
    assert (row.participants, row.is_async) == ([[0, 1], [2, 3]], False)
    assert (row.operand_bytes, row.result_bytes) == (540_672, 1_081_344)


def test_b16_tiles_and_ids_must_be_as_many(report_of: Callable[..., Report]) -> None:
    """openxla/xla#46606: 4 tiles against 16 or 8 ids are an error with a column, in a list and in a sharding."""
    with pytest.raises(GrammarError) as groups:
        explain("[2,2]<=[8]")
    with pytest.raises(GrammarError) as sharding:
        groups_from_sharding("{devices=[2,2]<=[16]}", [0])
    assert (groups.value.position, sharding.value.position) == (0, 9)
    report = report_of(f"r = f32[16] all-reduce(p), channel_id=1, replica_groups=[2,2]<=[8], {FLAG}, to_apply=add")
    assert [item.name for item in report.unread] == ["r"]


def test_b17_a_gather_without_its_dimension_is_said_and_the_rest_is_read(report_of: Callable[..., Report]) -> None:
    """openxla/xla#45821: an empty list of dimensions makes one unread item."""
    report = report_of(
        "g = f32[64] all-gather(p), replica_groups={}, dimensions={}",
        "h = f32[64] all-gather(p), replica_groups={}, dimensions={0}",
    )
    assert [row.name for row in report.collectives] == ["h"]
    (item,) = report.unread
    assert (item.name, item.opcode) == ("g", "all-gather")
    assert "dimension" in item.why


def test_b19_a_resharding_along_both_axes() -> None:
    """openxla/xla#15207: rows by y and planes by x become columns by (x, y)."""
    mesh = Mesh({"x": 4, "y": 2})
    before, after = "{devices=[2,1,4]<=[4,2]T(1,0)}", "{devices=[1,8,1]<=[8]}"
    assert groups_from_sharding(before, [0], mesh=mesh).axes == ["y"]
    assert groups_from_sharding(before, [2], mesh=mesh).axes == ["x"]
    assert groups_from_sharding(after, [1], mesh=mesh).axes == ["x", "y"]
    shard = 16 * 16 * 16 * 4 // 8
    assert (shard, 7 * shard, shard * 7 // 8) == (2_048, 14_336, 1_792)


def test_b20_partial_replication_keeps_copies_together() -> None:
    """jax-ml/jax#18591: 64 tiles in 4 copies each; device d holds tile d // 4."""
    assert groups_from_sharding("{devices=[256,1]<=[256]}", [0]).groups == [[*range(256)]]
    copies = groups_from_sharding("{devices=[1,64,4]<=[256] last_tile_dim_replicate}", [1])
    assert copies.groups == [list(range(copy, 256, 4)) for copy in range(4)]
    sharding = parse_sharding("{devices=[1,64,4]<=[256] last_tile_dim_replicate}")
    assert [sharding.tile_of(device) for device in range(256)] == [(0, device // 4) for device in range(256)]


def test_b21_the_oldest_spelling_lists_its_devices() -> None:
    """alpa-projects/alpa#701: device lists without a comma before them are read."""
    assert groups_from_sharding("{devices=[4,1,1,1]0,1,2,3}", [0]).groups == [[0, 1, 2, 3]]
    both = "{devices=[2,1,1,2]0,1,2,3}"
    assert groups_from_sharding(both, [0]).groups == [[0, 2], [1, 3]]
    assert groups_from_sharding(both, [3]).groups == [[0, 1], [2, 3]]


def test_b22_a_gather_over_the_batch_axis() -> None:
    """tenstorrent/tt-mlir#2061: dimension 0 is cut over batch, with two copies over model."""
    mesh = Mesh({"model": 2, "batch": 4})
    groups = groups_from_sharding("{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}", [0], mesh=mesh)
    assert (groups.groups, groups.axes) == ([[0, 1, 2, 3], [4, 5, 6, 7]], ["batch"])
    tile = parse_sharding("{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}").tile
    assert isinstance(tile, IotaTileAssignment)
    assert [name for name, _ in tile_to_mesh(tile)[0].axes] == ["axis_0", "axis_1"]


def test_b23_ids_that_follow_each_other_are_no_proof_of_an_axis() -> None:
    """tenstorrent/tt-mlir#2215: over the order 0,2,1,3 the groups {0,2},{1,3} are the inner axis."""
    mesh = Mesh({"r": 2, "c": 2}, [0, 2, 1, 3])
    explained = explain("{{0,2},{1,3}}", mesh)
    assert (explained.axes, explained.mesh_axes) == (["c"], "mesh['r'=2,'c'=2], device_ids=(0,2,1,3) {'c'}")
    assert explain("{{0,1},{2,3}}", mesh).axes == ["r"]


def test_b24_uneven_groups_have_a_figure_each(report_of: Callable[..., Report]) -> None:
    """openxla/xla#45332: sizes 2 and 6 are a valid partition; the first size does not speak for all."""
    report = report_of(
        "x = f32[100] parameter(2)",
        f"r = f32[100] all-reduce(x), channel_id=1, replica_groups={{{{0,1}},{{2,3,4,5,6,7}}}}, {FLAG}, to_apply=add",
        header="num_partitions=8",
        mesh="data=8",
    )
    (row,) = report.collectives
    assert row.wire_bytes_per_device == pytest.approx([400, 666.67], abs=0.01)
    assert (row.axes, list(report.totals.by_axes)) == (None, ["?"])
    assert explain("{{0,1},{2,3,4,5,6,7}}", devices=8).is_partition


def test_b30_strided_groups_of_an_all_to_all(report_of: Callable[..., Report]) -> None:
    """jax-ml/jax#5861: {0,2} and {1,3} exchange halves; member order decides who gets which."""
    (row,) = report_of(
        "x = f32[2] parameter(2)",
        "a = f32[2] all-to-all(x), channel_id=1, replica_groups={{0,2},{1,3}}, dimensions={0}",
        header="num_partitions=4",
    ).collectives
    groups = [[0, 2], [1, 3]]
    assert (row.group_mode, row.participants, row.wire_bytes_per_device) == ("kCrossPartition", groups, 4)
    held = {device: [2 * device, 2 * device + 1] for device in range(4)}
    received = {device: [held[peer][rank] for peer in group] for group in groups for rank, device in enumerate(group)}
    assert received == {0: [0, 4], 2: [1, 5], 1: [2, 6], 3: [3, 7]}
