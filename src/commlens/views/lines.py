"""Lines of styled text: what a table view is made of before it becomes plain text or colours.

A view lays out its answer once; :func:`plain_text` drops the styles, :mod:`commlens.views.terminal` paints them. So the
two never differ in what they say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from commlens.views.words import printable, width_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Span(NamedTuple):
    """A piece of text in one style.

    Attributes:
        text: printable text.
        style: a style by rich's names, ``""`` for none. Colour never carries meaning alone.
    """

    text: str
    style: str = ""


Line: TypeAlias = tuple[Span, ...]
"""One line, without its line break."""

BLANK: Final[Line] = ()

BOLD: Final = "bold"
DIM: Final = "dim"
WARNING: Final = "yellow"

_READABLE: Final = 100


def line(*parts: str | Span) -> Line:
    r"""Build a line; plain strings are unstyled and made printable.

    Example:
        >>> line("x", Span("y", "bold"), "\t")
        (Span(text='x', style=''), Span(text='y', style='bold'), Span(text='\\t', style=''))
    """
    return tuple(part if isinstance(part, Span) else Span(printable(part)) for part in parts)


def styled(text: str, style: str) -> Span:
    """Build a span from any text, which is made printable."""
    return Span(printable(text), style)


def text_of(one: Line) -> str:
    """Return a line without its styles."""
    return "".join(span.text for span in one).rstrip()


def plain_text(lines: Iterable[Line]) -> Iterator[str]:
    """Yield lines without their styles, each with its line break."""
    for one in lines:
        yield text_of(one) + "\n"


def wrapped(words: Iterable[Span], width: int | None, *, indent: str = "") -> Iterator[Line]:
    """Set words into lines, as many in each as fit; a word that is too long stands alone and is never cut.

    Args:
        words: the words; none is split. One that begins with blanks keeps its distance within a line.
        width: columns of a line, None for one line however long.
        indent: what every line begins with.

    Example:
        >>> [text_of(one) for one in wrapped([Span("one"), Span("two"), Span(" three"), Span(" 4")], 11, indent="  ")]
        ['  one two', '  three  4']
    """
    current: list[Span] = []
    used = 0
    for word in words:
        needed = 1 + width_of(word.text)
        if current and width is not None and used + needed > width:
            yield (Span(indent), *current)
            current = []
        if current:
            current += [Span(" "), word]
            used += needed
        else:
            first = word._replace(text=word.text.lstrip())
            current = [first]
            used = width_of(indent) + width_of(first.text)
    if current:
        yield (Span(indent), *current)


def paragraph(text: str, style: str, width: int | None) -> Iterator[Line]:
    """Yield running text, wrapped where it is good to read even on a wide terminal."""
    return wrapped([styled(word, style) for word in text.split()], min(width or _READABLE, _READABLE))
