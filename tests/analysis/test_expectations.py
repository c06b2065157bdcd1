"""Claims about the rows of a program: how many, along which axes, and what may be there unread."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from commlens.analysis import ExpectationError, expect
from commlens.errors import CommlensError, GrammarError
from commlens.hlo import Unread, load
from commlens.topology import Mesh
from expecting import DATA_MODEL, GATHER, LINES, REDUCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlens.analysis import Report


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


@pytest.mark.parametrize(
    ("groups", "axes"),
    [
        ("[2,4]<=[8]", "axes model"),
        ("{{3,2,1,0},{4,6,5,7}}", "axes model (shuffled)"),
        ("{{0,3},{1,2},{4,7},{5,6}}", "axes unknown"),
    ],
)
def test_a_failure_names_the_axes_that_a_claim_means(report_of: Callable[..., Report], groups: str, axes: str) -> None:
    """Members of a sum in another order count along their axes, and the row says so."""
    report = report_of(REDUCE.format("r", groups), header="num_partitions=8", mesh=DATA_MODEL)
    with pytest.raises(ExpectationError) as caught:
        expect(report).none("all-reduce")
    assert f"f32[16], {axes}, runs 1 x" in str(caught.value)


def test_a_failure_names_no_axes_of_an_operation_in_order(report_of: Callable[..., Report]) -> None:
    """What is shuffled in an all-gather comes out in another order."""
    shuffled = GATHER.format("g").replace("[2,4]<=[8]", "{{3,2,1,0},{4,6,5,7}}")
    with pytest.raises(ExpectationError, match="axes unknown"):
        expect(report_of(shuffled, header="num_partitions=8", mesh=DATA_MODEL)).none("all-gather", axes="model")


def test_a_failure_says_that_the_mesh_is_of_another_size(report_of: Callable[..., Report]) -> None:
    """Rows without axes may be along any, because of the mesh and not of their groups."""
    report = report_of(GATHER.format("g"), header="num_partitions=8", mesh={"data": 2, "model": 2})
    with pytest.raises(ExpectationError) as caught:
        expect(report).none("all-gather", axes="model")
    assert "not known: expected a mesh of the program's 8 devices, found mesh['data'=2,'model'=2] of 4" in str(
        caught.value
    )
