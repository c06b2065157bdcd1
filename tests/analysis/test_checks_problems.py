"""Choosing rules, running them, and accepting what was there before."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from checking import ALL_RULES, FLAG, ids_of, module_of, problems_in
from commlens.analysis import Problem, check, chosen_rules, matches, read_baseline, rules_of
from commlens.errors import CommlensError, InputError
from commlens.hlo import Deployment, Finding, Place, Rule, Subject, load

if TYPE_CHECKING:
    from pathlib import Path

NEURON = Deployment("trn2")


def chosen(*select: str, ignore: tuple[str, ...] = (), deployment: Deployment = NEURON) -> list[str]:
    """Return the ids of the rules that are chosen."""
    return [rule.id for rule in chosen_rules(ALL_RULES, deployment, select=select, ignore=ignore)]


# --- choosing -------------------------------------------------------------------------------------------------------


def test_without_choice_all_rules_run_that_apply() -> None:
    """Rules of other machines are left out, the others are all there, in their order."""
    assert chosen(deployment=Deployment()) == [rule.id for rule in ALL_RULES if rule.targets is None]
    assert chosen() == [rule.id for rule in ALL_RULES if rule.id != "NEU-TRN1-CORES"]


@pytest.mark.parametrize(
    ("pattern", "ids"),
    [
        ("unread", ["unread"]),
        ("UNREAD", ["unread"]),
        ("neu-rank-neg", ["NEU-RANK-NEG"]),
        ("groups", ["groups-uneven", "groups-incomplete", "groups-off-mesh"]),
        ("stream", ["stream-partial", "stream-split", "stream-type-opcode", "stream-type-groups"]),
        ("stream-type", ["stream-type-opcode", "stream-type-groups"]),
        ("*-slice", ["all-reduce-slice", "all-gather-slice"]),
        ("id-[or]*", ["id-out-of-range", "id-repeated"]),
    ],
)
def test_patterns(pattern: str, ids: list[str]) -> None:
    """A rule is named by its id, its beginning up to a dash, or with stars; upper and lower case alike."""
    assert chosen(pattern) == ids


def test_all_names_everything() -> None:
    """The word all stands for every rule."""
    assert chosen("ALL") == chosen()
    assert chosen(ignore=("all",)) == []


def test_ignore_comes_last() -> None:
    """What is ignored is not run even where it is selected."""
    assert chosen("groups", "unread", ignore=("groups-*mesh", "unread")) == ["groups-uneven", "groups-incomplete"]


@pytest.mark.parametrize(
    ("select", "ignore"), [(("grop",), ()), ((), ("grop",)), (("grou",), ()), (("groups-unevem",), ())]
)
def test_unknown_rules_are_refused(select: tuple[str, ...], ignore: tuple[str, ...]) -> None:
    """A name that names nothing is a slip: it is refused, with what it is most like."""
    with pytest.raises(CommlensError, match=r"expected the id of a rule, found '[a-z-]+'; did you mean [a-z-]+\?"):
        chosen(*select, ignore=ignore)


@pytest.mark.parametrize(("pattern", "target"), [("NEU", None), ("NEU-TRN1-CORES", "trn2"), ("NEU-RANK-NEG", "gpu")])
def test_selected_rules_must_have_their_target(pattern: str, target: str | None) -> None:
    """Looking for what cannot be found would be taken for finding nothing."""
    with pytest.raises(CommlensError, match=r"expected a target of NEU-[A-Z0-9-]+, one of .*trn1.*, found"):
        chosen("unread", pattern, deployment=Deployment(target))  # pyright: ignore[reportArgumentType]


def test_rule_by_name() -> None:
    """Rules are found by their ids, beginnings of them and patterns, as they are selected."""
    assert [rule.id for rule in rules_of(ALL_RULES, "neu-comm-max")] == ["NEU-COMM-MAX"]
    assert [rule.id for rule in rules_of(ALL_RULES, "groups")] == [
        "groups-uneven",
        "groups-incomplete",
        "groups-off-mesh",
    ]
    with pytest.raises(CommlensError, match="found 'strm'"):
        rules_of(ALL_RULES, "strm")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("group-uneven", "did you mean groups-uneven?"),
        ("NEU-COM-MAX", "did you mean NEU-COMM-MAX?"),
        ("shape_mismatch", "did you mean shape-mismatch?"),
        ("nope", "--list-rules shows them all"),
        ("x", "--list-rules shows them all"),
    ],
)
def test_only_names_that_are_like_one_get_a_suggestion(name: str, hint: str) -> None:
    """A word that is like no rule is not answered with any of them."""
    with pytest.raises(CommlensError, match=re.escape(hint)):
        rules_of(ALL_RULES, name)


def test_a_pattern_is_no_regular_expression() -> None:
    """Signs of other pattern languages match nothing."""
    assert not matches("group.*", "groups-uneven")
    assert not matches("", "unread")


# --- running --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (("r = f32[8] all-reduce(x), replica_groups={}, to_apply=add",), ["unread"]),
        (("r = f32[8] all-reduce(x, y), replica_groups={}, to_apply=add",), ["unread", "used-before-defined"]),
        (
            ("r = f32[8] all-reduce(p), replica_groups={}, to_apply=add, control-predecessors={x}",),
            ["used-before-defined"],
        ),
        (("r = f32[8] all-gather(x), replica_groups={}, dimensions={}",), ["unread"]),
        (("n = f32[8] negate(x)",), ["used-before-defined"]),
        (
            ("r = f32[8] all-reduce(x), replica_groups={}, to_apply=add", "x = f32[8] negate(p)"),
            ["used-before-defined"],
        ),
    ],
)
def test_an_undefined_operand_is_found_once(lines: tuple[str, ...], found: list[str]) -> None:
    """What keeps a collective from being read is one finding; what else is wrong with it are others."""
    problems = check(module_of(*lines, header="replica_count=1"), ALL_RULES)
    assert [each.rule.id for each in problems if each.rule.id in ("unread", "used-before-defined")] == found


def test_findings_are_in_the_order_of_the_file() -> None:
    """By line, those of the module first, those of one line in the order of the rules."""
    lines = [f"{name} = f32[8] all-reduce(p), replica_groups={{{{0,0}},{{}}}}, to_apply=add" for name in ("b", "a")]
    found = problems_in(module_of(*lines, header="replica_count=4"), mesh="x=2")
    assert [(each.rule.id, *each.instructions) for each in found] == [
        ("groups-off-mesh",),
        *((rule, name) for name in ("b", "a") for rule in ("id-repeated", "group-empty", "groups-incomplete")),
    ]
    assert [each.line for each in found] == [None, *sorted(each.line for each in found[1:] if each.line)]


def test_a_problem_in_json() -> None:
    """The keys that scripts rely on, and where it is."""
    module = module_of("r = f32[8] all-reduce(p), replica_groups={{0,0}}, to_apply=add")
    [found] = problems_in(module)
    line = next(
        number for number, text in enumerate(module.to_bytes().decode().split("\n"), start=1) if "  r = " in text
    )
    assert found.as_dict() == {
        "rule": "id-repeated",
        "severity": "error",
        "message": "expected every id once in the groups, found 0 more often; keep one of each",
        "path": "<text>",
        "line": line,
        "instructions": ["r"],
        "module": "m",
        "computation": "e",
    }


def test_no_mesh_is_a_mesh_error() -> None:
    """What names no mesh is an error of the caller, not a finding."""
    with pytest.raises(CommlensError):
        check(module_of(), ALL_RULES, mesh="nonsense")


def test_a_module_without_collectives_has_no_findings() -> None:
    """Nothing communicates, nothing is wrong."""
    assert problems_in(load("ENTRY e { ROOT p = f32[8] parameter(0) }\n"), target="trn2") == []


# --- baselines ------------------------------------------------------------------------------------------------------

BAD = "r = f32[8] all-reduce(p), replica_groups={{0,0}}, to_apply=add"
WORSE = f"s = f32[8] all-reduce(p), replica_groups={{{{1,1}}}}, {FLAG}, to_apply=add"


def answer(problems: list[Problem], path: Path) -> str:
    """Write findings as the command does, and return the file's name."""
    path.write_text(json.dumps({"schema": "commlens.check/1", "findings": [each.as_dict() for each in problems]}))
    return str(path)


