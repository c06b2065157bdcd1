"""Golden texts of what a program communicates: what they say, what changes them and what does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlens.analysis.expectations.golden_texts import Golden, read_golden
from golden_texts import DATA_MODEL, GATHER, PERMUTE, REDUCE, SEND_OUT

if TYPE_CHECKING:
    from collections.abc import Callable


def test_the_text_is_a_table_to_read(golden: Callable[..., str]) -> None:
    """A version, what it is, the mesh, and one line for all that are alike, in one order."""
    text = golden(
        REDUCE.format("r", "[8,1]<=[8]"),
        GATHER.format("g1", "[2,4]<=[8]"),
        PERMUTE.format("c", "{{1,2},{0,1}}"),
        GATHER.format("g2", "[2,4]<=[8]"),
    )
    assert text.splitlines() == [
        "# commlens golden 1",
        "# What the program communicates, however it is spelled. Renew it: pytest --commlens-update",
        "mesh: data=2, model=4",
        "",
        "count  opcode              axes   groups         types  bytes      runs",
        "2      all-gather          model  2 of 4         f32    64 -> 256  1",
        "1      all-reduce          none   8 of 1         f32    64 -> 64   1",
        "1      collective-permute  model  {{0,1},{1,2}}  f32    64 -> 64   1",
    ]


def test_a_module_that_communicates_nothing_has_a_text_too(golden: Callable[..., str]) -> None:
    """The table is empty, and read as such."""
    text = golden(mesh=None)
    assert text.splitlines()[2:] == ["mesh: none", "", "count  opcode  axes  groups  types  bytes  runs"]
    assert read_golden(text, path="g") == Golden("none", {})


CALLED = """
sometimes {
  a = f32[16] parameter(0)
  ROOT r = f32[16] all-reduce(a), channel_id=9, replica_groups={{0,1},{2,3,4}}, use_global_device_ids=true, to_apply=add
}
never {
  a = f32[16] parameter(0)
  ROOT n = f32[16] negate(a)
}
"""


def test_what_is_special_or_unknown_is_said(golden: Callable[..., str]) -> None:
    """Conditionals, uneven groups, dimensions without bound, several types, the host: each has its word."""
    text = golden(
        "i = s32[] constant(0)",
        "c = f32[16] conditional(i, p, p), branch_computations={sometimes, never}",
        "d = bf16[<=8,?] parameter(2)",
        "v = (f32[16], bf16[<=8,?]) all-reduce(p, d), replica_groups={}, channel_id=3, use_global_device_ids=false, to_apply=add",
        "t = token[] after-all()",
        "s = (f32[16], u32[], token[]) send(p, t), channel_id=2, is_host_transfer=true",
        before=CALLED,
    )
    assert [line.split(maxsplit=1)[1] for line in text.splitlines()[5:]] == [
        "all-reduce  ?           {{0,1},{2,3,4}}  f32       64 -> 64  1 conditional",
        "all-reduce  data,model  1 of 8           bf16,f32  ? -> ?    1",
        "send        ?           the host         f32       64 -> 0   1",
    ]


# --- what must not change it, and what must -------------------------------------------------------------------------

ALIKE = {
    "iota": ([GATHER.format("g", "{{0,1,2,3},{4,5,6,7}}")], [GATHER.format("g", "[2,4]<=[8]")]),
    "mesh-axes": ([GATHER.format("g", "[2,4]<=[8]")], [GATHER.format("g", "mesh['data'=2,'model'=4] {'model'}")]),
    "order-of-groups": ([GATHER.format("g", "[2,4]<=[8]")], [GATHER.format("g", "{{4,5,6,7},{0,1,2,3}}")]),
    "order-in-a-sum": ([REDUCE.format("r", "{{0,3},{1,2},{4,7},{5,6}}")], [REDUCE.format("r", "{{6,5},{3,0},{1,2},{4,7}}")]),
    "order-along-an-axis": ([REDUCE.format("r", "{{2,1,0,3},{7,4,5,6}}")], [REDUCE.format("r", "[2,4]<=[8]")]),
    "order-behind-the-root": ([SEND_OUT.format("b", "{{0,3,2,1},{4,5,7,6}}")], [SEND_OUT.format("b", "[2,4]<=[8]")]),
    "order-behind-another-root": ([SEND_OUT.format("b", "{{2,3,0,1},{4,5,7,6}}")], [SEND_OUT.format("b", "{{4,7,6,5},{2,0,1,3}}")]),
    "order-of-pairs": ([PERMUTE.format("c", "{{0,1},{1,2}}")], [PERMUTE.format("c", "{{1,2},{0,1}}")]),
    "names-and-places": (
        [GATHER.format("g", "[2,4]<=[8]"), REDUCE.format("r", "[2,4]<=[8]")],
        [REDUCE.format("all", "[2,4]<=[8]"), GATHER.format("x", "[2,4]<=[8]").replace("channel_id=1", "channel_id=77")],
    ),
    "layouts": ([GATHER.format("g", "[2,4]<=[8]")], [GATHER.format("g", "[2,4]<=[8]").replace("f32[64]", "f32[64]{0:T(128)}")]),
    "async": (
        [REDUCE.format("r", "[2,4]<=[8]")],
        [REDUCE.format("s", "[2,4]<=[8]").replace("all-reduce(", "all-reduce-start("), "r = f32[16] all-reduce-done(s)"],
    ),
    "metadata": ([PERMUTE.format("c", "{{0,1}}")], [PERMUTE.format("c", "{{0,1}}") + ', metadata={op_name="a  b" source_file="x.py" source_line=3}']),
}  # fmt: skip
OTHER = {
    "groups": ([GATHER.format("g", "[2,4]<=[8]")], [GATHER.format("g", "[4,2]<=[8]")]),
    "axes": ([REDUCE.format("g", "[4,2]<=[8]")], [REDUCE.format("g", "[4,2]<=[2,4]T(1,0)")]),
    "order-in-a-gather": (
        [GATHER.format("g", "[1,8]<=[8]")],
        [GATHER.format("g", "[1,8]<=[2,4]T(1,0)")],
    ),
    "root": ([SEND_OUT.format("b", "{{0,1,2,3},{4,5,6,7}}")], [SEND_OUT.format("b", "{{1,0,2,3},{5,4,6,7}}")]),
    "roots": ([SEND_OUT.format("b", "{{2,0,1,3},{4,5,6,7}}")], [SEND_OUT.format("b", "{{1,0,2,3},{4,5,6,7}}")]),
    "direction": ([PERMUTE.format("c", "{{0,1}}")], [PERMUTE.format("c", "{{1,0}}")]),
    "members": ([REDUCE.format("r", "{{0,3},{1,2}}")], [REDUCE.format("r", "{{0,2},{1,3}}")]),
    "number": ([GATHER.format("g", "[2,4]<=[8]")], [GATHER.format(name, "[2,4]<=[8]") for name in "gh"]),
    "types": ([PERMUTE.format("c", "{{0,1}}")], [PERMUTE.format("c", "{{0,1}}").replace("f32", "s32"), "p2 = s32[16] parameter(3)"]),
    "bytes": ([GATHER.format("g", "[2,4]<=[8]")], [GATHER.format("g", "[2,4]<=[8]").replace("f32[64]", "f32[128]")]),
    "opcode": ([REDUCE.format("r", "[8,1]<=[8]")], [REDUCE.format("r", "[8,1]<=[8]").replace("all-reduce", "all-to-all")]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("pair", "mesh"),
    [
        pytest.param(pair, mesh, id=f"{name}-{'mesh' if mesh else 'no-mesh'}")
        for name, pair in ALIKE.items()
        for mesh in (DATA_MODEL, None)
        if mesh or name != "mesh-axes"  # which bring a mesh of their own
    ],
)
def test_spelling_does_not_show(
    golden: Callable[..., str], pair: tuple[list[str], list[str]], mesh: dict[str, int] | None
) -> None:
    """The same communication has the same text, with axes and without."""
    first, second = (text.split("\n", 3)[3] for text in (golden(*lines, mesh=mesh) for lines in pair))
    assert first == second


@pytest.mark.parametrize("mesh", [DATA_MODEL, None], ids=["mesh", "no-mesh"])
@pytest.mark.parametrize("pair", OTHER.values(), ids=OTHER.keys())
def test_communication_shows(
    golden: Callable[..., str], pair: tuple[list[str], list[str]], mesh: dict[str, int] | None
) -> None:
    """Other communication has another text, with axes and without."""
    assert golden(*pair[0], mesh=mesh) != golden(*pair[1], mesh=mesh)


@pytest.mark.parametrize(
    "header", ["num_partitions=512", "replica_count=512", ""], ids=["partitions", "replicas", "nobody-knows"]
)
def test_many_devices_have_a_short_word(golden: Callable[..., str], header: str) -> None:
    """Beyond 64 ids a fingerprint stands for them: equal for the same devices, however they are listed, and no others."""
    listed, shifted = (
        "{"
        + ",".join(
            "{" + ",".join(str((2 * group + member + by) % 512) for member in range(2)) + "}" for group in range(256)
        )
        + "}"
        for by in (0, 1)
    )
    gather = (
        GATHER.replace("channel_id=1, ", "").replace(", use_global_device_ids=true", "")
        if "part" not in header
        else GATHER
    )
    texts = [
        golden(gather.format("g", groups), header=header, mesh=None) for groups in (listed, "[256,2]<=[512]", shifted)
    ]
    assert texts[0] == texts[1] != texts[2]
    assert all(len(line) < 100 for line in texts[0].splitlines())
    pairs = [
        "{" + ",".join(f"{{{device},{(device + step) % 512}}}" for device in devices) + "}"
        for devices, step in ((range(512), 1), (reversed(range(512)), 1), (range(512), 511))
    ]
    texts = [golden(PERMUTE.format("c", each), header=header, mesh=None) for each in pairs]
    assert texts[0] == texts[1] != texts[2]
