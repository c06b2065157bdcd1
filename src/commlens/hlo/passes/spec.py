"""Passes as text: ``name{option=value,...},name2``, read and printed.

The fields of a pass are its options, so the text and the constructor say the same: what is printed reads back as an
equal pass. Which names there are is the caller's to say; nothing here knows a pass.
"""

from __future__ import annotations

import re
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Final, Literal, NoReturn, TypeAlias, get_args, get_origin, get_type_hints

from commlens.errors import CommlensError, GrammarError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from re import Pattern

    from commlens.hlo.passes.base import Pass

OptionValue: TypeAlias = bool | int | str
"""What an option may be set to."""

_BLANK: Final = re.compile(r"\s*")
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]*")
_VALUE: Final = re.compile(r"[^\s{},=]+")
_DIGITS: Final = 1000
"""Most digits of a number: Python reads thousands of them, and nobody means them."""
_INTEGER: Final = re.compile(rf"[+-]?[0-9]{{1,{_DIGITS}}}")
_TOO_LONG: Final = 10**_DIGITS
_BOOLS: Final = {"true": True, "false": False}
_SHOWN: Final = 40
_MOST_COMPARED: Final = 100
"""Letters of a name that are compared with others: that takes quadratic time."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a pass.

    Attributes:
        name: the field's name.
        kind: ``"int"``, ``"bool"`` or ``"word"``.
        default: the value it has when nobody sets it.
        words: the values a word may have; none for the other kinds.
    """

    name: str
    kind: Literal["int", "bool", "word"]
    default: OptionValue
    words: tuple[str, ...] = ()

    def read(self, text: str) -> OptionValue:
        """Read a value.

        Raises:
            CommlensError: it is none of this kind.

        Example:
            >>> Option("threshold_count", "int", 256).read("-1")
            -1
        """
        if self.kind == "int" and _INTEGER.fullmatch(text):
            return int(text)
        if self.kind == "bool" and text in _BOOLS:
            return _BOOLS[text]
        if self.kind == "word" and text in self.words:
            return text
        raise self._refused(repr(text[:_SHOWN]))

    def check(self, value: object) -> None:
        """Refuse a value that no text gives this option.

        Raises:
            CommlensError: it is of another type, no word of the option, or a number too long to be read.

        Example:
            >>> Option("safe", "bool", False).check("false")
            Traceback (most recent call last):
            commlens.errors.CommlensError: expected safe to be True or False, found 'false'
        """
        if self.kind == "int":
            fits = type(value) is int and abs(value) < _TOO_LONG
        elif self.kind == "bool":
            fits = type(value) is bool
        else:
            fits = type(value) is str and value in self.words
        if not fits:
            raise self._refused(_shown(value), "True or False")

    def _refused(self, found: str, bools: str = "true or false") -> CommlensError:
        """Return the error about a value; the bools are spelled as where it was given."""
        integers = f"an integer such as {self.default}"
        expected = {"int": integers, "bool": bools, "word": " or ".join(self.words)}[self.kind]
        return CommlensError(f"expected {self.name} to be {expected}, found {found}")


def options_of(pass_class: type[Pass]) -> tuple[Option, ...]:
    """Return the options of a class of passes, in the order of its fields.

    Raises:
        TypeError: a field has no default, or a type other than int, bool or a Literal of words.
    """
    if not is_dataclass(pass_class):
        msg = f"expected a dataclass, found {pass_class.__name__}"
        raise TypeError(msg)
    hints: dict[str, object] = get_type_hints(pass_class)
    found: list[Option] = []
    for field in fields(pass_class):
        option = _option(field.name, hints[field.name], field.default)
        if option is None:
            hint = hints[field.name]
            msg = f"expected {field.name} to be an int, a bool or a Literal of words, with a default, found {hint}"
            raise TypeError(msg)
        found.append(option)
    return tuple(found)


def _option(name: str, hint: object, default: object) -> Option | None:
    """Return the option that a field is; None for a field that no text can set."""
    if default is not MISSING:
        if hint is bool and isinstance(default, bool):
            return Option(name, "bool", default)
        if hint is int and isinstance(default, int):
            return Option(name, "int", default)
        words = get_args(hint) if get_origin(hint) is Literal else ()
        if isinstance(default, str) and default in words:
            return Option(name, "word", default, words)
    return None


def _shown(value: object) -> str:
    """Return a value for a message; a number may be too long to be printed at all."""
    if isinstance(value, int) and abs(value) >= _TOO_LONG:
        return f"one of more than {_DIGITS} digits"
    return repr(value)[:_SHOWN]


def check_options(one: Pass) -> None:
    """Refuse a pass that no text could have made. Fields that are no options of a text are let through.

    Raises:
        CommlensError: an option has a value that it cannot have.
    """
    try:
        hints: dict[str, object] = get_type_hints(type(one))
    except NameError:  # a type that is only known to type checkers: that of no option
        return
    for field in fields(one) if is_dataclass(one) else ():
        option = _option(field.name, hints[field.name], field.default)
        if option is not None:
            option.check(getattr(one, field.name))


