"""Rules held against slow twins that know nothing of the package: loops over ids, devices and elements.

And against modules in which anything may be wrong: rules find faults, they do not fail.
"""

from __future__ import annotations

import re
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from checking import ALL_RULES, FLAG, ids_of, module_of, problems_in
from commlens.analysis import check
from commlens.analysis.checks import all_reduce_slice, shape_mismatch
from commlens.analysis.checks.cliques import clashing, cliques_of
from commlens.errors import CommlensError
from commlens.hlo import load_all
from commlens.topology import CollectiveDeviceList
from strategies import iota_groups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlens.topology import DeviceList

GROUP_RULES = (
    "id-out-of-range",
    "id-repeated",
    "group-empty",
    "groups-uneven",
    "groups-incomplete",
    "flattened-without-groups",
)


def braces(lists: Sequence[Sequence[int]]) -> str:
    """Write lists as HLO does."""
    return "{" + ",".join("{" + ",".join(map(str, each)) + "}" for each in lists) + "}"


# --- groups ---------------------------------------------------------------------------------------------------------


def slow_faults(opcode: str, groups: list[list[int]], limit: int, *, flattened: bool) -> list[str]:
    """Judge groups one id at a time."""
    if not groups:
        return ["flattened-without-groups"] if flattened else []
    found: set[str] = set()
    counts: dict[int, int] = {}
    for group in groups:
        if not group:
            found.add("group-empty")
        for each in group:
            counts[each] = counts.get(each, 0) + 1
    if any(number > 1 for number in counts.values()):
        found.add("id-repeated")
    if any(not 0 <= each < limit for each in counts):
        found.add("id-out-of-range")
    if any(each not in counts for each in range(limit)):
        found.add("groups-incomplete")
    sizes = {len(group) for group in groups if group}
    if len(sizes) > 1 and opcode != "all-reduce":
        found.add("groups-uneven")
    return sorted(found)


@given(
    opcode=st.sampled_from(["all-reduce", "all-gather", "all-to-all"]),
    groups=st.lists(st.lists(st.integers(-1, 6), max_size=4), max_size=4),
    replicas=st.integers(1, 3),
    partitions=st.integers(1, 3),
    channel=st.booleans(),
    flag=st.booleans(),
)
def test_faults_of_groups(
    opcode: str, groups: list[list[int]], replicas: int, partitions: int, *, channel: bool, flag: bool
) -> None:
    """The rules about ids name what a loop over the ids finds, in every group mode."""
    flag = flag and channel and opcode != "all-to-all"
    limit = replicas * partitions if flag else partitions if channel and opcode == "all-to-all" else replicas
    stated = f"{', channel_id=7' * channel}, replica_groups={braces(groups)}{f', {FLAG}' * flag}"
    more = ", to_apply=add" if opcode == "all-reduce" else ", dimensions={0}"
    module = module_of(
        f"x = f32[8] {opcode}(p){stated}{more}", header=f"replica_count={replicas}, num_partitions={partitions}"
    )
    found = [rule for rule in ids_of(problems_in(module)) if rule in GROUP_RULES]
    assert found == slow_faults(opcode, groups, limit, flattened=flag)


# --- slices by device -----------------------------------------------------------------------------------------------

OPERATIONS = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "minimum": min,
    "maximum": max,
    "remainder": lambda a, b: a if b == 0 else (abs(a) % abs(b)) * (1 if a >= 0 else -1),
    "divide": lambda a, b: -1 if b == 0 else abs(a) // abs(b) * (1 if (a >= 0) == (b > 0) else -1),
}


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[str, str, str]]:
    """Draw a few steps of arithmetic on the partition id, each on what stands before it."""
    names = ["id", "c1", "c2", "c4", "c8"]
    steps: list[tuple[str, str, str]] = []
    for _ in range(draw(st.integers(1, 4))):
        step = (draw(st.sampled_from(sorted(OPERATIONS))), draw(st.sampled_from(names)), draw(st.sampled_from(names)))
        steps.append(step)
        names.append(f"x{len(steps)}")
    return steps


