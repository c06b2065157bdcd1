"""Claims hold however a program is spelled, and fail where it communicates otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlens.analysis import ExpectationError, expect
from expecting import DATA_MODEL, REDUCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlens.analysis import Report

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
