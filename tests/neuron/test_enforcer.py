"""The channel id enforcer: documented cases, the walk, what it warns of, and a twin that walks with loops."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens import load
from commlens.errors import InputError
from commlens.neuron.predicates import CHANNEL_CLASS, ENFORCED_OPCODES
from neuron_cases import cases, section
from neuron_modules import BACKENDS, Notation, both, channel_ids, module_of, proto_of, stats_of, text_of
from proto_modules import instruction, module
from renumbered import ENFORCER, GROUPS, PAIR, SAFE, enforced, row


@both
@pytest.mark.parametrize(
    "case", [case for case in section("channel_id_enforcer") if case["computations"]], ids=lambda case: case["name"]
)
def test_documented_cases(case: dict[str, Any], backend: str) -> None:
    """Channel ids and `changed` as documented; `modified` says the same, and so does the source read again."""
    result, found = enforced(case["computations"], backend)
    assert found == case["expected_channel_ids"]
    assert (result.changed, result.modified) == (case["expected_changed"], case["expected_changed"])
    assert channel_ids(load(result.module.to_bytes()), case["computations"]) == case["expected_channel_ids"]


def test_a_module_without_computations_is_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file holds such a module (neither text nor proto is taken for one), but the pass answers."""
    [case] = [case for case in section("channel_id_enforcer") if not case["computations"]]
    for source in (text_of([]), proto_of([])):
        with pytest.raises(InputError):
            load(source)
    emptied = module_of([[]], "proto")
    monkeypatch.setattr(type(emptied), "communication", lambda _: iter(()))
    monkeypatch.setattr(type(emptied), "instructions_of", lambda *_: iter(()))
    result = ENFORCER.run(emptied)
    assert (result.changed, result.modified, stats_of(result)["renumbered"]) == (case["expected_changed"], False, [])


@both
@pytest.mark.parametrize("case", cases("channel_id_enforcer"))
def test_a_second_run_changes_nothing_where_ids_were_all_there(case: dict[str, Any], backend: str) -> None:
    """Unique ids stay; the one collective that may stay without an id stays without."""
    if case["computations"]:
        first, found = enforced(case["computations"], backend)
        second = ENFORCER.run(first.module)
        assert (second.changed, second.module is first.module, second.edits) == (False, True, ())
        assert channel_ids(second.module, case["computations"]) == found


def test_nothing_but_the_number_changes_in_a_text() -> None:
    """The digits are replaced, or the attribute is put right behind the operands; blanks and comments stay."""
    before = """ENTRY e {
  p = f32[8] parameter(0)
  a = f32[8] all-to-all(p), dimensions={0}, channel_id=7
  b = f32[8] all-to-all( a ) ,  dimensions={0}, channel_id= 7 , metadata={op_name="channel_id=7"} // channel_id=7
  c = f32[8] all-to-all(b), dimensions={0}
  ROOT d = f32[8] all-to-all(c), dimensions={0}
}
"""
    after = before.replace("channel_id= 7 ", "channel_id= 8 ").replace(
        "all-to-all(c), ", "all-to-all(c), channel_id=9, "
    )
    assert ENFORCER.run(load(before)).module.to_bytes().decode() == after


# --- the walk -------------------------------------------------------------------------------------------------------


