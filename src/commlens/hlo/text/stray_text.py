"""Text between computations that belongs to none: what a cut or damage leaves of one.

Logs and prose stand around modules and mean nothing. Inside a module there are none, and behind its last computation a
text that was cut ends in the beginning of another one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from commlens.hlo.text.tokens import BEHIND_A_BODY, NAME, blank_comments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo.text.index import Index
    from commlens.hlo.text.tokens import Text

_NAME: Final = rb"%?(?>" + NAME + rb")"
_CUT: Final = re.compile(
    rb"\}" + BEHIND_A_BODY + rb"\s*+(?P<header>ENTRY\b.*+|%[\w.\-]++\s*+\([^{]*+"
    rb"|%|" + _NAME + rb"\s*+(?>\(\s*+(?>" + _NAME + rb"\s*+(?>:[^{]*+)?+)?+)?+)\Z",
    re.DOTALL,
)
"""Behind the last computation: the mark or the name of another one, perhaps with parameters, and no body."""
_BEHIND: Final = re.compile(BEHIND_A_BODY)
_MARK: Final = re.compile(rb"\bENTRY(?=\s*+\Z)")
"""The mark of the computation behind the part, whose name stands on a line of its own."""
_WORD: Final = re.compile(rb"[\w%]\S*[^\n]*")
_LOGGED: Final = re.compile(rb"^[IWEF]\d{4} [^\n]*", re.MULTILINE)
_USUAL: Final = len("}\n\n")
_EXCERPT: Final = 80


def gaps(index: Index, numbers: range) -> Iterator[tuple[int, int]]:
    """Yield the parts of a text before some computations, back to the one before, that hold more than blank lines do.

    Args:
        index: the text's index.
        numbers: the numbers of the computations, none the first of the text.
    """
    starts, ends = index.ends[numbers.start - 1 : numbers.stop - 1] + 1, index.opened[numbers.start : numbers.stop]
    for place in np.flatnonzero(ends - starts >= _USUAL).tolist():
        if numbers[place] not in index.loose:  # whose own header stands there, in a form that is not known
            yield int(starts[place]), int(ends[place])


def stray_word(text: Text, start: int, end: int) -> tuple[int, bytes] | None:
    r"""Return the first word in a part of a text with its offset; comments and lines of a log are none.

    Example:
        >>> stray_word(b"} // this\n ENTR\n%x {}", 1, 16), stray_word(b"}/* a */\n\n\ne {}", 1, 11)
        ((11, b'ENTR'), None)
    """
    part = blank_comments(text[start:end])
    part = _LOGGED.sub(lambda match: b" " * len(match[0]), part)
    part = _MARK.sub(b" " * len("ENTRY"), part)
    behind = _BEHIND.match(part)
    word = _WORD.search(part, 0 if behind is None else behind.end())
    return None if word is None else (start + word.start(), word[0][:_EXCERPT])


def cut_header(text: Text, start: int, end: int) -> tuple[int, bytes] | None:
    r"""Return the beginning of a computation that stands alone between a closing brace and the end, with its offset.

    Example:
        >>> cut_header(b"e {}\n\nENTR", 3, 10), cut_header(b"e {}\n\nEnd of the log.", 3, 21)
        ((6, b'ENTR'), None)
    """
    header = _CUT.match(blank_comments(text[start:end]))
    return None if header is None else (start + header.start("header"), header["header"].strip()[:_EXCERPT])
