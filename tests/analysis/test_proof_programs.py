from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
import twins_runtime
from commlens.analysis.participation import Counts, groups_participation
from commlens.analysis.proofs.observations import observation_of
from commlens.analysis.proofs.programs import SIZED, elements, program_for, spellings
from commlens.analysis.proofs.scaling import Flags, Layout
from commlens.topology import CollectiveOpGroupMode as Mode
from commlens.topology import parse_replica_groups, parse_source_target_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlens.analysis.proofs.observations import Observation
    from commlens.topology import IotaReplicaGroupList

FLAGGED = (Mode.CROSS_REPLICA, Mode.CROSS_REPLICA_AND_PARTITION, Mode.FLATTENED_ID)
MODES = {
    "all-gather": FLAGGED,
    "all-reduce": FLAGGED,
    "reduce-scatter": FLAGGED,
    "all-to-all": (Mode.CROSS_REPLICA, Mode.CROSS_PARTITION),
}


@st.composite
def layouts(draw: st.DrawFn, modes: Sequence[Mode]) -> Layout:
    """Draw an iota list in a mode, as it is, written out or as no list at all, with fitting counts."""
    mode = draw(st.sampled_from(modes))
    groups = draw(strategies.iota_groups())
    copies = draw(st.integers(1, 3))
    counts = Layout(mode, Counts(1, 1)).with_ids(groups.num_devices, copies)
    if mode is Mode.FLATTENED_ID:
        partitions = draw(st.sampled_from([d for d in range(1, groups.num_devices + 1) if groups.num_devices % d == 0]))
        return Layout(mode, Counts(groups.num_devices // partitions, partitions), draw(_spelled(groups)))
    return Layout(mode, counts, draw(_spelled(groups) | st.just(parse_replica_groups("{}"))))


def _spelled(groups: IotaReplicaGroupList) -> st.SearchStrategy:
    return st.sampled_from([groups, groups.to_list()])


def read(opcode: str, layout: Layout, size: int | None = None) -> Observation:
    """Run a program on the twin and read its results."""
    (outcome,) = twins_runtime.run([program_for(opcode, layout, size)])
    assert outcome.results is not None
    return observation_of(opcode, outcome.results)


@pytest.mark.parametrize("opcode", MODES)
@given(data=st.data())
def test_the_answer_is_read_off_the_results(opcode: str, data: st.DataObject) -> None:
    """Run by the twin, the program of a layout shows its participants, in their order where the operation has one."""
    layout = data.draw(layouts(MODES[opcode]))
    assert layout.groups is not None
    predicted = groups_participation(layout.mode, layout.groups, layout.counts).listed(10_000)
    assert predicted is not None
    size = len(predicted[0]) if opcode in SIZED else None
    program = program_for(opcode, layout, size)
    assert sum(map(len, program.arguments)) == elements(opcode, layout, size)
    observation = read(opcode, layout, size)
    assert observation.faults == ()
    if opcode == "all-reduce":
        assert sorted(map(sorted, observation.groups)) == sorted(map(sorted, predicted))
    else:
        assert sorted(observation.groups) == sorted(predicted)


def test_permuted_numbers_name_their_senders() -> None:
    """Who gets nothing is in no pair."""
    pairs = parse_source_target_pairs("{{0,1},{2,2}}")
    layout = Layout(Mode.CROSS_PARTITION, Counts(2, 3), None, pairs)
    (outcome,) = twins_runtime.run([program_for("collective-permute", layout)])
    assert outcome.results == ((0,), (1,), (3,), (0,), (4,), (6,))
    assert read("collective-permute", layout).groups == [[0, 1], [2, 2], [3, 4], [5, 5]]


def test_a_broadcast_names_its_root_first() -> None:
    """The order of the others cannot be seen."""
    layout = Layout(Mode.CROSS_REPLICA, Counts(4, 1), parse_replica_groups("{{2,1},{0,3}}"))
    assert read("collective-broadcast", layout).groups == [[0, 3], [2, 1]]


def test_uneven_groups_of_an_all_reduce() -> None:
    """Sums need no groups of one size."""
    layout = Layout(Mode.FLATTENED_ID, Counts(1, 4), parse_replica_groups("{{3,0,1},{2}}"))
    assert read("all-reduce", layout).groups == [[0, 1, 3], [2]]


ONE = 1 << 16
IMPOSSIBLE = {
    "one-sided": ("all-reduce", [[1, 1], [0, 1]], "device 0 heard from 0, 1, and device 1 heard from 1"),
    "not-itself": ("all-gather", [[1], [1]], "device 0 heard from 1, and device 1 heard from 1"),
    "twice": ("all-reduce", [[2]], None),
    "two-parts": ("reduce-scatter", [[ONE, ONE + 1], [ONE, ONE + 1]], "device 0 got parts 0, 1"),
    "same-part": ("reduce-scatter", [[ONE, ONE], [ONE, ONE]], "devices 0 and 1 both got part 0"),
    "other-part": (
        "all-to-all",
        [[1, 3], [1, 3]],
        "device 0 got element 1 of device 0, where element 0 of device 0 belongs to member 0",
    ),
    "no-equal-parts": ("all-to-all", [[0, 1, 3], [4, 5, 4], [8, 7, 6]], "device 0 heard from 2 of 3 devices"),
    "second-hand": ("collective-broadcast", [[3], [2], [2]], "device 0 heard from 2, which heard from 1"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_results_that_fit_no_groups(name: str) -> None:
    """What cannot come from groups is a fault, or shows as no groups that anybody would predict."""
    opcode, results, fault = IMPOSSIBLE[name]
    observation = observation_of(opcode, results)
    if fault is None:
        assert observation.groups == [[0, 0]]
    else:
        assert any(each.startswith(fault) for each in observation.faults), observation


@pytest.mark.parametrize(
    ("text", "tried"),
    [
        ("{{0,1}}", ("{{0,1}}",)),
        ("[2,1]<=[2]", ("[2,1]<=[2]", "{{0},{1}}")),
        ("mesh['a'=2] {'a'}", ("mesh['a'=2] {'a'}", "{{0,1}}")),
        ("mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'a'}", ("{{0,1},{2,3}}",)),
        ("mesh['a'=2], device_ids=(1,0) {'a'}", ("{{1,0}}",)),
        ("{}", ("{}",)),
    ],
)
def test_spellings_to_try(text: str, tried: tuple[str, ...]) -> None:
    """The own spelling comes first, but a mesh whose order would get lost is written out at once."""
    assert spellings(Layout(Mode.FLATTENED_ID, Counts(1, 2), parse_replica_groups(text))) == tried


@pytest.mark.parametrize("opcode", ["all-gather", "all-reduce", "collective-permute"])
@pytest.mark.parametrize(
    ("stated", "channel", "flag"),
    [(Flags(False), False, False), (Flags(True), True, False), (Flags(True, True), True, True), (None, False, False)],
)
def test_a_program_states_what_the_instruction_states(
    opcode: str, stated: Flags | None, channel: bool, flag: bool
) -> None:
    """Whatever mode was made of it; only where nothing but the mode is given, the program states what means that."""
    pairs = parse_source_target_pairs("{{0,1}}") if opcode == "collective-permute" else None
    groups = None if pairs else parse_replica_groups("{{0,1}}")
    layout = Layout(Mode.CROSS_REPLICA, Counts(2, 1), groups, pairs, stated)
    (text,) = program_for(opcode, layout, 2).texts
    assert ("channel_id=1" in text, "use_global_device_ids=true" in text) == (channel, flag)


def test_everybody_may_mean_several_sizes() -> None:
    """An all-to-all without groups has as many operands as a group has members, which is not taken from the mode."""
    layout = Layout(Mode.CROSS_PARTITION, Counts(3, 4), parse_replica_groups("{}"))
    texts = program_for("all-to-all", layout).texts
    assert [text.count(" slice(own)") for text in texts] == [4, 3, 12]
