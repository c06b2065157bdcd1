"""Combined modules compute what they computed before: run on eight devices of JAX's CPU client, as text and as proto."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from combiner_modules import PASSES, combined, options_of
from commlens.hlo import load
from xla_cases import cases

if TYPE_CHECKING:
    from commlens import Module
    from commlens.hlo import PassResult

REDUCERS = """add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

larger {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(b, a)
}
"""

ALL_REDUCES = """ENTRY e {
  p = f32[4] parameter(0)
  q = f32[2,3] parameter(1)
  x = f32[4] all-reduce(p), ATTRIBUTES, to_apply=add
  use = f32[4] negate(x)
  m = f32[4] all-reduce(p), ATTRIBUTES, to_apply=larger
  late = f32[2,3] negate(q)
  y = f32[2,3] all-reduce(late), ATTRIBUTES, to_apply=sum
  z = f32[4] all-reduce(use), ATTRIBUTES, to_apply=add
  w = f32[2,3] all-reduce(q), ATTRIBUTES, to_apply=add
  n = f32[2,3] all-reduce(y), ATTRIBUTES, to_apply=larger
  ROOT t = (f32[4], f32[4], f32[2,3], f32[4], f32[2,3], f32[2,3], f32[4]) tuple(x, m, y, z, w, n, use)
}
"""

ALL_GATHERS = """ENTRY e {
  p = f32[2,3,2] parameter(0)
  q = f32[4] parameter(1)
  r = f32[2,3,2] parameter(2)
  x = f32[8,3,2] all-gather(p), replica_groups={{0,1,2,3},{7,6,5,4}}, dimensions={0}
  y = f32[2,12,2] all-gather(p), replica_groups={{0,1,2,3},{7,6,5,4}}, dimensions={1}
  a = f32[2,3,2] add(p, p), control-predecessors={x}
  z = f32[2,3,8] all-gather(r), replica_groups={{0,1,2,3},{7,6,5,4}}, dimensions={2}
  v = f32[2,12,2] all-gather(a), replica_groups={{0,1,2,3},{7,6,5,4}}, dimensions={1}
  w = f32[16] all-gather(q), replica_groups={{0,1,2,3},{7,6,5,4}}, dimensions={0}
  ROOT t = (f32[8,3,2], f32[2,12,2], f32[2,3,8], f32[2,12,2], f32[16]) tuple(x, y, z, v, w)
}
"""

REDUCE_SCATTERS = """body {
  s = (f32[4,8], f32[8,4], f32[]) parameter(0)
  p = f32[4,8] get-tuple-element(s), index=0
  q = f32[8,4] get-tuple-element(s), index=1
  i = f32[] get-tuple-element(s), index=2
  one = f32[] constant(1)
  j = f32[] add(i, one)
  x = f32[4,2] reduce-scatter(p), replica_groups=[2,4]<=[8], dimensions={1}, to_apply=add
  y = f32[2,4] reduce-scatter(q), replica_groups=[2,4]<=[8], dimensions={0}, to_apply=sum
  m = f32[4,2] reduce-scatter(p), replica_groups=[2,4]<=[8], dimensions={1}, to_apply=larger
  b = f32[4,2] add(x, m)
  f = f32[4,8] concatenate(b, b, b, b), dimensions={1}
  g = f32[8,4] concatenate(y, y, y, y), dimensions={0}
  ROOT t = (f32[4,8], f32[8,4], f32[]) tuple(f, g, j)
}

condition {
  s = (f32[4,8], f32[8,4], f32[]) parameter(0)
  i = f32[] get-tuple-element(s), index=2
  three = f32[] constant(3)
  ROOT c = pred[] compare(i, three), direction=LT
}

