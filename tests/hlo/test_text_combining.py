"""Combining collectives in a text, and turning them into custom calls: the exact lines, and what has to move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.hlo import BecomeCustomCall, Combine, EditError, SetChannelId, SetFrontendAttribute
from commlens.hlo.text import TextModule, read_modules
from commlens.hlo.text.definitions import Definitions
from xla_reader import XlaReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from commlens.hlo import Edit

HEAD = """HloModule m, replica_count=4

add {
  u = f32[] parameter(0)
  v = f32[] parameter(1)
  ROOT w = f32[] add(u, v)
}

ENTRY main {
  a = f32[8]{0} parameter(0)
  b = f32[4,2]{1,0} parameter(1)
"""
NOTHING: frozenset[str] = frozenset()
ROOT = "  ROOT t = (f32[8]{0}, f32[4,2]{1,0}) tuple(x, y)\n}\n"


@pytest.fixture(scope="module")
def xla() -> Iterator[XlaReader]:
    """Return XLA's reader."""
    reader = XlaReader()
    yield reader
    reader.close()


def module_of(text: str) -> TextModule:
    """Read one module."""
    (module,) = read_modules(text.encode())
    return module


def combine(
    module: TextModule, name: str = "c.1", members: Iterable[str] = "xy", *, dimension: int | None = None
) -> Combine:
    """Return an edit that combines instructions and keeps every attribute of the first that can be kept."""
    found = tuple(module.instruction(member) for member in members)
    return Combine(
        found,
        name,
        frozenset(found[0].frontend_attributes),
        frozenset(found[0].metadata_fields()),
        frozenset(found[0].other_attributes()),
        dimension,
    )


def combined(body: str, *, head: str = HEAD, root: str = ROOT, dimension: int | None = None) -> str:
    """Return the lines of a body in which ``x`` and ``y`` are combined."""
    module = module_of(head + body + root)
    after = module.edited([combine(module, dimension=dimension)]).to_bytes().decode()
    assert after.startswith(head)
    assert after.endswith(root)
    return after[len(head) : len(after) - len(root)]


CASES = [
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add\n  y = f32[4,2]{1,0} all-reduce(b), to_apply=add\n",
        "  c.1 = (f32[8]{0}, f32[4,2]{1,0}) all-reduce(a, b), to_apply=add\n"
        "  x = f32[8]{0} get-tuple-element(c.1), index=0\n"
        "  y = f32[4,2]{1,0} get-tuple-element(c.1), index=1\n",
        id="plain",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(f32[8]{0} %a), channel_id=3, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=%add\n"
        "  y = f32[4,2]{1,0} all-reduce(f32[4,2]{1,0} %b), channel_id=4, replica_groups=[2,2]<=[4], use_global_device_ids=true, to_apply=%add\n",
        "  c.1 = (f32[8]{0}, f32[4,2]{1,0}) all-reduce(f32[8]{0} %a, f32[4,2]{1,0} %b), channel_id=3, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=%add\n"
        "  x = f32[8]{0} get-tuple-element((f32[8]{0}, f32[4,2]{1,0}) %c.1), index=0\n"
        "  y = f32[4,2]{1,0} get-tuple-element((f32[8]{0}, f32[4,2]{1,0}) %c.1), index=1\n",
        id="operands with types; groups and channel of the first",
    ),
    pytest.param(
        "  %x = f32[8]{0:T(8)S(1)} all-reduce(%a), constrain_layout=true, to_apply=%add\n"
        "  %n = f32[8]{0} negate(%a)\n"
        "  %y = f32[4,2]{1,0} all-reduce(%b), to_apply=%add\n",
        "  %c.1 = (f32[8]{0:T(8)S(1)}, f32[4,2]{1,0}) all-reduce(%a, %b), to_apply=%add\n"
        "  %x = f32[8]{0:T(8)S(1)} get-tuple-element(%c.1), index=0\n"
        "  %n = f32[8]{0} negate(%a)\n"
        "  %y = f32[4,2]{1,0} get-tuple-element(%c.1), index=1\n",
        id="names with a mark; layouts stay, constrain_layout goes; others stay where they are",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add\n"
        "  n = f32[8]{0} negate(x)\n"
        "  k = f32[4,2]{1,0} copy(b)\n"
        "  y = f32[4,2]{1,0} all-reduce(k), to_apply=add\n"
        "  o = f32[8]{0} negate(n)\n",
        "  k = f32[4,2]{1,0} copy(b)\n"
        "  c.1 = (f32[8]{0}, f32[4,2]{1,0}) all-reduce(a, k), to_apply=add\n"
        "  x = f32[8]{0} get-tuple-element(c.1), index=0\n"
        "  n = f32[8]{0} negate(x)\n"
        "  y = f32[4,2]{1,0} get-tuple-element(c.1), index=1\n"
        "  o = f32[8]{0} negate(n)\n",
        id="a late operand: the first member and its users follow it",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add\n"
        "  k = f32[8]{0} negate(a), control-predecessors={x}\n"
        "  l = f32[8]{0} negate(a)\n"
        '  y = f32[4,2]{1,0} all-reduce(b), to_apply=add, control-predecessors={l, a}, metadata={op_name="y"}\n',
        "  l = f32[8]{0} negate(a)\n"
        "  c.1 = (f32[8]{0}, f32[4,2]{1,0}) all-reduce(a, b), to_apply=add, control-predecessors={l, a}\n"
        "  x = f32[8]{0} get-tuple-element(c.1), index=0\n"
        "  k = f32[8]{0} negate(a), control-predecessors={x}\n"
        '  y = f32[4,2]{1,0} get-tuple-element(c.1), index=1, metadata={op_name="y"}\n',
        id="control predecessors are united, and hold the order",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, control-predecessors={a}, metadata={op_name="f"}\n'
        "  y = f32[4,2]{1,0} all-reduce(b), to_apply=add, control-predecessors={b, a}\n",
        '  c.1 = (f32[8]{0}, f32[4,2]{1,0}) all-reduce(a, b), to_apply=add, control-predecessors={a, b}, metadata={op_name="f"}\n'
        '  x = f32[8]{0} get-tuple-element(c.1), index=0, metadata={op_name="f"}\n'
        "  y = f32[4,2]{1,0} get-tuple-element(c.1), index=1\n",
        id="each control predecessor once, in the place of the first member's",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="1"}, backend_config={"k":{"n":"}"}}\n'
        "  y = f32[4,2]{1,0} all-reduce(b), to_apply=add, sharding={devices=[4,1]<=[4]}\n",
        '  c.1 = (f32[8]{0}, f32[4,2]{1,0}) all-reduce(a, b), to_apply=add, sharding={{replicated}, {devices=[4,1]<=[4]}}, frontend_attributes={a="1"}, backend_config={"k":{"n":"}"}}\n'
        "  x = f32[8]{0} get-tuple-element(c.1), index=0\n"
        "  y = f32[4,2]{1,0} get-tuple-element(c.1), index=1, sharding={devices=[4,1]<=[4]}\n",
        id="shardings become a tuple; other attributes of the first are kept",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(negate(a)), to_apply=add\n"
        "  y = f32[4,2]{1,0} all-reduce(b), to_apply=add // the last\n",
        "  c.1 = (f32[8]{0}, f32[4,2]{1,0}) all-reduce(negate(a), b), to_apply=add\n"
        "  x = f32[8]{0} get-tuple-element(c.1), index=0\n"
        "  y = f32[4,2]{1,0} get-tuple-element(c.1), index=1 // the last\n",
        id="an instruction as operand; a comment behind a member",
    ),
    pytest.param(
        "  x =\n    f32[8]{0} all-reduce(a),\n    replica_groups={},\n    to_apply=add\n"
        "  k = f32[4,2]{1,0}\n    copy(b)\n"
        "  y = f32[4,2]{1,0} all-reduce(k), /* all */ to_apply=add\n",
        "  k = f32[4,2]{1,0}\n    copy(b)\n"
        "  c.1 = (f32[8]{0}, f32[4,2]{1,0}) all-reduce(a, k), replica_groups={}, to_apply=add\n"
        "  x =\n    f32[8]{0} get-tuple-element(c.1), index=0\n"
        "  y = f32[4,2]{1,0} get-tuple-element(c.1), index=1\n",
        id="instructions over several lines",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add k = f32[4,2]{1,0} copy(b) // one line\n"
        "  y = f32[4,2]{1,0} all-reduce(k), to_apply=add\n",
        "  k = f32[4,2]{1,0} copy(b) // one line\n"
        "  c.1 = (f32[8]{0}, f32[4,2]{1,0}) all-reduce(a, k), to_apply=add\n"
        "  x = f32[8]{0} get-tuple-element(c.1), index=0\n"
        "  y = f32[4,2]{1,0} get-tuple-element(c.1), index=1\n",
        id="several instructions on a line",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add // sum\n"
        "  k = f32[4,2]{1,0} copy(b) y = f32[4,2]{1,0} all-reduce(k), to_apply=add\n",
        "  k = f32[4,2]{1,0} copy(b)\n"
        "  c.1 = (f32[8]{0}, f32[4,2]{1,0}) all-reduce(a, k), to_apply=add\n"
        "  x = f32[8]{0} get-tuple-element(c.1), index=0 // sum\n"
        "   y = f32[4,2]{1,0} get-tuple-element(c.1), index=1\n",
        id="a comment that moves swallows nothing",
    ),
    pytest.param(
        "  x = f32[8]{0} cross-replica-sum(a), to_apply=add\n  y = f32[4,2]{1,0} all-reduce(b), to_apply=add\n",
        "  c.1 = (f32[8]{0}, f32[4,2]{1,0}) cross-replica-sum(a, b), to_apply=add\n"
        "  x = f32[8]{0} get-tuple-element(c.1), index=0\n"
        "  y = f32[4,2]{1,0} get-tuple-element(c.1), index=1\n",
        id="the opcode as the first spells it",
    ),
]


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


