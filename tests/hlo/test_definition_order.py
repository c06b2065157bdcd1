"""What stands before what needs it: a table of small modules, each of them held against XLA's own reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.hlo import (
    UnreadableError,
    check_definition_order,
    load,
    module_uses_before_definition,
    uses_before_definition,
)
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from proto_twin import proto_twin
from xla_reader import XlaReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from commlens import Module
    from commlens.hlo import UseBeforeDefinition

HEAD = "HloModule m, num_partitions=2\n\n"
TEXT = """ENTRY e {
  p = f32[8] parameter(0)
  n = f32[8] negate(p)
  r = f32[8] all-to-all(n), replica_groups={{0,1}}, dimensions={0}
  ROOT t = f32[8] add(n, r)
}
"""
INNER = "f {\n  q = f32[8] parameter(0)\n  ROOT z = f32[8] all-to-all(q), replica_groups={{0,1}}, dimensions={0}\n}\n"
SWAPPED = "f {\n  ROOT z = f32[8] all-to-all(q), replica_groups={{0,1}}, dimensions={0}\n  q = f32[8] parameter(0)\n}\n"


def entry(*lines: str, inner: str = "") -> str:
    """Write a module with an entry of some lines, behind another computation."""
    return f"{inner}ENTRY e {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


PARAMETER = "p = f32[8] parameter(0)"
START, DONE = "s = ((f32[8]), f32[8]) async-start(p), calls=f", "ROOT d = f32[8] async-done(s), calls=f"
SHORT = "s = ((f32[8]), f32[8]) all-to-all-start(p), replica_groups={{0,1}}, dimensions={0}"
SHORT_DONE = "ROOT d = f32[8] all-to-all-done(s)"
FUSION = "ROOT d = f32[8] fusion(p), kind=kLoop, calls=f"

READ = {
    "plain": TEXT,
    "percent": TEXT.replace("(p)", "(f32[8]{0} %p)"),
    "control predecessor": TEXT.replace("add(n, r)", "add(n, r), control-predecessors={n}"),
    "several": TEXT.replace("add(n, r)", "add(n, r), control-predecessors={p, %r, p}"),
    "an operand as predecessor": TEXT.replace("add(n, r)", "add(n, r), control-predecessors={/* it */ r}"),
    "root in the middle": TEXT.replace("  ROOT t = f32[8] add(n, r)\n", "").replace("  n =", "  ROOT n ="),
    "an instruction as operand": TEXT.replace("negate(p)", "negate(f32[8] abs(p))"),
    "wrapped": entry(PARAMETER, START, DONE, inner=INNER),
    "in short": entry(PARAMETER, SHORT, SHORT_DONE),
    "fused": entry(PARAMETER, FUSION, inner=INNER.replace("all-to-all(q), replica_groups={{0,1}}, dimensions={0}", "negate(q)")),
    "the same name elsewhere": entry("q = f32[8] parameter(0)", "ROOT z = f32[8] negate(q)", inner=INNER),
    "names like numbers": TEXT.replace("f32[8] parameter(0)", "f32[] constant(5)").replace("n = f32[8] negate(p)", "n = f32[8] broadcast(p), dimensions={}"),
}  # fmt: skip

REFUSED = {
    "operand behind": (TEXT.replace("negate(p)", "negate(r)"), [("n", "r", "behind")]),
    "with its type": (TEXT.replace("negate(p)", "negate(f32[8]{0} %r)"), [("n", "r", "behind")]),
    "operand itself": (TEXT.replace("negate(p)", "negate(n)"), [("n", "n", "itself")]),
    "operand undefined": (TEXT.replace("negate(p)", "negate(q)"), [("n", "q", "undefined")]),
    "with a type, undefined": (TEXT.replace("all-to-all(n)", "all-to-all(f32[8] q)"), [("r", "q", "undefined")]),
    "operands, mixed": (TEXT.replace("add(n, r)", "add(n, u)").replace("negate(p)", "add(t, q)"), [("n", "t", "behind"), ("n", "q", "undefined"), ("t", "u", "undefined")]),
    "predecessor behind": (TEXT.replace("negate(p)", "negate(p), control-predecessors={p, t}"), [("n", "t", "behind")]),
    "predecessor itself": (TEXT.replace("negate(p)", "negate(p), control-predecessors={n}"), [("n", "n", "itself")]),
    "predecessor undefined": (TEXT.replace("negate(p)", "negate(p), control-predecessors={%q}"), [("n", "q", "undefined")]),
    "of a collective, behind": (TEXT.replace("={0}\n", "={0}, control-predecessors={t}\n"), [("r", "t", "behind")]),
    "of a collective, undefined": (TEXT.replace("={0}\n", "={0}, control-predecessors={q}\n"), [("r", "q", "undefined")]),
    "parameter behind": (entry("n = f32[8] negate(p)", "p = f32[8] parameter(0)", "ROOT r = f32[8] negate(n)"), [("n", "p", "behind")]),
    "token behind": (entry("k = token[] after-all(j)", "j = token[] after-all()", "ROOT p = f32[8] parameter(0)"), [("k", "j", "behind")]),
    "behind a comment": (entry(PARAMETER, "ROOT c = (f32[8], f32[8]) tuple(p, /*index=1*/ q)", "q = f32[8] negate(p)"), [("c", "q", "behind")]),
    "of another computation": (TEXT.replace("negate(p)", "negate(z)").replace("ENTRY", INNER + "ENTRY"), [("n", "z", "undefined")]),
    "in an operand": (TEXT.replace("negate(p)", "negate(f32[8] abs(r))"), [("abs.anon", "r", "behind")]),
    "in a fusion": (entry(PARAMETER, FUSION, inner=SWAPPED), [("z", "q", "behind")]),
    "in what a start wraps": (entry(PARAMETER, START, DONE, inner=SWAPPED), [("z", "q", "behind")]),
    "where nobody calls": (entry("ROOT p = f32[8] parameter(0)", inner=SWAPPED), [("z", "q", "behind")]),
    "done before start": (entry(PARAMETER, DONE, START, inner=INNER), [("d", "s", "behind")]),
    "start in short": (entry(SHORT, PARAMETER, SHORT_DONE), [("s", "p", "behind")]),
    "done in short": (entry(PARAMETER, SHORT_DONE, SHORT), [("d", "s", "behind")]),
}  # fmt: skip


def found(needs: Iterable[UseBeforeDefinition]) -> list[tuple[str, str, str]]:
    """Return what is needed and not defined before as names."""
    return [(each.user.name, each.needed, each.whereabouts) for each in needs]


@pytest.fixture(scope="module")
def xla() -> Iterator[XlaReader]:
    """Return a process that reads modules."""
    reader = XlaReader()
    yield reader
    reader.close()


@pytest.mark.parametrize("scheduled", [False, True])
@pytest.mark.parametrize("name", READ)
def test_nothing_is_found_in_what_is_in_order(name: str, scheduled: bool) -> None:
    """Whoever laid the text out, and whether or not it has a schedule."""
    for text in (READ[name], READ[name].replace("\n  ", "\n    ")):
        assert found(module_uses_before_definition(load(headed(text, scheduled=scheduled)))) == []


@pytest.mark.parametrize("scheduled", [False, True])
@pytest.mark.parametrize("name", REFUSED)
def test_user_and_needed_are_named(name: str, scheduled: bool) -> None:
    """In list order, each pair once, with where the needed one is instead."""
    written, expected = REFUSED[name]
    for text in (written, written.replace("\n  ", "\n    ")):
        assert found(module_uses_before_definition(load(headed(text, scheduled=scheduled)))) == expected


@pytest.mark.xla
@pytest.mark.parametrize("scheduled", [False, True])
def test_xla_draws_the_same_line(xla: XlaReader, scheduled: bool) -> None:
    """It reads what is in order and refuses the rest."""
    texts = {**READ, **{name: text for name, (text, _) in REFUSED.items()}}
    read = [name for name, text in texts.items() if xla.reads(headed(text, scheduled=scheduled).encode())]
    assert read == list(READ)


def headed(text: str, *, scheduled: bool) -> str:
    """Put a header before computations."""
    return HEAD.replace(" m,", " m, is_scheduled=true,") + text if scheduled else HEAD + text


def test_the_first_of_two_of_one_name_counts() -> None:
    """XLA refuses the second when it comes there; a use between them is no fault of its own."""
    text = TEXT.replace("  ROOT t", "  n = f32[8] abs(p)\n  ROOT t")
    assert found(module_uses_before_definition(load(text))) == []
    assert found(module_uses_before_definition(load(text.replace("negate(p)", "negate(n)")))) == [("n", "n", "itself")]


def test_an_element_of_a_tuple_needs_the_tuple() -> None:
    """XLA of 2026 writes an operand so; older readers refuse the form itself."""
    text = TEXT.replace("n = f32[8] negate(p)", "n = (f32[8], f32[8]) tuple(p, p)").replace("(n)", "(f32[8] %n#1)")
    text = text.replace("add(n, r)", "add(n#0, r)")
    assert found(module_uses_before_definition(load(text))) == []
    late = text.replace("tuple(p, p)", "tuple(p, %r#0, x#0, p#q)")
    assert found(module_uses_before_definition(load(late))) == [
        ("n", "%r#0", "behind"),
        ("n", "x#0", "undefined"),
        ("n", "p#q", "undefined"),
    ]


def test_the_cutting_of_a_text_is_no_module() -> None:
    """Instructions that stand in no computation have operands that stand elsewhere."""
    lines = "r = f32[8] all-to-all(f32[8] n), replica_groups={{0,1}}, dimensions={0}\nx = f32[8] negate(f32[8] y)\n"
    assert found(module_uses_before_definition(load(lines))) == []


def test_a_computation_that_cannot_be_taken_apart_is_passed_over() -> None:
    """And no other."""
    damaged = INNER.replace("ROOT z = f32[8] all-to-all(q)", "x = f32[8] negate q\n  ROOT z = f32[8] all-to-all(y)")
    module = load(damaged + TEXT.replace("negate(p)", "negate(q)"))
    assert found(module_uses_before_definition(module)) == [("n", "q", "undefined")]
    with pytest.raises(UnreadableError):
        uses_before_definition(module.computations[0])


def test_a_refusal_has_the_place() -> None:
    """Of the instruction that needs it."""
    fine, late = load(TEXT).entry, load(TEXT.replace("negate(p)", "negate(r)")).entry
    assert fine is not None
    assert late is not None
    check_definition_order(fine)
    with pytest.raises(UnreadableError, match="^n: expected all that it needs .* found r behind it$") as caught:
        check_definition_order(late)
    assert (caught.value.line, caught.value.column) == (3, 3)


# --- generated ------------------------------------------------------------------------------------------------------


@st.composite
def listed(draw: st.DrawFn) -> list[tuple[str, list[str], list[str]]]:
    """Names in some order, each with operands and control predecessors, some of which are nowhere."""
    names = draw(st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1))
    known = st.lists(st.sampled_from([*names, "x"]), max_size=3)
    return [(name, draw(known), draw(known) if draw(st.booleans()) else []) for name in names]


def slow(instructions: Sequence[tuple[str, list[str], list[str]]]) -> list[tuple[str, str, str]]:
    """Look every name up among all that stand before."""
    names = [name for name, _, _ in instructions]
    answer: list[tuple[str, str, str]] = []
    for place, (user, operands, control) in enumerate(instructions):
        for needed in dict.fromkeys([*operands, *control]):
            if needed not in names[:place]:
                where = "itself" if needed == user else "behind" if needed in names else "undefined"
                answer.append((user, needed, where))
    return answer


@given(listed())
def test_text_and_proto_say_what_looking_up_says(instructions: list[tuple[str, list[str], list[str]]]) -> None:
    """A printed text, one that people laid out, and a proto in which ids fall where the list rises."""
    lines = [
        f'{name} = f32[8] custom-call({", ".join(operands)}), custom_call_target="f"'
        + (f", control-predecessors={{{', '.join(control)}}}" if control else "")
        for name, operands, control in instructions
    ]
    text = entry(*lines)
    expected = slow(instructions)
    assert found(module_uses_before_definition(load(text))) == expected
    assert found(module_uses_before_definition(load(text.replace("\n  ", "\n   ")))) == expected
    assert found(module_uses_before_definition(proto_of(instructions))) == [
        (user, "id 99" if where == "undefined" else needed, where) for user, needed, where in expected
    ]


def proto_of(instructions: Sequence[tuple[str, list[str], list[str]]]) -> Module:
    """Return a proto that lists these instructions, with ids that fall along the list."""
    numbers = {name: len(instructions) - place for place, (name, _, _) in enumerate(instructions)}
    message = proto_twin(load(TEXT))
    computation = message.computations[0]
    del computation.instructions[:]
    for name, operands, control in instructions:
        computation.instructions.append(
            schema.HloInstructionProto(
                name=name.encode(),
                opcode=b"custom-call",
                id=numbers[name],
                operand_ids=[numbers.get(each, 99) for each in operands],
                control_predecessor_ids=[numbers.get(each, 99) for each in control],
            )
        )
    return load(message.SerializeToString())
