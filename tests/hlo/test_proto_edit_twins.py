"""Edits of protos held against protobuf's own classes, real programs, and the text of the same program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.hlo import SetChannelId, SetFrontendAttribute, discover, load
from commlens.hlo.proto.instruction import ProtoInstruction
from commlens.hlo.proto.opcode_scan import COMMUNICATING_OPCODES
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from commlens.hlo.proto.wire import BYTES, VARINT, read_fields
from proto_forms import edited, encoded
from proto_modules import all_reduce, attributes, module, tagged

if TYPE_CHECKING:
    from commlens.hlo import Edit

PROTOS = sorted((Path(__file__).parents[1] / "data" / "protos").glob("*.pb"))

WRAPPED = {"all_to_all_start.5", "reduce_scatter_start.9"}
"""Collectives whose channel stands in a computation of its own in a proto, and in the line of the start in a text."""


UNKNOWN = st.builds(tagged, st.sampled_from([1000, 1001, 5000]), st.just(BYTES), st.binary(max_size=5)) | st.builds(
    tagged, st.sampled_from([1000, 7000]), st.just(VARINT), st.sampled_from([b"\x00", b"\x7f", b"\xff\x01"])
)


@st.composite
def instructions(draw: st.DrawFn, number: int) -> bytes:
    """An all-reduce whose fields stand in any order, with fields between them that nobody knows."""
    message = all_reduce(number)
    message.channel_id = draw(st.integers(0, 300))
    message.constrain_layout = draw(st.booleans())
    message.frontend_attributes.CopyFrom(
        attributes(draw(st.dictionaries(st.sampled_from("abkz"), st.text(max_size=4))))
    )
    data = message.SerializeToString()
    fields = [data[each.outset : each.end] for each in read_fields(data, 0, len(data))]
    fields += draw(st.lists(UNKNOWN, max_size=4))
    return b"".join(draw(st.permutations(fields)))


@given(
    made=st.integers(3, 6).flatmap(lambda end: st.tuples(*map(instructions, range(2, end)))),
    edits=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from("abk"), st.text(max_size=3), st.integers(1, 2**63 - 1))
    ),
    around=st.lists(UNKNOWN, min_size=2, max_size=2),
)
def test_random_edits_are_what_protobuf_would_write(
    made: tuple[bytes, ...], edits: list[tuple[int, str, str, int]], around: list[bytes]
) -> None:
    """The message is the one that protobuf's own classes give; fields that nobody knows keep values and order."""
    whole = module(*(all_reduce(2 + number) for number in range(len(made))))
    outline = schema.HloModuleOutline.FromString(around[0] + whole.SerializeToString())
    outline.computations[1].MergeFromString(around[1])
    for number, data in enumerate(made):
        outline.computations[1].instructions[1 + number] = data
    loaded = load(outline.SerializeToString())
    entered = loaded.entry
    assert entered is not None
    views = {each.position: each for each in entered.instructions if isinstance(each, ProtoInstruction)}
    expected = schema.HloModuleProto.FromString(outline.SerializeToString())
    wanted: list[Edit] = []
    for number, key, value, channel in {each[0] % len(made): each for each in edits}.values():
        position = 1 + number % len(made)
        wanted += [SetFrontendAttribute(views[position], key, value), SetChannelId(views[position], channel)]
        message = expected.computations[1].instructions[position]
        message.channel_id = channel
        _set(message.frontend_attributes, key.encode(), value.encode())
    result = loaded.edited(wanted)
    assert schema.HloModuleProto.FromString(result.to_bytes()) == expected
    for position in range(1, 1 + len(made)):
        assert unknown(encoded(result, position)) == unknown(outline.computations[1].instructions[position])
    assert (result is loaded) == (result.to_bytes() == loaded.to_bytes())


def _set(message: schema.FrontendAttributes, key: bytes, value: bytes) -> None:
    """Set an attribute with loops: in its place, else before the first greater key."""
    for each in message.map:
        if each.key == key:
            each.value = value
            return
    place = 0
    while place < len(message.map) and not message.map[place].key > key:
        place += 1
    rest = [schema.FrontendAttributes.MapEntry(key=each.key, value=each.value) for each in message.map[place:]]
    del message.map[place:]
    message.map.add(key=key, value=value)
    message.map.extend(rest)


def unknown(data: bytes) -> list[bytes]:
    """Return the fields that nobody knows, in their order."""
    return [data[each.outset : each.end] for each in read_fields(data, 0, len(data)) if each.number >= 1000]


@pytest.mark.parametrize("path", PROTOS, ids=[path.stem for path in PROTOS])
def test_protos_of_real_programs(path: Path) -> None:
    """Every instruction gets a channel, or an attribute: nothing else differs. Those that communicate read back so."""
    loaded = load(path)
    instructions = [each for computation in loaded.computations for each in computation.instructions]
    made = edited(loaded, *(SetFrontendAttribute(each, "zz", "1") for each in instructions))
    assert all(
        each.frontend_attributes["zz"] == "1" for computation in made.computations for each in computation.instructions
    )
    found = list(loaded.instructions_of(COMMUNICATING_OPCODES))
    ids = [each.channel_id for each in found]
    made = edited(loaded, *(SetChannelId(each, 500 + number) for number, each in enumerate(found)))
    found = list(made.instructions_of(COMMUNICATING_OPCODES))
    assert [each.channel_id for each in found] == [500 + number for number in range(len(found))]
    back = edited(made, *(SetChannelId(each, number or 1) for each, number in zip(found, ids, strict=True)))
    assert (back.to_bytes() == path.read_bytes()) == (None not in ids)


def test_text_and_proto_of_a_module_read_the_same_afterwards() -> None:
    """The same edits on both: channel ids and frontend attributes are the same."""
    pairs = [(path, path.with_suffix(".txt")) for path in PROTOS if path.with_suffix(".txt").exists()]
    assert pairs
    for pair in pairs:
        read: list[dict[str, tuple[int | None, dict[str, str]]]] = []
        for loaded in map(load, pair):
            plain = [site for site in discover(loaded).sites if site.name not in WRAPPED]
            sites = sorted(plain, key=lambda site: site.name)
            edits: list[Edit] = [SetChannelId(site.instruction, 9 + number) for number, site in enumerate(sites)]
            edits += [SetFrontendAttribute(site.instruction, "stream_id", "3") for site in sites]
            made = loaded.edited(edits)
            read.append(
                {
                    site.name: (site.channel_id, dict(site.instruction.frontend_attributes))
                    for site in discover(made).sites
                    if site.name not in WRAPPED
                }
            )
        assert read[0] == read[1]
        assert read[0]