DIMENSIONS = [
    pytest.param(
        "  x = f32[16,2]{1,0} all-gather(b), dimensions={0}\n  y = f32[4,8]{1,0} all-gather(b), dimensions={1}\n",
        0,
        "  transpose.1 = f32[2,4]{0,1} transpose(b), dimensions={1,0}\n"
        "  c.1 = (f32[16,2]{1,0}, f32[8,4]{0,1}) all-gather(b, transpose.1), dimensions={0}\n"
        "  x = f32[16,2]{1,0} get-tuple-element(c.1), index=0\n"
        "  get-tuple-element.1 = f32[8,4]{0,1} get-tuple-element(c.1), index=1\n"
        "  y = f32[4,8]{1,0} transpose(get-tuple-element.1), dimensions={1,0}\n",
        id="the second is transposed",
    ),
    pytest.param(
        "  %q = bf16[3,4,<=2,5]{3,1,0,2:T(8,128)(2,1)} convert(b)\n"
        "  transpose.7 = f32[2,4]{0,1} transpose(b), dimensions={1,0}\n"
        "  %x = bf16[3,16,<=2,5]{3,1,0,2:T(8,128)(2,1)S(1)} all-gather(bf16[3,4,<=2,5]{3,1,0,2:T(8,128)(2,1)} %q), dimensions={1}, sharding={replicated}\n"
        "  %y = f32[4,2,20] all-gather(b), dimensions={2}\n",
        2,
        "  %q = bf16[3,4,<=2,5]{3,1,0,2:T(8,128)(2,1)} convert(b)\n"
        "  transpose.7 = f32[2,4]{0,1} transpose(b), dimensions={1,0}\n"
        "  %transpose.8 = bf16[3,<=2,4,5]{3,2,0,1:T(8,128)(2,1)} transpose(bf16[3,4,<=2,5]{3,1,0,2:T(8,128)(2,1)} %q), dimensions={0,2,1,3}\n"
        "  %c.1 = (bf16[3,<=2,16,5]{3,2,0,1:T(8,128)(2,1)S(1)}, f32[4,2,20]) all-gather(bf16[3,<=2,4,5]{3,2,0,1:T(8,128)(2,1)} %transpose.8, b), dimensions={2}, sharding={{replicated}, {replicated}}\n"
        "  %get-tuple-element.1 = bf16[3,<=2,16,5]{3,2,0,1:T(8,128)(2,1)S(1)} get-tuple-element((bf16[3,<=2,16,5]{3,2,0,1:T(8,128)(2,1)S(1)}, f32[4,2,20]) %c.1), index=0\n"
        "  %x = bf16[3,16,<=2,5]{3,1,0,2:T(8,128)(2,1)S(1)} transpose(bf16[3,<=2,16,5]{3,2,0,1:T(8,128)(2,1)S(1)} %get-tuple-element.1), dimensions={0,2,1,3}, sharding={replicated}\n"
        "  %y = f32[4,2,20] get-tuple-element(c.1), index=1\n",
        id="the first is transposed: types, tiles, dynamic sizes, names that are taken",
    ),
]


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


