"""Does a collective carry a stream id already?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from commlens.hlo import Pass, Refusals, UnreadableError, communication_in_list_order, figures, pass_result, shares
from commlens.neuron.frontend_attributes import STREAM_ID
from commlens.neuron.passes.unread import check_read
from commlens.neuron.places import name_of, place_of
from commlens.neuron.predicates import COLLECTIVE_CLASS
from commlens.neuron.reading import attributes_of

if TYPE_CHECKING:
    from commlens.hlo import Json, Listed, Module, PassResult


@dataclass(frozen=True, slots=True)
class CollectiveStreamIdChecker(Pass):
    """Says whether a collective has the frontend attribute ``stream_id``; compares nothing and changes nothing.

    It looks at the class ``HloCollectiveInstruction`` only, so collective-permute, send and recv never count, and of
    an asynchronous start at what it wraps. Nobody reads the value: an empty one counts as well. ``found`` starts false
    and is only ever set; ``changed`` is always false. Whether it decides that the injector runs is not documented.

    Attributes:
        name: ``"collective-stream-id-checker"``, number 58 of the registry.

    Source: ``xla::CollectiveStreamIdChecker`` of neuronx_cc 2.24.5133.

    Example:
        >>> from commlens.hlo import load
        >>> module = load('''ENTRY e {
        ...   p = f32[8] parameter(0)
        ...   ROOT g = f32[16] all-gather(p), dimensions={0}, frontend_attributes={stream_id="0"}
        ... }''')
        >>> result = CollectiveStreamIdChecker().run(module)
        >>> result.found, result.changed, result.modified
        (True, False, False)
    """

    name: ClassVar[str] = "collective-stream-id-checker"

    def run(self, module: Module, *, keep_going: bool = False) -> PassResult:
        """Look for a stream id.

        Args:
            module: the module.
            keep_going: whether to leave out what cannot be read in full, instead of refusing the module.

        Returns:
            ``found``, and in ``stats`` how many collectives were looked at, how many carry which value, the first that
            does, and what carries one outside the class.

        Raises:
            InputError: a collective that the pass looks at, or what may be one, cannot be read in full.
        """
        refusals = Refusals(module, keep_going)
        refusals.check_structure()
        looked_at, values, first = 0, Counter[str](), None
        outside: list[dict[str, Json]] = []
        for _, items in communication_in_list_order(module):
            for each in items:
                if each.opcode and each.opcode not in COLLECTIVE_CLASS:
                    outside += _outside(each)
                    continue
                try:
                    check_read(each.item)
                    value = attributes_of(each.item).get(STREAM_ID)
                except UnreadableError as error:
                    refusals.refuse(each.instruction, error)
                    continue
                looked_at += 1
                if value is not None:
                    values[value] += 1
                    first = first or each
        carrying = values.total()
        stats: dict[str, Json] = {
            "looked_at": looked_at,
            "with_stream_id": carrying,
            "values": dict(sorted(values.items())),
            "first": None if first is None else place_of(first.item),
            "outside": outside,
        }
        facts = (
            *figures(looked_at=looked_at, with_stream_id=carrying),
            *shares("values", dict(sorted(values.items()))),
            *figures(first=None if first is None else name_of(first.item), outside=len(outside)),
        )
        return pass_result(self.name, refusals, changed=False, found=first is not None, stats=stats, facts=facts)


def _outside(each: Listed) -> list[dict[str, Json]]:
    """Tell of something that carries a stream id and is not looked at; what cannot be read stops nobody."""
    try:
        value = attributes_of(each.item).get(STREAM_ID)
    except UnreadableError:
        return []
    return [] if value is None else [{**place_of(each.item), "opcode": each.opcode, "value": value}]
