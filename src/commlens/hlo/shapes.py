"""Shapes of HLO values: element types, dimensions, tuples, and how many bytes they hold.

The table of element types is the only place where a width is stated. Source: ``PrimitiveType`` in
xla/xla_data.proto and ``primitive_util::BitWidth`` in xla/primitive_util.h.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from commlens.errors import GrammarError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

UNBOUNDED = -1
"""The size that stands for an unbounded dynamic dimension, ``?`` in the text."""

ELEMENT_BITS: Mapping[str, int] = MappingProxyType(
    {"pred": 8}
    | {f"{sign}{bits}": bits for sign in "su" for bits in (1, 2, 4, 8, 16, 32, 64)}
    | {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "c64": 64, "c128": 128}
    | {"f4e2m1fn": 4, "f6e2m3fn": 6, "f6e3m2fn": 6, "f8e8m0fnu": 8}
    | dict.fromkeys(("f8e5m2", "f8e4m3", "f8e4m3fn", "f8e4m3b11fnuz", "f8e5m2fnuz", "f8e4m3fnuz", "f8e3m4"), 8)
)
"""Bits of one element of every array type. Six-bit floats are stored packed, as XLA's own figure has it."""

DATALESS = frozenset({"token", "opaque"})
"""Types that order or stand for something and hold no array."""

_TYPE_NUMBERS = tuple(
    """
    invalid pred s8 s16 s32 s64 u8 u16 u32 u64 f16 f32 f64 tuple opaque c64 bf16 token c128 f8e5m2 f8e4m3fn s4 u4
    f8e4m3b11fnuz f8e5m2fnuz f8e4m3fnuz s2 u2 f8e4m3 f8e3m4 s1 u1 f4e2m1fn f8e8m0fnu buffer f6e3m2fn f6e2m3fn
    """.split()  # noqa: SIM905 - numbered from 0: easier to hold against xla_data.proto than a column of quotes
)

ELEMENT_TYPE_NUMBERS: Mapping[int, str] = MappingProxyType(dict(enumerate(_TYPE_NUMBERS)))
"""Numbers of the enum ``PrimitiveType`` -> names as the text spells them."""

