"""From the collectives of a module to the sets of them that become one, and an account of those that do not."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.hlo import UnreadableError, are_provably_chained, list_keys, uses_before_definition
from commlens.neuron.combiner_engine import Candidate, find_sets
from commlens.neuron.combiner_keys import Excluded
from commlens.neuron.combiner_order import CycleError
from commlens.neuron.passes.combined_sets import combined_set
from commlens.neuron.places import name_of
from commlens.neuron.sharding_domains import DOMAIN, NO_DOMAIN, domain_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from commlens.hlo import AppliedEdits, Computation, Graph, Instruction, Json, Refusals, Site
    from commlens.neuron.combiner_engine import Limits
    from commlens.neuron.combiner_keys import KeyReader, Reducer, StatedKey
    from commlens.neuron.passes.combined_sets import CombinedSet
    from commlens.neuron.passes.combiner_survey import Collectives

_FUSED: Final = "it stands in a fusion"
_LOOPED: Final = "it stands in the body of a while loop"
_TOO_LARGE: Final = "its result alone is larger than threshold_bytes"
_CONTROLLED: Final = "it has control dependencies"
_NOT_A_NAME: Final = "expected its operands to be names of instructions, found one in another form"
_NOT_UNDERSTOOD: Final = "it, or what it depends on, cannot be understood: see left_alone"


@dataclass(slots=True)
class Work:
    """The work on one module.

    Attributes:
        found: the collectives.
        keys: reads their keys.
        limits: how large a set may become.
        refusals: takes what cannot be understood.
        excluded: what can be in no set, by reason.
    """

    found: Collectives
    keys: KeyReader
    limits: Limits
    refusals: Refusals
    excluded: dict[str, list[Site | Instruction]] = field(default_factory=dict[str, "list[Site | Instruction]"])
    _with_domains: set[str] | None = None

    def combined(self, *, skip_while_bodies: bool) -> Iterator[CombinedSet]:
        """Yield the sets, computation by computation."""
        names = self.found.module.fresh_names(self.keys.rules.opcode)
        closed = self._closed(skip_while_bodies=skip_while_bodies)
        for computation, sites in self.found.sites:
            if computation.name in closed:
                self._exclude(closed[computation.name], sites)
                continue
            for members in self._sets(computation, sites):
                try:
                    yield combined_set(next(names), members)
                except UnreadableError as error:
                    self._refuse_set(members, error)

    def made(self, sets: Sequence[CombinedSet]) -> tuple[list[CombinedSet], AppliedEdits]:
        """Make the sets; return those that can be made, and what was made. The others are refused.

        A set needs no other one: what can be combined after others were can be combined without them.
        """
        made = self.refusals.apply([each.edit for each in sets])
        edits = set(map(id, made.edits))
        for each in sets:
            if id(each.edit) not in edits:
                self._exclude(_NOT_UNDERSTOOD, each.edit.members)
        return [each for each in sets if id(each.edit) in edits], made

    def account(self, sets: Sequence[CombinedSet]) -> dict[str, Json]:
        """Return what was excluded and why, and how many collectives there were; who is alone found no partner.

        Why something could not have been combined is only looked at where there are others that it may have joined.
        """
        return {
            "excluded": [
                {"why": why, "count": len(sites), "instructions": [name_of(site) for site in sites]}
                for why, sites in self.excluded.items()
            ],
            "counts": self.counts(sets),
        }

    def counts(self, sets: Sequence[CombinedSet]) -> dict[str, int]:
        """Return how many collectives there were, and what became of how many."""
        candidates = sum(len(sites) for _, sites in self.found.sites)
        combined = sum(len(each.edit.members) for each in sets)
        excluded = sum(map(len, self.excluded.values()))
        return {
            "candidates": candidates,
            "sets": len(sets),
            "combined": combined,
            "excluded": excluded,
            "alone": candidates - combined - excluded,
        }

    def _exclude(self, why: str, collectives: Iterable[Site | Instruction]) -> None:
        self.excluded.setdefault(why, []).extend(collectives)

    def _refuse(
        self, instruction: Instruction, why: str | UnreadableError, collectives: Iterable[Site | Instruction]
    ) -> None:
        """Refuse an instruction; where it may be left alone, so are these collectives."""
        self.refusals.refuse(instruction, why)
        self._exclude(_NOT_UNDERSTOOD, collectives)

    def _refuse_set(self, members: Sequence[Site], why: UnreadableError) -> None:
        """Refuse a set because of the member that cannot be read; all others are named beside it."""
        instructions = [each.instruction for each in members]
        unread = next((each for each in instructions if not _is_readable(each)), instructions[0])
        self.refusals.refuse(unread, why, instructions)
        self._exclude(_NOT_UNDERSTOOD, members)

    def _closed(self, *, skip_while_bodies: bool) -> dict[str, str]:
        """Return the names of computations in which nothing is combined, with the reason."""
        reasons = {"fusion": _FUSED, "body": _LOOPED} if skip_while_bodies else {"fusion": _FUSED}
        calls = self.found.module.callers({computation.name for computation, _ in self.found.sites})
        return {call.callee: reasons[call.role] for call in calls if call.role in reasons}

    def _sets(self, computation: Computation, sites: Sequence[Site]) -> list[list[Site]]:
        """Return the sets of one computation.

        Its edges are only looked at where two collectives may share a key and neither is seen to need the other.
        """
        stated = self._sharing(sites)
        if not stated or are_provably_chained(computation, _by_key(stated)):
            return []
        edges = self._edges(computation, stated)
        if edges is None:
            return []
        positions = _positions(computation, stated)
        candidates = [
            Candidate(at, (stated[site], key), _num_bytes(site))
            for at, site in positions.items()
            if (key := self._key(site, edges, at)) is not None
        ]
        try:
            found = find_sets(edges.graph, candidates, self.limits)
        except CycleError as error:
            members = [positions[each.position] for each in candidates]
            self._refuse(computation.instructions[error.position], str(error), members)
            return []
        return [[positions[at] for at in each] for each in found]

    def _sharing(self, sites: Iterable[Site]) -> dict[Site, StatedKey]:
        """Return the collectives that say the same of themselves as another one does."""
        stated: dict[Site, StatedKey] = {}
        for site in sites:
            key = self.keys.stated(site.signature)
            if isinstance(key, Excluded):
                self._exclude(key.why, [site])
            elif _num_bytes(site) > self.limits.num_bytes:
                self._exclude(_TOO_LARGE, [site])
            else:
                stated[site] = key
        sharing = Counter(stated.values())
        return {site: key for site, key in stated.items() if sharing[key] > 1}

    def _edges(self, computation: Computation, stated: Mapping[Site, StatedKey]) -> _Edges | None:
        """Return what is known of a computation beyond its collectives; None where it cannot be understood."""
        if self._with_domains is None:
            self._with_domains = {each.computation.name for each in self.found.module.instructions_of({DOMAIN})}
        try:
            graph = computation.graph()
            unmet = _first_unmet(computation, graph)
            if unmet is not None:
                self._refuse(*unmet, stated)
                return None
            parted = computation.name in self._with_domains
            domains = domain_ids(computation.instructions, graph) if parted else None
        except UnreadableError as error:
            why = f"the computation it stands in cannot be taken apart: {error}"
            self._refuse(next(iter(stated)).instruction, why, stated)
            return None
        return _Edges(graph, domains, frozenset(chain.from_iterable(graph.control_predecessors.values())))

    def _key(self, site: Site, edges: _Edges, position: int) -> tuple[Reducer | None, int] | None:
        """Return what of a key a collective does not say itself; None where it can be in no set."""
        operands = len(edges.graph.operands[position])
        if operands != 1:
            self._exclude(f"it has {operands} operands", [site])
            return None
        if self.keys.rules.reduces and edges.is_controlled(position):
            self._exclude(_CONTROLLED, [site])
            return None
        try:
            reducer = self.keys.reducer(site.instruction, site.signature)
        except UnreadableError as error:
            self._refuse(site.instruction, error, [site])
            return None
        if isinstance(reducer, Excluded):
            self._exclude(reducer.why, [site])
            return None
        return reducer, NO_DOMAIN if edges.domains is None else edges.domains[position]


class _Edges(NamedTuple):
    """What holds a computation together.

    Attributes:
        graph: its edges.
        domains: by position the sharding domain; None where nothing parts it.
        control_sources: positions of what others wait for without using it.
    """

    graph: Graph
    domains: Sequence[int] | None
    control_sources: frozenset[int]

    def is_controlled(self, position: int) -> bool:
        """Whether an instruction has control predecessors or successors."""
        return position in self.control_sources or bool(self.graph.control_predecessors.get(position))


def _by_key(stated: Mapping[Site, StatedKey]) -> Iterable[Sequence[Instruction]]:
    """Return the collectives that say the same of themselves, in list order."""
    found: dict[StatedKey, list[Instruction]] = {}
    for site, key in stated.items():
        found.setdefault(key, []).append(site.instruction)
    return found.values()


def _positions(computation: Computation, sites: Iterable[Site]) -> dict[int, Site]:
    """Return the collectives by position in the list, in list order."""
    by_key = {site.instruction.list_key: site for site in sites}
    return {at: by_key[key] for at, key in enumerate(list_keys(computation)) if key in by_key}


def _is_readable(instruction: Instruction) -> bool:
    """Whether all can be read that members of a set are compared in."""
    try:
        instruction.metadata_fields()
        instruction.other_attributes()
    except UnreadableError:
        return False
    return True


def _first_unmet(computation: Computation, graph: Graph) -> tuple[Instruction, str] | None:
    """Return the first instruction of which nobody can tell what it needs, or that stands before it; and why."""
    unmet = next(iter(uses_before_definition(computation)), None)
    if unmet is not None:
        return unmet.user, unmet.why
    return (computation.instructions[min(graph.broken)], _NOT_A_NAME) if graph.broken else None


def _num_bytes(site: Site) -> int:
    return sum(shape.num_bytes or 0 for shape in site.signature.result_shapes)
