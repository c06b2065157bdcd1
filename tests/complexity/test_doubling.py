"""Readers take work in proportion to what they read: calls are counted on inputs four times as long, no clock is asked.

What a single call costs, a regular expression's search above all, is counted in ``test_regular_expressions.py``.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import pytest
from google.protobuf import text_format

from commlens import CommlensError, load, load_all, report
from commlens.analysis import RULES, HostSurvey, check, chosen_rules, compare_hosts, diff, explain_log
from commlens.hlo import Deployment, module_uses_before_definition
from commlens.neuron import CCInfo, read_neff
from commlens.topology import (
    parse_mesh,
    parse_replica_groups,
    parse_sharding,
    parse_source_target_pairs,
    participant_list,
)
from counted_calls import calls_in
from neff_files import definition, neff
from proto_modules import all_reduce, module

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL: Final = 50
TIMES: Final = 4

HEAD: Final = "HloModule m, num_partitions=8\n\nENTRY e {\n  p = f32[8]{0} parameter(0)\n"
LINE: Final = "  x{0} = f32[8]{{0}} all-reduce({1}), channel_id={0}, replica_groups=[2,4]<=[8], use_global_device_ids=true, to_apply=add\n"


def growth(make: Callable[[int], object], read: Callable[[object], object]) -> float:
    """Return how many times the calls of a small input a large one takes, beside what any input takes."""
    small, large, least = make(SMALL), make(TIMES * SMALL), make(1)

    def cost(what: object) -> int:
        return calls_in(lambda: _read_or_refused(read, what))

    cost(small)  # what is imported or made once belongs to no input
    nothing = cost(least)
    return (cost(large) - nothing) / max(1, cost(small) - nothing)


def _read_or_refused(read: Callable[[object], object], what: object) -> None:
    """Read an input; a refusal of ours may end it."""
    with suppress(CommlensError):
        read(what)


def text(number: int, line: str = LINE) -> str:
    """Return a module with so many collectives, each of which takes the one before."""
    names = ["p", *(f"x{each}" for each in range(number))]
    return (
        HEAD
        + "".join(line.format(each, names[each]) for each in range(number))
        + f"  ROOT r = f32[8]{{0}} negate({names[-1]})\n}}\n"
    )


def groups(number: int) -> str:
    """Return a list of groups of two."""
    return "{" + ",".join(f"{{{each},{each + number}}}" for each in range(number)) + "}"


def reported(source: object) -> object:
    """Load modules and read every row to its end."""
    return [[dict(row) for row in report(each).collectives] for each in load_all(source)]  # pyright: ignore[reportArgumentType]


def diffed(pair: object) -> object:
    """Compare two modules."""
    first, second = pair if isinstance(pair, tuple) else (pair, pair)
    return diff(load(str(first)), load(str(second)))


def ordered(source: object) -> object:
    """Name everything that is needed before it is defined."""
    return [[each.why for each in module_uses_before_definition(module)] for module in load_all(source)]  # pyright: ignore[reportArgumentType]


def told(log: object) -> object:
    """Explain a log beside a module."""
    return explain_log(str(log), [load(text(2))])


def changed(number: int) -> tuple[str, str]:
    """Return a module, and one with every third collective in another spelling and every fifth gone."""
    lines = text(number).splitlines(keepends=True)
    other = [line.replace("[2,4]<=[8]", "[4,2]<=[8]") if place % 3 == 0 else line for place, line in enumerate(lines)]
    return "".join(lines), "".join(
        line for place, line in enumerate(other) if place % 5 or "x" not in line.split("=")[0]
    )


def compared(names: object) -> object:
    """Compare hosts that have a file each in a folder of their own, or all in one folder."""
    paths = [str(each) for each in names] if isinstance(names, list) else []
    survey, module = HostSurvey(), load(text(2))
    members = []
    for path in paths:
        module.path = path
        members.append(survey.look_at(module))
    return compare_hosts(members, paths, survey)


def permuted(number: int) -> tuple[str, str]:
    """Return a module with so many permutes, each between two devices of its own, and one with them in turn reversed."""
    lines = [
        f"  x{each} = f32[8] collective-permute(p), channel_id=1, source_target_pairs={{{{{2 * each},{2 * each + 1}}}}}\n"
        for each in range(number)
    ]
    head = f"HloModule m, num_partitions={2 * number + 2}\n\nENTRY e {{\n  p = f32[8] parameter(0)\n"
    one, other = (f"{head}{''.join(each)}  ROOT r = f32[8] negate(p)\n}}\n" for each in (lines, lines[::-1]))
    return one, other


def held_together(pair: object) -> object:
    """Compare two hosts."""
    survey, members = HostSurvey(), []
    for path, source in zip("ab", pair if isinstance(pair, tuple) else (), strict=True):
        module = load(str(source))
        module.path = path
        members.append(survey.look_at(module))
    return compare_hosts(members, "ab", survey)


def in_a_loop(number: int) -> str:
    """Return a module with a loop of so many all-reduces, each over a group that shares a device with all others."""
    lines = "".join(
        f"  r{each} = f32[8] all-reduce(a), channel_id={each + 1}, replica_groups={{{{0,{each + 1}}}}}, use_global_device_ids=true, to_apply=add\n"
        for each in range(number)
    )
    return f"""HloModule m
