"""Tokens of HLO attribute text, and a cursor that reads them with the exact place of every fault.

Source of the semantics: xla/hlo/parser/hlo_lexer.cc. White space and the comments ``/* */`` and ``//`` may stand
between any two tokens; strings are in single or double quotes with C escapes.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from commlens.errors import GrammarError
from commlens.topology.validation import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Item = TypeVar("Item")

WHITE_SPACE = " \t\r\n\v\f"
"""What may stand between tokens, comments aside."""

_SHOWN = 40
"""How many characters of a token an error quotes."""

_END = "end"
_INTEGER = "integer"
_NAME = "name"
_STRING = "string"

_GAP = re.compile(r"[ \t\r\n\v\f]+|//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_TOKEN = re.compile(
    r"""(?P<integer>-?[0-9]+)
      | (?P<name>[A-Za-z_][A-Za-z0-9_.-]*)
      | (?P<string>'[^'\\]*(?:\\.[^'\\]*)*' | "[^"\\]*(?:\\.[^"\\]*)*")
      | (?P<mark><=|.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]{1,2})|([0-7]{1,3})|(.))", re.DOTALL)
_LETTERS = MappingProxyType(
    {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
    | {mark: mark for mark in (b"\\", b"'", b'"', b"?")}
)
_PLAIN_INTEGERS = re.compile(r"[-0-9, \t\r\n\v\f]*")


class Token(NamedTuple):
    """One token: its kind, how it is written, and where."""

    kind: str
    text: str
    start: int

    def __str__(self) -> str:
        if self.kind == _END:
            return "the end of the text"
        return repr(self.text if len(self.text) <= _SHOWN else f"{self.text[:_SHOWN]}...")


class Cursor:
    """Reads a text token by token.

    Args:
        text: the text.
        position: offset at which to begin.

    Example:
        >>> cursor = Cursor("{ 1, /* two */ 2 }")
        >>> cursor.items("{", "}", lambda: cursor.integer("an id"))
        [1, 2]
    """

    __slots__ = ("_next", "_text")

    def __init__(self, text: str, position: int = 0) -> None:
        self._text = text
        self._next = self._scan(position)

    @property
    def token(self) -> Token:
        """The next token, not taken yet."""
        return self._next

    def _scan(self, position: int) -> Token:
        text = self._text
        while gap := _GAP.match(text, position):
            position = gap.end()
        if text.startswith("/*", position):
            msg = "expected '*/' to end the comment, found the end of the text"
            raise GrammarError(msg, position=position)
        found = _TOKEN.match(text, position)
        if found is None:
            return Token(_END, "", len(text))
        return Token(found.lastgroup or "", found.group(), position)

    def take(self) -> Token:
        """The next token; the cursor moves past it."""
        taken = self._next
        self._next = self._scan(taken.start + len(taken.text))
        return taken

    def following(self) -> Token:
        """The token after the next one; the cursor does not move."""
        return self._scan(self._next.start + len(self._next.text))

    def fail(self, expected: str) -> NoReturn:
        """Say that something else was expected than the next token.

        Raises:
            GrammarError: always.
        """
        msg = f"expected {expected}, found {self._next}"
        raise GrammarError(msg, position=self._next.start)

    def at(self, text: str) -> bool:
        """Whether the next token is this mark or name."""
        return self._next.text == text and self._next.kind != _STRING

    def at_name(self) -> bool:
        """Whether the next token is a name without quotes."""
        return self._next.kind == _NAME

    def at_integer(self) -> bool:
        """Whether the next token is an integer."""
        return self._next.kind == _INTEGER

    def accept(self, text: str) -> bool:
        """Take this mark or name if it comes next."""
        if self.at(text):
            self.take()
            return True
        return False

    def expect(self, text: str, purpose: str) -> None:
        """Take this mark or name.

        Args:
            text: the mark or name.
            purpose: what it is for, e.g. ``"to end the axes of the mesh"``.

        Raises:
            GrammarError: when something else comes.
        """
        if not self.accept(text):
            self.fail(f"{text!r} {purpose}")

    def expect_end(self) -> None:
        """Make sure that nothing is left.

        Raises:
            GrammarError: when something is.
        """
        if self._next.kind != _END:
            self.fail("the end of the text")

    def integer(self, what: str) -> int:
        """Take an integer that fits in 64 bits.

        Raises:
            GrammarError: when something else comes, or the number is too large.
        """
        token = self._next
        if token.kind != _INTEGER:
            self.fail(what)
        number = int(token.text) if len(token.text) < 2 * len(str(INT64_MAX)) else None
        if number is None or not -INT64_MAX - 1 <= number <= INT64_MAX:
            msg = f"expected {what} that fits in 64 bits, found {token}"
            raise GrammarError(msg, position=token.start)
        self.take()
        return number

    def name(self, what: str) -> str:
        """Take a name, with or without quotes.

        Raises:
            GrammarError: when something else comes, or a string holds an escape that C does not have.
        """
        token = self._next
        if token.kind == _STRING:
            self.take()
            return _unescape(token)
        if token.kind != _NAME:
            self.fail(what)
        return self.take().text

    def items(self, opening: str, closing: str, read: Callable[[], Item]) -> list[Item]:
        """Take a bracketed list, its items parted by commas, none after the last.

        Args:
            opening: the mark before the list.
            closing: the mark after it.
            read: takes one item.

        Raises:
            GrammarError: when a mark is missing.
        """
        self.expect(opening, "to start a list")
        found: list[Item] = []
        if not self.accept(closing):
            found.append(read())
            while self.accept(","):
                found.append(read())
            self.expect(closing, "to end the list")
        return found

    def integers(self, opening: str, closing: str, what: str) -> list[int]:
        """Take a bracketed list of integers; long plain ones are read in one go.

        Raises:
            GrammarError: when a mark is missing or an item is no integer that fits in 64 bits.
        """
        plain = _PLAIN_INTEGERS.match(self._text, self._next.start + len(opening)) if self.at(opening) else None
        if plain is not None and self._text.startswith(closing, plain.end()):
            numbers = _plain_integers(plain.group())
            if numbers is not None:
                self._next = self._scan(plain.end() + len(closing))
                return numbers
        return self.items(opening, closing, lambda: self.integer(what))


def _plain_integers(text: str) -> list[int] | None:
    """Integers parted by commas; None for anything that has to be looked at more closely."""
    try:
        numbers = list(map(int, text.split(",")))
    except ValueError:
        return None
    return numbers if min(numbers) >= -INT64_MAX - 1 and max(numbers) <= INT64_MAX else None


def _unescape(token: Token) -> str:
    """The name that a string token spells; octal and hexadecimal escapes are bytes of UTF-8."""
    if "\\" not in token.text:
        return token.text[1:-1]
    try:
        raw = _ESCAPE.sub(_escaped_byte, token.text[1:-1].encode("utf-8", "surrogatepass"))
        return raw.decode("utf-8", "surrogatepass")
    except (KeyError, ValueError):
        msg = f"expected a string with C escapes, found {token}"
        raise GrammarError(msg, position=token.start) from None


def _escaped_byte(escape: re.Match[bytes]) -> bytes:
    """The byte that an escape stands for.

    Raises:
        KeyError: for a letter that escapes nothing.
        ValueError: for a number that is no byte.
    """
    hexadecimal, octal, letter = escape.groups()
    if letter is not None:
        return _LETTERS[letter]
    return bytes([int(octal, 8) if hexadecimal is None else int(hexadecimal, 16)])
