"""A module for the tests of ``commlens opt``, in all its forms, and what its passes make of it."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from importlib import import_module
from typing import TYPE_CHECKING, Any

from commlens import load
from commlens.neuron import NeuronCollectiveStreamIdInjector
from proto_twin import proto_twin

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Outcome

TEXT = """HloModule step, replica_count=1, num_partitions=4

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  p = f32[8] parameter(0)
  g = f32[16] all-gather(p), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, dimensions={0}
  s = f32[8] reduce-scatter(g), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, dimensions={0}, to_apply=add
  ROOT r = f32[8] all-reduce(s), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add
}
"""
SECOND = TEXT.replace("HloModule step", "HloModule tail")
QUIET = "HloModule quiet\n\nENTRY main {\n  ROOT p = f32[8] parameter(0)\n}\n"

CHECK = "collective-stream-id-checker"
STAMP = "aws_neuron_collective_stream_id_injector"
NUMBER = "neuron_unique_channel_id_enforcer"
CONVERT = "convert-collectives-to-custom-call"


def zstd(data: bytes) -> bytes:
    """Compress with zstd."""
    return import_module("zstandard").ZstdCompressor().compress(data)


COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": lambda data: gzip.compress(data, mtime=0),
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": zstd,
}


def binary() -> bytes:
    """Return the module as a binary proto."""
    return proto_twin(load(TEXT)).SerializeToString()


def text_form() -> bytes:
    """Return the module as the text form of a proto."""
    from google.protobuf import text_format

    return text_format.MessageToString(proto_twin(load(TEXT))).encode()


def stamped(text: str = TEXT) -> str:
    """Return a text as the injector leaves it."""
    return NeuronCollectiveStreamIdInjector().run(load(text)).module.to_bytes().decode()


def folder_of(file: Path) -> list[str]:
    """Return what lies beside a file."""
    return sorted(path.name for path in file.parent.iterdir())


def answered(outcome: Outcome) -> dict[str, Any]:
    """Return the JSON that was printed."""
    assert outcome.code == 0, outcome
    return json.loads(outcome.out)