def refused(text: str, *edits: Edit, module: TextModule) -> str:
    """Return why edits are refused."""
    with pytest.raises(EditError) as caught:
        module.edited(edits)
    assert module.to_bytes() == text.encode()
    return str(caught.value)


def test_combinations_that_are_refused() -> None:
    """What is no set of like, independent collectives with a new name stays as it is, and the sentence says why."""
    text = (
        HEAD
        + "  x = f32[8]{0} all-reduce(a), to_apply=add\n"
        + "  z = f32[8]{0} all-reduce(x), to_apply=add\n"
        + "  y = (f32[8]{0}, f32[4,2]{1,0}) all-reduce(a, b), to_apply=add\n"
        + "  g = f32[32]{0} all-gather(a), dimensions={0}, sharding={devices=[4]<=[4]}\n"
        + "  h = f32[4,8]{1,0} all-gather(b), dimensions={1}, sharding={devices=[4,1]<=[4]}\n"
        + "  i = f32[16,2]{1,0} all-gather(b), dimensions={0}\n"
        + "  j = f32[8]{0} all-reduce-start(a), to_apply=add\n  k = f32[8]{0} all-reduce-start(z), to_apply=add\n"
        + "  l = f32[8]{0} all-to-all(a), dimensions={0}\n  m = f32[8]{0} all-to-all(a), dimensions={0}\n"
        + "  ROOT t = (f32[8]{0}) tuple(z)\n}\n"
    )
    module = module_of(text)
    x = module.instruction("x")

    def why(*edits: Edit) -> str:
        return refused(text, *edits, module=module)

    other = "expected no other edit of x, which becomes another instruction, found one"
    assert why(combine(module, members="xz")) == (
        "expected instructions that do not depend on each other to make c.1 of, found one that needs another"
    )
    assert why(combine(module, members="xg")) == (
        "expected instructions of one opcode and one computation to make c.1 of, found x, g"
    )
    assert why(combine(module, members="x")) == (
        "expected instructions of one opcode and one computation to make c.1 of, found x"
    )
    for members in ("jk", "lm"):
        assert why(combine(module, members=members)) == (
            f"expected all-gathers, all-reduces or reduce-scatters to make c.1 of, found {members[0]}"
        )
    assert why(combine(module, members="xy")) == "expected y, of which c.1 is made, to have one operand, found 2"
    assert why(combine(module, members="xx")) == other
    assert why(combine(module, members="gi"), SetChannelId(module.instruction("i"), 3)) == other.replace("x,", "i,")
    assert why(SetChannelId(x, 3), BecomeCustomCall(x, "T", "{}")) == other
    assert why(BecomeCustomCall(x, "T", "{}"), BecomeCustomCall(x, "T", "{}")) == other
    assert why(BecomeCustomCall(x, "no word", "{}")) == "expected a word as the target that x calls, found 'no word'"
    assert why(combine(module, "t", "hi", dimension=1)) == (
        "expected a new name for what is made of h, found t, which is taken"
    )
    assert why(combine(module, "c d", "gi")) == "expected a word as the name of a new instruction, found 'c d'"
    assert why(combine(module, members="gi", dimension=1)) == (
        "expected dimension 1 in g, and one of its own to gather along, found f32[32]{0}"
    )
    assert why(combine(module, members="hi", dimension=0)) == (
        "expected a sharding of h without dimensions to swap, found {devices=[4,1]<=[4]}"
    )
    assert why(combine(module, "n", "hi", dimension=1), combine(module, "n", "xz")) == (
        "expected a name of its own for each new instruction, found n twice"
    )


