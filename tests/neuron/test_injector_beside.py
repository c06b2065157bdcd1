"""Stream ids that a start, update or done states beside the operation: after the injector all say the same."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from commlens import load
from commlens.hlo import SetFrontendAttribute, communication_in_list_order, discover
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from neuron_modules import BACKENDS, stats_of
from stamping import INJECTOR

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commlens.hlo import Module

HEAD = """HloModule m

plus {
  u = f32[] parameter(0)
  v = f32[] parameter(1)
  ROOT w = f32[] add(u, v)
}

"""
LONG = """wrapped {
  q = f32[8]{0} parameter(0)
  ROOT rs = f32[4]{0} reduce-scatter(q), replica_groups={{0,1}}, dimensions={0}, to_apply=plusWRAPPED
}

ENTRY e {
  a = f32[8]{0} parameter(0)
  go = ((f32[8]{0}), f32[4]{0}, u32[]) async-start(a), calls=wrappedSTART
  mid = ((f32[8]{0}), f32[4]{0}, u32[]) async-update(go)UPDATE
  ROOT end = f32[4]{0} async-done(mid)DONE
}
"""
SHORT = """ENTRY e {
  a = f32[8]{0} parameter(0)
  go = ((f32[8]{0}), f32[4]{0}) reduce-scatter-start(a), replica_groups={{0,1}}, dimensions={0}, to_apply=plusSTART
  mid = ((f32[8]{0}), f32[4]{0}) reduce-scatter-update(go)UPDATE
  ROOT end = f32[4]{0} reduce-scatter-done(mid)DONE
}
"""
PLACES = ("WRAPPED", "START", "UPDATE", "DONE")
XLA = """
import base64, json, sys
from jaxlib import _hlo

