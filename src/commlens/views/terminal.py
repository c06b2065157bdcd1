"""Colours, for terminals alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlens.views.lines import Line


def paint(lines: Iterable[Line], stream: TextIO) -> None:
    """Write lines to a terminal in colours, as far as it has any (``NO_COLOR`` and ``TERM=dumb`` are respected).

    Texts are taken literally: markup, emoji codes and links in them stay what they are.
    """
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=True)
    for one in lines:
        painted = Text(no_wrap=True, end="")
        for span in one:
            painted.append(span.text, style=span.style or None)
        painted.rstrip()
        console.print(painted)
