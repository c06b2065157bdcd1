"""What the messages of a log refer to: public reports, rendezvous and cliques, other messages."""

from __future__ import annotations

import pytest

from commlens.analysis import explain_log
from commlens.neuron import LOG_MESSAGES
from logs import STEP, clique, collective, key, module, names, notes

# --- public reports -------------------------------------------------------------------------------------------------


def test_b29_an_id_that_is_nowhere() -> None:
    """B29: the id is said to be nowhere, and the collectives of that mode and group are listed with axes and peers."""
    program = module(
        collective("a", "all-reduce", "{{0,1,2,3}}"),
        collective("b", "all-gather", "{{0,1},{2,3}}"),
        collective("c", "all-reduce", "{{0,1,2,3}}", 1),
        header="replica_count=4",
    )
    answer = explain_log(key("0, 1, 2, 3", "cross_replica", 534), [program], "data=4")
    assert answer.found
    assert [(each.name, each.axes, each.peers) for each in answer.candidates] == [("a", ["data"], [0, 1, 2, 3])]
    assert answer.candidates[0].why == "{0,1,2,3} is a group of it; it has no channel"
    assert "op_id 534 is no module and no instruction here" in notes(answer)


def test_b29_as_people_write_it_down() -> None:
    """B29: the words of a report, without the braces of the key."""
    text = "RendezvousKey global_devices=[0,1,2,3], num_local_participants=4, kind cross_replica, op_id=534"
    lines = (collective("a", "all-reduce", "{{0,1,2,3}}"), collective("b", "all-reduce", "{{0,1,2,3}}", 534))
    assert names(explain_log(text, [module(*lines, header="replica_count=4")])) == ["a"]


def test_an_id_of_which_the_kind_is_not_said() -> None:
    """It may be a channel or a number; where it is nothing at all and nothing else is said, nothing is found."""
    assert names(explain_log("global_devices=[0,1], op_id=3", [module(*STEP)])) == ["ar.3"]
    assert names(explain_log("first call to collective operation 2; run_id=1", [module(*STEP)])) == [
        "ag.2",
    ]
    answer = explain_log("first call to collective operation 99; run_id=1", [module(*STEP)])
    assert (answer.found, answer.candidates) == (False, [])
    assert notes(answer) == "op_id 99 is no channel, no module and no instruction here"


def test_b29_an_id_that_is_in_the_dump() -> None:
    """B29: where an instruction bears the number it is that one; others with the same group are not listed."""
    lines = (collective(name, "all-reduce", "{{0,1,2,3}}") for name in ("all-reduce.533", "all-reduce.534"))
    answer = explain_log(key("0, 1, 2, 3", "cross_replica", 534), [module(*lines, header="replica_count=4")])
    assert names(answer) == ["all-reduce.534"]
    assert notes(answer) == ""


def test_b29_an_id_that_is_the_number_of_a_dumped_module() -> None:
    """B29: without a channel XLA prints the module's number, which stands in the names of dumps."""
    modules = [module(collective("a", "all-reduce", "{{0,1}}"), header="replica_count=2", name=name) for name in "xy"]
    modules[0].path, modules[1].path = "d/module_0533.x.after_optimizations.txt", "d/module_0534.y.txt"
    answer = explain_log(key("0,1", "cross_replica", 534), modules)
    assert [(each.module, each.path) for each in answer.candidates] == [("y", "d/module_0534.y.txt")]


def test_b29_nothing_fits() -> None:
    """B29: devices that no group has are not found."""
    program = module(collective("a", "all-reduce", "{{0,1},{2,3}}"), header="replica_count=4")
    answer = explain_log(key("0,1,2,3", "cross_replica", 534), [program])
    assert (answer.found, answer.candidates) == (False, [])


