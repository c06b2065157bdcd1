"""Channel ids that are taken although what states them is left alone, or is no collective to the enforcer."""

from __future__ import annotations

from pathlib import Path

import pytest

from commlens import load
from commlens.errors import InputError
from commlens.hlo import Module
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from commlens.neuron import NeuronUniqueChannelIdEnforcer, next_channel_id
from neuron_modules import stats_of
from proto_modules import instruction, module
from renumbered import ENFORCER, SAFE

HEAD = """HloModule m

plus {
  u = f32[] parameter(0)
  v = f32[] parameter(1)
  ROOT w = f32[] add(u, v)
}

ENTRY e {
  a = f32[8]{0} parameter(0)
"""
X = "f32[8]{0} all-reduce(a), channel_id=3, replica_groups={{0,1}}, to_apply=plus"
DAMAGED = {
    "all-reduce": "f32[8]{0} all-reduce(a), channel_id=4, replica_groups={{0,x}}, to_apply=plus",
    "behind": "f32[8]{0} all-reduce(a), replica_groups={{0,x}}, channel_id=4, to_apply=plus",
    "all-reduce-start": "f32[8]{0} all-reduce-start(a), channel_id=4, replica_groups={{0,x}}, to_apply=plus",
    "all-gather-start": "(f32[8]{0}, f32[16]{0}) all-gather-start(a), channel_id=4, replica_groups={{0,x}}, dimensions={0}",
    "reduce-scatter-start": "((f32[8]{0}), f32[4]{0}) reduce-scatter-start(a), channel_id=4, replica_groups={{0,x}}, dimensions={0}, to_apply=plus",
    "collective-broadcast": "f32[8]{0} collective-broadcast(a), channel_id=4, replica_groups={{0,x}}",
    "collective-permute": "f32[8]{0} collective-permute(a), channel_id=4, source_target_pairs={{0,x}}",
    "collective-permute-start": "(f32[8]{0}, f32[8]{0}) collective-permute-start(a), channel_id=4, source_target_pairs={{0,x}}",
    "dimensions": "f32[16]{0} all-gather(a), channel_id=4, replica_groups={{0,1}}, dimensions={x}",
    "send-done": "token[] send-done(a), channel_id=4, dimensions={x}",
    "flag": "f32[8]{0} all-reduce(a), channel_id=4, replica_groups={{0,1}}, use_global_device_ids=maybe, to_apply=plus",
}  # fmt: skip
BOTH = pytest.mark.parametrize("enforcer", [ENFORCER, SAFE], ids=str)


def text_of(*bodies: str) -> str:
    """Return a module with the instructions ``x``, ``y``, ``z`` ... on its lines 11, 12 ..."""
    lines = [f"  {name} = {body}\n" for name, body in zip("xyzstuv", bodies, strict=False)]
    return HEAD + "".join(lines) + "  ROOT end = f32[8]{0} copy(a)\n}\n"


def ids_of(text: Module) -> list[int | None]:
    """Return the channel ids of x, y ... as far as they can be read."""
    names = [each for each in "xyzstuv" if text.computations[-1].instruction(each) is not None]
    return [text.instruction(name).channel_id for name in names]


@BOTH
@pytest.mark.parametrize("damaged", DAMAGED.values(), ids=DAMAGED)
def test_the_id_of_what_is_left_alone_is_taken(damaged: str, enforcer: NeuronUniqueChannelIdEnforcer) -> None:
    """Nobody else gets it, and without keep_going the module is refused as ever."""
    text = text_of(X, X, damaged)
    with pytest.raises(InputError, match=r"^<text>:13:\d+: z: "):
        enforcer.run(load(text))
    result = enforcer.run(load(text), keep_going=True)
    assert ids_of(result.module) == [3, 5, 4]
    assert [each.instruction for each in result.left_alone] == ["z"]
    assert stats_of(result)["next_channel_id"] == 5
    assert result.warnings == ()


@BOTH
def test_who_comes_first_has_the_id_even_if_it_is_left_alone(enforcer: NeuronUniqueChannelIdEnforcer) -> None:
    """The walk goes by list order, not by what can be changed."""
    result = enforcer.run(load(text_of(DAMAGED["behind"].replace("4", "3", 1), X)), keep_going=True)
    assert ids_of(result.module) == [3, 4]
    assert stats_of(result)["still_shared"] == []
    later = enforcer.run(load(text_of(X, DAMAGED["behind"].replace("4", "3", 1))), keep_going=True)
    assert (ids_of(later.module), later.changed) == ([3, 3], False)
    [shared] = stats_of(later)["still_shared"]
    assert (shared["channel_id"], [each["instruction"] for each in shared["instructions"]]) == (3, ["x", "y"])


@BOTH
@pytest.mark.parametrize(
    "damaged",
    [
        "f32[8]{0} all-reduce(a), channel_id=q, replica_groups={{0,1}}, to_apply=plus",
        "f32[8]{0} all-reduce-start(a), replica_groups={{0,1}, channel_id=4, to_apply=plus",
        "f32[8]{0} collective-permute(a), channel_id=99999999999999999999, source_target_pairs={{0,1}}",
    ],
)
def test_an_id_that_cannot_be_read_is_said(damaged: str, enforcer: NeuronUniqueChannelIdEnforcer) -> None:
    """A fresh id may be that one; where none is given there is nothing to say."""
    result = enforcer.run(load(text_of(X, X, damaged)), keep_going=True)
    assert [each["new"] for each in stats_of(result)["renumbered"]] == [4]
    assert result.warnings == (
        "nobody can say that the new channel ids (4) are free: that of z (line 13) cannot be read",
    )
    assert enforcer.run(load(text_of(X, damaged)), keep_going=True).warnings == ()


