"""Layouts that no compiler prints but XLA's reader takes, and texts that end too early. Each of them broke us once."""

from __future__ import annotations

import pytest

from commlens.hlo.discovery import Discovery, discover
from commlens.hlo.text import TextModule, read_modules

HEAD = """HloModule m, replica_count=2

plus {
  u = f32[] parameter(0)
  v = f32[] parameter(1)
  ROOT w = f32[] add(u, v)
}

%fused.1 (q: f32[32]) -> f32[32] {
  %q = f32[32]{0} parameter(0)
  ROOT %ar.2 = f32[32]{0} all-reduce(%q), to_apply=plus
}

%ars.3 (q: f32[32]) -> f32[8] {
  %q = f32[32]{0} parameter(0)
  %ar.3 = f32[32]{0} all-reduce(%q), replica_groups={{0,1}}, to_apply=plus
  %pid = u32[] partition-id()
  ROOT %ds = f32[8]{0} dynamic-slice(%ar.3, %pid), dynamic_slice_sizes={8}
}

"""


def module(body: str, *, before: str = "") -> TextModule:
    """Return a module with two computations that communicate and an entry of these lines."""
    entry = f"ENTRY %main (a: f32[32]) -> f32[32] {{\n  %a = f32[32]{{0}} parameter(0)\n{body}\n}}\n"
    (found,) = read_modules(f"{HEAD}{before}{entry}".encode())
    return found


def read(body: str, *, before: str = "") -> Discovery:
    """Return what such a module holds."""
    return discover(module(body, before=before))


def trips(found: Discovery) -> dict[str, int | None]:
    """Return how often each site runs."""
    return {site.name: found.call_graph.executions(site.computation_name) for site in found.sites}


@pytest.mark.parametrize(
    "fusion",
    [
        "%f = f32[32]{0} fusion(%a), kind=kLoop, calls=%fused.1",
        "%f = f32[32]{0}\n  fusion(%a), kind=kLoop, calls=%fused.1",
        "%f = f32[32]{0} fusion(%a), kind=kLoop,\n  calls=%fused.1",
        "%f = f32[32]{0} fusion(%a), kind=kLoop, calls=/*x*/%fused.1",
        "%f = f32[32]{0} call(%a), to_apply=/*x*/%fused.1",
        "%f = f32[32]{0} call(%a),\n  to_apply=%fused.1",
        "%f = f32[32]{0} call(\n  %a), to_apply=%fused.1",
        "%f = ((f32[32]{0}), f32[32]{0}) call-start(%a), to_apply=%fused.1",
        "%f = ((f32[32]{0}), f32[32]{0}) fusion-start(%a), kind=kLoop, calls=%fused.1",
    ],
)
@pytest.mark.parametrize("other", ["", "  %g = f32[32]{0} all-reduce(%a),\n  replica_groups={{0,1}}, to_apply=plus\n"])
def test_every_call_site_counts_once(fusion: str, other: str) -> None:
    """However a call site is laid out, and whatever stands beside it, it runs its computation once."""
    body = f"{other}  {fusion}\n  ROOT %s = f32[8]{{0}} fusion(%a), kind=kCustom, calls=%ars.3"
    expected = {"ar.2": 1, "s": 1} | ({"g": 1} if other else {})
    found = read(body)
    assert (trips(found), found.unread) == (expected, ())
    assert len(found.sites) == len(expected)


@pytest.mark.parametrize("behind", [', metadata={op_name="q"},', ', metadata={op_name="q"} , ', ","])
def test_groups_behind_metadata_are_read(behind: str) -> None:
    """No attribute is lost that stands behind the metadata, whatever the commas look like."""
    groups = ["{{0,1}}", "{{0},{1}}", "{{1},{0}}"]
    lines = [
        f"  %x{i} = f32[32]{{0}} all-reduce(%a), to_apply=plus{behind}replica_groups={each}"
        for i, each in enumerate(groups)
    ]
    assert [str(site.signature.groups) for site in read("\n".join(lines)).sites[-3:]] == groups


@pytest.mark.parametrize("comma", [",", ",  ", " , ", ", "])
def test_channels_are_read_behind_any_comma(comma: str) -> None:
    """The channel number does not depend on the blanks around a comma."""
    body = f"  %x = f32[32]{{0}} all-reduce(%a){comma}channel_id=5{comma}to_apply=plus"
    assert read(body).sites[-1].channel_id == 5


