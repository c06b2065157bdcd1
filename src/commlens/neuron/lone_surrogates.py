"""Texts of strangers that hold lone surrogates, which many readers of JSON refuse, with escapes instead."""

from __future__ import annotations

import re
from typing import Final

_LONE: Final = re.compile("[\ud800-\udfff]")
_BYTES: Final = range(0xDC80, 0xDD00)
"""What ``surrogateescape`` makes of the bytes from 0x80 to 0xff."""


def with_escapes(text: str) -> str:
    r"""Return a text with an escape in the place of each lone surrogate, that of the byte where it stands for one.

    Example:
        >>> print(with_escapes(b"caf\xe9".decode("utf-8", "surrogateescape")), with_escapes("\ud800"))
        caf\xe9 \ud800
    """
    return _LONE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    number = ord(match.group())
    return f"\\x{number - 0xDC00:02x}" if number in _BYTES else f"\\u{number:04x}"
