from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from commlens.analysis import Expectation, ExpectationError, expect
from commlens.errors import CommlensError, GrammarError
from commlens.hlo import Unread, load
from commlens.topology import Mesh

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlens.analysis import Report

GATHER = (
    "{} = f32[64] all-gather(p), channel_id=1, replica_groups=[2,4]<=[8], dimensions={{0}}, use_global_device_ids=true"
)
REDUCE = "{} = f32[16] all-reduce(p), channel_id=1, replica_groups={}, use_global_device_ids=true, to_apply=add"
LINES = (
    GATHER.format("g1"),
    GATHER.format("g2"),
    REDUCE.format("both", "[1,8]<=[2,4]T(1,0)"),
    REDUCE.format("alone", "[8,1]<=[8]"),
    REDUCE.format("odd", "{{0,3},{1,2},{4,7},{5,6}}"),
)
DATA_MODEL = {"data": 2, "model": 4}


def test_claims_that_hold_chain(report_of: Callable[..., Report]) -> None:
    """Claims about rows, by axes in any order and spelling, return the expectation."""
    report = report_of(*LINES[:4], header="num_partitions=8", mesh=DATA_MODEL)
    (
        expect(report)
        .count("all-gather", 2)
        .count("all-gather", axes="model", at_most=2, at_least=2)
        .count("all-gather", axes=["model"], at_most=3)
        .count("all-reduce", 1, axes="model,data")
        .count("all-reduce", 1, axes=["data", "model"])
        .count("all-reduce", 1, axes="none")
        .count("all-reduce", 1, axes=[])
        .count("all-reduce", 0, axes="?")
        .count("all-reduce", 2)
        .none("all-gather", axes="data")
        .none("all-to-all")
    )


@pytest.mark.parametrize(
    ("axes", "exactly", "at_least", "at_most", "words"),
    [
        (None, 1, None, None, "expected exactly 1 all-gather, found 2"),
        (None, None, None, 1, "expected at most 1 all-gather, found 2"),
        (None, None, 3, None, "expected at least 3 all-gather, found 2"),
        ("model", None, 3, 4, "expected at least 3 and at most 4 all-gather along model, found 2"),
    ],
)
def test_a_claim_that_does_not_hold_lists_the_rows(
    report_of: Callable[..., Report],
    axes: str | None,
    exactly: int | None,
    at_least: int | None,
    at_most: int | None,
    words: str,
) -> None:
    """The message says what was expected, what was found, and where it stands; test runners see a failure."""
    report = report_of(*LINES, header="num_partitions=8", mesh=DATA_MODEL)
    with pytest.raises(AssertionError) as caught:
        expect(report).count("all-gather", exactly, axes=axes, at_least=at_least, at_most=at_most)
    assert isinstance(caught.value, ExpectationError)
    assert words in str(caught.value)
    assert "g1 (line 13) in e: f32[64], axes model, runs 1 x" in str(caught.value)


def test_without_a_mesh_axes_may_be_anything(report_of: Callable[..., Report]) -> None:
    """Rows that no mesh names may run along the axes asked for: no claim about them holds by accident."""
    expectation = expect(report_of(*LINES, header="num_partitions=8"))
    with pytest.raises(ExpectationError, match="found 0\nand 2 that may be along them: .* no mesh names them"):
        expectation.none("all-gather", axes="model")
    with pytest.raises(ExpectationError):
        expectation.count("all-gather", axes="model", at_least=1)
    expectation.count("all-gather", axes="model", at_most=2).none("all-to-all", axes="model")


def test_groups_that_fit_no_axes_may_be_along_any(report_of: Callable[..., Report]) -> None:
    """On a known mesh irregular groups are in nobody's way unnoticed: what they join, they may join along any axes."""
    odd = expect(report_of(LINES[-1], header="num_partitions=8", mesh=DATA_MODEL))
    odd.count("all-reduce", 1).count("all-reduce", 1, axes="?").none("all-gather", axes="model").none(axes="none")
    odd.count("all-reduce", axes="model", at_most=1).budget({"model": 1 << 30}, rest=1 << 30)
    for claim in (
        lambda: odd.none("all-reduce", axes="model"),
        lambda: odd.count("all-reduce", axes="model", at_most=0),
        lambda: odd.count("all-reduce", axes="model", at_least=1),
        lambda: odd.bytes(axes="model", at_most=0),
        lambda: odd.budget({"model": 0}, rest=None),
        lambda: odd.only("all-gather", axes="model"),
    ):
        with pytest.raises(ExpectationError, match="found 0.*\nand 1 that may be along them: their groups fit no axes"):
            claim()


