"""Text and proto of one module give the same rows; and the quick look at a proto misses nothing that a slow one sees."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commlens.hlo import Module, discover, load
from commlens.hlo.proto.opcode_scan import COMMUNICATING_OPCODES, find_candidates
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from commlens.topology import IotaReplicaGroupList
from proto_modules import FAR, all_reduce, instruction, module, shape
from strategies import iota_groups, mesh_groups, meshes

if TYPE_CHECKING:
    from commlens.hlo import CallGraph, Site

PROTOS = Path(__file__).parents[1] / "data" / "protos"
PAIRED = sorted(path for path in PROTOS.glob("*.pb") if path.with_suffix(".txt").exists())
OPCODES = [
    *sorted(COMMUNICATING_OPCODES),
    "add",
    "while",
    "custom-call",
    "reduce",
    "all-gather-done",
    "opcode-of-tomorrow",
]
DEVICES = 8


def row(site: Site, graph: CallGraph, *, metadata: bool) -> tuple[object, ...]:
    """Return all that a site says but its line."""
    signature = site.signature
    return (
        site.name,
        site.computation_name,
        site.channel_id,
        signature.opcode,
        signature.is_async,
        tuple(map(str, signature.operand_shapes)),
        tuple(map(str, signature.result_shapes)),
        str(signature.groups),
        str(signature.pairs),
        signature.use_global_device_ids,
        signature.constrain_layout,
        signature.dimensions,
        signature.token_operands,
        signature.is_host_transfer,
        signature.via,
        tuple(sorted(signature.frontend_attributes.items())),
        graph.executions(site.computation_name),
        graph.conditionals(site.computation_name),
        (site.op_name, site.source) if metadata else None,
    )


def rows(loaded: Module, *, metadata: bool = True) -> Counter[tuple[object, ...]]:
    """Return all rows of a module, in any order: text stands as scheduled, a proto by id."""
    found = discover(loaded)
    assert found.unread == ()
    return Counter(row(site, found.call_graph, metadata=metadata) for site in found.sites)


def assert_same_rows(text: Path, proto: Path) -> None:
    """Compare two files; a text that was printed without metadata cannot have what a proto says of it."""
    printed = load(text)
    metadata = b"metadata=" in printed.to_bytes()
    assert rows(printed, metadata=metadata) == rows(load(proto), metadata=metadata)


@pytest.mark.parametrize("proto", PAIRED, ids=lambda path: path.stem)
def test_text_and_proto_of_one_module_give_the_same_rows(proto: Path) -> None:
    """Modules of JAX 0.5 to 0.12: asynchronous, nested loops, sub-axes, iota lists inside field 87, send and recv."""
    assert_same_rows(proto.with_suffix(".txt"), proto)


@pytest.mark.corpus("jax-*/*.pb*", "torch_xla-*/*.pb*")
def test_text_and_proto_of_the_collection_give_the_same_rows(corpus_file: Path) -> None:
    """The same over every program of the collection."""
    stem = corpus_file.name.split(".pb")[0]
    (text,) = (path for path in corpus_file.parent.glob(f"{stem}.txt*") if path.name.split(".txt")[0] == stem)
    assert_same_rows(text, corpus_file)


@pytest.mark.corpus
def test_public_protos_are_read(corpus: Path) -> None:
    """A Neuron module, one from a TPU trace, and one deep inside the text form of a compiled executable."""
    neuron = discover(load(corpus / "public" / "27_nxd_dummy_nokernel.hlo.pb"))
    assert [(site.name, str(site.signature.groups)) for site in neuron.sites] == [("all-reduce.18", "{{0,1}}")]
    tpu = load(corpus / "public" / "37_xprof_tpu_jit_f_nocoll.hlo.pb")
    assert (discover(tpu).sites, tpu.replica_count, tpu.num_partitions) == ((), 1, 8)
    compiled = load(corpus / "public" / "47_xla_gpu_aot_reducescatter.pbtxt")
    assert (compiled.name, compiled.replica_count, compiled.num_partitions) == ("test", 2, 1)
    (site,) = discover(compiled).sites
    assert (site.name, site.signature.opcode, site.signature.is_async) == (
        "reduce-scatter-start",
        "reduce-scatter",
        True,
    )


HEADER = """HloModule generated, num_partitions=8

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  p = f32[64,64]{1,0} parameter(0)
"""


@st.composite
def group_texts(draw: st.DrawFn) -> tuple[str, int]:
    """Make a replica group list over eight devices in one of its spellings, and the size of its groups."""
    made = draw(st.one_of(iota_groups(DEVICES), meshes(DEVICES).flatmap(mesh_groups)))
    size = made.num_devices_per_group or 1
    explicit = not isinstance(made, IotaReplicaGroupList) and size == 1  # XLA reads no mesh with such groups
    return str(made.to_list() if explicit or draw(st.booleans()) else made), size


@st.composite
def lines(draw: st.DrawFn, number: int) -> str:
    """Make one collective that XLA's reader accepts."""
    groups, size = draw(group_texts())
    channel = draw(st.one_of(st.just(""), st.integers(1, 2**40).map(lambda each: f", channel_id={each}")))
    flag = ", use_global_device_ids=true" if channel and draw(st.booleans()) else ""
    tags = draw(
        st.sampled_from(["", ', frontend_attributes={k="v,{}",t="1"}', ', metadata={op_name="a/b" source_line=3}'])
    )
    stated = f"{channel}, replica_groups={groups}"
    match draw(st.sampled_from(["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute"])):
        case "all-reduce":
            return f"  x{number} = f32[64,64]{{1,0}} all-reduce(p){stated}{flag}, to_apply=add{tags}"
        case "all-gather":
            result = f"f32[{64 * size},64]{{1,0}}"
            return f"  x{number} = {result} all-gather(p){stated}, dimensions={{0}}{flag}{tags}"
        case "reduce-scatter":
            result = f"f32[64,{64 // size}]{{1,0}}"
            return f"  x{number} = {result} reduce-scatter(p){stated}, dimensions={{1}}, to_apply=add{flag}{tags}"
        case "all-to-all":
            return f"  x{number} = f32[64,64]{{1,0}} all-to-all(p){stated}, dimensions={{0}}{tags}"
        case _:
            return f"  x{number} = f32[64,64]{{1,0}} collective-permute(p){channel}, source_target_pairs={{{{0,1}},{{1,0}}}}{tags}"