def start_on(device: int, steps: list[tuple[str, str, str]]) -> int:
    """Work the steps out on one device."""
    values = {"id": device, **{f"c{number}": number for number in (1, 2, 4, 8)}}
    for number, (operation, left, right) in enumerate(steps, start=1):
        values[f"x{number}"] = OPERATIONS[operation](values[left], values[right])
    return values[f"x{len(steps)}"]


def compare_slices(steps: list[tuple[str, str, str]], order: list[int], size: int) -> bool:
    """Compare the rule with a walk over the devices; return what both say."""
    groups = [order[first : first + size] for first in range(0, 8, size)]
    part = 64 // size
    lines = [
        f"r = f32[64] all-reduce(q), channel_id=1, replica_groups={braces(groups)}, {FLAG}, to_apply=add",
        "id = s32[] partition-id()",
        *(f"c{number} = s32[] constant({number})" for number in (1, 2, 4, 8)),
        *(f"x{number} = s32[] {what}({left}, {right})" for number, (what, left, right) in enumerate(steps, start=1)),
        f"o = f32[{part}] dynamic-slice(r, x{len(steps)}), dynamic_slice_sizes={{{part}}}",
    ]
    found = check(module_of(*lines, header="num_partitions=8"), [all_reduce_slice.RULE])
    taken = [sorted({min(max(start_on(device, steps), 0), 64 - part) for device in group}) for group in groups]
    expected = all(starts == list(range(0, 64, part)) for starts in taken)
    assert bool(found) is expected
    return expected


@given(steps=programs(), order=st.permutations(range(8)), size=st.sampled_from([2, 4, 8]))
def test_slices_by_device(steps: list[tuple[str, str, str]], order: list[int], size: int) -> None:
    """An all-reduce and slice is a reduce-scatter where the members of each group really take different equal parts."""
    compare_slices(steps, order, size)


def test_slices_by_device_in_the_usual_form() -> None:
    """The same for indices as programs have them, so that both answers come up often."""
    answers = [
        compare_slices(
            [("add", "id", shift), ("remainder", "x1", f"c{count}"), ("multiply", "x2", "c8"), *more], order, size
        )
        for shift in ("c1", "c2", "c4")
        for count in (1, 2, 4, 8)
        for size in (2, 4, 8)
        for order in ([*range(8)], [7, 3, 5, 1, 6, 2, 4, 0], [0, 2, 4, 6, 1, 3, 5, 7])
        for more in ([], [("multiply", "x3", "c2")], [("multiply", "x3", "c4")])
    ]
    assert 10 < sum(answers) < len(answers) - 10


# --- shapes ---------------------------------------------------------------------------------------------------------


@given(
    opcode=st.sampled_from(["all-gather", "reduce-scatter", "all-reduce", "all-to-all"]),
    before=st.lists(st.sampled_from([1, 2, 4, 8, 12]), min_size=1, max_size=3),
    after=st.none() | st.lists(st.sampled_from([1, 2, 4, 8, 12]), min_size=1, max_size=3),
    along=st.integers(0, 2),
    size=st.sampled_from([2, 4]),
)
def test_shapes(opcode: str, before: list[int], after: list[int] | None, along: int, size: int) -> None:
    """Shapes are right when counting elements along every dimension says so."""
    if after is None:  # as it should be, where there is such a thing
        after = list(before)
        if along < len(before) and opcode == "all-gather":
            after[along] *= size
        elif along < len(before) and opcode == "reduce-scatter" and before[along] % size == 0:
            after[along] //= size
    groups = "{{0,1,2,3}}" if size == 4 else "{{0,1},{2,3}}"
    flag = f", {FLAG}" if opcode != "all-to-all" else ""
    dimensions = f", dimensions={{{along}}}" if opcode != "all-reduce" else ""
    reducer = ", to_apply=add" if opcode in ("all-reduce", "reduce-scatter") else ""
    module = module_of(
        f"a = f32[{','.join(map(str, before))}] parameter(2)",
        f"x = f32[{','.join(map(str, after))}] {opcode}(a), channel_id=1, replica_groups={groups}{dimensions}{flag}{reducer}",
        header="num_partitions=4",
    )
    assert bool(check(module, [shape_mismatch.RULE])) is not slow_shapes(opcode, before, after, along, size)


