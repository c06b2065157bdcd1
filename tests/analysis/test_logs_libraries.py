"""What libraries print of a collective: watchdogs of PyTorch, debug lines of NCCL, participants on CPUs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.analysis import explain_log
from commlens.hlo import load
from logs import STEP, collective, key, module, names, notes

NOT_STATED = 2**64 - 1


def watchdog(op_type: str, numel_in: int | None = None, numel_out: int | None = None, *, rank: int = 3) -> str:
    """Return the line of a watchdog as PyTorch prints it."""
    numbers = "" if numel_in is None else f"NumelIn={numel_in}, NumelOut={numel_out}, "
    return (
        f"[rank{rank}]:[E1111 10:10:10.123456789 ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught collective "
        f"operation timeout: WorkNCCL(SeqNum=12, OpType={op_type}, {numbers}Timeout(ms)=600000) ran for 600100 "
        "milliseconds before timing out."
    )


ALL = module(
    collective("ar", "all-reduce", "[2,4]<=[8]", 1),
    "two = (f32[16], f32[4,2]) all-reduce(p, b), channel_id=2, replica_groups=[2,4]<=[8], use_global_device_ids=true, to_apply=add",
    "b = f32[4,2] bitcast(q)",
    "q = f32[8] parameter(1)",
    collective("ag", "all-gather", "[4,2]<=[8]", 3),
    collective("rs", "reduce-scatter", "[4,2]<=[8]", 4),
    collective("a2a", "all-to-all", "[4,2]<=[8]", 5) + ", dimensions={0}",
    "tuple = (f32[8], f32[8]) all-to-all(q, q), channel_id=6, replica_groups=[4,2]<=[8]",
    collective("cb", "collective-broadcast", "[1,8]<=[8]", 7),
    collective("cp", "collective-permute", "{{0,1}}", 8),
)


# --- watchdogs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op_type", "numel_in", "numel_out", "expected"),
    [
        ("ALLREDUCE", 16, 16, ["ar"]),
        ("ALLREDUCE", 24, 24, ["two"]),
        ("ALLREDUCE_COALESCED", 24, 24, ["two"]),
        ("ALLGATHER", 16, 32, ["ag"]),
        ("_ALLGATHER_BASE", 16, 32, ["ag"]),
        ("ALLGATHER_COALESCED", 16, 32, ["ag"]),
        ("REDUCE_SCATTER", 16, 8, ["rs"]),
        ("_REDUCE_SCATTER_BASE", 16, 8, ["rs"]),
        ("ALLTOALL", 16, 16, ["a2a", "tuple"]),
        ("ALLTOALL_BASE", 16, 16, ["a2a", "tuple"]),
        ("BROADCAST", 16, 16, ["cb"]),
        ("ALLREDUCE", 17, 17, []),
        ("ALLGATHER", 32, 16, []),
        ("ALLGATHER", 16, 64, []),
        ("REDUCE_SCATTER", 8, 16, []),
        ("BROADCAST", 8, 8, []),
        ("SEND", 16, 16, []),
        ("RECV", 16, 16, []),
    ],
)
def test_the_operation_and_its_elements_must_both_fit(
    op_type: str, numel_in: int, numel_out: int, expected: list[str]
) -> None:
    """Operands hold what a rank puts in, results what it gets out; all that fit are listed, and nothing else is."""
    answer = explain_log(watchdog(op_type, numel_in, numel_out), [ALL])
    (message,) = answer.messages
    assert (message.kind, message.ranks, message.said.numbers) == ("watchdog", [3], {"seq_num": 12})
    assert (names(answer, "full"), answer.found) == (expected, bool(expected))


def test_why_it_fits() -> None:
    """The elements and the operation are said; axes and peers are those of all its groups."""
    (candidate,) = explain_log(watchdog("ALLGATHER", 16, 32), [ALL], "data=4,model=2").candidates
    assert candidate.why == "its operands have 16 elements, its results have 32 elements; it is an all-gather"
    assert (candidate.axes, candidate.peers) == (["model"], [[0, 1], [2, 3], [4, 5], [6, 7]])


def test_one_of_several_arrays_is_no_plain_yes() -> None:
    """A library that is called for each array counts one; which way it was is not said."""
    answer = explain_log(watchdog("ALLREDUCE", 8, 8), [ALL])
    assert [(each.name, each.match) for each in answer.candidates] == [("two", "unknown")]
    why = "one of its 2 operands has 8 elements, one of its 2 results has 8 elements; it is an all-reduce"
    assert answer.candidates[0].why == why


@pytest.mark.parametrize("shape", ["c64[16]", "c128[8]", "s4[32]"])
def test_elements_that_count_otherwise(shape: str) -> None:
    """Complex numbers may count twice, and those below a byte may be packed: neither yes nor no."""
    program = module(
        f"g = {shape} collective-broadcast(x), channel_id=1, replica_groups={{{{0,1}}}}", f"x = {shape} parameter(1)"
    )
    for number in (16, 8, 99):
        answer = explain_log(watchdog("BROADCAST", number, number), [program])
        assert [(each.name, each.match) for each in answer.candidates] == [("g", "unknown")]


def test_send_and_recv_count_what_they_hand_over() -> None:
    """PyTorch prints one tensor on both sides; a send has operands alone and a recv results alone."""
    program = load(
        "HloModule m, num_partitions=2\n\nENTRY e {\n  p = f32[16] parameter(0)\n  t = token[] after-all()\n"
        "  s = (f32[16], u32[], token[]) send(p, t), channel_id=1\n  r = (f32[16], u32[], token[]) recv(t), channel_id=2\n"
        "  sd = token[] send-done(s), channel_id=1\n  ROOT rd = (f32[16], token[]) recv-done(r), channel_id=2\n}\n"
    )
    for op_type, name in (("SEND", "s"), ("RECV", "r"), ("RECVANYSOURCE", "r")):
        assert names(explain_log(watchdog(op_type, 16, 16), [program]), "full") == [name]
        assert names(explain_log(watchdog(op_type, 15, 15), [program])) == []


def test_nothing_fits_and_why() -> None:
    """No such operation, or none of so many elements."""
    assert notes(explain_log(watchdog("ALLREDUCE", 9, 9), [ALL])) == (
        "no all-reduce has 9 elements in its operands and 9 in its results"
    )
    assert notes(explain_log(watchdog("SEND", 9, 9), [ALL])) == "no collective is a send"
    assert notes(explain_log(watchdog("ALLREDUCE", 9, 9))) == ""


@pytest.mark.parametrize("op_type", ["REDUCE", "GATHER", "SCATTER", "BARRIER", "_ALLREDUCE_SPARSE"])
def test_operations_that_xla_does_not_have(op_type: str) -> None:
    """They are said to have no counterpart, and nothing is listed."""
    answer = explain_log(watchdog(op_type, 16, 16), [ALL])
    assert (answer.found, answer.candidates) == (False, [])
    assert notes(answer) == f"OpType {op_type} has no counterpart in XLA, so no module holds it"


@pytest.mark.parametrize("text", ["OpType=UNKNOWN, ", "OpType=ALLREDUCEALL, ", "OpType=allreduce, ", "", "OpTyp"])
def test_operations_that_cannot_be_told(text: str) -> None:
    """A message of a watchdog without an operation that is known is about nothing in particular."""
    answer = explain_log(f"[Rank 0] WorkNCCL(SeqNum=1, {text}NumelIn=16, NumelOut=16)", [ALL])
    assert (len(answer.messages), answer.candidates) == (1, [])
    assert "is none that is known" in notes(answer) or "its OpType cannot be read" in notes(answer)


def test_several_operations_in_one_can_be_any() -> None:
    """COALESCED names no operation, and its counts are the largest number there is: nothing of it is believed."""
    answer = explain_log(watchdog("COALESCED", NOT_STATED, NOT_STATED), [ALL])
    assert {each.match for each in answer.candidates} == {"unknown"}
    assert names(answer) == [row.name for row in answer.reports[0].collectives]
    assert "which ones, and of how many elements each, it does not say" in notes(answer)


def test_counts_that_are_not_stated() -> None:
    """Then the operation alone is held against the module."""
    for text in (watchdog("ALLREDUCE", NOT_STATED, NOT_STATED), watchdog("ALLREDUCE")):
        answer = explain_log(text, [ALL])
        assert (names(answer, "full"), answer.messages[0].said.elements_in) == (["ar", "two"], None)


def test_a_barrier_is_an_all_reduce_of_one_element() -> None:
    """PyTorch makes its barriers of it, so such a message is no plain yes."""
    program = module(
        "one = f32[] all-reduce(x), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add",
        "x = f32[] parameter(1)",
    )
    for text in (watchdog("ALLREDUCE", 1, 1), "WorkNCCL(OpType=ALLREDUCE, TensorShape=[1], Timeout(ms)=1800000)"):
        answer = explain_log(text, [program])
        assert names(answer, "unknown") == ["one"]
        assert "may be a barrier of PyTorch" in notes(answer)


def test_the_shape_of_older_watchdogs() -> None:
    """It is that of a tensor that comes out; where in and out differ, nothing is made of it."""
    for shape, expected in (("[4, 4]", ["ar"]), ("[16]", ["ar"]), ("[3, 5]", [])):
        answer = explain_log(f"WorkNCCL(SeqNum=3, OpType=ALLREDUCE, TensorShape={shape}, Timeout(ms)=1)", [ALL])
        assert names(answer, "full") == expected
    answer = explain_log("WorkNCCL(SeqNum=3, OpType=_ALLGATHER_BASE, TensorShape=[16], Timeout(ms)=1)", [ALL])
    assert names(answer, "unknown") == ["ag"]
    assert "which of them it does not say" in notes(answer)


@pytest.mark.parametrize(
    "prefix", ["[Rank 5] ", "[PG 0 Rank 5] ", "[PG ID 0 PG GUID 0(default_pg) Rank 5] ", "[Rank 1] later [Rank 5] "]
)
def test_ranks_of_watchdogs(prefix: str) -> None:
    """The rank stands in brackets in front of it, in whichever form."""
    (message,) = explain_log(f"{prefix}Watchdog: WorkNCCL(SeqNum=1, OpType=ALLREDUCE)").messages
    assert message.ranks == [5]


def test_ranks_come_together_and_sequences_stay_apart() -> None:
    """The same work of many ranks is one message; a rank that is at another one is seen by its number."""
    lines = [watchdog("ALLREDUCE", 16, 16, rank=rank) for rank in (0, 1, 2)]
    answer = explain_log("\n".join([*lines, watchdog("ALLREDUCE", 16, 16).replace("SeqNum=12", "SeqNum=11")]), [ALL])
    assert [(each.ranks, each.said.numbers) for each in answer.messages] == [
        ([0, 1, 2], {"seq_num": 12}),
        ([3], {"seq_num": 11}),
    ]


def test_two_works_in_a_record() -> None:
    """Each is a message of its own, with what stands behind it alone."""
    text = "[Rank 1] WorkNCCL(SeqNum=1, OpType=ALLREDUCE) and WorkNCCL(SeqNum=2, OpType=ALLGATHER, NumelIn=16, NumelOut=32)"
    said = [each.said for each in explain_log(text, [ALL]).messages]
    assert [(each.opcode, each.elements_in, each.rank) for each in said] == [
        ("all-reduce", None, 1),
        ("all-gather", 16, 1),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "NetworkCCL(OpType=ALLREDUCE)",
        "WorkNCCLX queue(OpType=ALLREDUCE)",
        "OpType=ALLREDUCE, NumelIn=16, NumelOut=16",
        "[Rank 3] Watchdog thread started",
        "[PG ID 0 PG GUID 0(default_pg) Rank 1] Timeout at NCCL work: 5, last enqueued NCCL work: 5",
        "NCCL INFO AllReduce: 4 Bytes -> Algo 1 proto 2 channel{Lo..Hi}={0..1}",
        "AllReduceParticipantData is a class; element_count=16",
    ],
)
def test_what_is_no_work(text: str) -> None:
    """Words of a watchdog without its work are left alone."""
    assert explain_log(text, [ALL]).messages == []


@given(sizes=st.lists(st.integers(1, 6), min_size=0, max_size=3), data=st.data())
def test_random_shapes_fit_like_the_twin_says(sizes: list[int], data: st.DataObject) -> None:
    """The elements of an array, counted here one by one, fit; other numbers do not."""
    wanted = data.draw(st.sampled_from([math.prod(sizes), math.prod(sizes) + 1, 0, 36]))
    count = 1
    for size in sizes:
        count = sum(count for _ in range(size))
    shape = f"f32[{','.join(map(str, sizes))}]"
    program = module(
        f"g = {shape} collective-broadcast(x), channel_id=1, replica_groups={{{{0,1}}}}", f"x = {shape} parameter(1)"
    )
    assert explain_log(watchdog("BROADCAST", wanted, wanted), [program]).found == (count == wanted)


# --- other libraries ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "count", "expected"),
    [
        ("AllReduce", 16, ["ar"]),
        ("AllReduce", 99, []),
        ("AllGather", 16, []),
        ("Broadcast", 16, []),
    ],
)
def test_debug_lines_of_nccl(operation: str, count: int, expected: list[str]) -> None:
    """They name the operation, the elements of one array and the size of the communicator: all must fit."""
    text = (
        f"h:1:2 [0] NCCL INFO {operation}: opCount 1f sendbuff 0x7f recvbuff 0x8f count {count} datatype 7 op 0 root 0 "
        "comm 0x55 [nranks=4] stream 0x5"
    )
    assert names(explain_log(text, [ALL]), "full") == expected


def test_the_count_of_nccl_is_what_is_sent_or_received() -> None:
    """An AllGather counts what goes in, a ReduceScatter what comes out."""
    line = "NCCL INFO {}: opCount 0 sendbuff 0x7 recvbuff 0x8 count {} datatype 7 op 0 root 0 comm 0x5 [nranks=2]"
    for operation, name, right, wrong in (("AllGather", "ag", 16, 32), ("ReduceScatter", "rs", 8, 16)):
        assert names(explain_log(line.format(operation, right), [ALL])) == [name]
        assert names(explain_log(line.format(operation, wrong), [ALL])) == []


def test_lines_that_differ_in_elements_alone_are_different_messages() -> None:
    """The elements are a fact as any other: equal ones come together, others do not."""
    line = "NCCL INFO AllReduce: opCount {:x} sendbuff 0x7 recvbuff 0x8 count {} datatype 7 comm 0x5 [nranks=4]"
    log = "\n".join(line.format(place, count) for place, count in enumerate((16, 99, 16)))
    answer = explain_log(log, [ALL])
    assert [(each.count, each.said.elements_in, each.found) for each in answer.messages] == [
        (2, 16, True),
        (1, 99, False),
    ]


def test_a_send_of_nccl_is_none_of_hlo() -> None:
    """XLA makes permutes and all-to-alls of sends, so the operation of such a line is not believed."""
    line = "NCCL INFO Send: opCount 0 sendbuff 0x7 recvbuff 0x8 count 16 datatype 7 op 0 root 1 comm 0x5 [nranks=2]"
    answer = explain_log(line, [ALL])
    assert answer.messages[0].said.opcode is None
    assert names(answer, "full") == ["ag", "rs", "a2a", "tuple", "cp"]


def test_participants_on_cpus() -> None:
    """They name the operation and, of an all-reduce, its elements; the key stands there twice and is one message."""
    text = (
        "This thread has been waiting for 5000ms for and may be stuck: participant AllReduceParticipantData{{rank=1, "
        "element_count={}, type=F32, rendezvous_key={}}} waiting for all participants to arrive at rendezvous {}"
    )
    answer = explain_log(text.format(16, key("0,1,2,3", op_id=1), key("0,1,2,3", op_id=1)), [ALL])
    (message,) = answer.messages
    assert (message.count, message.ranks, message.said.opcode, names(answer, "full")) == (2, [1], "all-reduce", ["ar"])
    answer = explain_log(text.format(17, key("0,1,2,3", op_id=1), ""), [ALL])
    assert names(answer, "partial") == ["ar"]
    assert "its operands have 16 elements, not 17" in answer.candidates[0].why
    other = text.replace("AllReduce", "AllGather").format(16, key("0,1", op_id=3), "")
    assert names(explain_log(other, [ALL]), "full") == ["ag"]


def test_a_communicator_that_speaks_of_one_operation() -> None:
    """The only operation in a message about a communicator is its own; of two nobody can tell."""
    assert names(explain_log("InProcessCommunicator rank 1 of 4 waits in all-reduce", [module(*STEP)])) == ["ar.1"]
    text = "InProcessCommunicator rank 1 of 2 waits in all-reduce after all-gather"
    assert names(explain_log(text, [module(*STEP)])) == ["ag.2", "ar.3"]
