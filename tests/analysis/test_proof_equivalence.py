from __future__ import annotations

import json

import pytest

from commlens import load
from commlens.analysis import Comparison, Counts, ResultDifference, counts_of_both, uncounted_loops
from commlens.errors import InputError

LOOP = """HloModule m, num_partitions=2

cond {{
  s = (s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({rounds})
  ROOT c = pred[] compare(i, n), direction=LT
}}

body {{
  s = (s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  o = s32[] constant(1)
  j = s32[] add(i, o)
  ROOT t = (s32[]) tuple(j)
}}

ENTRY e {{
  z = s32[] {start}
  t = (s32[]) tuple(z)
  w = (s32[]) while(t), condition=cond, body=body
  ROOT g = s32[] get-tuple-element(w), index=0
}}
"""


def loop(rounds: int, start: str = "constant(0)") -> str:
    """Write a module with one loop."""
    return LOOP.format(rounds=rounds, start=start)


def test_counts_are_those_of_both() -> None:
    """Two modules with the same counts run with these."""
    assert counts_of_both(load(loop(3)), load(loop(5)), most_devices=2) == Counts(1, 2)


@pytest.mark.parametrize(
    ("first", "second", "fact"),
    [
        (loop(3), loop(3).replace("num_partitions=2", "num_partitions=4"), "expected 1 x 2 .* found 1 x 4"),
        (loop(3), loop(3).replace(", num_partitions=2", ""), "--replicas and --partitions"),
        (loop(3).replace("num_partitions=2", "replica_count=2, num_partitions=2"), loop(3), "expected 2 x 2"),
    ],
)
def test_counts_have_to_be_the_same(first: str, second: str, fact: str) -> None:
    """Results are compared device by device, so there must be as many devices."""
    with pytest.raises(InputError, match=fact):
        counts_of_both(load(first), load(second), most_devices=64)


def test_there_is_a_limit_to_devices() -> None:
    """A module for more devices than may run is refused."""
    with pytest.raises(InputError, match="at most 1 devices"):
        counts_of_both(load(loop(3)), load(loop(3)), most_devices=1)


def test_there_is_a_limit_to_rounds() -> None:
    """A loop that makes too many rounds is refused with its place; what cannot be counted has the time limit."""
    short, long = load(loop(10_000)), load(loop(10_001))
    assert counts_of_both(short, short, most_devices=2)
    with pytest.raises(InputError, match="at most 10000 rounds .* found 10001 of w") as caught:
        counts_of_both(short, long, most_devices=2)
    assert caught.value.line == 21
    assert counts_of_both(short, long, most_devices=2, most_rounds=10_001)
    assert counts_of_both(short, load(loop(10_001, "parameter(0)")), most_devices=2)


def test_constants_that_a_dump_left_out_are_refused() -> None:
    """XLA would take them for zeros and compute something else."""
    left_out = loop(3).replace("o = s32[] constant(1)", "k = s32[99] constant({...})\n  o = s32[] constant(1)")
    with pytest.raises(InputError, match="left out") as caught:
        counts_of_both(load(loop(3)), load(left_out), most_devices=2)
    assert caught.value.line == 13


def test_the_answer_as_json() -> None:
    """Keys that say nothing are left out; one result that differs is enough."""
    same, apart = ResultDifference(0, 0, None), ResultDifference(1, None, "device 0: 1 and 2")
    void = ResultDifference(2, 0, None, finite=False)
    answer = Comparison(("a", "b"), Counts(1, 2), (same, apart, void), 16, "twin")
    assert json.loads(json.dumps(answer.as_dict())) == {
        "modules": ["a", "b"],
        "replicas": 1,
        "partitions": 2,
        "outputs": [
            {"index": 0, "max_ulp": 0},
            {"index": 1, "differs": "device 0: 1 and 2"},
            {"index": 2, "max_ulp": 0, "finite": False},
        ],
        "agree": False,
        "runtime": "twin",
        "notes": [],
    }
    assert Comparison(("a", "b"), Counts(1, 2), (same, void), 16, "twin").agree
    assert Comparison(("a", "b"), Counts(1, 2), (void, void), 16, "twin").agree is None
    assert Comparison(("a", "b"), Counts(1, 2), (void, apart), 16, "twin").agree is False


def test_loops_that_cannot_be_counted() -> None:
    """They are named, however long their names are."""
    assert uncounted_loops(load(loop(3))) is None
    unknown = loop(3, "parameter(0)")
    assert "rounds of loop w cannot be counted" in str(uncounted_loops(load(unknown)))
    long = unknown.replace("w =", "w" * 5000 + " =").replace("(w)", "(" + "w" * 5000 + ")")
    assert len(str(uncounted_loops(load(long)))) < 250
