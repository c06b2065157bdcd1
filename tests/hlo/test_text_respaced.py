"""Whatever stands between two tokens, a blank, a line end, a comment or nothing, a text says what it said before.

Every variant is one that XLA reads as it reads the text without it, which a test at the end asks XLA itself.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import pytest

from commlens import report
from commlens.hlo import load
from commlens.neuron import NeuronCollectiveStreamIdInjector, NeuronUniqueChannelIdEnforcer
from xla_reader import XlaReader

if TYPE_CHECKING:
    from collections.abc import Iterator

MARKED = """HloModule m, entry_computation_layout={(f32[8]{0})->f32[16]{0}}, num_partitions=2

FileNames
1 "a//b.py"

FunctionNames
1 "FileNames"

FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=1 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}


%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}

%body (t: (f32[8], s32[])) -> (f32[8], s32[]) {
  %t = (f32[8]{0}, s32[]) parameter(0)
  %g = f32[8]{0} get-tuple-element(%t), index=0
  %i = s32[] get-tuple-element(%t), index=1
  %r = f32[8]{0:T(8)(2)S(1)} all-reduce(f32[8]{0} %g), channel_id=3, replica_groups=[1,2]<=[2], to_apply=%add, metadata={op_name="f/psum" source_file="a.py" source_line=3}
  ROOT %u = (f32[8]{0}, s32[]) tuple(%r, %i)
}

%cond (t: (f32[8], s32[])) -> pred[] {
  %t = (f32[8]{0}, s32[]) parameter(0)
  ROOT %k = pred[] constant(true)
}

%wrapped (q: f32[8]) -> f32[16] {
  %q = f32[8]{0} parameter(0)
  ROOT %h = f32[16]{0} all-gather(%q), channel_id=3, replica_groups={{0,1}}, dimensions={0}
}, execution_thread="other"

ENTRY %main (p: f32[8]) -> f32[16] {
  %p = f32[8]{0} parameter(0)
  %z = s32[] constant(0)
  %a = (f32[8]{0}, s32[]) tuple(%p, %z)
  %w = (f32[8]{0}, s32[]) while(%a), condition=%cond, body=%body, backend_config='{"known_trip_count":{"n":"5"}}'
  %o = f32[8]{0} get-tuple-element(%w), index=0
  %b = ((f32[8]{0}), f32[16]{0}, u32[]) async-start(%o), async_execution_thread="other", calls=%wrapped
  %d = f32[16]{0} async-done(%b)
  ROOT %f = f32[16]{0} all-reduce(%d), channel_id=3, replica_groups=mesh['a'=2] {'a'}, to_apply=%add, frontend_attributes={c="1"}, metadata={op_name="f" stack_frame_id=1}
}
"""
BARE = """HloModule n, replica_count=2

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

one {
  v = f32[<=8] parameter(0)
  ROOT g = f32[<=8] all-reduce(v), replica_groups={{0,1}}, to_apply=add
}

other {
  v = f32[<=8] parameter(0)
  ROOT m = f32[<=8] negate(v)
}

ENTRY e {
  p = f32[<=8] parameter(0)
  c = pred[] constant(true)
  d = f32[<=8] conditional(c, p, p), true_computation=one, false_computation=other
  z = s32[] constant(0)
  l = f32[<=8] conditional(z, d, p), branch_computations={one, other}
  f = f32[<=8] fusion(l), kind=kLoop, calls=other
  i = s32[4] iota(), iota_dimension=0
  n = f32[<=8] add(f32[<=8] negate(f), p)
  ROOT r = f32[<=8] collective-permute(n), source_target_pairs={{0,1},{1,0}}
}
"""
TEXTS = {"marked": MARKED, "bare": BARE}
GAPS = ["", "\n", "\t", "/*,}*/", "//=\r\n"]
TOKEN = re.compile(r"""(?P<gap>\s*)(?P<token>"[^"]*"|'[^']*'|->|<=|%?[A-Za-z_][\w.\-]*[=:]?|-?\d+|.)""")
PASSES = [NeuronCollectiveStreamIdInjector(), NeuronUniqueChannelIdEnforcer()]


def respaced(text: str, gap: str) -> Iterator[str]:
    """Yield a text with a gap in the place of what stands before one of its tokens, for each where it makes no other."""
    tokens = [match.groups() for match in TOKEN.finditer(text)]
    for place in range(1, len(tokens)):
        before, token = tokens[place - 1][1], tokens[place][1]
        is_joined = before[-1].isalnum() and re.match(r"[\w.\-=]", token) and before[0] + token != "%="
        if tokens[place][0] != gap and (gap or not is_joined):
            changed = [*tokens[:place], (gap, token), *tokens[place + 1 :]]
            yield "".join(map("".join, changed)) + "\n"


def said(text: str) -> list[dict[str, object]]:
    """Return the rows of a text, without what its lines and blanks say."""
    found = report(load(text.encode()))
    assert found.unread == ()
    rows = [each.as_dict() for each in found.collectives]
    for row in rows:
        del row["line"]
        if isinstance(groups := row["replica_groups"], dict):
            groups["text"] = "".join(groups["text"].split())
    return rows