_TOKEN = re.compile(
    r"""(?:\s|/\*[^*]*(?:\*(?!/)[^*]*)*\*/)*       # blanks and /*index=5*/ comments
        (?: (?P<array>[a-z][a-z0-9]*)\s*\[(?P<dims>[^\]\[]*)\](?:\s*\{(?P<layout>[^{}]*)\})?
          | (?P<open>(?:b\s*)?\()
          | (?P<close>\))
          | (?P<comma>,)
        )""",
    re.VERBOSE,
)
_MAX_DIGITS = len(str(2**63 - 1))
_DIMENSION = re.compile(r"\s*+(?:(?P<dynamic><=)\s*+)?(?P<size>\d+|\?)\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shape:
    """An array, a tuple, a token or an opaque value; layouts are left out.

    Attributes:
        element_type: ``"f32"`` ..., or ``"tuple"``, ``"token"``, ``"opaque"``, ``"buffer"``.
        dimensions: sizes of an array; a dynamic one states its bound, :data:`UNBOUNDED` has none.
        dynamic: which dimensions are dynamic; empty when none is.
        elements: the parts of a tuple, or the one content of a buffer.

    Example:
        >>> shape = parse_shape("(bf16[64,8]{1,0:T(8,128)(2,1)S(1)}, /*index=1*/s4[3]{0}, token[])")
        >>> str(shape), shape.num_bytes
        ('(bf16[64,8], s4[3], token[])', 1026)
    """

    element_type: str
    dimensions: tuple[int, ...] = ()
    dynamic: tuple[bool, ...] = ()
    elements: tuple[Shape, ...] = ()

    @property
    def is_tuple(self) -> bool:
        """Whether this is a tuple."""
        return self.element_type == "tuple"

    @property
    def is_array(self) -> bool:
        """Whether this is an array (a scalar is one)."""
        return self.element_type in ELEMENT_BITS

    def leaves(self) -> Iterator[Shape]:
        """Yield everything that is not a tuple, in order, tokens and opaque values included."""
        pending: list[Shape] = [self]
        while pending:
            shape = pending.pop()
            if shape.elements:
                pending.extend(reversed(shape.elements))
            elif not shape.is_tuple:
                yield shape

    def arrays(self) -> tuple[Shape, ...]:
        """Return the array leaves in order."""
        return tuple(leaf for leaf in self.leaves() if leaf.is_array)

    @property
    def num_elements(self) -> int | None:
        """Number of elements of an array; None where a dimension has no bound."""
        return None if UNBOUNDED in self.dimensions else math.prod(self.dimensions)

    @property
    def num_bytes(self) -> int | None:
        """Bytes of all array leaves, each rounded up to whole bytes; None where a dimension has no bound."""
        total = 0
        for leaf in self.arrays():
            elements = leaf.num_elements
            if elements is None:
                return None
            total += -(-elements * ELEMENT_BITS[leaf.element_type] // 8)
        return total

    def __str__(self) -> str:
        """Return the HLO spelling without layouts; tuples may be nested deeper than calls may."""
        written: list[str] = []
        pending: list[Shape | str] = [self]
        while pending:
            each = pending.pop()
            if isinstance(each, str):
                written.append(each)
            elif each.is_tuple or each.element_type == "buffer":
                written.append("(" if each.is_tuple else "b(")
                parts = [part for element in each.elements for part in (", ", element)][1:]
                pending += [")", *reversed(parts)]
            else:
                written.append(each._array_text())
        return "".join(written)

    def _array_text(self) -> str:
        flags = self.dynamic or (False,) * len(self.dimensions)
        sizes = (_dimension_text(size, flag) for size, flag in zip(self.dimensions, flags, strict=True))
        return f"{self.element_type}[{','.join(sizes)}]"


def array_leaves(shapes: Iterable[Shape]) -> tuple[Shape, ...]:
    """Return the array leaves of several shapes, in order.

    Example:
        >>> [str(leaf) for leaf in array_leaves([parse_shape("(f32[8], token[])"), parse_shape("s32[]")])]
        ['f32[8]', 's32[]']
    """
    return tuple(leaf for shape in shapes for leaf in shape.arrays())


def _dimension_text(size: int, dynamic: bool) -> str:
    if size == UNBOUNDED:
        return "?"
    return f"<={size}" if dynamic else str(size)


def parse_shape(text: str) -> Shape:
    """Read one whole shape.

    Args:
        text: a shape in HLO spelling, with or without layouts, memory spaces and index comments.

    Returns:
        The shape without its layout.

    Raises:
        GrammarError: the text is no shape, or names an element type that XLA does not have.

    Example:
        >>> parse_shape("s32[<=8,2]{1,0}").dimensions
        (8, 2)
    """
    shape, end = read_shape(text, 0)
    if text[end:].strip():
        msg = f"expected the end of the shape, found {_excerpt(text, end)}"
        raise GrammarError(msg, position=end)
    return shape


def read_shape(text: str, position: int) -> tuple[Shape, int]:
    """Read the shape that starts at a position.

    Args:
        text: a text that holds a shape.
        position: where it starts; blanks and comments may come first.

    Returns:
        The shape, and the position right behind it.

    Raises:
        GrammarError: no shape stands there, or its element type is unknown.
    """
    stack: list[tuple[str, list[Shape]]] = []
    finished: Shape | None = None
    after_comma = False
    while True:
        token = _TOKEN.match(text, position)
        if token is None:
            msg = f"expected a shape such as f32[8,4]{{1,0}}, found {_excerpt(text, position)}"
            raise GrammarError(msg, position=position)
        kind = token.lastgroup if token.lastgroup not in ("dims", "layout") else "array"
        wanted = finished is None
        if kind == "comma" and not wanted and stack:
            stack[-1][1].append(_taken(finished))
            finished, after_comma = None, True
        elif kind == "close" and stack and not after_comma:
            opener, parts = stack.pop()
            if finished is not None:
                parts.append(finished)
            finished = Shape("tuple" if opener == "(" else "buffer", elements=tuple(parts))
        elif kind == "open" and wanted:
            stack.append((token["open"], []))
            after_comma = False
        elif kind == "array" and wanted:
            finished, after_comma = _array(token), False
        else:
            start = token.start(kind or 0)
            msg = (
                f"expected {'a shape' if wanted else 'a comma or a closing parenthesis'}, found {_excerpt(text, start)}"
            )
            raise GrammarError(msg, position=start)
        position = token.end()
        if finished is not None and not stack:
            return finished, position


def _taken(shape: Shape | None) -> Shape:
    return shape if shape is not None else Shape("tuple")


def _array(token: re.Match[str]) -> Shape:
    """Build an array, a token or an opaque shape from its token."""
    element_type = token["array"]
    if element_type not in ELEMENT_BITS and element_type not in DATALESS:
        msg = f"expected an element type of XLA such as f32 or bf16, found {element_type!r}"
        raise GrammarError(msg, position=token.start("array"))
    dims = token["dims"]
    if not dims.strip():
        return Shape(element_type)
    sizes: list[int] = []
    flags: list[bool] = []
    offset = token.start("dims")
    for part in dims.split(","):
        match = _DIMENSION.fullmatch(part)
        if match is None or len(match["size"]) > _MAX_DIGITS:
            msg = f"expected a dimension such as 8 or <=8, found {part.strip()!r}"
            raise GrammarError(msg, position=offset)
        offset += len(part) + 1
        sizes.append(UNBOUNDED if match["size"] == "?" else int(match["size"]))
        flags.append(match["dynamic"] is not None or match["size"] == "?")
    return Shape(element_type, tuple(sizes), tuple(flags) if any(flags) else ())


def _excerpt(text: str, position: int) -> str:
    found = text[position : position + 20].strip()
    return repr(found) if found else "the end of the text"
