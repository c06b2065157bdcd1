"""Protos that say one thing twice: ids, names, channels, modules."""

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
from commlens.neuron import NeuronAllReduceCombiner, NeuronCollectiveStreamIdInjector
from proto_forms import FORMS, edited, in_form
from proto_modules import FAR, all_reduce, entry, instruction, module, module_of, reducer, tagged

if TYPE_CHECKING:
    from collections.abc import Mapping

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


# --- names ----------------------------------------------------------------------------------------------------------


def with_names(names: Mapping[str, str], **computations: str) -> schema.HloModuleProto:
    """Return a module with other names: all-reduces x2 to x4 in main, x5 in its twin, x11 to x13 in add and its twin."""
    first, second = reducer(), entry(all_reduce(2), all_reduce(3), all_reduce(4))
    twin = entry(all_reduce(5))
    twin.name, twin.id, twin.instructions[0].name = b"twin", 9, b"x6"
    made = module_of(first, second, twin)
    for computation in made.computations:
        for each in computation.instructions:
            each.name = names.get(each.name.decode(), each.name.decode()).encode()
        computation.name = computations.get(computation.name.decode(), computation.name.decode()).encode()
    return made


def edits_of(*names: Instruction) -> list[list[Edit]]:
    """Return an edit of each kind for each of some collectives, and what makes one of them all."""
    return [
        *([edit] for each in names for edit in (SetChannelId(each, 5), BecomeCustomCall(each, "T", "{}"))),
        *([SetFrontendAttribute(each, "a", "1")] for each in names),
    ]


@pytest.mark.parametrize("form", ["binary", "text"])
@pytest.mark.parametrize(
    ("names", "computations", "which", "says"),
    [
        ({"x3": "x2"}, {}, ["x2", "x2"], "each instruction of the module to have a name of its own, found x2 in main twice"),
        ({"x3": "x2", "x4": "x2"}, {}, ["x2"], "name of its own, found x2 in main twice$"),
        ({"x11": "x2"}, {}, ["x2"], "name of its own, found x2 in main and in add$"),
        ({"x6": "x2"}, {}, ["x2"], "name of its own, found x2 in main and in twin$"),
        ({"x5": "n" * 128, "x2": "n" * 128}, {}, ["n" * 128], "name of its own, found n+ in (main|twin) and in (twin|main)$"),
        ({}, {"twin": "main"}, ["x2", "x5"], "each computation to have a name of its own, found 2 of the name main, one of them with x"),
        ({}, {"add": "twin"}, ["x5"], "found 2 of the name twin, one of them with x5 = all-reduce$"),
    ],
    ids=["beside", "thrice", "elsewhere", "twin", "long", "entries", "computations"],
)  # fmt: skip
def test_what_shares_its_name_is_not_edited(
    names: dict[str, str], computations: dict[str, str], which: list[str], says: str, form: str
) -> None:
    """XLA refuses such a module, whichever computations it concerns; all others are edited."""
    loaded = load(in_form(with_names(names, **computations), form))
    everything = [each for computation in loaded.computations for each in computation.instructions]
    reduces = [each for each in everything if each.opcode == "all-reduce"]
    concerned = [each for each in reduces if each.name in which]
    assert len(concerned) >= len(which)
    for edits in edits_of(*concerned):
        with pytest.raises(EditError, match=f"^expected .*{says}"):
            loaded.edited(edits)
    free = [each for each in reduces if each not in concerned and each.computation.name not in computations.values()]
    for edits in edits_of(*free):
        assert edited(loaded, *edits).to_bytes() != loaded.to_bytes()


def test_members_of_a_combination_have_names_of_their_own() -> None:
    """One that shares its name is in no set; the others are combined, and a pass goes on without it."""
    loaded = load(with_names({"x6": "x2"}).SerializeToString())
    x, y, z = (loaded.instruction(name) for name in ("x2", "x3", "x4"))
    with pytest.raises(EditError, match="found x2 in main and in twin"):
        loaded.edited([Combine((x, y), "both")])
    assert edited(loaded, Combine((y, z), "both")).instruction("both").opcode == "all-reduce"
    result = NeuronCollectiveStreamIdInjector().run(loaded, keep_going=True)
    assert [left.instruction for left in result.left_alone] == ["x2"]
    assert result.modified


@pytest.mark.parametrize("names", [{"x2": "main"}, {"x2": "twin"}, {"x2": "x02"}, {"x2": "X3"}, {"x2": "", "x3": ""}])
@pytest.mark.parametrize("nameless", [{}, {"main": "", "twin": ""}], ids=["named", "nameless"])
def test_other_names_that_are_alike(names: dict[str, str], nameless: dict[str, str]) -> None:
    """An instruction may have the name of a computation; what has no name shares it with nothing."""
    loaded = load(with_names(names, **nameless).SerializeToString())
    made = [SetChannelId(each, 5 + number) for number, each in enumerate(loaded.computations[1].instructions)]
    assert [each.channel_id for each in edited(loaded, *made).computations[1].instructions] == [5, 6, 7, 8]


def test_new_names_are_new_to_all_computations() -> None:
    """Also beside names that are no others' alone: an instruction that is made has one that the module lacks."""
    taken = {"x11": "all-reduce.7", "x12": "all-reduce.7", "x5": "all-reduce.9"}
    loaded = load(with_names(taken).SerializeToString())
    x, y = loaded.instruction("x2"), loaded.instruction("x3")
    for name in ("all-reduce.7", "all-reduce.9"):
        with pytest.raises(
            EditError, match=f"a name for the new instruction that the module does not have, found {name}"
        ):
            loaded.edited([Combine((x, y), name)])
    assert next(loaded.fresh_names("all-reduce")) == "all-reduce.10"
    result = NeuronAllReduceCombiner().run(loaded)
    assert result.module.instruction("all-reduce.10").operand_names == ("x1", "x1", "x1")


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
    many = [instruction("all-to-all", number, [1]) for number in range(20, 318)]
    loaded = load(module(*many).SerializeToString())
    made = loaded.edited([SetChannelId(loaded.instruction(f"x{number}"), number) for number in range(20, 318)])
    assert [each.channel_id for each in made.computations[1].instructions[1:]] == list(range(20, 318))
