"""The facts about upstream's reader, through our own: text that is read, text that is refused, orders."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from commlens.hlo.discovery import discover
from commlens.hlo.opcodes import COLLECTIVES, DEDICATED_START
from commlens.hlo.text import read_modules
from xla_cases import cases

TEMPLATES: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "xla_cases.json").read_text())[
    "_templates"
]

READ_ON_PURPOSE = {22, 38, 52, 55}
"""Cases of parse_reject that upstream refuses and we read: the old mesh spelling, groups of one, identity ids, a flag."""

NOTHING_ASKED = {56, 58, 59, 61, 62, 65, 67, 68, 70, 71, 76, 77, 80, 82, 83, 85, 91, 92, 94, 95}
"""Cases of parse_reject about attributes that do not concern us: they must not break anything."""

REFUSED_UNCHECKED = {5, 7, 8, 10, 13}
"""Cases of parse_unchecked that upstream lets through and we do not: they have no meaning."""


def module_of(given: dict[str, Any]) -> str:
    """Fill the template of a case."""
    parts = TEMPLATES["opcodes"][given["opcode"]]
    attributes = given.get("attributes", "")
    line = f"{parts['shape']} {parts['call']}, {attributes}" if attributes else f"{parts['shape']} {parts['call']}"
    return TEMPLATES["module"].replace("<shape> <call>, <attributes>", line)


def numbered(section: str) -> list[Any]:
    """Give the cases of a section with their numbers."""
    return [
        pytest.param(int(str(case.id)[-3:]), module_of(case.values[0]), case.values[1], id=case.id)  # type: ignore[arg-type]
        for case in cases(section)
    ]


def outcome(text: str) -> tuple[list[Any], tuple[Any, ...]]:
    """Return the sites and the unread items of the one module of a text."""
    (module,) = read_modules(text.encode())
    found = discover(module)
    return list(found.sites), found.unread


@pytest.mark.parametrize(("number", "text", "expect"), numbered("parse_accept"))
def test_what_upstream_accepts_we_read(number: int, text: str, expect: dict[str, Any]) -> None:
    """A row, with the groups as upstream prints them."""
    sites, unread = outcome(text)
    assert (len(sites), unread, number > 0) == (1, (), True)
    signature = sites[0].signature
    printed = expect["printed"]
    groups = re.search(
        r"replica_groups=(mesh.*\}|\[.*?\]<=\[.*?\](?:T\(.*?\))?|\{(?:\{[\d,]*\},?)*\})(?:, |$)", printed
    )
    if groups is not None:
        assert str(signature.groups) == groups[1].partition(", to_apply")[0].partition(", dimensions")[0]
    channel = re.search(r"channel_id=(-?\d+)", printed)
    assert sites[0].channel_id == (None if channel is None else int(channel[1]))
    pairs = re.search(r"pairs=(\{(?:\{[\d,]*\},?)*\})", printed)
    if pairs is not None:
        assert str(signature.pairs) == pairs[1]


@pytest.mark.parametrize(("number", "text", "expect"), numbered("parse_reject"))
def test_what_upstream_refuses_is_unread_or_read_on_purpose(number: int, text: str, expect: dict[str, Any]) -> None:
    """Upstream says error; ours is an unread item with a reason, or a row where the contract says so."""
    assert expect["upstream"] in ("error", "abort")
    sites, unread = outcome(text)
    if number in READ_ON_PURPOSE:
        assert (len(sites), unread) == (1, ())
    elif number not in NOTHING_ASKED:
        assert sites == []
        assert [item.name for item in unread] == ["r"]
        assert all(item.why for item in unread)


@pytest.mark.parametrize(("number", "text", "expect"), numbered("parse_unchecked"))
def test_what_upstream_does_not_check(number: int, text: str, expect: dict[str, Any]) -> None:
    """Upstream accepts; values are rows, what has no meaning is unread."""
    assert expect == {"upstream": "accept"}
    sites, unread = outcome(text)
    assert (len(sites), len(unread)) == ((0, 1) if number in REFUSED_UNCHECKED else (1, 0))


HEADER = re.compile(r"^(ENTRY )?%(\S+) \(")
INSTRUCTION = re.compile(r"^  (ROOT )?%(\S+) = (\(.*?\)|\S+) ([a-z\-]+)\(")


def printed_structure(printed: str) -> list[Any]:
    """Return computations with entry mark and instructions with root mark, name, shape and opcode, from a print."""
    found: list[Any] = []
    for line in printed.split("\n"):
        header = HEADER.match(line)
        if header:
            found.append((header[2], header[1] is not None, []))
        instruction = INSTRUCTION.match(line)
        if instruction:
            found[-1][2].append((instruction[2], instruction[4], instruction[1] is not None))
    return found


@pytest.mark.parametrize(("given", "expect"), cases("module_text"))
def test_structure_is_upstreams(given: dict[str, Any], expect: dict[str, Any]) -> None:
    """Names, opcodes, order, root and entry are those of upstream's print; later names are not made unique."""
    (module,) = read_modules(given["hlo"].encode())
    structure = [
        (
            computation.name,
            computation.is_entry,
            [(each.name, each.opcode, each.is_root) for each in computation.instructions],
        )
        for computation in module.computations
    ]
    expected = printed_structure(expect["printed"])
    if given["what"].endswith("names_made_unique"):
        expected = [
            (name, entry, [(n.removesuffix(".1"), *rest) for n, *rest in lines]) for name, entry, lines in expected
        ]
    assert structure == expected


