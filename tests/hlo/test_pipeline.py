"""Running passes one after the other, and checking between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import pytest

from commlens.errors import CommlensError, InputError
from commlens.hlo import Module, Pass, PassResult, Pipeline, Refusals, SetChannelId, load, pass_result
from commlens.hlo.passes.verification import Fault, examine
from commlens.hlo.passes.verification import new_faults as faults_between
from proto_modules import all_reduce, device_list, entry, instruction, module_of, reducer

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema

TEXT = """HloModule m, replica_count=1, num_partitions=4

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY e {
  p = f32[8] parameter(0)
  n = f32[8] negate(p)
  r = f32[8] all-reduce(n), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=sum
  ROOT t = f32[8] add(n, r), control-predecessors={p}
}
"""


@dataclass(frozen=True, slots=True)
class Count(Pass):
    """Adds to the channel id of the all-reduce; by 0 it changes nothing."""

    name: ClassVar[str] = "count"
    by: int = 1

    def run(self, module: Module, *, keep_going: bool = False) -> PassResult:
        """Give it the next channel."""
        refusals = Refusals(module, keep_going)
        collective = module.instruction("r")
        old = collective.channel_id or 0
        edits = [SetChannelId(collective, old + self.by)] if self.by else []
        return pass_result(
            self.name, refusals, refusals.apply(edits), changed=True, stats={"old": old, "kept_going": keep_going}
        )


@dataclass(frozen=True, slots=True)
class Replace(Pass):
    """Puts another module in place."""

    name: ClassVar[str] = "replace"
    new: Module = field(default_factory=lambda: load(TEXT))

    def run(self, module: Module, *, keep_going: bool = False) -> PassResult:
        """Return the other module."""
        stats = {"kept_going": keep_going}
        return PassResult(self.name, changed=True, modified=self.new is not module, stats=stats, module=self.new)


@dataclass(frozen=True, slots=True)
class Fail(Pass):
    """Raises what it is told to."""

    name: ClassVar[str] = "fail"
    error: Exception = field(default_factory=lambda: CommlensError("no"))

    def run(self, module: Module, *, keep_going: bool = False) -> PassResult:
        """Raise."""
        raise self.error


def new_faults(before: Module, after: Module) -> list[Fault]:
    """Return what is wrong with a module that was not wrong before."""
    return faults_between(examine(before), examine(after), after)


# --- order, results, callbacks --------------------------------------------------------------------------------------


def test_passes_run_in_the_order_given() -> None:
    """Each pass works on what the one before it made; the argument stays as it was."""
    module = load(TEXT)
    results = Pipeline((Count(), Count(10), Count())).run(module)
    assert [result.stats["old"] for result in results] == [1, 2, 12]
    assert results[-1].module.instruction("r").channel_id == 13
    assert module.to_bytes().decode() == TEXT


def test_a_pipeline_without_passes_does_nothing() -> None:
    """There are no results then."""
    assert Pipeline(()).run(load(TEXT)) == []


def test_what_no_pass_modifies_is_the_same_module() -> None:
    """Passes that find nothing to do hand the module on."""
    module = load(TEXT)
    assert [result.module for result in Pipeline((Count(0), Count(0)), verify=True).run(module)] == [module, module]


def test_every_result_is_shown_as_soon_as_it_is_there() -> None:
    """The callback gets each result before the next pass runs, also those before a pass that fails."""
    seen: list[tuple[str, object]] = []
    pipeline = Pipeline(
        (Count(), Count(0), Fail(), Count()),
        after_each=lambda result: seen.append((result.name, result.module.instruction("r").channel_id)),
    )
    with pytest.raises(InputError):
        pipeline.run(load(TEXT))
    assert seen == [("count", 2), ("count", 2)]


@pytest.mark.parametrize("keep_going", [False, True])
def test_passes_are_told_whether_to_go_on(keep_going: bool) -> None:
    """The flag reaches every pass."""
    results = Pipeline((Count(), Count())).run(load(TEXT), keep_going=keep_going)
    assert [result.stats["kept_going"] for result in results] == [keep_going, keep_going]


def test_a_pipeline_is_its_text() -> None:
    """Its string form names the passes and their options."""
    assert str(Pipeline((Count(), Count(3)))) == "count,count{by=3}"


# --- errors name the pass -------------------------------------------------------------------------------------------


def test_an_error_names_the_pass_whose_product_its_place_is_in() -> None:
    """Lines count in what the last pass made that modified something; before the first one they are the file's own."""
    fault = InputError("no", path="f.hlo", line=3)
    for passes, says in (
        ((Count(0), Fail(fault)), "f.hlo:3: fail: no"),
        ((Count(), Replace(), Count(0), Fail(fault)), "f.hlo:3: fail, on what replace made: no"),
    ):
        with pytest.raises(InputError) as caught:
            Pipeline(passes).run(load(TEXT))
        assert str(caught.value) == says