def spec_of(one: Pass) -> str:
    """Return a pass as text: its name, and the options that differ from their defaults.

    Source of the form: ``name{key=value,...}`` as xDSL and MLIR write passes.
    """
    values = ((option, getattr(one, option.name)) for option in options_of(type(one)))
    said = [f"{option.name}={_printed(value)}" for option, value in values if value != option.default]
    return f"{one.name}{{{','.join(said)}}}" if said else one.name


def _printed(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def specs_of(passes: Iterable[Pass]) -> str:
    """Return passes as text, joined by commas."""
    return ",".join(map(spec_of, passes))


def parse_specs(text: str, known: Mapping[str, type[Pass]]) -> tuple[Pass, ...]:
    """Read ``name{option=value,...},name2``.

    In the names of options ``-`` stands for ``_``; blanks may stand between any two parts. Names of passes are taken
    exactly, as the registry of a compiler takes them.

    Args:
        text: the passes.
        known: class by name.

    Returns:
        The passes in the order given, at least one.

    Raises:
        GrammarError: the text breaks the grammar, names a pass or an option that does not exist, or sets an option
            twice or to a value that it cannot have.
    """
    return _Reader(text, known).passes()


class _Reader:
    """A text of passes, and how far it has been read."""

    def __init__(self, text: str, known: Mapping[str, type[Pass]]) -> None:
        self._text = text
        self._known = known
        self._position = 0

    def passes(self) -> tuple[Pass, ...]:
        """Read everything."""
        found = [self._pass()]
        while self._took(","):
            found.append(self._pass())
        if self._position < len(self._text):
            expected = "a comma" if self._text[self._position - 1] == "}" else "a comma or '{'"
            self._fail(f"expected {expected} behind a pass")
        return tuple(found)

    def _pass(self) -> Pass:
        name, start = self._token(_WORD, "the name of a pass")
        pass_class = self._known.get(name)
        if pass_class is None:
            msg = f"expected the name of a pass, found {name[:_SHOWN]!r}; the nearest is {nearest(name, self._known)!r}"
            raise GrammarError(msg, position=start)
        values = self._options(pass_class) if self._took("{") else {}
        try:
            return pass_class(**values)
        except CommlensError as error:  # values that do not go together
            msg = f"{name}: {error}"
            raise GrammarError(msg, position=start) from error

    def _options(self, pass_class: type[Pass]) -> dict[str, OptionValue]:
        options = {option.name: option for option in options_of(pass_class)}
        values: dict[str, OptionValue] = {}
        if self._took("}"):
            return values
        while True:
            option = self._option(pass_class.name, options, values)
            if not self._took("="):
                self._fail(f"expected '=' and a value behind {option.name}")
            value, start = self._token(_VALUE, f"a value for {option.name}")
            try:
                values[option.name] = option.read(value)
            except CommlensError as error:
                raise GrammarError(str(error), position=start) from error
            if self._took("}"):
                return values
            if not self._took(","):
                self._fail("expected a comma or '}' behind an option")

    def _option(self, name: str, options: Mapping[str, Option], set_before: Mapping[str, object]) -> Option:
        written, start = self._token(_WORD, f"an option of {name}")
        option = options.get(written.replace("-", "_"))
        if option is None:
            which = f"the nearest is {nearest(written, options)!r}" if options else "it has none"
            msg = f"expected an option of {name}, found {written[:_SHOWN]!r}; {which}"
            raise GrammarError(msg, position=start)
        if option.name in set_before:
            msg = f"expected each option once, found {option.name} again"
            raise GrammarError(msg, position=start)
        return option

    def _token(self, pattern: Pattern[str], expected: str) -> tuple[str, int]:
        """Take a token and the blanks around it; return it and where it starts."""
        self._skip_blanks()
        match = pattern.match(self._text, self._position)
        if match is None:
            self._fail(f"expected {expected}")
        self._position = match.end()
        self._skip_blanks()
        return match[0], match.start()

    def _took(self, mark: str) -> bool:
        self._skip_blanks()
        taken = self._text.startswith(mark, self._position)
        self._position += len(mark) if taken else 0
        if taken:
            self._skip_blanks()
        return taken

    def _skip_blanks(self) -> None:
        match = _BLANK.match(self._text, self._position)
        self._position = self._position if match is None else match.end()

    def _fail(self, expected: str) -> NoReturn:
        rest = self._text[self._position : self._position + _SHOWN].strip()
        msg = f"{expected}, found {repr(rest) if rest else 'the end of the text'}"
        raise GrammarError(msg, position=self._position)


def nearest(word: str, words: Iterable[str]) -> str:
    """Return which of some words is most like a given one; the first of several.

    Example:
        >>> nearest("all_gather_combine", ["reduce-scatter-combiner", "all-gather-combiner"])
        'all-gather-combiner'
    """
    from difflib import SequenceMatcher

    wanted = _plain(word)
    return max(words, key=lambda each: SequenceMatcher(None, wanted, _plain(each)).ratio())


def _plain(word: str) -> str:
    return word[:_MOST_COMPARED].lower().replace("-", "_")
