from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from string import ascii_lowercase
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.analysis import ExpectationError, expect, renewing_goldens
from commlens.analysis.expectation_goldens import Golden, GoldenLine, differences, golden_of, read_golden
from commlens.analysis.totals import OPCODES
from commlens.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from commlens.analysis import Report

GATHER = "{} = f32[64] all-gather(p), channel_id=1, replica_groups={}, dimensions={{0}}, use_global_device_ids=true"
REDUCE = "{} = f32[16] all-reduce(p), channel_id=1, replica_groups={}, use_global_device_ids=true, to_apply=add"
PERMUTE = "{} = f32[16] collective-permute(p), channel_id=1, source_target_pairs={}"
SEND_OUT = "{} = f32[16] collective-broadcast(p), channel_id=1, replica_groups={}"
DATA_MODEL = {"data": 2, "model": 4}


def text_of(report: Report) -> str:
    """Return the golden text of a report."""
    return str(golden_of(report)[0])


@pytest.fixture
def golden(report_of: Callable[..., Report]) -> Callable[..., str]:
    """Return what makes the golden text of a module on eight partitions."""

    def make(
        *lines: str, mesh: dict[str, int] | None = DATA_MODEL, header: str = "num_partitions=8", before: str = ""
    ) -> str:
        return text_of(report_of(*lines, header=header, mesh=mesh, before=before))

    return make


# --- the text -------------------------------------------------------------------------------------------------------


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


# --- round trips and refusals ---------------------------------------------------------------------------------------

cells = st.text(st.sampled_from("abz?{}0129,:() ->"), min_size=1, max_size=12).map(
    lambda text: " ".join(text.split()) or "-"
)
golden_lines = st.builds(GoldenLine, st.sampled_from(OPCODES), cells, cells, cells, cells, cells)
goldens = st.builds(
    Golden,
    st.sampled_from(["none", "data=2, model=4", "a\\x20b=1"]),
    st.dictionaries(golden_lines, st.integers(1, 10**6), max_size=6),
)


@given(goldens)
def test_generated_texts_are_read_as_they_were_written(golden: Golden) -> None:
    """Reading is the inverse of writing, and writing again gives the same characters."""
    text = str(golden)
    assert read_golden(text, path="g") == golden
    assert str(read_golden(text, path="g")) == text


@given(goldens, goldens)
def test_generated_texts_differ_where_their_differences_say(before: Golden, after: Golden) -> None:
    """Taking away the lines with - and adding those with + leads from one to the other."""
    lines, grown = differences(before, after)
    assert (lines == []) == (before == after)
    counts = dict(before.lines)
    for line in [each for each in lines if " mesh: " not in each[:8]]:
        sign, cells_of = line[0], line[2:].split("  ")
        key = GoldenLine(*cells_of[1:])
        if sign == "-":
            assert counts.pop(key) == int(cells_of[0])
        else:
            counts[key] = int(cells_of[0])
    assert counts == after.lines
    assert set(grown) == {line for line, count in after.lines.items() if count > before.lines.get(line, 0)}


def test_blanks_comments_and_line_ends_mean_nothing(golden: Callable[..., str]) -> None:
    """A text that somebody laid out anew says the same."""
    text = golden(GATHER.format("g", "[2,4]<=[8]"))
    again = text.replace("  ", "    ").replace("\n", "\r\n").replace("mesh:", "# why\n\nmesh:")
    assert read_golden(again, path="g") == read_golden(text, path="g")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("# commlens golden 1", "# commlens golden 2", "g:1:1: expected '# commlens golden 1' in the first line"),
        ("# commlens golden 1\n", "", "g:1:1: .*found '# What the program"),
        ("mesh: data=2, model=4\n", "", "g:4:1: expected the mesh, .*found 'count"),
        ("count ", "number", "g:5:1: expected the heads count, opcode"),
        ("1      all-gather", "one    all-gather", "g:6:1: expected a count, an opcode and 5 more cells"),
        ("all-gather", "all-father", "g:6:1: expected a count, an opcode"),
        ("2 of 4  ", "", "g:6:1: expected a count, an opcode"),
        ("64 -> 256", "64  ->  256", "g:6:1: expected a count, an opcode"),
    ],
)  # fmt: skip
def test_what_is_no_golden_text_is_refused_with_its_place(
    golden: Callable[..., str], old: str, new: str, message: str
) -> None:
    """Other versions, cut and broken texts are named, and nothing is taken for an empty table."""
    text = golden(GATHER.format("g", "[2,4]<=[8]"))
    assert old in text
    with pytest.raises(InputError, match=message):
        read_golden(text.replace(old, new, 1), path="g")


