"""What hosts have beside communication, and which modules of a folder belong together."""

from __future__ import annotations

from typing import Any

import pytest

from commlens.analysis import HostSurvey, compare_hosts
from commlens.analysis.hosts.grouping import grouped
from hosting import GATHER, REDUCE, hosts, members_of, only, text_of

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
    assert first.fingerprint.whole == second.fingerprint.whole is not None


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
    assert member.fingerprint.whole is not None


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
