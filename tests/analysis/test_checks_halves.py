"""Rules on channels, sends and recvs, starts and dones."""

from __future__ import annotations

import pytest

from checked_lines import FOUR, gathered, reduced
from checking import FLAG, ids_of, module_of, one_of, problems_in
from proto_twin import load_as

TRANSFER = (
    "t = token[] after-all()",
    "s = (f32[8], u32[], token[]) send(p, t), channel_id=3",
    "sd = token[] send-done(s), channel_id=3",
    "v = (f32[8], u32[], token[]) recv(t), channel_id=3",
    "vd = (f32[8], token[]) recv-done(v), channel_id=3",
)


def test_branches_may_share_a_channel() -> None:
    """Several instructions of one opcode may have one channel id."""
    lines = [gathered(f"g{n}", "p", "[2,2]<=[4]", 7, size=16, more=f', metadata={{op_name="{n}"}}') for n in range(2)]
    found = problems_in(module_of(*lines, header=FOUR))
    assert "channel-two-opcodes" not in ids_of(found)


def test_the_two_halves_are_one_opcode() -> None:
    """An all-reduce and the start of another are the same kind."""
    lines = (
        reduced("[1,4]<=[4]", channel=7),
        f"a = f32[8] all-reduce-start(p), channel_id=7, replica_groups=[1,4]<=[4], {FLAG}, to_apply=add",
        "b = f32[8] all-reduce-done(a)",
    )
    assert ids_of(problems_in(module_of(*lines, header=FOUR))) == []


def test_send_and_recv_share_a_channel_by_right() -> None:
    """A pair and its dones are one user of a channel."""
    assert ids_of(problems_in(module_of(*TRANSFER, header=FOUR))) == []


def test_the_mark_of_jax_is_a_note() -> None:
    """One id of 1 on three collectives says nothing; any other id, or a send on it, is an error."""
    lines = [
        gathered("g", "p", "[2,2]<=[4]", 1),
        reduced("[1,4]<=[4]"),
        "c = f32[8] collective-permute(p), channel_id=1, source_target_pairs={{0,1}}",
    ]
    found = one_of(problems_in(module_of(*lines, header=FOUR)), "channel-two-opcodes")
    assert (found.severity, found.instructions) == ("note", ["g", "r", "c"])
    others = [line.replace("channel_id=1", "channel_id=2") for line in lines]
    assert one_of(problems_in(module_of(*others, header=FOUR)), "channel-two-opcodes").severity == "error"
    with_send = [*lines, *(line.replace("channel_id=3", "channel_id=1") for line in TRANSFER)]
    assert one_of(problems_in(module_of(*with_send, header=FOUR)), "channel-two-opcodes").severity == "error"


@pytest.mark.parametrize("other", [2, 0, 77])
def test_the_mark_is_none_where_another_collective_is_numbered(other: int) -> None:
    """Where one collective has an id of its own, ids are numbers, and those that meet on 1 are an error."""
    lines = [gathered("g", "p", "[2,2]<=[4]", 1), reduced("[1,4]<=[4]"), gathered("h", "q", "[2,2]<=[4]", 1, size=128)]
    more = "c = f32[8] collective-permute(p), channel_id={}, source_target_pairs={{{{0,1}}}}"
    found = one_of(problems_in(module_of(*lines, more.format(other), header=FOUR)), "channel-two-opcodes")
    assert (found.severity, found.instructions) == ("error", ["g", "r", "h"])
    assert "since 0.8" not in found.message
    alone = more.format(1).replace("channel_id=1, ", "").replace("{{0,1}}", "{{0,0}}")
    mark = one_of(problems_in(module_of(*lines, alone, *TRANSFER, header=FOUR)), "channel-two-opcodes")
    assert (mark.severity, mark.instructions) == ("note", ["g", "r", "h"])


def with_pairs(*pairs: str) -> list[str]:
    """Write the transfer with source-target pairs on its send and its recv."""
    stated = iter(pairs)
    return [
        line + f", frontend_attributes={{_xla_send_recv_source_target_pairs={next(stated)}}}"
        if " send(" in line or " recv(" in line
        else line
        for line in TRANSFER
    ]