def test_operands_are_not_looked_up_in_strings() -> None:
    """A line inside a quoted string defines nothing."""
    body = """  %x = f32[32]{0} negate(%a), metadata={op_name="one
  %a = f32[999]{0} parameter(0)
  two"}
  ROOT %g = f32[64]{0} all-gather(%a), dimensions={0}, replica_groups={{0,1}}"""
    (site,) = [site for site in read(body).sites if site.name == "g"]
    assert [str(shape) for shape in site.signature.operand_shapes] == ["f32[32]"]


def test_operand_shapes_are_never_mixed_up() -> None:
    """Typed and bare operands in one list, and blanks inside a shape, do not share a signature."""
    other = (
        "%o (p: f32[32]) -> f32[64] {{\n  %p = f32[32]{{0}} parameter(0)\n  %b = {shape} parameter(1)\n{line}\n}}\n\n"
    )
    line = "  %g{i} = (f32[64]{{0}}, f32[6]{{0}}) all-gather(f32[32]{{0}} %p, %b), dimensions={{0}}, replica_groups={{{{0,1}}}}"
    shapes = ["f32[6]{0}", "f32[3]{0}"]
    before = "".join(
        other.format(shape=shape, line=line.format(i=i)).replace("%o", f"%o{i}") for i, shape in enumerate(shapes)
    )
    found = {site.name: [str(each) for each in site.signature.operand_shapes] for site in read("", before=before).sites}
    assert (found["g0"], found["g1"]) == (["f32[32]", "f32[6]"], ["f32[32]", "f32[3]"])
    body = "  b1 = f32[4, 9]{1,0} parameter(1)\n  b2 = f32[4, 7]{1,0} parameter(2)\n"
    body += "\n".join(f"  x{i} = f32[4,9]{{1,0}} all-reduce(b{i}), to_apply=plus" for i in (1, 2))
    found = {site.name: [str(each) for each in site.signature.operand_shapes] for site in read(body).sites}
    assert (found["x1"], found["x2"]) == (["f32[4,9]"], ["f32[4,7]"])


@pytest.mark.parametrize(
    "line",
    [
        "%x = f32[32]{0} all-reduce\t(%a), to_apply=plus",
        "%x = f32[32]{0} all-reduce  (%a), to_apply=plus",
        "%x = f32[32]{0} all-reduce/*c*/(%a), to_apply=plus",
        "%x = f32[32]{0} all-reduce /* x */ (%a), to_apply=plus",
        "%b = f32[32]{0} negate(%a) %x = f32[32]{0} all-reduce(%b), to_apply=plus",
        "%x = f32[32]{0} all-reduce(%a), to_apply=plus %y = f32[32]{0} negate(%x)",
        "%b  = f32[32]{0} negate(%a)\n  %x = f32[32]{0} all-reduce(%b), to_apply=plus",
        "%b =\tf32[32]{0} negate(%a)\n  %x = f32[32]{0} all-reduce(%b), to_apply=plus",
        "ROOT  %b = f32[32]{0} negate(%a)\n  %x = f32[32]{0} all-reduce(%b), to_apply=plus",
    ],
)
def test_blanks_and_comments_hide_no_collective(line: str) -> None:
    """What stands between an opcode and its operands, or between instructions, does not matter."""
    found = read(f"  {line}")
    assert ([site.name for site in found.sites if site.computation_name == "main"], found.unread) == (["x"], ())


def test_two_collectives_on_one_line_are_two() -> None:
    """Instructions need no line of their own."""
    found = read("  %x = f32[32]{0} all-reduce(%a), to_apply=plus %y = f32[32]{0} all-reduce(%x), to_apply=plus")
    assert [site.name for site in found.sites if site.computation_name == "main"] == ["x", "y"]


def test_collectives_that_are_operands_are_found() -> None:
    """A collective without attributes may stand as an operand of another instruction."""
    body = "  ROOT %x = f32[32]{0} add(f32[32]{0} negate(%a), f32[32]{0} collective-broadcast(%a))"
    assert [site.name for site in read(body).sites if site.computation_name == "main"] == ["collective-broadcast.anon"]
    body = "  ROOT %x = f32[32]{0} all-reduce(f32[32]{0} collective-broadcast(f32[32]{0} %a)), to_apply=plus"
    names = [site.name for site in read(body).sites if site.computation_name == "main"]
    assert names == ["collective-broadcast.anon", "x"]


