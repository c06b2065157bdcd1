"""What the simulator is documented to refuse in a module, and what cannot be told of its cores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlens.errors import InputError
from commlens.hlo import load
from commlens.neuron import RankModel, core_map
from proto_modules import device_list, instruction, module

if TYPE_CHECKING:
    from commlens.neuron import CoreMap

HEADER = "HloModule step, replica_count=4\n"
WRAPPED = """w {
  q = f32[8] parameter(0)
  ROOT z = f32[8] collective-permute(q), source_target_pairs={{0,1}}GROUPS
}
"""
PERMUTE = "collective-permute: Permute should not contain replica_groups: expected source-target pairs alone, found "


def on_cores(*lines: str, computations: str = "") -> CoreMap:
    """Put a module whose entry has some instructions behind the parameter ``p`` on cores."""
    body = "".join(f"  {line}\n" for line in lines)
    return core_map(load(f"{HEADER}{computations}ENTRY e {{\n  p = f32[8] parameter(0)\n{body}}}\n"), RankModel(1))


def refusals(cores: CoreMap) -> list[str | None]:
    """Return what is said of each collective, the opcode before it."""
    return [each.refusal and f"{each.opcode}: {each.refusal}" for each in cores.collectives]


@pytest.mark.parametrize(
    ("groups", "found"),
    [
        ("", None),
        (", replica_groups={}", None),
        (", replica_groups={{0,1,2,3}}", "1 group"),
        (", replica_groups={{0,1},{2,3}}", "2 groups"),
        (", replica_groups=[2,2]<=[4]", "2 groups"),
        (", replica_groups={{0,x}}", "1 group"),
    ],
)
@pytest.mark.parametrize("form", ["plain", "start", "wrapped"])
def test_a_permute_with_groups(groups: str, found: str | None, form: str) -> None:
    """It is refused in the simulator's words, however it is written; so are groups that cannot be read."""
    pairs = f"source_target_pairs={{{{0,1}}}}{groups}"
    lines = {
        "plain": [f"a = f32[8] collective-permute(p), {pairs}"],
        "start": [
            f"a = (f32[8], f32[8]) collective-permute-start(p), {pairs}",
            "b = f32[8] collective-permute-done(a)",
        ],
        "wrapped": ["a = ((f32[8]), f32[8]) async-start(p), calls=w", "b = f32[8] async-done(a)"],
    }[form]
    cores = on_cores(*lines, computations=WRAPPED.replace("GROUPS", groups) if form == "wrapped" else "")
    assert refusals(cores) == [None if found is None else f"{PERMUTE}{found}"]
    assert cores.core(0).peers[0] is not None
    if found is None:
        cores.check_simulated()
    else:
        with pytest.raises(InputError, match="Permute should not contain replica_groups"):
            cores.check_simulated()


def test_a_permute_with_groups_in_a_proto() -> None:
    """Protos have fields for both, and are judged alike."""
    permute = instruction("collective-permute", 2, [1])
    permute.source_target_pairs.add(source=0, target=1)
    permute.collective_device_list.CopyFrom(device_list([0, 1]))
    cores = core_map(load(module(permute).SerializeToString(), replicas=4), RankModel(1))
    assert refusals(cores) == [f"{PERMUTE}1 group"]


def test_sends_and_receives() -> None:
    """HLO gives them no groups, so that there is nothing to refuse; one that has some needs exactly one."""
    cores = on_cores(
        "t = token[] after-all()",
        "a = (f32[8], u32[], token[]) send(p, t), channel_id=1",
        "b = (f32[8], u32[], token[]) send(p, t), channel_id=1, replica_groups={{0,1}}",
        "c = (f32[8], u32[], token[]) recv(t), channel_id=1, replica_groups={{0,1},{2,3}}",
    )
    words = "Multiple LNCs are not supported yet: recv needs replica_groups.size()==1, found 2 groups"
    assert refusals(cores) == [None, None, f"recv: {words}"]
    with pytest.raises(InputError) as caught:
        cores.check_simulated()
    assert str(caught.value) == f"<text>:7: recv c: {words}"


def test_a_module_that_the_simulator_would_run() -> None:
    """Reduce-scatters of one group and everything else with any groups pass."""
    cores = on_cores(
        "a = f32[2] reduce-scatter(p), replica_groups={{0,1,2,3}}, dimensions={0}, to_apply=add",
        "b = f32[16] all-gather(p), replica_groups={{0,1},{2,3}}, dimensions={0}",
        "c = f32[8] all-reduce(p), replica_groups={}, to_apply=add",
    )
    cores.check_simulated()
    assert refusals(cores) == [None, None, None]


def test_collectives_that_say_the_same() -> None:
    """Whom a rank meets in them is worked out once, for large modules repeat few collectives many times."""
    lines = [f"a{number} = f32[8] all-reduce(p), replica_groups={{{{0,2}},{{1,3}}}}" for number in range(2)]
    lines += [f"b{number} = f32[8] collective-permute(p), source_target_pairs={{{{0,1}}}}" for number in range(2)]
    first, second, third, fourth = on_cores(*lines).core(0).peers
    assert first is second
    assert third is fourth
    assert (first and first.peers, third and third.peers) == ([2], [1])


def test_members_that_repeat() -> None:
    """A rank that stands twice in its group does not meet itself."""
    cores = on_cores("a = f32[8] all-reduce(p), replica_groups={{0,1,0,2}}, to_apply=add")
    first = cores.core(0).peers[0]
    assert first is not None
    assert (first.peers, first.position) == ([1, 2], 0)


def test_a_pair_of_a_rank_with_itself() -> None:
    """The rank keeps its data: it sends to itself, and meets nobody."""
    cores = on_cores("c = f32[8] collective-permute(p), source_target_pairs={{0,2},{1,1}}")
    [first], [second], [third], [fourth] = (core.peers for core in cores.cores())
    assert first is not None
    assert second is not None
    assert third is not None
    assert (first.peers, first.sends_to, first.receives_from) == ([2], (2,), ())
    assert (second.peers, second.sends_to, second.receives_from) == ([], (1,), (1,))
    assert (third.peers, third.sends_to, third.receives_from) == ([0], (), (0,))
    assert fourth is None


def test_a_module_for_other_ranks_is_named() -> None:
    """The error says which module, and that of counts which nobody states too."""
    module = load(f"{HEADER}ENTRY e {{\n  ROOT p = f32[8] parameter(0)\n}}\n")
    with pytest.raises(InputError, match="^<text>: expected a module for 8 ranks, found one for 4 devices$"):
        core_map(module, RankModel(1), 8)
    with pytest.raises(InputError, match="^<text>: expected the number of ranks: the module states neither"):
        core_map(load("ENTRY e {\n  ROOT p = f32[8] parameter(0)\n}\n"), RankModel(1))
