"""A fingerprint of everything in a module that does not communicate: whether hosts differ in more than that.

Names, metadata, places and the order in which it runs are no part of it. What communicates is looked through, as if it
handed on its operands, so that a host which lacks a collective or runs it elsewhere has the same fingerprint where
nothing else differs.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain, islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from commlens.hlo import UnreadableError, base_opcode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commlens.hlo import Computation, Discovery, Instruction, Module

_SAYING: Final = MappingProxyType(
    {
        "compare": "direction",
        "constant": "literal",
        "custom-call": "custom_call_target",
        "fusion": "kind",
        "get-tuple-element": "index",
        "parameter": "parameter_number",
    }
)
"""Opcode -> the attribute that says what it does."""

_HALVES: Final = frozenset({"done", "update"})
_BYTES: Final = 8
_MOST_VALUES: Final = 1 << 14

Values: TypeAlias = tuple[int, ...]
"""What an instruction gives: a number of its own, or those that something that communicates hands on."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The fingerprint of what does not communicate in a module.

    Attributes:
        whole: equal where it is the same; None where something cannot be read.
        computations: the fingerprint of each computation on its own, by its name.
    """

    whole: str | None
    computations: Mapping[str, bytes]


def fingerprint_of(module: Module, found: Discovery) -> Fingerprint:
    """Take the fingerprint of what does not communicate in a module.

    Args:
        module: the module. Fingerprints of a text and of a proto cannot be compared: their attributes are not written
            alike.
        found: what communicates in it.

    Example:
        >>> from commlens.hlo import discover, load
        >>> text = '''HloModule m, replica_count=2
        ... ENTRY e {{
        ...   {0} = f32[4] parameter(0)
        ...   r = f32[4] all-reduce({0}), replica_groups={1}, to_apply=add
        ...   ROOT n = f32[4] {2}(r)
        ... }}'''
        >>> modules = [load(text.format(*words)) for words in (("p", "{}", "negate"), ("q", "{{0,1}}", "negate"))]
        >>> modules.append(load(text.format("p", "{}", "abs")))
        >>> first, second, other = (fingerprint_of(each, discover(each)).whole for each in modules)
        >>> first == second, first == other
        (True, False)
    """
    communicating: dict[str, set[str]] = {}
    for site in found.sites:
        communicating.setdefault(site.computation_name, set()).add(site.name)
    entry = module.entry
    numbers = {each.name: number for number, each in enumerate(module.computations if entry is None else [entry])}
    pending = list(numbers)
    own: dict[str, bytes] = {}
    whole = blake2b(digest_size=_BYTES)
    try:
        for name in pending:  # grows while it is gone through
            computation = module.computation(name)
            if computation is None:
                continue
            digest, callees = _read(computation, communicating.get(name, set()))
            new = [callee for callee in dict.fromkeys(callees) if callee not in numbers]
            numbers.update(zip(new, range(len(numbers), len(numbers) + len(new)), strict=True))
            pending += new
            own[name] = digest
            whole.update(digest)
            whole.update(repr([numbers[callee] for callee in callees]).encode())
    except (UnreadableError, LookupError):
        return Fingerprint(None, MappingProxyType({}))
    return Fingerprint(whole.hexdigest(), MappingProxyType(own))


def _read(computation: Computation, communicating: set[str]) -> tuple[bytes, list[str]]:
    """Return the fingerprint of one computation, and the names of those that it calls in order."""
    graph, instructions, root = computation.graph(), computation.instructions, computation.root
    values: dict[int, Values] = {}
    handed_on: set[int] = set()
    callees: list[str] = []
    digest = blake2b(digest_size=_BYTES)
    for position in graph.post_order():
        instruction, edges = instructions[position], graph.operands[position]
        operands = [values.get(edge, ()) for edge in edges]
        opcode = instruction.opcode
        if instruction.name in communicating:
            values[position] = tuple(islice(chain.from_iterable(operands), _MOST_VALUES))
            handed_on.add(position)
        elif edges and edges[0] in handed_on and (part := _part(instruction, opcode, operands[0])) is not None:
            values[position] = part
            handed_on.add(position)
        else:
            values[position] = (len(values) - len(handed_on),)
            called = [name for _, name in instruction.called]
            callees += called
            said = (opcode, str(instruction.shape), operands, len(called), *_said(instruction, opcode))
            digest.update(repr(said).encode())
        if instruction == root:
            digest.update(repr(values[position]).encode())
    return digest.digest(), callees


def _part(instruction: Instruction, opcode: str, whole: Values) -> Values | None:
    """Return what a half or an element of something that communicates hands on; None where this is no such thing."""
    if opcode == "get-tuple-element":
        index = instruction.raw_attribute("index") or ""
        return (whole[int(index)],) if len(whole) > 1 and index.isdecimal() and int(index) < len(whole) else whole
    target = instruction.raw_attribute("custom_call_target") if opcode == "custom-call" else opcode
    return whole if base_opcode(target or "")[1] in _HALVES else None


def _said(instruction: Instruction, opcode: str) -> Iterator[object]:
    """Yield what else an instruction says of what it does."""
    key = _SAYING.get(opcode)
    yield None if key is None else instruction.raw_attribute(key)
    yield instruction.dimensions
    yield sorted(instruction.frontend_attributes.items())
    yield sorted(instruction.other_attributes().items())
