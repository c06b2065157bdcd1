"""Where the schedules of hosts part, and what each host does there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from commlens.analysis.diffs.changes import described
from commlens.analysis.diffs.details import listed_shapes, meaning_details, times
from commlens.analysis.hosts.answers import FirstDifference
from commlens.analysis.hosts.survey import run_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from commlens.analysis.hosts.survey import HostModule
    from commlens.analysis.meanings import Meaning, Meanings
    from commlens.analysis.schedules import Schedule, Step

_Order: TypeAlias = Literal["listed", "running"]
_Tokens: TypeAlias = "list[tuple[str, Hashable]]"

_STEP: Final = "step"


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where each kind of hosts parts from most others.

    Attributes:
        order: how positions are counted.
        positions: one for each kind.
        running: the same, counted as collectives run.
    """

    order: _Order
    positions: tuple[int, ...]
    running: tuple[int, ...]

    def first_difference(self, name: str, members: Sequence[HostModule], meanings: Meanings) -> FirstDifference:
        """Say what each host does at the first position.

        Args:
            name: name of the module.
            members: the module of each host.
            meanings: what the numbers of meanings mean.
        """
        position = min(self.positions)
        words = _Words(_steps_at(self.order, position, members), self.order, meanings).of(members)
        return FirstDifference(position, self.order, min(self.running), name, words)


def divergence_of(kinds: Sequence[Sequence[HostModule]], members: Sequence[HostModule]) -> Divergence:
    """Find out where hosts part.

    Args:
        kinds: the hosts by what they run; the others are held against the first.
        members: all of them.
    """
    schedules = [each[0].schedule for each in kinds]
    order: _Order = "listed" if _lists_tell(schedules, members) else "running"
    contents: dict[Hashable, int] = {}
    running = _positions([[*_running(schedule, contents)] for schedule in schedules])
    listed = _positions([[*_listed(schedule)] for schedule in schedules]) if order == "listed" else running
    return Divergence(order, listed, running)


def _lists_tell(schedules: Sequence[Schedule], members: Sequence[HostModule]) -> bool:
    """Whether the rows as they are listed show how each schedule differs from the first.

    They do not where only loops or branches stand elsewhere, and a text lists computations in another order than a
    proto.
    """
    lists = [[*_listed(schedule)] for schedule in schedules]
    return len({member.format for member in members}) == 1 and all(each != lists[0] for each in lists[1:])


def _positions(tokens: Sequence[_Tokens]) -> tuple[int, ...]:
    return tuple(_steps_in_common(tokens[0], each) for each in tokens[1:])


def _steps_in_common(mine: _Tokens, theirs: _Tokens) -> int:
    """Return how many steps two lists have in common before they part."""
    pairs = enumerate(zip(mine, theirs, strict=False))
    place = next((place for place, (a, b) in pairs if a != b), min(len(mine), len(theirs)))
    return sum(kind == _STEP for kind, _ in mine[:place])


def _listed(schedule: Schedule) -> Iterator[tuple[str, Hashable]]:
    """Yield the steps as they are listed."""
    return ((_STEP, run_of(step)) for step in schedule.steps)


def _running(schedule: Schedule, known: dict[Hashable, int]) -> Iterator[tuple[str, Hashable]]:
    """Yield the steps as they run, and where parts begin and end; of what runs again, what it holds.

    Args:
        schedule: the schedule.
        known: what parts hold, numbered so far.
    """
    contents = schedule.contents(run_of, known, with_trips=True)
    parts = (number for number, part in enumerate(schedule.parts) if not part.again)
    inner = {schedule.lone(number) for number in parts}  # what is around them says how often they run
    pending: list[int | None] = [~0]
    while pending:
        item = pending.pop()
        if item is None:
            yield "end", None
        elif item >= 0:
            yield _STEP, run_of(schedule.steps[item])
        elif (part := schedule.parts[~item]).again:
            yield "again", contents[~item]
        else:
            yield "begin", (part.role, 1 if ~item in inner else schedule.rounds(~item))
            pending += [None, *reversed(part.items)]


# --- what they do there ----------------------------------------------------------------------------------------------


