from __future__ import annotations

import gc
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from commlens.analysis import report, reports
from commlens.hlo import load
from commlens.topology import Mesh

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from commlens.analysis import Report

REDUCE = (
    "{name} = f32[16] all-reduce(p), channel_id=1, replica_groups={groups}, use_global_device_ids=true, to_apply=add"
)

LOOP = """
body {
  t = (s32[], f32[16]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  p = f32[16] get-tuple-element(t), index=1
  r = f32[16] all-reduce(p), channel_id=1, replica_groups=[2,4]<=[8], use_global_device_ids=true, to_apply=add
  ROOT o = (s32[], f32[16]) tuple(i, r)
}

cond {
  t = (s32[], f32[16]) parameter(0)
  ROOT c = pred[] constant(true)
}
"""


def reduce(name: str, groups: str) -> str:
    """Write an all-reduce of flattened ids."""
    return REDUCE.format(name=name, groups=groups)


def test_trip_counts_multiply_totals(report_of: Callable[..., Report]) -> None:
    """A collective in a loop is one row; totals count it as often as it runs."""
    result = report_of(
        "i = s32[] constant(0)",
        "t = (s32[], f32[16]) tuple(i, p)",
        'w = (s32[], f32[16]) while(t), condition=cond, body=body, backend_config={"known_trip_count":{"n":"5"}}',
        before=LOOP,
        header="num_partitions=8",
        mesh="data=2,model=4",
    )
    (row,) = result.collectives
    assert (row.computation, row.trip_count, row.wire_bytes_per_device) == ("body", 5, 96)
    assert dict(result.totals.by_axes["model"]) == {
        "count": 1,
        "executions": 5,
        "operand_bytes": 320,
        "result_bytes": 320,
        "wire_bytes_per_device": 480,
        "unknown": 0,
    }


def test_a_loop_of_unknown_length_is_unknown_and_not_one(report_of: Callable[..., Report]) -> None:
    """Without a trip count executions are None, and totals say that something is missing."""
    result = report_of(
        "i = s32[] constant(0)",
        "t = (s32[], f32[16]) tuple(i, p)",
        "w = (s32[], f32[16]) while(t), condition=cond, body=body",
        before=LOOP,
    )
    (row,) = result.collectives
    total = result.totals.by_opcode["all-reduce"]
    assert (row.trip_count, total.count, total.executions, total.operand_bytes, total.unknown) == (None, 1, 0, 0, 1)


def test_each_computation_has_its_own_trip_count(report_of: Callable[..., Report]) -> None:
    """Rows of a loop body and of the entry stand side by side with their own counts."""
    result = report_of(
        "i = s32[] constant(0)",
        "t = (s32[], f32[16]) tuple(i, p)",
        'w = (s32[], f32[16]) while(t), condition=cond, body=body, backend_config={"known_trip_count":{"n":"5"}}',
        reduce("after", "[2,4]<=[8]"),
        before=LOOP,
    )
    assert [(row.computation, row.trip_count) for row in result.collectives] == [("body", 5), ("e", 1)]
    assert result.totals.by_opcode["all-reduce"].executions == 6


def test_a_branch_names_its_conditional(report_of: Callable[..., Report]) -> None:
    """A collective in a branch counts as if always taken, and its row names the conditional."""
    branch = "{name} {{\n  p = f32[16] parameter(0)\n  ROOT r = f32[16] {operation}\n}}\n"
    before = branch.format(name="yes", operation="all-reduce(p), replica_groups={}, to_apply=add") + branch.format(
        name="no", operation="negate(p)"
    )
    result = report_of(
        "k = pred[] constant(true)",
        "c = f32[16] conditional(k, p, p), true_computation=yes, false_computation=no",
        before=before,
    )
    (row,) = result.collectives
    assert (row.trip_count, row.conditional) == (1, ["c"])


def test_the_mesh_is_chosen_in_the_documented_order(report_of: Callable[..., Report]) -> None:
    """A given mesh, else the header's, else the only named one, else the only generated one, else none."""
    header = 'num_partitions=8, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["h"=8]>}}'
    named, generated = reduce("n", "mesh['a'=2,'b'=4] {'a'}"), reduce("g", "mesh['axis_0'=1,'axis_1'=8] {'axis_1'}")
    assert report_of(named, header=header, mesh="x=8").mesh == Mesh({"x": 8})
    assert report_of(named, header=header).mesh == Mesh({"h": 8})
    assert report_of(named, generated).mesh == Mesh({"a": 2, "b": 4})
    assert report_of(generated, reduce("i", "[2,4]<=[8]")).mesh == Mesh({"axis_0": 8})
    assert report_of(named, reduce("o", "mesh['c'=8] {'c'}")).mesh is None
    assert report_of(reduce("i", "[2,4]<=[8]")).mesh is None


def test_all_spellings_get_the_same_axes(report_of: Callable[..., Report]) -> None:
    """One mesh in the module names the axes of every row, whatever its spelling; members decide the order."""
    result = report_of(
        reduce("m", "mesh['a'=2,'b'=4] {'a'}"),
        reduce("i", "[4,2]<=[2,4]T(1,0)"),
        reduce("l", "{{0,4},{1,5},{2,6},{3,7}}"),
        reduce("o", "mesh['axis_0'=8] {'axis_0':(1)2}"),
        reduce("s", "mesh['a'=2,'b'=4] {'b','a'}"),
        reduce("u", "{{0,4},{1,5,2,6},{3,7}}"),
        header="num_partitions=8",
    )
    assert [row.axes for row in result.collectives] == [["a"]] * 4 + [["b", "a"], None]
    assert list(result.totals.by_axes) == ["a", "a,b", "?"]


