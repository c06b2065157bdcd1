"""Markdown that shows what it is given and obeys none of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from commlens.views.words import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.views.columns import Table

_PLAIN: Final = re.compile(r"(?!.*www\.)[A-Za-z0-9 .,;()?%>=-]*", re.IGNORECASE)
"""Texts that Markdown shows as they are: quotes and headings begin a line, which a cell does not; nothing is a link."""

_NO_CODE: Final = re.compile(r"[`|\\]|<[A-Za-z/!?]")
"""What a code span in a table cannot hold, or what a careless renderer could take for a tag."""

_SPECIAL: Final = re.compile(r"[!-/:-@\[-`{-~]")
"""ASCII punctuation: all of it may be escaped by a backslash (CommonMark 0.31, section 2.4)."""

_ACTIVE: Final = re.compile(
    r"[!#$&*<>@\[\\\]^_`{|}~]"  # marks that act anywhere
    r"|(?<=:)/(?=/)|(?<=www)\."  # what makes a link without a mark
    r"|^[-+=]|(?:(?<=^\d)|(?<=^\d\d)|(?<=^\d\d\d))[.)]",  # what makes a list or a heading at the beginning
    re.IGNORECASE,
)
"""What Markdown would obey in running text."""


def markdown_text(text: str) -> str:
    r"""Return a text as Markdown that renders as the text itself, in a table cell too.

    Example:
        >>> markdown_text("all-reduce"), markdown_text("[2,4]<=[8]"), markdown_text("a|b"), markdown_text("<b>")
        ('all-reduce', '`[2,4]<=[8]`', 'a\\|b', '&lt;b&gt;')
    """
    text = printable(text).strip()
    if _PLAIN.fullmatch(text):
        return text
    if _NO_CODE.search(text) is None:
        return f"`{text}`"
    return _SPECIAL.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    character = match.group()
    return {"<": "&lt;", ">": "&gt;", "&": "&amp;"}.get(character, "\\" + character)


def markdown_prose(text: str) -> str:
    r"""Return a sentence as Markdown that renders as the sentence itself, as running text and not as code.

    Example:
        >>> print(markdown_prose("1. see {{0,1}} and #rank_world_size: not *here*, www.x.y, http://x"))
        1\. see \{\{0,1\}\} and \#rank\_world\_size: not \*here\*, www\.x.y, http:\//x
    """
    return _ACTIVE.sub(_escaped, printable(text).strip())


def markdown_table(table: Table) -> Iterator[str]:
    """Yield a table in GitHub's form, line by line; details below rows are left out."""
    yield _row([column.title for column in table.columns])
    yield "|" + "|".join(" ---: " if column.align == "right" else " --- " for column in table.columns) + "|\n"
    for row in table.rows:
        yield _row([cell.text for cell in row])


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(markdown_text(cell) for cell in cells) + " |\n"