def test_operands_nested_beyond_reason_end() -> None:
    """Nesting deeper than anybody writes is not followed, and costs no stack."""
    nested = "negate(" * 1500 + "%a" + ")" * 1500
    assert trips(read(f"\t%x = f32[32]{{0}} {nested}")) == {"ar.2": 0, "ar.3": 0}


def test_a_start_that_wraps_a_custom_fusion_is_the_reduce_scatter() -> None:
    """What is wrapped is resolved before what wraps it, however deep and in whatever order."""
    inner = "%w1 (q: f32[32]) -> f32[8] {\n  %q = f32[32]{0} parameter(0)\n  ROOT %f1 = f32[8]{0} fusion(%q), kind=kCustom, calls=%ars.3\n}\n\n"
    outer = "%w2 (q: f32[32]) -> f32[8] {\n  %q = f32[32]{0} parameter(0)\n  ROOT %s1 = ((f32[32]{0}), f32[8]{0}) async-start(%q), calls=%w1\n}\n\n"
    body = "  %s2 = ((f32[32]{0}), f32[8]{0}) async-start(%a), calls=%w2"
    for before in (inner + outer, outer + inner):
        found = read(body, before=before)
        rows = [(site.name, site.signature.opcode, site.signature.is_async) for site in found.sites]
        assert rows == [("ar.2", "all-reduce", False), ("s2", "reduce-scatter", True)]


@pytest.mark.parametrize("end", [", channel_id=1,", "", ", channel_id=1", ", channel_id=1, replica_groups={{0,"])
def test_a_collective_that_is_cut_is_no_row(end: str) -> None:
    """What may have stood behind the end of a text is not guessed."""
    text = f"{HEAD}ENTRY %main (a: f32[32]) -> f32[32] {{\n  %a = f32[32]{{0}} parameter(0)\n  %x = f32[32]{{0}} all-reduce(%a){end}"
    (found,) = read_modules(text.encode())
    assert [item.name for item in discover(found).unread if item.name] == ["x"]
    assert "x" not in [site.name for site in discover(found).sites]


def test_counts_of_a_cut_text_are_unknown() -> None:
    """Without its entry, or with an entry that ends too early, nobody can say what never runs."""
    (cut_before,) = read_modules(HEAD.encode())
    assert set(trips(discover(cut_before)).values()) == {None}
    (cut_within,) = read_modules(
        f"{HEAD}ENTRY %main (a: f32[32]) -> f32[32] {{\n  %a = f32[32]{{0}} parameter(0)\n".encode()
    )
    assert set(trips(discover(cut_within)).values()) == {None}


def test_an_entry_may_begin_behind_a_brace() -> None:
    """A computation needs no line of its own."""
    text = HEAD.rstrip()[:-1] + "} ENTRY %main (a: f32[32]) -> f32[32] {\n  %a = f32[32]{0} parameter(0)\n"
    text += "  ROOT %x = f32[32]{0} all-reduce(%a), to_apply=plus\n}\n"
    (found,) = read_modules(text.encode())
    assert trips(discover(found)) == {"ar.2": 0, "ar.3": 0, "x": 1}


def test_many_custom_fusions_take_time_in_proportion() -> None:
    """Placing rows of fusions does not sort all of them again for each."""
    body = "\n".join(f"  %s.{i} = f32[8]{{0}} fusion(%a), kind=kCustom, calls=%ars.3" for i in range(3000))
    assert len(read(body).sites) == 3001


@pytest.mark.parametrize(
    "attributes",
    [
        "channel_id=1, \n  replica_groups={{0,1}}, use_global_device_ids=true, to_apply=plus",
        "channel_id=1, replica_groups={{0,1}},\t\n  use_global_device_ids=true, to_apply=plus",
        "  channel_id=1,\treplica_groups={{0,1}}, use_global_device_ids=true, to_apply=plus",
    ],
)
def test_blanks_at_line_ends_lose_nothing(attributes: str) -> None:
    """Attributes go on behind a line end, whatever blanks stand before it."""
    (site,) = [site for site in read(f"  %x = f32[32]{{0}} all-reduce(%a), {attributes}").sites if site.name == "x"]
    signature = site.signature
    assert (site.channel_id, str(signature.groups), signature.use_global_device_ids) == (1, "{{0,1}}", True)


@pytest.mark.parametrize(
    "line",
    [
        "%x = f32[32]{0} \tall-reduce(%a), to_apply=plus",
        "%x = f32[32]{0}\tall-reduce(%a), to_apply=plus",
        "%x /*c*/ = f32[32]{0} all-reduce(%a), to_apply=plus",
        "%x // c\n = f32[32]{0} all-reduce(%a), to_apply=plus",
    ],
)
def test_blanks_and_comments_before_the_opcode(line: str) -> None:
    """A name, a shape and an opcode may stand apart in any way."""
    found = read(f"  {line}")
    assert ([site.name for site in found.sites if site.computation_name == "main"], found.unread) == (["x"], ())


