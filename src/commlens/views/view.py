"""The face of an answer, whatever the command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.views.lines import Line


class View(Protocol):
    """An answer in every form. Nothing is worked out before it is asked for."""

    def table(self, width: int | None) -> Iterator[Line]:
        """Yield the lines of the table: ``width`` columns wide, None for as wide as it gets."""
        ...

    def json(self) -> Iterator[str]:
        """Yield pieces of one JSON object."""
        ...

    def csv(self) -> Iterator[str]:
        """Yield lines of CSV."""
        ...

    def markdown(self) -> Iterator[str]:
        """Yield lines of Markdown."""
        ...
