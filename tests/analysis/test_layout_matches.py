from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import twins_neuron
from commlens.analysis import match_layouts
from commlens.topology import CollectiveDeviceList, IotaReplicaGroupList

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlens.analysis import LayoutMatch, Report

    ReportOf = Callable[..., Report]

LAYOUTS = {
    "tp": IotaReplicaGroupList(4, 2),
    "dp": IotaReplicaGroupList(2, 4, (4, 2), (1, 0)),
    "world": CollectiveDeviceList([[7, 6, 5, 4, 3, 2, 1, 0]]),
    "one": IotaReplicaGroupList(8, 1),
}
"""Groups of eight ranks."""

COUNTS = "replica_count=8"


def reduce(name: str, groups: str) -> str:
    """Write an all-reduce."""
    return f"{name} = f32[64] all-reduce(q), replica_groups={groups}, to_apply=add"


def matches(report: Report) -> list[LayoutMatch]:
    """Compare with the layouts."""
    return match_layouts(report, LAYOUTS)


@pytest.mark.parametrize(
    ("groups", "names", "in_order"),
    [
        ("{{0,1},{2,3},{4,5},{6,7}}", ["tp"], ["tp"]),
        ("[4,2]<=[8]", ["tp"], ["tp"]),
        ("{{6,7},{0,1},{4,5},{2,3}}", ["tp"], ["tp"]),
        ("{{1,0},{2,3},{4,5},{6,7}}", ["tp"], []),
        ("[2,4]<=[4,2]T(1,0)", ["dp"], ["dp"]),
        ("{{1,3,5,7},{6,4,2,0}}", ["dp"], []),
        ("{{0},{1},{2},{3},{4},{5},{6},{7}}", ["one"], ["one"]),
        ("{}", ["world"], []),
        ("{{7,6,5,4,3,2,1,0}}", ["world"], ["world"]),
        ("mesh['a'=4,'b'=2] {'b'}", ["tp"], ["tp"]),
    ],
)
def test_the_same_sets_match(report_of: ReportOf, groups: str, names: list[str], in_order: list[str]) -> None:
    """Spelling, order of groups and order of members do not matter; whether members stand in order is said."""
    [match] = matches(report_of(reduce("a", groups), header=COUNTS))
    assert (match.matches, match.in_order, match.first_group_only, match.why) == (names, in_order, [], None)


@pytest.mark.parametrize(
    "groups",
    [
        "{{0,2},{1,3},{4,5},{6,7}}",  # other sets
        "{{0,1},{2,3},{4,5}}",  # a group is missing
        "{{0,1},{2,3},{4,5},{0,1}}",  # one stands there twice
        "{{0,1,2,3},{4,5,6,7}}",
        "{{0,1,2},{3,4,5,6,7}}",  # uneven
        "{{0,1},{2,3},{4,5},{6,9}}",  # beyond the world
        "[8,2]<=[16]",  # of another world
        "[1048576,1048576]<=[1099511627776]",
    ],
)
def test_other_sets_do_not(report_of: ReportOf, groups: str) -> None:
    """Other groups match nothing, and huge ones are not written out."""
    [match] = matches(report_of(reduce("a", groups)))
    assert (match.matches, match.in_order, match.first_group_only) == ([], [], [])


def test_a_first_group_alone(report_of: ReportOf) -> None:
    """Modules with compressed groups state the first group; that is said apart from what matches."""
    found = matches(report_of(reduce("a", "{{0,1}}"), reduce("b", "{{2,0,4,6}}"), reduce("c", "{{2,3}}")))
    assert [(match.matches, match.first_group_only) for match in found] == [([], ["tp"]), ([], ["dp"]), ([], [])]


