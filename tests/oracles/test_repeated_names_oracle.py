"""Names in protos before XLA's reader: which ones it wants to differ, and that new ones do."""

from __future__ import annotations

from commlens import load
from commlens.hlo import Combine, EditError, SetChannelId
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from rereading import reread

TEXT = """HloModule m, is_scheduled=true, num_partitions=2

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

mul {
  d = f32[] parameter(0)
  e = f32[] parameter(1)
  ROOT f = f32[] multiply(d, e)
}

ENTRY main {
  p = f32[8,4] parameter(0)
  x = f32[8,4] all-reduce(p), channel_id=1, replica_groups={{0,1}}, to_apply=add
  y = f32[8,4] all-reduce(p), replica_groups={{0,1}}, to_apply=add
  z = f32[8,4] all-reduce(y), replica_groups={{0,1}}, to_apply=mul
  g = f32[16,4] all-gather(p), replica_groups={{0,1}}, dimensions={0}
  h = f32[8,8] all-gather(p), replica_groups={{0,1}}, dimensions={1}
  ROOT t = (f32[8,4], f32[8,4], f32[16,4], f32[8,8]) tuple(x, z, g, h)
}
"""
APART: dict[str, dict[str, str]] = {
    "as they are": {},
    "instruction like its computation": {"x": "main"},
    "instruction like another computation": {"x": "add"},
    "numbers": {"y": "x.01", "x": "x.1"},
}
ALIKE: dict[str, dict[str, str]] = {
    "two in one computation": {"y": "x"},
    "three in one computation": {"y": "x", "z": "x"},
    "with a number": {"x": "x.1", "y": "x.1"},
    "in two computations": {"x": "a"},
    "two computations": {"computation mul": "computation main"},
    "two computations, one the entry": {"computation main": "computation add"},
}


def read(sources: dict[str, bytes], xla_python: str) -> dict[str, bytes]:
    """Let XLA read modules; return the protos of those that it takes."""
    answers = reread({name: load(source) for name, source in sources.items()}, xla_python)
    assert not any(each.died for each in answers.values())
    return {name: each.proto for name, each in answers.items() if each.proto is not None}


def renamed(program: bytes, names: dict[str, str]) -> bytes:
    """Return the program with other names of instructions and computations."""
    message = schema.HloModuleProto.FromString(program)
    for computation in message.computations:
        old = f"computation {computation.name.decode()}"
        computation.name = names.get(old, old).removeprefix("computation ").encode()
        for each in computation.instructions:
            each.name = names.get(each.name.decode(), each.name.decode()).encode()
    return message.SerializeToString()


def is_edited(source: bytes, channel_id: int) -> bool:
    """Whether the all-reduce with a channel can be edited."""
    loaded = load(source)
    (found,) = (each for each in loaded.instructions_of({"all-reduce"}) if each.channel_id == channel_id)
    try:
        loaded.edited([SetChannelId(found, 7)])
    except EditError:
        return False
    return True


def test_xla_wants_the_names_that_an_edit_wants(xla_python: str) -> None:
    """What it refuses is not edited; what it reads is, though an instruction has the name of a computation."""
    (program,) = read({"": TEXT.encode()}, xla_python).values()
    sources = {case: renamed(program, names) for case, names in (APART | ALIKE).items()}
    assert list(read(sources, xla_python)) == list(APART)
    assert [case for case, source in sources.items() if is_edited(source, 1)] == list(APART)


def test_xla_reads_what_is_made_beside_names_like_the_new_ones(xla_python: str) -> None:
    """New instructions have names that no computation has, whatever those look like."""
    (program,) = read({"": TEXT.encode()}, xla_python).values()
    names = {
        "a": "transpose.1",
        "d": "transpose.3",
        "b": "get-tuple-element",
        "p": "get-tuple-element.5",
        "z": "all-gather.9",
    }
    loaded = load(renamed(program, names))
    g, h = loaded.instruction("g"), loaded.instruction("h")
    made = loaded.edited([Combine((g, h), next(loaded.fresh_names("all-gather")), dimension=1)])
    (known,) = read({"": made.to_bytes()}, xla_python).values()
    after = [each.name for computation in load(known).computations for each in computation.instructions]
    before = [each.name for computation in loaded.computations for each in computation.instructions]
    assert len(set(after)) == len(after)
    assert set(after) - set(before) == {"all-gather.10", "transpose.4", "get-tuple-element.6"}