def test_meshes_that_contradict_each_other_name_their_own_rows(report_of: Callable[..., Report]) -> None:
    """No mesh of the module: each row is named on its own, and totals count all of them as unknown."""
    result = report_of(
        reduce("m", "mesh['a'=2,'b'=4] {'a'}"), reduce("n", "mesh['c'=8] {'c'}"), header="num_partitions=8"
    )
    assert [(row.axes, row.mesh) for row in result.collectives] == [
        (["a"], Mesh({"a": 2, "b": 4})),
        (["c"], Mesh({"c": 8})),
    ]
    assert list(result.totals.by_axes) == ["?"]


def test_the_host_is_no_axis(report_of: Callable[..., Report]) -> None:
    """A transfer to the host has a row and a total by opcode, but none by axes."""
    result = report_of(
        "t = token[] after-all()",
        "s = (f32[16], u32[], token[]) send(p, t), channel_id=2, is_host_transfer=true",
        "n = token[] send-done(s), channel_id=2, is_host_transfer=true",
        mesh="data=8",
    )
    assert result.totals.by_opcode["send"].operand_bytes == 64
    assert dict(result.totals.by_axes) == {}


def test_permutes_run_along_the_axes_that_change(report_of: Callable[..., Report]) -> None:
    """Pairs are partition ids with a channel and replica ids without; axes are those of the devices behind them."""
    pairs = "source_target_pairs={{0,1},{1,0}}"
    result = report_of(
        f"c = f32[16] collective-permute(p), channel_id=1, {pairs}",
        f"r = f32[16] collective-permute(p), {pairs}",
        header="replica_count=2, num_partitions=4",
        mesh="replica=2,partition=4",
    )
    assert [(row.group_mode, row.axes, row.participants) for row in result.collectives] == [
        ("kCrossPartition", ["partition"], [[0, 1], [1, 0], [4, 5], [5, 4]]),
        ("kCrossReplica", ["replica"], [[0, 4], [4, 0], [1, 5], [5, 1], [2, 6], [6, 2], [3, 7], [7, 3]]),
    ]


def test_what_cannot_be_read_is_said_and_the_rest_is_read(report_of: Callable[..., Report]) -> None:
    """One unreadable collective does not hide the others."""
    result = report_of(reduce("bad", "[2,2]<=[8]"), reduce("good", "[2,4]<=[8]"))
    assert [row.name for row in result.collectives] == ["good"]
    (item,) = result.unread
    written = result.as_dict()["unread"]
    assert written == [{"where": item.where, "text": item.text, "why": item.why, "name": "bad", "opcode": "all-reduce"}]


def test_the_json_form_has_the_documented_keys(report_of: Callable[..., Report]) -> None:
    """The keys of a module, in order."""
    written = report_of(reduce("g", "[2,4]<=[8]"), header="num_partitions=8", mesh="data=2,model=4").as_dict()
    assert list(written) == [
        "path", "name", "format", "replica_count", "num_partitions", "mesh", "collectives", "totals", "unread", "notes",
    ]  # fmt: skip
    assert written["mesh"] == {"axes": {"data": 2, "model": 4}, "device_ids": None}
    assert (written["name"], written["format"], written["num_partitions"]) == ("m", "text", 8)


def test_huge_groups_cost_what_small_ones_do(report_of: Callable[..., Report]) -> None:
    """Rows over 2^40 devices, in every spelling that can say so and in every mode, are made without a list."""
    side = 1 << 20
    lists = (
        f"[{side},{side}]<=[{side * side}]",
        f"[{side},{side}]<=[{side},{side}]T(1,0)",
        f"mesh['a'={side},'b'={side}] {{'a'}}",
        f"mesh['a'={side},'b'={side}], device_ids=([{side},{side}]T(1,0)) {{'b'}}",
    )
    lines = [reduce(f"f{number}", groups) for number, groups in enumerate(lists)]
    lines += [line.replace("channel_id=1, ", "").replace("use_global_device_ids=true, ", "") for line in lines]
    lines += [line.replace("use_global_device_ids=true, ", "") for line in lines[:4]]
    lines = [line.replace("f", f"l{number}_", 1) for number, line in enumerate(lines)]
    report_of(reduce("warm", "[2,4]<=[8]"), header="num_partitions=8", mesh="data=8")
    tracemalloc.start()
    result = report_of(*lines, header=f"replica_count={side * side}", mesh=f"a={side},b={side}")
    assert [row.axes for row in result.collectives] == [["b"], ["a"], ["a"], ["a"]] * 3
    assert all(row.participants is None for row in result.collectives)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 << 20


@pytest.fixture
def collector() -> Iterator[None]:
    """Leave Python's collector as it was."""
    was_on = gc.isenabled()
    yield
    if was_on:
        gc.enable()
    else:
        gc.disable()


@pytest.mark.usefixtures("collector")
@pytest.mark.parametrize("on", [True, False])
def test_the_collector_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch, *, on: bool) -> None:
    """Rows are made with the collector off; it comes back, also after an error, and only if it was on."""
    seen: list[bool] = []

    def fail(_module: object) -> None:
        seen.append(gc.isenabled())
        raise RuntimeError

    module = load("HloModule m\nENTRY e {\n  p = f32[] parameter(0)\n}\n")
    (gc.enable if on else gc.disable)()
    report(module)
    assert gc.isenabled() == on
    monkeypatch.setattr(reports, "discover", fail)
    with pytest.raises(RuntimeError):
        report(module)
    assert (gc.isenabled(), seen) == (on, [False])