@pytest.mark.parametrize("lines", range(5))
def test_a_cut_text_is_refused(golden: Callable[..., str], lines: int) -> None:
    """A text that ends before its table is no text of a module that communicates nothing."""
    with pytest.raises(InputError, match="golden file"):
        read_golden("\n".join(golden().splitlines()[: lines and lines - 1]), path="g")


# --- files ----------------------------------------------------------------------------------------------------------


def test_a_missing_file_says_what_to_do(report_of: Callable[..., Report], tmp_path: Path) -> None:
    """The failure names the file, the option, and what would be written; nothing is written."""
    path = tmp_path / "golden" / "step.comm.txt"
    report = report_of(GATHER.format("g", "[2,4]<=[8]"), header="num_partitions=8", mesh=DATA_MODEL)
    with pytest.raises(ExpectationError) as caught:
        expect(report).golden(path)
    assert str(path) in str(caught.value)
    assert "pytest --commlens-update" in str(caught.value)
    assert text_of(report) in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_written_once_and_then_holds(report_of: Callable[..., Report], tmp_path: Path) -> None:
    """update=True writes, with the folder; afterwards the claim holds and chains, and update leaves the file alone."""
    path = tmp_path / "golden" / "step.comm.txt"
    report = report_of(GATHER.format("g", "[2,4]<=[8]"), header="num_partitions=8", mesh=DATA_MODEL)
    expect(report).golden(str(path), update=True).golden(path).count("all-gather", 1)
    assert path.read_text(encoding="utf-8") == text_of(report)
    path.write_text(path.read_text(encoding="utf-8").replace("mesh:", "# kept\nmesh:"), encoding="utf-8")
    expect(report).golden(path, update=True)
    assert "# kept" in path.read_text(encoding="utf-8")
    assert [each.name for each in path.parent.iterdir()] == ["step.comm.txt"]


def test_a_stale_file_fails_with_what_differs_and_the_rows(report_of: Callable[..., Report], tmp_path: Path) -> None:
    """Lines that went and came, and where what is new stands in the module; the file stays."""
    path = tmp_path / "step.comm.txt"
    lines = (GATHER.format("g1", "[2,4]<=[8]"), REDUCE.format("r1", "[2,4]<=[8]"))
    expect(report_of(*lines, header="num_partitions=8", mesh=DATA_MODEL)).golden(path, update=True)
    before = path.read_bytes()
    changed = (lines[0], GATHER.format("g2", "[2,4]<=[8]"), REDUCE.format("r1", "[4,2]<=[2,4]T(1,0)"))
    with pytest.raises(ExpectationError) as caught:
        expect(report_of(*changed, header="num_partitions=8", mesh=DATA_MODEL)).golden(path, update=False)
    assert str(caught.value).splitlines() == [
        f"{path}: expected what the golden file (-) says, found other communication (+)",
        "  - 1  all-gather  model  2 of 4  f32  64 -> 256  1",
        "  + 2  all-gather  model  2 of 4  f32  64 -> 256  1",
        "  + 1  all-reduce  data  4 of 2  f32  64 -> 64  1",
        "  - 1  all-reduce  model  2 of 4  f32  64 -> 64  1",
        "where there is more:",
        "  g1 (line 13) in e: f32[64], axes model, runs 1 x",
        "  g2 (line 14) in e: f32[64], axes model, runs 1 x",
        "  r1 (line 15) in e: f32[16], axes data, runs 1 x",
        "if that is meant, renew the file with pytest --commlens-update, or golden(path, update=True)",
    ]
    assert path.read_bytes() == before