@pytest.mark.parametrize(
    ("line", "axes"),
    [
        (REDUCE.format("r", "{{2,1,0},{5,4,3}}"), "b"),
        (REDUCE.format("r", "{{3,0},{4,1},{5,2}}"), "a"),
        (REDUCE.format("r", "{{2,0,1},{3,4,5}}"), "b"),
        (REDUCE.format("r", "{{5,0,3,2,1,4}}"), "a,b"),
        ("r = f32[16] collective-broadcast(p), channel_id=1, replica_groups={{1,2,0},{5,4,3}}", "b"),
        ("r = f32[16] collective-permute(p), channel_id=1, source_target_pairs={{5,3},{0,1},{2,0}}", "b"),
    ],
)
def test_an_order_of_members_that_changes_nothing_hides_no_axes(
    report_of: Callable[..., Report], line: str, axes: str
) -> None:
    """Whoever is named first in a sum, guards see along which axes it runs."""
    report = report_of(line, header="num_partitions=6", mesh={"a": 2, "b": 3})
    held = expect(report).count(None, 1, axes=axes).budget({axes: 1 << 20}).count(None, 0, axes="?")
    for claim in (
        lambda: held.none(axes=axes),
        lambda: held.count(None, axes=axes, at_most=0),
        lambda: held.bytes(axes=axes, at_most=0),
        lambda: held.budget({axes: 0}, rest=None),
    ):
        with pytest.raises(ExpectationError):
            claim()


def test_an_order_of_members_that_means_something_fits_no_axes(report_of: Callable[..., Report]) -> None:
    """The parts of a gather stand in the order of the members: reversed groups are not those of the axis."""
    line = "g = f32[48] all-gather(p), channel_id=1, replica_groups={{2,1,0},{5,4,3}}, dimensions={0}, use_global_device_ids=true"
    held = expect(report_of(line, header="num_partitions=6", mesh={"a": 2, "b": 3})).count(None, 1, axes="?")
    with pytest.raises(ExpectationError, match="that may be along them"):
        held.none("all-gather", axes="b")


def test_members_are_brought_into_the_order_of_the_mesh(report_of: Callable[..., Report]) -> None:
    """On a mesh with an order of its own, ascending ids are not what decides."""
    mesh = Mesh({"a": 2, "b": 3}, [5, 3, 4, 0, 2, 1])
    report = report_of(REDUCE.format("r", "{{3,4,5},{1,0,2}}"), header="num_partitions=6", mesh=mesh)
    expect(report).count("all-reduce", 1, axes="b").none(axes="a")


def test_what_could_not_be_read_may_be_anything(report_of: Callable[..., Report]) -> None:
    """Where claims may hold beside it, an unread collective counts as one that may be there, of its opcode alone."""
    report = report_of(GATHER.format("bad").replace("[2,4]<=[8]", "[2,2]<=[8]"), LINES[0])
    expectation = expect(report, allow_unread=True).count("all-gather", at_most=2).none("all-reduce")
    with pytest.raises(ExpectationError, match="found 1\n.*\nand 1 that could not be read"):
        expectation.count("all-gather", 1)


def test_what_has_no_known_opcode_may_be_of_any(report_of: Callable[..., Report]) -> None:
    """An item of which not even the opcode could be read counts against every claim that nothing is there."""
    report = replace(report_of(), unread=(Unread("7", "x = f32[", "the text is cut"),))
    with pytest.raises(ExpectationError, match="found 0\nand 1 that could not be read\n  7: x = f32"):
        expect(report).none("all-to-all")


def test_transfers_to_the_host_run_along_no_axis(report_of: Callable[..., Report]) -> None:
    """A send to the host is no maybe, with or without a mesh."""
    lines = ("t = token[] after-all()", "s = (f32[16], u32[], token[]) send(p, t), channel_id=2, is_host_transfer=true")
    expect(report_of(*lines)).none("send", axes="model").count("send", 1)


def test_a_long_list_of_rows_is_cut(report_of: Callable[..., Report]) -> None:
    """Twenty rows are shown, the rest is counted."""
    report = report_of(*[GATHER.format(f"g{number}") for number in range(25)])
    with pytest.raises(ExpectationError, match=r"and 5 more$"):
        expect(report).none("all-gather")


