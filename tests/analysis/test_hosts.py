from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commlens.analysis import Hosts, HostSurvey, compare_hosts
from commlens.analysis.hosts_deadlocks import together
from commlens.analysis.hosts_grouping import grouped
from commlens.hlo import load
from commlens.topology import CollectiveDeviceList, IotaReplicaGroupList, SourceTargetPairs
from strategies import iota_groups

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlens.analysis import HostModule, ModuleOnHosts
    from commlens.topology import DeviceList

PROTOS = Path(__file__).resolve().parent.parent / "data" / "protos"

TEXT = """HloModule {name}, num_partitions={partitions}

add {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}}
{before}
ENTRY e {{
  p = f32[4] parameter(0)
{lines}
}}
"""
FLAT = "use_global_device_ids=true"
REDUCE = f"ar = f32[4] all-reduce(p), channel_id=1, replica_groups={{{{0,1}}}}, {FLAT}, to_apply=add"
GATHER = f"ag = f32[8] all-gather(p), channel_id=2, replica_groups={{{{0,1}}}}, {FLAT}, dimensions={{0}}"


def text_of(*lines: str, name: str = "step", before: str = "", partitions: int = 2) -> str:
    """Return a module with an operand ``p``, f32[4]."""
    body = "\n".join(f"  {line}" for line in lines)
    return TEXT.format(name=name, lines=body, before=before, partitions=partitions)


def members_of(texts: Mapping[str, str | Path], survey: HostSurvey | None = None) -> list[HostModule]:
    """Look at the modules of some hosts."""
    survey = HostSurvey() if survey is None else survey
    found: list[HostModule] = []
    for path, text in texts.items():
        module = load(text)
        module.path = path
        found.append(survey.look_at(module))
    return found


def hosts(texts: Mapping[str, str | Path]) -> Hosts:
    """Compare hosts with a module each."""
    survey = HostSurvey()
    return compare_hosts(members_of(texts, survey), list(texts), survey)


def only(answer: Hosts) -> ModuleOnHosts:
    """Return the only module of an answer."""
    (module,) = answer.modules
    return module


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


def test_the_end_of_a_schedule_is_said() -> None:
    """Where one host has nothing more, its member of the first difference says so."""
    answer = hosts({"a": text_of(REDUCE, GATHER), "b": text_of(REDUCE)})
    first = answer.first_difference
    assert first is not None
    assert (first.position, first.members["b"]) == (1, "nothing: its schedule ends after 1")


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


# --- devices that wait for each other -------------------------------------------------------------------------------


def slow_together(first: list[list[int]], second: list[list[int]]) -> set[tuple[int, int]]:
    """Try every two devices."""
    devices = sorted({device for group in first for device in group})

    def meet(groups: list[list[int]], a: int, b: int) -> bool:
        return any(a in group and b in group for group in groups)

    return {(a, b) for a, b in combinations(devices, 2) if meet(first, a, b) and meet(second, a, b)}


