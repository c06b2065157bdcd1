"""The channel id enforcer in its safe form, and what it cannot read."""

from __future__ import annotations

import pytest

from commlens import load
from commlens.errors import InputError
from commlens.neuron import NeuronUniqueChannelIdEnforcer
from neuron_modules import both, channel_ids, module_of, stats_of
from proto_modules import instruction, module
from renumbered import ENFORCER, PAIR, SAFE, enforced, row

# --- the safe form --------------------------------------------------------------------------------------------------


@both
def test_safe_keeps_a_pair_together(backend: str) -> None:
    """A family that has its id first keeps it; one that comes second moves as a whole."""
    assert enforced([PAIR], backend, SAFE)[1] == [[7, 7, 7, 7]]
    result, found = enforced([row(("all-reduce", 7)), PAIR], backend, SAFE)
    assert (found, result.changed, result.warnings) == ([[7], [8, 8, 8, 8]], True, ())
    assert enforced([PAIR, row(("all-reduce", 7))], backend, SAFE)[1] == [[7, 7, 7, 7], [8]]


@both
def test_safe_gives_each_family_one_id(backend: str) -> None:
    """Two families that both collide get two ids, whatever stands between their members."""
    notation = [
        row(("all-reduce", 1), ("all-reduce", 2)),
        row(("recv-done", 2), ("send", 1), ("recv", 2), ("send-done", 1)),
        row(("send", 2), ("recv", 1)),
    ]
    assert enforced(notation, backend, SAFE)[1] == [[1, 2], [4, 3, 4, 3], [4, 3]]


@both
def test_safe_leaves_what_has_no_id_alone(backend: str) -> None:
    """No group mode changes; collisions of ids are mended as ever."""
    notation = [row(("all-gather", None), ("all-reduce", None), ("send", None), ("all-gather", 1), ("all-reduce", 1))]
    result, found = enforced(notation, backend, SAFE)
    assert (found, result.warnings) == ([[None, None, None, 1, 2]], ())


@both
def test_safe_says_where_a_family_is_too_large(backend: str) -> None:
    """Two sends of one id cannot both belong to its recv; nobody knows which does, so none moves."""
    result, found = enforced([row(("send", 3), ("recv", 3), ("send", 3))], backend, SAFE)
    assert (found, result.changed) == ([[3, 3, 3]], False)
    [warning] = result.warnings
    assert warning.startswith("several sends have channel id 3")


OLD_DONE = """ENTRY e {
  p = f32[8] parameter(0)
  a = f32[8] all-to-all(p), channel_id=1, dimensions={0}
  s = ((f32[8]), f32[8]) all-to-all-start(a), channel_id=1, dimensions={0}
  u = ((f32[8]), f32[8]) all-to-all-update(s), channel_id=1, dimensions={0}
  d = f32[8] all-to-all-done(u), channel_id=1, dimensions={0}
  t = ((f32[8]), f32[8]) all-to-all-start(a), channel_id=4, dimensions={0}
  f = f32[8] all-to-all-done(t), channel_id=1, dimensions={0}
}
"""


def test_done_forms_that_repeat_the_id_of_their_start() -> None:
    """As texts of 2022 do: left behind with a word about it, or moved along; a done of another start stays."""
    result = ENFORCER.run(load(OLD_DONE))
    ids = {each.name: each.channel_id for each in result.module.computations[-1].instructions}
    assert ids == {"p": None, "a": 1, "s": 5, "u": 1, "d": 1, "t": 4, "f": 1}
    assert result.warnings == (
        "the old channel id of their start still stands on u (line 5) and d (line 6) (safe=true keeps them together)",
    )
    result = SAFE.run(load(OLD_DONE))
    ids = {each.name: each.channel_id for each in result.module.computations[-1].instructions}
    assert ids == {"p": None, "a": 1, "s": 5, "u": 5, "d": 5, "t": 4, "f": 1}
    assert result.warnings == ()
    assert [each["instruction"] for each in stats_of(result)["renumbered"]] == ["s", "u", "d"]


def test_done_forms_in_a_circle_end() -> None:
    """A done that leads to itself belongs to no start."""
    text = OLD_DONE.replace("all-to-all-update(s)", "all-to-all-update(d)")
    assert [each["instruction"] for each in stats_of(SAFE.run(load(text)))["renumbered"]] == ["s"]


# --- what cannot be read --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("enforcer", [ENFORCER, SAFE], ids=str)
def test_an_unreadable_id_is_refused_with_its_place(enforcer: NeuronUniqueChannelIdEnforcer) -> None:
    """Nothing is half-edited; with keep_going that one is left, and named."""
    text = """ENTRY e {
  p = f32[8] parameter(0)
  a = f32[8] all-to-all(p), dimensions={0}, channel_id=1
  b = f32[8] all-to-all(p), dimensions={0}, channel_id=x
  ROOT c = f32[8] all-to-all(p), dimensions={0}, channel_id=1
}
"""
    with pytest.raises(InputError, match="^<text>:4:56: b: expected channel_id to be an integer"):
        enforcer.run(load(text))
    result = enforcer.run(load(text), keep_going=True)
    assert result.module.to_bytes().decode() == text.replace("channel_id=1\n}", "channel_id=2\n}")
    assert [each["instruction"] for each in stats_of(result)["left_alone"]] == ["b"]


def test_two_ids_in_one_proto_instruction_are_refused() -> None:
    """The old field and the new one both state one, which XLA refuses whether or not they agree."""
    both_fields = instruction("all-reduce", 2, [1])
    for old in (3, 4):
        both_fields.channel_id, both_fields.all_reduce_id = 3, old
        with pytest.raises(
            InputError, match=f"computation main: x2: expected channel_id or all_reduce_id, found 3 and {old}"
        ):
            ENFORCER.run(load(module(both_fields).SerializeToString()))


def test_bytes_that_are_no_instruction_are_refused() -> None:
    """Even its name cannot be read; with keep_going the rest goes on."""
    proto = module(instruction("all-to-all", 2, [1]), instruction("all-to-all", 3, [1]))
    whole = proto.SerializeToString()
    broken = instruction("all-to-all", 2, [1]).SerializeToString()
    damaged = whole.replace(broken, broken[:-1] + b"\xff")  # its last number does not end
    assert damaged != whole
    with pytest.raises(InputError, match="computation main: "):
        ENFORCER.run(load(damaged))
    assert len(stats_of(ENFORCER.run(load(damaged), keep_going=True))["left_alone"]) == 1


@both
def test_ids_that_do_not_fit_are_refused(backend: str) -> None:
    """Nothing goes above the largest number of 64 bits; with keep_going those stay as they are."""
    notation = [row(("all-gather", 2**63 - 1), ("all-reduce", 1), ("all-to-all", 1))]
    with pytest.raises(InputError, match="all-to-all.0.2: expected a free channel id for it, found none"):
        ENFORCER.run(module_of(notation, backend))
    result = ENFORCER.run(module_of(notation, backend), keep_going=True)
    assert (result.changed, channel_ids(result.module, notation)) == (False, [[2**63 - 1, 1, 1]])
