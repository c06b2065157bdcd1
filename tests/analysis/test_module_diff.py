"""``diff``: reported cases, what is a difference, and what the comparison takes for granted."""

from __future__ import annotations

from typing import Any

import pytest

from commlens.analysis import ExpectationError, expect
from commlens.errors import CommlensError
from communicating import (
    FLAT,
    INIT,
    TWO_RINGS,
    compare,
    gather,
    in_a_loop,
    kinds,
    looping,
    permutes,
    reduce,
    text_of,
)

# --- reported cases -------------------------------------------------------------------------------------------------


def test_b08_a_permute_split_into_too_few() -> None:
    """B08: two rings split into forward and backward; a backward part with one receiver leaves device 0 with zeros."""
    forward = "{{0,2},{2,4},{4,6},{1,3},{3,5},{5,7}}"
    answer = compare(permutes(TWO_RINGS), permutes(forward, "{{7,1}}"))
    assert kinds(answer) == ["changed", "added"]
    changed = answer.changes[0]
    assert changed.what.endswith("{7,1} now in p1; device 0 gets zeros")
    assert [detail.after for detail in changed.details if detail.key == "zeros"] == [[0]]
    whole = compare(permutes(TWO_RINGS), permutes(forward, "{{7,1},{6,0}}"))
    assert "zeros" not in whole.changes[0].what
    assert "{6,0} and {7,1} now in p1" in whole.changes[0].what
    other = compare(permutes(TWO_RINGS), permutes(forward, "{{7,1},{4,0}}"))
    assert "zeros" not in other.changes[0].what
    lost = compare(permutes(TWO_RINGS), permutes(forward))
    assert lost.changes[0].what.endswith("devices 0 and 1 get zeros")


def test_b11_the_groups_that_were_asked_for() -> None:
    """B11: each rank alone was asked for, the module's groups are empty: all eight."""
    lines = "r = (f32[8], f32[16]) all-reduce(p, q), replica_groups={}, to_apply=add"
    alone = lines.replace("{}", "{{0},{1},{2},{3},{4},{5},{6},{7}}")
    answer = compare(*(text_of(each, header="replica_count=8") for each in (alone, lines)))
    assert kinds(answer) == ["changed"]
    assert answer.changes[0].what == "devices {{0},{1},{2},{3},{4},{5},{6},{7}} -> {{0,1,2,3,4,5,6,7}}"


def test_b14_synchronous_and_asynchronous_are_the_same() -> None:
    """B14: one all-reduce of 1,024 B either way; the done half adds nothing."""
    sync = "r = f32[256] all-reduce(x), replica_groups={}, to_apply=add"
    start = "s = f32[256] all-reduce-start(x), replica_groups={}, to_apply=add"
    before = text_of("x = f32[256] parameter(2)", sync, header="replica_count=4")
    after = text_of("x = f32[256] parameter(2)", start, "r = f32[256] all-reduce-done(s)", header="replica_count=4")
    answer = compare(before, after)
    assert answer.same_communication is True
    assert [(change.kind, change.what) for change in answer.changes] == [("spelling", "synchronous -> asynchronous")]
    (total,) = answer.totals
    assert (total.before, total.differs) == (total.after, False)
    assert total.before is not None
    assert (total.before.count, total.before.operand_bytes) == (1, 1024)


def test_b25_one_axis_is_no_longer_reduced() -> None:
    """B25: the all-reduce along dp is gone: axis dp 1 -> 0."""
    good = text_of(reduce(name="tp"), reduce("{{0,2},{1,3}}", name="dp", channel=2))
    answer = compare(good, text_of(reduce(name="tp")), "dp=2,tp=2")
    (removed,) = answer.changes
    assert (removed.kind, removed.opcode, removed.axes, removed.after) == ("removed", "all-reduce", ["dp"], None)
    assert removed.before is not None
    assert removed.before.name == "dp"
    (total,) = [total for total in answer.totals if total.differs]
    assert (total.axes, total.opcode, total.after) == ("dp", "all-reduce", None)
    assert total.before is not None
    assert total.before.count == 1


def test_b27_a_clone_lost_an_operand() -> None:
    """B27: the second operand is gone, 96 B become 32 B."""
    pairs = "channel_id=1, source_target_pairs={{0,1},{1,0}}"
    answer = compare(
        text_of(f"c = (f32[8], f32[16]) collective-permute(p, q), {pairs}"),
        text_of(f"c.clone = f32[8] collective-permute(p), {pairs}"),
    )
    (change,) = answer.changes
    assert change.kind == "changed"
    assert change.what == "operands f32[8], f32[16] -> f32[8] (f32[16] lost); payload 96 B -> 32 B"
    bytes_ = [detail.as_dict() for detail in change.details if detail.key == "operand_bytes"]
    assert bytes_ == [{"key": "operand_bytes", "before": 96, "after": 32}]


