"""Logs: what is no message, the log itself, and twins."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.analysis import explain_log
from commlens.neuron import LOG_MESSAGES
from logs import STEP, collective, key, module, names, notes
from strategies import iota_groups

# --- what is no message ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "step 12: loss 1.234, ar1.2 tokens, devices=[0,1]",
        "sharding={devices=[2,4]<=[8]} clique",
        "sharding={devices=[2,2]0,1,2,3} for the rendezvous",
        "I0000 rendezvous.cc:31] all is well with all-reduce and all-gather",
        "losses: [0, 1, 2, 3] of ranks [0, 1]",
        "Using 8 threads; Expected 8 threads",
        "add.4 fusion.12 v1.2 p",
        '%add.5 = f32[8] add(%x.1, %y.1), metadata={op_name="jit(f)/add"}',
        "%fusion.3 = f32[] fusion(%param.1)",
        "Channel 00/0 : 0[0] -> 1[1] via P2P",
        "\x00\xff\x1b[0m",
        "",
    ],
)
def test_what_is_no_message(text: str) -> None:
    """Numbers that look like devices, shardings, and words that are not names are left alone."""
    answer = explain_log(text, [module(*STEP, collective("p1", "all-reduce", "[4,2]<=[8]", 9))], kinds=LOG_MESSAGES)
    assert (answer.messages, answer.found) == ([], False)


def test_a_short_name_counts_where_it_is_marked() -> None:
    """``ar`` in running text is no name; with a percent sign, or as an hlo_op, it is."""
    program = module(collective("ar", "all-reduce", "[4,2]<=[8]", 1))
    assert explain_log("ar is slow", [program]).messages == []
    assert names(explain_log("%ar is slow", [program])) == names(explain_log("hlo_op=ar", [program])) == ["ar"]


@pytest.mark.parametrize("devices", ["", "0, x", "3...1", "0 1", "0...99999999999"])
def test_a_list_that_cannot_be_read(devices: str) -> None:
    """The message is recognised, its devices are not guessed."""
    answer = explain_log(key(devices), [module(*STEP)])
    assert (len(answer.messages), answer.candidates) == (1, [])
    assert "cannot be read" in notes(answer)


# --- the log itself -------------------------------------------------------------------------------------------------


def test_lines_are_counted_and_equal_messages_are_one() -> None:
    """Run ids and prefixes do not make a message another."""
    log = "".join(
        f"noise\n[host{run}]: W0000 00:00:17{run} r.cc:3] {key('0,1', op_id=3, run=run)}\r\n" for run in range(5)
    )
    answer = explain_log(f"\n{log}{key('0,4', op_id=2)}", [module(*STEP)])
    assert [(message.line, message.count) for message in answer.messages] == [(3, 5), (12, 1)]
    assert names(answer) == ["ar.3", "ag.2"]


def test_messages_broken_over_lines() -> None:
    """A key goes on until its bracket is closed, on the lines of its own host."""
    text = key("4, 5, 6, 7", op_id=1)
    place, other = text.index("5,"), text.index("collective")
    log = (
        f"[host1]: stuck: {text[:place]}\n[host2]: step 7\n[host1]: {text[place:other]}\n[host2]: stuck: RendezvousKey\n"
        f"[host1]: {text[other:]}\n[host2]: {key('0,1', op_id=3).removeprefix('RendezvousKey')}\n"
    )
    answer = explain_log(log, [module(*STEP)])
    assert [(message.line, message.said.devices) for message in answer.messages] == [(1, [4, 5, 6, 7]), (4, [0, 1])]
    assert names(answer) == ["ar.1", "ar.3"]


def test_a_message_that_is_cut_is_said_to_be() -> None:
    """The log ends, or the next record begins, inside a list: nothing is guessed from its first half."""
    cut = key("4, 5, 6, 7")[:52]
    for log in (cut, f"{cut}\nW0000 00:00:1 x.cc:1] {key('0,1', op_id=3)}"):
        answer = explain_log(log, [module(*STEP)])
        assert "cannot be read" in answer.messages[0].notes[0]
        assert names(answer) == (["ar.3"] if "\n" in log else [])


def test_colours_and_wild_bytes() -> None:
    """Escapes inside a message and bytes that are no UTF-8 around it do not matter."""
    log = b"\xff\xfe\x00 \x1b[1;31mRendezvous\x1b[0mKey{global_devices=[\x1b[32m0\x1b[0m, 1], op_id=3}\xe9\n"
    assert names(explain_log(log, [module(*STEP)])) == ["ar.3"]


def test_blocks_do_not_matter() -> None:
    """A message on the edge of what is read at once is read, and its line is right."""

    class Slow(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(size or 7, 7))

    log = ("x" * 20 + "\n") * 9 + key("0, 1,\n2, 3", op_id=1) + "\n" + key("0,4") + "\n"
    for stream in (io.BytesIO(log.encode()), Slow(log.encode())):
        answer = explain_log(stream, [module(*STEP)])
        assert [message.line for message in answer.messages] == [10, 12]
        assert names(answer) == ["ar.1", "ag.2"]


def test_several_modules() -> None:
    """Each candidate says which module it is of."""
    modules = [module(*STEP, name=name) for name in ("a", "b")]
    assert [each.module for each in explain_log(key("0,1", op_id=3), modules).candidates] == ["a", "b"]


def test_without_modules_the_messages_are_still_read() -> None:
    """There is nothing to find, and the facts are there."""
    answer = explain_log(key("0,1", op_id=3))
    assert (answer.found, answer.candidates, notes(answer)) == (False, [], "")
    assert answer.messages[0].said.devices == [0, 1]


@pytest.mark.parametrize(
    "text",
    [
        "devices=[",
        "RendezvousKey{",
        "RendezvousKey{\n",
        "all-reduce.1",
        "%a.",
        'op_name="',
        "channel id ",
        "does not ",
        "rank 1 ",
        "WorkNCCL(",
        "[PG Rank ",
        "all-reduce on channel 9 ",
        "AllReduce: opCount 1 nranks ",
        "clique devices=[GlobalDeviceId(0)",
        "AllReduceParticipantData{",
        "all reduce RendezvousKey",
    ],
)
def test_long_nonsense_is_read_in_proportion(text: str) -> None:
    """No pattern looks at the same bytes again and again: this would take hours otherwise."""
    answer = explain_log(text * 50_000, [module(*STEP)], kinds=LOG_MESSAGES)
    assert answer.candidates == []


# --- against a twin -------------------------------------------------------------------------------------------------


@given(groups=iota_groups(), data=st.data())
def test_random_devices_fit_like_the_twin_says(groups: object, data: st.DataObject) -> None:
    """A group with exactly these devices is found, in every spelling; any other set of devices is not."""
    listed: list[list[int]] = groups.groups()  # type: ignore[attr-defined]
    number = sum(map(len, listed))
    devices = data.draw(
        st.sampled_from(listed).flatmap(st.permutations)
        | st.lists(st.integers(0, number), min_size=1, max_size=number + 1, unique=True)
    )
    spelling = data.draw(st.sampled_from([str(groups), str(listed).translate(str.maketrans("[]", "{}", " "))]))
    program = module(collective("a", "all-reduce", spelling, 1), header=f"num_partitions={number}")
    expected = [group for group in listed if all(id_ in group for id_ in devices) and len(group) == len(devices)]
    assert [each.peers for each in explain_log(key(str(devices)[1:-1]), [program]).candidates] == expected


@given(
    pairs=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=8),
    devices=st.lists(st.integers(0, 7), min_size=1, max_size=8, unique=True),
)
def test_random_pairs_fit_like_the_twin_says(pairs: list[tuple[int, int]], devices: list[int]) -> None:
    """A permute fits by what its pairs connect, found here by spreading from one device again and again."""
    connected = {devices[0]} if any(devices[0] in pair for pair in pairs) else set()
    for _ in range(8):
        for source, target in pairs:
            if source in connected or target in connected:
                connected |= {source, target}
    wanted = set(devices)
    everybody = {device for pair in pairs for device in pair}
    fits = wanted in (connected, everybody, set(range(8))) or any(wanted == set(pair) for pair in pairs)
    text = "{" + ",".join(f"{{{source},{target}}}" for source, target in pairs) + "}"
    program = module(collective("cp", "collective-permute", text, 1))
    assert explain_log(key(str(devices)[1:-1]), [program]).found == fits