def test_questions_that_make_no_sense_are_refused(report_of: Callable[..., Report]) -> None:
    """Unknown opcodes and axes, and a count without a bound, are errors of the caller and no failed claims."""
    expectation = expect(report_of(*LINES, mesh=DATA_MODEL))
    with pytest.raises(CommlensError, match="out of all-gather, all-reduce"):
        expectation.none("all-gather-start")
    with pytest.raises(GrammarError, match="its axes are 'data', 'model'"):
        expectation.none("all-gather", axes="modle")
    with pytest.raises(CommlensError, match="exactly=, at_most= or at_least="):
        expectation.count("all-gather")


def test_a_compiled_program_is_taken_by_its_text() -> None:
    """Whatever prints its HLO is taken; what does not is refused."""

    class Compiled:
        def as_text(self) -> str:
            return "HloModule m\nENTRY e {\n  p = f32[4] parameter(0)\n  g = f32[8] all-gather(p), dimensions={0}\n}\n"

    expect(Compiled()).count("all-gather", 1)
    with pytest.raises(CommlensError, match="found int"):
        expect(3)


def test_a_module_is_taken_with_its_mesh_and_a_report_as_it_is(report_of: Callable[..., Report]) -> None:
    """A module is reported first; a report has its mesh already."""
    module = load("HloModule m\nENTRY e {\n  p = f32[] parameter(0)\n}\n")
    assert expect(module, DATA_MODEL).none("send").report.mesh is not None
    with pytest.raises(CommlensError, match="no mesh beside a report"):
        expect(report_of(), DATA_MODEL)


# --- sums, loops, budgets -------------------------------------------------------------------------------------------

LOOP = """
body {
  b = (s32[], f32[16]) parameter(0)
  i = s32[] get-tuple-element(b), index=0
  v = f32[16] get-tuple-element(b), index=1
  inner = f32[16] all-reduce(v), channel_id=7, replica_groups=[2,4]<=[8], use_global_device_ids=true, to_apply=add
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], f32[16]) tuple(j, inner)
}
cond {
  c = (s32[], f32[16]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(%s)
  ROOT less = pred[] compare(i, n), direction=LT
}
"""
WHILE = (
    "z = s32[] constant(0)",
    "init = (s32[], f32[16]) tuple(z, p)",
    "w = (s32[], f32[16]) while(init), condition=cond, body=body",
    GATHER.format("g1"),
)


def looped(report_of: Callable[..., Report], *lines: str, trips: str = "5") -> Expectation:
    """Return claims about a loop that reduces, and a gather outside."""
    return expect(report_of(*WHILE, *lines, before=LOOP % trips, header="num_partitions=8", mesh=DATA_MODEL))


def test_executions_and_bytes_count_loops(report_of: Callable[..., Report]) -> None:
    """An all-reduce of 64 B over 4 devices receives 96 B a trip, 480 B in five; the gather 192 B once."""
    (
        looped(report_of)
        .count("all-reduce", 1)
        .runs("all-reduce", 5)
        .runs(None, 6, axes="model")
        .bytes("all-reduce", 480)
        .bytes("all-reduce", 320, of="operand_bytes")
        .bytes("all-gather", 256, of="result_bytes")
        .bytes(axes="model", at_most=672, at_least=672)
        .bytes(axes="data", at_most=0)
    )


def test_a_sum_that_is_too_large_shows_what_each_row_adds(report_of: Callable[..., Report]) -> None:
    """The message names the sum and the part of every row."""
    with pytest.raises(ExpectationError) as caught:
        looped(report_of).bytes(at_most=671)
    assert str(caught.value).splitlines() == [
        "expected at most 671 bytes received per device in collectives, found 672",
        "  inner (line 14) in body: f32[16], axes model, runs 5 x, 480 B",
        "  g1 (line 32) in e: f32[64], axes model, runs 1 x, 192 B",
    ]
    with pytest.raises(ExpectationError, match="expected exactly 4 executions of all-reduce along model, found 5"):
        looped(report_of).runs("all-reduce", 4, axes="model")


