"""The passes and what they cannot understand: one rule, and an account of what was really done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlens import load
from commlens.errors import InputError
from commlens.hlo import SetChannelId
from commlens.neuron import (
    CollectiveStreamIdChecker,
    ConvertCollectivesToCustomCall,
    NeuronAllGatherCombiner,
    NeuronCollectiveStreamIdInjector,
    NeuronUniqueChannelIdEnforcer,
)
from neuron_modules import stats_of
from proto_modules import device_list, entry, instruction, module_of, shape

if TYPE_CHECKING:
    from commlens.hlo import Module, Pass, PassResult

CHECK, STAMP = CollectiveStreamIdChecker(), NeuronCollectiveStreamIdInjector()
NUMBER, SAFE = NeuronUniqueChannelIdEnforcer(), NeuronUniqueChannelIdEnforcer(safe=True)
CONVERT, COMBINE = ConvertCollectivesToCustomCall(), NeuronAllGatherCombiner()

GOOD = "all-gather(p), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, dimensions={0}"


def module_with(*bodies: str) -> Module:
    """Return a text with the instructions ``x0``, ``x1`` ... on its lines 5, 6 ..."""
    lines = [f"  x{number} = {body}\n" for number, body in enumerate(bodies)]
    return load("HloModule m, num_partitions=4\n\nENTRY e {\n  p = f32[8] parameter(0)\n" + "".join(lines) + "}\n")


def left_of(result: PassResult) -> list[str]:
    """Return the names of what was left alone."""
    assert [each.as_json() for each in result.left_alone] == stats_of(result)["left_alone"]
    return [each.subject for each in result.left_alone]


# --- the rule about collectives that cannot be read in full ---------------------------------------------------------

UNREAD = {
    "dtype": f"f99[16] {GOOD}",
    "dimension": f"f32[16] {GOOD}".replace(", dimensions={0}", ""),
    "groups": f"f32[16] {GOOD}".replace("{{0,1},{2,3}}", "[2,2]<=[5]"),
    "channel": f"f32[16] {GOOD}".replace("channel_id=1", "channel_id=x"),
    "operand": f"f32[16] {GOOD}".replace("(p)", "(q)"),
    "map": f"f32[16] {GOOD}, frontend_attributes={{a=}}",
}


@pytest.mark.parametrize("one", [CHECK, STAMP, NUMBER, SAFE, CONVERT], ids=str)
@pytest.mark.parametrize("name", [name for name in UNREAD if name != "map"])
def test_whatever_cannot_be_read_of_a_collective_refuses_it(name: str, one: Pass) -> None:
    """Also where the pass does not need that part; with keep_going it alone is left as it was."""
    text = f"f32[16] {GOOD}"
    module = module_with(text, UNREAD[name], text)
    with pytest.raises(InputError, match=r"^<text>:6:\d+: x1: "):
        one.run(module)
    result = one.run(module, keep_going=True)
    assert left_of(result) == ["x1"]
    assert f"  x1 = {UNREAD[name]}\n" in result.module.to_bytes().decode()


@pytest.mark.parametrize("keep_going", [False, True])
@pytest.mark.parametrize("name", [name for name in UNREAD if name != "map"])
def test_a_combiner_knows_the_place_as_well(name: str, keep_going: bool) -> None:
    """Line and column are those that all other passes give: of the part that cannot be read."""
    module = module_with(f"f32[16] {GOOD}", UNREAD[name], f"f32[16] {GOOD}")
    if keep_going:
        found, other = (one.run(module, keep_going=True).left_alone[0] for one in (COMBINE, STAMP))
        assert (found.line, found.column, found.why) == (other.line, other.column, other.why)
        return
    places: list[tuple[int | None, int | None]] = []
    for one in (COMBINE, STAMP):
        with pytest.raises(InputError) as caught:
            one.run(module)
        places.append((caught.value.line, caught.value.column))
    assert places[0] == places[1]


@pytest.mark.parametrize(
    ("one", "body"),
    [
        pytest.param(STAMP, "f32[8] collective-permute(p), channel_id=1", id="stamp-permute"),
        pytest.param(CHECK, "f32[8] collective-permute(p), channel_id=1", id="check-permute"),
        pytest.param(STAMP, "f99[8] send(p), channel_id=1", id="stamp-send"),
        pytest.param(NUMBER, "f32[8] custom-call(p), custom_call_target=\"AwsNeuronAllReduceAdd_f32\"", id="number-custom-call"),
        pytest.param(STAMP, "f32[8] custom-call(p), custom_call_target=\"AwsNeuronAllReduceAdd_f32\"", id="stamp-custom-call"),
        pytest.param(CHECK, "f32[8] async-start(p), calls=none", id="check-async-start"),
        pytest.param(CONVERT, f"f99[16] {GOOD}".replace("all-gather", "all-to-all"), id="convert-all-to-all"),
        pytest.param(CONVERT, f"f99[16] {GOOD}".replace("all-gather", "all-gather-start"), id="convert-start"),
        pytest.param(CONVERT, f"f99[16] {GOOD}".replace("all-gather(p)", "reduce-scatter-start(p)"), id="convert-short-start"),
    ],
)  # fmt: skip
def test_what_a_pass_never_looks_at_does_not_stop_it(one: Pass, body: str) -> None:
    """However much of it cannot be read."""
    module = module_with(f"f32[16] {GOOD}", body, f"f32[16] {GOOD}")
    result = one.run(module)
    assert left_of(result) == []
    assert result.modified is (one != CHECK)
    assert f"  x1 = {body}\n" in result.module.to_bytes().decode()


def test_other_computations_do_not_stop_the_conversion() -> None:
    """It looks at the entry only."""
    text = module_with(f"f32[16] {GOOD}").to_bytes().decode()
    inner = f"inner {{\n  q = f32[8] parameter(0)\n  y = f99[16] {GOOD}\n}}\n\n".replace("(p)", "(q)")
    result = CONVERT.run(load(text.replace("ENTRY", inner + "ENTRY")))
    assert (left_of(result), result.modified) == ([], True)


@pytest.mark.parametrize("one", [STAMP, NUMBER, CONVERT], ids=str)
def test_bytes_that_are_no_instruction_have_a_place(one: Pass) -> None:
    """Their computation, in a proto; with keep_going the others change, however many there are."""
    collectives = [instruction("all-gather", number, [1]) for number in (2, 3, 4)]
    for each in collectives:
        each.shape.CopyFrom(shape(16))
        each.collective_device_list.CopyFrom(device_list([0, 1]))
        each.dimensions[:] = [0]
        each.channel_id = 1
    whole = module_of(entry(*collectives)).SerializeToString()
    broken = collectives[1].SerializeToString()
    damaged = load(whole.replace(broken, broken[:-1] + b"\xff"))
    with pytest.raises(InputError, match="^<bytes>: computation main: "):
        one.run(damaged)
    result = one.run(damaged, keep_going=True)
    assert result.modified
    assert {each.where for each in result.left_alone} == {"computation main"}


# --- what is told is what was done ----------------------------------------------------------------------------------

ODD_MAP = f'f32[16] {GOOD}, frontend_attributes={{"a"="1"}}'


def test_figures_of_the_injector_leave_out_what_could_not_be_stamped() -> None:
    """It shows while editing only: the map cannot be added to."""
    result = STAMP.run(module_with(f"f32[16] {GOOD}", ODD_MAP, f"f32[16] {GOOD}"), keep_going=True)
    stats = stats_of(result)
    assert left_of(result) == ["x1"]
    assert (stats["stamped"], stats["streams"], [each["count"] for each in stats["by_groups"]]) == (
        *(2, {"0": 2, "1": 0}, [2]),
    )
    assert result.warnings[0].count("all 2 get") == 1
    assert result.module.to_bytes().count(b"stream_id") == 2
    assert "stamped 2" in result.facts


PLAIN = "f32[8] all-to-all(p), channel_id=1, replica_groups={{0,1},{2,3}}, dimensions={0}"
NESTED = PLAIN.replace("(p)", "(f32[8] all-to-all(p))")


def numbered(*bodies: str, one: Pass = NUMBER) -> PassResult:
    """Renumber the collectives of a module; every edit that is told was made."""
    result = one.run(module_with(*bodies), keep_going=True)
    for edit in result.edits:
        assert isinstance(edit, SetChannelId)
        assert result.module.instruction(edit.instruction.name).channel_id == edit.channel_id
    return result


def test_figures_of_the_enforcer_leave_out_what_could_not_be_renumbered() -> None:
    """It shows while editing only: an operand has no attributes. The others have the ids they would have had."""
    result = numbered(NESTED, NESTED, PLAIN)
    stats = stats_of(result)
    assert len(left_of(result)) == 1
    assert [(each["instruction"], each["new"]) for each in stats["renumbered"]] == [("x1", 3), ("x2", 4)]
    assert "renumbered 2" in result.facts


def test_an_id_that_is_still_shared_with_what_was_left_alone_is_told() -> None:
    """All of the opcodes are looked at, so only that can be the reason."""
    result = numbered(PLAIN, UNREAD["dtype"], PLAIN)
    assert [(each["instruction"], each["new"]) for each in stats_of(result)["renumbered"]] == [("x2", 3)]
    [shared] = stats_of(result)["still_shared"]
    assert (shared["channel_id"], [each["instruction"] for each in shared["instructions"]]) == (1, ["x0", "x1"])
    [warning] = result.warnings
    assert warning.endswith("still have 1, because x1 (line 6) could not be given another one")


def test_nothing_renumbered_is_nothing_changed() -> None:
    """`changed` is about what was done."""
    result = numbered(PLAIN, UNREAD["dtype"])
    assert (result.changed, result.modified, left_of(result)) == (False, False, ["x1"])


FAMILY = (
    "f32[8] all-to-all(p), channel_id=1, replica_groups={{0,1},{2,3}}, dimensions={0}",
    "token[] after-all()",
    "(f32[8], u32[], token[]) send(p, x1), channel_id=1",
    "token[] send-done(x2), channel_id=1",
    "(f32[8], u32[], token[]) recv(x1), channel_id=1",
    "(f32[8], token[]) recv-done(x4), channel_id=1",
)


def test_safe_leaves_a_family_alone_with_its_unread_member() -> None:
    """None of it moves, and each is named once."""
    assert [each.name for each in SAFE.run(module_with(*FAMILY)).module.computations[0].instructions][3:5] == [
        "x2",
        "x3",
    ]
    bodies = [body.replace("(f32[8], u32[], token[]) recv", "(f99[8], u32[], token[]) recv") for body in FAMILY]
    other = FAMILY[0]
    result = numbered(*bodies, other, one=SAFE)
    assert left_of(result) == ["x4", "x2", "x3", "x5"]
    assert [(each["instruction"], each["new"]) for each in stats_of(result)["renumbered"]] == [("x6", 3)]
    assert not any("torn apart" in each for each in result.warnings)


def test_the_conversion_lists_a_collective_once() -> None:
    """What is left alone because it cannot be written out is not also one of another opcode."""
    huge = f"f32[16] {GOOD}".replace("{{0,1},{2,3}}", "[10000,10000]<=[100000000]")
    result = CONVERT.run(module_with(f"f32[16] {GOOD}", huge), keep_going=True)
    stats = stats_of(result)
    assert left_of(result) == ["x1"]
    assert ([each["instruction"] for each in stats["converted"]], stats["untouched"]) == (["x0"], [])


@pytest.mark.parametrize("keep_going", [False, True])
def test_a_line_beside_the_collectives_only_costs_the_order(keep_going: bool) -> None:
    """Which collective is converted first decides nothing: all are, nothing is left alone, and a warning says it."""
    module = module_with(f"f32[16] {GOOD}", "f32[8] negate p", f"f32[16] {GOOD}")
    result = CONVERT.run(module, keep_going=keep_going)
    assert left_of(result) == []
    assert [each["instruction"] for each in stats_of(result)["converted"]] == ["x0", "x2"]
    [warning] = result.warnings
    assert warning.startswith("the conversions are told in list order, for the post-order of computation e cannot be")


# --- sends and recvs ------------------------------------------------------------------------------------------------


def test_a_parted_done_form_is_what_xla_refuses() -> None:
    """The warning names it; where start and done move together, or nothing ends what moves, there is none to name."""
    torn = "torn apart"
    [warning] = [each for each in NUMBER.run(_family()).warnings if torn in each]
    assert "its text reader refuses a done form with another id than what it ends: rd (line 8)" in warning
    without = load(_family().to_bytes().decode().replace("  rd = (f32[8], token[]) recv-done(r), channel_id=1\n", ""))
    [warning] = [each for each in NUMBER.run(without).warnings if torn in each]
    assert "text reader" not in warning


def _family() -> Module:
    """Return a send, a recv and their done forms of one id."""
    return load(
        "HloModule m\n\nENTRY e {\n  p = (f32[8], token[]) parameter(0)\n"
        "  s = (f32[8], u32[], token[]) send(p), channel_id=1\n  sd = token[] send-done(s), channel_id=1\n"
        "  r = (f32[8], u32[], token[]) recv(p), channel_id=1\n"
        "  rd = (f32[8], token[]) recv-done(r), channel_id=1\n}\n"
    )