def test_accepted_findings_are_taken_out(tmp_path: Path) -> None:
    """The same findings are accepted, wherever their lines have gone; new ones are left."""
    before = problems_in(module_of(BAD))
    after = problems_in(module_of("n = f32[8] negate(p)", BAD, WORSE))
    judged = read_baseline(answer(before, tmp_path / "old.json")).judge(after, ["<text>"])
    assert ids_of(judged.problems) == ["flag-without-channel", "id-repeated"]
    assert [each.instructions for each in judged.problems] == [["s"], ["s"]]
    assert (judged.accepted, judged.gone) == (1, 0)


def test_findings_that_are_gone_are_counted(tmp_path: Path) -> None:
    """What the baseline has and nobody finds any more is said, for files that were checked."""
    before = problems_in(module_of(BAD, WORSE))
    baseline = read_baseline(answer(before, tmp_path / "old.json"))
    judged = baseline.judge(problems_in(module_of(BAD)), ["<text>"])
    assert (judged.problems, judged.accepted, judged.gone) == ([], 1, 2)
    assert baseline.judge([], ["another.txt"]).gone == 0


def test_as_many_as_there_were_are_accepted(tmp_path: Path) -> None:
    """A finding that occurs once in the baseline is accepted once: a second one of the same is new."""
    [found] = problems_in(module_of(BAD))
    judged = read_baseline(answer([found], tmp_path / "old.json")).judge([found, found], ["<text>"])
    assert (len(judged.problems), judged.accepted) == (1, 1)


