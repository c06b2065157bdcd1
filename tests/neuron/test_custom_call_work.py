"""How much work a conversion is: counted, on modules that are alike but for their size."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from commlens import load
from commlens.hlo.text.line import parse_line
from commlens.neuron import ConvertCollectivesToCustomCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlens import Module

REDUCER = """add.{0} {{
  a.{0} = f32[] parameter(0)
  b.{0} = f32[] parameter(1)
  ROOT c.{0} = f32[] add(a.{0}, b.{0})
}}

"""
LINES = """  x.{0} = f32[8] all-reduce(p), channel_id={1}, replica_groups={{{{0,1}}}}, to_apply=add.{0}, metadata={{op_name="{0}"}}
  y.{0} = f32[8] negate(x.{0})
"""


def module_of(number: int) -> Module:
    """Return a module with so many collectives, each of which has a reducer of its own."""
    reducers = "".join(REDUCER.format(each) for each in range(number))
    lines = "".join(LINES.format(each, each + 1) for each in range(number))
    return load(
        f"HloModule m\n\n{reducers}ENTRY e {{\n  p = f32[8] parameter(0)\n{lines}  ROOT r = f32[8] copy(p)\n}}\n"
    )


def calls(work: Callable[[], object], *functions: Callable[..., object]) -> int:
    """Count the calls of some functions, of all functions where none is given."""
    codes = {function.__code__ for function in functions}  # pyright: ignore[reportFunctionMemberAccess]
    found = 0

    def count(frame: object, event: str, _: object) -> None:
        nonlocal found
        found += event == "call" and (not codes or getattr(frame, "f_code", None) in codes)

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


def converted(number: int) -> Callable[[], object]:
    """Return the work of converting so many collectives."""
    module = module_of(number)

    def work() -> None:
        result = ConvertCollectivesToCustomCall().run(module)
        assert len(result.edits) == number
        assert result.module.to_bytes().count(b'custom_call_target="AwsNeuronAllReduceAdd_f32"') == number

    return work


@pytest.mark.parametrize("number", [40, 160])
def test_only_the_first_line_of_a_spelling_is_taken_apart(number: int) -> None:
    """Neither collectives nor reducers nor what stands between them."""
    assert calls(converted(number), parse_line) <= 6


def test_four_times_the_collectives_are_four_times_the_work() -> None:
    """And each is about a hundred calls."""
    converted(1)()
    small, large = calls(converted(100)), calls(converted(400))
    assert large <= 4.2 * small
    assert large <= 120 * 400
