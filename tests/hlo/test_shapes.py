"""Shapes: reading, printing, counting bytes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.errors import GrammarError
from commlens.hlo.shapes import ELEMENT_BITS, ELEMENT_TYPE_NUMBERS, UNBOUNDED, Shape, parse_shape, read_shape

ARRAYS = st.builds(
    lambda kind, dims: Shape(kind, tuple(dims)),
    st.sampled_from(sorted(ELEMENT_BITS)),
    st.lists(st.integers(0, 9), max_size=4),
)
SHAPES = st.recursive(
    ARRAYS | st.just(Shape("token")) | st.just(Shape("opaque")),
    lambda inner: st.lists(inner, max_size=4).map(lambda parts: Shape("tuple", elements=tuple(parts))),
    max_leaves=12,
)


@given(SHAPES)
def test_what_is_printed_reads_back(shape: Shape) -> None:
    """Printing and reading are inverse."""
    assert parse_shape(str(shape)) == shape


def slow_bytes(shape: Shape) -> int:
    """Count bytes element by element."""
    if shape.element_type in ("tuple", "buffer"):
        return sum(slow_bytes(part) for part in shape.elements)
    if shape.element_type in ("token", "opaque"):
        return 0
    bits = 0
    for _ in range(math.prod(shape.dimensions)):
        bits += ELEMENT_BITS[shape.element_type]
    whole = 0
    while whole * 8 < bits:
        whole += 1
    return whole


@given(SHAPES)
def test_bytes_are_those_of_the_leaves(shape: Shape) -> None:
    """Every leaf is rounded up to bytes on its own; tokens and opaque values hold nothing."""
    assert shape.num_bytes == slow_bytes(shape)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("bf16[64,128]{1,0:T(8,128)(2,1)S(1)}", 16384),
        ("s32[]{:T(128)S(6)}", 4),
        ("u4[32,8]{1,0:E(4)}", 128),
        ("s4[3]", 2),
        ("pred[7]", 7),
        ("c128[2]", 32),
        ("f8e8m0fnu[4,512,16]", 32768),
        ("s32[<=8]", 32),
        ("(f32[2]{0}, /*index=1*/f32[3]{0}, token[])", 20),
        ("()", 0),
        ("b(f32[4])", 16),
        ("f32[0,5]", 0),
    ],
)
def test_known_sizes(text: str, size: int) -> None:
    """Layouts, tiles, memory spaces and comments change nothing; sub-byte types count by bits."""
    assert parse_shape(text).num_bytes == size


def test_a_dimension_without_bound_has_no_size() -> None:
    """A size that nobody knows is None, not zero."""
    shape = parse_shape("f32[?,8]")
    assert (shape.dimensions, shape.num_bytes, str(shape)) == ((UNBOUNDED, 8), None, "f32[?,8]")


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("x32[2]", 0),
        ("f32[2", 0),
        ("f32[a]", 4),
        ("(f32[2], )", 9),
        ("(f32[2]", 7),
        ("f32[2] f32[2]", 6),
        ("", 0),
        ("f32[99999999999999999999]", 4),
        ("(f32[2] f32[3])", 8),
    ],
)
def test_what_is_no_shape_is_refused_where_it_breaks(text: str, position: int) -> None:
    """The error names the offset of the fault."""
    with pytest.raises(GrammarError) as refused:
        parse_shape(text)
    assert refused.value.position == position


def test_reading_stops_behind_the_shape() -> None:
    """What follows a shape is left to the caller."""
    shape, end = read_shape("f32[2]{0} add(a, b)", 0)
    assert (str(shape), end) == ("f32[2]", 9)


def test_deep_nesting_is_no_recursion() -> None:
    """A hostile depth of tuples is read without the interpreter's stack."""
    deep = "(" * 50_000 + "f32[]" + ")" * 50_000
    assert parse_shape(deep).num_bytes == 4


def test_every_numbered_type_is_known() -> None:
    """The enum's names are the names of the table, but for what holds no array."""
    others = {"invalid", "tuple", "token", "opaque", "buffer"}
    assert set(ELEMENT_TYPE_NUMBERS.values()) - others == set(ELEMENT_BITS)


def test_tuples_may_be_nested_deeper_than_calls_may() -> None:
    """A shape reads back as it is written, whatever its depth."""
    text = "(" * 5000 + "f32[4], b(s8[<=2])" + ")" * 5000
    assert str(parse_shape(text)) == text
