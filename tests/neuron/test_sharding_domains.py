"""Sharding domains: held against a search that goes from instruction to instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combiner_modules import both, with_domains
from commlens.hlo import UnreadableError, load
from commlens.neuron.sharding_domains import NO_DOMAIN, domain_ids

if TYPE_CHECKING:
    from commlens import Module

METADATA = ("{maximal device=0}", "{maximal device=1}", "{{replicated}, {maximal device=1}}")


@st.composite
def computations(draw: st.DrawFn) -> list[tuple[list[int], tuple[int, int] | None]]:
    """Operands of every instruction, and entry and exit of those that are domain instructions."""
    found: list[tuple[list[int], tuple[int, int] | None]] = [([], None)]
    for number in range(1, draw(st.integers(2, 12))):
        is_border = draw(st.booleans())
        used = draw(st.lists(st.integers(0, number - 1), min_size=is_border, max_size=1 if is_border else 2))
        sides = draw(st.tuples(st.integers(0, 2), st.integers(0, 2))) if is_border else None
        found.append((used, sides))
    return found


def written(computation: list[tuple[list[int], tuple[int, int] | None]]) -> str:
    """Return a computation as text."""
    lines = ["HloModule m", "ENTRY e {"]
    for number, (used, sides) in enumerate(computation):
        names = ", ".join(f"x{each}" for each in used)
        if sides is not None:
            entry, leave = (METADATA[side] for side in sides)
            lines.append(
                f'  x{number} = f32[] domain({names}), domain={{kind="sharding", entry={entry}, exit={leave}}}'
            )
        else:
            lines.append(f"  x{number} = f32[] " + (f"custom-call({names})" if used else f"parameter({number})"))
    return "\n".join([*lines, "}", ""])


def slow_metadata(computation: list[tuple[list[int], tuple[int, int] | None]], start: int) -> int | None:
    """Return the metadata of the domain of an instruction: search, then look at the border."""
    reached, pending = {start}, [start]
    while pending:
        each = pending.pop()
        users = [number for number, (used, _) in enumerate(computation) if each in used]
        for other in (*computation[each][0], *users):
            if computation[other][1] is None and other not in reached:
                reached.add(other)
                pending.append(other)
    for number, (used, _) in enumerate(computation):
        if number in reached:
            for operand in used:
                border = computation[operand][1]
                if border is not None:
                    return border[0]
    for used, sides in computation:
        if sides is not None and reached.intersection(used):
            return sides[1]
    return None


def ids_of(module: Module) -> list[int]:
    """Number the domains of the entry."""
    computation = module.computations[-1]
    return domain_ids(computation.instructions, computation.graph())


@both
@given(computation=computations())
def test_domains_are_those_of_the_search(
    computation: list[tuple[list[int], tuple[int, int] | None]], backend: str
) -> None:
    """Instructions have one number where their domains have the same metadata, 0 where nothing parts them."""
    ids = ids_of(with_domains(written(computation), backend))
    plain = [number for number, (_, sides) in enumerate(computation) if sides is None]
    metadata = {number: slow_metadata(computation, number) for number in plain}
    for one in plain:
        assert (ids[one] == NO_DOMAIN) == (metadata[one] is None)
        for other in plain:
            assert (ids[one] == ids[other]) == (metadata[one] == metadata[other])


TEXT = """HloModule m
ENTRY e {{
  p = f32[] parameter(0)
  a = f32[] negate(p)
  d = f32[] domain(a), domain={{kind="sharding", entry={entry}, exit={leave}}}
  b = f32[] negate(d)
  ROOT c = f32[] negate(b)
}}
"""


@both
def test_each_side_has_its_metadata(backend: str) -> None:
    """In front of the border exit counts, behind it entry."""
    ids = ids_of(with_domains(TEXT.format(entry="{maximal device=1}", leave="{maximal device=0}"), backend))
    assert ids[0] == ids[1] != ids[3] == ids[4]
    assert NO_DOMAIN not in (ids[0], ids[3])
    ids = ids_of(with_domains(TEXT.format(entry="{maximal device=1}", leave="{maximal device=1}"), backend))
    assert ids[0] == ids[1] == ids[3] == ids[4]


def test_blanks_and_comments_are_no_difference() -> None:
    """Metadata are compared as what they say."""
    ids = ids_of(load(TEXT.format(entry="{ maximal  device=1 }", leave="{maximal /*the second*/ device=1}")))
    assert ids[0] == ids[3]


@pytest.mark.parametrize("sides", ['{kind="sharding"}', '{kind="sharding", entry={replicated}}'])
def test_missing_metadata_are_refused(sides: str) -> None:
    """A domain instruction of a text states both sides."""
    text = TEXT.format(entry="{}", leave="{}").replace('{kind="sharding", entry={}, exit={}}', sides)
    with pytest.raises(UnreadableError, match="domain instruction d"):
        ids_of(load(text))
