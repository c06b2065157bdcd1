"""Instructions of a proto of which hardly a byte is there: unread, and in nobody's way."""

from __future__ import annotations

import pytest

from commlens.hlo import Combine, EditError, SetChannelId, discover, load
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from commlens.neuron import PASSES, parse_passes
from proto_forms import edited, encoded
from proto_modules import all_reduce, instruction, module

STUMPS = [
    b"",
    b"\x0a",
    b"\x0a\x05",
    b"\x0a\x05x",
    b"\x0a\x00\x12",
    b"\x0a\x00\x12\x0a",
    b"\x0a\xff",
    b"\x12",
    b"\x0a\x7f\x12",
]


def with_stump(stump: bytes) -> bytes:
    """Return a module whose entry ends in an instruction of these bytes."""
    outline = schema.HloModuleOutline.FromString(
        module(all_reduce(2), all_reduce(3), instruction("add", 4, [2, 3])).SerializeToString()
    )
    outline.computations[1].instructions.append(stump)
    return outline.SerializeToString()


@pytest.mark.parametrize("stump", STUMPS, ids=bytes.hex)
def test_all_that_looks_at_names_and_opcodes(stump: bytes) -> None:
    """Collectives are found, names are given, neighbours are edited; the stump stays as it is."""
    loaded = load(with_stump(stump))
    assert [site.name for site in discover(loaded).sites] == ["x2", "x3"]
    assert [each.name for each in loaded.instructions_of({"all-reduce", "add"})] == ["x13", "x2", "x3", "x4"]
    assert next(loaded.fresh_names("x")) == "x.1"
    made = edited(loaded, SetChannelId(loaded.instruction("x2"), 5))
    assert encoded(made, 4) == stump
    combination = Combine((loaded.instruction("x2"), loaded.instruction("x3")), "c.1")
    if stump:
        with pytest.raises(EditError, match="expected a HloInstructionEdges"):
            loaded.edited([combination])
    else:
        assert edited(loaded, combination).instruction("c.1").opcode == "all-reduce"


@pytest.mark.parametrize("stump", STUMPS, ids=bytes.hex)
@pytest.mark.parametrize("spec", [each.name for each in PASSES])
def test_passes_work_around_it(stump: bytes, spec: str) -> None:
    """Or say what is in their way, in the module's own words."""
    (chosen,) = parse_passes(spec)
    result = chosen.run(load(with_stump(stump)), keep_going=True)
    assert schema.HloModuleOutline.FromString(result.module.to_bytes()).computations[1].instructions[-1] == stump
