"""Whether a collective has as many elements as a message says, and where such collectives stand.

A library that is called once for all arrays of a collective counts their elements together; one that is called for each
of them counts one. Both are looked at: the sum fits, and one of several may be meant. Complex elements count once or
twice, and those of less than a byte may be packed, so of these nothing can be told.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from commlens.analysis.logs.said import Said
    from commlens.hlo import Shape, Signature

Side: TypeAlias = Literal["in", "out"]
"""What a device puts in, the operands, or gets out, the results."""

_CALLED: Final[Mapping[Side, str]] = MappingProxyType({"in": "operands", "out": "results"})
_COMPLEX: Final = frozenset({"c64", "c128"})


@dataclass(frozen=True, slots=True)
class Payload:
    """How many elements a device has of the arrays of one side of a collective.

    Attributes:
        side: which side.
        counts: of each array; None where its elements cannot be told.
    """

    side: Side
    counts: tuple[int | None, ...]

    @property
    def total(self) -> int | None:
        """Of all arrays together; None where some of them cannot be told."""
        known = [count for count in self.counts if count is not None]
        return sum(known) if len(known) == len(self.counts) else None

    def keys(self) -> set[int | None]:
        """Return every number that a message can say of it; with None where it can be any."""
        return {self.total, *self.counts}


@dataclass(frozen=True, slots=True)
class ElementsFit:
    """How the elements of a collective fit.

    Attributes:
        is_sure: whether they are these; False where something cannot be told.
        why: in words; empty where the message says nothing of elements.
        wrong: what is not true of it; empty where all is.
    """

    is_sure: bool = True
    why: str = ""
    wrong: str = ""


_NOTHING_SAID: Final = ElementsFit()


def payload_of(signature: Signature, side: Side) -> Payload:
    """Return the elements of one side of a collective; operands that only order things and their results left out.

    Example:
        >>> from commlens.hlo import Signature, parse_shape
        >>> shapes = parse_shape("f32[4,8]"), parse_shape("c64[2]")
        >>> payload_of(Signature("all-reduce", False, shapes, shapes), "in").counts
        (32, None)
    """
    operands, results = signature.operand_shapes, signature.result_shapes
    shapes = operands if side == "in" else results
    tokens = signature.token_operands if side == "in" or len(operands) == len(results) else ()
    return Payload(side, tuple(_elements(shape) for place, shape in enumerate(shapes) if place not in tokens))


def _elements(shape: Shape) -> int | None:
    elements, size = shape.num_elements, shape.num_bytes
    if elements is None or size is None or size < elements or shape.element_type in _COMPLEX:
        return None
    return elements


def fit_elements(said: Said, payload: Callable[[Side], Payload]) -> ElementsFit:
    """Return how the elements of a collective fit what a message says of them.

    Args:
        said: the message.
        payload: says what the collective puts in or gets out.

    Example:
        >>> from commlens.analysis.logs.said import Said
        >>> payloads = {"in": Payload("in", (16,)), "out": Payload("out", (64,))}
        >>> fit_elements(Said(elements_in=16, elements_out=64), payloads.__getitem__).why
        'its operands have 16 elements, its results have 64 elements'
        >>> fit_elements(Said(elements_in=32), payloads.__getitem__).wrong
        'its operands have 16 elements, not 32'
    """
    if said.elements_in is None and said.elements_out is None:
        return _NOTHING_SAID
    fits = [_fit(payload(side), wanted) for side, wanted in _wanted(said)]
    wrong = next((fit.wrong for fit in fits if fit.wrong), "")
    if wrong:
        return ElementsFit(wrong=wrong)
    return ElementsFit(all(fit.is_sure for fit in fits), ", ".join(fit.why for fit in fits))


def _wanted(said: Said) -> Iterator[tuple[Side, int]]:
    if said.elements_in is not None:
        yield "in", said.elements_in
    if said.elements_out is not None:
        yield "out", said.elements_out


def _fit(payload: Payload, wanted: int) -> ElementsFit:
    called = _CALLED[payload.side]
    total = payload.total
    if total == wanted:
        return ElementsFit(why=f"its {called} have {_counted(wanted)}")
    if wanted in payload.counts:
        number = len(payload.counts)
        return ElementsFit(is_sure=False, why=f"one of its {number:,} {called} has {_counted(wanted)}")
    if total is None:
        return ElementsFit(is_sure=False, why=f"how many elements its {called} count for cannot be told")
    return ElementsFit(wrong=f"its {called} have {_counted(total)}, not {wanted:,}")


def _counted(number: int) -> str:
    return "1 element" if number == 1 else f"{number:,} elements"