def test_what_runs_nobody_knows_how_often_has_no_upper_bound(report_of: Callable[..., Report]) -> None:
    """Lower bounds hold by what is known; upper ones never."""
    unknown = report_of(
        *WHILE, before=LOOP.replace("constant(%s)", "parameter(1)"), header="num_partitions=8", mesh=DATA_MODEL
    )
    expectation = expect(unknown).count("all-reduce", 1).bytes(at_least=192)
    with pytest.raises(
        ExpectationError, match="found at least 192\n.*runs an unknown number of times, an unknown number"
    ):
        expectation.bytes(at_most=1 << 40)
    with pytest.raises(ExpectationError):
        expectation.runs("all-reduce", at_least=1)
    with pytest.raises(ExpectationError):
        expectation.budget({"model": 1 << 40})


def test_fractions_of_bytes_are_compared_exactly(report_of: Callable[..., Report]) -> None:
    """A ring of 3 brings 2 * 64 * 2/3 B = 85.33.. B: more than 85, less than 86."""
    uneven = report_of(REDUCE.format("r", "{{0,1,2},{3,4,5}}"), header="num_partitions=6")
    expect(uneven).bytes(at_least=85, at_most=86)
    with pytest.raises(ExpectationError, match=r"at most 85 bytes .* found 85\.34"):
        expect(uneven).bytes(at_most=85)


def test_budgets_name_all_axes(report_of: Callable[..., Report]) -> None:
    """Every axis has its budget; what has none must not communicate."""
    report = report_of(*LINES[:4], header="num_partitions=8", mesh=DATA_MODEL)
    both = 2 * 64 * 7 // 8
    expect(report).budget({"model": 384, "data,model": both}).budget({"model,data": both}, rest=384)
    expect(report).budget({"model": 384}, rest=None).budget({"none": 0, "data": 0}, rest=384 + both)
    with pytest.raises(ExpectationError) as caught:
        expect(report).budget({"model": 383, "data": 0})
    assert "expected at most 383 bytes received per device in collectives along model, found 384" in str(caught.value)
    assert "in collectives along axes other than model and data, found 112" in str(caught.value)
    with pytest.raises(CommlensError, match="one budget for data,model, found two"):
        expect(report).budget({"model,data": 1, "data,model": 2})


def test_a_budget_covers_what_fits_no_axes(report_of: Callable[..., Report]) -> None:
    """Irregular groups are no way around a budget; transfers to the host need none."""
    lines = ("t = token[] after-all()", "s = (f32[16], u32[], token[]) send(p, t), channel_id=2, is_host_transfer=true")
    to_host = expect(report_of(*lines, header="num_partitions=8", mesh=DATA_MODEL))
    to_host.budget({}, of="operand_bytes").count("send", 0, axes="?").bytes("send", 64, of="operand_bytes")
    with pytest.raises(ExpectationError, match="axes unknown"):
        expect(report_of(LINES[-1], header="num_partitions=8", mesh=DATA_MODEL)).budget({"model": 1 << 30})
    with pytest.raises(ExpectationError, match="because no mesh names them"):
        expect(report_of(LINES[0], header="num_partitions=8")).budget({"model": 1}, rest=None)


def test_none_and_only_take_several_opcodes(report_of: Callable[..., Report]) -> None:
    """Without opcodes nothing at all may communicate; ``only`` names what may."""
    report = report_of(*LINES[:3], header="num_partitions=8", mesh=DATA_MODEL)
    expect(report).none("all-to-all", "send", "recv").none(axes="data").only("all-gather", axes="model")
    expect(report).only("all-gather", "all-reduce").only("send", axes="data")
    expect(report_of()).none().only("send")
    with pytest.raises(ExpectationError, match="exactly 0 all-to-all or all-gather along model, found 2"):
        expect(report).none("all-to-all", "all-gather", axes="model")
    with pytest.raises(ExpectationError, match="exactly 0 collectives, found 3"):
        expect(report).none()
    with pytest.raises(ExpectationError, match="0 collectives other than all-gather, found 1\n  both"):
        expect(report).only("all-gather")
    with pytest.raises(CommlensError, match=r"none\(\) claims that nothing"):
        expect(report).only()


def test_anything_unread_makes_every_claim_fail(report_of: Callable[..., Report]) -> None:
    """Nobody is told that all is well beside what nobody could read, of whatever opcode, until it is allowed."""
    report = report_of(GATHER.format("bad").replace("[2,4]<=[8]", "[2,2]<=[8]"), REDUCE.format("r", "[2,4]<=[8]"))
    claims = (
        lambda each: each.count("all-reduce", 1),
        lambda each: each.count("all-reduce", at_least=1),
        lambda each: each.runs("all-reduce", 1),
        lambda each: each.none("all-to-all"),
        lambda each: each.only("all-gather", "all-reduce"),
        lambda each: each.bytes("all-reduce", at_least=0),
        lambda each: each.budget({}, rest=None),
    )
    for claim in claims:
        with pytest.raises(ExpectationError, match="and 1 that could not be read\n.*bad.*\nexpect.*allow_unread=True"):
            claim(expect(report))
        claim(expect(report, allow_unread=True))
    for unsure in (
        lambda each: each.bytes(at_most=1 << 60),
        lambda each: each.budget({}),
        lambda each: each.none("all-gather"),
    ):
        with pytest.raises(ExpectationError):
            unsure(expect(report, allow_unread=True))