@pytest.mark.parametrize(
    ("pairs", "names"),
    [
        ("{{0,1},{1,0}}", ["tp", "world"]),
        ("{{0,2},{2,4},{4,6},{6,0},{1,3}}", ["dp", "world"]),
        ("{{0,0},{6,7}}", ["tp", "world"]),
        ("{{0,1},{0,2}}", ["world"]),
        ("{{0,9}}", []),
        ("{{3,3}}", []),
        ("{}", []),
    ],
)
def test_pairs_lie_inside_groups(report_of: ReportOf, pairs: str, names: list[str]) -> None:
    """A permute is of a layout when each pair of two ranks is inside one of its groups."""
    permute = f"a = f32[16] collective-permute(p), source_target_pairs={pairs}"
    [match] = matches(report_of(permute))
    assert (match.matches, match.in_order) == (names, None)


def test_pairs_in_layouts_whose_groups_overlap(report_of: ReportOf) -> None:
    """A rank may be in several groups of a layout."""
    ring = {"ring": CollectiveDeviceList([[0, 1], [2, 0]]), "rest": CollectiveDeviceList([[0], [1, 2]])}
    permute = "a = f32[16] collective-permute(p), source_target_pairs={{1,0},{0,2}}"
    assert [match.matches for match in match_layouts(report_of(permute), ring)] == [["ring"]]


def test_what_cannot_be_told_says_why(report_of: ReportOf) -> None:
    """Empty groups without counts match nothing, for a reason."""
    [match] = matches(report_of(reduce("a", "{}")))
    assert match.matches == []
    assert match.why is not None
    assert "nobody states how many replicas and partitions" in match.why


def test_participants_are_compared_not_what_is_written(report_of: ReportOf) -> None:
    """Groups of replicas are compared with all their partitions."""
    [match] = matches(report_of(reduce("a", "{{0,1,2,3}}"), header="replica_count=4, num_partitions=2"))
    assert (match.matches, match.in_order) == (["dp"], ["dp"])


def test_answers_are_rows(report_of: ReportOf) -> None:
    """One answer per row, in order, with name, axes and place; as a mapping too."""
    report = report_of(reduce("a", "[4,2]<=[8]"), reduce("b", "[2,4]<=[8]"), header=COUNTS, mesh="x=4,y=2")
    first, second = matches(report)
    assert (first.name, first.axes, first.opcode, first.computation) == ("a", ["y"], "all-reduce", "e")
    assert (second.name, second.axes, second.matches) == ("b", ["x:(2)2", "y"], [])
    assert [match.line for match in (first, second)] == [row.line for row in report.collectives]
    assert list(first.as_dict())[:3] == ["name", "axes", "matches"]


groups_of_six = st.permutations(range(6)).flatmap(
    lambda ranks: st.sampled_from([1, 2, 3, 6]).map(
        lambda size: [list(ranks[start : start + size]) for start in range(0, 6, size)]
    )
)


@given(
    written=groups_of_six,
    layouts=st.lists(groups_of_six, min_size=1, max_size=4),
    pairs=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=4),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_against_loops(
    report_of: ReportOf, written: list[list[int]], layouts: list[list[list[int]]], pairs: list[tuple[int, int]]
) -> None:
    """Whatever the groups and pairs, the names are those that crossing out finds."""
    text = str(written).translate(str.maketrans("[]", "{}"))
    pair_text = "{" + ",".join(f"{{{source},{target}}}" for source, target in pairs) + "}"
    permute = f"b = f32[16] collective-permute(p), source_target_pairs={pair_text}"
    named = {str(place): groups for place, groups in enumerate([*layouts, [group[::-1] for group in written]])}
    collective, moved = match_layouts(
        report_of(reduce("a", text), permute), {name: CollectiveDeviceList(groups) for name, groups in named.items()}
    )
    assert collective.matches == [name for name, groups in named.items() if twins_neuron.same_sets(written, groups)]
    assert collective.in_order == [name for name, groups in named.items() if twins_neuron.same_order(written, groups)]
    assert moved.matches == [name for name, groups in named.items() if twins_neuron.pairs_inside(pairs, groups)]