@given(iota_groups(12), iota_groups(12))
def test_devices_that_meet_in_both(first: DeviceList, second: DeviceList) -> None:
    """Two devices stand in one block if and only if they are in one group of both."""
    found = {pair for block in together(first, second) for pair in combinations(block, 2)}
    assert found == slow_together(first.groups(), second.groups())


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=5), iota_groups(6))
def test_pairs_that_meet_in_groups(pairs: list[tuple[int, int]], groups: DeviceList) -> None:
    """The ends of a pair wait for each other; whether they do in the groups too is looked up, whichever comes first."""
    expected = slow_together([[*pair] for pair in pairs], groups.groups())
    assert set(together(SourceTargetPairs(pairs), groups)) == expected
    assert set(together(groups, SourceTargetPairs(pairs))) == expected


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=4),
)
def test_pairs_that_meet_in_pairs(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    """Direction does not matter to those who wait."""
    found = set(together(SourceTargetPairs(first), SourceTargetPairs(second)))
    assert found == slow_together([[*pair] for pair in first], [[*pair] for pair in second])


def test_what_nobody_knows_deadlocks_nobody() -> None:
    """Unknown groups and groups beyond all counting name no devices."""
    assert together(None, CollectiveDeviceList([[0, 1]])) == []
    assert together(IotaReplicaGroupList(100_000, 100_000), IotaReplicaGroupList(100_000, 100_000)) == []


def test_groups_without_common_members_do_not_deadlock() -> None:
    """Another order alone is no deadlock: who is in one group of the one meets nobody of it in the other."""
    first = REDUCE.replace("{{0,1}}", "{{0,1},{2,3}}")
    second = GATHER.replace("{{0,1}}", "{{0,2},{1,3}}")
    answer = hosts({"a": text_of(first, second, partitions=4), "b": text_of(second, first, partitions=4)})
    (difference,) = only(answer).differences
    assert difference.order_only
    assert difference.deadlocks == ()


# --- what does not communicate --------------------------------------------------------------------------------------

USED = "n = f32[4] negate({})"

EQUAL_REST = {
    "missing": (text_of(REDUCE, USED.format("ar")), text_of(USED.format("p"))),
    "async": (
        text_of(REDUCE, USED.format("ar")),
        text_of(
            REDUCE.replace("ar = f32[4] all-reduce", "s = f32[4] all-reduce-start"),
            "d = f32[4] all-reduce-done(s)",
            USED.format("d"),
        ),
    ),
    "order": (
        text_of(REDUCE, GATHER, USED.format("ar")),
        text_of(GATHER, REDUCE, USED.format("ar")),
    ),
    "names": (text_of(USED.format("p")), text_of(USED.format("p").replace("n =", "other ="))),
    "metadata": (text_of(USED.format("p")), text_of(USED.format("p") + ', metadata={op_name="x"}')),
    "variadic": (
        text_of(
            "q = f32[2] parameter(1)",
            "v = (f32[2], f32[4]) all-reduce(q, p), replica_groups={}, to_apply=add",
            "x = f32[4] get-tuple-element(v), index=1",
            USED.format("x"),
        ),
        text_of("q = f32[2] parameter(1)", USED.format("p")),
    ),
}


@pytest.mark.parametrize("pair", EQUAL_REST.values(), ids=EQUAL_REST.keys())
def test_the_rest_is_the_same(pair: tuple[str, str]) -> None:
    """What communicates, what things are called and what is noted about them are no part of the fingerprint."""
    first, second = members_of({"a": pair[0], "b": pair[1]})
    assert first.rest.fingerprint == second.rest.fingerprint is not None


OTHER_REST = {
    "opcode": (text_of(USED.format("p")), text_of(USED.format("p").replace("negate", "abs"))),
    "operand": (
        text_of("q = f32[4] parameter(1)", "n = f32[4] subtract(p, q)"),
        text_of("q = f32[4] parameter(1)", "n = f32[4] subtract(q, p)"),
    ),
    "constant": (text_of("c = f32[] constant(1)"), text_of("c = f32[] constant(2)")),
    "config": (text_of(USED.format("p")), text_of(USED.format("p") + ', backend_config="x"')),
    "dimension": (
        text_of("m = f32[4,4] broadcast(p), dimensions={0}"),
        text_of("m = f32[4,4] broadcast(p), dimensions={1}"),
    ),
    "called": (
        text_of(
            "c = f32[4] call(p), to_apply=f", before="f {\n  p = f32[4] parameter(0)\n  ROOT n = f32[4] negate(p)\n}"
        ),
        text_of("c = f32[4] call(p), to_apply=f", before="f {\n  p = f32[4] parameter(0)\n  ROOT n = f32[4] abs(p)\n}"),
    ),
    "element": (
        text_of(
            "q = f32[4] parameter(1)",
            "v = (f32[4], f32[4]) all-reduce(q, p), replica_groups={}, to_apply=add",
            "x = f32[4] get-tuple-element(v), index=1",
            USED.format("x"),
        ),
        text_of(
            "q = f32[4] parameter(1)",
            "v = (f32[4], f32[4]) all-reduce(q, p), replica_groups={}, to_apply=add",
            "x = f32[4] get-tuple-element(v), index=0",
            USED.format("x"),
        ),
    ),
}


@pytest.mark.parametrize("pair", OTHER_REST.values(), ids=OTHER_REST.keys())
def test_the_rest_differs(pair: tuple[str, str]) -> None:
    """Every difference in what does not communicate is seen, and does not make hosts disagree."""
    answer = hosts({"a": pair[0], "b": pair[0], "c": pair[1]})
    usual, other = only(answer).rest
    assert answer.agree is True
    assert (usual.paths, other.paths, usual.differs_in) == (("a", "b"), ("c",), ())
    assert other.differs_in


def test_operands_that_double_do_not_fill_the_memory() -> None:
    """A chain of collectives, each of which takes the one before it twice, is soon looked through."""
    chain = [f"r{n} = f32[4] all-reduce(r{n - 1}, r{n - 1}), replica_groups={{}}, to_apply=add" for n in range(1, 60)]
    (member,) = members_of({"a": text_of("r0 = f32[4] copy(p)", *chain)})
    assert member.rest.fingerprint is not None


# --- which modules belong together ----------------------------------------------------------------------------------


def sorted_of(
    paths: dict[str, str], inputs: list[str]
) -> tuple[tuple[str, ...], list[tuple[str, list[str]]], dict[str, Any]]:
    """Sort modules, given by path and name; return hosts, groups and who lacks which."""
    found = grouped(members_of({path: text_of(REDUCE, name=name) for path, name in paths.items()}), inputs)
    return found.hosts, [(name, [each.path for each in modules]) for name, modules in found.groups], dict(found.absent)


def test_files_are_hosts() -> None:
    """Each file is a host; names of modules that differ do not keep them apart where each has one."""
    assert sorted_of({"a": "m", "b": "m"}, ["a", "b"]) == (("a", "b"), [("m", ["a", "b"])], {})
    assert sorted_of({"a": "m", "b": "m.1"}, ["a", "b"]) == (("a", "b"), [("m", ["a", "b"])], {})


def test_folders_are_hosts() -> None:
    """Modules of folders belong together by name, whatever the files are called; what one lacks is said."""
    paths = {
        "x/module_0001.f.txt": "f",
        "x/module_0002.g.txt": "g",
        "y/module_0007.f.txt": "f",
        "y/module_0009.g.txt": "g",
    }
    names = list(paths)
    assert sorted_of(paths, ["x", "y"]) == (("x", "y"), [("f", names[::2]), ("g", names[1::2])], {})
    lacking = {path: paths[path] for path in names[:3]}
    assert sorted_of(lacking, ["x", "y"])[2] == {"g": ("y",)}


def test_what_names_leave_belongs_together() -> None:
    """One module of each host that names do not pair is compared with the others like it."""
    paths = {"x/1.txt": "f", "x/2.txt": "step.1", "y/1.txt": "f", "y/2.txt": "step.2"}
    assert sorted_of(paths, ["x", "y"])[1:] == ([("f", ["x/1.txt", "y/1.txt"]), ("step.1", ["x/2.txt", "y/2.txt"])], {})


def test_a_module_compiled_twice() -> None:
    """Dumps of one name in one folder are the first and the second of each host."""
    paths = {"x/module_1.f.txt": "f", "x/module_2.f.txt": "f", "y/module_1.f.txt": "f", "y/module_2.f.txt": "f"}
    names = list(paths)
    assert sorted_of(paths, ["x", "y"])[1] == [("f", names[::2]), ("f", names[1::2])]


def test_a_folder_of_ranks() -> None:
    """Several files of one module in one folder are those of several hosts, in a single folder even numbered ones."""
    paths = {"x/rank0.txt": "f", "x/rank1.txt": "f"}
    assert sorted_of(paths, ["x"]) == (("x/rank0.txt", "x/rank1.txt"), [("f", list(paths))], {})
    more = {**paths, "y/rank2.txt": "f"}
    assert sorted_of(more, ["x", "y"])[1] == [("f", list(more))]
    numbered = {"x/module_1.f.txt": "f", "x/module_2.f.txt": "f"}
    assert sorted_of(numbered, ["x"])[1] == [("f", list(numbered))]


def test_a_single_dump_is_one_host() -> None:
    """The modules of one folder that are all different are those of one host, and that nothing is compared is said."""
    found = grouped(members_of({f"x/module_{name}.txt": text_of(REDUCE, name=name) for name in "fg"}), ["x"])
    assert (found.hosts, found.absent) == (("x",), {})
    assert found.notes == ("no two modules have one name: nothing is compared",)


def test_a_host_without_a_module_disagrees() -> None:
    """A host that lacks a whole module cannot take part in it."""
    survey = HostSurvey()
    paths = {"x/1": "f", "x/2": "g", "y/1": "f"}
    members = members_of({path: text_of(REDUCE, name=name) for path, name in paths.items()}, survey)
    answer = compare_hosts(members, ["x", "y"], survey)
    assert (answer.agree, answer.as_dict()["absent"]) == (False, {"g": ["y"]})
