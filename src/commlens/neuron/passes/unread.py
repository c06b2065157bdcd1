"""The one rule about collectives that cannot be read in full.

A pass must understand what it reads or changes: a collective of the opcodes that it looks at is refused with its place,
or left alone and named, where anything of it cannot be read, be it a part that the pass itself does not need. Such a
collective has no row in a report either. What a pass never looks at, by opcode or place, does not stop it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlens.hlo import Site, UnreadableError, signature_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlens.hlo import Instruction


def check_read(item: Site | Instruction) -> None:
    """Refuse a collective, send or recv of which anything cannot be read.

    Args:
        item: the instruction; a site was read already.

    Raises:
        UnreadableError: an attribute or shape cannot be read, or is missing.
    """
    if not isinstance(item, Site):
        signature_of(item)


def unread_among(items: Iterable[Site | Instruction]) -> dict[Instruction, UnreadableError]:
    """Return which of some collectives, sends and recvs cannot be read in full, with the reason."""
    found: dict[Instruction, UnreadableError] = {}
    for item in items:
        try:
            check_read(item)
        except UnreadableError as error:
            if not isinstance(item, Site):
                found[item] = error
    return found
