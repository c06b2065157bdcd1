"""Other spellings of keys, channels and operations in logs: those that are recognised, and those that are not."""

from __future__ import annotations

import pytest

from commlens.analysis import explain_log
from commlens.neuron import LOG_MESSAGES
from logs import STEP, clique, collective, key, module, names, notes

# --- devices --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Acquire clique devices=[GlobalDeviceId(0),GlobalDeviceId(1)]; stream=0",
        "RendezvousKey{run_id=RunId: 3, global_devices=[GlobalDeviceId(0), GlobalDeviceId(1)], num_local_participants=2}",
        "Termination timeout for `acquire clique; clique=GpuCliqueKey{devices=[0,1]; is_p2p=0; groups=[[GlobalDeviceId(0),"
        "GlobalDeviceId(1)],[2,3],[4,5],[6,7]]; root device=-1; incarnations=[1,2]}` of 40 seconds exceeded",
        "GpuCliqueKey devices=[0,1]; stream=0",
        "CpuCliqueKey: devices=[0,1]",
        "Initialize NCCL communicator for rank #1; #nranks=2; communication_id=0123456789abcdef; devices=[0,1]",
        "communicators of rank 0: devices={1, 0}",
    ],
)
def test_devices_in_any_spelling(text: str) -> None:
    """Numbers and named ids are the same devices, in keys, cliques and communicators."""
    answer = explain_log(text, [module(*STEP)])
    assert [sorted(each.said.devices or ()) for each in answer.messages] == [[0, 1]]
    assert names(answer, "full") == ["ar.3"]


@pytest.mark.parametrize(
    "devices",
    [
        "LocalDeviceId(0),LocalDeviceId(1)",
        "GlobalDeviceId(0",
        "GlobalDeviceId(),1",
        "GlobalDeviceId(x)",
        "GlobalDeviceId(0)1",
    ],
)
def test_ids_of_other_kinds_are_not_read(devices: str) -> None:
    """Ids of a process are none of the whole job, and half of an id is none: nothing is listed for them."""
    answer = explain_log(f"RendezvousKey{{global_devices=[{devices}]}}", [module(*STEP)])
    assert (len(answer.messages), answer.candidates) == (1, [])
    assert "cannot be read" in notes(answer)


@pytest.mark.parametrize(
    "text",
    [
        "clique devices=[cuda:0, cuda:1]",
        "mesh devices=[0,1] of the program",
        "communicator of devices [0,1]",
        "sharding={devices=[2,4]<=[8]} communicator",
        "Barrier timed out. Id: PjRT_Client_Connect::0. # of tasks that reached the barrier: 3/4. Some timed out task "
        "names: /job:jax_worker/replica:0/task:1",
        "DEADLINE_EXCEEDED: Barrier timed out. Id: sync_global_devices:step_12::0",
        "collective_permute source-target pair {0,1} never arrived",
        "#12 xla::gpu::AllReduceStartThunk::RunCollective(xla::gpu::Thunk::ExecuteParams const&) + 0x42",
        "NCCL operation ncclGroupEnd() failed: unhandled system error (run with NCCL_DEBUG=INFO for details)",
        "Gloo AllReduce failed: Read error [127.0.0.1]:1234: Connection reset by peer",
        "execution timeout (30000 ms) on Neuron Device 0 NC 1, model step.neff",
    ],
)
def test_what_names_no_collective(text: str) -> None:
    """Tasks of a job, frames of a stack, and devices of something else are no message."""
    assert explain_log(text, [module(*STEP)], kinds=LOG_MESSAGES).messages == []


# --- channels -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Core halted: all-gather on channel 2",
        "core halted: channel 2, all-gather",
        "all-gather channel=2 hung",
        "AllGather (channel: 2) hung",
        "all_gather-start timed out on channel 2 after 40 s",
        "all-gather on channel id: 2",
        "all-gather channel_id: 2",
    ],
)
def test_channels_in_words(text: str) -> None:
    """With the operation beside it a channel is one of HLO, however it is written."""
    answer = explain_log(text, [module(*STEP)])
    assert [(each.kind, each.said.channel_id, each.said.opcode) for each in answer.messages] == [
        ("channel", 2, "all-gather")
    ]
    assert names(answer, "full") == ["ag.2"]


@pytest.mark.parametrize(
    "text",
    [
        "audio on channel 2",
        "opened channel 2 to the coordinator",
        "dma channel 2 all-gather failed",
        "all-gather over grpc, channel 2 is closed",
        "NCCL INFO Channel 02/0 : 0[0] -> 1[1] via P2P; all-gather",
        "h:1 NCCL INFO all-gather on channel 2",
        "all-gather on channel 2 of 4",
        "all-gather on channel 2/4",
        "all-gather on channel 2 -> 3",
        "all-gather on channel 2a",
        "all-gather on channel 2 and again on channel 3",
        "all-gather on channel 2 or all-reduce",
        "g = f32[4] all-gather(p), channel 2",
        "all-gather on channels 2",
    ],
)
def test_channels_of_something_else(text: str) -> None:
    """Libraries, streams and pictures have channels too; of two channels or operations nobody can tell."""
    assert explain_log(text, [module(*STEP)]).messages == []


