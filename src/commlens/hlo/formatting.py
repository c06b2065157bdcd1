"""Values for people: a few of many things, the beginning of a long text, the text that bytes of a module hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHOWN: Final = 4


def some_of(names: Sequence[str], most: int = _SHOWN) -> str:
    """Name a few of several things, and say how many more there are.

    Args:
        names: what they are called; at least one.
        most: how many to name.

    Example:
        >>> some_of(["a"]), some_of(["a", "b"]), some_of([f"x.{i}" for i in range(6)])
        ('a', 'a and b', 'x.0, x.1, x.2, x.3 and 2 more')
    """
    shown = list(names[:most])
    rest = len(names) - len(shown)
    last = f"{rest:,} more" if rest else shown.pop()
    return f"{', '.join(shown)} and {last}" if shown else last


def as_text(data: bytes) -> str:
    r"""Decode bytes of a module; those that are no UTF-8 become replacement characters.

    Example:
        >>> as_text(b"all-reduce"), as_text(b"\xff")
        ('all-reduce', '\ufffd')
    """
    return data.decode("utf-8", "replace")


def shortened(value: object) -> str:
    """Write a value that may be of any length.

    Example:
        >>> len(shortened("x" * 100)), shortened([1, 2])
        (63, '[1, 2]')
    """
    return excerpt(str(value))
