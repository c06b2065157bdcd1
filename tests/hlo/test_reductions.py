"""What reducers do: the recognised reductions, on text and on proto."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from commlens.hlo import UnreadableError, load, reduction_kind
from proto_twin import load_as
from xla_cases import cases

if TYPE_CHECKING:
    from commlens.hlo import Computation

BACKENDS = ("text", "proto")
ENTRY = "ENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n"


def reducer(root: str, element_type: str, backend: str, parameters: tuple[int, int] = (0, 1)) -> Computation:
    """Return a computation of two parameters ``a`` and ``b`` with the given root."""
    lines = [f"  {name} = {element_type}[] parameter({number})" for name, number in zip("ab", parameters, strict=True)]
    text = "\n".join(["r {", *lines, f"  ROOT c = {element_type}[] {root}", "}", ENTRY])
    return load_as(text, backend).computations[0]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("given", "expect"), cases("reduction_kind"))
def test_kinds_of_cases(given: dict[str, Any], expect: str | None, backend: str) -> None:
    """XLA's own examples, in either order of the operands."""
    names = {"parameter(0)": "a", "parameter(1)": "b"}
    operands = ", ".join(names[each] for each in given["operands"])
    assert reduction_kind(reducer(f"{given['root_opcode']}({operands})", given["element_type"], backend)) == expect


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("root", "element_type", "expect"),
    [
        ("minimum(b, a)", "bf16", "min"),
        ("or(a, b)", "pred", "max"),
        ("add(a, b)", "pred", "sum"),
        ("add(a, a)", "f32", None),
        ("subtract(a, b)", "f32", None),
        ("negate(a)", "f32", None),
    ],
)
def test_kinds(root: str, element_type: str, expect: str | None, backend: str) -> None:
    """Both parameters count, once each; and/or are reductions of booleans, sums are one of any type."""
    assert reduction_kind(reducer(root, element_type, backend)) == expect


@pytest.mark.parametrize("backend", BACKENDS)
def test_parameters_are_told_by_their_number(backend: str) -> None:
    """Two parameters with one number are not the two that are reduced."""
    assert reduction_kind(reducer("add(a, b)", "f32", backend, (1, 0))) == "sum"
    assert reduction_kind(reducer("add(a, b)", "f32", backend, (1, 1))) is None


def test_a_wider_sum_is_no_reduction() -> None:
    """The root must take the parameters themselves."""
    text = """up {
      a = bf16[] parameter(0)
      b = bf16[] parameter(1)
      c = f32[] convert(a)
      d = f32[] convert(b)
      ROOT e = f32[] add(c, d)
    }
    """
    assert reduction_kind(load(text + ENTRY).computations[0]) is None


def test_an_unreadable_root_is_refused() -> None:
    """An element type that does not exist leaves no answer."""
    with pytest.raises(UnreadableError, match="q7"):
        reduction_kind(reducer("and(a, b)", "q7", "text"))
