"""What messages of a log say that does not agree: with the module, with itself, or with what can be read."""

from __future__ import annotations

import pytest

from commlens.analysis import explain_log
from commlens.analysis.logs import explaining
from commlens.neuron import LOG_MESSAGES
from logs import STEP, collective, key, module, names, notes

COLUMNS = "{{0,4},{1,5},{2,6},{3,7}}"
CLIQUE = "acquire communicators for rank 0; clique=CliqueKey{{devices=[0,4]; groups={}}}"


# --- groups ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["", "` of 40 seconds", "; is_p2p=0"])
def test_groups_that_contradict_the_module(end: str) -> None:
    """The devices are a group of it and the groups of the message are not its own: partial, and why."""
    program = module(collective("all-reduce.7", "all-reduce", COLUMNS, 1))
    answer = explain_log(CLIQUE.format("[[0,4],[1,6],[2,5],[3,7]]") + end, [program])
    assert answer.messages[0].said.groups == [[0, 4], [1, 6], [2, 5], [3, 7]]
    assert (answer.found, names(answer, "partial")) == (False, ["all-reduce.7"])
    assert (
        answer.candidates[0].why == "{0,4} is a group of it; its groups are not those of the message: {1,5} is not one"
    )


@pytest.mark.parametrize("end", ["", "` of 40 seconds", "; is_p2p=0"])
def test_groups_that_agree(end: str) -> None:
    """The same groups in any order, whatever comes behind them."""
    program = module(collective("all-reduce.7", "all-reduce", COLUMNS, 1))
    answer = explain_log(CLIQUE.format("[[3,7],[0,4],[5,1],[2,6]]") + end, [program])
    assert (answer.found, names(answer, "full")) == (True, ["all-reduce.7"])


@pytest.mark.parametrize("groups", ["[[0,4],[1,5],[2,", "[[0,4],[1;x],[2,6],[3,7]]", "[0,4],[1,5]", "[[0,4] [1..5}"])
def test_groups_that_cannot_be_read(groups: str) -> None:
    """The devices fit and the groups cannot be told: unknown, never a plain yes, and it is said."""
    program = module(collective("all-reduce.7", "all-reduce", COLUMNS, 1))
    answer = explain_log(CLIQUE.format(groups), [program])
    assert [(each.name, each.match) for each in answer.candidates] == [("all-reduce.7", "unknown")]
    assert "its groups cannot be read" in notes(answer)


def test_groups_without_the_devices() -> None:
    """A message whose devices are none of its own groups contradicts itself."""
    answer = explain_log(CLIQUE.format("[[0,1],[2,3]]"), [module(collective("a", "all-reduce", COLUMNS, 1))])
    assert "its devices are none of its own groups" in notes(answer)
    assert names(answer, "partial") == ["a"]


def test_empty_groups_say_nothing() -> None:
    """``groups=[]`` is what XLA prints where there is nothing to say."""
    answer = explain_log(CLIQUE.format("[]"), [module(collective("a", "all-reduce", COLUMNS, 1))])
    assert (names(answer, "full"), notes(answer)) == (["a"], "")


def test_more_local_participants_than_devices() -> None:
    """Those of one process are some of the devices; more than these there cannot be."""
    for number, said in ((2, ""), (4, "it names 4 local participants and 2 devices, of which they are a part")):
        text = f"RendezvousKey{{global_devices=[1, 5], num_local_participants={number}, op_id=1}}"
        answer = explain_log(text, [module(collective("a", "all-reduce", COLUMNS, 1))])
        assert (names(answer), notes(answer)) == (["a"], said)
        assert answer.messages[0].said.num_local_participants == number


# --- channels -------------------------------------------------------------------------------------------------------

CHANNELS = (
    *STEP,
    collective("ar.12", "all-reduce", "[4,2]<=[8]", 12),
)