def slow_shapes(opcode: str, before: list[int], after: list[int], along: int, size: int) -> bool:
    """Whether shapes go with groups of a size."""
    if opcode == "all-reduce":
        return before == after
    if along >= len(before) or len(before) != len(after):
        return False
    if opcode == "all-to-all":
        return before == after and before[along] % size == 0
    small, large = (before, after) if opcode == "all-gather" else (after, before)
    return all(large[d] == small[d] * (size if d == along else 1) for d in range(len(small)))


# --- cliques --------------------------------------------------------------------------------------------------------

partitions_of_ids = st.permutations(range(6)).flatmap(
    lambda ids: st.lists(st.integers(1, 5), max_size=3).map(
        lambda cuts: [ids[a:b] for a, b in pairwise(sorted({0, len(ids), *cuts}))]
    )
)
lists = st.one_of(
    iota_groups(number=6), partitions_of_ids.map(CollectiveDeviceList), st.just(CollectiveDeviceList([[0, 3], [7, 8]]))
)


def slow_clash(one: DeviceList, other: DeviceList) -> bool:
    """Whether a device is in different groups of several members."""
    for mine in one.groups():
        for theirs in other.groups():
            shared = set(mine) & set(theirs)
            if shared and len(mine) > 1 and len(theirs) > 1 and set(mine) != set(theirs):
                return True
    return False


@given(st.lists(lists, min_size=1, max_size=4))
def test_clashing_groups(found: list[DeviceList]) -> None:
    """Group lists clash when a look at every two groups says so."""
    cliques = {each.key: each for each in map(cliques_of, found)}
    bad = {id(each) for each in clashing(list(cliques.values()))}
    for key, mine in cliques.items():
        others = [each for other, each in cliques.items() if other != key]
        assert (id(mine) in bad) is any(slow_clash(mine.groups, each.groups) for each in others)


@given(st.lists(lists, min_size=2, max_size=4))
def test_equal_cliques_are_one(found: list[DeviceList]) -> None:
    """Two lists have one key exactly when they are the same sets."""
    for one, other in combinations(found, 2):
        same = {frozenset(group) for group in one.groups()} == {frozenset(group) for group in other.groups()}
        assert (cliques_of(one).key == cliques_of(other).key) is same


# --- anything at all ------------------------------------------------------------------------------------------------

EXAMPLES = [example.text for rule in ALL_RULES for example in (rule.bad, rule.good)]
WORD = re.compile(r"[\w.\-]+|[^\w\s]")
WORDS = sorted({word for text in EXAMPLES for word in WORD.findall(text)})


@given(
    text=st.sampled_from(EXAMPLES),
    changes=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.sampled_from(["", *WORDS])), max_size=5),
    end=st.floats(0.2, 3),
)
def test_rules_do_not_fail(text: str, changes: list[tuple[float, str]], end: float) -> None:
    """Whatever words of an example are replaced, and wherever it is cut off, checking it gives findings and no error."""
    for place, word in changes:
        words = list(WORD.finditer(text))
        chosen = words[int(place * len(words))]
        text = f"{text[: chosen.start()]}{word}{text[chosen.end() :]}"
    try:
        modules = load_all(f"{text[: int(end * len(text))]}\n")
    except CommlensError:
        return  # no module is left of it
    for module in modules:
        for target in (None, "trn1"):
            assert all(found.message for found in problems_in(module, target=target))
