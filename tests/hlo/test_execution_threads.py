"""The thread on which a computation runs, in every notation that can state it."""

from __future__ import annotations

import pytest
from google.protobuf import text_format

from commlens import load
from commlens.hlo import execution_thread
from commlens.hlo.proto.raw_message import RawMessage
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from proto_twin import proto_twin

TEXT = """side {
  ROOT q = f32[8] parameter(0)
}STATED

e {
  ROOT p = f32[8] parameter(0)
}

ENTRY main {
  a = f32[8] parameter(0)
  ROOT s = ((f32[8]), f32[8], u32[]) async-start(a), calls=e
}
"""


def contents(stated: str) -> dict[str, bytes]:
    """Return a module, whose computation ``side`` may state its thread, in every notation."""
    whole = TEXT.replace("STATED", stated and f', execution_thread="{stated}"')
    proto = proto_twin(load(TEXT.replace("STATED", "")))
    written = text_format.MessageToString(proto)
    if stated:
        proto.computations[0].MergeFromString(b"\x42" + bytes([len(stated)]) + stated.encode())
        written = written.replace("computations {\n", f'computations {{\n  execution_thread: "{stated}"\n', 1)
    return {"text": whole.encode(), "proto": proto.SerializeToString(), "proto in text form": written.encode()}


@pytest.mark.parametrize("stated", ["sparsecore", "host", "main", ""])
@pytest.mark.parametrize("notation", contents(""))
def test_a_computation_states_its_thread(notation: str, stated: str) -> None:
    """All others run on the main thread; an async-start that names no thread leads nowhere else."""
    module = load(contents(stated)[notation])
    found = {each.name: execution_thread(each) for each in module.computations}
    assert found == {"side": stated or "main", "e": "main", "main": "main"}


@pytest.mark.parametrize("notation", ["proto", "proto in text form"])
def test_a_thread_is_read_without_all_other_fields(notation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A computation may have a million instructions: they are not put together for the field beside them."""

    def refuse(message: RawMessage) -> dict[str, bytes]:
        raise AssertionError(message)

    module = load(contents("host")[notation])
    monkeypatch.setattr(RawMessage, "fields", refuse)
    assert [execution_thread(each) for each in module.computations] == ["host", "main", "main"]


def test_the_last_thread_that_is_stated_counts() -> None:
    """A field that may occur once and stands there twice has its last value, as protobuf has it."""
    proto = proto_twin(load(TEXT.replace("STATED", "")))
    data = proto.computations[0].SerializeToString() + b"\x42\x04side" + b"\x42\x04host"
    proto.computations[0].ParseFromString(data)
    module = load(proto.SerializeToString())
    assert execution_thread(module.computations[0]) == "host"


def test_what_a_start_says_counts_where_the_computation_says_nothing() -> None:
    """Of a proto, whose computations and starts may state different threads, the computation's own wins."""
    proto = proto_twin(load(TEXT.replace("STATED", "")))
    [start] = [each for each in proto.computations[2].instructions if each.opcode == b"async-start"]
    start.async_execution_thread = b"sparsecore"
    module = load(proto.SerializeToString())
    assert [execution_thread(each) for each in module.computations] == ["main", "sparsecore", "main"]
    proto.computations[1].MergeFrom(schema.HloComputationProto.FromString(b"\x42\x04host"))
    module = load(proto.SerializeToString())
    assert [execution_thread(each) for each in module.computations] == ["main", "host", "main"]
