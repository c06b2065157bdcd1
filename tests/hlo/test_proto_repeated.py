"""Protos that say one thing twice: ids, channels, modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from google.protobuf import text_format

from commlens.errors import InputError
from commlens.hlo import (
    BecomeCustomCall,
    Combine,
    EditError,
    Pipeline,
    SetChannelId,
    SetFrontendAttribute,
    discover,
    load,
    load_all,
)
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from commlens.hlo.proto.wire import BYTES
from commlens.neuron import NeuronCollectiveStreamIdInjector
from proto_forms import FORMS, edited, in_form
from proto_modules import FAR, all_reduce, instruction, module, tagged

if TYPE_CHECKING:
    from commlens.hlo import Edit, Instruction, Module


def with_one_id() -> schema.HloModuleProto:
    """Return a module in which x2 and x3 have one id, and x4 one that stands in the bytes of x5's name as well."""
    made = module(all_reduce(2), all_reduce(3), all_reduce(4), all_reduce(5))
    _, second, third, fourth, fifth = made.computations[1].instructions
    third.id = second.id
    fifth.name = b"x5" + fourth.SerializeToString()[-40:]
    return made


def of_name(loaded: Module, name: str) -> Instruction:
    """Return an instruction that may not be the first of its name."""
    return next(each for each in loaded.computations[1].instructions if each.name == name)


@pytest.mark.parametrize("form", FORMS)
def test_an_instruction_whose_id_another_one_has_is_not_edited(form: str) -> None:
    """Which of the two an operand means, nobody can say; both keep their rows, and all others are edited."""
    loaded = load(
        in_form(module(all_reduce(2), all_reduce(3), all_reduce(4)), form).replace(b"%d" % (FAR + 3), b"%d" % (FAR + 2))
    )
    if form == "binary":
        loaded = load(with_one_id().SerializeToString())
    x, y = of_name(loaded, "x2"), of_name(loaded, "x3")
    assert [site.name for site in discover(loaded).sites][:2] == ["x2", "x3"]
    refused: list[list[Edit]] = [
        [SetChannelId(x, 5)],
        [SetFrontendAttribute(y, "a", "1")],
        [BecomeCustomCall(x, "T", "{}")],
        [Combine((x, y), "both")],
    ]
    for edits in refused:
        with pytest.raises(
            EditError,
            match=f"^expected each instruction of main to have an id of its own, found {FAR + 2} as the id of",
        ):
            loaded.edited(edits)
    assert edited(loaded, SetChannelId(loaded.instruction("x4"), 5)).instruction("x4").channel_id == 5
    result = NeuronCollectiveStreamIdInjector().run(loaded, keep_going=True)
    assert [left.instruction for left in result.left_alone] == ["x2", "x3"]
    assert dict(of_name(result.module, "x4").frontend_attributes) == {"stream_id": "0"}


def test_a_pipeline_that_verifies_says_so_before() -> None:
    """No pass runs on it."""
    with pytest.raises(
        InputError, match="the module cannot be verified: computation main has two instructions with the id"
    ):
        Pipeline((NeuronCollectiveStreamIdInjector(),), verify=True).run(load(with_one_id().SerializeToString()))


def test_names_may_be_given_twice() -> None:
    """XLA makes them differ when it reads a proto: ids tell instructions apart."""
    made = module(all_reduce(2), all_reduce(3))
    made.computations[1].instructions[2].name = b"x2"
    result = Pipeline((NeuronCollectiveStreamIdInjector(),), verify=True).run(load(made.SerializeToString()))
    assert result[0].modified


@pytest.mark.parametrize("old", [3, 4])
@pytest.mark.parametrize("opcode", ["all-reduce", "reduce-scatter", "all-reduce-start", "cross-replica-sum"])
def test_a_channel_in_both_fields_makes_a_collective_unread(opcode: str, old: int) -> None:
    """XLA refuses them, equal or not; no edit is made of it either."""
    message = all_reduce()
    message.opcode = opcode.encode()
    message.dimensions.append(0)
    message.channel_id, message.all_reduce_id = 3, old
    loaded = load(module(message).SerializeToString())
    found = discover(loaded)
    assert found.sites == ()
    assert found.unread[0].why == f"expected channel_id or all_reduce_id, found 3 and {old}"
    for edit in (SetChannelId(loaded.instruction("x2"), 5), SetFrontendAttribute(loaded.instruction("x2"), "a", "1")):
        with pytest.raises(EditError, match=f"x2 = {opcode} cannot be edited: expected channel_id or all_reduce_id"):
            loaded.edited([edit])


def test_a_module_in_each_of_two_occurrences_is_refused() -> None:
    """Protobuf would make one module of two halves; in the text form it takes no such thing."""
    whole = module(all_reduce()).SerializeToString()
    once = tagged(1, BYTES, whole)
    assert load(once).instruction("x2").opcode == "all-reduce"
    for twice in (once * 2, tagged(1, BYTES, once * 2), tagged(1, BYTES, once) * 2):
        with pytest.raises(
            InputError, match=r"expected hlo(_module)? \(field 1\) once in its message, found it 2 times$"
        ):
            load(twice)
    text = text_format.MessageToString(module(all_reduce()))
    for around in (
        "hlo_module {{ {0} }}\nhlo_module {{ {0} }}\n",
        "hlo {{ hlo_module {{ {0} }} }}\nhlo {{ hlo_module {{ {0} }} }}\n",
    ):
        with pytest.raises(
            InputError, match=r"^<text>:\d+:\d+: expected hlo(_module)? once in its message, found it again$"
        ):
            load(around.format(text))
    beside = f"first {{ hlo_module {{ {text} }} }}\nsecond {{ hlo_module {{ {text} }} }}\n".encode()
    assert len(load_all(beside)) == 2


def test_instructions_of_a_large_proto_are_told_apart() -> None:
    """However their ids are written, no two are taken for one."""
    many = [instruction("all-to-all", number, [1]) for number in range(2, 300)]
    loaded = load(module(*many).SerializeToString())
    made = loaded.edited([SetChannelId(loaded.instruction(f"x{number}"), number) for number in range(2, 300)])
    assert [each.channel_id for each in made.computations[1].instructions[1:]] == list(range(2, 300))
