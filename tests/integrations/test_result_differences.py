from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.integrations.runtime.float_types import allowed_ulp
from commlens.integrations.runtime.inputs import values
from commlens.integrations.runtime.result_differences import difference


def compare(a: object, b: object, dtype: str, max_ulp: int = 0) -> dict[str, object]:
    """Compare one result on one device."""
    return difference({3: np.array(a, dtype)}, {3: np.array(b, dtype)}, max_ulp)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False, max_value=2.0**100), st.integers(0, 5))
def test_distance_counts_the_floats_between(start: float, steps: int) -> None:
    """Each step to the next float is one unit, through zero too."""
    value = np.float32(start)
    for _ in range(steps):
        value = np.nextafter(value, np.float32(np.inf))
    assert compare([start], [value], "f4", 5) == compare([value], [start], "f4", 5) == {"max_ulp": steps}


@pytest.mark.parametrize(
    ("a", "b", "dtype", "found"),
    [
        ([1, 2], [1, 2], "i4", {"max_ulp": 0}),
        ([1, 2], [1, 3], "i4", {"differs": "device 3, element 1: 2 and 3"}),
        ([[True], [False]], [[True], [True]], "?", {"differs": "device 3, element 1,0: False and True"}),
        (0.5, 0.5, "f8", {"max_ulp": 0}),
        (-0.0, 0.0, "f2", {"max_ulp": 0}),
        ([np.nan, 1], [np.nan, 1], "f4", {"max_ulp": 0}),
        ([np.nan], [np.nan], "f4", {"max_ulp": 0, "finite": False}),
        ([np.inf], [np.inf], "f4", {"max_ulp": 0, "finite": False}),
        ([1, 2], [1, np.nan], "f4", {"max_ulp": 2**64 - 1, "differs": "device 3, element 1: 2.0 and nan"}),
        ([1 + 2j], [1 + 2j], "c8", {"max_ulp": 0}),
        (
            [1, 2j],
            [1, 3j],
            "c8",
            {"max_ulp": 2**22, "differs": "device 3, element 1: 2j and 3j (4194304 ulp of the largest number, 3)"},
        ),
        (
            -1.0,
            1.0,
            "f8",
            {
                "max_ulp": 2 * 0x3FF0000000000000,
                "differs": "device 3: -1.0 and 1.0 (9007199254740992 ulp of the largest number, 1)",
            },
        ),
        (
            [np.inf],
            [-np.inf],
            "f2",
            {"max_ulp": 2 * 0x7C00, "finite": False, "differs": "device 3, element 0: inf and -inf"},
        ),
        ([], [], "f4", {"max_ulp": 0}),
    ],
)
def test_what_is_found(a: object, b: object, dtype: str, found: dict[str, object]) -> None:
    """Integers are equal or not; floats have a distance, also over the whole range; two NaNs are alike."""
    assert compare(a, b, dtype) == found


@pytest.mark.xla
def test_small_floats_of_other_libraries_have_distances() -> None:
    """bfloat16 is no type of numpy's own."""
    bfloat16 = np.dtype(import_module("ml_dtypes").bfloat16)
    one, next_one = np.array([1.0, 2.0], bfloat16), np.array([1.0078125, 2.0], bfloat16)
    assert difference({0: one}, {0: next_one}, 1) == {"max_ulp": 1}


def test_shapes_and_types_are_part_of_a_result() -> None:
    """Other shapes and other types are no distance."""
    assert compare([1], 1, "i4")["differs"] == "device 3: int32[1] and int32[]"
    found = difference({0: np.array(1, "f4")}, {0: np.array(1, "f8")}, 9)
    assert found == {"differs": "device 0: float32[] and float64[]"}