@pytest.mark.parametrize(
    "text",
    [
        "ERROR: all-reduce with channel_id=12 timed out",
        "all-reduce, channel_id=12, hang",
        "AllReduce channel_id=12 timed out",
        "all_reduce failed on channel id 12",
        "kAllReduceStart on channel_id: 12",
    ],
)
def test_an_operation_and_a_channel(text: str) -> None:
    """An error that names an operation in any spelling and a channel is about that one."""
    answer = explain_log(text, [module(*CHANNELS)])
    assert [(each.name, each.why) for each in answer.candidates] == [
        ("ar.12", "its channel is 12; it is an all-reduce")
    ]
    other = explain_log(text.replace("12", "99"), [module(*CHANNELS)])
    assert (len(other.messages), other.found, notes(other)) == (1, False, "no collective has channel 99")


def test_a_channel_of_another_operation() -> None:
    """The channel is there and the operation is another: that is said with its name."""
    answer = explain_log("all-gather failed on channel_id=12", [module(*CHANNELS)])
    assert (answer.found, notes(answer)) == (False, "channel 12 is that of ar.12, an all-reduce, not of an all-gather")


@pytest.mark.parametrize(
    "text",
    [
        "x.1 = f32[16] all-reduce(p), channel_id=12, replica_groups={}",
        "opened channel_id=12 of the coordinator",
        "reduced all channels; channel_id=12",
    ],
)
def test_a_channel_that_is_no_message(text: str) -> None:
    """A line of HLO is no error, and a channel without an operation is one of something else."""
    assert explain_log(text, [module(collective("a", "all-reduce", COLUMNS, 12))]).messages == []


FIRST_CALL = "Termination timeout for `first call to collective operation 12; run_id=3` of 40 seconds exceeded."


def test_the_number_of_a_first_call_is_a_channel() -> None:
    """Where the thread count does not fit, the collective is named all the same, as partial."""
    text = f"{FIRST_CALL} Expected 8 threads to join the rendezvous, but not all of them arrived"
    answer = explain_log(text, [module(*CHANNELS)])
    assert (answer.found, names(answer, "partial"), notes(answer)) == (False, ["ar.12"], "")
    assert answer.candidates[0].why == "its groups have 2 devices, not 8; its channel is 12"


def test_why_of_a_first_call() -> None:
    """The message says which collective it is about, and so does the reason."""
    (candidate,) = explain_log(FIRST_CALL, [module(*CHANNELS)]).candidates
    assert (candidate.name, candidate.why) == ("ar.12", "its channel is 12")
    program = module(collective("a.7", "all-reduce", "[4,2]<=[8]"), header="replica_count=8")
    (candidate,) = explain_log(key("0,1", "cross_replica", 7), [program]).candidates
    assert candidate.why == "{0,1} is a group of it; it has no channel; its name ends in 7"


# --- names ----------------------------------------------------------------------------------------------------------

HALVES = (
    "ags.1 = (f32[16], f32[32]) all-gather-start(p), channel_id=1, replica_groups=[4,2]<=[8], dimensions={0}, "
    "use_global_device_ids=true",
    "agd.1 = f32[32] all-gather-done(ags.1)",
    "rs.4 = ((f32[16]), f32[8]) reduce-scatter-start(p), channel_id=2, replica_groups=[4,2]<=[8], dimensions={0}, "
    'use_global_device_ids=true, to_apply=add, metadata={scheduling_name="reduce-scatter.12"}',
    'rsd.4 = f32[8] reduce-scatter-done(rs.4), metadata={scheduling_name="reduce-scatter-done.12"}',
    "cps = (f32[16], f32[16], u32[], u32[]) collective-permute-start(p), channel_id=3, source_target_pairs={{0,1}}",
    "cpd = f32[16] collective-permute-done(cps)",
)


@pytest.mark.parametrize(
    ("text", "name", "why"),
    [
        ("hlo_op=agd.1", "ags.1", "agd.1 belongs to it"),
        ("waiting for %agd.1", "ags.1", "agd.1 belongs to it"),
        ("stuck in agd.1 since 12:00", "ags.1", "agd.1 belongs to it"),
        ("hlo_op=cpd", "cps", "cpd belongs to it"),
        ("hlo_op=rsd.4", "rs.4", "rsd.4 belongs to it"),
        (
            "trace: reduce-scatter-done.12",
            "rs.4",
            "the scheduling_name of rsd.4, which belongs to it, is reduce-scatter-done.12",
        ),
    ],
)
def test_names_of_done_instructions(text: str, name: str, why: str) -> None:
    """A done, whatever it is called, leads to the row of its start."""
    assert [(each.name, each.why) for each in explain_log(text, [module(*HALVES)]).candidates] == [(name, why)]