def test_b31_a_name_of_the_schedule() -> None:
    """B31: the name in a trace is the scheduling_name of an instruction that is called otherwise."""
    program = module(
        collective("rs.4", "reduce-scatter", "[4,2]<=[8]", 1, 'scheduling_name="reduce-scatter.12"'),
        collective("rs.5", "reduce-scatter", "[4,2]<=[8]", 2, 'scheduling_name="reduce-scatter.13"'),
    )
    answer = explain_log("2.1 ms  reduce-scatter.12  stream 3", [program], "x=4,y=2")
    assert [(each.name, each.axes, each.why) for each in answer.candidates] == [
        ("rs.4", ["y"], "its scheduling_name is reduce-scatter.12")
    ]
    assert answer.candidates[0].peers == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_b31_ambiguous_names_are_all_listed() -> None:
    """B31: one instruction bears the name and another is scheduled under it: both are listed."""
    program = module(
        collective("reduce-scatter.12", "reduce-scatter", "[4,2]<=[8]", 1, 'scheduling_name="other.1"'),
        collective("rs.5", "reduce-scatter", "[4,2]<=[8]", 2, 'scheduling_name="reduce-scatter.12"'),
    )
    answer = explain_log("hlo_op=reduce-scatter.12", [program])
    assert [each.why for each in answer.candidates] == [
        "its name is reduce-scatter.12",
        "its scheduling_name is reduce-scatter.12",
    ]


def test_b31_a_name_that_is_nowhere() -> None:
    """B31: a name like a collective's that no instruction has is not found, and that is said."""
    answer = explain_log("reduce-scatter.12 took 3 ms", [module(*STEP)])
    assert (answer.found, answer.candidates) == (False, [])
    assert notes(answer) == "no collective is called reduce-scatter.12"


def test_b12_a_rank_without_a_group() -> None:
    """B12: "does not have myself" is about the collective whose groups leave this rank out."""
    program = module(
        collective("a", "all-reduce", "{{0}}", 2),
        collective("b", "all-reduce", "{{0,1,2,3}}", 3),
        header="num_partitions=4",
    )
    answer = explain_log("NRT: replica groups (0/1) does not have myself 2", [program], kinds=LOG_MESSAGES)
    assert [(each.name, each.why) for each in answer.candidates] == [("a", "rank 2 is in none of its groups")]
    assert answer.messages[0].means is not None
    assert names(explain_log("does not have myself 0", [program], kinds=LOG_MESSAGES)) == []
    without = explain_log("... does not have myself", [program], kinds=LOG_MESSAGES)
    assert [each.why for each in without.candidates] == ["its groups leave out ranks 1, 2, 3"]


def test_b13_a_topology_that_trn1_does_not_run() -> None:
    """B13: every collective of a program for 4 devices, none of one for 8."""
    line = collective("a", "all-reduce", "{{0,1,2,3}}", 2)
    answer = explain_log("Unsupported topology", [module(line, header="num_partitions=4")], kinds=LOG_MESSAGES)
    assert names(answer) == ["a"]
    assert "trn1 runs 1, 2, 8, 16 cores or a multiple of 32" in answer.candidates[0].why
    assert not explain_log("Unsupported topology", [module(line)], kinds=LOG_MESSAGES).found


# --- rendezvous and cliques -----------------------------------------------------------------------------------------


def test_devices_and_channel_must_both_fit() -> None:
    """A collective over these devices with another channel is no answer where one has both."""
    answer = explain_log(key("0,1,2,3", op_id=1), [module(*STEP, collective("o", "all-reduce", "[2,4]<=[8]", 9))])
    assert [(each.name, each.match) for each in answer.candidates] == [("ar.1", "full")]


def test_another_channel_is_said_and_not_found() -> None:
    """Where nothing has the channel, what runs over the devices is listed as partial, and found is false."""
    answer = explain_log(key("0,1,2,3", op_id=77), [module(*STEP)])
    assert not answer.found
    assert names(answer, "partial") == ["ar.1"]
    assert answer.candidates[0].why == "{0,1,2,3} is a group of it; its channel is 1, not 77"
    assert notes(answer) == "no collective has channel 77"


def test_all_candidates_where_several_fit() -> None:
    """Without an id all collectives over the devices are listed, in row order."""
    lines = (collective(f"ar.{number}", "all-reduce", "[2,4]<=[8]", number) for number in (1, 2, 3))
    answer = explain_log(key("4,5,6,7"), [module(*lines)], "data=2,model=4")
    assert names(answer, "full") == ["ar.1", "ar.2", "ar.3"]
    assert {tuple(each.peers or ()) for each in answer.candidates} == {(4, 5, 6, 7)}


