"""The collectives by whose groups the stream id injector tells streams apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from commlens.errors import InputError
from commlens.hlo import UnreadableError, check_definition_order
from commlens.neuron.passes.stream_survey import is_integer_shaped
from commlens.neuron.places import place_of
from commlens.topology import replica_groups_equal

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from commlens.hlo import Computation, Instruction, Json, Site
    from commlens.neuron.passes.stream_survey import Stampable, Survey, Traits
    from commlens.topology import DeviceList


@dataclass(frozen=True, slots=True)
class Exemplar:
    """The collective whose groups stand for a kind of parallelism.

    Attributes:
        item: the collective; where all marked ones of its computation have its groups, the first in list order.
        groups: its replica groups.
    """

    item: Site | Instruction
    groups: DeviceList

    def as_json(self) -> dict[str, Json]:
        """Return it for the statistics."""
        return {**place_of(self.item), "groups": str(self.groups)}


def find_exemplar(survey: Survey, types: Collection[str]) -> Exemplar | None:
    """Find the exemplar of some values of ``collective_type``.

    In every computation it is the first marked collective in post-order, those of integer shape left out; later
    computations overwrite. So only the last computation that has one is looked at, and its order is made out only where
    it matters.

    Raises:
        InputError: it matters, and the order cannot be made out.
    """
    integer: dict[Traits, bool] = {}
    for computation, found in reversed(survey.computations):
        candidates: list[Stampable] = []
        for each in found:
            traits = each.traits
            if traits.collective_type in types:
                if traits not in integer:
                    integer[traits] = is_integer_shaped(each)
                if not integer[traits]:
                    candidates.append(each)
        if candidates:
            first = _first(computation, candidates)
            return Exemplar(first.item, first.traits.groups)
    return None


def _first(computation: Computation, candidates: Sequence[Stampable]) -> Stampable:
    """Return the first of some collectives in post-order; one of those with its groups where all have the same."""
    groups = candidates[0].traits.groups
    if all(replica_groups_equal(each.groups, groups) for each in {each.traits: None for each in candidates}):
        return candidates[0]
    by_instruction = {each.instruction: each for each in candidates}
    try:
        check_definition_order(computation)
        order = computation.post_order()
    except UnreadableError as error:
        reason = (
            f"computation {computation.name}: {len(candidates)} marked collectives with different groups compete for"
            f" the exemplar, and the post-order that decides cannot be made out: {error}"
        )
        line = candidates[0].item.line if error.line is None else error.line
        raise InputError(reason, path=computation.module.path, line=line, column=error.column) from error
    return next(by_instruction[each] for each in order if each in by_instruction)