def test_a_done_in_running_text_is_no_name() -> None:
    """Without a mark or a number behind it a word is no name."""
    assert explain_log("cpd is done", [module(*HALVES)]).messages == []


# --- the limits of an answer ----------------------------------------------------------------------------------------


def test_the_end_of_a_log_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more messages than are answered the first and the last are, for a hang is at the end."""
    monkeypatch.setattr(explaining, "MOST_MESSAGES", 20)
    log = "".join(f"all-gather.{number} took 3 ms\n" for number in range(100)) + "stuck in ar.12\n"
    answer = explain_log(log, [module(*CHANNELS)])
    assert answer.found is True
    assert [message.line for message in answer.messages] == [*range(1, 11), *range(92, 102)]
    assert answer.notes == [
        "81 of 101 messages were left out: the first 10 and the last 10 different ones are answered"
    ]


def test_what_was_left_out_is_not_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where some messages were not looked at, nothing found is no no."""
    monkeypatch.setattr(explaining, "MOST_MESSAGES", 20)
    log = "".join(f"all-gather.{number} took 3 ms\n" for number in range(100, 200))
    assert explain_log(log, [module(*CHANNELS)]).found is None
    assert explain_log(log[:200], [module(*CHANNELS)]).found is False


def test_a_message_that_comes_again_is_one_of_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was heard early and again at the end is answered once, with the line on which it stood first."""
    monkeypatch.setattr(explaining, "MOST_MESSAGES", 4)
    log = "".join(f"all-gather.{number} is slow\n" for number in (0, 1, 2, 3, 4, 2, 5, 2))
    answer = explain_log(log, [module(*CHANNELS)])
    assert [(message.line, message.count) for message in answer.messages] == [(1, 1), (2, 1), (6, 2), (7, 1)]


# --- numbers that are too large ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["op_id=", "channel_id=", "first call to collective operation "])
def test_an_id_with_too_many_digits(word: str) -> None:
    """No other number is made of it: that it cannot be read is said."""
    answer = explain_log(f"RendezvousKey{{global_devices=[0,1], {word}{'9' * 23}}}", [module(*STEP)])
    (message,) = answer.messages
    assert (message.said.op_id, message.said.channel_id, answer.found) == (None, None, False)
    assert notes(answer) == f"its id {'9' * 23} cannot be read: expected at most 18 digits"


def test_more_devices_than_are_read() -> None:
    """A range beyond the limit is well written: the limit is named."""
    answer = explain_log(key("0...99999999"), [module(*STEP)])
    assert notes(answer) == "its list of devices cannot be read: it has 100,000,000 ids, and at most 1,048,576 are read"


# --- other messages -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["init comm nRanks=2 done", "rank 1 nranks 2", "comm 0x1 rank 1 nRanks 2 - Init"])
def test_ranks_without_the_name_of_a_library(text: str) -> None:
    """``nranks`` is a word of such a library by itself, in any spelling."""
    answer = explain_log(text, [module(*STEP)])
    assert [(each.kind, names(answer)) for each in answer.messages] == [("communicator", ["ag.2", "ar.3"])]


def test_an_error_of_the_neuron_compiler() -> None:
    """NCC_IARE001 is that of the pass which drops collectives over groups of one device: these are named."""
    program = module(*STEP, collective("one", "all-reduce", "[8,1]<=[8]", 9))
    answer = explain_log("[ERROR] [NCC_IARE001] internal error", [program], kinds=LOG_MESSAGES)
    (message,) = answer.messages
    assert (message.kind, message.means is not None, names(answer)) == ("neuron-iare001", True, ["one"])
    assert not explain_log("[NCC_IARE001]", [module(*STEP)], kinds=LOG_MESSAGES).found
    assert not explain_log("[NCC_IARE0012]", [program], kinds=LOG_MESSAGES).messages