@both
def test_only_the_seven_opcodes_are_looked_at(backend: str) -> None:
    """Two of each opcode with one id: the second of the seven moves, all others stay; they are counted."""
    opcodes = sorted(CHANNEL_CLASS)
    result, found = enforced([row(*((op, 5 + i) for i, op in enumerate(opcodes) for _ in range(2)))], backend)
    moved = [opcodes[each // 2] for each, ch in enumerate(found[0]) if ch != 5 + each // 2]
    assert moved == sorted(ENFORCED_OPCODES)
    assert stats_of(result)["looked_at"] == 2 * len(ENFORCED_OPCODES)
    assert stats_of(result)["not_looked_at"] == {
        op: 2 for op in sorted(CHANNEL_CLASS - ENFORCED_OPCODES) if not op.endswith("-done")
    }


@both
def test_ids_go_up_from_the_largest_and_leave_gaps(backend: str) -> None:
    """Taken once before the walk, from opcodes that nobody renumbers too; never lowered, never closed up."""
    result, found = enforced(
        [row(("all-gather", 3), ("all-reduce", 3)), row(("recv-done", 90), ("all-reduce", 3))], backend
    )
    assert found == [[3, 91], [90, 92]]
    assert stats_of(result)["next_channel_id"] == 91


@both
def test_computations_go_in_file_order(backend: str) -> None:
    """The first computation keeps the id, whichever is the entry."""
    assert enforced([row(("all-reduce", 1)), row(("all-reduce", 1)), row(("all-reduce", 1))], backend)[1] == [
        [1],
        [2],
        [3],
    ]


def test_instructions_of_a_proto_go_by_id() -> None:
    """Not as they stand in the file, and not as they are scheduled."""
    late, early = instruction("all-to-all", 9, [1]), instruction("all-to-all", 4, [1])
    for each in (late, early):
        each.channel_id = 1
    proto = module(late, early)
    proto.schedule.sequences[7].instruction_ids.extend(sorted((early.id, late.id, late.id - 8), reverse=True))
    result = ENFORCER.run(load(proto.SerializeToString()))
    assert [result.module.instruction(name).channel_id for name in ("x4", "x9")] == [1, 2]


def test_zero_and_negative_ids_of_a_text_are_values() -> None:
    """Each may stand once; the next id does not care about them."""
    notation = [row(*(("all-to-all", ch) for ch in (0, -3, 0, None, -3, None, 1)))]
    assert enforced(notation, "text")[1] == [[0, -3, 2, None, 3, 4, 1]]


def test_a_proto_cannot_state_them() -> None:
    """0 or less is no id there: the first of them stays without, the others get ids."""
    notation = [row(*(("all-to-all", ch) for ch in (0, -3, 0, None, 1)))]
    assert enforced(notation, "proto")[1] == [[None, 2, 3, 4, 1]]


def test_of_asynchronous_forms_the_wrapped_operation_counts() -> None:
    """A start in short where its line stands, an explicit one in its own computation; done forms have no id."""
    text = """w {
  q = f32[8] parameter(0)
  ROOT r = f32[4] reduce-scatter(q), channel_id=1, replica_groups={{0,1}}, dimensions={0}, to_apply=add
}

ENTRY e {
  p = f32[8] parameter(0)
  s = ((f32[8]), f32[4], u32[]) async-start(p), calls=w
  d = f32[4] async-done(s)
  t = ((f32[8]), f32[8]) all-to-all-start(p), channel_id=1, dimensions={0}
  u = f32[8] all-to-all-done(t)
  g = (f32[8], f32[16]) all-gather-start(p), channel_id=1, dimensions={0}
  b = ((f32[8]), f32[8]) collective-broadcast-start(p), channel_id=1, replica_groups={{0,1}}
}
"""
    result = ENFORCER.run(load(text))
    assert result.module.to_bytes().decode() == text.replace(
        "start(p), channel_id=1, dim", "start(p), channel_id=2, dim", 1
    )
    assert [each["opcode"] for each in stats_of(result)["renumbered"]] == ["all-to-all"]


@both
def test_renumbered_says_old_and_new(backend: str) -> None:
    """Name, computation, line in a text, opcode, old and new id; an id that was absent is None."""
    result, _ = enforced(
        [row(("all-gather", 1), ("all-reduce", 1), ("all-gather", None), ("all-gather", None))], backend
    )
    renumbered = [dict(each) for each in stats_of(result)["renumbered"]]
    lines = [each.pop("line") for each in renumbered]
    assert renumbered == [
        {"instruction": "all-reduce.0.1", "computation": "c0", "opcode": "all-reduce", "old": 1, "new": 2},
        {"instruction": "all-gather.0.3", "computation": "c0", "opcode": "all-gather", "old": None, "new": 3},
    ]
    assert lines == ([12, 14] if backend == "text" else [None, None])
    assert len(result.edits) == 2


@both
def test_unique_ids_are_left_alone(backend: str) -> None:
    """Nothing to say about them either."""
    notation = [row(("all-gather", 4), ("send", 9), ("send-done", 9)), row(("all-reduce", None), ("all-to-all", 2))]
    result, found = enforced(notation, backend)
    assert found == [[4, 9, 9], [None, 2]]
    assert (result.changed, result.modified, result.warnings, result.edits) == (False, False, (), ())


# --- what it warns of -----------------------------------------------------------------------------------------------


@both
def test_a_torn_pair_is_named(backend: str) -> None:
    """Who moves, and who stays: partner and done form."""
    result, _ = enforced([PAIR], backend)
    [warning] = result.warnings
    assert "sends and recvs with channel id 7 are torn apart: recv.0.2" in warning
    assert "gets 8, while send.0.0" in warning
    assert "send-done.0.1" in warning
    assert "recv-done.0.3" in warning


@both
def test_a_done_form_left_behind_is_named(backend: str) -> None:
    """A send that moves because a collective had its id first."""
    result, found = enforced([row(("all-reduce", 7), ("send", 7), ("send-done", 7))], backend)
    assert found == [[7, 8, 7]]
    assert any("send.0.1" in each and "while send-done.0.2" in each for each in result.warnings)


@both
@pytest.mark.parametrize("case", section("group_mode_by_opcode_after_enforcer"), ids=lambda case: case["op"])
def test_a_new_group_mode_is_named(case: dict[str, Any], backend: str) -> None:
    """An id where there was none: the warning has the mode before and after, and the instruction."""
    flag = case.get("use_global_device_ids")
    notation = [[{"op": case["op"], "rg": GROUPS, "flag": flag, "ch": ch} for ch in (4, None, None)]]
    result, found = enforced(notation, backend)
    assert found == [[4, None, case["after"]["ch"]]]
    [warning] = result.warnings
    assert f"from {case['before']['mode']} to {case['after']['mode']} for {case['op']}.0.2" in warning


def test_with_one_partition_the_devices_stay_the_same() -> None:
    """The new mode is then the old one by another name, and the warning says so."""
    notation = [[{"op": "all-reduce", "rg": GROUPS} for _ in range(2)]]
    for count, ending in (
        (1, "which joins the same devices, as there is one partition"),
        (2, "so other devices may meet"),
    ):
        text = text_of(notation).replace("HloModule made", f"HloModule made, num_partitions={count}")
        [warning] = ENFORCER.run(load(text)).warnings
        assert f"for all-reduce.0.1 (line 12), {ending}" in warning


@both
def test_a_flag_without_channel_gets_one(backend: str) -> None:
    """The combination has no mode; with an id it has."""
    notation = [[{"op": "all-reduce", "rg": GROUPS, "flag": True} for _ in range(2)]]
    [warning] = enforced(notation, backend)[0].warnings
    assert "from none (use_global_device_ids needs a channel id) to kFlattenedID for all-reduce.0.1" in warning


@both
def test_a_new_id_for_an_id_changes_no_mode(backend: str) -> None:
    """Renumbering alone is not worth a word."""
    assert enforced([row(("all-gather", 1), ("all-reduce", 1))], backend)[0].warnings == ()


@both
def test_ids_shared_with_opcodes_that_it_never_looks_at_are_listed(backend: str) -> None:
    """By id, with everyone who has it in the end."""
    notation = [row(("all-gather-start", 5), ("all-gather", 5), ("all-reduce", 5), ("collective-broadcast", 6))]
    result, found = enforced(notation, backend)
    assert found == [[5, 5, 7, 6]]
    [shared] = stats_of(result)["still_shared"]
    assert (shared["channel_id"], [each["opcode"] for each in shared["instructions"]]) == (
        5,
        ["all-gather-start", "all-gather"],
    )
    [warning] = result.warnings
    assert "several instructions still have 5" in warning
    assert "all-gather-start.0.0" in warning


BRANCHES = """add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}

one {
  q = f32[8] parameter(0)
  ROOT r1 = f32[8] all-reduce(q), channel_id=1, to_apply=add
}

inner {
  q = f32[8] parameter(0)
  ROOT r2 = f32[8] all-reduce(q), channel_id=1, to_apply=add
}

two {
  q = f32[8] parameter(0)
  ROOT c = f32[8] call(q), to_apply=inner
}

ENTRY e {
  p = f32[8] parameter(0)
  i = s32[] parameter(1)
  ROOT k = f32[8] conditional(i, p, p), branch_computations={one, two}
}
"""


def test_separated_branches_are_named() -> None:
    """One id in two branches of a conditional, one of them through a call."""
    result = ENFORCER.run(load(BRANCHES))
    assert result.module.to_bytes().decode() == BRANCHES.replace(
        "r2 = f32[8] all-reduce(q), channel_id=1", "r2 = f32[8] all-reduce(q), channel_id=2"
    )
    [warning] = result.warnings
    assert warning.startswith(
        "branches of the conditional k shared channel id 1 in r1 (line 9) and r2 (line 14), which XLA allows"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("branch_computations={one, two}", "branch_computations={two, two}"),
        ("conditional(i, p, p), branch_computations={one, two}", "call(p), to_apply=two"),
        (
            "r2 = f32[8] all-reduce(q), channel_id=1, to_apply=add",
            "r2 = f32[8] all-to-all(q), channel_id=1, dimensions={0}",
        ),
    ],
)
def test_other_places_that_shared_an_id_are_not(old: str, new: str) -> None:
    """One branch for both, no conditional, or two opcodes, which may never share an id."""
    result = ENFORCER.run(load(BRANCHES.replace(old, new)))
    assert result.changed
    assert result.warnings == ()


def test_what_is_not_renumbered_is_not_separated() -> None:
    """Starts with an opcode of their own keep the id that they share over branches; that they share it is said."""
    text = BRANCHES.replace("all-reduce(q)", "all-reduce-start(q)")
    result = ENFORCER.run(load(text))
    assert result.changed is False
    [warning] = result.warnings
    assert warning.startswith("channel ids are not unique over the module: several instructions still have 1")


# --- the loops ------------------------------------------------------------------------------------------------------

ENTRIES = st.builds(
    lambda op, ch: {"op": op, "ch": ch}, st.sampled_from(sorted(CHANNEL_CLASS)), st.none() | st.integers(-1, 4)
)
NOTATIONS = st.lists(st.lists(ENTRIES, max_size=6), min_size=1, max_size=3)


def readable(notation: Notation, backend: str) -> Notation:
    """Return the case as a backend can state it: a proto has no ids below 1."""
    if backend == "text":
        return notation
    return [[{**each, "ch": each["ch"] if (each["ch"] or 0) > 0 else None} for each in row_] for row_ in notation]


def slow_enforce(notation: Notation) -> list[list[int | None]]:
    """Walk as documented, with a list of what was seen."""
    everything = [each["ch"] for row_ in notation for each in row_ if each["ch"] is not None]
    next_id = 1
    for each in everything:
        if each + 1 > next_id:
            next_id = each + 1
    seen: list[int | None] = []
    found: list[list[int | None]] = []
    for row_ in notation:
        found.append([])
        for each in row_:
            new = each["ch"]
            if each["op"] in ENFORCED_OPCODES:
                if new in seen:
                    new = next_id
                    next_id += 1
                seen.append(new)
            found[-1].append(new)
    return found


@given(NOTATIONS, st.sampled_from(BACKENDS))
def test_ids_are_those_of_the_loops(notation: Notation, backend: str) -> None:
    """Any mixture of opcodes and ids; a second run finds nothing to do."""
    stated = readable(notation, backend)
    result, found = enforced(stated, backend)
    expected = slow_enforce(stated)
    assert found == expected
    before = [[each["ch"] for each in row_] for row_ in stated]
    assert result.changed is result.modified is (expected != before)
    assert ENFORCER.run(result.module).changed is False


@given(NOTATIONS, st.sampled_from(BACKENDS))
def test_safe_tears_nothing_apart(notation: Notation, backend: str) -> None:
    """Ids stay where there were none, families stay together, others of the seven end up with ids of their own."""
    stated = readable(notation, backend)
    result, found = enforced(stated, backend, SAFE)
    families: dict[int, set[int | None]] = {}
    owners: dict[int | None, set[object]] = {}
    for number, row_ in enumerate(stated):
        for position, each in enumerate(row_):
            old, new = each["ch"], found[number][position]
            assert (old is None) == (new is None)
            transfer = each["op"].split("-")[0] in ("send", "recv")
            has_start = any(e["ch"] == old and e["op"] in ("send", "recv") for r in stated for e in r)
            if old is not None and transfer and has_start:
                families.setdefault(old, set()).add(new)
            if new is not None and each["op"] in ENFORCED_OPCODES:
                owners.setdefault(new, set()).add(("family", old) if transfer else (number, position))
    assert all(len(ids) == 1 for ids in families.values())
    assert all(len(each) == 1 for each in owners.values())
    assert not any("torn apart" in each or "group mode" in each for each in result.warnings)
    assert SAFE.run(result.module).changed is False
