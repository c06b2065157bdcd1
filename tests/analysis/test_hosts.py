"""``hosts``: where schedules part, and who agrees."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commlens.analysis import HostSurvey
from commlens.hlo import load
from hosting import GATHER, REDUCE, hosts, members_of, only, text_of

PROTOS = Path(__file__).resolve().parent.parent / "data" / "protos"


# --- the reported case ----------------------------------------------------------------------------------------------


def test_b10_two_hosts_in_different_order() -> None:
    """B10: they part at position 0, run the same collectives, and devices 0 and 1 would wait for each other."""
    answer = hosts({"a": text_of(REDUCE, GATHER), "b": text_of(GATHER, REDUCE)})
    first = answer.first_difference
    assert answer.agree is False
    assert first is not None
    assert (first.position, first.order, first.module) == (0, "listed", "step")
    assert first.members["a"].startswith("all-reduce ar, channel 1, devices {{0,1}}")
    assert first.members["b"].startswith("all-gather ag, channel 2, devices {{0,1}}")
    (difference,) = only(answer).differences
    assert difference.order_only
    assert answer.as_dict()["missing"] == {}
    (deadlock,) = difference.deadlocks
    assert (deadlock.paths, deadlock.collectives, deadlock.devices) == (("a", "b"), ("ar", "ag"), ((0, 1),))


# --- who agrees -----------------------------------------------------------------------------------------------------

START = [
    GATHER.replace("ag = f32[8] all-gather", "s = (f32[4], f32[8]) all-gather-start"),
    "d = f32[8] all-gather-done(s)",
]

AGREEING = {
    "one-host": [text_of(REDUCE)],
    "equal": [text_of(REDUCE, GATHER)] * 3,
    "spelling": [text_of(REDUCE), text_of(REDUCE.replace("{{0,1}}", "[1,2]<=[2]").replace("ar =", "other ="))],
    "async": [text_of(GATHER), text_of(*START)],
    "silent": [text_of("n = f32[4] negate(p)"), text_of("n = f32[4] abs(p)")],
    "order-of-computations": [
        text_of("c = f32[4] call(p), to_apply=f", before=f"f {{\n  p = f32[4] parameter(0)\n  {REDUCE}\n}}"),
        text_of(REDUCE),
    ],
}


@pytest.mark.parametrize("texts", AGREEING.values(), ids=AGREEING.keys())
def test_hosts_that_agree(texts: list[str]) -> None:
    """The same collectives equally often in the same order, whatever they are called and how they are written."""
    answer = hosts({f"h{number}": text for number, text in enumerate(texts)})
    assert (answer.agree, answer.first_difference, only(answer).differences) == (True, None, ())


IN_A_LOOP = """
cond {{
  c = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant({trips})
  ROOT l = pred[] compare(i, n), direction=LT
}}

