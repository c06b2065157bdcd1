"""How often each computation runs in one execution of the entry computation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo.trip_counts import trip_count

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from commlens.hlo.model import Call, Instruction, Module


_MOST: Final = 2**63 - 1
"""Above this a count says more of a broken module than of its time; it also keeps sums short enough to write."""


class CallGraph:
    """The paths from the entry computation to the computations that matter.

    Args:
        module: the module.
        names: the computations that will be asked for; only their callers are looked for.
        leaves_out: call sites that do not count, because what they run has a row of its own.
    """

    def __init__(self, module: Module, names: Iterable[str], leaves_out: Callable[[Call], bool]) -> None:
        entry = module.entry
        self._entry = None if entry is None else entry.name
        self._is_cut = module.is_cut
        self._calls: dict[str, list[Call]] = {}
        self._executions: dict[str, int | None] = {}
        self._conditionals: dict[str, tuple[str, ...] | None] = {}
        self._collect(module, names, leaves_out)

    def _collect(self, module: Module, names: Iterable[str], leaves_out: Callable[[Call], bool]) -> None:
        """Find the callers of the named computations, their callers, and so on up to the entry."""
        pending = set(names) - {self._entry}
        while pending:
            self._calls |= {name: [] for name in pending}
            for call in module.callers(pending):
                if not leaves_out(call):
                    self._calls[call.callee].append(call)
            callers = {call.caller.computation.name for name in pending for call in self._calls[name]}
            pending = {name for name in callers if name not in self._calls and name != self._entry}

    def calls_of(self, name: str) -> list[Call]:
        """Return the call sites of a computation that count."""
        return self._calls.get(name, [])

    def unreadable_callers(self) -> list[Instruction]:
        """Return the instructions that call one of the computations and cannot be read, so that counts are unknown."""
        calls = (call for found in self._calls.values() for call in found)
        return list(dict.fromkeys(call.caller for call in calls if call.role == "unreadable"))

    def executions(self, name: str) -> int | None:
        """Return how often a computation runs.

        Args:
            name: one of the names that the graph was made for.

        Returns:
            The sum over its call sites of the products of trip counts along each path from the entry. A branch counts
            as if always taken, a while condition runs once more than its body. 0 where no path leads from the entry;
            None where a factor is unknown, the sum does not fit 64 bits, or the text was cut before its entry.
        """
        if self._entry is None:
            return None
        for each in self._callers_first(name, self._executions):
            self._executions[each] = self._sum(each)
        return self._executions[name]

    def conditionals(self, name: str) -> tuple[str, ...]:
        """Return the names of the conditionals on the paths from the entry to a computation, outermost first."""
        for each in self._callers_first(name, self._conditionals):
            self._conditionals[each] = self._above(each)
        return self._conditionals[name] or ()

    def _above(self, name: str) -> tuple[str, ...] | None:
        """Return the conditionals above a computation whose callers are known; None where no path leads to it."""
        if name == self._entry:
            return ()
        found: dict[str, None] = {}
        reached = (self._entry is None or self._is_cut) and not self.calls_of(name)  # who calls it may be cut off
        for call in self.calls_of(name):
            above = self._conditionals.get(call.caller.computation.name)
            if above is not None:
                reached = True
                found |= dict.fromkeys((*above, call.caller.name) if call.role == "branch" else above)
        return tuple(found) if reached else None

    def _callers_first(self, name: str, known: Container[str]) -> list[str]:
        """Return a computation and all that lead to it which are not known yet, callers before callees."""
        order: dict[str, None] = {}
        stack = [(name, False)]
        entered: set[str] = set()
        while stack:
            current, finished = stack.pop()
            if finished:
                order[current] = None
            elif current not in known and current not in entered:
                entered.add(current)
                stack.append((current, True))
                stack += [(call.caller.computation.name, False) for call in self.calls_of(current)]
        return list(order)

    def _sum(self, name: str) -> int | None:
        if name == self._entry:
            return 1
        total = 0
        unknown = self._is_cut and not self.calls_of(name)  # what calls it may have been cut off
        for call in self.calls_of(name):
            outer = self._executions.get(call.caller.computation.name)
            if outer == 0:
                continue
            factor = _factor(call.role, call.caller)
            if factor == 0:
                continue
            if outer is None or factor is None:
                unknown = True
            else:
                total += outer * factor
        return None if unknown or total > _MOST else total


def _factor(role: str, caller: Instruction) -> int | None:
    """Return how often one execution of a call site runs the computation it calls."""
    if role == "unreadable":
        return None
    if role not in ("body", "condition"):
        return 1
    trips = trip_count(caller)
    return trips if trips is None or role == "body" else trips + 1
