"""Fresh channel ids that may be taken after all: told to the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlens.hlo import some_of
from commlens.neuron.places import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from commlens.hlo import Instruction, Site
    from commlens.neuron.channel_ids import Carrier
    from commlens.neuron.passes.renumbering import Renumbering


def taken_hazards(
    changes: Sequence[Renumbering], custom_calls: Iterable[Carrier], hidden: Sequence[Instruction]
) -> Iterator[str]:
    """Say which fresh ids somebody else may have.

    Args:
        changes: the new ids.
        custom_calls: collectives that are written as custom calls, whose ids do not count for the next one.
        hidden: what may have an id that cannot be read.
    """
    stated: dict[int | None, list[Site | Instruction]] = {}
    for each in custom_calls:
        stated.setdefault(each.channel_id, []).append(each.item)
    fresh: dict[int, list[Site | Instruction]] = {}
    for each in changes:
        fresh.setdefault(each.channel_id, []).append(each.carrier.item)
    for number, items in fresh.items():
        if number in stated:
            yield (
                f"the new channel id {number} of {listed(items)} is stated by {listed(stated[number])} as well: custom"
                " calls do not count for the next id"
            )
    if hidden and fresh:
        ids = some_of([*map(str, fresh)])
        yield f"nobody can say that the new channel ids ({ids}) are free: that of {listed(hidden)} cannot be read"