def _steps_at(order: _Order, position: int, members: Sequence[HostModule]) -> dict[int, Step | None]:
    """Return what each schedule has at a position; thousands of hosts share a few."""
    found: dict[int, Step | None] = {}
    for schedule in {id(member.schedule): member.schedule for member in members}.values():
        numbers = range(len(schedule.steps)) if order == "listed" else schedule.in_order()
        found[id(schedule)] = schedule.steps[numbers[position]] if position < len(numbers) else None
    return found


@dataclass(frozen=True, slots=True)
class _Words:
    """Says what hosts do at a position.

    Attributes:
        steps: the step of each schedule there, by its ``id()``; None where it ends before.
        order: how the position is counted.
        meanings: what the numbers of meanings mean.
    """

    steps: Mapping[int, Step | None]
    order: _Order
    meanings: Meanings

    def of(self, members: Sequence[HostModule]) -> dict[str, str]:
        """Return the path of each host with what it does, in other words where that is not the same."""
        words = {member.path: self._at(member.schedule, in_full=False) for member in members}
        if not self._tell_apart(members, words):
            words = {member.path: self._at(member.schedule, in_full=True) for member in members}
        told = self._tell_apart(members, words)
        runs = {member.path: self._run(member.schedule) for member in members}
        if told and len(set(runs.values())) > 1:
            return words
        alike: Mapping[str, Hashable] = runs if told else words
        first: dict[Hashable, HostModule] = {}
        return {
            member.path: words[member.path] + self._against(first.setdefault(alike[member.path], member), member)
            for member in members
        }

    def _tell_apart(self, members: Sequence[HostModule], words: dict[str, str]) -> bool:
        """Whether what is not the same is in other words, and whether not all are in the same ones."""
        steps = {(words[member.path], self._run(member.schedule)) for member in members}
        return len(steps) == len({text for text, _ in steps}) > 1

    def _step(self, schedule: Schedule) -> Step | None:
        return self.steps[id(schedule)]

    def _run(self, schedule: Schedule) -> Hashable:
        step = self._step(schedule)
        return None if step is None else run_of(step)

    def _at(self, schedule: Schedule, *, in_full: bool) -> str:
        """Describe what a schedule has at the position."""
        step = self._step(schedule)
        if step is None:
            return self._nothing(schedule)
        meaning = self.meanings[step.meaning]
        channel = "" if step.channel is None else f", channel {step.channel}"
        shapes = listed_shapes(meaning.operand_shapes)
        line = "" if step.line is None else f" line {step.line}"
        runs = "" if step.runs == 1 else f", runs {times(step.runs)}"
        branch = ", in a branch of a conditional" if step.conditional else ""
        what = f"{meaning.opcode} {step.name}{channel}, {described(self.meanings, step.meaning)}, operands {shapes}"
        more = "".join(f", {each}" for each in _more(meaning)) if in_full else ""
        return f"{what}{more}{runs}{branch}, in {step.computation}{line}"

    def _nothing(self, schedule: Schedule) -> str:
        number = f"{len(schedule.steps):,}"
        if all(step is None for step in self.steps.values()):
            return f"nothing new: its {number} collective{' has' if number == '1' else 's have'} run before"
        if self.order == "running":
            return f"nothing: its schedule ends after {number}"
        return f"nothing: its list of {number} collective{'' if number == '1' else 's'} ends before"

    def _against(self, first: HostModule, member: HostModule) -> str:
        """Say how a collective differs from one that the same words describe."""
        one, other = self._step(first.schedule), self._step(member.schedule)
        if member.flow == first.flow:
            return ""
        if one is None or other is None:
            return f"; what runs again does so at other places than on {first.path}" if one == other else ""
        if one.meaning == other.meaning:
            return f"; in other loops, branches or calls than on {first.path}"
        details = meaning_details(self.meanings[one.meaning], self.meanings[other.meaning])
        what = "; ".join(detail.what for detail in details) or "it does something else"
        return f"; not the same as on {first.path}: {what}"


def _more(meaning: Meaning) -> Iterator[str]:
    """Yield what two collectives may differ in beside devices and operands."""
    yield f"results {listed_shapes(meaning.result_shapes)}"
    if meaning.dimension is not None:
        yield f"dimension {meaning.dimension}"
    if meaning.reduction is not None:
        yield f"reduction {meaning.reduction.text}"
    if meaning.token_operands:
        yield f"operands that only order things {list(meaning.token_operands)}"
    if meaning.stream is not None:
        yield f"stream {meaning.stream}"