# --- what does not --------------------------------------------------------------------------------------------------


PICKED_BY_TRUTH = (
    "c = pred[] parameter(2)",
    "k = f32[8] conditional(c, p, p), true_computation=yes, false_computation=no",
)
PICKED_BY_NUMBER = ("c = s32[] parameter(2)", "k = f32[8] conditional(c, p, p), branch_computations={{{}}}")
SILENT = "n.1 = f32[8] negate(p)"


def in_branches(first: str, second: str, run: tuple[str, str] = PICKED_BY_TRUTH) -> str:
    """Return a module with a line in each branch of a conditional."""
    branches = [
        f"{name} {{\n  p = f32[8] parameter(0)\n  {line}\n  ROOT n = f32[8] negate(p)\n}}\n"
        for name, line in (("yes", first), ("no", second))
    ]
    return text_of(*run, before="\n".join(branches))


IN_A_BRANCH = """yes {{
  p = f32[8] parameter(0)
  ROOT {line}
}}

no {{
  ROOT p = f32[8] parameter(0)
}}
"""

DIFFERENT = {
    "groups": (
        text_of(reduce()),
        text_of(reduce("{{0,2},{1,3}}")),
        ["devices {{0,1},{2,3}} -> {{0,2},{1,3}}"],
    ),
    "members": (
        text_of(gather()),
        text_of(gather("{{1,0},{3,2}}")),
        ["members in another order: {{0,1},{2,3}} -> {{1,0},{3,2}}"],
    ),
    "root-of-a-broadcast": (
        text_of("b = f32[8] collective-broadcast(p), channel_id=1, replica_groups={{1,0,2}}"),
        text_of("b = f32[8] collective-broadcast(p), channel_id=1, replica_groups={{2,0,1}}"),
        ["members in another order: {{1,0,2}} -> {{2,0,1}}"],
    ),
    "mode": (
        text_of(reduce("{{0,1},{2,3}}")),
        text_of("r = f32[8] all-reduce(p), channel_id=1, replica_groups={{0}}, to_apply=add"),
        ["devices {{0,1},{2,3}} -> {{0,1,2,3}}"],
    ),
    "type": (
        text_of(reduce()),
        text_of("h = bf16[8] convert(p)", reduce().replace("f32[8]", "bf16[8]").replace("(p)", "(h)")),
        ["operands f32[8] -> bf16[8]; payload 32 B -> 16 B"],
    ),
    "order-of-operands": (
        text_of("r = (f32[8], f32[16]) all-reduce(p, q), replica_groups={}, to_apply=add"),
        text_of("r = (f32[16], f32[8]) all-reduce(q, p), replica_groups={}, to_apply=add"),
        ["operands in another order: f32[8], f32[16] -> f32[16], f32[8]"],
    ),
    "dimension": (
        text_of("x = f32[4,4] parameter(2)", "g = f32[8,4] all-gather(x), replica_groups={}, dimensions={0}"),
        text_of("x = f32[4,4] parameter(2)", "g = f32[4,8] all-gather(x), replica_groups={}, dimensions={1}"),
        ["results f32[8,4] -> f32[4,8]; dimension 0 -> 1"],
    ),
    "reduction": (text_of(reduce()), text_of(reduce(to="larger")), ["reduction sum -> max"]),
    "reduction-of-our-own": (text_of(reduce(to="mean")), text_of(reduce(to="third")), ["reduction mean -> third"]),
    "reduction-the-other-way-round": (
        text_of(reduce(to="less")),
        text_of(reduce(to="less.1")),
        ["reduction less -> less.1"],
    ),
    "stream": (
        text_of(reduce()),
        text_of(reduce() + ', frontend_attributes={stream_id="4"}'),
        ["stream_id none -> 4"],
    ),
    "trips": (in_a_loop(reduce(), trips=3), in_a_loop(reduce(), trips=5), ["runs 3 times -> 5 times"]),
    "conditional": (
        text_of(reduce()),
        text_of(
            *PICKED_BY_TRUTH,
            before=IN_A_BRANCH.format(line=reduce()),
        ),
        ["runs always -> in a branch of a conditional; stands in e -> in yes"],
    ),
    "hoisted": (
        in_a_loop(reduce()),
        text_of(reduce()),
        ["runs 3 times -> once; stands in body -> in e"],
    ),
    "hoisted-and-renamed": (
        in_a_loop(reduce()),
        text_of(reduce(name="s")),
        ["runs 3 times -> once; stands in body -> in e"],
    ),
    "other-branch": (
        in_branches(reduce(), SILENT),
        in_branches(SILENT, reduce()),
        ["stands in yes -> in no"],
    ),
    "order": (
        text_of(reduce(), gather()),
        text_of(gather(), reduce()),
        ["in e: r runs after g instead of before it"],
    ),
    "host": (
        text_of("t = token[] after-all()", "s = (f32[8], u32[], token[]) send(p, t), channel_id=1"),
        text_of(
            "t = token[] after-all()", "s = (f32[8], u32[], token[]) send(p, t), channel_id=1, is_host_transfer=true"
        ),
        ["devices not stated -> the host"],
    ),
}