def test_folders_do_not_count(tmp_path: Path) -> None:
    """A baseline that was made elsewhere counts: the file's name is compared, not the way to it."""
    rule, place = ALL_RULES[0], Place("x", "e", 3)
    old = Problem(rule, "error", "expected a, found b", "/there/step.txt", "m", (place,))
    new = Problem(rule, "error", "expected a, found b", "here/step.txt", "m", (place._replace(line=9),))
    other = Problem(rule, "error", "expected a, found b", "here/stop.txt", "m", (place,))
    judged = read_baseline(answer([old], tmp_path / "old.json")).judge([new, other], ["here/step.txt"])
    assert (judged.problems, judged.accepted) == ([other], 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"old.json:1:2: expected the answer of commlens check --format json: "),
        ("[]", r"old.json: expected the answer of commlens check --format json, found something without findings"),
        ('{"findings": 1}', r"without findings"),
        ('{"findings": []}', r"whose schema is 'commlens.check/1', found None; make it anew"),
        ('{"schema": "commlens.report/1", "findings": []}', r"found 'commlens.report/1'"),
        ('{"schema": "commlens.check/2", "findings": []}', r"found 'commlens.check/2'"),
        (
            '{"schema": "commlens.check/1", "findings": [{"rule": "x"}]}',
            r"found finding number 1 without rule, path, message or instructions",
        ),
        (
            '{"schema": "commlens.check/1", "findings": [{"rule": "x", "path": "p", "message": "m", "instructions": []}, 7]}',
            r"finding number 2",
        ),
        ("[" * 100_000, r"expected the answer of commlens check"),
    ],
)
def test_baselines_that_are_none(content: str, message: str, tmp_path: Path) -> None:
    """What is no answer of check is refused with its place."""
    path = tmp_path / "old.json"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_baseline(str(path))


def test_a_missing_baseline_is_an_error_that_says_how_to_make_one(tmp_path: Path) -> None:
    """Nothing is accepted in silence because a name was mistyped."""
    with pytest.raises(InputError, match=re.escape("make one with commlens check ... --format json -o ")):
        read_baseline(str(tmp_path / "none.json"))


# --- the parts ------------------------------------------------------------------------------------------------------


def test_answers_are_worked_out_once() -> None:
    """What several rules ask is asked once."""
    subject = Subject.of(module_of(BAD))
    asked: list[Subject] = []

    def question(about: Subject) -> int:
        asked.append(about)
        return len(about.sites)

    assert [subject.ask(question), subject.ask(question)] == [1, 1]
    assert asked == [subject]


def test_a_finding_may_be_worse_than_its_rule() -> None:
    """The severity of a finding counts, where it states one."""
    [rule] = rules_of(ALL_RULES, "size-one-axis")

    def find(subject: Subject) -> list[Finding]:
        return [
            Finding.about("expected a, found b", subject.sites[0], severity="error"),
            Finding("expected c, found d"),
        ]

    louder = Rule(
        rule.id, "note", rule.title, rule.documentation, rule.source, rule.bad, rule.good, lambda each: iter(find(each))
    )
    assert [(each.severity, each.instructions) for each in check(module_of(BAD), [louder])] == [
        ("note", []),
        ("error", ["r"]),
    ]