body {{
  b = (s32[], f32[4]) parameter(0)
  j = s32[] get-tuple-element(b), index=0
  p = f32[4] get-tuple-element(b), index=1
  one = s32[] constant(1)
  k = s32[] add(j, one)
  {line}
  ROOT t = (s32[], f32[4]) tuple(k, p)
}}
"""
LOOP = [
    "zero = s32[] constant(0)",
    "init = (s32[], f32[4]) tuple(zero, p)",
    "w = (s32[], f32[4]) while(init), condition=cond, body=body",
]

PARTING = {
    "groups": (text_of(REDUCE), text_of(REDUCE.replace("{{0,1}}", "{{0},{1}}")), "changed"),
    "shape": (text_of(REDUCE), text_of("q = f32[8] concatenate(p, p)", REDUCE.replace("f32[4]", "f32[8]")), "changed"),
    "operation": (text_of(REDUCE), text_of(GATHER), "missing extra"),
    "lacking": (text_of(REDUCE, GATHER), text_of(REDUCE), "missing"),
    "order": (text_of(REDUCE, GATHER), text_of(GATHER, REDUCE), "order"),
    "trips": (
        text_of(*LOOP, before=IN_A_LOOP.format(line=REDUCE, trips=3)),
        text_of(*LOOP, before=IN_A_LOOP.format(line=REDUCE, trips=4)),
        "changed",
    ),
}


@pytest.mark.parametrize("case", PARTING.values(), ids=PARTING.keys())
def test_hosts_that_part(case: tuple[str, str, str]) -> None:
    """Each way to differ is found, and said of the host that differs."""
    usual, other, kinds = case
    answer = hosts({"a": usual, "b": usual, "c": other})
    (difference,) = only(answer).differences
    assert answer.agree is False
    assert (difference.paths, difference.usual) == (("c",), "a")
    assert [change.kind for change in difference.changes] == kinds.split()


def test_who_lacks_what() -> None:
    """What most hosts have the others lack; what a minority has it has beyond them."""
    both, one = text_of(REDUCE, GATHER), text_of(REDUCE)
    lacking = hosts({"a": both, "b": both, "c": one}).as_dict()
    assert (lacking["missing"], lacking["extra"]) == ({"c": ["ag"]}, {})
    beyond = hosts({"a": one, "b": one, "c": both}).as_dict()
    assert (beyond["missing"], beyond["extra"]) == ({}, {"c": ["ag"]})


def test_of_two_hosts_each_lacks_what_the_other_has() -> None:
    """Without a majority nobody knows who is right."""
    answer = hosts({"a": text_of(REDUCE), "b": text_of(GATHER)}).as_dict()
    assert answer["missing"] == {"a": ["ag"], "b": ["ar"]}
    assert answer["extra"] == {"b": ["ag"]}


def test_names_are_those_of_each_host() -> None:
    """Hosts that run the same under other names are told what they have by their own names."""
    one, both = text_of(REDUCE), text_of(REDUCE, GATHER)
    texts = {"a": one, "b": one, "c": one, "d": both, "e": both.replace("ag =", "gather.7 =")}
    assert hosts(texts).as_dict()["extra"] == {"d": ["ag"], "e": ["gather.7"]}


def test_a_collective_before_a_loop_and_behind_it() -> None:
    """The lists of rows are the same, the order in which they run is not: the position counts what runs."""
    before = IN_A_LOOP.format(line=GATHER, trips=3)
    answer = hosts({"a": text_of(REDUCE, *LOOP, before=before), "b": text_of(*LOOP, REDUCE, before=before)})
    first = answer.first_difference
    assert first is not None
    assert (first.position, first.order) == (0, "running")
    assert first.members["a"].startswith("all-reduce ar")
    assert first.members["b"].startswith("all-gather ag")
    assert [deadlock.collectives for deadlock in only(answer).differences[0].deadlocks] == [("ar", "ag")]


@pytest.mark.parametrize("others", [("yes, no", "no, yes"), ("yes, no, no", "no, no, yes")])
def test_a_collective_in_the_other_branch(others: tuple[str, str]) -> None:
    """Hosts that run a collective for another value of what picks the branch do not agree."""
    branches = f"yes {{\n  p = f32[4] parameter(0)\n  ROOT {REDUCE}\n}}\nno {{\n  ROOT p = f32[4] parameter(0)\n}}"
    texts = {
        f"host{number}": text_of(
            "i = s32[] parameter(1)",
            f"k = f32[4] conditional({', '.join(['i', *['p'] * len(order.split(','))])}), branch_computations={{{order}}}",
            before=branches,
        )
        for number, order in enumerate(others)
    }
    module = only(hosts(texts))
    assert not module.agree
    assert [change.what for each in module.differences for change in each.changes] == [
        "stands in yes, which runs at another place"
    ]


def test_the_end_of_a_schedule_is_said() -> None:
    """Where one host has nothing more, its member of the first difference says so."""
    answer = hosts({"a": text_of(REDUCE, GATHER), "b": text_of(REDUCE)})
    first = answer.first_difference
    assert first is not None
    assert (first.position, first.members["b"]) == (1, "nothing: its list of 1 collective ends before")


def test_a_collective_in_front_of_a_loop_on_one_host_only() -> None:
    """The rows of a loop are listed before it: what a list ends with and what runs are told apart."""
    before = IN_A_LOOP.format(line=GATHER, trips=3)
    answer = hosts({"a": text_of(REDUCE, *LOOP, before=before), "b": text_of(*LOOP, before=before)})
    first = answer.first_difference
    assert first is not None
    assert (first.position, first.order, first.running_position) == (1, "listed", 0)
    assert first.members["a"].startswith("all-reduce ar")
    assert first.members["b"] == "nothing: its list of 1 collective ends before"


def test_two_hosts_that_differ_in_something_small() -> None:
    """What each does where they part is told apart whatever it is that differs."""
    cast = REDUCE.replace("f32[4] all-reduce", "bf16[4] all-reduce")
    first = hosts({"a": text_of(REDUCE), "b": text_of(cast)}).first_difference
    assert first is not None
    assert ("results f32[4]" in first.members["a"], "results bf16[4]" in first.members["b"]) == (True, True)


def test_members_of_the_first_difference_always_differ() -> None:
    """Where words do not tell two collectives apart, it is said that they are not the same."""
    other = "mul {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] multiply(x, y)\n}\n"
    listed = ["{" + ",".join(f"{{{2 * i},{2 * i + 1}}}" for i in order) + "}" for order in (range(64), range(64))]
    swapped = listed[1].replace("{126,127}", "{127,126}")
    pairs = {
        "reduction": (text_of(REDUCE), text_of(REDUCE.replace("add", "mul"), before=other)),
        "members": tuple(text_of(GATHER.replace("{{0,1}}", groups), partitions=128) for groups in (listed[0], swapped)),
        "dimension": tuple(
            text_of(
                "q = f32[4,4] parameter(1)", GATHER.replace("f32[8]", shape).replace("(p)", "(q)").replace("={0}", at)
            )
            for shape, at in (("f32[8,4]", "={0}"), ("f32[4,8]", "={1}"))
        ),
    }
    for texts in pairs.values():
        first = hosts(dict(zip("ab", texts, strict=True))).first_difference
        assert first is not None
        assert first.members["a"] != first.members["b"]


# --- counts ---------------------------------------------------------------------------------------------------------

COUNTS = {
    "partitions": ("num_partitions=6", "num_partitions=12"),
    "replicas": ("replica_count=2, num_partitions=6", "num_partitions=6"),
    "same-devices": ("replica_count=2, num_partitions=6", "num_partitions=12"),
}


def counted(counts: str) -> str:
    """Return a module for a number of devices."""
    return text_of(REDUCE).replace("num_partitions=2", counts)


@pytest.mark.parametrize("pair", COUNTS.values(), ids=COUNTS.keys())
def test_hosts_for_different_numbers_of_devices_disagree(pair: tuple[str, str]) -> None:
    """The same collectives in modules for other numbers of devices are no agreement, and it is said who has which."""
    answer = hosts({"a": counted(pair[0]), "b": counted(pair[0]), "c": counted(pair[1])})
    module = only(answer)
    assert (answer.agree, module.agree, module.differences) == (False, False, ())
    assert [each.paths for each in module.counts] == [("a", "b"), ("c",)]
    assert module.notes[0].startswith("the hosts are not for the same numbers of replicas and partitions: a and b ")


def test_counts_that_nobody_states_do_not_disagree() -> None:
    """What is not stated is not different."""
    answer = hosts(
        {"a": counted("num_partitions=6"), "b": counted("num_partitions=6").replace(", num_partitions=6", "")}
    )
    assert answer.agree is True
    assert [(each.replica_count, each.num_partitions) for each in only(answer).counts] == [(1, 6), (None, None)]


def test_other_channels_are_a_note() -> None:
    """Channel ids are numbers of a compiler: hosts that differ in them alone agree, and it is said."""
    answer = hosts({"a": text_of(REDUCE, GATHER), "b": text_of(REDUCE.replace("channel_id=1", "channel_id=9"), GATHER)})
    assert answer.agree is True
    assert only(answer).notes == ("a and b run the same collectives on other channels: 1 channel ids differ",)


def test_unread_items_forbid_the_claim() -> None:
    """Hosts with something unread may differ in it, unless their modules are the same byte by byte."""
    broken = text_of(REDUCE, REDUCE.replace("ar =", "b =").replace("{{0,1}}", "{{0,1"))
    assert hosts({"a": broken, "b": broken}).agree is True
    assert hosts({"a": broken, "b": broken.replace("p)", "p )")}).agree is None
    assert hosts({"a": broken, "b": broken.replace("f32[4] all-reduce", "f32[2] all-reduce", 1)}).agree is False


def test_text_and_proto_of_hosts_agree() -> None:
    """One host dumped text, another one protos."""
    name = "jax-0.10.2.subaxis_reshape_8.after"
    answer = hosts({"a": PROTOS / f"{name}.txt", "b": PROTOS / f"{name}.pb"})
    assert answer.agree is True
    assert [each.format for each in only(answer).rest] == ["text", "proto"]


def test_equal_modules_share_what_is_kept() -> None:
    """A thousand hosts with one module take the room of one."""
    members = members_of({f"h{number}": text_of(REDUCE) for number in range(3)})
    assert len({id(member.schedule) for member in members}) == 1
    assert [member.path for member in members] == ["h0", "h1", "h2"]
    other = members_of({"a": text_of(REDUCE), "b": text_of(REDUCE, "n = f32[4] negate(ar)")})
    assert other[0].schedule is other[1].schedule
    assert other[0].content != other[1].content


def test_a_proto_with_several_modules_is_not_one(tmp_path: Path) -> None:
    """Modules of one file are told apart though they share its bytes."""
    survey = HostSurvey()
    module = load(PROTOS / "jax-0.10.2.subaxis_reshape_8.after.pb")
    first, second = survey.look_at(module), survey.look_at(module)
    assert (first is second, first.flow) == (False, second.flow)


# --- position and names, held against slow twins ----------------------------------------------------------------------

OPERATIONS = {
    "ar": REDUCE.split(" = ")[1],
    "ag": GATHER.split(" = ")[1],
    "half": REDUCE.split(" = ")[1].replace("{{0,1}}", "{{0},{1}}"),
}
schedules = st.lists(st.sampled_from(sorted(OPERATIONS)), max_size=5)


@settings(max_examples=60, deadline=None)
@given(st.lists(schedules, min_size=2, max_size=4))
def test_schedules_part_where_the_twin_says_so(programs: list[list[str]]) -> None:
    """The position is the first at which not all lists have the same; what is left over adds up."""
    texts = {
        f"h{number}": text_of(*(f"{what}.{place} = {OPERATIONS[what]}" for place, what in enumerate(program)))
        for number, program in enumerate(programs)
    }
    answer = hosts(texts)
    columns = [[program[place] if place < len(program) else None for program in programs] for place in range(6)]
    expected = next((place for place, column in enumerate(columns) if len(set(column)) > 1), None)
    first = answer.first_difference
    assert (None if first is None else first.position) == expected
    assert answer.agree is (expected is None)
    for difference in only(answer).differences:
        usual, here = (programs[int(path[1:])] for path in (difference.usual, difference.paths[0]))
        kinds = Counter(change.kind for change in difference.changes)
        assert len(usual) - kinds["missing"] == len(here) - kinds["extra"]
        assert difference.order_only is (Counter(usual) == Counter(here))
