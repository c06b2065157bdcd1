"""Finding where a name is defined inside one computation of a text.

Most operands are defined a few lines above their use, parameters at the top. Only what is found at neither place costs
a map of the computation, and that map is two arrays of numbers, not a dictionary of names.
"""

from __future__ import annotations

import re
from array import array
from typing import TYPE_CHECKING, Final

import numpy as np

from commlens.hlo.text.tokens import DEFINITION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from commlens.hlo.text.tokens import Text

_NEAR: Final = 2048
_TOP: Final = 8192
_DEFINITION: Final = re.compile(DEFINITION)
_REGULAR: Final = re.compile(rb"^[ \t]+(?:ROOT(?:[ \t]+|(?=%)))?%?([^\s=%]+)[ \t]*=", re.MULTILINE)


class Definitions:
    """The definitions of one computation.

    Args:
        text: the whole file.
        body: offset behind the computation's opening brace.
        end: offset of its closing brace.
        starts: where its instructions start, for a computation that is not laid out as compilers print it.
    """

    __slots__ = ("_body", "_end", "_hashes", "_offsets", "_starts", "_text")

    def __init__(self, text: Text, body: int, end: int, starts: Sequence[int] | None) -> None:
        self._text = text
        self._body = body
        self._end = end
        self._starts = starts
        self._hashes: NDArray[np.int64] | None = None
        self._offsets: NDArray[np.int64] | None = None

    def value_of(self, name: bytes, before: int) -> int | None:
        """Return the offset of what stands behind ``name = ``.

        Args:
            name: the name without ``%``.
            before: offset of the use; used to look at likely places first.

        Returns:
            The offset of the shape (or of the opcode where the shape is left out), None if nothing bears the name.
        """
        if self._starts is None:
            found = self._regular(name, before)
            if found is not None:
                return found
        return self._mapped(name)

    def _regular(self, name: bytes, before: int) -> int | None:
        """Look a few lines above the use, then at the top of the computation."""
        text, body = self._text, self._body - 1
        for mark in (b"%", b""):
            needle = b"\n  " + mark + name + b" = "
            found = text.rfind(needle, max(body, before - _NEAR), before)
            if found < 0:
                found = text.find(needle, body, min(body + _TOP, self._end))
            if found >= 0:
                return found + len(needle)
        return None

    def repeated(self) -> tuple[bytes, int, int] | None:
        """Return a name that is defined twice, and where both times, offsets in the file; None where there is none.

        XLA refuses such a text: nobody can say which of the two a use means.
        """
        hashes, offsets = self._sorted()
        for second in (np.flatnonzero(hashes[1:] == hashes[:-1]) + 1).tolist():
            one, other = (_DEFINITION.match(self._text, int(offsets[each])) for each in (second - 1, second))
            if one is not None and other is not None and one["name"] == other["name"]:
                return one["name"], one.start("name"), other.start("name")
        return None

    def _mapped(self, name: bytes) -> int | None:
        hashes, offsets = self._sorted()
        wanted = hash(name)
        first = int(np.searchsorted(hashes, wanted))
        while first < hashes.size and hashes[first] == wanted:
            definition = _DEFINITION.match(self._text, int(offsets[first]))
            if definition is not None and definition["name"] == name:
                return definition.end()
            first += 1
        return None

    def _sorted(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if self._hashes is None or self._offsets is None:
            self._hashes, self._offsets = self._map()
        return self._hashes, self._offsets

    def _map(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the hashes of all defined names in ascending order, and where their definitions start."""
        hashes, offsets = array("q"), array("q")
        if self._starts is None:
            for match in _REGULAR.finditer(self._text, self._body, self._end):
                hashes.append(hash(match[1]))
                offsets.append(match.start())
        else:
            for start in self._starts:
                match = _DEFINITION.match(self._text, start)
                if match is not None:
                    hashes.append(hash(match["name"]))
                    offsets.append(start)
        order = np.argsort(np.frombuffer(hashes, dtype=np.int64), kind="stable")
        return np.frombuffer(hashes, dtype=np.int64)[order], np.frombuffer(offsets, dtype=np.int64)[order]
