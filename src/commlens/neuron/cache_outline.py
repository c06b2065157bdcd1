"""What the modules that the ranks of one job run must share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from commlens.hlo import canonical_groups, discover
from commlens.neuron.module_content import content_digest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Module, Signature


@dataclass(frozen=True, slots=True)
class Outline:
    """What must be alike in the modules that the ranks of one job run.

    Attributes:
        name: the module's name.
        interface: shapes of the parameters and of the result.
        communication: every collective in row order, with its groups or pairs.
        meaning: the same with groups in one spelling: equal where both are the same groups in the same order.
        content: a digest of the program, see :func:`~commlens.neuron.module_content.content_digest`.
    """

    name: str
    interface: tuple[str, ...]
    communication: tuple[str, ...]
    meaning: tuple[str, ...]
    content: str


def outline_of(module: Module) -> Outline:
    """Return what a module must share with those of other ranks.

    Raises:
        UnreadableError: something that must be known of it cannot be read.
    """
    spellings = tuple(_communication(module))
    written, meant = (tuple(pair[side] for pair in spellings) for side in (0, 1))
    return Outline(module.name, tuple(_interface(module)), written, meant, content_digest(module))


def _interface(module: Module) -> Iterator[str]:
    entry = module.entry
    if entry is not None and any(True for _ in entry.instructions):  # what is cut may have none, and then no root
        yield from (str(each.shape) for each in entry.instructions if each.opcode == "parameter")
        yield str(entry.root.shape)


def _communication(module: Module) -> Iterator[tuple[str, str]]:
    """Yield every collective as it is written, and with its groups in one spelling."""
    texts: dict[Signature, tuple[str, str]] = {}  # large modules repeat few collectives many times
    for site in discover(module).sites:
        signature = site.signature
        if signature not in texts:
            what = signature.groups if signature.pairs is None else signature.pairs
            meant = what if signature.groups is None else canonical_groups(signature.groups)
            first, second = ("" if each is None else f" {each}" for each in (what, meant))
            texts[signature] = f"{signature.opcode}{first}", f"{signature.opcode}{second}"
        yield texts[signature]