@cache
def edited(text: str) -> list[list[dict[str, object]]]:
    """Return the rows of what two passes make of a text."""
    return [said(each.run(load(text.encode())).module.to_bytes().decode()) for each in PASSES]


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("name", TEXTS)
def test_what_stands_between_tokens_does_not_matter(name: str, gap: str) -> None:
    """Rows are the same before every pass and after it, nothing is unread, and every edit is made."""
    text = TEXTS[name]
    rows = said(text)
    for number, variant in enumerate(respaced(text, gap)):
        assert said(variant) == rows, variant
        if number % 10 == 0:
            assert edited(variant) == edited(text), variant


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_may_stand_on_one_line(name: str) -> None:
    """All of a module, its header and its tables may be one line, or a line for each token."""
    tokens = [match["token"] for match in TOKEN.finditer(TEXTS[name])]
    for gap in (" ", "\n", "\t", "/*c*/ "):
        assert said(gap.join(tokens)) == said(TEXTS[name])
        assert edited(gap.join(tokens)) == edited(TEXTS[name])


JOINED = [
    ("  ROOT %s", "  ROOT%s"),
    ("  %w = (", "  %w= ("),
    ("s32[]) while(", "s32[])while("),
    ("s32[]) while(", "s32[])\twhile("),
    ("body=%body", "body=//\n%body"),
    ("f32[16]{0} all-reduce", "f32[16]{0}all-reduce"),
    ("ENTRY %main", "ENTRY\n%main"),
    ("ENTRY %main", "ENTRY // the last\n\n%main"),
    ("}\n\n%body", "}%body"),
    ("}\n\n%cond", "} // the loop\n%cond"),
    ("StackFrames\n1 ", "StackFrames 1"),
    ("parent_frame_id=1}\n\n\n", "parent_frame_id=1}"),
    ("HloModule m, ", "HloModule\nm\n,\n"),
    ("num_partitions=2\n\n", "num_partitions=2"),
    (", num_partitions=2", "\n// as many\n, num_partitions=/**/2 "),
    ("-> f32[16] {\n  %q", "-> f32/*a*/[16]{%q"),
    ('execution_thread="other"\n\nENTRY', 'execution_thread="other"ENTRY'),
    ('op_name="f" stack_frame_id=1}\n}', 'op_name="f" stack_frame_id=1}}'),
    ('metadata={op_name="f/psum" ', 'metadata={ op_name= "f/psum",'),
    (
        "channel_id=3, replica_groups=[1,2]<=[2], to_apply=%add,",
        "replica_groups=[1,2]<=[2], to_apply=%add,channel_id=3,",
    ),
    (', to_apply=%add, metadata={op_name="f/psum"', ', to_apply=%add,metadata={op_name="f/psum"'),
]
"""Spellings of parts of the marked text that a reader has to look at closely."""


@pytest.mark.parametrize(("part", "spelling"), JOINED)
def test_words_that_touch_or_stand_apart_are_the_same_words(part: str, spelling: str) -> None:
    """Counts of devices and runs, sources and names come through, and so do edits."""
    assert part in MARKED
    variant = MARKED.replace(part, spelling)
    assert said(variant) == said(MARKED)
    assert edited(variant) == edited(MARKED)


@pytest.mark.parametrize(
    ("part", "found"),
    [
        ("to_apply=other", "to_apply"),
        ("calls=\n{", "calls"),
        ("branch_computations={one, /**/{", "branch_computations"),
        ("called_computations={{", "called_computations"),
    ],
)
def test_a_computation_in_the_place_of_a_name_is_said_wherever_it_stands(part: str, found: str) -> None:
    """Alone or in a list, behind blanks and comments: it is unread, and a name in its place is not."""
    in_place = "\n  ROOT v = f32[<=8] parameter(0) }" + "}" * (part.count("{") - 1)
    value = part if "{" not in part else part + in_place
    text = BARE.replace("kind=kLoop, calls=other", value)
    why = [item.why for item in report(load(text)).unread]
    expected = f"expected {found}= to name a computation, found one that stands in its place"
    assert (expected in why) == ("{" in part)


def test_a_header_ends_where_no_attribute_follows() -> None:
    """What stands on the same line is no part of it, and a computation below is not its name."""
    assert load(BARE.replace("replica_count=2\n", "replica_count=2 and more, num_partitions=9\n")).num_partitions == 1
    module = load("HloModule\nadd {\n  ROOT x = f32[] parameter(0)\n}\n")
    assert [each.name for each in module.computations] == ["add"]


def test_a_buffer_stands_apart_from_its_parenthesis() -> None:
    """``b`` before a parenthesis is a type there, not an opcode."""
    text = BARE.replace("  i = s32[4]", '  k = b (f32[8]) custom-call(p), custom_call_target="a"\n  i = s32[4]')
    instruction = load(text).instruction("k")
    assert instruction is not None
    assert (instruction.opcode, str(instruction.shape)) == ("custom-call", "b(f32[8])")
    assert said(text) == said(BARE)


def test_xla_reads_the_variants() -> None:
    """As it reads the text: what it prints is the same."""
    xla = XlaReader()
    for text in TEXTS.values():
        printed = xla.printed(text.encode())
        for gap in GAPS:
            for variant in [*respaced(text, gap)][::7]:
                assert xla.printed(variant.encode()) == printed, variant
    for part, spelling in JOINED:
        assert xla.printed(MARKED.replace(part, spelling).encode()) == xla.printed(MARKED.encode()), spelling
    xla.close()