def test_another_mesh_is_another_program(report_of: Callable[..., Report], tmp_path: Path) -> None:
    """The axes of the mesh are part of what is recorded."""
    path = tmp_path / "step.comm.txt"
    expect(report_of(mesh=DATA_MODEL)).golden(path, update=True)
    with pytest.raises(ExpectationError, match=r"- mesh: data=2, model=4\n  \+ mesh: none\nif"):
        expect(report_of()).golden(path)


def test_what_could_not_be_read_is_never_recorded(report_of: Callable[..., Report], tmp_path: Path) -> None:
    """Something unread fails, with an update as without, and leaves the file alone."""
    path = tmp_path / "step.comm.txt"
    broken = report_of(GATHER.format("bad", "[2,2]<=[8]"))
    for update in (True, False):
        with pytest.raises(
            ExpectationError, match="everything can be read, found 0 rows\nand 1 that could not be read\n  13: bad"
        ):
            expect(broken, allow_unread=True).golden(path, update=update)
    assert not path.exists()


def test_inside_a_renewal_files_are_written_and_named(report_of: Callable[..., Report], tmp_path: Path) -> None:
    """What was written is said once; what says the same already is not; update=False still compares."""
    said: list[Path] = []
    report = report_of(GATHER.format("g", "[2,4]<=[8]"))
    path = tmp_path / "a" / "b" / "step.comm.txt"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\xff no golden file")
    with renewing_goldens(said.append):
        expect(report).golden(path).golden(path)
        with pytest.raises(ExpectationError):
            expect(report_of()).golden(path, update=False)
    assert said == [path]
    with pytest.raises(ExpectationError):
        expect(report_of()).golden(path)


def test_a_renewal_is_over_where_it_ends(report_of: Callable[..., Report], tmp_path: Path) -> None:
    """An error inside ends it too."""

    def fail(path: Path) -> None:
        raise RuntimeError(path.name)

    with pytest.raises(RuntimeError, match="step"), renewing_goldens(fail):
        expect(report_of()).golden(tmp_path / "step.comm.txt")
    with pytest.raises(ExpectationError):
        expect(report_of()).golden(tmp_path / "other.comm.txt")


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\xff\xfe", "cannot be read"), (b"", "found an empty file"), (b"hello\n", "found 'hello'")],
)
def test_a_file_that_is_none_is_no_failed_claim(
    report_of: Callable[..., Report], tmp_path: Path, content: bytes, message: str
) -> None:
    """Something else under that name is an error with the file's name."""
    path = tmp_path / "step.comm.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        expect(report_of()).golden(path)
    assert caught.value.path == str(path)


def test_a_file_that_cannot_be_written_is_named(report_of: Callable[..., Report], tmp_path: Path) -> None:
    """A folder that is a file, and a file that is a folder."""
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "file" / "step.comm.txt", tmp_path):
        with pytest.raises(InputError, match="cannot be"):
            expect(report_of()).golden(path, update=True)


def test_many_writers_at_once_leave_whole_files(report_of: Callable[..., Report], tmp_path: Path) -> None:
    """Whoever reads while others write sees a whole text."""
    reports = [report_of(GATHER.format(name, "[2,4]<=[8]"), mesh=DATA_MODEL) for name in ascii_lowercase[:8]]
    path = tmp_path / "golden" / "step.comm.txt"

    def write_and_read(report: Report) -> str:
        path.unlink(missing_ok=True)
        expect(report).golden(path, update=True)
        return text_of(report)

    with ThreadPoolExecutor(8) as pool:
        texts = set(pool.map(write_and_read, reports))
    assert texts == {text_of(reports[0])}
    assert [each.name for each in path.parent.iterdir()] == ["step.comm.txt"]