@pytest.mark.parametrize("case", DIFFERENT.values(), ids=DIFFERENT.keys())
def test_one_difference_is_one_change(case: tuple[str, str, list[str]]) -> None:
    """A single difference is a single change that says what exactly differs; and the other way round it is one too."""
    before, after, what = case
    answer = compare(before, after)
    assert answer.same_communication is False
    assert [change.what for change in answer.changes if change.kind != "spelling"] == what
    assert len(kinds(compare(after, before))) == 1


def test_what_is_gone_and_what_is_new() -> None:
    """A collective that only one module has is removed or added, the others stay what they were."""
    both = text_of(reduce(), gather())
    gone, new = compare(both, text_of(gather())), compare(text_of(gather()), both)
    assert (kinds(gone), kinds(new)) == (["removed"], ["added"])
    assert gone.changes[0].what == new.changes[0].what == "devices {{0,1},{2,3}}, 32 B, in e"
    assert (gone.changes[0].after, new.changes[0].before) == (None, None)


def test_another_operation_is_removed_and_added() -> None:
    """An all-reduce that became a reduce-scatter is no changed all-reduce."""
    scatter = f"r = f32[4] reduce-scatter(p), channel_id=1, replica_groups={{{{0,1}},{{2,3}}}}, {FLAT}, "
    answer = compare(text_of(reduce()), text_of(scatter + "dimensions={0}, to_apply=add"))
    assert kinds(answer) == ["removed", "added"]


def test_a_collective_in_front_of_a_loop() -> None:
    """What runs before a loop or behind it is another order, though the lists of rows are the same."""
    before, run = looping(gather().replace("f32[16] all-gather", "f32[8] all-gather"), of="g")
    ahead = text_of(*INIT, reduce(), run, before=before)
    behind = text_of(*INIT, run, reduce(), before=before)
    answer = compare(ahead, behind)
    assert [change.kind for change in answer.changes] == ["order"]
    assert answer.changes[0].what == "in e: r runs after g instead of before it"


def test_branches_that_have_changed_places() -> None:
    """Branches that are picked by another value are no other order: what stands in them is run for another value."""
    answer = compare(in_branches(reduce(), gather()), in_branches(gather(), reduce()))
    assert kinds(answer) == ["changed", "changed"]
    assert [change.what for change in answer.changes] == ["stands in yes -> in no", "stands in no -> in yes"]


def test_branches_are_told_apart_by_what_picks_them() -> None:
    """True picks what 1 picks, however the branches are listed."""
    here, run = PICKED_BY_NUMBER
    for lines in ((reduce(), SILENT), (SILENT, gather()), (reduce(), gather())):
        by_number = [in_branches(*lines, (here, run.format(order))) for order in ("no, yes", "yes, no")]
        answers = [compare(in_branches(*lines), each) for each in by_number]
        assert [answer.same_communication for answer in answers] == [True, False]
    answer = compare(in_branches(reduce(), SILENT), in_branches(reduce(), SILENT, (here, run.format("yes, no"))))
    assert [change.what for change in answer.changes] == ["stands in yes, which runs at another place"]


def test_loops_that_have_changed_places() -> None:
    """Two loops in another order are one change of order."""
    first, second = looping(reduce()), looping(reduce("{{0,2},{1,3}}"), suffix=".2")
    computations = first[0] + second[0].split("\n\n", 1)[1]
    lines = [*INIT, first[1], second[1].replace("w =", "v =")]
    answer = compare(text_of(*lines, before=computations), text_of(*INIT, *lines[:1:-1], before=computations))
    assert kinds(answer) == ["order"]