@pytest.mark.parametrize(
    ("error", "says"),
    [
        pytest.param(InputError("no", path="f.hlo", line=3, column=4), "f.hlo:3:4: fail: no", id="with-place"),
        pytest.param(InputError("no"), "fail: no", id="without-place"),
        pytest.param(CommlensError("no"), "<text>: fail: no", id="without-module"),
    ],
)
def test_an_error_names_the_pass(error: CommlensError, says: str) -> None:
    """Whatever a pass refuses, one reads which pass it was, and the place stays."""
    with pytest.raises(InputError) as caught:
        Pipeline((Count(0), Fail(error))).run(load(TEXT))
    assert str(caught.value) == says


def test_an_unforeseen_error_is_left_as_it_is() -> None:
    """A fault of the program stays what it is; a note says in which pass it came up."""
    with pytest.raises(ZeroDivisionError) as caught:
        Pipeline((Fail(ZeroDivisionError()),)).run(load(TEXT))
    assert caught.value.__notes__ == ["in the pass fail on <text>"]


# --- verification ---------------------------------------------------------------------------------------------------


def replaced(old: str, new: str) -> Module:
    """Return the module with a part of its text replaced."""
    assert old in TEXT
    return load(TEXT.replace(old, new))


BROKEN: dict[str, tuple[Callable[[], Module], str]] = {
    "repeated-name": (lambda: replaced("  n = f32[8] negate(p)\n", "  n = f32[8] negate(p)\n  n = f32[8] abs(p)\n"), "computation e has two instructions named n"),
    "undefined-operand": (lambda: replaced("negate(p)", "negate(q)"), "n: expected all that it needs to be defined before it in its computation, found q undefined"),
    "undefined-predecessor": (lambda: replaced("{p}", "{q}"), "t: expected all that it needs to be defined before it in its computation, found q undefined"),
    "operand-behind": (lambda: replaced("negate(p)", "negate(r)"), "n: expected all that it needs to be defined before it in its computation, found r behind it"),
    "operand-itself": (lambda: replaced("negate(p)", "negate(n)"), "n: expected all that it needs to be defined before it in its computation, found itself"),
    "predecessor-behind": (lambda: replaced("negate(p)", "negate(p), control-predecessors={t}"), "n: expected all that it needs to be defined before it in its computation, found t behind it"),
    "unread": (lambda: replaced("{{0,1},{2,3}}", "{{0,1},{2,3}"), "r cannot be read: "),
    "groups": (lambda: replaced("{{0,1},{2,3}}", "{{0,1},{2,2}}"), "r: expected every id once"),
    "flags": (lambda: replaced("channel_id=1, ", ""), "r: Invalid combination of has_channel_id and use_global"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_a_pass_breaks_is_noticed(name: str) -> None:
    """The error names the pass and the fault; without verification nothing is looked at."""
    broken, says = BROKEN[name]
    with pytest.raises(InputError, match=r"^<text>(:\d+:\d+)?: replace broke the module: ") as caught:
        Pipeline((Replace(broken()),), verify=True).run(load(TEXT))
    assert says in str(caught.value)
    assert Pipeline((Replace(broken()),)).run(load(TEXT))[0].modified


@pytest.mark.parametrize("name", BROKEN)
def test_a_pass_is_not_to_blame_for_what_was_wrong_before(name: str) -> None:
    """Only new faults count."""
    broken = BROKEN[name][0]
    assert new_faults(broken(), broken()) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("channel_id=1", "channel_id=7", id="channel"),
        pytest.param("{{0,1},{2,3}}", "{{0,2},{1,3}}", id="other-groups"),
        pytest.param("r = f32[8] all-reduce(n)", "r = f32[8] custom-call(n)", id="a-collective-less"),
        pytest.param("  n = f32[8] negate(p)\n", "  n = f32[8] negate(p)\n  n2 = f32[8] abs(n)\n", id="one-more"),
        pytest.param("f32[8] add(n, r), control-predecessors={p}", "f32[8] negate(p)", id="other-root"),
    ],
)
def test_other_changes_are_let_through(old: str, new: str) -> None:
    """What is different is not what is broken."""
    assert new_faults(load(TEXT), replaced(old, new)) == []


