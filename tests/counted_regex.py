"""A backtracking matcher that counts its steps: what a regular expression costs, without a clock.

It runs what :mod:`re` parses, in the order in which :mod:`re` tries it, without the shortcuts of the engine in C: that one
never takes more steps. Back references are not supported; nothing in the package has them.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from itertools import permutations, product
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

codes: Any = import_module("re._constants")
parser: Any = import_module("re._parser")
Node = tuple[Any, Any]

SINGLE: Final = frozenset({codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN})
REPEATS: Final = frozenset({codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT})
LARGEST_BOUND: Final = 4096
"""A repeat of at most so many rounds costs a constant factor, and runs at most :data:`FEW` rounds here."""
FEW: Final = 6
UNLIMITED: Final = 1 << 62
MOST_TEXTS: Final = 4000


class TooManyStepsError(Exception):
    """The limit of steps is reached."""


@cache
def parsed(pattern: re.Pattern[Any]) -> list[Node]:
    """Return the nodes of a pattern."""
    source = pattern.pattern
    return list(
        parser.parse(source if isinstance(source, str) else source.decode("latin-1"), pattern.flags & ~re.UNICODE)
    )


def loose_rounds(pattern: re.Pattern[Any]) -> list[Any]:
    """Return what is repeated possessively, may fail behind its first character, and is no atomic group."""
    return [*_loose_rounds(parsed(pattern))]


def _loose_rounds(nodes: Sequence[Node]) -> Iterator[Any]:
    for code, value in nodes:
        if code is codes.POSSESSIVE_REPEAT:
            (first, _), *more = value[2]
            if more or first not in SINGLE | {codes.ATOMIC_GROUP}:
                yield value[2]
        for inside in _inside(code, value):
            yield from _loose_rounds(inside)


def end_of(pattern: re.Pattern[Any], text: str) -> int | None:
    """Return where the match at the start of a text ends, None where there is none."""
    ends: list[int] = []

    def found(end: int) -> bool:
        ends.append(end)
        return True

    _Run(text, pattern.flags, UNLIMITED, few=LARGEST_BOUND).match(parsed(pattern), 0, found)
    return ends[0] if ends else None


def steps_of(pattern: re.Pattern[Any], text: str, *, anywhere: bool, limit: int = UNLIMITED) -> int:
    """Count the steps of a match at the start of a text, or of finding all matches in it.

    Raises:
        TooManyStepsError: there are more than ``limit``.
    """
    run = _Run(text, pattern.flags, limit)
    nodes = parsed(pattern)
    ends: list[int] = []

    def found(end: int) -> bool:
        ends.append(end)
        return True

    position = 0
    while position <= len(text):
        ends.clear()
        run.match(nodes, position, found)
        if not anywhere:
            break
        position = max(position + 1, ends[-1] if ends else 0)
    return run.steps


class _Run:
    def __init__(self, text: str, flags: int, limit: int, few: int = FEW) -> None:
        self.text, self.flags, self.limit, self.few, self.steps = text, flags, limit, few, 0

    def match(self, nodes: Sequence[Node], position: int, then: Callable[[int], bool]) -> bool:
        """Whether the nodes match at a position, and what comes behind them does too."""
        if not nodes:
            return then(position)
        self._step()
        (code, value), rest = nodes[0], nodes[1:]

        def follow(end: int) -> bool:
            return self.match(rest, end, then)

        if code in SINGLE:
            return self._one(code, value, position) and follow(position + 1)
        if code in REPEATS:
            return self._repeat(code, value, position, follow)
        match code:
            case codes.BRANCH:
                return any(self.match(list(each), position, follow) for each in value[1])
            case codes.SUBPATTERN:
                return self.match(list(value[3]), position, follow)
            case codes.ATOMIC_GROUP:
                return self._first_end(list(value), position, follow)
            case codes.ASSERT | codes.ASSERT_NOT:
                direction, inner = value
                start = position - inner.getwidth()[0] if direction < 0 else position
                there = start >= 0 and self.match(list(inner), start, lambda _: True)
                return there == (code is codes.ASSERT) and follow(position)
            case codes.AT:
                return self._at(value, position) and follow(position)
            case _:
                raise NotImplementedError(str(code))

    def _step(self) -> None:
        self.steps += 1
        if self.steps > self.limit:
            raise TooManyStepsError

    def _first_end(self, nodes: Sequence[Node], position: int, follow: Callable[[int], bool]) -> bool:
        ends: list[int] = []

        def stop(end: int) -> bool:
            ends.append(end)
            return True

        return self.match(nodes, position, stop) and follow(ends[0])

    def _repeat(self, code: Any, value: Any, position: int, follow: Callable[[int], bool]) -> bool:
        least, most, inner = value[0], int(value[1]), list(value[2])
        if most <= LARGEST_BOUND:
            least, most = min(least, self.few), min(most, self.few)
        if len(inner) == 1 and inner[0][0] in SINGLE:
            return self._repeat_one(code, least, most, inner[0], position, follow)

        def again(rounds: int, start: int) -> bool:
            def next_round(end: int) -> bool:
                return (end != start or rounds < least) and again(rounds + 1, end)

            more = rounds < most
            if code is codes.MIN_REPEAT:
                return (rounds >= least and follow(start)) or (more and self.match(inner, start, next_round))
            return (more and self.match(inner, start, next_round)) or (rounds >= least and follow(start))

        if code is not codes.POSSESSIVE_REPEAT:
            return again(0, position)
        rounds = 0
        while rounds < most:
            ends: list[int] = []
            if not self._first_end(inner, position, lambda end, ends=ends: ends.append(end) is None):
                break
            rounds += 1
            if ends[0] == position:
                break
            position = ends[0]
        return rounds >= least and follow(position)

    def _repeat_one(
        self, code: Any, least: int, most: int, node: Node, position: int, follow: Callable[[int], bool]
    ) -> bool:
        lengths = range(least, most + 1) if code is codes.MIN_REPEAT else None
        rounds = 0
        while rounds < most and (lengths is None or rounds < least) and self._one(*node, position + rounds):
            rounds += 1
            self._step()
        if code is codes.POSSESSIVE_REPEAT:
            return rounds >= least and follow(position + rounds)
        if lengths is None:
            return any(follow(position + length) for length in range(rounds, least - 1, -1))
        while rounds >= least:
            if follow(position + rounds):
                return True
            if rounds >= most or not self._one(*node, position + rounds):
                return False
            rounds += 1
        return False

    def _one(self, code: Any, value: Any, position: int) -> bool:
        return position < len(self.text) and takes((code, value), ord(self.text[position]), self.flags)

    def _at(self, where: Any, position: int) -> bool:
        text, end = self.text, len(self.text)
        lines = bool(self.flags & re.MULTILINE)
        match where:
            case codes.AT_BEGINNING_STRING:
                return position == 0
            case codes.AT_BEGINNING:
                return position == 0 or (lines and text[position - 1] == "\n")
            case codes.AT_END_STRING:
                return position == end
            case codes.AT_END:
                return position == end or (text[position] == "\n" and (lines or position == end - 1))
            case codes.AT_BOUNDARY | codes.AT_NON_BOUNDARY:
                sides = [0 <= each < end and _is_word(ord(text[each])) for each in (position - 1, position)]
                return (sides[0] != sides[1]) == (where is codes.AT_BOUNDARY)
            case _:
                raise NotImplementedError(str(where))


def takes(node: Node, character: int, flags: int) -> bool:
    """Whether a node of one character takes a character."""
    code, value = node
    if flags & re.IGNORECASE and chr(character).swapcase() != chr(character):
        flags &= ~re.IGNORECASE
        return any(takes(node, ord(each), flags) for each in (chr(character).lower(), chr(character).upper()))
    match code:
        case codes.LITERAL:
            return character == value
        case codes.NOT_LITERAL:
            return character != value
        case codes.ANY:
            return bool(flags & re.DOTALL) or character != ord("\n")
        case codes.IN:
            negated = value[0][0] is codes.NEGATE
            return any(_in(item, character) for item in value[negated:]) != negated
        case _:
            raise NotImplementedError(str(code))


def _in(item: Node, character: int) -> bool:
    code, value = item
    match code:
        case codes.LITERAL:
            return character == value
        case codes.RANGE:
            return value[0] <= character <= value[1]
        case codes.CATEGORY:
            kinds: dict[Any, Callable[[int], bool]] = {
                codes.CATEGORY_DIGIT: lambda each: chr(each).isdigit(),
                codes.CATEGORY_SPACE: lambda each: chr(each).isspace(),
                codes.CATEGORY_WORD: _is_word,
            }
            negated = {
                codes.CATEGORY_NOT_DIGIT: codes.CATEGORY_DIGIT,
                codes.CATEGORY_NOT_SPACE: codes.CATEGORY_SPACE,
                codes.CATEGORY_NOT_WORD: codes.CATEGORY_WORD,
            }
            return not kinds[negated[value]](character) if value in negated else kinds[value](character)
        case _:
            raise NotImplementedError(str(code))


def _is_word(character: int) -> bool:
    return chr(character).isalnum() or character == ord("_")


# --- inputs that are hard for a pattern -----------------------------------------------------------------------------

POOL: Final = [*map(ord, " a0Z_-.,:=()[]{}<>\"'\\/*\n\t%#"), 0x2026]


def hard_texts(pattern: re.Pattern[Any], length: int) -> Iterator[str]:
    """Yield texts on which a pattern may backtrack: every unlimited part pumped, behind what leads to it.

    Of a large pattern there are a hundred thousand; then every so many-th is taken, an odd number, so that all ends occur.
    """
    nodes, flags = parsed(pattern), pattern.flags
    characters = sorted(map(chr, _some_characters(nodes, flags)))
    whole = _example(nodes, flags)
    leads, units = {""}, {*characters, whole, whole[:-1]}
    for lead, inner in _pumps(nodes, "", flags):
        leads.add(lead)
        units |= {lead, _example(inner, flags), lead + _example(inner, flags)}
    pairs = {one + other for one, other in permutations(characters, 2)}
    tried = [
        *product(sorted(leads), sorted(units - {""}), ("", "\x00")),
        *(("", pair, "\x00") for pair in sorted(pairs)),
    ]
    for lead, unit, tail in tried[:: len(tried) // MOST_TEXTS | 1]:
        yield lead + unit * max(length // 4, length // len(unit)) + tail


def _some_characters(nodes: Sequence[Node], flags: int) -> set[int]:
    """Return one character for each way in which the pattern's classes tell characters apart."""
    classes = list(_singles(nodes))
    told: dict[tuple[bool, ...], int] = {}
    for character in POOL:
        told.setdefault(tuple(takes(each, character, flags) for each in classes), character)
    return set(told.values())