@pytest.mark.parametrize(
    ("sent", "received", "rules"),
    [
        ('"{{0,1},{1,2}}"', '"{{1,2},{0,1}}"', []),
        ('"{{0,1},{1,2}}"', '"{{2,0},{0,1}}"', ["send-recv-unpaired"]),
        ('"{{0,1},{1,2}}"', '"{{0,1}}"', ["send-recv-unpaired"]),
        ('"{{0,1},{0"', '"{{0,1}}"', ["unread"]),
        ('"{{0,1}}"', '"{{0,1},{0"', ["unread"]),
    ],
)
def test_pairs_are_a_set_and_an_unread_end_may_be_the_other(sent: str, received: str, rules: list[str]) -> None:
    """The order of pairs means nothing; what cannot be read of a channel is not taken for absent."""
    assert ids_of(problems_in(module_of(*with_pairs(sent, received), header=FOUR))) == rules


def test_an_unread_end_excuses_its_own_channel_alone() -> None:
    """A recv on another channel, or a second send, still has no other end."""
    lines = with_pairs('"{{0,1},{0"', '"{{0,1}}"')
    moved = [line.replace("recv(t), channel_id=3", "recv(t), channel_id=4") for line in lines]
    found = one_of(problems_in(module_of(*moved, header=FOUR)), "send-recv-unpaired")
    assert found.instructions == ["v"]
    twice = [line.replace("recv(t)", "send(p, t)").replace("recv-done", "send-done") for line in lines]
    found = one_of(problems_in(module_of(*twice, header=FOUR)), "send-recv-unpaired")
    assert found.instructions == ["v"]
    nowhere = [line.replace("send(p, t), channel_id=3", "send(p, t), channel_id=x") for line in TRANSFER]
    assert "send-recv-unpaired" not in ids_of(problems_in(module_of(*nowhere, header=FOUR)))


@pytest.mark.parametrize(
    ("change", "rules"),
    [
        (("send-done(s), channel_id=3", "send-done(s), channel_id=4"), ["start-done-unpaired"]),
        (("recv-done(v), channel_id=3", "recv-done(v)"), []),
        (("f32[8], u32[], token[]) recv", "f32[9], u32[], token[]) recv"), ["send-recv-unpaired"]),
    ],
)
def test_ends_that_differ(change: tuple[str, str], rules: list[str]) -> None:
    """A done with another channel, and a recv of another shape, do not go with the rest."""
    lines = "\n".join(TRANSFER).replace(*change).split("\n")
    assert ids_of(problems_in(module_of(*lines, header=FOUR))) == rules


def test_pairs_of_a_send_and_its_recv() -> None:
    """Both ends state the same source-target pairs, where they state any."""
    lines = with_pairs("{{0,1}}", "{{1,2}}")
    [found] = problems_in(module_of(*lines, header=FOUR))
    assert (found.rule.id, found.instructions) == ("send-recv-unpaired", ["s", "v"])
    same = [line.replace("{{1,2}}", "{{0,1}}") for line in lines]
    assert ids_of(problems_in(module_of(*same, header=FOUR))) == []


def test_host_transfers_have_their_other_end_outside() -> None:
    """A send to the host has no recv in the module."""
    lines = [line.replace("channel_id=3", "channel_id=3, is_host_transfer=true") for line in TRANSFER[:3]]
    assert ids_of(problems_in(module_of(*lines, header=FOUR))) == []


def test_several_sends_on_a_channel() -> None:
    """Nobody can tell which of two sends belongs to the recv: all are listed."""
    lines = (*TRANSFER, "s2 = (f32[8], u32[], token[]) send(p, t), channel_id=3", "sd2 = token[] send-done(s2)")
    [found] = problems_in(module_of(*lines, header=FOUR))
    assert (found.rule.id, found.instructions) == ("send-recv-unpaired", ["s", "s2", "v"])


