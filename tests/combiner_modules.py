"""Small modules for the combiners: collectives with one thing changed, as text and as proto, and what is said of them.

:func:`entry` writes a module around lines that :func:`line` makes.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from commlens.hlo import load
from commlens.hlo.proto.wire import BYTES
from commlens.neuron import NeuronAllGatherCombiner, NeuronAllReduceCombiner, NeuronReduceScatterCombiner
from proto_modules import tagged
from proto_twin import load_as, proto_twin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlens import Module
    from commlens.hlo import PassResult

BACKENDS = ("text", "proto")
both = pytest.mark.parametrize("backend", BACKENDS)
PASSES: Mapping[str, type[NeuronAllGatherCombiner | NeuronAllReduceCombiner | NeuronReduceScatterCombiner]] = {
    "all-gather": NeuronAllGatherCombiner,
    "all-reduce": NeuronAllReduceCombiner,
    "reduce-scatter": NeuronReduceScatterCombiner,
}
KINDS = tuple(PASSES)
REDUCING = ("all-reduce", "reduce-scatter")
REDUCERS = "".join(
    f"{name} {{\n  left = {kind}[] parameter(0)\n  right = {kind}[] parameter(1)\n"
    f"  ROOT both = {kind}[] {opcode}(left, right)\n}}\n"
    for name, kind, opcode in (
        ("add", "f32", "add"),
        ("plus", "f32", "add"),
        ("times", "f32", "multiply"),
        ("minus", "f32", "subtract"),
        ("add_bf16", "bf16", "add"),
    )
)
WIDE = """wide {
  left = f32[] parameter(0)
  right = f32[] parameter(1)
  negated = f32[] negate(right)
  ROOT both = f32[] subtract(left, negated)
}
"""
SHAPE = re.compile(r"= (\S+|\(.*?\)) [a-z\-]+\(")
LINES = {
    "all-reduce": "f32[8] all-reduce({operand}), to_apply=add",
    "reduce-scatter": "f32[4] reduce-scatter({operand}), replica_groups={{{{0,1}}}}, dimensions={{0}}, to_apply=add",
    "all-gather": "f32[16] all-gather({operand}), replica_groups={{{{0,1}}}}, dimensions={{0}}",
}


def line(kind: str, operand: str = "p", **changes: str) -> str:
    """Return a collective without its name; what a change names is replaced or, new, added."""
    text = LINES[kind].format(operand=operand)
    for key, value in changes.items():
        start = text.find(f"{key}=")
        if key == "shape":
            text = value + text[text.index("]") + 1 :]
        elif start < 0:
            text += f", {key.replace('_predecessors', '-predecessors')}={value}"
        else:
            stop = text.find(", ", start)
            text = text[:start] + f"{key}={value}" + (text[stop:] if stop >= 0 else "")
    return text


def entry(*lines: str, before: str = "", root: str = "") -> str:
    """Return a module with the reducers, whose entry has parameters ``p``, ``q`` and then these lines."""
    head = ["  p = f32[8] parameter(0)", "  q = f32[8] parameter(1)", *(f"  {each}" for each in lines)]
    names = ", ".join(each.split(" = ")[0] for each in lines)
    root = root or f"tuple({names})"
    shapes = ", ".join(SHAPE.findall(each)[0] for each in lines)
    result = f"({shapes})" if root.startswith("tuple") else "f32[8]"
    return "\n".join(
        ["HloModule m, replica_count=2", REDUCERS + before + "ENTRY e {", *head, f"  ROOT t = {result} {root}", "}", ""]
    )


def pair(kind: str, **changes: str) -> str:
    """Return a module with two collectives ``x`` and ``y`` that differ in what is given."""
    return entry(f"x = {line(kind)}", f"y = {line(kind, 'q', **changes)}")


def run(kind: str, module: Module, **options: Any) -> PassResult:
    """Run a combiner."""
    return PASSES[kind](**options).run(module)


def options_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a case under our names; upstream does not keep dimensions apart unless it is told to."""
    options = given["options"]
    ours = {"threshold_bytes": options["max_bytes"], "threshold_count": options["max_count"]}
    ours["mixed_dtypes"] = options.get("combine_different_dtypes", False)
    if given["kind"] != "all-reduce":
        ours["combine_by_dim"] = options.get("combine_by_dim", False)
    return ours


def combined(result: PassResult) -> list[list[str]]:
    """Return the members of the sets."""
    return [each["members"] for each in entries(result, "combined")]


def stats(result: PassResult) -> dict[str, Any]:
    """Return the statistics, which JSON can say."""
    return json.loads(json.dumps(result.stats))


def entries(result: PassResult, key: str) -> list[dict[str, Any]]:
    """Return a list of the statistics."""
    return stats(result)[key]


def reasons(result: PassResult) -> dict[str, list[str]]:
    """Return who was excluded, by reason."""
    return {each["why"]: each["instructions"] for each in entries(result, "excluded")}


def with_domains(text: str, backend: str) -> Module:
    """Load a module with domain instructions; in a proto the side of the operand is called entry."""
    if backend == "text":
        return load_as(text, backend)
    module = load(text)
    made = proto_twin(module)
    for computation in made.computations:
        for each in computation.instructions:
            written = (
                module.instruction(each.name.decode()).raw_attribute("domain") if each.opcode == b"domain" else None
            )
            if written is not None:
                users, operand = re.findall("entry=(.*), exit=(.*)}$", written)[0]
                each.MergeFromString(tagged(54, BYTES, operand.encode()) + tagged(55, BYTES, users.encode()))
    return load(made.SerializeToString())