@pytest.mark.parametrize(("given", "expect"), cases("module_text_reject"))
def test_broken_modules_break_nothing(given: dict[str, Any], expect: dict[str, Any]) -> None:
    """Upstream refuses these; we read what is there without a traceback."""
    assert expect == {"upstream": "error"}
    for module in read_modules(given["hlo"].encode()):
        found = discover(module)
        assert len(found.sites) + len(found.unread) <= 2
        for computation in module.computations:
            assert len(computation.instructions) <= 3


@pytest.mark.parametrize(("given", "expect"), cases("post_order"))
def test_post_order_is_upstreams(given: dict[str, Any], expect: list[str]) -> None:
    """Operands first to last, control predecessors last listed first, no edges between equal channels."""
    (module,) = read_modules(given["hlo"].encode())
    assert module.entry is not None
    assert [each.name for each in module.entry.post_order()] == expect


@pytest.mark.parametrize(("given", "expect"), cases("allowed_attributes"))
def test_allowed_attributes_disturb_nothing(given: dict[str, Any], expect: dict[str, list[str]]) -> None:
    """Every attribute that upstream allows on an opcode can stand there without costing the row."""
    values = {
        "replica_groups": "{{0,1}}",
        "dimensions": "{0}",
        "channel_id": "3",
        "to_apply": "add",
        "use_global_device_ids": "true",
        "source_target_pairs": "{{0,1}}",
        "mode": "flattened_id",
        "slice_sizes": "{{4}}",
        "constrain_layout": "true",
        "is_host_transfer": "true",
        "backend_config": '{"a":{"b":"}"}}',
        "metadata": '{op_name="x, channel_id=9" source_line=1}',
        "frontend_attributes": '{a="channel_id=7",b={{1,2}}}',
        "control-predecessors": "{p}",
        "sharding": "{devices=[2,4]<=[8]}",
        "statistics": "{visualizing_index=1,a=0.5}",
        "origin": '{{"o"}}',
        "parameter_replication": "{true}",
    }
    listed = [f"{key}={values[key]}" for key in [*expect["own"], *expect["common"]]]
    for attributes in (listed, listed[::-1]):
        sites, unread = outcome(module_of({"opcode": given["opcode"], "attributes": ", ".join(attributes)}))
        assert (len(sites), unread) == (0 if given["opcode"].endswith("-done") else 1, ())
        assert all(site.channel_id == 3 for site in sites)


@pytest.mark.parametrize(("given", "expect"), [case for case in cases("class_membership")][:2])
def test_our_opcodes_are_upstreams(given: dict[str, Any], expect: list[str]) -> None:
    """The sets that the reader goes by agree with upstream's classes."""
    known = COLLECTIVES | {f"{opcode}-start" for opcode in DEDICATED_START}
    assert set(expect) <= known, given
    if given["class"] == "collective":
        assert known - set(expect) == {"collective-permute", "collective-permute-start"}