def test_the_collective_of_a_channel_with_other_devices_is_named() -> None:
    """The channel is there and its groups are others: that is said, whether or not something has the devices."""
    answer = explain_log(key("0,2", op_id=2), [module(*STEP)])
    assert (answer.candidates, notes(answer)) == ([], "channel 2 is that of ag.2, of which these devices are no group")
    answer = explain_log(key("0,1", op_id=2), [module(*STEP)])
    assert (names(answer, "partial"), notes(answer)) == (
        ["ar.3"],
        "channel 2 is that of ag.2, of which these devices are no group",
    )


# --- operations -----------------------------------------------------------------------------------------------------

SAME_DEVICES = module(
    collective("ar", "all-reduce", "[4,2]<=[8]"), collective("ag", "all-gather", "[4,2]<=[8]"), header="replica_count=8"
)


@pytest.mark.parametrize(
    "words",
    [
        "participant all-reduce ",
        "waiting for `all reduce ",
        "all_reduce ",
        "AllReduceParticipantData{rank=1, rendezvous_key=",
    ],
)
def test_the_operation_of_a_rendezvous(words: str) -> None:
    """What stands right in front of the key is its operation."""
    answer = explain_log(f"stuck: {words}{key('0,1', 'cross_replica')}", [SAME_DEVICES])
    assert (answer.messages[0].said.opcode, names(answer)) == ("all-reduce", ["ar"])


@pytest.mark.parametrize(
    "words", ["after all-reduce, ", "not all reduced ", "all of them ", "all-reduce combiner ran; ", "reduce all "]
)
def test_other_words_in_front_of_a_rendezvous(words: str) -> None:
    """An operation somewhere in the text is not that of the key."""
    answer = explain_log(f"stuck: {words}{key('0,1', 'cross_replica')}", [SAME_DEVICES])
    assert (answer.messages[0].said.opcode, names(answer)) == (None, ["ar", "ag"])


def test_a_hang_that_speaks_of_one_operation() -> None:
    """It can be any collective of that kind; where two are named, any at all."""
    assert names(explain_log("Collective operation timed out: all-gather", [module(*STEP)])) == ["ag.2"]
    text = "Collective operation timed out: all-gather or AllReduce"
    assert names(explain_log(text, [module(*STEP)])) == ["ar.1", "ag.2", "ar.3"]


# --- Neuron ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "numbers"),
    [
        (
            "missing collectives status on Neuron Device 0 NC 1, model x.neff - suspected hang in collectives operation 5 "
            "out of 22",
            "neuron-collectives-hang",
            {"operation": 5, "operations": 22},
        ),
        ("suspected hang in collectives op", "neuron-collectives-hang", None),
        ("nrt_execute failed: NRT_EXEC_HW_ERR_COLLECTIVES (1200)", "neuron-stuck-collective", None),
    ],
)
def test_hangs_of_neuron(text: str, kind: str, numbers: dict[str, int] | None) -> None:
    """Any collective can be the one: the runtime counts those of its own program."""
    answer = explain_log(f"ERROR NRT: {text}", [module(*STEP)], kinds=LOG_MESSAGES)
    assert [(each.kind, each.said.numbers) for each in answer.messages] == [(kind, numbers)]
    assert names(answer) == ["ar.1", "ag.2", "ar.3"]


@pytest.mark.parametrize(
    "text", ["suspected hang", "NRT_EXEC_HW_ERR_COLLECTIVES2", "NRT_EXEC_HW_ERR_NC_UE", "hang in operation 5"]
)
def test_other_errors_of_neuron(text: str) -> None:
    """Codes and words of other faults are no message about a collective."""
    assert explain_log(text, [module(*STEP)], kinds=LOG_MESSAGES).messages == []


# --- a number without a kind ------------------------------------------------------------------------------------------


def test_a_number_that_fits_but_for_its_threads() -> None:
    """What bears the number is named as partial, though others have groups of so many devices."""
    text = "first call to collective operation 2; Expected 4 threads to join the rendezvous"
    answer = explain_log(text, [module(*STEP)])
    assert (answer.found, names(answer, "partial")) == (False, ["ag.2"])


def test_clique_of_a_name_that_is_not_there() -> None:
    """The devices are those of some, the name is that of none."""
    answer = explain_log(f"{clique('0,1')} in all-reduce.99", [module(*STEP)])
    assert (answer.found, names(answer, "partial")) == (False, ["ar.3"])


def test_groups_that_are_not_written_are_not_those_that_are() -> None:
    """Two collectives over the same devices, one of which writes no groups: what is about groups tells them apart."""
    lines = (
        collective("all", "all-reduce", "{{0,1,2,3,4,5,6,7}}"),
        collective("none", "all-reduce", "{}"),
        collective("iota", "all-reduce", "[1,8]<=[8]"),
    )
    for order in (lines, lines[::-1]):
        answer = explain_log(
            "Empty replica_groups found", [module(*order, header="replica_count=8")], kinds=LOG_MESSAGES
        )
        assert names(answer) == ["none"]