modules = map(_hlo.hlo_module_from_text, json.load(sys.stdin))
print(json.dumps([base64.b64encode(each.as_serialized_hlo_module_proto()).decode() for each in modules]))
"""
SIX = '{stream_id="6"}'

MAPS: Mapping[str, tuple[str, tuple[str, str, str, str]]] = {
    "short-start": (SHORT, ("", SIX, "", "")),
    "short-start-and-done": (SHORT, ("", SIX, "", '{b="2"}')),
    "short-done": (SHORT, ("", "", "", SIX)),
    "short-all": (SHORT, ("", SIX, SIX, SIX)),
    "long-start": (LONG, ("", SIX, "", "")),
    "long-start-and-done": (LONG, ("", SIX, "", '{b="2"}')),
    "long-start-and-empty-done": (LONG, ("", SIX, "", "{}")),
    "long-all": (LONG, (SIX, SIX, '{stream_id="7"}', SIX)),
    "long-other-map": (LONG, (SIX, '{b="2"}', "", "")),
    "long-right-at-the-end": (LONG, (SIX, SIX, "", '{stream_id="0"}')),
    "long-none": (LONG, ("", "", "", "")),
}


def text_of(name: str) -> str:
    """Return a module as text."""
    form, maps = MAPS[name]
    for place, written in zip(PLACES, maps, strict=True):
        form = form.replace(place, written and f", frontend_attributes={written}", 1)
    return HEAD + form


def in_xla(texts: Sequence[str]) -> list[bytes]:
    """Return what XLA makes of texts."""
    done = subprocess.run(
        [sys.executable, "-c", XLA], input=json.dumps(texts), capture_output=True, text=True, check=True
    )
    return [base64.b64decode(each) for each in json.loads(done.stdout)]


@pytest.fixture(scope="module")
def modules() -> Mapping[tuple[str, str], Module]:
    """Return all modules as text and, of another make, as the proto that XLA makes of it."""
    texts = {name: text_of(name) for name in MAPS}
    protos = dict(zip(texts, in_xla(list(texts.values())), strict=True))
    return {(name, "text"): load(text) for name, text in texts.items()} | {
        (name, "proto"): load(protos[name]) for name in texts
    }


def row(module: Module) -> str | None:
    """Return the stream id of the only row of a report."""
    (site,) = discover(module).sites
    return site.signature.frontend_attributes.get("stream_id")


def seen_by_passes(module: Module) -> str | None:
    """Return the stream id of the only collective, as passes see it."""
    (site,) = (each.site for _, items in communication_in_list_order(module) for each in items if each.site)
    return site.signature.frontend_attributes.get("stream_id")


def stated(module: Module) -> dict[str, str]:
    """Return every stream id that stands in a module, by opcode."""
    return {
        each.opcode: each.frontend_attributes["stream_id"]
        for computation in module.computations
        for each in computation.instructions
        if "stream_id" in each.frontend_attributes
    }


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", MAPS)
def test_rows_have_the_new_stream_id(name: str, backend: str, modules: Mapping[tuple[str, str], Module]) -> None:
    """Whoever reads the module again finds one stream id in it, the new one; a second run has nothing to do."""
    result = INJECTOR.run(modules[name, backend])
    again = load(result.module.to_bytes())
    assert (row(again), seen_by_passes(again)) == ("0", "0")
    assert {*stated(again).values()} == {"0"} or name == "long-right-at-the-end"
    assert INJECTOR.run(again).module is again


def test_rows_had_the_old_one(modules: Mapping[tuple[str, str], Module]) -> None:
    """Otherwise there would have been nothing to show."""
    found = {key: row(module) for key, module in modules.items()}
    assert {key: value for key, value in found.items() if value != "6"} == {
        **{("long-none", backend): None for backend in BACKENDS},
        ("short-done", "text"): None,
        ("long-other-map", "proto"): None,  # XLA dropped what the operation said
    }


def test_xla_reads_the_new_stream_id(modules: Mapping[tuple[str, str], Module]) -> None:
    """Of the operation and of all that states one, for it is what the next pass of XLA sees."""
    stamped = [INJECTOR.run(modules[name, "text"]).module.to_bytes().decode() for name in MAPS]
    for name, proto in zip(MAPS, map(load, in_xla(stamped)), strict=True):
        assert (row(proto), seen_by_passes(proto)) == ("0", "0"), name


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_start_that_says_nothing_of_streams_is_left(backend: str, modules: Mapping[tuple[str, str], Module]) -> None:
    """In a proto, where each has its own; in a text its attributes become those of the operation."""
    module = modules["long-other-map", backend]
    result = INJECTOR.run(module)
    assert stated(result.module) == {"reduce-scatter": "0", **({"async-start": "0"} if backend == "text" else {})}
    expected = {"b": "2", "stream_id": "0"} if backend == "text" else {"b": "2"}
    assert result.module.instruction("go").frontend_attributes == expected


def test_a_proto_keeps_what_was_right(modules: Mapping[tuple[str, str], Module]) -> None:
    """Only the field of the start changes where the operation has the value already."""
    text = load(in_xla([text_of("short-start")])[0])
    proto = schema.HloModuleProto.FromString(text.to_bytes())
    for computation in proto.computations:
        for each in computation.instructions:
            if each.opcode == b"reduce-scatter":
                each.frontend_attributes.map[0].value = b"0"
    module = load(proto.SerializeToString())
    assert (row(module), seen_by_passes(module)) == ("6", "0")
    result = INJECTOR.run(module)
    assert result.edits == (SetFrontendAttribute(module.instruction("go"), "stream_id", "0"),)
    assert row(result.module) == "0"
    assert stats_of(result)["as_before"] == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_stats_say_what_was_stamped_beside(backend: str, modules: Mapping[tuple[str, str], Module]) -> None:
    """By name, with the old value and the new one."""
    result = INJECTOR.run(modules["long-all", backend])
    beside = stats_of(result)["stamped_beside"]
    assert [(each["opcode"], each["old"], each["new"]) for each in beside] == [
        ("async-start", "6", "0"),
        ("async-update", "7", "0"),
        ("async-done", "6", "0"),
    ]
    assert (stats_of(result)["stamped"], stats_of(result)["streams"]) == (1, {"0": 1, "1": 0})
    assert "stamped beside 3" in result.facts
    assert stats_of(INJECTOR.run(modules["long-none", backend]))["stamped_beside"] == []


def test_a_done_that_ends_something_else_is_left() -> None:
    """The done of a gather with a start of its own, and one that leads nowhere, belong to nothing that is wrapped."""
    text = HEAD + (
        "ENTRY e {\n  a = f32[8]{0} parameter(0)\n"
        "  go = ((f32[8]{0}), f32[4]{0}) reduce-scatter-start(a), replica_groups={{0,1}}, dimensions={0}, to_apply=plus\n"
        f"  x = f32[4]{{0}} reduce-scatter-done(gone), frontend_attributes={SIX}\n"
        "  y = f32[4]{0} reduce-scatter-update(y)\n"
        "  g = (f32[8]{0}, f32[16]{0}) all-gather-start(a), replica_groups={{0,1}}, dimensions={0}\n"
        f"  ROOT d = f32[16]{{0}} all-gather-done(g), frontend_attributes={SIX}\n}}\n"
    )
    result = INJECTOR.run(load(text))
    assert stated(result.module) == {
        "reduce-scatter-start": "0",
        "reduce-scatter-done": "6",
        "all-gather-start": "0",
        "all-gather-done": "6",
    }
    assert stats_of(result)["stamped_beside"] == []


def test_nobody_is_stamped_where_one_cannot_be() -> None:
    """A start whose map cannot be added to leaves the operation alone as well, and both are named."""
    text = text_of("long-start-and-done").replace(SIX, '{stream_id="6","odd"="1"}')
    result = INJECTOR.run(load(text), keep_going=True)
    assert result.module.to_bytes().decode() == text
    assert [each.instruction for each in result.left_alone] == ["go", "rs", "end"]
    assert stats_of(result)["stamped"] == 0
