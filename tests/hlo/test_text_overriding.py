"""Asynchronous operations whose frontend attributes another instruction states: what XLA makes of them decides."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from commlens.hlo import EditError, SetFrontendAttribute, communication_in_list_order, discover, load
from commlens.neuron import CollectiveStreamIdChecker, NeuronCollectiveStreamIdInjector

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commlens.hlo import Module

HEAD = """HloModule m, num_partitions=4

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

"""
ATTRIBUTES = (
    "channel_id=3, replica_groups=[1,4]<=[4], use_global_device_ids=true, dimensions={0}, to_apply=add"  # of all forms
)
WRAPPED = f"""w {{
  q = f32[16] parameter(0)
  n = f32[16] negate(q), frontend_attributes={{n="n"}}
  ROOT rs = f32[4] reduce-scatter(n), {ATTRIBUTES}WRAPPED
}}

ENTRY e {{
  p = f32[16] parameter(0)
  go = ((f32[16]), f32[4], u32[]) async-start(p), calls=wSTART
  mid = ((f32[16]), f32[4], u32[]) async-update(go)UPDATE
  ROOT end = f32[4] async-done(mid)DONE
}}
"""
SHORT = f"""ENTRY e {{
  p = f32[16] parameter(0)
  rs = ((f32[16]), f32[4], u32[]) reduce-scatter-start(p), {ATTRIBUTES}START
  mid = ((f32[16]), f32[4], u32[]) reduce-scatter-update(rs)UPDATE
  ROOT end = f32[4] reduce-scatter-done(mid)DONE
}}
"""
XLA = """
import base64, json, sys
from jaxlib import _hlo

modules = map(_hlo.hlo_module_from_text, json.load(sys.stdin))
print(json.dumps([base64.b64encode(each.as_serialized_hlo_module_proto()).decode() for each in modules]))
"""
PLACES = ("WRAPPED", "START", "UPDATE", "DONE")


def text_of(form: str, maps: Sequence[str]) -> str:
    """Return a module, given the frontend attributes at each place; empty for none."""
    for place, written in zip(PLACES, maps, strict=True):
        form = form.replace(place, written and f", frontend_attributes={written}", 1)
    return HEAD + form


def effective(module: Module) -> dict[str, str]:
    """Return the frontend attributes that passes see of the only collective."""
    found = [each for _, items in communication_in_list_order(module) for each in items if each.site is not None]
    (listed,) = found
    assert listed.site is not None
    return dict(listed.site.signature.frontend_attributes)


MAPS: list[tuple[str, str, str, str]] = [
    ("", "", "", ""),
    ('{a="1"}', "", "", ""),
    ("", '{b="2"}', "", ""),
    ('{a="1"}', '{b="2"}', "", ""),
    ('{a="1",stream_id="0"}', '{b="2"}', "", ""),
    ('{stream_id="0"}', "{}", "", ""),
    ('{stream_id="1"}', '{stream_id="0",b="2"}', "", ""),
    ('{a="1"}', "", "", '{d="4"}'),
    ('{a="1"}', '{b="2"}', '{c="3"}', ""),
    ('{a="1"}', '{b="2"}', '{c="3"}', '{d="4",stream_id="7"}'),
    ('{a="1"}', '{b="2"}', "", "{}"),
]
CASES = [(WRAPPED, maps) for maps in MAPS] + [(SHORT, ("", *maps[1:])) for maps in MAPS if not maps[0] or any(maps[1:])]


def stamped(text: str) -> str:
    """Return a text as the injector leaves it."""
    return NeuronCollectiveStreamIdInjector().run(load(text)).module.to_bytes().decode()


@pytest.fixture(scope="module")
def protos() -> Mapping[str, Module]:
    """Return what XLA makes of the texts of all cases, and of what the injector makes of those."""
    texts = [each for form, maps in CASES for each in (text_of(form, maps), stamped(text_of(form, maps)))]
    done = subprocess.run(
        [sys.executable, "-c", XLA], input=json.dumps(texts), capture_output=True, text=True, check=True
    )
    return dict(zip(texts, (load(base64.b64decode(each)) for each in json.loads(done.stdout)), strict=True))


@pytest.fixture(scope="module")
def in_xla(protos: Mapping[str, Module]) -> Mapping[str, dict[str, str]]:
    """Return the frontend attributes that the collective of each has there."""
    collectives = {text: next(module.instructions_of({"reduce-scatter"})) for text, module in protos.items()}
    return {text: dict(each.frontend_attributes) for text, each in collectives.items()}


@pytest.mark.parametrize(("form", "maps"), CASES)
def test_passes_see_what_xla_makes_of_it(form: str, maps: Sequence[str], in_xla: Mapping[str, dict[str, str]]) -> None:
    """The last instruction that states frontend attributes, be they none, puts them in the place of the operation's."""
    text = text_of(form, maps)
    assert effective(load(text)) == in_xla[text]
    assert CollectiveStreamIdChecker().run(load(text)).found == ("stream_id" in in_xla[text])