def test_undefined_operands_have_no_shape() -> None:
    """The shape of a transposed operand must stand somewhere."""
    text = (
        HEAD
        + "  x = f32[16,2]{1,0} all-gather(b), dimensions={0}\n  y = f32[4,8]{1,0} all-gather(gone), dimensions={1}\n"
        + ROOT
    )
    module = module_of(text)
    assert refused(text, combine(module, dimension=0), module=module) == (
        "expected a shape of gone, the operand of y, found none in the computation"
    )


CUSTOM_CALLS = [
    pytest.param(
        "x = f32[8]{0} all-reduce(a), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add",
        'x = f32[8]{0} custom-call(a), custom_call_target="T_f32", backend_config={"a":[1]}',
        id="what a collective says goes",
    ),
    pytest.param(
        "x = f32[8]{0} all-reduce(f32[8]{0} %a), constrain_layout=true, to_apply=add, sharding={replicated}, "
        'frontend_attributes={a="1"}, control-predecessors={a}, metadata={op_name="f"}, barrier="b", backend_config={"x":{}}',
        'x = f32[8]{0} custom-call(f32[8]{0} %a), custom_call_target="T_f32", backend_config={"a":[1]}, sharding={replicated}, '
        'frontend_attributes={a="1"}, control-predecessors={a}, metadata={op_name="f"}, barrier="b"',
        id="what others say stays in its order",
    ),
    pytest.param(
        'ROOT %x =\n f32[32]{0} all-gather ( a /* one */ ),\n dimensions={0}, // gather\n metadata={op_name="f"} // end',
        'ROOT %x =\n f32[32]{0} custom-call ( a /* one */ ), custom_call_target="T_f32", backend_config={"a":[1]}, // gather\n metadata={op_name="f"} // end',
        id="over several lines",
    ),
    pytest.param(
        "x = (f32[32]{0}, f32[16,2]{1,0}) all-gather(a, b), replica_groups=mesh['a'=4], device_ids=(3,2,1,0) {'a'}, dimensions={0}",
        'x = (f32[32]{0}, f32[16,2]{1,0}) custom-call(a, b), custom_call_target="T_f32", backend_config={"a":[1]}',
        id="several operands",
    ),
]


