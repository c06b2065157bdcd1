"""Small random programs of functions, loops and conditionals, of which is known by construction what runs in order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from random import Random

Trace: TypeAlias = "tuple[object, ...]"
"""What runs in order: numbers of collectives; of a conditional what each branch runs; of an endless loop its parts."""

COLLECTIVES = (
    "f32[8] all-reduce(p), channel_id={channel}, replica_groups={{{{0,1}},{{2,3}}}}, use_global_device_ids=true, "
    "to_apply=add",
    "f32[8] all-reduce(p), channel_id={channel}, replica_groups={{{{0,2}},{{1,3}}}}, use_global_device_ids=true, "
    "to_apply=add",
    "f32[8] collective-permute(p), channel_id={channel}, source_target_pairs={{{{0,1}},{{1,0}}}}",
)
_HEAD = """HloModule m, num_partitions=4

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
silent {
  ROOT p = f32[8] parameter(0)
}
always {
  p = f32[8] parameter(0)
  ROOT c = pred[] constant(true)
}
"""


@dataclass(frozen=True, slots=True)
class Op:
    """One operation of a function.

    Attributes:
        kind: ``"collective"``, ``"call"``, ``"loop"`` or ``"conditional"``.
        number: which collective; of a loop its trips, 0 for unknown; of a conditional 1 where a truth picks.
        functions: what it runs: of a loop the body; of a conditional the branches as listed; -1 for silent ones.
        condition: the collective in the condition of a loop; None where there is none.
    """

    kind: str
    number: int = 0
    functions: tuple[int, ...] = ()
    condition: int | None = None


Program: TypeAlias = "tuple[tuple[Op, ...], ...]"
"""Functions, each of which runs only those before it; the last is the entry."""


def random_op(random: Random, functions: int) -> Op:
    """Return an operation of a function behind some others."""
    kind = random.choice(("collective", "call", "loop", "conditional") if functions else ("collective",))
    some = [random.randrange(functions) for _ in range(3)] if functions else []
    if kind == "collective":
        return Op(kind, random.randrange(len(COLLECTIVES)))
    if kind == "call":
        return Op(kind, functions=(some[0],))
    if kind == "loop":
        condition = random.choice((None, None, random.randrange(len(COLLECTIVES))))
        return Op(kind, random.choice((0, 1, 2, 2, 3)), (some[0],), condition)
    truth = random.randrange(2)
    return Op(kind, truth, tuple(random.choice((-1, each)) for each in some[: 2 if truth else 3]))


def random_program(random: Random) -> Program:
    """Return a program of a few functions, some of them shared."""
    number = random.randrange(1, 5)
    return tuple(
        tuple(random_op(random, place) for _ in range(random.randrange(1, 4 if place < number else 5)))
        for place in range(number + 1)
    )


def mutated(random: Random, program: Program) -> Program:
    """Change one function: an operation more, one less, another one, two swapped, or other details of one."""
    place = random.randrange(len(program))
    ops = list(program[place])
    at = random.randrange(len(ops))
    match random.choice(("swap", "swap", "insert", "remove", "replace", "detail", "detail", "detail")):
        case "swap":
            other = random.randrange(len(ops))
            ops[at], ops[other] = ops[other], ops[at]
        case "insert":
            ops.insert(at, random_op(random, place))
        case "remove" if len(ops) > 1:
            del ops[at]
        case "replace":
            ops[at] = random_op(random, place)
        case _:
            ops[at] = _other_detail(random, ops[at], place)
    return (*program[:place], tuple(ops), *program[place + 1 :])


def _other_detail(random: Random, op: Op, functions: int) -> Op:
    if op.kind == "conditional" and random.randrange(2):
        return replace(op, functions=tuple(random.sample(op.functions, len(op.functions))))
    if op.kind == "loop" and random.randrange(2):
        return replace(op, number=random.choice((0, 1, 2, 3)))
    if op.functions:
        some = list(op.functions)
        some[random.randrange(len(some))] = random.randrange(functions)
        return replace(op, functions=tuple(some))
    return replace(op, number=random.randrange(len(COLLECTIVES)))


def trace_of(program: Program) -> Trace:
    """Return what a program runs in order: loops rolled out, calls inlined, what communicates nothing left out."""
    known: list[Trace] = []
    for ops in program:
        known.append(tuple(item for op in ops for item in _trace(op, known)))
    return known[-1]


def _trace(op: Op, known: list[Trace]) -> Trace:
    inner: list[Trace] = [() if each < 0 else known[each] for each in op.functions]
    if op.kind == "collective":
        return (op.number,)
    if op.kind == "call":
        return inner[0]
    if op.kind == "loop":
        condition: Trace = () if op.condition is None else (op.condition,)
        if op.number:
            return (*((*condition, *inner[0]) * op.number), *condition)
        return (("loop", condition, inner[0]),) if condition or inner[0] else ()
    branches = enumerate(inner[::-1] if op.number else inner)  # true is listed first, and is 1
    running = tuple((number, branch) for number, branch in branches if branch)
    return (("conditional", running),) if running else ()


def hlo_of(program: Program, *, suffix: str = "", channels: int = 1, halves: Random | None = None) -> str:
    """Print a program.

    Args:
        program: the program.
        suffix: what names end with.
        channels: the first channel id.
        halves: what chooses the collectives that are printed as a start, and a done at once or at the end.
    """
    lines = [_HEAD]
    channel = channels
    for place, ops in enumerate(program):
        body: list[str] = []
        late: list[str] = []
        for number, op in enumerate(ops):
            names = ["silent" if each < 0 else f"f{each}{suffix}" for each in op.functions]
            if op.condition is not None:
                line = COLLECTIVES[op.condition].format(channel=channel)
                lines.append(f"c{place}.{number}{suffix} {{\n  p = f32[8] parameter(0)\n  r{suffix} = {line}")
                lines.append("  ROOT c = pred[] constant(true)\n}")
            condition = "always" if op.condition is None else f"c{place}.{number}{suffix}"
            line = _line(op, names, condition).format(channel=channel + 1)
            if op.kind == "collective" and halves is not None and halves.randrange(2):
                started, done = _in_halves(line, f"r{number}{suffix}")
                body.append(started)
                (late if halves.randrange(2) else body).append(done)
            else:
                body.append(f"  r{number}{suffix} = {line}")
            channel += 2
        head = "ENTRY e" if place == len(program) - 1 else f"f{place}{suffix}"
        picks = (
            ["  t = pred[] parameter(1)", "  i = s32[] parameter(2)"]
            if head == "ENTRY e"
            else ["  t = pred[] constant(true)", "  i = s32[] constant(1)"]
        )
        lines += [f"{head} {{", "  p = f32[8] parameter(0)", *picks, *body, *late]
        lines += [f"  ROOT n = f32[8] add(p, r{len(ops) - 1}{suffix})", "}"]
    return "\n".join(lines) + "\n"


def _in_halves(line: str, name: str) -> tuple[str, str]:
    """Return a collective as a start and a done."""
    opcode = "collective-permute" if "collective-permute" in line else "all-reduce"
    shape = "(f32[8], f32[8])" if opcode == "collective-permute" else "f32[8]"
    start = line.replace(f"f32[8] {opcode}(", f"{shape} {opcode}-start(")
    return f"  s{name} = {start}", f"  {name} = f32[8] {opcode}-done(s{name})"


def _line(op: Op, names: list[str], condition: str) -> str:
    if op.kind == "collective":
        return COLLECTIVES[op.number]
    if op.kind == "call":
        return f"f32[8] call(p), to_apply={names[0]}"
    if op.kind == "loop":
        trips = f', backend_config={{{{"known_trip_count":{{{{"n":"{op.number}"}}}}}}}}' if op.number else ""
        return f"f32[8] while(p), condition={condition}, body={names[0]}{trips}"
    if op.number:
        return f"f32[8] conditional(t, p, p), true_computation={names[0]}, false_computation={names[1]}"
    return f"f32[8] conditional(i, p, p, p), branch_computations={{{{{', '.join(names)}}}}}"