def test_the_id_of_a_damaged_proto_instruction_is_taken() -> None:
    """Its pairs state a device twice, or its groups contradict each other; one without readable bytes is said."""
    x, y, z = (instruction("all-to-all", number, [1]) for number in (2, 3, 4))
    x.channel_id = y.channel_id = 3
    z.channel_id = 4
    z.collective_device_list.iota_replica_group_list.CopyFrom(
        schema.IotaReplicaGroupListProto(num_replica_groups=2, num_devices_per_group=2, iota_reshape_dims=[5])
    )
    whole = module(x, y, z).SerializeToString()
    with pytest.raises(InputError, match="^<bytes>: computation main: x4: "):
        ENFORCER.run(load(whole))
    result = ENFORCER.run(load(whole), keep_going=True)
    assert [result.module.instruction(name).channel_id for name in ("x2", "x3", "x4")] == [3, 5, 4]
    assert [each.instruction for each in result.left_alone] == ["x4"]
    broken = z.SerializeToString()
    result = ENFORCER.run(load(whole.replace(broken, broken[:-1] + b"\xff")), keep_going=True)
    assert [each["new"] for each in stats_of(result)["renumbered"]] == [4]
    [warning] = result.warnings
    assert warning.startswith("nobody can say that the new channel ids (4) are free")


def test_the_next_id_is_refused_as_before() -> None:
    """Whoever only asks for it leaves nothing alone."""
    with pytest.raises(ValueError, match="replica_groups cannot be read"):
        next_channel_id(load(text_of(X, DAMAGED["all-reduce"])))


# --- custom calls ---------------------------------------------------------------------------------------------------


def custom(channel: str, target: str = "all-gather-start") -> str:
    """Return a collective as JAX 0.12 writes it."""
    config = f'{{"all_gather_dimension": 0, "replica_groups": [[0, 1]]{channel}}}'
    return (
        f'f32[16]{{0}} custom-call(a), custom_call_target="{target}", frontend_attributes='
        f"{{async_collective_config={config}}}"
    )


@BOTH
def test_custom_calls_are_named_and_do_not_count(enforcer: NeuronUniqueChannelIdEnforcer) -> None:
    """XLA knows no channel of theirs; where a fresh id is one of theirs, and where they share one, it is said."""
    module = load(text_of(X, X, custom(', "channel_id": 4'), custom(', "channel_id": 9'), custom("")))
    result = enforcer.run(module)
    assert ids_of(result.module)[:2] == [3, 4]
    assert next_channel_id(module) == stats_of(result)["next_channel_id"] == 4
    assert stats_of(result)["custom_calls"] == [
        {
            "instruction": name,
            "computation": "e",
            "line": line,
            "opcode": "custom-call all-gather-start",
            "channel_id": channel,
        }
        for name, line, channel in (("z", 13, 4), ("s", 14, 9), ("t", 15, None))
    ]
    assert (stats_of(result)["looked_at"], stats_of(result)["not_looked_at"]) == (
        2,
        {"custom-call all-gather-start": 3},
    )
    [shared] = stats_of(result)["still_shared"]
    assert (shared["channel_id"], [each["instruction"] for each in shared["instructions"]]) == (4, ["y", "z"])
    assert result.warnings[-1] == (
        "the new channel id 4 of y (line 12) is stated by z (line 13) as well: custom calls do not count for the next"
        " id"
    )


def test_custom_calls_that_cannot_be_read_are_said() -> None:
    """Their id may be the fresh one; they stop nobody. Other custom calls, and the done of one, are no matter."""
    odd = custom(', "channel_id": "four"')
    result = ENFORCER.run(load(text_of(X, X, odd, custom("", "gemm"), custom("", "all-gather-done"))))
    assert stats_of(result)["custom_calls"] == []
    assert result.warnings == (
        "nobody can say that the new channel ids (4) are free: that of z (line 13) cannot be read",
    )


def test_custom_calls_of_a_proto() -> None:
    """Likewise."""
    x, y, z = instruction("all-to-all", 2, [1]), instruction("all-to-all", 3, [1]), instruction("custom-call", 4, [1])
    x.channel_id = y.channel_id = 3
    z.custom_call_target = b"AwsNeuronAllReduceAdd_f32"
    z.backend_config = b'{"replica_groups":[[0,1]],"channel_id":4}'
    result = ENFORCER.run(load(module(x, y, z).SerializeToString()))
    [call] = stats_of(result)["custom_calls"]
    assert (call["instruction"], call["opcode"], call["channel_id"]) == (
        "x4",
        "custom-call AwsNeuronAllReduceAdd_f32",
        4,
    )
    assert "the new channel id 4 of x3 is stated by x4 as well" in result.warnings[-1]


@pytest.mark.parametrize("ending", ["txt", "pb"])
def test_a_module_of_jax_0_12(ending: str) -> None:
    """It has five custom calls of one channel id, which no pass makes unique."""
    folder = Path(__file__).parents[1] / "data" / "protos"
    result = ENFORCER.run(load(folder / f"jax-0.12.0.1.async_start_2x4.before.{ending}"))
    assert (result.changed, result.modified) == (False, False)
    calls = stats_of(result)["custom_calls"]
    assert [(each["instruction"], each["channel_id"]) for each in calls] == [
        ("all_gather_start.1", 1),
        ("psum_invariant_start.5", 1),
        ("reduce_scatter_start.5", 1),
        ("all_to_all_start.1", 1),
        ("ppermute_start.1", 1),
    ]
    [shared] = stats_of(result)["still_shared"]
    assert [each["instruction"] for each in shared["instructions"]] == [each["instruction"] for each in calls]
    [warning] = result.warnings
    assert "several instructions still have 1, because the pass never looks at opcodes such as those of" in warning
