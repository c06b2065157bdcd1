"""Claims about sums: executions and bytes in loops, budgets, several opcodes at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlens.analysis import Expectation, ExpectationError, expect
from commlens.errors import CommlensError
from expecting import DATA_MODEL, GATHER, LINES, REDUCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlens.analysis import Report

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