@pytest.mark.xla
@settings(max_examples=60)
@given(data=st.data(), count=st.integers(1, 6))
def test_what_xla_turns_into_a_proto_reads_like_its_text(data: st.DataObject, count: int) -> None:
    """Generated collectives in every spelling, through XLA's own reader and writer."""
    body = "\n".join(data.draw(lines(number)) for number in range(count))
    text = f"{HEADER}{body}\n  ROOT r = f32[64,64]{{1,0}} negate(p)\n}}\n"
    proto = import_module("jaxlib._hlo").hlo_module_from_text(text).as_serialized_hlo_module_proto()
    loaded = load(proto, partitions=8)
    assert sum(rows(loaded).values()) == count
    assert rows(loaded, metadata=False) == rows(load(text), metadata=False)


def test_a_large_computation_is_searched_where_ids_should_stand_and_then_as_a_whole() -> None:
    """Gaps between ids, users far from their operands, and an operand that does not exist."""
    many = [instruction("negate", number, [1], shape(number % 97)) for number in range(2, 9002)]
    far, near, missing, gap = (all_reduce(number) for number in (9002, 9003, 9004, 20_000))
    for made, operand in ((far, 500), (near, 9001), (missing, 9500), (gap, 9003)):
        made.operand_ids[0] = FAR + operand
    found = discover(load(module(*many, far, near, missing, gap).SerializeToString()))
    operands = {site.name: str(site.signature.operand_shapes[0]) for site in found.sites}
    assert operands == {"x9002": f"f32[{500 % 97}]", "x9003": f"f32[{9001 % 97}]", "x20000": "f32[8]"}
    assert [item.name for item in found.unread] == ["x9004"]


def test_a_large_computation_without_gaps_is_never_searched_as_a_whole() -> None:
    """A map of all ids would cost more than everything else together."""
    many = [instruction("negate", number, [1]) for number in range(2, 9002)]
    loaded = load(module(*many, all_reduce(9002), all_reduce(9003)).SerializeToString())
    assert len(discover(loaded).sites) == 2
    assert loaded.entry is not None
    assert "_heads" not in vars(loaded.entry)


def scrambled(message: schema.HloInstructionProto, order: list[int]) -> bytes:
    """Serialise the fields of an instruction in another order: field number ``order[i]`` before ``order[i + 1]``."""
    parts: list[bytes] = []
    for number in order:
        one = schema.HloInstructionProto()
        name = schema.HloInstructionProto.DESCRIPTOR.fields_by_number[number].name
        if name in {field.name for field, _ in message.ListFields()}:
            one.MergeFrom(message)
            for field, _ in message.ListFields():
                if field.name != name:
                    one.ClearField(field.name)
            parts.append(one.SerializeToString())
    return b"".join(parts)


@st.composite
def encoded_instructions(draw: st.DrawFn) -> bytes:
    """Make an instruction with any opcode, a name of any length, and its fields in any order."""
    message = instruction(draw(st.sampled_from(OPCODES)), draw(st.integers(1, 2**33)), [1])
    message.name = draw(st.one_of(st.binary(max_size=20), st.integers(100, 400).map(lambda length: b"n" * length)))
    return scrambled(message, draw(st.permutations([1, 2, 3, 35, 36])))


@given(instructions=st.lists(encoded_instructions(), max_size=8), damaged=st.lists(st.binary(max_size=4), max_size=2))
def test_the_quick_look_sees_what_a_slow_one_sees(instructions: list[bytes], damaged: list[bytes]) -> None:
    """Every collective is among the candidates, with its position; decoding everything shows which those are."""
    computation = schema.HloComputationOutline(instructions=[*instructions, *damaged])
    found = {each.position: each.opcode for found in find_candidates([computation]) for each in found.instructions}
    quiet = {"add", "reduce", "all-gather-done"}
    for position, data in enumerate(instructions):
        opcode = schema.HloInstructionProto.FromString(data).opcode.decode()
        assert found.get(position, opcode) == opcode
        assert position in found or opcode in quiet