@pytest.mark.parametrize("backend", ["text", "proto"])
@pytest.mark.parametrize(
    ("lines", "right"),
    [
        (["a = f32[8] all-reduce-start(p), replica_groups={}, to_apply=add", "d = f32[8]{0} all-reduce-done(a)"], True),
        (["a = f32[8] all-reduce-start(p), replica_groups={}, to_apply=add", "d = f32[16] all-reduce-done(a)"], False),
        (["a = f32[8] all-reduce-start(p), replica_groups={}, to_apply=add", "d = s32[8] all-reduce-done(a)"], False),
        (
            [
                "a = (f32[8], f32[8]) collective-permute-start(p), source_target_pairs={{0,1}}",
                "d = f32[8] collective-permute-done(a)",
            ],
            True,
        ),
        (
            [
                "a = (f32[8], f32[8]) collective-permute-start(p), source_target_pairs={{0,1}}",
                "d = (f32[8], f32[8]) collective-permute-done(a)",
            ],
            False,
        ),
        (
            [
                "a = (f32[8], f32[64]) all-reduce-start(p, q), replica_groups={}, to_apply=add",
                "d = (f32[8], f32[64]) all-reduce-done(a)",
            ],
            True,
        ),
        (
            [
                "a = (f32[8], f32[64]) all-reduce-start(p, q), replica_groups={}, to_apply=add",
                "d = (f32[64], f32[8]) all-reduce-done(a)",
            ],
            False,
        ),
    ],
)
def test_a_done_gives_the_results_of_its_start(lines: list[str], right: bool, backend: str) -> None:
    """Layouts may differ, shapes, types and their order may not."""
    text = module_of(*lines).to_bytes().decode()
    found = [(each.rule.id, each.instructions) for each in problems_in(load_as(text, backend))]
    assert found == ([] if right else [("shape-mismatch", ["a", "d"])])


@pytest.mark.parametrize("backend", ["text", "proto"])
@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (["a = f32[8] all-reduce-start(p), replica_groups={}, to_apply=add"], ["a"]),
        (["d = f32[8] all-reduce-done(p)"], ["d"]),
        (["n = f32[8] negate(p)", "d = f32[8] all-reduce-done(n)"], ["d"]),
        (
            [
                "a = f32[8] all-reduce-start(p), replica_groups={}, to_apply=add",
                "d = f32[8] all-reduce-done(a)",
                "e.1 = f32[8] all-reduce-done(a)",
            ],
            ["a", "d", "e.1"],
        ),
        (
            [
                "a = f32[8] all-reduce-start(p), replica_groups={}, to_apply=add",
                "d = f32[16] all-gather-done(a)",
            ],
            ["a", "d"],
        ),
    ],
)
def test_halves_that_do_not_pair(lines: list[str], names: list[str], backend: str) -> None:
    """A start alone, a done alone, two dones, and the done of another operation."""
    text = module_of(*lines, "o = f32[8] negate(p)").to_bytes().decode()
    [found] = problems_in(load_as(text, backend))
    assert (found.rule.id, found.instructions) == ("start-done-unpaired", names)


def test_done_of_nothing_defined() -> None:
    """A done whose operand does not exist has no start."""
    found = problems_in(module_of("d = f32[8] all-reduce-done(gone)", "o = f32[8] negate(p)"))
    assert one_of(found, "start-done-unpaired").instructions == ["d"]


@pytest.mark.parametrize(
    "lines",
    [
        ["a = f32[8] all-reduce-start(p), replica_groups={}, to_apply=add", "o = (f32[8]) tuple(a)"],
        ["a = f32[8] all-reduce-start(p), replica_groups={}, to_apply=add"],
        [
            "a = ((f32[8]), f32[8]) async-start(p), calls=wrapped",
            "u = ((f32[8]), f32[8]) async-update(a)",
            "d = f32[8] async-done(u)",
        ],
    ],
)
def test_halves_that_are_not_followed_or_right(lines: list[str]) -> None:
    """A start that leaves its computation may be awaited elsewhere; an update in between is part of it."""
    wrapped = (
        "wrapped {\n  w = f32[8] parameter(0)\n  ROOT x = f32[8] all-reduce(w), replica_groups={}, to_apply=add\n}"
    )
    *others, last = lines
    assert ids_of(problems_in(module_of(*others, f"ROOT {last}", before=wrapped))) == []


def test_a_done_inside_a_loop_may_belong_to_a_start_before_it() -> None:
    """In a body the start may come with the loop's state."""
    body = "body {\n  a = f32[8] parameter(0)\n  ROOT d = f32[8] all-reduce-done(a)\n}"
    assert ids_of(problems_in(module_of("c = f32[8] call(p), to_apply=body", before=body))) == []