@pytest.mark.parametrize(("before", "after"), CUSTOM_CALLS)
def test_custom_calls(before: str, after: str) -> None:
    """A collective becomes a custom call with the same name, shape, operands and foreign attributes."""
    module = module_of(f"{HEAD}  {before}\n}}\n")
    edit = BecomeCustomCall(module.instruction("x"), "T_f32", '{"a":[1]}')
    assert module.edited([edit]).to_bytes().decode() == f"{HEAD}  {after}\n}}\n"
    called = module.edited([edit]).instruction("x")
    assert (called.opcode, called.raw_attribute("custom_call_target")) == ("custom-call", "T_f32")
    assert called.raw_attribute("backend_config") == '{"a":[1]}'


# --- generated modules ------------------------------------------------------------------------------------------------


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, list[list[str]]]:
    """Bodies in which some all-reduces are to be combined."""
    size = draw(st.integers(3, 12))
    lines = ["a = f32[8]{0} parameter(0)"]
    reduces: list[str] = []
    for number in range(size):
        names = [line.partition(" ")[0] for line in lines]
        operand = draw(st.sampled_from(names))
        control = draw(st.sampled_from(["", "", f", control-predecessors={{{draw(st.sampled_from(names))}}}"]))
        if draw(st.booleans()):
            reduces.append(f"r{number}")
            lines.append(f"r{number} = f32[8]{{0}} all-reduce({operand}), to_apply=add{control}")
        else:
            lines.append(f"n{number} = f32[8]{{0}} negate({operand}){control}")
    shuffled = draw(st.permutations(reduces))
    cut = draw(st.integers(0, len(shuffled)))
    groups = [group for group in (shuffled[:cut], shuffled[cut:]) if len(group) > 1]
    indent = draw(st.sampled_from(["  ", " "]))
    return "\n".join(indent + line for line in lines), groups


@given(programs())
def test_generated_programs(case: tuple[str, list[list[str]]]) -> None:
    """Every user keeps its operands, everything stands behind what it needs, and members ask for their own index."""
    body, groups = case
    module = module_of(f"{HEAD.partition('ENTRY')[0]}ENTRY main {{\n{body}\n}}\n")
    edits = [combine(module, f"c.{number}", group) for number, group in enumerate(groups)]
    try:
        after = module.edited(edits)
    except EditError:
        return
    before, now = ({each.name: each for each in found.computations[1].instructions} for found in (module, after))
    assert now.keys() == before.keys() | {edit.name for edit in edits}
    graph = after.computations[1].graph()
    assert not graph.broken
    assert all(each < position for position in range(len(now)) for each in graph.predecessors(position))
    members = {member: (edit, index) for edit in edits for index, member in enumerate(edit.members)}
    by_name = {member.name: found for member, found in members.items()}
    for name, instruction in before.items():
        if name not in by_name:
            assert now[name].excerpt == instruction.excerpt
            continue
        edit, index = by_name[name]
        assert now[name].opcode == "get-tuple-element"
        assert (now[name].operand_names, now[name].raw_attribute("index")) == ((edit.name,), str(index))
        assert now[edit.name].operand_names[index] == instruction.operand_names[0]
        assert set(instruction.control_predecessors) <= set(now[edit.name].control_predecessors)


def test_xla_reads_what_is_combined(xla: XlaReader) -> None:
    """XLA takes every text from above that it took before, combined or made a custom call."""
    read = 0
    for case in (*CASES, *DIMENSIONS):
        body, dimension = str(case.values[0]), case.values[1]
        root = "  ROOT t = (f32[8]{0}, f32[4,2]{1,0}) tuple(a, b)\n}\n"
        if xla.reads((HEAD + body + root).encode()):
            read += 1
            after = combined(body, root=root, dimension=dimension if isinstance(dimension, int) else None)
            assert xla.reads((HEAD + after + root).encode()), after
    for case in CUSTOM_CALLS:
        if xla.reads(f"{HEAD}  {case.values[0]}\n}}\n".encode()):
            read += 1
            assert xla.reads(f"{HEAD}  {case.values[1]}\n}}\n".encode()), case.values[1]
    assert read > 10
