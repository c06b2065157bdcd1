"""Verification: whose fault it is, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import pytest

from commlens import load
from commlens.errors import CommlensError, InputError
from commlens.hlo import Module, Pass, PassResult, Pipeline, UnreadableError
from commlens.hlo.passes import pipeline
from commlens.hlo.passes.verification import examine, new_faults
from proto_modules import all_reduce, entry, instruction, module_of, reducer

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = """HloModule m, num_partitions=2

ENTRY e {
  p = f32[8] parameter(0)
  n = f32[8] negate(p)
  r = f32[8] all-to-all(n), replica_groups={{0,1}}, dimensions={0}
  ROOT t = f32[8] add(n, r)
}
"""


@dataclass(frozen=True, slots=True)
class Replace(Pass):
    """Puts another module in place."""

    name: ClassVar[str] = "replace"
    new: Module = field(default_factory=lambda: load(TEXT))

    def run(self, module: Module, *, keep_going: bool = False) -> PassResult:
        """Return the other module."""
        stats = {"kept_going": keep_going}
        return PassResult(self.name, changed=True, modified=self.new is not module, stats=stats, module=self.new)


def verified(before: Module, *after: Module) -> None:
    """Put modules in place, one after the other."""
    Pipeline(tuple(map(Replace, after)), verify=True).run(before)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        pytest.param("negate(p)", "negate(q)", "<text>:5:3: replace broke the module: n: expected all that it needs to be defined before it in its computation, found q undefined", id="operand"),
        pytest.param("{{0,1}}", "{{0,0}}", "<text>:6:3: replace broke the module: r: expected every id once", id="groups"),
        pytest.param("{{0,1}}", "{{0,1}", "<text>:6:3: replace broke the module: r cannot be read: ", id="unread"),
        pytest.param("negate(p)", "negate(r)", "<text>:5:3: replace broke the module: n: expected all that it needs to be defined before it in its computation, found r behind it", id="order"),
        pytest.param("  n =", "  x =", "<text>:6:3: replace broke the module: r: expected all that it needs to be defined before it in its computation, found n undefined", id="gone"),
        pytest.param("  ROOT t", "  n = f32[8] abs(p)\n  ROOT t", "<text>:5:3: replace broke the module: computation e has two", id="twice"),
    ],
)  # fmt: skip
def test_a_fault_has_the_line_that_the_file_has_it_on(old: str, new: str, says: str) -> None:
    """The line is that of the instruction in the module on which the pass ran, whatever moved since."""
    after = TEXT.replace("  p = ", "\n\n  p = ").replace(old, new)
    with pytest.raises(InputError) as caught:
        verified(load(TEXT), load(after))
    assert str(caught.value).startswith(says)


def test_an_instruction_that_was_not_there_has_no_line() -> None:
    """The file does not have it."""
    after = TEXT.replace("  ROOT t", "  s = f32[8] all-to-all(n), replica_groups={{0,0}}, dimensions={0}\n  ROOT t")
    with pytest.raises(InputError, match="^<text>: replace broke the module: s: expected every id once"):
        verified(load(TEXT), load(after))


DAMAGED = TEXT.replace("  n = f32[8] negate(p)", "  n = f32[8] negate(p\n  o = f32[8] abs p")


def test_what_was_damaged_before_is_nobodys_fault() -> None:
    """Nothing of it is told, in whatever place it is met: not as an error, nor as a fault of the pass."""
    moved = DAMAGED.replace("  p = ", "\n  p = ")
    verified(load(DAMAGED), load(moved), load(DAMAGED))


def test_damage_is_the_fault_of_who_did_it() -> None:
    """The pass is named, and the file."""
    with pytest.raises(InputError, match=r"^<text>(:\d+:\d+)?: replace broke the module: "):
        verified(load(TEXT), load(DAMAGED))


def damaged_proto() -> Module:
    """Return a proto in which the bytes of one instruction are no message."""
    proto = module_of(reducer(), entry(all_reduce(), instruction("negate", 3, [2])))
    whole, broken = proto.SerializeToString(), instruction("negate", 3, [2]).SerializeToString()
    damaged = whole.replace(broken, broken[:-1] + b"\xff")
    assert damaged != whole
    return load(damaged)


def test_bytes_that_are_no_instruction_were_there_before() -> None:
    """A proto with such is looked at like any other."""
    module = damaged_proto()
    assert new_faults(examine(module), examine(module), module) == []
    intact = load(module_of(reducer(), entry(all_reduce(), instruction("negate", 3, [2]))).SerializeToString())
    with pytest.raises(InputError, match="^<bytes>: replace broke the module: .*cannot be read"):
        verified(intact, module)


@pytest.mark.parametrize(
    ("works", "says"),
    [
        pytest.param(0, "<text>: replace: the module on which it ran cannot be verified, and was so before: no", id="input"),
        pytest.param(1, "<text>: replace broke the module, which cannot be verified: no", id="product"),
    ],
)  # fmt: skip
def test_what_cannot_be_looked_at_at_all_names_the_pass(works: int, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that comes up while looking says on which of the two modules."""
    calls: list[Module] = []

    def look(module: Module) -> object:
        calls.append(module)
        if len(calls) > works:
            msg = "no"
            raise UnreadableError(msg)
        return examine(module)

    monkeypatch.setattr(pipeline, "examine", look)
    with pytest.raises(CommlensError) as caught:
        verified(load(TEXT), load(TEXT.replace("negate", "abs")))
    assert str(caught.value) == says