def _singles(nodes: Sequence[Node]) -> Iterator[Node]:
    for code, value in nodes:
        if code in SINGLE:
            yield code, value
        for inner in _inside(code, value):
            yield from _singles(inner)


def _inside(code: Any, value: Any) -> list[list[Node]]:
    if code is codes.BRANCH:
        return [list(each) for each in value[1]]
    if code in REPEATS:
        return [list(value[2])]
    if code is codes.SUBPATTERN:
        return [list(value[3])]
    if code is codes.ATOMIC_GROUP:
        return [list(value)]
    return [list(value[1])] if code in (codes.ASSERT, codes.ASSERT_NOT) else []


def _pumps(nodes: Sequence[Node], lead: str, flags: int) -> Iterator[tuple[str, list[Node]]]:
    """Yield the unlimited parts of a pattern with a text that leads to each."""
    for place, (code, value) in enumerate(nodes):
        before = lead + _example(nodes[:place], flags)
        if code in REPEATS and int(value[1]) > LARGEST_BOUND:
            yield before, list(value[2])
        for inner in _inside(code, value):
            yield from _pumps(inner, before, flags)


def _example(nodes: Sequence[Node], flags: int) -> str:
    """Return a text that the nodes match, but for what they say of their surroundings."""
    return "".join(_example_of(code, value, flags) for code, value in nodes)


def _example_of(code: Any, value: Any, flags: int) -> str:
    if code in SINGLE:
        own = [value] if code is codes.LITERAL else [*POOL, *range(32, 127), *range(256)]
        return chr(next((each for each in own if takes((code, value), each, flags)), 0))
    if code in REPEATS:
        return _example(list(value[2]), flags) * min(int(value[0]), FEW)
    if code in (codes.ASSERT, codes.ASSERT_NOT, codes.AT):
        return ""
    return _example(_inside(code, value)[0], flags)
