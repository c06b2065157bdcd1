from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from commlens.analysis import ExpectationError, expect
from commlens.errors import CommlensError, GrammarError
from commlens.hlo import Unread, load

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
    report = report_of(*LINES, header="num_partitions=8", mesh=DATA_MODEL)
    (
        expect(report)
        .count("all-gather", 2)
        .count("all-gather", axes="model", at_most=2, at_least=2)
        .count("all-gather", axes=["model"], at_most=3)
        .count("all-reduce", 1, axes="model,data")
        .count("all-reduce", 1, axes=["data", "model"])
        .count("all-reduce", 1, axes="none")
        .count("all-reduce", 1, axes=[])
        .count("all-reduce", 1, axes="?")
        .count("all-reduce", 3)
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
    with pytest.raises(ExpectationError, match="found 0\nand 2 whose axes are not known, because no mesh names them"):
        expectation.none("all-gather", axes="model")
    with pytest.raises(ExpectationError):
        expectation.count("all-gather", axes="model", at_least=1)
    expectation.count("all-gather", axes="model", at_most=2).none("all-to-all", axes="model")


def test_groups_that_fit_no_axes_of_a_known_mesh_do_not_run_along_them(report_of: Callable[..., Report]) -> None:
    """On a known mesh irregular groups are no maybe."""
    expect(report_of(LINES[-1], header="num_partitions=8", mesh=DATA_MODEL)).none("all-reduce", axes="model")


def test_what_could_not_be_read_may_be_anything(report_of: Callable[..., Report]) -> None:
    """An unread collective counts as one that may be there; of another opcode it does not."""
    report = report_of(GATHER.format("bad").replace("[2,4]<=[8]", "[2,2]<=[8]"), LINES[0])
    expectation = expect(report).count("all-gather", at_most=2).none("all-reduce")
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