def test_the_mode_of_the_ids_counts() -> None:
    """Replica ids are global ids times the partitions; as they are written they would name other devices."""
    program = module(collective("a", "all-reduce", "{{0,1},{2,3}}"), header="replica_count=4, num_partitions=2")
    assert names(explain_log(key("1,3", "cross_replica"), [program])) == ["a"]
    assert names(explain_log(key("0,1", "cross_replica"), [program])) == []


def test_the_order_of_devices_does_not_count() -> None:
    """A key sorts its devices; a group may not."""
    answer = explain_log(clique("0,3"), [module(collective("a", "all-gather", "{{3,0},{1,2},{4,5},{6,7}}", 1))])
    assert [each.peers for each in answer.candidates] == [[3, 0]]


@pytest.mark.parametrize("rest", ["; stream=0", "; is_p2p=0; groups=[]; root device=-1; incarnations=[5, 6]", ""])
def test_cliques_of_all_ages(rest: str) -> None:
    """Old keys end with a stream, new ones with much more."""
    assert names(explain_log(clique("1,5", rest), [module(*STEP)])) == ["ag.2"]


def test_groups_of_a_clique_must_fit_too() -> None:
    """A clique that names all its groups is about collectives with these groups alone."""
    lines = (collective("a", "all-reduce", "[4,2]<=[8]", 1), collective("b", "all-reduce", "{{0,1},{2,3,4,5,6,7}}", 2))
    rest = "; is_p2p=0; groups=[[0,1],[2,3],[4,5],[6,7]]; root_device=-1"
    assert names(explain_log(clique("0,1", rest), [module(*lines)])) == ["a"]
    assert names(explain_log(clique("0,1"), [module(*lines)])) == ["a", "b"]


def test_devices_outside_of_the_module() -> None:
    """A device that the module does not have is named."""
    answer = explain_log(clique("0,9"), [module(*STEP)])
    assert not answer.found
    assert notes(answer) == "device 9 is none of the module's 8 devices"


def test_a_compact_list_of_many_devices() -> None:
    """[0...4095] are 4,096 devices; they are found among 10^5 and not listed beyond the limit."""
    program = module(collective("a", "all-reduce", "[32,4096]<=[131072]", 1), header="num_partitions=131072")
    answer = explain_log(clique("4096...8191"), [program])
    assert [(each.name, len(each.peers or ())) for each in answer.candidates] == [("a", 4096)]
    wide = module(collective("a", "all-reduce", "[1,131072]<=[131072]", 1), header="num_partitions=131072")
    listed = ",".join(map(str, range(131072)))
    assert [(each.name, each.peers) for each in explain_log(clique(listed), [wide]).candidates] == [("a", None)]
    assert len(explain_log(clique(listed), [wide], full=True).candidates[0].peers or ()) == 131072


def test_permutes_fit_by_all_devices_by_what_pairs_connect_and_by_one_pair() -> None:
    """Back ends make the clique of a permute in different ways; the answer says which."""
    program = module(collective("cp", "collective-permute", "{{0,1},{1,2},{4,5}}", 1))
    reasons = {
        "0...7": "it runs on all devices, and these are all",
        "0,1,2": "its pairs connect {0,1,2}",
        "1,2": "{1,2} is a pair of it",
        "0,1,2,4,5": "its pairs name these devices",
    }
    for devices, why in reasons.items():
        answer = explain_log(key(devices, op_id=1), [program])
        assert [each.why for each in answer.candidates] == [f"{why}; its channel is 1"]
    assert names(explain_log(key("0,2", op_id=1), [program])) == []


def test_without_counts_ids_are_compared_as_written() -> None:
    """Nobody states the counts: what fits as it is written is uncertain, and what does not is said to be so."""
    program = module(collective("a", "all-reduce", "{{0,1},{2,3}}"), header="")
    (candidate,) = explain_log(key("2,3", "cross_replica"), [program]).candidates
    assert (candidate.match, candidate.why) == (
        "unknown",
        "{2,3} is a group of it; it has no channel; ids as written, for nobody states the counts",
    )
    assert "ids were compared as they are written" in notes(explain_log(key("0,2", "cross_replica"), [program]))


