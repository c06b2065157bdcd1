"""Combining collectives in a text: the exact lines, and what has to move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlens.hlo import Combine, EditError, SetChannelId, SetFrontendAttribute
from commlens.hlo.text.definitions import Definitions
from text_combinations import CASES, DIMENSIONS, HEAD, NOTHING, ROOT, combine, combined, module_of

if TYPE_CHECKING:
    from commlens.hlo import Edit


@pytest.mark.parametrize(("before", "after"), CASES)
def test_combined(before: str, after: str) -> None:
    """The new line, its members and what has to move are exactly these."""
    assert combined(before) == after
    module = module_of(HEAD + after + ROOT)
    assert module.instruction("x").operand_names == ("c.1",)
    assert module.instruction("t").operand_names == ("x", "y")


def test_carriage_returns() -> None:
    """New lines end as the others do."""
    before, after = (text.replace("\n", "\r\n") for text in CASES[0].values[:2] if isinstance(text, str))
    head, root = HEAD.replace("\n", "\r\n"), ROOT.replace("\n", "\r\n")
    assert combined(before, head=head, root=root) == after


def test_the_root_stays_the_root() -> None:
    """A member that is the root stays it."""
    root = "  ROOT y = f32[4,2]{1,0} all-reduce(b), to_apply=add\n}\n"
    module = module_of(HEAD + "  x = f32[8]{0} all-reduce(a), to_apply=add\n" + root)
    after = module.edited([combine(module)])
    assert after.computations[1].root.excerpt == "ROOT y = f32[4,2]{1,0} get-tuple-element(c.1), index=1"


def test_order_of_the_members() -> None:
    """Operands come in the order of the members, whatever their order in the text."""
    module = module_of(HEAD + str(CASES[0].values[0]) + ROOT)
    after = module.edited([combine(module, members="yx")]).to_bytes().decode()
    assert "  c.1 = (f32[4,2]{1,0}, f32[8]{0}) all-reduce(b, a), to_apply=add\n" in after
    assert (
        "  x = f32[8]{0} get-tuple-element(c.1), index=1\n  y = f32[4,2]{1,0} get-tuple-element(c.1), index=0\n"
        in after
    )


def test_what_is_kept_of_the_first() -> None:
    """Frontend attributes, metadata and other attributes are kept as far as the edit says, the rest goes."""
    line = (
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="1", b={"}":1}, c="3"}, '
        'metadata={op_type="p q" op_name="f" source_line=3 profile_type={1}}, barrier="w", backend_config="c"\n'
    )
    module = module_of(HEAD + line + "  y = f32[4,2]{1,0} all-reduce(b), to_apply=add\n" + ROOT)
    x, y = module.instruction("x"), module.instruction("y")
    assert x.metadata_fields() == {
        "op_type": b'op_type="p q"', "op_name": b'op_name="f"', "source_line": b"source_line=3", "profile_type": b"profile_type={1}"
    }  # fmt: skip
    assert x.other_attributes() == {"barrier": b'"w"', "backend_config": b'"c"'}
    assert y.metadata_fields() == y.other_attributes() == {}

    def new_line(
        attributes: frozenset[str] = NOTHING, metadata: frozenset[str] = NOTHING, others: frozenset[str] = NOTHING
    ) -> str:
        after = module.edited([Combine((x, y), "c.1", attributes, metadata, others)]).to_bytes().decode()
        assert (
            f"  x = f32[8]{{0}} get-tuple-element(c.1), index=0, {line[line.index('metadata') : line.index(', barrier')]}\n"
            in after
        )
        (found,) = (each for each in after.splitlines() if each.startswith("  c.1 = "))
        return found.partition("to_apply=add")[2]

    assert new_line() == ""
    assert new_line(frozenset({"c", "a"})) == ', frontend_attributes={a="1",c="3"}'
    assert new_line(frozenset("abc")) == ', frontend_attributes={a="1", b={"}":1}, c="3"}'
    assert new_line(NOTHING, frozenset({"source_line", "op_type"})) == ', metadata={op_type="p q" source_line=3}'
    assert new_line(NOTHING, NOTHING, frozenset({"barrier"})) == ', barrier="w"'
    everything = new_line(frozenset("abc"), frozenset(x.metadata_fields()), frozenset({"barrier", "backend_config"}))
    assert everything == line.partition("to_apply=add")[2].rstrip("\n")


def test_names_of_a_printed_computation_are_not_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether names are distinct and new shows without: a map would cost more than all the rest."""
    lines = (
        "  x = f32[8]{0} all-reduce(a), to_apply=add\n  y = f32[4,2]{1,0} all-reduce(b), to_apply=add\n"
        "  c.1 = f32[8]{0} copy(a)\n"
    )
    module = module_of(HEAD + lines + ROOT)

    def refuse(_: Definitions) -> None:
        msg = "all names were mapped"
        raise AssertionError(msg)

    monkeypatch.setattr(Definitions, "_map", refuse)
    assert b"  c.2 = (" in module.edited([combine(module, "c.2")]).to_bytes()
    with pytest.raises(EditError, match=r"expected a new name for what is made of x, found c\.1, which is taken"):
        module.edited([combine(module, "c.1")])


