"""``diff``: what means the same in other words, and in other forms."""

from __future__ import annotations

from pathlib import Path

import pytest

from commlens.analysis import diff
from commlens.hlo import load
from communicating import (
    PROTOS,
    compare,
    gather,
    in_a_call,
    in_a_loop,
    kinds,
    permutes,
    reduce,
    text_of,
)

WRAPPED = """wrapped {{
  p = f32[8] parameter(0)
  ROOT {}
}}
"""

SAME = {
    "iota": (text_of(reduce()), text_of(reduce("[2,2]<=[4]"))),
    "mesh-axes": (text_of(gather()), text_of(gather("mesh['a'=2,'b'=2] {'b'}"))),
    "group-order": (text_of(gather()), text_of(gather("{{2,3},{0,1}}"))),
    "member-order-of-a-sum": (text_of(reduce()), text_of(reduce("{{1,0},{2,3}}"))),
    "channel": (text_of(reduce()), text_of(reduce(channel=77))),
    "name": (text_of(reduce()), text_of(reduce(name="all-reduce.77"))),
    "reducer-name": (text_of(reduce()), text_of(reduce(to="sum.2"))),
    "reducer-of-our-own": (text_of(reduce(to="mean")), text_of(reduce(to="mean.9"))),
    "mode": (
        text_of(reduce("{{0,1,2,3}}")),
        text_of("r = f32[8] all-reduce(p), channel_id=1, replica_groups={{0}}, to_apply=add"),
    ),
    "all": (text_of(reduce("{{0,1,2,3}}")), text_of(reduce("{{3,1,2,0}}"))),
    "metadata": (text_of(reduce()), text_of(reduce() + ', metadata={op_name="x" source_file="f.py" source_line=3}')),
    "tag": (text_of(reduce()), text_of(reduce() + ', frontend_attributes={collective_type="tp"}')),
    "old-name": (
        text_of("r = f32[8] all-reduce(p), replica_groups={{0,1}}, to_apply=add", header="replica_count=2"),
        text_of("r = f32[8] cross-replica-sum(p), replica_group_ids={0,0}, to_apply=add", header="replica_count=2"),
    ),
    "pairs": (permutes("{{0,1},{1,0}}"), permutes("{{1,0},{0,1}}")),
    "broadcast": (
        text_of("b = f32[8] collective-broadcast(p), channel_id=1, replica_groups={{1,0,2}}"),
        text_of("b = f32[8] collective-broadcast(p), channel_id=1, replica_groups={{1,2,0}}"),
    ),
    "async": (
        text_of(gather()),
        text_of(
            gather(name="s").replace("f32[16] all-gather", "(f32[8], f32[16]) all-gather-start"),
            "g = f32[16] all-gather-done(s)",
        ),
    ),
    "wrapped": (
        text_of(reduce()),
        text_of(
            "s = ((f32[8]), f32[8]) async-start(p), calls=wrapped",
            "d = f32[8] async-done(s)",
            before=WRAPPED.format(reduce()),
        ),
    ),
    "inlined": (text_of(reduce()), in_a_call(reduce())),
    "loop-name": (in_a_loop(reduce()), in_a_loop(reduce(), suffix=".clone")),
    "nothing": (text_of("n = f32[8] negate(p)"), text_of("n = f32[8] abs(p)")),
}


@pytest.mark.parametrize("pair", SAME.values(), ids=SAME.keys())
def test_the_same_in_other_words(pair: tuple[str, str]) -> None:
    """Nothing differs but the spelling, both ways round."""
    for before, after in (pair, pair[::-1]):
        answer = compare(before, after)
        assert (kinds(answer), answer.same_communication) == ([], True)


def test_spelling_is_said_apart() -> None:
    """What is merely written in another way is listed with both rows, and said in words."""
    answer = compare(text_of(reduce()), text_of(reduce("[2,2]<=[4]", channel=5, name="x")))
    (change,) = answer.changes
    assert (change.kind, change.opcode) == ("spelling", "all-reduce")
    assert (change.before is not None and change.before.name, change.after is not None and change.after.name) == (
        "r",
        "x",
    )
    assert change.what == "replica_groups {{0,1},{2,3}} -> [2,2]<=[4]; channel 1 -> 5"


# --- text and proto -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(path.stem for path in PROTOS.glob("*.txt")))
def test_text_and_proto_of_a_module_are_the_same(name: str) -> None:
    """Real modules in both forms: nothing differs, not even the spelling."""
    answer = diff(load(PROTOS / f"{name}.txt"), load(PROTOS / f"{name}.pb"))
    assert (answer.changes, answer.same_communication) == ((), True)
    assert len(answer.before.collectives) == len(answer.after.collectives) > 0


@pytest.mark.corpus
def test_lists_of_modules_without_a_schedule(corpus: Path) -> None:
    """A text lists functions in another order than a proto: where data allow both, nothing has moved."""
    base = corpus / "jax-0.10.2" / "tagged_2x4.before"
    answer = diff(load(base.with_suffix(".before.txt")), load(base.with_suffix(".before.pb")))
    assert (answer.changes, answer.same_communication) == ((), True)
    assert any("schedule" in note for note in answer.notes)