body {{
  t = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  a = f32[8] get-tuple-element(t), index=1
{lines}  ROOT o = (s32[], f32[8]) tuple(i, a)
}}
condition {{
  t = (s32[], f32[8]) parameter(0)
  ROOT c = pred[] constant(true)
}}
ENTRY e {{
  t = (s32[], f32[8]) parameter(0)
  ROOT w = (s32[], f32[8]) while(t), condition=condition, body=body
}}
"""


def overlaps(source: object) -> object:
    """Look for groups that overlap in a loop."""
    return check(load(str(source)), chosen_rules(RULES, Deployment(), select=["overlapping-in-loop"]))


def message(number: int) -> bytes:
    """Return a binary proto with so many collectives."""
    return module(*(all_reduce(2 + each) for each in range(number))).SerializeToString()


def text_form(number: int) -> bytes:
    """Return its text form."""
    return text_format.MessageToString(module(*(all_reduce(2 + each) for each in range(number)))).encode()


def definition_of(number: int) -> bytes:
    """Return a def.json with so many streams."""
    return json.dumps({"replica_groups": [[[0, 1], [2, 3]]] * number, "num_streams": number}).encode()


LOG: Final = "E0000 collective operation participant 3 waiting: RendezvousKey{{run_id=RunId: {0}, global_devices=[0, 1, 2, 3], num_local_participants=4, collective_op_kind=cross_module, op_id=1}}\n"

READERS: Final[dict[str, tuple[Callable[[int], object], Callable[[object], object]]]] = {
    "text": (lambda n: text(n).encode(), reported),
    "text, irregular": (lambda n: text(n).replace("\n  ", "\n   ").encode(), reported),
    "text, one long line": (lambda n: text(n).replace("\n  x", "  x").encode(), reported),
    "text, operands far away": (lambda n: text(n, LINE.replace("{1}", "p")).encode(), reported),
    "text, open comments": (lambda n: text(2).encode() + b"/*\n" * n, reported),
    "text, names and braces": (lambda n: b"\na{f32[" * n + text(2).encode(), reported),
    "text, names and braces, further in": (lambda n: b"\n b {(x = f32[]" * n + text(2).encode(), reported),
    "text, brackets": (lambda n: text(2).replace("negate(", "negate(" + "(" * n).encode(), reported),
    "text, frontend attributes": (
        lambda n: text(2).replace("to_apply=add", "to_apply=add, frontend_attributes={" + ",".join(f'k{each}="v"' for each in range(n)) + "}").encode(),
        reported,
    ),
    "text, many operands": (lambda n: text(2).replace("all-reduce(p)", "all-reduce(" + ", ".join(["p"] * n) + ")").encode(), reported),
    "text, modules": (lambda n: text(1).encode() * n, reported),
    "order, all behind": (lambda n: text(n, LINE.replace("{1}", "r")).encode(), ordered),
    "order, all behind, irregular": (lambda n: text(n, LINE.replace("{1}", "r")).replace("\n  ", "\n   ").encode(), ordered),
    "list": (groups, lambda spec: parse_replica_groups(str(spec))),
    "one group": (lambda n: "{{" + ",".join(map(str, range(8 * n))) + "}}", lambda spec: parse_replica_groups(str(spec))),
    "list with blanks": (lambda n: groups(n).replace(",", " , /* */ "), lambda spec: parse_replica_groups(str(spec))),
    "iota": (lambda n: f"[{n},{n}]<=[{n},{n}]T(1,0)", lambda spec: parse_replica_groups(str(spec)).to_list().replica_groups),
    "iota, dimensions": (
        lambda n: f"[1,1]<=[{','.join(['1'] * n)}]T({','.join(map(str, range(n)))})",
        lambda spec: parse_replica_groups(str(spec)),
    ),
    "mesh, too many axes": (
        lambda n: "mesh[" + ",".join(f"'a{each}'=1" for each in range(10 * n)) + "] {'a0'}",
        lambda spec: parse_replica_groups(str(spec)),
    ),
    "axes": (
        lambda n: "mesh['a'=2] {" + ",".join(["'a'"] * n) + "}",
        lambda spec: parse_replica_groups(str(spec)),
    ),
    "mesh, device ids": (
        lambda n: f"mesh['a'={n},'b'=1], device_ids=({','.join(map(str, range(n)))}) {{'a'}}",
        lambda spec: parse_replica_groups(str(spec)),
    ),
    "participants": (
        groups,
        lambda spec: participant_list("flattened_id", parse_replica_groups(str(spec)), 1, len(str(spec).split("},{")) * 2),
    ),
    "pairs": (groups, lambda spec: parse_source_target_pairs(str(spec))),
    "sharding, devices": (
        lambda n: f"{{devices=[{n}]{','.join(map(str, range(n)))}}}",
        lambda spec: parse_sharding(str(spec)),
    ),
    "sharding, dimensions": (lambda n: f"{{devices=[{','.join(['1'] * n)}]<=[1]}}", lambda spec: parse_sharding(str(spec))),
    "sharding, tuple": (lambda n: "{" + ", ".join(["{replicated}"] * n) + "}", lambda spec: parse_sharding(str(spec))),
    "mesh of axes": (lambda n: "mesh[" + ",".join(f"'a{each}'=1" for each in range(10 * n)) + "]", lambda spec: parse_mesh(str(spec))),
    "proto": (message, reported),
    "proto, text form": (text_form, reported),
    "proto, text form, open strings": (lambda n: text_form(2) + b'x: "\\"' * n, reported),
    "def.json": (definition_of, lambda data: CCInfo.from_def_json(data if isinstance(data, bytes) else b"")),
    "neff": (lambda n: neff(definition_of(n)), lambda data: read_neff(data if isinstance(data, bytes) else b"")),
    "neff, subgraphs": (
        lambda n: neff({f"sg{each:02}/def.json": definition() for each in range(n)}),
        lambda data: read_neff(data if isinstance(data, bytes) else b""),
    ),
    "diff, alike": (text, diffed),
    "diff, changed": (changed, diffed),
    "diff, nothing alike": (lambda n: (text(n), text(n).replace("all-reduce", "collective-broadcast").replace(", to_apply=add", "")), diffed),
    "hosts": (lambda n: [f"host{each}/module_0001.m.txt" for each in range(n)], compared),
    "hosts, other order": (permuted, held_together),
    "overlapping groups": (in_a_loop, overlaps),
    "log": (lambda n: "".join(LOG.format(each) for each in range(n)), told),
    "log, other lines": (lambda n: "I0000 nothing of interest\n" * (20 * n), told),
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
def test_four_times_the_input_is_four_times_the_work(reader: str) -> None:
    """No reader makes more calls per item on a longer input."""
    make, read = READERS[reader]
    assert growth(make, read) <= TIMES * 1.35


@pytest.mark.parametrize(("power", "linear"), [(1, True), (2, False)])
def test_worse_than_linear_is_caught(power: int, linear: bool) -> None:
    """Nested loops over the input are too many calls."""
    found = growth(lambda n: n, lambda n: [abs(each) for each in range(int(str(n)) ** power)])
    assert (found <= TIMES * 1.35) == linear
