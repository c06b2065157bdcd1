"""Values of constants in protos: spelled as XLA prints them, or not at all."""

from __future__ import annotations

import base64
import json
import random
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import text_format

from commlens.hlo import load
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from proto_modules import instruction, module, shape

ORACLE = Path(__file__).parents[1] / "oracles" / "read_modules.py"
BITS = {
    **{f"{sign}{width}": width for sign in "su" for width in (8, 16, 32, 64)},
    **{"f16": 16, "bf16": 16, "f32": 32, "f64": 64},
}
IN_BYTES = {"s8", "u8", "s16", "u16", "f16", "bf16"}
CODES = {"s32": "i", "u32": "I", "s64": "q", "u64": "Q", "f32": "f", "f64": "d"}
USUAL_NANS = {"f16": 0x7E00, "bf16": 0x7FC0, "f32": 0x7FC00000, "f64": 0x7FF8 << 48}
EXPONENTS = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}
"""By type, how many bits stand behind the exponent."""


def sent_to_xla(*cases: dict[str, str]) -> list[dict[str, str]]:
    """Let XLA read modules, in a process of its own."""
    done = subprocess.run(
        [sys.executable, str(ORACLE)], input=json.dumps(cases), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def drawn(draw: random.Random, element_type: str) -> int:
    """Return the bits of a number: any, small, or one at an end of its range; of the NaNs only the usual ones."""
    width = BITS[element_type]
    bits = draw.choice(
        (draw.getrandbits(width), draw.getrandbits(width) >> draw.randrange(width), 0, 1, (1 << width) - 1)
    )
    if element_type not in EXPONENTS:
        return bits
    if draw.random() < 0.4:  # decimal fractions, whole numbers
        number = draw.choice((draw.randint(-300, 300), draw.randint(-300, 300) / 10, 10.0 ** draw.randint(-4, 4)))
        bits = int.from_bytes(struct.pack("<d" if width == 64 else "<f", number), "little") >> (
            16 if element_type == "bf16" else 0
        )
        if element_type == "f16":
            bits = int.from_bytes(struct.pack("<e", number), "little")
    sign, magnitude = bits >> (width - 1) << (width - 1), bits & ((1 << (width - 1)) - 1)
    infinity = (1 << (width - 1)) - (1 << EXPONENTS[element_type])
    return sign | (USUAL_NANS[element_type] if magnitude > infinity else magnitude)


def fill(literal: schema.LiteralProto, element_type: str, numbers: list[int]) -> None:
    """Put numbers, given by their bits, into a literal."""
    size = BITS[element_type] // 8
    data = b"".join(bits.to_bytes(size, "little") for bits in numbers)
    field = f"{element_type}s"
    literal.ClearField(field)  # pyright: ignore[reportArgumentType] - one of its fields
    if element_type in IN_BYTES:
        setattr(literal, field, data)
    else:
        getattr(literal, field).extend(struct.unpack(f"<{len(numbers)}{CODES[element_type]}", data))


@pytest.mark.xla
@pytest.mark.parametrize("element_type", BITS)
def test_numbers_are_spelled_as_xla_prints_them(element_type: str) -> None:
    """Scalars and arrays of ten, beyond which XLA leaves values out."""
    count, draw = 60, random.Random(element_type)
    lines = [f"  a{number} = {element_type}[10] constant({{{', '.join('0' * 10)}}})" for number in range(count)]
    lines += [f"  b{number} = {element_type}[] constant(0)" for number in range(count)]
    text = "\n".join(["HloModule m", "ENTRY e {", *lines, "  ROOT t = () tuple()", "}", ""])
    [template] = sent_to_xla({"text": text})
    message = schema.HloModuleProto.FromString(base64.b64decode(template["proto"]))
    for each in message.computations[0].instructions:
        if each.opcode == b"constant":
            numbers = 10 if each.literal.shape.dimensions else 1
            fill(each.literal, element_type, [drawn(draw, element_type) for _ in range(numbers)])
    data = message.SerializeToString()
    [printed] = sent_to_xla({"proto": base64.b64encode(data).decode()})
    expected = dict(re.findall(r"%(\w+) = .* constant\((.*)\)", printed["text"]))
    assert len(expected) == 2 * count
    loaded = load(data)
    assert {name: loaded.instruction(name).raw_attribute("literal") for name in expected} == expected
    if element_type in CODES:  # a text form has no sign before a nan
        expected = {name: value.replace("-nan", "nan") for name, value in expected.items()}
    loaded = load(text_format.MessageToString(message))
    assert {name: loaded.instruction(name).raw_attribute("literal") for name in expected} == expected


def literal_of(literal: schema.LiteralProto) -> str | None:
    """Return a literal as its constant spells it."""
    constant = instruction("constant", 2)
    constant.literal.CopyFrom(literal)
    return load(module(constant).SerializeToString()).instruction("x2").raw_attribute("literal")


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        pytest.param(schema.LiteralProto(shape=shape(3, element_type=schema.S32), s32s=[0, -1, 2]), "{0, -1, 2}"),
        pytest.param(schema.LiteralProto(shape=shape(1, element_type=schema.S32), s32s=[4]), "{4}"),
        pytest.param(schema.LiteralProto(shape=shape(0, element_type=schema.S32)), "{}", id="none"),
        pytest.param(schema.LiteralProto(shape=shape(2, element_type=schema.PRED), preds=[True, False]), "{1, 0}"),
        pytest.param(schema.LiteralProto(shape=shape(2, element_type=schema.U16), u16s=b"\1\0\0\1"), "{1, 256}"),
        pytest.param(schema.LiteralProto(shape=shape(2), f32s=[0.1, -0.0]), "{0.1, -0}"),
        pytest.param(schema.LiteralProto(shape=shape(), f32s=[1e30]), "1e+30"),
        pytest.param(schema.LiteralProto(shape=shape(), f32s=[1, 2]), None, id="more values than there are"),
        pytest.param(schema.LiteralProto(shape=shape(3), f32s=[1, 2]), None, id="fewer values than there are"),
        pytest.param(schema.LiteralProto(shape=shape(2, element_type=schema.U16), u16s=b"\1\0\0"), None, id="cut"),
        pytest.param(schema.LiteralProto(shape=shape(-1), f32s=[]), None, id="a negative size"),
        pytest.param(schema.LiteralProto(shape=shape(1, 1), f32s=[1]), None, id="two dimensions"),
        pytest.param(schema.LiteralProto(shape=shape(1), s32s=[4]), None, id="numbers of another type"),
        pytest.param(schema.LiteralProto(shape=shape(1, element_type=schema.S4)), None, id="a type that is not read"),
        pytest.param(schema.LiteralProto(s32s=[4]), None, id="no shape, which XLA refuses"),
        pytest.param(
            schema.LiteralProto(shape=shape(element_type=schema.F16), f16s=b"\1\x7e"), None, id="a NaN with a message"
        ),
        pytest.param(
            schema.LiteralProto(shape=shape(element_type=schema.BF16), bf16s=b"\xc1\xff"), None, id="another one"
        ),
        pytest.param(
            schema.LiteralProto(shape=shape(2, element_type=schema.F16), f16s=b"\0\xfe\1\x7e"), None, id="one of two"
        ),
        pytest.param(
            schema.LiteralProto(shape=shape(2, element_type=schema.BF16), bf16s=b"\xc0\x7f\xc0\xff"), "{nan, -nan}"
        ),
    ],
)
def test_what_is_spelled(literal: schema.LiteralProto, expected: str | None) -> None:
    """Scalars and arrays of one dimension that hold what their shape says."""
    assert literal_of(literal) == expected


@pytest.mark.parametrize(("size", "is_spelled"), [(1 << 16, True), ((1 << 16) + 1, False)])
def test_weights_are_not_spelled(size: int, is_spelled: bool) -> None:
    """Tables with a place for each device are."""
    literal = schema.LiteralProto(shape=shape(size, element_type=schema.U8), u8s=bytes(size))
    assert literal_of(literal) == (f"{{{', '.join('0' * size)}}}" if is_spelled else None)