ENTRY e {
  p = f32[4,8] parameter(0)
  q = f32[8,4] parameter(1)
  zero = f32[] constant(0)
  s = (f32[4,8], f32[8,4], f32[]) tuple(p, q, zero)
  w = (f32[4,8], f32[8,4], f32[]) while(s), condition=condition, body=body
  u = f32[4,8] get-tuple-element(w), index=0
  v = f32[8,4] get-tuple-element(w), index=1
  a = f32[1,8] reduce-scatter(u), replica_groups=[2,4]<=[8], dimensions={0}, to_apply=add
  b = f32[2,4] reduce-scatter(v), replica_groups=[2,4]<=[8], dimensions={0}, to_apply=add
  c = f32[8,1] reduce-scatter(v), replica_groups=[2,4]<=[8], dimensions={1}, to_apply=add
  ROOT t = (f32[4,8], f32[8,4], f32[1,8], f32[2,4], f32[8,1]) tuple(u, v, a, b, c)
}
"""

UPSTREAM: list[Any] = [case.values for case in cases("combiner")]
Runnable = tuple[str, dict[str, Any], str, list[list[str]]]
REPLICAS = "replica_groups={{{{0,1,2,3}},{{4,5,6,7}}}}"
DEVICES = "channel_id={}, replica_groups=[4,2]<=[2,4]T(1,0), use_global_device_ids=true"


def all_reduces(attributes: str) -> str:
    """Return the module of all-reduces, each with a channel of its own if they have channels."""
    pieces = ALL_REDUCES.split("ATTRIBUTES")
    spelled = (attributes.format(number) for number in range(1, len(pieces)))
    return pieces[0] + "".join(chain.from_iterable(zip(spelled, pieces[1:], strict=True)))


SETS = [["x", "y"], ["m", "n"], ["z", "w"]]
RUNNABLE: list[Runnable] = [
    ("all-reduce", {}, all_reduces(REPLICAS), SETS),
    ("all-reduce", {}, all_reduces(DEVICES), SETS),
    (
        "all-reduce",
        {"threshold_count": 2, "threshold_bytes": 40},
        all_reduces(REPLICAS),
        SETS,
    ),
    ("all-gather", {}, ALL_GATHERS, [["x", "w"], ["y", "v"]]),
    ("all-gather", {"combine_by_dim": False}, ALL_GATHERS, [["x", "y", "z"], ["v", "w"]]),
    ("reduce-scatter", {}, REDUCE_SCATTERS, [["a", "b"]]),
    ("reduce-scatter", {"combine_by_dim": False}, REDUCE_SCATTERS, [["x", "y"], ["a", "b", "c"]]),
]


def text_of(runnable: Runnable) -> str:
    """Return a module as text."""
    return f"HloModule m, replica_count=8\n\n{REDUCERS}\n{runnable[2]}"


def given(module: Module) -> dict[str, str]:
    """Return a module as the child takes it."""
    content = module.to_bytes()
    return {"text": content.decode()} if module.format == "text" else {"proto": base64.b64encode(content).decode()}


def ask(script: str, question: object) -> Any:
    """Run a script of this folder."""
    child = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(script))],
        input=json.dumps(question),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert child.returncode == 0, child.stderr[-2000:]
    return json.loads(child.stdout)


@pytest.fixture(scope="module")
def protos() -> dict[str, bytes]:
    """Return all modules as XLA's own protos, by their text."""
    texts = [*map(text_of, RUNNABLE), *(given["hlo"] for given, _ in UPSTREAM)]
    found = ask("read_modules.py", [{"text": text} for text in texts])
    return {text: base64.b64decode(each["proto"]) for text, each in zip(texts, found, strict=True)}


def members_of(result: PassResult) -> list[list[str]]:
    """Return the members of the sets without the numbers that XLA adds to names."""
    return [[name.split(".")[0] for name in members] for members in combined(result)]


def modules_of(text: str, protos: dict[str, bytes]) -> list[Module]:
    """Load a module in both forms."""
    return [load(text), load(protos[text])]


@pytest.fixture(scope="module")
def observed(protos: dict[str, bytes]) -> list[list[list[Any]]]:
    """Run every module as it was and combined, as text and as proto: four results each."""
    questions: list[dict[str, str]] = []
    for runnable in RUNNABLE:
        kind, options, *_ = runnable
        for module in modules_of(text_of(runnable), protos):
            after = PASSES[kind](**options).run(module).module
            questions += [given(module), given(after)]
    answers = ask("run_modules.py", questions)
    return [answers[start : start + 4] for start in range(0, len(answers), 4)]


@pytest.mark.parametrize("number", range(len(RUNNABLE)), ids=[f"{kind} {options}" for kind, options, *_ in RUNNABLE])
def test_combined_modules_compute_the_same(
    number: int, observed: list[list[list[Any]]], protos: dict[str, bytes]
) -> None:
    """All outputs of all devices, to the last bit; and something was combined."""
    kind, options, _, expect = RUNNABLE[number]
    for module in modules_of(text_of(RUNNABLE[number]), protos):
        assert sorted(members_of(PASSES[kind](**options).run(module))) == sorted(expect)
    before, after, before_proto, after_proto = observed[number]
    assert before == after == before_proto == after_proto
    assert any(value != 0 for output in before for device in output for value in device)


def test_xla_reads_what_is_written(protos: dict[str, bytes]) -> None:
    """The cases as XLA's own protos have the same sets, and XLA reads every combined module of either form."""
    questions: list[dict[str, str]] = []
    for case, expect in UPSTREAM:
        for module in modules_of(case["hlo"], protos):
            result = PASSES[case["kind"]](**options_of(case)).run(module)
            assert members_of(result) == expect.get("combined_older_break_variant", expect["combined"])
            questions.append(given(result.module))
    answers = ask("read_modules.py", questions)
    assert len(answers) == 2 * len(UPSTREAM)
    for text, proto in zip(answers[::2], answers[1::2], strict=True):
        assert opcodes(text["text"]) == opcodes(proto["text"])


def opcodes(printed: str) -> list[str]:
    """Return the opcodes of a printed module, sorted: XLA may print computations in another order."""
    return sorted(re.findall(r" ([a-z][a-z\-]*)\(", printed))