def test_questions_about_bytes_that_make_no_sense_are_refused(report_of: Callable[..., Report]) -> None:
    """A sum without bound and bytes that rows do not have are errors of the caller."""
    with pytest.raises(CommlensError, match="for the bytes of all-gather"):
        expect(report_of()).bytes("all-gather")
    with pytest.raises(CommlensError, match="for the executions of collectives"):
        expect(report_of()).runs()
    with pytest.raises(CommlensError, match="operand_bytes, result_bytes, wire_bytes_per_device, found 'wire'"):
        expect(report_of()).bytes(at_most=1, of="wire")  # type: ignore[arg-type]


# --- spellings ------------------------------------------------------------------------------------------------------

SPELLINGS = {
    "sync": ("r = f32[16] all-reduce(p), {} to_apply=add", ""),
    "async": ("s = f32[16] all-reduce-start(p), {} to_apply=add", "r = f32[16] all-reduce-done(s)"),
    "wrapped": (
        "s = ((f32[16]), f32[16], u32[]) async-start(p), calls=wrapped",
        "r = f32[16] async-done(s), calls=wrapped",
    ),
    "fused": ("r = f32[16] fusion(p), kind=kCustom, calls=wrapped", ""),
}
GROUPS = ("{{0,1,2,3},{4,5,6,7}}", "[2,4]<=[8]", "mesh['data'=2,'model'=4] {'model'}", "{{7,5,6,4},{3,2,1,0}}")
ATTRIBUTES = "channel_id=3, replica_groups={}, use_global_device_ids=true,"
WRAPPED = """
wrapped {
  x = f32[16] parameter(0)
  ROOT y = f32[16] all-reduce(x), %s to_apply=add
}
"""


def spelled(report_of: Callable[..., Report], form: str, groups: str) -> Report:
    """Return the report of one all-reduce in some spelling."""
    attributes = ATTRIBUTES.format(groups)
    lines = [line.format(attributes) for line in SPELLINGS[form] if line]
    before = WRAPPED % attributes if "wrapped" in lines[0] else ""
    return report_of(*lines, before=before, header="num_partitions=8", mesh=DATA_MODEL)


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("form", SPELLINGS)
def test_all_spellings_give_one_answer(report_of: Callable[..., Report], form: str, groups: str) -> None:
    """Synchronous, asynchronous, wrapped or fused, groups as list, iota or axes: the same claims hold."""
    plain = spelled(report_of, "sync", GROUPS[0])
    (
        expect(spelled(report_of, form, groups))
        .count("all-reduce", 1)
        .only("all-reduce")
        .runs("all-reduce", 1)
        .bytes("all-reduce", 96)
        .bytes("all-reduce", 64, of="operand_bytes")
        .bytes("all-reduce", 64, of="result_bytes")
        .same_as(plain)
    )


def test_other_communication_is_not_the_same(report_of: Callable[..., Report]) -> None:
    """``same_as`` fails with what differs, takes texts and expectations, and never holds beside something unread."""
    first, second = (report_of(REDUCE.format("r", groups), header="num_partitions=8") for groups in GROUPS[:2])
    other = report_of(REDUCE.format("r", "[4,2]<=[2,4]T(1,0)"), header="num_partitions=8", mesh=DATA_MODEL)
    expect(first).same_as(second).same_as(expect(second)).same_as(first.module)
    with pytest.raises(
        ExpectationError, match="found 1 changes and 0 things unread\n  changed all-reduce: devices .* along data"
    ):
        expect(spelled(report_of, "sync", GROUPS[0])).same_as(other)
    broken = report_of(REDUCE.format("r", "[2,2]<=[8]"), header="num_partitions=8")
    with pytest.raises(ExpectationError, match="unread 13: r: "):
        expect(broken).same_as(broken)
    expect(broken, allow_unread=True).same_as(broken)
