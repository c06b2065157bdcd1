"""Who uses whom in the computations that a rule looks into."""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np

from commlens.hlo import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from commlens.hlo import Computation, Graph, Instruction, Module, Site, Subject

_FOLLOWED: Final = frozenset({"all-gather", "all-reduce"})
"""Collectives of whose results rules ask what becomes of them."""


class Uses:
    """The data edges of one computation, both ways, by positions in its list of instructions.

    Args:
        computation: the computation.

    Raises:
        UnreadableError: the edges cannot be made out.
    """

    def __init__(self, computation: Computation) -> None:
        self.computation = computation
        self.graph: Graph = computation.graph()  # first: it may find that the list has to be read with more care
        self.instructions: Sequence[Instruction] = computation.instructions
        self.is_entry = computation.is_entry

    @cached_property
    def _by_operand(self) -> tuple[list[int], list[int]]:
        """Where the users of each position start, and the users."""
        operands = self.graph.operands
        counts = np.fromiter(map(len, operands), dtype=np.int64, count=len(operands))
        used = np.fromiter(chain.from_iterable(operands), dtype=np.int64, count=int(counts.sum()))
        users = np.repeat(np.arange(len(operands), dtype=np.int64), counts)[np.argsort(used, kind="stable")]
        starts = np.zeros(len(operands) + 1, dtype=np.int64)
        np.cumsum(np.bincount(used, minlength=len(operands)), out=starts[1:])
        return starts.tolist(), users.tolist()

    def users(self, position: int) -> list[int]:
        """Return the positions of the instructions that have an operand there, each once, in list order."""
        starts, users = self._by_operand
        return list(dict.fromkeys(users[starts[position] : starts[position + 1]]))

    def operands(self, position: int) -> Sequence[int]:
        """Return the positions of the operands that are defined, in order."""
        return self.graph.operands[position]

    def position(self, instruction: Instruction) -> int | None:
        """Return where an instruction stands in the list; None for one that does not."""
        listed = self.instructions
        guess = bisect_left(listed, instruction.list_key, key=lambda each: each.list_key)
        if guess < len(listed) and listed[guess] == instruction:
            return guess
        return self._positions.get(instruction)  # instructions as operands of others do not stand in order of places

    @cached_property
    def _positions(self) -> dict[Instruction, int]:
        return {instruction: position for position, instruction in enumerate(self.instructions)}

    @cached_property
    def root(self) -> int | None:
        """Where the root stands; None where there are no instructions."""
        return self.position(self.computation.root) if len(self.instructions) else None

    @cached_property
    def parameters(self) -> dict[int, int]:
        """Positions of the parameters by their numbers."""
        found: dict[int, int] = {}
        for position, instruction in enumerate(self.instructions):
            number = instruction.raw_attribute("parameter_number") or ""
            if number.isdecimal():
                found[int(number)] = position
        return found


class Flows:
    """The computations of a module, looked into where a rule asks.

    Args:
        subject: the module.
    """

    def __init__(self, subject: Subject) -> None:
        self.module: Module = subject.module
        self._uses: dict[str, Uses | str] = {}

    def uses(self, computation: Computation) -> Uses | None:
        """Return the edges of a computation; None where they cannot be made out."""
        found = self._look(computation)
        return None if isinstance(found, str) else found

    def uses_of(self, name: str) -> Uses | None:
        """Return the edges of the computation of a name; None where there is none, or they cannot be made out."""
        computation = self.module.computation(name)
        return None if computation is None else self.uses(computation)

    def broken(self, sites: Iterable[Site]) -> Iterator[tuple[Site, str]]:
        """Yield, for computations whose edges cannot be made out, the first collective to follow, and why."""
        seen: set[str] = set()
        for site in sites:
            name = site.computation_name
            if site.signature.opcode in _FOLLOWED and name not in seen:
                seen.add(name)
                found = self._look(site.instruction.computation)
                if isinstance(found, str):
                    yield site, found

    def _look(self, computation: Computation) -> Uses | str:
        if computation.name not in self._uses:
            try:
                self._uses[computation.name] = Uses(computation)
            except (UnreadableError, LookupError) as error:
                self._uses[computation.name] = str(error)
        return self._uses[computation.name]
