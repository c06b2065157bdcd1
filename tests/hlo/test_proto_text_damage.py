"""Damaged text forms of protos: refused in our own words, or read as what protobuf reads, and edited as that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from google.protobuf import text_format

from commlens.errors import CommlensError
from commlens.hlo import discover, load_all
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from commlens.neuron import NeuronAllReduceCombiner, NeuronCollectiveStreamIdInjector, NeuronUniqueChannelIdEnforcer
from fuzz_inputs import damaged
from proto_modules import all_reduce, containers, module

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from commlens.hlo import Pass

PASSES: tuple[Pass, ...] = (
    NeuronCollectiveStreamIdInjector(),
    NeuronUniqueChannelIdEnforcer(),
    NeuronAllReduceCombiner(),
)
REAL = Path(__file__).parents[1] / "data" / "protos" / "jax-0.5.3.psum_scatter_2x4.before.pb"


def seeds() -> list[bytes]:
    """Return text forms, small ones and one of a real program."""
    found: list[Message] = [module(all_reduce(2), all_reduce(3))] * 4
    found += [getattr(schema, name).FromString(data) for name, data in containers().items()]
    found.append(schema.HloModuleProto.FromString(REAL.read_bytes()))
    return [text_format.MessageToString(each).encode() for each in found]


@pytest.mark.parametrize("chosen", PASSES, ids=str)
def test_damaged_text_forms(chosen: Pass) -> None:
    """What is edited reads back with nothing newly unread, and without an edit no byte differs."""
    texts, edited = seeds(), 0
    for number in range(250):
        content = damaged(texts, number)
        try:
            modules = load_all(content)
            result = chosen.run(modules[0], keep_going=bool(number % 2))
            found = discover(modules[0])
        except CommlensError:
            continue
        assert modules[0].to_bytes() == content or modules[0].format == "text"
        again = load_all(result.module.to_bytes())
        assert len(again) == len(modules)
        assert sum(len(each.unread) for each in again) <= sum(len(each.unread) for each in modules)
        assert result.modified == (result.module.to_bytes() != content)
        assert len(discover(again[0]).sites) <= len(found.sites)
        edited += result.modified
    assert edited > 5
