"""CC info of modules: their distinct group lists and pairs, what empty groups stand for, and what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlens.errors import InputError
from commlens.hlo import discover, load, load_all
from commlens.neuron import READINGS, CCInfo, WorldSizeError

if TYPE_CHECKING:
    from pathlib import Path


def module_text(*lines: str, header: str = "") -> str:
    """Return a module whose entry has some instructions behind the parameter ``p``."""
    body = "".join(f"  {line}\n" for line in lines)
    return f"HloModule m{header}\nENTRY e {{\n  p = f32[8] parameter(0)\n{body}}}\n"


def all_reduce(name: str, groups: str, more: str = "") -> str:
    """Return an all-reduce over some groups."""
    return f"{name} = f32[8] all-reduce(p), replica_groups={groups}{more}, to_apply=add"


def info_of(*lines: str, header: str = "", **counts: int) -> CCInfo:
    """Return the CC info of a module of such instructions."""
    return CCInfo.from_module(load(module_text(*lines, header=header), **counts))


def test_distinct_geometries_in_the_order_of_their_first_appearance() -> None:
    """Equal lists count once, however spelled and by whichever opcode; another order is another list."""
    info = info_of(
        all_reduce("a", "{{0,1},{2,3}}"),
        all_reduce("b", "{{0,2},{1,3}}"),
        all_reduce("c", "[2,2]<=[4]"),
        "d = f32[16] all-gather(p), replica_groups={{0,1},{2,3}}, dimensions={0}",
        all_reduce("e", "{{2,3},{0,1}}"),
        all_reduce("f", "{{1,0},{2,3}}"),
    )
    assert info.replica_groups == [
        [[0, 1], [2, 3]],
        [[0, 2], [1, 3]],
        [[2, 3], [0, 1]],
        [[1, 0], [2, 3]],
    ]
    assert (info.src_target_pairs, info.rank_world_size, info.notes) == (None, None, ())


def test_starts_and_broadcasts_count() -> None:
    """The start of a collective counts once, its done never; a broadcast counts like all others."""
    info = info_of(
        "a = f32[8] all-reduce-start(p), replica_groups={{0,1}}, to_apply=add",
        "b = f32[8] all-reduce-done(a)",
        "c = f32[8] collective-broadcast(p), replica_groups={{0,2}}",
        "d = (f32[8], f32[16]) all-gather-start(p), replica_groups={{0,3}}, dimensions={0}",
        "e = f32[16] all-gather-done(d)",
    )
    assert info.replica_groups == [[[0, 1]], [[0, 2]], [[0, 3]]]


def test_permutes_add_pairs_only() -> None:
    """Permutes, and sends and receives that state pairs, add one set per distinct list; transfers to the host none."""
    attribute = ', frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1}}"}'
    info = info_of(
        "a = f32[8] collective-permute(p), source_target_pairs={{0,1},{1,0}}",
        "b = f32[8] collective-permute(p), source_target_pairs={{1,0},{0,1}}",
        "c = f32[8] collective-permute(p), source_target_pairs={{0,1},{1,0}}",
        "t = token[] after-all()",
        f"d = (f32[8], u32[], token[]) send(p, t), channel_id=1{attribute}",
        f"e = (f32[8], u32[], token[]) recv(t), channel_id=1{attribute}",
        "f = (f32[8], u32[], token[]) send(p, t), channel_id=2, is_host_transfer=true",
        f"g = (f32[8], u32[], token[]) send(p, t), channel_id=3, is_host_transfer=true{attribute.replace('1', '9')}",
    )
    assert info.replica_groups is None
    assert info.src_target_pairs == [[[0, 1], [1, 0]], [[1, 0], [0, 1]], [[0, 1]]]
    assert info.world_size() == 2


def test_a_module_without_collectives_says_nothing() -> None:
    """There is no CC info in it."""
    info = info_of("r = f32[8] negate(p)")
    assert (info.has_cc, info.to_def_json()) == (False, {})


@pytest.mark.parametrize(
    ("header", "more", "expected"),
    [
        pytest.param(", replica_count=4", "", [[0, 1, 2, 3]], id="replicas"),
        pytest.param(", num_partitions=4", ", channel_id=1", [[0, 1, 2, 3]], id="both-kinds-of-one-replica"),
        pytest.param(", replica_count=2, num_partitions=2", ", channel_id=1", [[0, 1, 2, 3]], id="both-kinds"),
    ],
)
def test_empty_groups_mean_everybody(header: str, more: str, expected: list[list[int]]) -> None:
    """They stand for all devices, and are the same geometry as the list written out."""
    written = "{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in expected) + "}"
    info = info_of(all_reduce("a", "{}", more), all_reduce("b", written, ", channel_id=7"), header=header)
    assert info.replica_groups == [expected]


REDUCE = "a{number} = f32[8] all-reduce(p), replica_groups={groups}{more}, to_apply=add"
SCATTER = "a{number} = f32[8] all-to-all(p), replica_groups={groups}{more}, dimensions={{0}}"


@pytest.mark.parametrize(
    ("line", "more", "count"),
    [
        pytest.param(REDUCE, "", 2, id="replicas"),
        pytest.param(SCATTER, "", 2, id="replicas-of-all-to-all"),
        pytest.param(SCATTER, ", channel_id=1", 3, id="partitions"),
    ],
)
@pytest.mark.parametrize("order", [("{}", None), (None, "{}")], ids=["empty-first", "empty-last"])
def test_empty_groups_and_all_ids_of_a_mode_are_one_geometry(
    line: str, more: str, count: int, order: tuple[str | None, ...]
) -> None:
    """In a program of replicas and partitions empty groups become the ids that groups of their mode list."""
    everybody = ",".join(map(str, range(count)))
    spelled = [groups or "{{" + everybody + "}}" for groups in order]
    lines = [line.format(number=number, groups=groups, more=more) for number, groups in enumerate(spelled)]
    info = info_of(*lines, header=", replica_count=2, num_partitions=3")
    assert info.replica_groups == [[list(range(count))]]
    assert [note.startswith("the ids of a0 and 1 more are those of replicas") for note in info.notes] == [True]


def test_empty_groups_over_both_kinds_are_all_devices() -> None:
    """A group of replicas there joins all their partitions; everybody is no fewer, and these ids are ranks."""
    info = info_of(all_reduce("a", "{}", ", channel_id=1"), header=", replica_count=2, num_partitions=3")
    assert (info.replica_groups, info.notes) == ([[[0, 1, 2, 3, 4, 5]]], ())
    one_replica = info_of(all_reduce("a", "{{0}}", ", channel_id=1"), header=", num_partitions=4")
    assert one_replica.replica_groups == [[[0]]]
    assert one_replica.notes[0].startswith("the ids of a are those of replicas or partitions")


def test_counts_may_be_given_beside_the_module() -> None:
    """What the module does not state can be stated when it is loaded."""
    assert info_of(all_reduce("a", "{}"), replicas=3).replica_groups == [[[0, 1, 2]]]
    assert info_of("a = f32[8] all-to-all(p), replica_groups={}, channel_id=1, dimensions={0}", partitions=2)
    with pytest.raises(InputError, match=r"all-reduce a: empty replica_groups mean all devices, and nobody states"):
        info_of(all_reduce("a", "{}"))


def test_written_groups_ask_for_no_counts() -> None:
    """Ids are copied as they are, whatever the counts say of them."""
    assert info_of(all_reduce("a", "{{0,9}}")).replica_groups == [[[0, 9]]]
    assert info_of(all_reduce("a", "{{0,9}}"), header=", replica_count=2").replica_groups == [[[0, 9]]]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        pytest.param(all_reduce("a", "{}", ", channel_id=1, use_global_device_ids=true"), "a: ", id="flattened-empty"),
        pytest.param(
            all_reduce("a", "{{0,-1}}"), "all-reduce a: expected replica_groups[0][0][1] to be", id="negative"
        ),
        pytest.param(all_reduce("a", "[2,8388609]<=[16777218]"), "at most 16,777,216 ranks, found more", id="large"),
        pytest.param(all_reduce("a", "[99999,99999]<=[9999800001]"), "found more", id="far-too-large"),
    ],
)
def test_modules_that_are_refused(line: str, says: str) -> None:
    """Groups that are no groups of ranks are refused under the name and line of the collective."""
    with pytest.raises(InputError) as caught:
        info_of(line, header=", replica_count=4")
    assert "<text>:4: all-reduce a: " in str(caught.value)
    assert says in str(caught.value)


def test_what_could_not_be_read_is_noted() -> None:
    """The rest is answered, and a note says what may be missing."""
    info = info_of(all_reduce("a", "{{0,1}}"), all_reduce("b", "{{0,1}"))
    assert info.replica_groups == [[[0, 1]]]
    [note] = info.notes
    assert note.startswith("line 5: all-reduce b: ")
    assert note.endswith("its groups or pairs may be missing here")
    assert (info.complete, info.world_size()) == (False, 2)


SEND = "s{number} = (f32[8], u32[], token[]) send(p, t), channel_id={number}{more}"
PAIRED = ', frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1}}"}'


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        pytest.param([all_reduce("b", "{{0,1}")], "line 4: all-reduce b: ", id="unread"),
        pytest.param(
            ["t = token[] after-all()", SEND.format(number=1, more="")],
            "send s1 states no source-target pairs (the frontend attribute _xla_send_recv_source_target_pairs)",
            id="send",
        ),
        pytest.param(
            [
                "t = token[] after-all()",
                "r = (f32[8], u32[], token[]) recv(t), channel_id=1",
                SEND.format(number=2, more=""),
            ],
            "recv r and 1 more state no source-target pairs",
            id="several",
        ),
    ],
)
def test_collectives_of_which_none_is_known(lines: list[str], said: str) -> None:
    """Neither reading takes them for a program without collectives: how many workers there are is not known."""
    info = info_of(*lines)
    assert (info.has_cc, info.complete) == (False, False)
    assert info.notes[0].startswith(said)
    for reading in READINGS:
        with pytest.raises(WorldSizeError, match="how many workers the program needs is not known"):
            info.world_size(reading)


def test_sends_that_are_known_are_not_noted() -> None:
    """Pairs say it, and a transfer to the host meets no other device; one that says nothing is named beside them."""
    known = [
        "t = token[] after-all()",
        SEND.format(number=1, more=PAIRED),
        SEND.format(number=2, more=", is_host_transfer=true"),
    ]
    assert (info_of(*known).notes, info_of(*known).complete) == ((), True)
    info = info_of(*known, SEND.format(number=3, more=""))
    assert (info.src_target_pairs, info.world_size(), info.complete) == ([[[0, 1]]], 2, False)
    assert info.notes[0].startswith("send s3 states no source-target pairs")


@pytest.mark.parametrize(
    ("header", "lines", "noted"),
    [
        pytest.param(", replica_count=2, num_partitions=2", [all_reduce("a", "{{0,1}}")], True, id="replicas"),
        pytest.param(
            ", replica_count=2, num_partitions=2",
            [all_reduce("a", "{{0,1}}", ", channel_id=1, use_global_device_ids=true")],
            False,
            id="global",
        ),
        pytest.param(", replica_count=2, num_partitions=1", [all_reduce("a", "{{0,1}}")], False, id="one-partition"),
        pytest.param(
            ", replica_count=2, num_partitions=2",
            ["a = f32[8] collective-permute(p), source_target_pairs={{0,1}}"],
            True,
            id="pairs",
        ),
    ],
)
def test_ids_that_are_no_ranks_are_noted(header: str, lines: list[str], noted: bool) -> None:
    """With several replicas and several partitions, ids of either are not those of devices."""
    notes = info_of(*lines, header=header).notes
    assert [note.startswith("the ids of a are those of replicas or partitions") for note in notes] == [True] * noted


@pytest.mark.corpus("public/*neuron*", "torch_xla-2.9.0/*.txt")
def test_real_modules(corpus_file: Path) -> None:
    """The topologies of real modules are the distinct lists of their collectives, found by comparing each with each."""
    for module in load_all(corpus_file, replicas=64):
        distinct: list[list[list[int]]] = []
        for site in discover(module).sites:
            listed = site.signature.groups
            if listed is not None and listed.num_replica_groups and listed.groups() not in distinct:
                distinct.append(listed.groups())
        found = CCInfo.from_module(module).replica_groups or []
        assert [topology for topology in found if topology in distinct] == distinct