def test_all_that_moved_in_one_computation_is_one_change() -> None:
    """A reorder of many is one change per pair of computations that names each of them."""
    lines = [reduce(name=f"r{number}", channel=number).replace("(p)", f"(x{number})") for number in range(1, 5)]
    lines = [line.replace("f32[8]", f"f32[{number}]") for number, line in enumerate(lines, 1)]
    operands = [f"x{number} = f32[{number}] parameter({number + 2})" for number in range(1, 5)]
    answer = compare(text_of(*operands, *lines), text_of(*operands, *reversed(lines)))
    (change,) = [change for change in answer.changes if change.kind == "order"]
    assert len(change.moved) == 3
    assert all("instead of" in move.what for move in change.moved)
    assert change.what.endswith(", and 2 more moved")


# --- what the comparison takes for granted --------------------------------------------------------------------------


def test_unread_items_forbid_the_claim() -> None:
    """What could not be read may differ: nothing is claimed, unless something does differ anyway."""
    broken = reduce("{{0,1", name="broken")
    assert compare(text_of(reduce(), broken), text_of(reduce(), broken)).same_communication is None
    assert compare(text_of(reduce()), text_of(reduce(), broken)).same_communication is None
    assert compare(text_of(reduce()), text_of(gather(), broken)).same_communication is False


def test_counts_of_one_module_hold_for_both() -> None:
    """Where only one module states its counts, both run on them, and that is said."""
    lines = "r = f32[8] all-reduce(p), replica_groups={}, to_apply=add"
    answer = compare(text_of(lines, header="replica_count=4"), text_of(lines, header=""))
    assert answer.same_communication is True
    assert answer.notes == (
        "<text> states no counts and is taken to run on those of <text>: 4 x 1 (replicas x partitions)",
    )
    assert answer.after.collectives[0].participants == [[0, 1, 2, 3]]
    other = compare(text_of(lines, header=""), text_of(lines, header="replica_count=4"))
    assert other.before.collectives[0].participants == [[0, 1, 2, 3]]
    assert (other.same_communication, len(other.notes)) == (True, 1)


def test_different_counts_are_said() -> None:
    """The same empty groups on more devices join more devices."""
    lines = "r = f32[8] all-reduce(p), replica_groups={}, to_apply=add"
    answer = compare(text_of(lines, header="replica_count=4"), text_of(lines, header="replica_count=8"))
    assert kinds(answer) == ["changed"]
    assert answer.notes == (
        "the modules run on different counts: 4 x 1 (replicas x partitions), then 8 x 1 (replicas x partitions)",
    )


@pytest.mark.parametrize("groups", ["{}", "{{0,1},{2,3}}"])
def test_who_takes_part_on_different_counts_is_not_guessed(groups: str) -> None:
    """Where flags contradict each other nobody can tell who takes part; alike on other counts is not the same then."""
    channel = "channel_id=1, " if groups == "{}" else ""  # with a channel the flag forbids empty groups alone
    lines = f"r = f32[8] all-reduce(p), {channel}replica_groups={groups}, {FLAT}, to_apply=add"
    four, eight = (text_of(lines, header=f"num_partitions={number}") for number in (4, 8))
    answer = compare(four, eight)
    assert answer.before.collectives[0].participants is None
    assert (answer.same_communication, kinds(answer), answer.undecided) == (None, [], 1)
    assert "who takes part in 1 of the collectives cannot be told in either module" in answer.notes[-1]
    assert compare(four, four).same_communication is True
    with pytest.raises(ExpectationError, match="who takes part in 1 of the collectives cannot be told"):
        expect(four, allow_unread=True).same_as(eight)


def test_counts_that_a_mesh_contradicts_are_not_taken_over() -> None:
    """A mesh of eight devices is not that of a module on four: the module keeps what it says, and its mesh."""
    wide = text_of(reduce("mesh['a'=2,'b'=4] {'b'}", channel=1), header="")
    narrow = text_of(reduce("{{0,1,2,3}}"), header="num_partitions=4")
    for before, after in ((wide, narrow), (narrow, wide)):
        answer = compare(before, after)
        silent, stated = (answer.before, answer.after) if before == wide else (answer.after, answer.before)
        assert silent.collectives[0].participants == [[0, 1, 2, 3], [4, 5, 6, 7]]
        assert (str(silent.mesh), stated.mesh) == ("mesh['a'=2,'b'=4]", None)
        assert (silent.notes, stated.notes) == ((), ())
        assert answer.notes == (
            "<text> states no counts, and its mesh, mesh['a'=2,'b'=4], is of 8 devices: those of <text>, "
            "1 x 4 (replicas x partitions), are not its own",
        )
        assert answer.same_communication is False


