"""What a table says of rows, and which rows it puts together."""

from __future__ import annotations

from commlens import load, report
from commlens.views.alike import Kind, alike

HEADER = "HloModule m, num_partitions=8"
FLAGS = "use_global_device_ids=true, to_apply=add"


def module(*instructions: str, header: str = HEADER) -> str:
    """Return a module with some instructions that may use ``x`` and ``y``."""
    lines = ["x = f32[64] parameter(0)", "y = bf16[4] parameter(1)", *instructions]
    return "\n".join([header, "ENTRY e {", *(f"  {line}" for line in lines), "}", ""])


def kinds(*instructions: str, mesh: str | None = None, header: str = HEADER) -> list[Kind]:
    """Return what a table says of the instructions."""
    return [group.kind for group in alike(report(load(module(*instructions, header=header)), mesh).collectives)]


def test_equal_rows_are_one_line() -> None:
    """Rows that differ in name and channel alone are put together; the first gives the order."""
    rows = report(
        load(
            module(
                f"a = f32[64] all-reduce(x), channel_id=1, replica_groups=[2,4]<=[8], {FLAGS}",
                f"b = f32[64] all-reduce(x), channel_id=2, replica_groups=[4,2]<=[8], {FLAGS}",
                f"c = f32[64] all-reduce(x), channel_id=3, replica_groups=[2,4]<=[8], {FLAGS}",
            )
        )
    ).collectives
    assert [[row.name for row in group.rows] for group in alike(rows)] == [["a", "c"], ["b"]]


def test_rows_that_differ_stay_apart() -> None:
    """Another spelling of the groups, another shape or an asynchronous form is another line."""
    found = kinds(
        f"a = f32[64] all-reduce(x), channel_id=1, replica_groups=[1,8]<=[8], {FLAGS}",
        f"b = f32[64] all-reduce(x), channel_id=1, replica_groups={{{{0,1,2,3,4,5,6,7}}}}, {FLAGS}",
        f"c = bf16[4] all-reduce(y), channel_id=1, replica_groups=[1,8]<=[8], {FLAGS}",
        f"d = f32[64] all-reduce-start(x), channel_id=1, replica_groups=[1,8]<=[8], {FLAGS}",
    )
    assert len(found) == 4


def test_axes() -> None:
    """Axes are named on the mesh; no fit is ``?``, groups of one device are ``none``."""
    found = kinds(
        f"a = f32[64] all-reduce(x), channel_id=1, replica_groups=[4,2]<=[2,4]T(1,0), {FLAGS}",
        f"b = f32[64] all-reduce(x), channel_id=1, replica_groups=[8,1]<=[8], {FLAGS}",
        f"c = f32[64] all-reduce(x), channel_id=1, replica_groups={{{{0,1,2}},{{3,4,5,6,7}}}}, {FLAGS}",
        mesh="data=2,model=4",
    )
    assert [kind.axes for kind in found] == ["data", "none", "?"]
    assert [kind.size for kind in found] == ["4x2", "8x1", "2x3..5"]
    assert [kind.uneven for kind in found] == [False, False, True]
    assert found[2].received == 2 * 256 * 4 / 5


def test_axes_of_the_rows_own_mesh_stand_in_parentheses() -> None:
    """Where meshes disagree, a row is named on its own, and says so."""
    found = kinds(
        f"a = f32[64] all-reduce(x), channel_id=1, replica_groups=mesh['a'=2,'b'=4] {{'a'}}, {FLAGS}",
        f"b = f32[64] all-reduce(x), channel_id=1, replica_groups=mesh['c'=8] {{'c'}}, {FLAGS}",
    )
    assert [kind.axes for kind in found] == ["(a)", "(c)"]


def test_devices_are_named_where_ids_are_not_devices() -> None:
    """Replica ids are followed by the devices that they stand for; without counts that is left open."""
    instruction = "a = f32[64] all-reduce(x), replica_groups={{0,1}}, to_apply=add"
    (known,) = kinds(instruction, header="HloModule m, replica_count=2, num_partitions=2")
    (unknown,) = kinds(instruction, header="HloModule m")
    assert (known.spelling, known.devices, known.form) == ("{{0,1}}", "{{0,2},{1,3}}", ())
    assert (unknown.spelling, unknown.devices, unknown.form) == ("{{0,1}}", "", ("ids as written",))


def test_a_list_of_everybody() -> None:
    """Empty groups are ``all``, with the devices where they are known."""
    (kind,) = kinds("a = f32[64] all-reduce(x), replica_groups={}, to_apply=add", header="HloModule m, replica_count=4")
    assert (kind.size, kind.devices) == ("all", "{{0,1,2,3}}")


def test_forbidden_flags_are_named() -> None:
    """A combination of flags that no device can follow is a row, and says so."""
    (kind,) = kinds("a = f32[64] all-reduce(x), replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add")
    assert kind.form == ("invalid flags",)


def test_pairs_and_transfers() -> None:
    """A permute shows its pairs; a transfer to the host says so."""
    permute, send = kinds(
        "a = f32[64] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,0}}",
        "t = token[] after-all()",
        "s = (f32[64], u32[], token[]) send(x, t), channel_id=2, is_host_transfer=true",
    )
    assert (permute.size, permute.spelling) == ("2 pairs", "{{0,1},{1,0}}")
    assert (send.opcode, send.size, send.form) == ("send", "-", ("host transfer",))


def test_shapes() -> None:
    """Equal operands and results are written once, equal neighbours are counted, long lists are cut."""
    same, several, many = kinds(
        f"a = f32[64] all-reduce(x), channel_id=1, replica_groups=[1,8]<=[8], {FLAGS}",
        f"b = (f32[64], f32[64], bf16[4]) all-reduce(x, x, y), channel_id=1, replica_groups=[1,8]<=[8], {FLAGS}",
        f"c = ({', '.join(['f32[64], bf16[4]'] * 40)}) all-reduce({', '.join(['x, y'] * 40)}), channel_id=1, "
        f"replica_groups=[1,8]<=[8], {FLAGS}",
    )
    assert same.shapes == "f32[64]"
    assert several.shapes == "2 f32[64], bf16[4]"
    assert len(many.shapes) == 64
    assert many.shapes.endswith("…")


def test_long_spellings_are_cut() -> None:
    """A list of many groups shows its beginning; its size says how many there are."""
    groups = ",".join(f"{{{2 * i},{2 * i + 1}}}" for i in range(512))
    (kind,) = kinds(
        f"a = f32[64] all-reduce(x), channel_id=1, replica_groups={{{groups}}}, {FLAGS}",
        header="HloModule m, num_partitions=1024",
    )
    assert kind.size == "512x2"
    assert kind.spelling.startswith("{{0,1},{2,3},")
    assert len(kind.spelling) == 64