def test_every_module_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one pass made is what the next one runs on."""
    looked: list[Module] = []
    real: Callable[[Module], object] = examine
    monkeypatch.setattr(pipeline, "examine", lambda module: (looked.append(module), real(module))[1])
    modules = [load(TEXT.replace("negate", opcode)) for opcode in ("abs", "exponential", "cosine")]
    before = load(TEXT)
    verified(before, *modules)
    assert looked == [before, *modules]


def test_the_order_of_a_proto_is_that_of_its_list() -> None:
    """Instructions are sorted by id when they are read, but XLA takes them as they are listed."""
    proto = module_of(reducer(), entry(all_reduce(), instruction("negate", 3, [2])))
    before = load(proto.SerializeToString())
    listed = proto.computations[1].instructions
    swapped = [listed[0], listed[2], listed[1]]
    copies = [each.SerializeToString() for each in swapped]
    for each, data in zip(listed, copies, strict=True):
        each.ParseFromString(data)
    after = load(proto.SerializeToString())
    with pytest.raises(
        InputError,
        match="^<bytes>: replace broke the module: x3: expected all that it needs to be defined before it in its computation, found x2 behind it",
    ):
        verified(before, after)
    with pytest.raises(InputError, match="^<bytes>: the module cannot be verified: x3: expected all that it needs"):
        verified(after, before)


LATE = TEXT.replace("negate(p)", "add(p, t), control-predecessors={q}")


def test_a_module_that_xla_would_not_read_is_refused_before_the_first_pass() -> None:
    """The first operand or predecessor that is not defined before its user is told with its place, others are counted."""
    for text in (LATE, LATE.replace("HloModule m,", "HloModule m, is_scheduled=true,")):
        with pytest.raises(InputError) as caught:
            verified(load(text))
        assert str(caught.value) == (
            "<text>:5:3: the module cannot be verified: n: expected all that it needs to be defined before it in its "
            "computation, found t behind it (1 more)"
        )


def test_going_on_leaves_what_xla_would_not_read_as_it_is() -> None:
    """Then it is nobody's fault, and what a pass adds to it is that pass's."""
    moved = load(LATE.replace("  p = ", "\n  p = "))
    Pipeline((Replace(moved),), verify=True).run(load(LATE), keep_going=True)
    worse = load(LATE.replace("add(n, r)", "add(n, u)"))
    with pytest.raises(InputError, match="^<text>:7:8: replace broke the module: t: .* found u undefined$"):
        Pipeline((Replace(worse),), verify=True).run(load(LATE), keep_going=True)