@pytest.mark.parametrize(
    ("before", "after", "axes", "notes"),
    [
        (reduce(), reduce("mesh['a'=2,'b'=2] {'b'}"), "b", 0),
        (reduce("mesh['axis_0'=2,'axis_1'=2] {'axis_1'}"), reduce("mesh['a'=2,'b'=2] {'b'}"), "b", 1),
        (reduce("mesh['c'=2,'d'=2] {'d'}"), reduce("mesh['a'=2,'b'=2] {'b'}"), "d", 1),
    ],
)
def test_one_mesh_names_the_axes_of_both(before: str, after: str, axes: str, notes: int) -> None:
    """Sums before and after stand under the same axes: those of the only mesh, of the one with names, of the first."""
    answer = compare(text_of(before), text_of(after))
    assert [total.axes for total in answer.totals] == [axes]
    assert (answer.same_communication, len(answer.notes)) == (True, notes)


@pytest.mark.parametrize("groups", ["{{1,0},{3,2}}", "{{1,0},{2,3}}", "{{2,3},{0,1}}"])
def test_an_order_of_members_that_changes_nothing_moves_no_sums(groups: str) -> None:
    """Where the communication is the same, so are the sums of its axes."""
    answer = compare(text_of(reduce("{{0,1},{2,3}}")), text_of(reduce(groups)), "a=2,b=2")
    assert answer.same_communication
    assert [(total.axes, total.differs) for total in answer.totals] == [("b", False)]


def test_meshes_of_different_sizes_stay_apart() -> None:
    """A program on more devices has axes of its own."""
    small, large = reduce("mesh['a'=2,'b'=2] {'b'}"), reduce("mesh['a'=2,'b'=4] {'b'}")
    answer = compare(text_of(small), text_of(large, header="num_partitions=8"))
    assert [(total.axes, total.differs) for total in answer.totals] == [("b", True)]
    assert answer.before.mesh != answer.after.mesh
    assert any("two meshes" in note for note in answer.notes)


def test_sums_of_two_meshes_stand_together() -> None:
    """Axes of the first module come before those of the second one that rank alike, each with all its operations."""
    names = "zyxwv"
    for name in names:
        groups = [f"mesh['{each}'={size}] {{'{each}'}}" for each, size in ((name, 4), ("b", 8))]
        first, second = ([reduce(each), gather(each)] for each in groups)
        answer = compare(text_of(*first), text_of(*second, header="num_partitions=8"))
        found = [(total.axes, total.opcode) for total in answer.totals]
        assert found == [(axes, opcode) for axes in (name, "b") for opcode in ("all-gather", "all-reduce")]


def test_a_mesh_from_outside_names_both() -> None:
    """Whatever the modules say, axes are those that were given; a bad mesh is an error."""
    answer = compare(text_of(reduce("mesh['a'=2,'b'=2] {'b'}")), text_of(reduce()), "x=2,y=2")
    assert [total.axes for total in answer.totals] == ["y"]
    with pytest.raises(CommlensError, match="at least 1"):
        compare(text_of(reduce()), text_of(reduce()), "x=0")


def test_loops_that_nobody_can_count() -> None:
    """Equal where both are unknown, which is said; a change where one is known."""
    unknown = in_a_loop(reduce()).replace("n = s32[] constant(3)", "n = s32[] add(i, i)")
    same = compare(unknown, unknown)
    assert (same.same_communication, len(same.notes)) == (True, 1)
    assert compare(unknown, in_a_loop(reduce())).changes[0].what == "runs an unknown number of times -> 3 times"


def json_of(change: Any) -> dict[str, Any]:
    """Return a change as JSON holds it."""
    return change.as_dict()


def test_changes_have_the_keys_of_the_contract() -> None:
    """Each change says its kind, operation, axes, both rows and what differs."""
    answer = compare(text_of(reduce(), gather()), text_of(gather(), reduce("{{0,2},{1,3}}", name="s")))
    for change in map(json_of, answer.changes):
        assert set(change) >= {"kind", "opcode", "axes", "before", "after", "what"}
        for row in (change["before"], change["after"]):
            assert row is None or {"name", "participants", "trip_count"} <= set(row)