def test_who_cannot_be_told_is_no_no() -> None:
    """A collective of all devices, nobody knows how many, can be meant."""
    program = module(collective("a", "all-reduce", "{}"), header="")
    answer = explain_log(key("0,1", "cross_replica"), [program])
    assert [(each.match, each.peers, each.axes) for each in answer.candidates] == [("unknown", None, None)]
    assert "who takes part is not known" in answer.candidates[0].why


def test_some_devices_of_an_uneven_group_are_no_group() -> None:
    """Where groups differ in size, a part of one does not fit, and the whole of it does."""
    program = module(collective("a", "all-reduce", "{{0,1},{2,3,4,5,6,7}}", 1))
    assert names(explain_log(clique("2,3"), [program])) == []
    assert [each.peers for each in explain_log(clique("7,6,5,4,3,2"), [program]).candidates] == [[2, 3, 4, 5, 6, 7]]


def test_overlapping_groups() -> None:
    """A module that is wrong can have a device in several groups: each is tried."""
    answer = explain_log(clique("0,2"), [module(collective("a", "all-reduce", "{{0,1},{0,2}}", 1))])
    assert [each.peers for each in answer.candidates] == [[0, 2]]


# --- other messages -------------------------------------------------------------------------------------------------


def test_ranks_of_a_communicator() -> None:
    """A library that says how many ranks there are can mean every group of so many."""
    answer = explain_log("h1:9 NCCL WARN comm 0x55 rank 1 nranks 2 opCount 3f: timeout", [module(*STEP)])
    assert [(each.name, each.why) for each in answer.candidates] == [
        ("ag.2", "groups of it have 2 devices"),
        ("ar.3", "groups of it have 2 devices"),
    ]
    assert names(explain_log("InitCommunicator: rank 3 of 8", [module(*STEP)])) == []


def test_expected_threads() -> None:
    """Threads of a process may be a part of a group: smaller groups are out, larger ones uncertain."""
    text = "Expected 4 threads to join the rendezvous, but not all of them arrived on time"
    lines = (*STEP, collective("all.4", "all-reduce", "[1,8]<=[8]", 4))
    answer = explain_log(text, [module(*lines)])
    assert [(each.name, each.match) for each in answer.candidates] == [("ar.1", "full"), ("all.4", "unknown")]


@pytest.mark.parametrize("word", ["op_kind=all_reduce", "kind=kAllReduce", "op=AllReduceStart", "opcode: all-reduce"])
def test_operations_in_any_spelling(word: str) -> None:
    """What a message says of the operation must be true of the collective."""
    lines = (collective("ar", "all-reduce", "[4,2]<=[8]", 1), collective("ag", "all-gather", "[4,2]<=[8]", 2))
    assert names(explain_log(f"{word} {key('0,1')}", [module(*lines)])) == ["ar"]


def test_a_channel_alone() -> None:
    """A channel in an error about a collective is enough; one of something else is no message."""
    answer = explain_log("Collective operation timed out: channel_id=2", [module(*STEP)])
    assert [(each.name, each.why) for each in answer.candidates] == [("ag.2", "its channel is 2")]
    assert not explain_log("opened channel_id=2 of the coordinator", [module(*STEP)]).messages


def test_a_hang_that_says_nothing_can_be_anything() -> None:
    """All collectives are candidates, each saying why."""
    answer = explain_log("Collective operation timed out", [module(*STEP)])
    assert names(answer) == ["ar.1", "ag.2", "ar.3"]
    assert {each.why for each in answer.candidates} == {"the message does not say which collective it is about"}


