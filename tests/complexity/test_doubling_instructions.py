"""What no count of calls shows: loops inside comprehensions, and loops of sets and dicts over what they hold.

Instructions of the interpreter are counted for each function by itself, so that the one which grows faster than its input
is seen however little it does beside all others. What runs inside a set is seen by names that tell when they are hashed.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

import pytest

from commlens import load_all, report
from commlens.hlo import Call, CallGraph

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from types import CodeType, FrameType

SMALL: Final = 30
TIMES: Final = 4
MOST: Final = TIMES * 1.35
ENOUGH: Final = 1000
"""Instructions below which a function says nothing of how it grows."""

MODULE: Final = """HloModule m, replica_count=2

ENTRY e {
  p = f32[8]{0} parameter(0)
  ROOT z = f32[16]{0} all-gather(p), replica_groups={}, dimensions={0}
}

"""
CALLED: Final = """c0 {
  p = f32[8]{0} parameter(0)
  ROOT z = f32[8]{0} all-to-all(p), replica_groups={{0}}, dimensions={0}
}

"""
CALLER: Final = """NAME {
  p = f32[8]{0} parameter(0)
  ROOT a = f32[8]{0} call(p), to_apply=CALLED
}

"""


def modules(number: int) -> str:
    """Return a text with so many modules, of which every other one is not laid out as compilers do."""
    return (MODULE + MODULE.replace("\n  p", "\n   p")) * (number // 2 + 1)


def chain(number: int) -> str:
    """Return a module in which so many computations call each other one after the other."""
    names = ["c0", *(f"c{each + 1}" for each in range(number)), "ENTRY e"]
    calls = zip(names[1:], names, strict=False)
    return "HloModule m, replica_count=2\n\n" + CALLED + "".join(
        CALLER.replace("NAME", caller).replace("CALLED", called) for caller, called in calls
    )  # fmt: skip


def read(text: str) -> list[int]:
    """Read every row of every module."""
    return [sum(1 for row in report(each).collectives if dict(row)) for each in load_all(text.encode())]


def instructions_in(work: Callable[[], object]) -> Counter[CodeType]:
    """Count the interpreter's instructions that some work takes in each function of the package."""
    found: Counter[CodeType] = Counter()

    def count(frame: FrameType, event: str, _arg: object) -> object:
        found[frame.f_code] += event == "opcode"
        return count

    def enter(frame: FrameType, _event: str, _arg: object) -> object:
        if "commlens" not in frame.f_code.co_filename and frame.f_code.co_filename != __file__:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return count

    sys.settrace(enter)  # pyright: ignore[reportArgumentType]
    try:
        work()
    finally:
        sys.settrace(None)
    return found


def fastest_growing(make: Callable[[int], str], work: Callable[[str], object]) -> tuple[float, str]:
    """Return how many times the instructions of a small input a large one takes, in the function where that is most."""
    small, large, nothing = make(SMALL), make(TIMES * SMALL), make(1)
    work(small)  # what is imported or made once belongs to no input
    base, few, many = (instructions_in(lambda each=each: work(each)) for each in (nothing, small, large))
    return max(
        ((count - base[code]) / max(1, few[code] - base[code]), code.co_qualname)
        for code, count in many.items()
        if count > ENOUGH
    )


@pytest.mark.parametrize("make", [modules, chain])
def test_every_function_does_work_in_proportion(make: Callable[[int], str]) -> None:
    """No function of the package takes more instructions per item of a longer input."""
    assert read(make(2)).count(0) == 0
    times, name = fastest_growing(make, read)
    assert times <= MOST, name


@pytest.mark.parametrize(("power", "linear"), [(1, True), (2, False)])
def test_a_loop_in_a_comprehension_is_caught(power: int, linear: bool) -> None:
    """Though no function is called in it."""

    def work(text: str) -> list[int]:
        number = len(text) ** power
        return [each + 1 for each in range(number)]

    times, _ = fastest_growing(lambda number: "x" * (5 * number), work)
    assert (times <= MOST) == linear


# --- inside sets ----------------------------------------------------------------------------------------------------


class Name(str):
    """A name that counts how often it is hashed, as every set and dict does that looks at it."""

    __slots__ = ()
    hashed: ClassVar[list[int]] = [0]

    def __hash__(self) -> int:
        self.hashed[0] += 1
        return super().__hash__()

    __eq__ = str.__eq__


@dataclass(frozen=True, slots=True)
class Computation:
    """A computation of which only the name matters."""

    name: str


@dataclass(frozen=True, slots=True)
class Caller:
    """A call that stands in a computation."""

    computation: Computation
    name: str = "call"


@dataclass(slots=True)
class Chain:
    """A module with so many computations, each of which calls the one before; the last one is the entry."""

    number: int
    is_cut: bool = False
    names: list[Name] = field(default_factory=list[Name])

    def __post_init__(self) -> None:
        self.names = [Name(f"c{each}") for each in range(self.number)]

    @property
    def entry(self) -> Computation:
        """The computation that nobody calls."""
        return Computation(self.names[-1])

    def callers(self, names: Collection[str]) -> list[Call]:
        """Return the calls of some computations."""
        places = [int(name[1:]) for name in names]
        return [
            Call(Caller(Computation(self.names[place + 1])), "call", self.names[place])  # pyright: ignore[reportArgumentType]
            for place in places
        ]


def hashes(number: int) -> int:
    """Count how often names are hashed when the executions of the first computation are worked out."""
    module = Chain(number)
    Name.hashed[0] = 0
    graph = CallGraph(module, [module.names[0]], lambda _: False)  # pyright: ignore[reportArgumentType]
    assert graph.executions(module.names[0]) == 1
    return Name.hashed[0]


def test_a_chain_of_calls_looks_at_each_name_a_few_times() -> None:
    """Finding the next caller does not walk over all that were found before."""
    assert hashes(TIMES * SMALL) <= MOST * hashes(SMALL)


def test_a_loop_inside_a_set_is_caught() -> None:
    """Taking the keys of a dict from a set looks at each key."""
    names = {Name(f"c{each}"): each for each in range(SMALL)}
    Name.hashed[0] = 0
    assert {Name("c0")} - names.keys() == set()
    assert Name.hashed[0] >= SMALL