@pytest.mark.parametrize(
    "line",
    [
        "%x = f32(32]{0} all-reduce(%a), to_apply=plus",
        "%x : f32[32]{0} all-reduce(%a), to_apply=plus",
        "%x = f32[32]{0} all-reduce(%a), replica_groups ={{0,1}}, to_apply=plus",
        "%x = f32[32]{0} all-reduce(%a), to_apply=plus, replica_groups ={{0,1}}",
        "%x = f32[32]{0} all-reduce(%a) to_apply=plus",
    ],
)
def test_broken_collectives_are_said(line: str) -> None:
    """A line that looks like a collective and breaks the grammar is unread, never nothing and never a guess."""
    found = read(f"  {line}")
    assert [site.name for site in found.sites if site.computation_name == "main"] == []
    assert len(found.unread) == 1


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("  %y = f32[32]{0} all-gather(%a), dimensions={0},\n  %x = f32[32]{0} all-reduce(%a), to_apply=plus", 24),
        ("  %y = f32[32]{0} negate(%a)\n}\n\n  } f32[32]{0} all-reduce(%a), to_apply=plus\n", 26),
    ],
    ids=["a comma too much", "between computations"],
)
def test_calls_that_no_instruction_owns_are_said(text: str, line: int) -> None:
    """A collective that a damaged text hides in another item is an unread item of its own, with its place."""
    found = read(text)
    assert [(each.where, each.opcode) for each in found.unread if each.name is None] == [(str(line), "all-reduce")]


def test_a_call_that_cannot_be_read_leaves_counts_unknown() -> None:
    """Where an instruction names a computation and cannot be read, how often that runs is unknown, and it is said."""
    found = read("  %y = f32[32]{0} call(%a), to_apply=%fused.1, to_apply=%fused.1 all-reduce(%a)")
    assert trips(found)["ar.2"] is None
    assert "the attribute to_apply is given twice" in [item.why for item in found.unread]


@pytest.mark.parametrize("prefix", ["\ufeff", "I0101 12:00:00.1 77 dump.cc:3] "])
def test_headers_behind_marks_are_headers(prefix: str) -> None:
    """A byte order mark or the prefix of a log line does not hide the counts."""
    (found,) = read_modules(f"{prefix}{HEAD}".encode())
    assert (found.name, found.replica_count) == ("m", 2)


def test_the_order_needs_no_types() -> None:
    """Operands of unknown types are operands all the same."""
    body = '  %x = q32[8]{0} custom-call(%a), custom_call_target="f"\n  %y = f32[8]{0} negate(q32[8]{0} %x)'
    entry = module(body).entry
    assert entry is not None
    assert [each.name for each in entry.post_order()] == ["a", "x", "y"]


@pytest.mark.parametrize(
    "shape", ["f32 [32]{0}", "f32[32] {0}", "f32\t[32]\n   {0}", "f32/*c*/[32] /*d*/ {0}", "f32[ 32 ]{ 0 }"]
)
@pytest.mark.parametrize("blanks", ["", "  \t ", "// c\n"])
def test_blanks_inside_shapes(shape: str, blanks: str) -> None:
    """Type, sizes and layout of a shape may stand apart, of results and of operands."""
    body = f"  %b = {shape} negate(%a)\n  %x = {shape} all-reduce{blanks}({shape} %b), to_apply=plus\n"
    body += "  %y = f32[32]{0} all-reduce(%b), to_apply=plus"
    found = read(body)
    sites = [site.signature for site in found.sites if site.computation_name == "main"]
    assert found.unread == ()
    assert [(str(each.operand_shapes[0]), str(each.result_shapes[0])) for each in sites] == [("f32[32]", "f32[32]")] * 2


@pytest.mark.parametrize("header", ["ENTRY main (p: f32[8], q: f3", "%region.7 (x: f32[", "ENTRY"])
def test_a_text_that_ends_in_a_header_is_cut(header: str) -> None:
    """A computation of which only the beginning is there is said, with its line."""
    (found,) = read_modules(f"{HEAD}{header}".encode())
    assert [(item.where, item.text) for item in discover(found).unread] == [(str(HEAD.count("\n") + 1), header)]
