"""Rules on lists of more ids than anybody writes out: they cost what lists of eight cost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from checked_lines import gathered, reduced
from checking import ids_of, module_of, one_of, problems_in
from commlens.analysis import RULES
from commlens.errors import CommlensError
from commlens.hlo import MOST_LISTED, Finding, Subject, check_listable, find_all
from commlens.topology import CollectiveDeviceList, IotaReplicaGroupList, iota

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Target

MANY = 1 << 40
SIDE = 1 << 20
ROWS = f"[{SIDE},{SIDE}]<=[{MANY}]"
COLUMNS = f"[{SIDE},{SIDE}]<=[{SIDE},{SIDE}]T(1,0)"
ALL = f"[1,{MANY}]<=[{MANY}]"
KINDS = (ROWS, COLUMNS, ALL, f"mesh['a'={SIDE},'b'={SIDE}] {{'a'}}")
UNEVEN = f"mesh['a'=2,'b'={3 << 25}], device_ids=([{1 << 26},3]T(1,0)) {{'a'}}"


@pytest.fixture
def unlisted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing write out more than a few ids that the module does not write out itself."""
    monkeypatch.setattr(iota, "EXPANSION_LIMIT", 64)


@pytest.mark.usefixtures("unlisted")
@pytest.mark.parametrize("groups", KINDS)
@pytest.mark.parametrize("target", [None, "trn2"])
def test_right_lists_of_any_size_have_no_findings(groups: str, target: Target | None) -> None:
    """Nothing is wrong with a program for 2^40 devices, and nobody looks at them one by one."""
    header = f"num_partitions={MANY}"
    module = module_of(reduced(groups), header=header)
    found = problems_in(module, mesh=f"x={SIDE},y={SIDE}", target=target)
    assert ids_of(found) == []


@pytest.mark.usefixtures("unlisted")
@pytest.mark.parametrize("groups", KINDS)
@pytest.mark.parametrize("partitions", [1, 6, MANY // 2])
def test_ids_beyond_the_program_are_counted(groups: str, partitions: int) -> None:
    """The first ids that nothing has are named, the rest are counted, and the cure is the number of all."""
    module = module_of(reduced(groups), header=f"num_partitions={partitions}")
    found = problems_in(module, rules=[rule for rule in RULES if rule.id != "groups-off-mesh"])
    assert ids_of(found) == ["id-out-of-range"]
    assert f"found {partitions}, {partitions + 1}, " in found[0].message
    assert f"and {MANY - partitions - 8} more" in found[0].message
    assert found[0].message.endswith(f"run the program on {MANY} devices")


@pytest.mark.usefixtures("unlisted")
@pytest.mark.parametrize("groups", KINDS)
def test_ids_that_are_missing_are_counted(groups: str) -> None:
    """Of a program with twice as many devices half are in no group."""
    found = one_of(problems_in(module_of(reduced(groups), header=f"num_partitions={2 * MANY}")), "groups-incomplete")
    assert f"and {MANY - 8} more; give every one a group" in found.message


@pytest.mark.usefixtures("unlisted")
def test_an_exchange_in_another_id_space_says_its_cure() -> None:
    """Ids of partitions without a channel id are those of replicas."""
    line = f"t = f32[8] all-to-all(p), replica_groups=[{MANY // 2},2]<=[{MANY}], dimensions={{0}}"
    found = one_of(problems_in(module_of(line, header=f"replica_count=1, num_partitions={MANY}")), "id-out-of-range")
    assert f"add a channel_id, for the ids are those of the {MANY} partitions" in found.message


@pytest.mark.usefixtures("unlisted")
def test_flows_are_followed_whatever_the_size() -> None:
    """Data gathered twice, and overlapping groups in a loop, are found in the number of axes."""
    lines = (gathered("g", "p", COLUMNS, 1), gathered("h", "p", COLUMNS, 2))
    assert "gathered-twice" in ids_of(problems_in(module_of(*lines, header=f"num_partitions={MANY}")))
    before = f"""
body {{
  t = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  a = f32[8] get-tuple-element(t), index=1
  {reduced(ROWS).replace("(p)", "(a)")}
  {reduced(COLUMNS, channel=2).replace("(p)", "(r)").replace("r =", "r2 =")}
  ROOT o = (s32[], f32[8]) tuple(i, r2)
}}
condition {{
  t = (s32[], f32[8]) parameter(0)
  ROOT c = pred[] constant(true)
}}
"""
    loop = "w = (s32[], f32[8]) while(t), condition=condition, body=body"
    module = module_of("t = (s32[], f32[8]) parameter(2)", loop, header=f"num_partitions={MANY}", before=before)
    assert ids_of(problems_in(module)) == ["overlapping-in-loop"]


def test_what_would_have_to_be_listed_is_said_to_be_unchecked() -> None:
    """Groups that lie unevenly are listed up to a limit; beyond it their rules say so, and the others go on."""
    lines = (gathered("g", "p", UNEVEN, 1), "d = f32[8] all-reduce(p), replica_groups={{0,0}}, to_apply=add")
    found = problems_in(module_of(*lines, header=f"num_partitions={6 << 25}"))
    unchecked = one_of(found, "gathered-twice")
    assert (unchecked.severity, unchecked.instructions, unchecked.line) == ("note", [], None)
    assert unchecked.message.startswith("not checked, or not to the end: the ids of mesh['a'=2,")
    assert "id-repeated" in ids_of(found)


def test_a_rule_that_cannot_go_on_does_not_stop_the_others() -> None:
    """What it found before stays, a note says that it did not get to the end, and the next rule runs."""

    def broken(_: Subject) -> Iterator[Finding]:
        yield Finding("something")
        msg = "too much"
        raise CommlensError(msg)

    rules = (replace(RULES[0], find=broken), replace(RULES[1], find=lambda _: iter([Finding("more")])))
    found = [(rule.id, each.message, each.severity) for rule, each in find_all(Subject.of(module_of()), rules)]
    assert found == [
        (RULES[0].id, "something", None),
        (RULES[0].id, "not checked, or not to the end: too much", "note"),
        (RULES[1].id, "more", None),
    ]


def test_what_a_module_writes_out_is_always_looked_at() -> None:
    """The limit is for lists that are short to write and long to list."""
    check_listable(CollectiveDeviceList([range(MOST_LISTED + 1)]))
    check_listable(IotaReplicaGroupList(1, MOST_LISTED))
    with pytest.raises(CommlensError, match="more than the 1,048,576 that are listed"):
        check_listable(IotaReplicaGroupList(1, MOST_LISTED + 1))
