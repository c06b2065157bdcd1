"""Modules whose collectives become AwsNeuron custom calls, and what comes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from commlens import load
from commlens.neuron import ConvertCollectivesToCustomCall

if TYPE_CHECKING:
    from commlens.hlo import PassResult

CONVERT = ConvertCollectivesToCustomCall()
both = pytest.mark.parametrize("backend", ["text", "proto"])
ADD = """add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
"""


def text_of(*lines: str, parameter: str = "f32[8]", reducer: str = ADD) -> str:
    """Write a module with an entry of a parameter and some lines; the last is the root."""
    *others, last = (f"p = {parameter} parameter(0)", *lines)
    body = "".join(f"  {line}\n" for line in (*others, f"ROOT {last}"))
    return f"HloModule m, replica_count=2, num_partitions=2\n\n{reducer}\nENTRY e {{\n{body}}}\n"


def converted(result: PassResult) -> dict[str, tuple[str, str]]:
    """Return targets and configurations in the new module, read from its bytes again, by name."""
    module = load(result.module.to_bytes())
    assert module.entry is not None
    calls = [each for each in module.entry.instructions if each.opcode == "custom-call"]
    return {
        each.name: (each.raw_attribute("custom_call_target") or "", each.raw_attribute("backend_config") or "")
        for each in calls
    }


def reasons(result: PassResult) -> dict[str, str]:
    """Return why what was left alone, by name."""
    untouched: Any = result.stats["untouched"]
    return {each["instruction"]: each["why"] for each in untouched}


ELSEWHERE = """HloModule m

body {
  q = f32[8] parameter(0)
  ROOT inner = f32[16] all-gather(q), replica_groups={{0,1}}, dimensions={0}
}

ENTRY e {
  p = f32[8] parameter(0)
  ROOT c = f32[16] call(p), to_apply=body
}
"""