def test_index_comments() -> None:
    """Long lists have the comments that XLA prints where the text has such, else none."""
    lines = "".join(f"  x.{number} = f32[8]{{0}} all-reduce(a), to_apply=add\n" for number in range(11))
    for mark in ("", "/*index=5*/"):
        module = module_of(f"{HEAD}{lines}  ROOT t = (f32[8]{{0}}) {mark}tuple(x.1)\n}}\n")
        members = tuple(module.instruction(f"x.{number}") for number in range(11))
        after = module.edited([Combine(members, "c")]).to_bytes().decode()
        shapes, operands = (
            ", ".join(f"/*index={n}*/{part}" if mark and n in (5, 10) else part for n in range(11))
            for part in ("f32[8]{0}", "a")
        )
        assert f"  c = ({shapes}) all-reduce({operands}), to_apply=add\n" in after
        assert all(f"  x.{n} = f32[8]{{0}} get-tuple-element(c), index={n}\n" in after for n in range(11))


@pytest.mark.parametrize(("before", "dimension", "after"), DIMENSIONS)
def test_gather_dimensions(before: str, dimension: int, after: str) -> None:
    """Members that gather along another dimension are transposed there and back, without anything moving in memory."""
    assert combined(before, dimension=dimension) == after


def test_several_in_a_computation() -> None:
    """Combinations are made one after the other; what moves takes its own edits along."""
    body = (
        "  x = f32[8]{0} all-reduce(a), to_apply=add\n"
        '  n = f32[8]{0} negate(x), metadata={op_name="n"}\n'
        "  p = f32[8]{0} all-reduce(n), to_apply=add\n"
        "  k = f32[4,2]{1,0} copy(b)\n"
        "  y = f32[4,2]{1,0} all-reduce(k), to_apply=add\n"
        "  l = f32[4,2]{1,0} copy(k)\n"
        "  q = f32[4,2]{1,0} all-reduce(l), to_apply=add\n"
        "  r = f32[8]{0} all-reduce(a), channel_id=1, to_apply=add\n"
    )
    after = (
        "  k = f32[4,2]{1,0} copy(b)\n"
        "  c.1 = (f32[8]{0}, f32[4,2]{1,0}) all-reduce(a, k), to_apply=add\n"
        "  x = f32[8]{0} get-tuple-element(c.1), index=0\n"
        '  n = f32[8]{0} negate(x), frontend_attributes={z="1"}, metadata={op_name="n"}\n'
        "  y = f32[4,2]{1,0} get-tuple-element(c.1), index=1\n"
        '  l = f32[4,2]{1,0} copy(k), frontend_attributes={z="2"}\n'
        "  c.2 = (f32[8]{0}, f32[4,2]{1,0}) all-reduce(n, l), to_apply=add\n"
        "  p = f32[8]{0} get-tuple-element(c.2), index=0\n"
        "  q = f32[4,2]{1,0} get-tuple-element(c.2), index=1\n"
        "  r = f32[8]{0} all-reduce(a), channel_id=5, to_apply=add\n"
    )
    module = module_of(HEAD + body + ROOT)
    edits: list[Edit] = [
        SetFrontendAttribute(module.instruction("l"), "z", "2"),
        combine(module, "c.1", "xy"),
        SetFrontendAttribute(module.instruction("n"), "z", "1"),
        combine(module, "c.2", "pq"),
        SetChannelId(module.instruction("r"), 5),
    ]
    assert module.edited(edits).to_bytes().decode() == HEAD + after + ROOT


def test_other_computations_stay() -> None:
    """Combinations in one computation leave edits of another one in their place."""
    text = (HEAD + str(CASES[0].values[0]) + ROOT).replace("add(u, v)", "all-reduce(u), to_apply=add")
    module = module_of(text)
    after = module.edited([SetChannelId(module.instruction("w"), 3), combine(module)]).to_bytes().decode()
    expected = (HEAD + str(CASES[0].values[1]) + ROOT).replace("add(u, v)", "all-reduce(u), channel_id=3, to_apply=add")
    assert after == expected
