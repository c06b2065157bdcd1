"""Thousands of messages beside thousands of collectives: work grows with both, not with their product; counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.analysis import explain_log
from commlens.analysis.logs import explaining
from commlens.analysis.logs.asking import Search
from commlens.neuron import LOG_MESSAGES
from counted_calls import calls_in
from logs import clique, collective, key, module, names, notes

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlens.hlo import Module

SMALL = 40
TIMES = 4

GROUPS = ("[2,4]<=[8]", "[4,2]<=[8]", "[4,2]<=[2,4]T(1,0)", "{{0,1},{2,3,4,5,6,7}}", "{{0,2},{0,1}}", "{}")
PAIRS = ("{{0,1},{1,2}}", "{{0,1},{1,0},{4,5}}", "{{3,3}}")
DEVICES = ("0,1,2,3", "0,1", "4,5", "0...7", "2,3,4,5,6,7", "0,4", "0,1,2", "1,2", "3", "0,2")


def wide(number: int, opcode: str = "all-reduce") -> Module:
    """Return a module of so many collectives over the same groups, each of another shape and channel."""
    lines = (
        f"c.{place} = f32[{place + 1}] {opcode}(x), channel_id={place + 1}, replica_groups=[{number},2]<=[{2 * number}], "
        f'use_global_device_ids=true, to_apply=add, metadata={{op_name="jit(f)/n{place}"}}'
        for place in range(number)
    )
    shapes = (f"x{place} = f32[{place + 1}] parameter({place + 1})" for place in range(number))
    text = [line.replace("(x)", f"(x{place})") for place, line in enumerate(lines)]
    return module(*shapes, *text, header=f"num_partitions={2 * number}")


def permutes(number: int) -> Module:
    """Return a module of so many permutes, each of another pair."""
    lines = (
        collective(f"cp.{place}", "collective-permute", f"{{{{{place},{place + 1}}}}}", 1 + place)
        for place in range(number)
    )
    return module(*lines, header=f"num_partitions={number + 1}")


LOGS: dict[str, tuple[Callable[[int], Module], Callable[[int], str]]] = {
    "channels": (wide, lambda place: key("0,1", op_id=place + 1)),
    "channels of other groups": (wide, lambda place: key(f"{2 * place},{2 * place + 1}", op_id=place + 1)),
    "channels that are nowhere": (wide, lambda place: key("0,1", op_id=10**6 + place)),
    "other kinds": (wide, lambda place: key(f"{2 * place},{2 * place + 1}", "cross_replica")),
    "other operations": (wide, lambda place: f"op=AllGather {key(f'{2 * place},{2 * place + 1}')}"),
    "devices that no group has": (wide, lambda place: clique(f"{place},{place + 2}")),
    "pairs": (permutes, lambda place: clique(f"{place},{place + 1}")),
    "names": (wide, lambda place: f"stuck in %c.{place}"),
    "names that are nowhere": (wide, lambda place: f"stuck in all-reduce.{10**6 + place}"),
    "op_names": (wide, lambda place: f'failed: op_name="jit(f)/n{place}"'),
    "numbers": (wide, lambda place: f"first call to collective operation {place + 1}"),
    "numbers that are nowhere": (wide, lambda place: f"first call to collective operation {10**6 + place}"),
    "elements": (
        wide,
        lambda place: f"WorkNCCL(SeqNum={place}, OpType=ALLREDUCE, NumelIn={place + 1}, NumelOut={place + 1})",
    ),
    "elements that are nowhere": (
        wide,
        lambda place: f"WorkNCCL(SeqNum={place}, OpType=ALLREDUCE, NumelIn={10**6 + place})",
    ),
    "ranks in all groups": (wide, lambda place: f"does not have myself {place}"),
}


@pytest.mark.parametrize("log", LOGS)
def test_work_grows_with_messages_and_collectives(log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the messages over four times the collectives take four times the calls, not sixteen times."""
    monkeypatch.setattr(explaining, "MOST_PARTIAL", 3)
    make, line = LOGS[log]

    def asked(number: int) -> int:
        program, text = make(number), "\n".join(map(line, range(number)))
        explain_log("", [program], kinds=LOG_MESSAGES)
        return calls_in(lambda: explain_log(text, [program], kinds=LOG_MESSAGES))

    asked(1)  # what is imported or made once belongs to no input
    assert asked(TIMES * SMALL) < 1.4 * TIMES * asked(SMALL)


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_what_is_true_in_part_is_cut(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first are listed, and that there are more is said; with full ids all are."""
    monkeypatch.setattr(explaining, "MOST_PARTIAL", most)
    program = module(*(collective(f"ar.{number}", "all-reduce", "[4,2]<=[8]", number) for number in (1, 2, 3)))
    answer = explain_log(key("0,1", op_id=9), [program])
    assert names(answer, "partial") == ["ar.1", "ar.2", "ar.3"][:most]
    cut = f"\nmore than these {most} are true in part; --full lists them all" if most < 3 else ""
    assert notes(answer) == f"no collective has channel 9{cut}"
    assert names(explain_log(key("0,1", op_id=9), [program], full=True)) == ["ar.1", "ar.2", "ar.3"]


def test_what_fits_is_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that a message can be about is listed, however many."""
    monkeypatch.setattr(explaining, "MOST_PARTIAL", 1)
    program = module(*(collective(f"ar.{number}", "all-reduce", "[4,2]<=[8]", number) for number in (1, 2, 3)))
    assert names(explain_log(key("0,1"), [program])) == ["ar.1", "ar.2", "ar.3"]


# --- against a twin that looks at every row ---------------------------------------------------------------------------


@st.composite
def programs(draw: st.DrawFn) -> Module:
    """Draw a small module of collectives that have something in common."""
    lines: list[str] = []
    for place in range(draw(st.integers(1, 8))):
        opcode = draw(st.sampled_from(["all-reduce", "all-gather", "all-to-all", "collective-permute"]))
        groups = draw(st.sampled_from(PAIRS if opcode == "collective-permute" else GROUPS))
        metadata = draw(st.sampled_from(["", 'op_name="a/b"', 'scheduling_name="ar.9"']))
        channel = draw(st.sampled_from([None, place + 1, 3]))
        lines.append(collective(f"{opcode}.{draw(st.integers(0, 1)) * 20 + place}", opcode, groups, channel, metadata))
    header = draw(st.sampled_from(["num_partitions=8", "replica_count=8", "replica_count=4, num_partitions=2", ""]))
    return module(*lines, header=header)


@st.composite
def messages(draw: st.DrawFn) -> str:
    """Draw a message that says some facts or others."""
    devices, number = draw(st.sampled_from(DEVICES)), draw(st.integers(0, 9))
    parts = (
        key(devices, draw(st.sampled_from(["cross_module", "cross_replica"])), number),
        f"global_devices=[{devices}], op_id={number}",
        clique(devices),
        f"op=all-reduce {clique(devices)}",
        f'op_name="a/b" {key(devices)} all-reduce.{number}',
        f"first call to collective operation {number}; Expected {draw(st.sampled_from([2, 4, 8]))} threads to join the rendezvous",
        f"NCCL comm rank 1 nranks {draw(st.sampled_from([1, 2, 4, 6, 8]))}",
        f"all-reduce.{number} and ar.9 are stuck, channel_id={draw(st.integers(1, 9))}",
        f"AllReduce channel_id={number + 1} timed out",
        f"WorkNCCL(OpType=ALLGATHER, NumelIn=16, NumelOut={draw(st.sampled_from([32, 64]))})",
    )
    return draw(st.sampled_from(parts))


@given(program=programs(), message=messages())
def test_rows_that_are_not_looked_at_would_not_fit(program: Module, message: str) -> None:
    """The answer is the same where each row is looked at for each message."""
    answer = explain_log(message, [program])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Search, "_positions", lambda _self, module, _fits, _named: range(len(module.rows)))
        twin = explain_log(message, [program])
    shown = [[(each.name, each.match, each.why, each.peers) for each in one.candidates] for one in (answer, twin)]
    assert shown[0] == shown[1]
    assert [each.notes for each in answer.messages] == [each.notes for each in twin.messages]