def test_a_new_instruction_may_take_over_groups_that_were_wrong() -> None:
    """What was wrong with one collective may be wrong with its successor of another name, but not with others."""
    wrong = TEXT.replace("{{0,1},{2,3}}", "{{0,1},{2,2}}")
    renamed = wrong.replace("  r = ", "  s = ").replace("add(n, r)", "add(n, s)")
    assert new_faults(load(wrong), load(renamed)) == []
    copied = "  s = f32[8] all-reduce(n), replica_groups={{0,1},{2,3}}, to_apply=sum\n  ROOT t"
    spread = wrong.replace("  ROOT t", copied)
    [fault, *_] = new_faults(load(spread), load(spread.replace("{{0,1},{2,3}}", "{{0,1},{2,2}}")))
    assert fault.sentence.startswith("s: expected every id once")


def test_several_faults_are_counted() -> None:
    """One line names the first and says how many more there are."""
    broken = replaced("negate(p)", "negate(q), control-predecessors={t}")
    with pytest.raises(InputError, match=r"n: expected all that it needs .*, found q undefined \(1 more\)$"):
        Pipeline((Replace(broken),), verify=True).run(load(TEXT))


def twins(change: Callable[[schema.HloModuleProto], None]) -> tuple[Module, Module]:
    """Return a proto module, and the same with a change."""
    message = module_of(reducer(), entry(all_reduce(), instruction("negate", 3, [2])))
    before = load(message.SerializeToString())
    change(message)
    return before, load(message.SerializeToString())


def repeat_id(message: schema.HloModuleProto) -> None:
    """Give two instructions one id."""
    message.computations[1].instructions[2].id = message.computations[1].instructions[1].id


def lose_operand(message: schema.HloModuleProto) -> None:
    """Let an instruction use what is not there."""
    message.computations[1].instructions[2].operand_ids[:] = [99]


def repeat_device(message: schema.HloModuleProto) -> None:
    """Let a device stand twice in the groups."""
    message.computations[1].instructions[1].collective_device_list.CopyFrom(device_list([0, 0]))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param(repeat_id, "computation main has two instructions with the id", id="id"),
        pytest.param(
            lose_operand,
            "x3: expected all that it needs to be defined before it in its computation, found id 99 undefined",
            id="operand",
        ),
        pytest.param(repeat_device, "x2: expected every id once", id="groups"),
    ],
)
def test_protos_are_verified_as_well(change: Callable[[schema.HloModuleProto], None], says: str) -> None:
    """Ids must differ and operands exist; the list must have them in order."""
    before, after = twins(change)
    assert any(says in fault.sentence for fault in new_faults(before, after))
    assert new_faults(before, before) == []
    assert new_faults(after, after) == []


@pytest.mark.parametrize(
    ("source", "says"),
    [
        pytest.param(b"", "its source cannot be read again: <bytes>: expected HLO text", id="unreadable"),
        pytest.param(
            TEXT.replace("negate", "abs").encode(), "its source does not read back as the same module", id="another"
        ),
        pytest.param(
            TEXT.replace("HloModule m", "HloModule k").encode(), "does not read back as the same", id="another-name"
        ),
    ],
)
def test_the_source_must_read_back(source: bytes, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module and what it writes must not differ."""
    module = load(TEXT)
    monkeypatch.setattr(type(module), "to_bytes", lambda _: source)
    [fault] = new_faults(module, module)
    assert says in fault.sentence


def test_modules_of_one_file_are_verified_alike() -> None:
    """A module that is one of several in its file reads back too."""
    from commlens.hlo import load_all

    for module in load_all(TEXT + TEXT.replace("HloModule m", "HloModule k")):
        assert new_faults(module, module) == []
        assert Pipeline((Count(),), verify=True).run(module)[0].modified
