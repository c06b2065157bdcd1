"""Small modules that communicate, and how two of them compare, for the tests of ``diff``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from commlens.analysis import diff
from commlens.hlo import load

if TYPE_CHECKING:
    from commlens.analysis import MeshLike, ModuleDiff

PROTOS = Path(__file__).resolve().parent / "data" / "protos"

REDUCERS = """
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

sum.2 {
  a = f32[] parameter(1)
  b = f32[] parameter(0)
  ROOT c = f32[] add(a, b)
}

larger {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] maximum(x, y)
}

mean {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  s = f32[] add(x, y)
  h = f32[] constant(0.5)
  ROOT m = f32[] multiply(s, h)
}

mean.9 {
  u = f32[] parameter(0)
  v = f32[] parameter(1)
  w = f32[] add(u, v)
  z = f32[] constant(0.5)
  ROOT m = f32[] multiply(w, z)
}

less {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] subtract(x, y)
}

less.1 {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] subtract(y, x)
}

third {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  s = f32[] add(x, y)
  h = f32[] constant(0.3)
  ROOT m = f32[] multiply(s, h)
}
"""

FLAT = "use_global_device_ids=true"


def text_of(*lines: str, header: str = "num_partitions=4", before: str = "") -> str:
    """Return a module with operands ``p`` (f32[8]) and ``q`` (f32[16])."""
    body = "\n".join(f"  {line}" for line in ("p = f32[8] parameter(0)", "q = f32[16] parameter(1)", *lines))
    return f"HloModule m{', ' if header else ''}{header}\n{REDUCERS}\n{before}\nENTRY e {{\n{body}\n}}\n"


def compare(before: str, after: str, mesh: MeshLike | None = None) -> ModuleDiff:
    """Compare two texts."""
    return diff(load(before), load(after), mesh)


def kinds(answer: ModuleDiff) -> list[str]:
    """Return the kinds of changes that are not of the spelling."""
    return [change.kind for change in answer.changes if change.kind != "spelling"]


def reduce(groups: str = "{{0,1},{2,3}}", *, name: str = "r", channel: int = 1, to: str = "add") -> str:
    """Return an all-reduce of ``p``."""
    return f"{name} = f32[8] all-reduce(p), channel_id={channel}, replica_groups={groups}, {FLAT}, to_apply={to}"


def gather(groups: str = "{{0,1},{2,3}}", *, name: str = "g", channel: int = 2) -> str:
    """Return an all-gather of ``p``."""
    return f"{name} = f32[16] all-gather(p), channel_id={channel}, replica_groups={groups}, {FLAT}, dimensions={{0}}"


PERMUTE = "{} = f32[2] collective-permute(x), channel_id={}, source_target_pairs={}"
TWO_RINGS = "{{0,2},{2,4},{4,6},{6,0},{1,3},{3,5},{5,7},{7,1}}"


def permutes(*pairs: str) -> str:
    """Return a module of permutes of one value."""
    lines = [PERMUTE.format(f"p{number}", number + 1, each) for number, each in enumerate(pairs)]
    return text_of("x = f32[2] parameter(2)", *lines, header="num_partitions=8")


LOOP = """
cond {{
  c = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant({trips})
  ROOT l = pred[] compare(i, n), direction=LT
}}

body{suffix} {{
  b = (s32[], f32[8]) parameter(0)
  j = s32[] get-tuple-element(b), index=0
  p = f32[8] get-tuple-element(b), index=1
  one = s32[] constant(1)
  k = s32[] add(j, one)
  {line}
  ROOT t = (s32[], f32[8]) tuple(k, {of})
}}
"""
INIT = ("zero = s32[] constant(0)", "init = (s32[], f32[8]) tuple(zero, p)")


def looping(line: str, *, trips: int = 3, suffix: str = "", of: str = "r") -> tuple[str, str]:
    """Return the computations of a loop with one line in its body, and the line that runs it."""
    before = LOOP.format(line=line, trips=trips, suffix=suffix, of=of)
    return before, f"w = (s32[], f32[8]) while(init), condition=cond, body=body{suffix}"


def in_a_loop(line: str, *, trips: int = 3, suffix: str = "") -> str:
    """Return a module that runs a line in a loop."""
    before, run = looping(line, trips=trips, suffix=suffix)
    return text_of(*INIT, run, before=before)


def in_a_call(line: str) -> str:
    """Return a module that runs a line in a function."""
    function = f"f {{\n  p = f32[8] parameter(0)\n  {line}\n  ROOT n = f32[8] negate(r)\n}}"
    return text_of("n = f32[8] call(p), to_apply=f", before=function)