def test_names_of_metadata_and_modules() -> None:
    """op_name is that of the metadata; hlo_module picks the module."""
    line = collective("ar.9", "all-reduce", "[4,2]<=[8]", 1, 'op_name="jit(f)/psum"')
    modules = [module(line, name=name) for name in ("jit_f", "jit_g")]
    answer = explain_log('failed: op_name="jit(f)/psum"', modules)
    assert [each.module for each in answer.candidates] == ["jit_f", "jit_g"]
    answer = explain_log("#name=ar.9,hlo_op=ar.9,hlo_module=jit_g#", modules)
    assert [(each.module, each.name) for each in answer.candidates] == [("jit_g", "ar.9")]
    assert "no module is called jit_h" in notes(explain_log("hlo_op=ar.9,hlo_module=jit_h", modules))


def test_done_and_wrapped_names_lead_to_the_start() -> None:
    """A trace names the done, or the instruction inside the wrapper; the row is the start."""
    before = """
wrapped {
  q = f32[16] parameter(0)
  ROOT reduce-scatter.77 = f32[8] reduce-scatter(q), channel_id=3, replica_groups=[4,2]<=[8], dimensions={0}, use_global_device_ids=true, to_apply=add
}
"""
    lines = (
        "all-gather-start.1 = (f32[16], f32[32]) all-gather-start(p), channel_id=1, replica_groups=[4,2]<=[8], dimensions={0}, use_global_device_ids=true",
        "all-gather-done.1 = f32[32] all-gather-done(all-gather-start.1)",
        "s.1 = ((f32[16]), f32[8]) async-start(p), calls=wrapped",
        "d.1 = f32[8] async-done(s.1), calls=wrapped",
    )
    program = module(*lines, before=before)
    answer = explain_log("waiting in all-gather-done.1", [program])
    assert [(each.name, each.why) for each in answer.candidates] == [
        ("all-gather-start.1", "all-gather-done.1 belongs to it")
    ]
    assert names(explain_log("hlo_op: reduce-scatter.77", [program])) == ["s.1"]


def test_rendezvous_with_the_host() -> None:
    """The rendezvous of a transfer to the host names it."""
    program = module(
        "t = token[] after-all()",
        'h = (f32[16], u32[], token[]) send(p, t), channel_id=9, is_host_transfer=true, frontend_attributes={_xla_host_transfer_rendezvous="all-reduce.12_9"}',
    )
    assert names(explain_log("rendezvous all-reduce.12_9 not joined", [program])) == ["h"]


def test_the_silent_rank() -> None:
    """Where most ranks of a clique are in the log, those that are not are named with their devices."""
    log = "\n".join(f"acquire clique for rank {rank}; clique=devices=[4,5,6,7]; stream=0" for rank in (0, 1, 3))
    answer = explain_log(log, [module(*STEP)])
    (message,) = answer.messages
    assert (message.count, message.ranks) == (3, [0, 1, 3])
    assert message.notes == ["the log names 3 ranks of 4; it does not name 2 (device 6)"]


NEURON = {
    "Empty replica_groups found": ["empty"],
    "Inconsistent worker count across topologies: 2 vs 99. Possible MPMD": ["two", "a2a"],
    "alltoall cannot be supported without Mesh algorithm": ["a2a"],
    "Failed to parse replica group generated from source_target_pairs": ["cp"],
    "Global communicator was not created": ["two", "empty", "a2a", "cp", "cb"],
    "Unhandled Collective instruction": ["cb"],
    "NEFF does not have CC op": [],
    "Invalid group id": [],
    "Empty src_target_pairs found": [],
    "Send and Recv must have channel_id": [],
}


@pytest.mark.parametrize("text", NEURON)
def test_messages_of_neuron(text: str) -> None:
    """Each is about the collectives that its check refuses."""
    program = module(
        collective("two", "all-reduce", "[4,2]<=[8]", 1),
        collective("empty", "all-reduce", "{}"),
        collective("a2a", "all-to-all", "[4,2]<=[8]", 3) + ", dimensions={0}",
        collective("cp", "collective-permute", "{{0,1}}", 4),
        collective("cb", "collective-broadcast", "{{0,1,2,3,4,5,6,7}}", 5),
    )
    answer = explain_log(f"[ERROR] {text}", [program], kinds=LOG_MESSAGES)
    assert names(answer) == NEURON[text]
    assert (len(answer.messages), answer.found) == (1, bool(NEURON[text]))