def test_the_furthest_device_counts() -> None:
    """The answer is of the device where the results are furthest apart, and what is allowed is no difference."""
    next_one = np.nextafter(np.float32(1), np.float32(2))
    two_more = np.nextafter(np.nextafter(next_one, np.float32(2)), np.float32(2))
    left = {device: np.array([1], "f4") for device in range(3)}
    right = {0: np.array([1], "f4"), 1: np.array([two_more]), 2: np.array([next_one])}
    assert difference(left, right, 3) == {"max_ulp": 3}
    found = difference(left, right, 2)
    assert found["max_ulp"] == 3
    assert str(found["differs"]).startswith("device 1, element 0: 1.0 and 1.0000003")


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u4", "i8", "?", "c8"])
def test_inputs_are_the_same_for_the_same_seed(dtype: str) -> None:
    """And others for another one; integers may count or point at something, floats have both signs and are never 0."""
    kind: np.dtype[Any] = np.dtype(dtype)
    one, again, other = (values((4, 50), kind, seed) for seed in ("0/1/2", "0/1/2", "0/1/3"))
    assert (one.dtype, one.shape) == (kind, (4, 50))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    if kind.kind in "fc":
        assert -1 < one.real.min() < 0 < one.real.max() < 1
        assert (one.real != 0).all()
    else:
        assert 0 == one.min() < one.max() <= 15


def test_inputs_add_up_alike_in_any_order() -> None:
    """Sums of products of floats are exact, so that only a program that adds other terms gives another result."""
    left, right = (values((1000,), np.dtype(np.float32), seed) for seed in "ab")
    products = left * right
    forwards, backwards = np.float32(0), np.float32(0)
    for one, other in zip(products[:256], products[:256][::-1], strict=True):
        forwards, backwards = forwards + one, backwards + other
    assert forwards == backwards
    assert len(np.unique(left)) > 200


@pytest.mark.xla
def test_inputs_of_small_floats() -> None:
    """Types with few digits get a grid with few steps."""
    types = import_module("ml_dtypes")
    for dtype in (types.bfloat16, types.float8_e4m3fn, types.float8_e5m2):
        drawn = values((100,), np.dtype(dtype), "seed").astype(np.float32)
        assert sorted(set(drawn.tolist())) == [-0.75, -0.25, 0.25, 0.75]
    assert set(values((100,), np.dtype(types.int4), "seed").astype(np.int32).tolist()) <= set(range(-8, 8))


@pytest.mark.xla
@pytest.mark.parametrize(
    ("name", "a", "b", "steps"),
    [
        ("float4_e2m1fn", -0.5, 0.5, 2),
        ("float4_e2m1fn", 6, 4, 1),
        ("float8_e8m0fnu", 1, 4, 2),
        ("float8_e4m3fn", 1, 2, 8),
        ("float8_e5m2", -2, 2, 2 * 64),
        ("float8_e4m3fnuz", -1, 1, 2 * 64),
    ],
)
def test_distances_of_types_of_one_byte(name: str, a: float, b: float, steps: int) -> None:
    """Wherever the sign stands, if there is one."""
    dtype = getattr(import_module("ml_dtypes"), name)
    found = difference({0: np.array([a], dtype)}, {0: np.array([b], dtype)}, 0)
    assert found["max_ulp"] == steps


@pytest.mark.xla
@pytest.mark.parametrize(
    ("name", "asked", "allowed"),
    [
        *(("float32", 16, 16), ("float64", 3, 3), ("float16", 16, 2), ("bfloat16", 16, 2), ("bfloat16", 1, 1)),
        *(("bfloat16", 0, 0), ("float8_e4m3fn", 16, 1), ("float8_e5m2", 0, 0), ("float4_e2m1fn", 10**6, 1)),
        *(("float8_e8m0fnu", 10**6, 0), ("float8_e3m4", 16, 1)),
    ],
)
def test_what_is_allowed_depends_on_the_type(name: str, asked: int, allowed: int) -> None:
    """A unit of a narrow float is a large part of it."""
    assert allowed_ulp(np.dtype(getattr(import_module("ml_dtypes"), name, name)), asked) == allowed