@pytest.mark.parametrize(("form", "maps"), CASES)
def test_stamps_survive_the_reading(form: str, maps: Sequence[str], in_xla: Mapping[str, dict[str, str]]) -> None:
    """What the injector stamps is what XLA sees; nothing else changes, and a second run has nothing to do."""
    text = text_of(form, maps)
    written = stamped(text)
    assert in_xla[written] == {**in_xla[text], "stream_id": "0"}
    assert (written != text) == (in_xla[text].get("stream_id") != "0")
    assert stamped(written) == written
    assert CollectiveStreamIdChecker().run(load(written)).found


@pytest.mark.parametrize("form", [WRAPPED, SHORT])
def test_without_others_only_the_operation_changes(form: str) -> None:
    """Where nobody else states frontend attributes, nobody else gets any."""
    text = text_of(form, ("", "", "", ""))
    before = text.split("\n")
    after = NeuronCollectiveStreamIdInjector().run(load(text)).module.to_bytes().decode().split("\n")
    changed = [line for line, old in zip(after, before, strict=True) if line != old]
    assert len(changed) == 1
    assert changed[0].lstrip().removeprefix("ROOT ").startswith("rs = ")


def test_rows_say_both() -> None:
    """A row has the start's attributes, and those of the wrapped operation for missing keys, whatever XLA drops."""
    module = load(text_of(WRAPPED, ('{a="1",b="1"}', '{b="2"}', "", "")))
    (site,) = discover(module).sites
    assert site.signature.frontend_attributes == {"a": "1", "b": "2"}
    assert module.instruction("rs").frontend_attributes == {"a": "1", "b": "1"}


def test_only_the_operation_itself_is_overridden() -> None:
    """Other instructions of the computation keep theirs, and starts with an opcode of their own wrap nothing."""
    module = load(text_of(WRAPPED, ("", '{b="2"}', "", "")))
    assert list(module.overridden_attributes) == [module.instruction("rs")]
    text = HEAD + (
        "ENTRY e {\n  p = f32[16] parameter(0)\n"
        '  go = (f32[16], f32[64]) all-gather-start(p), dimensions={0}, frontend_attributes={a="1"}\n'
        '  ROOT end = f32[64] all-gather-done(go), frontend_attributes={d="4"}\n}\n'
    )
    assert load(text).overridden_attributes == {}
    assert effective(load(text)) == {"a": "1"}


def test_protos_are_taken_as_they_are(protos: Mapping[str, Module]) -> None:
    """What a proto says of an operation is so, whatever the start, update and done say."""
    for text, module in protos.items():
        assert module.overridden_attributes == {}, text
        (site,) = (each.site for _, items in communication_in_list_order(module) for each in items if each.site)
        assert site.signature.frontend_attributes == site.instruction.frontend_attributes


def test_contradictions_are_refused() -> None:
    """The operation and the start whose attributes it gets cannot become different."""
    module = load(text_of(WRAPPED, ("", '{b="2"}', "", "")))
    rs, go = module.instruction("rs"), module.instruction("go")
    with pytest.raises(EditError, match="^expected the value of rs for the frontend attribute k of go") as caught:
        module.edited([SetFrontendAttribute(rs, "k", "1"), SetFrontendAttribute(go, "k", "2")])
    assert (caught.value.line, caught.value.column) == (17, 3)
    both = module.edited([SetFrontendAttribute(rs, "k", "1"), SetFrontendAttribute(go, "k", "1")])
    assert both.to_bytes().count(b'k="1"') == 2


def test_what_cannot_be_read_is_left_out() -> None:
    """A done of something unknown, and a start without its computation, override nothing."""
    text = text_of(WRAPPED, ("", "", "", '{d="4"}')).replace("async-update(go)", "async-update(gone)")
    assert load(text).overridden_attributes == {}
    lost = text_of(WRAPPED, ("", '{b="2"}', "", "")).replace("calls=w", "calls=lost")
    assert load(lost).overridden_attributes == {}
