"""Refusing a computation that XLA would not read, where a pass goes by its order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlens.hlo.definition_order import uses_before_definition
from commlens.hlo.model import UnreadableError
from commlens.hlo.passes.refusals import place_of_name

if TYPE_CHECKING:
    from commlens.hlo.model import Computation


def check_definition_order(computation: Computation) -> None:
    """Refuse a computation in which something is used and not defined before.

    Raises:
        UnreadableError: it is such a one, or an instruction cannot be taken apart; with the place in a text.
    """
    for need in uses_before_definition(computation):
        line, column = place_of_name(need.user)
        msg = f"{need.user.name}: {need.why}"
        raise UnreadableError(msg, line=line, column=column)
