"""Public reports of trouble with collectives, reduced to small inputs: what check says of them."""

from __future__ import annotations

import pytest

from checking import FLAG, INTEGER_ADD, ids_of, module_of, one_of, problems_in
from commlens.hlo import load


def test_b02_a_channel_id_changes_what_the_ids_are() -> None:
    """openxla/xla#23834: an all-to-all with a channel has partition ids; there is one partition; two cures."""
    module = module_of(
        "x = f32[4,4] parameter(2)",
        "t = f32[4,4] all-to-all(x), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}",
        header="replica_count=4",
    )
    [found] = problems_in(module)
    assert (found.rule.id, found.severity, found.instructions) == ("id-out-of-range", "error", ["t"])
    assert "expected partition ids in 0..0 in mode kCrossPartition, found 1, 2 and 3" in found.message
    assert "drop channel_id" in found.message
    assert "run the program on 4 partitions" in found.message


B04 = f"""
body {{
  t = (s32[], f32[512]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  a = f32[512] get-tuple-element(t), index=1
  g = f32[4096] all-gather(a), channel_id=1, replica_groups=[2,8]<=[16], dimensions={{0}}, {FLAG}
  h = f32[4096] negate(g)
  s = f32[512] slice(h), slice={{[0:512]}}
  r = f32[512] all-reduce(s), channel_id=2, replica_groups=[8,2]<=[2,8]T(1,0), {FLAG}, to_apply=add
  ROOT o = (s32[], f32[512]) tuple(i, r)
}}

cond {{
  t = (s32[], f32[512]) parameter(0)
  ROOT c = pred[] constant(true)
}}
"""


def looping(trips: str) -> list[str]:
    """Write a loop over the body of B04."""
    config = f', backend_config={{"known_trip_count":{{"n":"{trips}"}}}}' if trips else ""
    return [
        "i = s32[] constant(0)",
        "a = f32[512] parameter(2)",
        "t = (s32[], f32[512]) tuple(i, a)",
        f"w = (s32[], f32[512]) while(t), condition=cond, body=body{config}",
    ]


def test_b04_overlapping_cliques_in_a_loop() -> None:
    """NVIDIA/nccl#1772: a gather inside hosts and a reduce across them, in turn."""
    module = module_of(*looping("2"), before=B04, header="num_partitions=16")
    [found] = problems_in(module, mesh="host=2,local=8")
    assert (found.rule.id, found.severity, found.instructions) == ("overlapping-in-loop", "warning", ["g", "r"])
    assert "the loop w, which runs 2 times" in found.message
    assert "all-gather along local (g) and all-reduce along host (r)" in found.message


@pytest.mark.parametrize(("trips", "rules"), [("2", 1), ("", 1), ("1", 0), ("0", 0)])
def test_b04_needs_a_second_trip(trips: str, rules: int) -> None:
    """A loop that runs once alternates nothing; one that runs nobody knows how often may."""
    found = problems_in(module_of(*looping(trips), before=B04, header="num_partitions=16"))
    assert ids_of(found) == ["overlapping-in-loop"] * rules


@pytest.mark.parametrize("groups", ["[2,8]<=[16]", "{{8,9,10,11,12,13,14,15},{7,6,5,4,3,2,1,0}}", "[16,1]<=[16]"])
def test_b04_with_the_same_groups_or_none(groups: str) -> None:
    """The same cliques in any spelling, and groups of one, clash with nothing."""
    before = B04.replace("[8,2]<=[2,8]T(1,0)", groups)
    found = problems_in(module_of(*looping("2"), before=before, header="num_partitions=16"))
    assert "overlapping-in-loop" not in ids_of(found)


def test_b04_outside_of_loops() -> None:
    """The same two in straight code are ordered by the program."""
    body = B04[B04.index("  g =") : B04.index("  ROOT o")].strip().split("\n")
    module = module_of("a = f32[512] parameter(2)", *(line.strip() for line in body), header="num_partitions=16")
    assert ids_of(problems_in(module)) == []


def test_b04_through_calls_and_nested_loops() -> None:
    """What a body calls is in the loop; of nested loops the inner one is named."""
    inner = B04.replace("body {", "inner {")
    calling = "body {\n  t = (s32[], f32[512]) parameter(0)\n  ROOT c = (s32[], f32[512]) call(t), to_apply=inner\n}\n"
    module = module_of(*looping("3"), before=inner + calling, header="num_partitions=16")
    assert one_of(problems_in(module), "overlapping-in-loop").message.count("the loop w, which runs 3 times") == 1
    nested = calling.replace("call(t), to_apply=inner", "while(t), condition=cond, body=inner").replace("c = ", "v = ")
    module = module_of(*looping("3"), before=inner + nested, header="num_partitions=16")
    assert (
        "the loop v, which runs an unknown number of times"
        in one_of(problems_in(module), "overlapping-in-loop").message
    )


@pytest.mark.parametrize(("rounds", "rules"), [("1", 0), ("3", 1)])
def test_b04_one_round_in_each_round_of_a_loop_around_it(rounds: str, rules: int) -> None:
    """What counts is how often the body runs: a loop of one round alternates where another loop reaches it again."""
    one = 'while(t), condition=cond, body=inner, backend_config={"known_trip_count":{"n":"1"}}'
    around = f"body {{\n  t = (s32[], f32[512]) parameter(0)\n  ROOT v = (s32[], f32[512]) {one}\n}}\n"
    before = B04.replace("body {", "inner {") + around
    found = problems_in(module_of(*looping(rounds), before=before, header="num_partitions=16"))
    assert ids_of(found) == ["overlapping-in-loop"] * rules
    assert all(f"the loop v, which runs {rounds} times" in each.message for each in found)


def test_b06_one_channel_on_two_opcodes() -> None:
    """openxla/xla#14600: both users of the channel are listed."""
    module = module_of(
        "g = f32[32] all-gather(p), channel_id=1, replica_groups={}, dimensions={0}",
        "r = f32[64] all-reduce(q), channel_id=1, replica_groups={}, to_apply=add",
        header="replica_count=2, num_partitions=2",
    )
    [found] = problems_in(module)
    assert (found.rule.id, found.severity, found.instructions) == ("channel-two-opcodes", "error", ["g", "r"])
    assert "channel 1, found all-gather (g); all-reduce (r)" in found.message


def test_b07_a_collective_on_the_channel_of_a_send() -> None:
    """openxla/xla#15321: the all-reduce is held against the send and recv, which belong together."""
    module = module_of(
        "t = token[] after-all()",
        "s = (f32[8], u32[], token[]) send(p, t), channel_id=3",
        "sd = token[] send-done(s), channel_id=3",
        "v = (f32[8], u32[], token[]) recv(t), channel_id=3",
        "vd = (f32[8], token[]) recv-done(v), channel_id=3",
        "r1 = f32[8] all-reduce(p), channel_id=3, replica_groups={}, to_apply=add",
    )
    [found] = problems_in(module)
    assert (found.rule.id, found.severity, found.instructions) == ("channel-two-opcodes", "error", ["s", "v", "r1"])


def test_b08_two_cycles_are_valid() -> None:
    """openxla/xla#45222: every device sends once and receives once."""
    pairs = "{{0,2},{2,4},{4,6},{6,0},{1,3},{3,5},{5,7},{7,1}}"
    module = module_of(
        "x = f32[2] parameter(2)",
        f"c = f32[2] collective-permute(x), channel_id=1, source_target_pairs={pairs}",
        header="num_partitions=8",
    )
    assert problems_in(module, mesh="a=4,b=2") == []


def test_b09_permutes_between_a_few_devices_are_valid() -> None:
    """openxla/xla#44530: no format fault; those that are no target get zeros."""
    module = module_of(
        "c0 = f32[8] collective-permute(p), channel_id=1, source_target_pairs={{0,1}}",
        "c1 = f32[8] collective-permute(c0), channel_id=2, source_target_pairs={{2,3}}",
        "c2 = f32[8] collective-permute(c1), channel_id=3, source_target_pairs={{1,2}}",
        header="num_partitions=4",
    )
    assert problems_in(module) == []


def test_b12_devices_without_a_group() -> None:
    """aws-neuron/aws-neuron-sdk#1030: what the runtime calls "does not have myself"."""
    line = f"r = f32[8] all-reduce(p), channel_id=2, replica_groups={{{{0}}}}, {FLAG}, to_apply=add"
    [found] = problems_in(module_of(line, header="num_partitions=4"))
    assert (found.rule.id, found.severity, found.instructions) == ("groups-incomplete", "error", ["r"])
    assert "found no 1, 2 and 3" in found.message


def test_b13_a_number_of_cores_that_only_trn1_refuses() -> None:
    """huggingface/optimum-neuron#619: the module is fine, the target rule is off without its target."""
    line = f"r = f32[8] all-reduce(p), channel_id=1, replica_groups={{{{0,1,2,3}}}}, {FLAG}, to_apply=add"
    module = module_of(line, header="num_partitions=4")
    assert problems_in(module) == []
    assert problems_in(module, target="trn2") == []
    [found] = problems_in(module, target="trn1")
    assert (found.rule.id, found.severity) == ("NEU-TRN1-CORES", "error")
    assert found.message == "expected a program for 1, 2, 8, 16 cores or a multiple of 32 on trn1, found one for 4"


def sliced(*, index: str = "u32[] multiply(id, rows)", size: int = 256) -> list[str]:
    """Write the all-reduce and slice of B18."""
    return [
        "d = bf16[1024,512] parameter(2)",
        f"r = bf16[1024,512] all-reduce(d), channel_id=5, replica_groups={{{{0,1,2,3}}}}, {FLAG}, to_apply=add",
        "id = u32[] partition-id()",
        "rows = u32[] constant(256)",
        "zero = u32[] constant(0)",
        "last = u32[] constant(768)",
        f"at = {index}",
        "start = u32[] clamp(zero, at, last)",
        f"o = bf16[{size},512] dynamic-slice(r, start, zero), dynamic_slice_sizes={{{size},512}}",
    ]


@pytest.mark.parametrize("header", ["num_partitions=4", ""])
def test_b18_an_all_reduce_that_is_a_reduce_scatter(header: str) -> None:
    """openxla/xla#37081: each device takes its quarter, through a clamp that changes nothing; exact figures."""
    [found] = problems_in(module_of(*sliced(), header=header))
    assert (found.rule.id, found.severity, found.instructions) == ("all-reduce-slice", "warning", ["r", "o"])
    assert "of a payload of 1,048,576 B a device receives 1,572,864 B on a ring, and 786,432 B" in found.message
    assert found.message.endswith("as nobody states the counts") is (header == "")


@pytest.mark.parametrize(
    ("index", "size"),
    [
        ("u32[] multiply(id, zero)", 256),
        ("u32[] add(rows, zero)", 256),
        ("u32[] multiply(id, last)", 256),
        ("u32[] parameter(3)", 256),
        ("u32[] multiply(id, rows)", 512),
    ],
)
def test_b18_needs_each_device_to_take_its_own_part(index: str, size: int) -> None:
    """Slices that overlap, are the same everywhere, depend on data, or are of another size are no reduce-scatter."""
    header = "num_partitions=4"
    assert "all-reduce-slice" not in ids_of(problems_in(module_of(*sliced(index=index, size=size), header=header)))


ARGMAX = """
largest_of {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  more = pred[] compare(a, b), direction=GT
  v = f32[] select(more, a, b)
  k = s32[] select(more, i, j)
  ROOT both = (f32[], s32[]) tuple(v, k)
}
"""
LOCAL = [
    "places = s32[8] iota(), iota_dimension=0",
    "least = f32[] constant(-inf)",
    "zero = s32[] constant(0)",
    "local = (f32[], s32[]) reduce(p, places, least, zero), dimensions={0}, to_apply=largest_of",
    "value = f32[] get-tuple-element(local), index=0",
    "spot = s32[] get-tuple-element(local), index=1",
]
TOP = (
    "top = f32[] all-reduce(value), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=largest"
)
SUM = "sum = s32[] all-reduce(spot), channel_id=2, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=count"


def test_b26_an_index_is_summed() -> None:
    """tenstorrent/tt-mlir#8623: the index of a local argmax, with and without a maximum of its value beside it."""
    [alone] = problems_in(module_of(*LOCAL, SUM, before=ARGMAX, header="num_partitions=2"))
    assert (alone.rule.id, alone.severity, alone.instructions) == ("index-sum", "warning", ["sum"])
    [beside] = problems_in(module_of(*LOCAL, TOP, SUM, before=ARGMAX, header="num_partitions=2"))
    assert (beside.rule.id, beside.instructions) == ("index-sum", ["sum", "top"])
    assert "top takes the max of the values" in beside.message


@pytest.mark.parametrize(
    "lines",
    [
        [
            "pair = (f32[], s32[]) parameter(2)",
            "value = f32[] get-tuple-element(pair), index=0",
            "spot = s32[] get-tuple-element(pair), index=1",
            TOP,
            SUM,
        ],
        ["value = f32[] parameter(2)", "index = s32[] parameter(3)", TOP, SUM.replace("spot", "index")],
        [
            "value = f32[] parameter(2)",
            "x = s32[] parameter(3)",
            'y = s32[] negate(x), metadata={op_name="jit(f)/argmax"}',
            TOP,
            SUM.replace("spot", "y"),
        ],
    ],
    ids=["a pair", "a name", "an operation's name"],
)
def test_b26_other_signs_of_an_index(lines: list[str]) -> None:
    """The second half of a pair, or what is called an index, beside a maximum over the same groups."""
    found = problems_in(module_of(*lines, header="num_partitions=2"))
    assert one_of(found, "index-sum").instructions == ["sum", "top"]


@pytest.mark.parametrize(
    "lines",
    [
        [
            *LOCAL,
            TOP,
            "here = pred[] compare(value, top), direction=EQ",
            "mine = s32[] select(here, spot, zero)",
            SUM.replace("spot", "mine"),
        ],
        ["value = f32[] parameter(2)", "tokens = s32[] parameter(3)", TOP, SUM.replace("spot", "tokens")],
        ["index = s32[] parameter(2)", SUM.replace("spot", "index")],
        [
            "value = f32[] parameter(2)",
            "index = s32[4] parameter(3)",
            TOP,
            SUM.replace("spot", "index").replace("s32[]", "s32[4]"),
        ],
        [
            "t = (f32[], s32[], f32[]) parameter(2)",
            "value = f32[] get-tuple-element(t), index=0",
            "spot = s32[] get-tuple-element(t), index=1",
            TOP,
            SUM,
        ],
        [
            *LOCAL,
            TOP,
            "sum = s32[] all-reduce(spot), channel_id=2, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=most",
        ],
        [
            "pair = (s32[], s32[]) parameter(2)",
            "spot = s32[] get-tuple-element(pair), index=1",
            TOP.replace("f32", "s32").replace("value", "spot").replace("largest", "most"),
            SUM,
        ],
        [*(line.replace("largest_of", "both_sums") for line in LOCAL), SUM],
    ],
    ids=[
        "selected",
        "counts",
        "alone",
        "other sizes",
        "a loop's state",
        "a maximum of indices",
        "one half of a pair",
        "sums",
    ],
)
def test_b26_sums_that_are_right(lines: list[str]) -> None:
    """Selected indices, counts of anything beside a maximum, and indices without a partner are no findings."""
    most = INTEGER_ADD.replace("count", "most").replace("add(", "maximum(")
    sums = ARGMAX.replace("largest_of", "both_sums").replace("select(more, a, b)", "add(a, b)")
    sums = sums.replace("select(more, i, j)", "add(i, j)")
    assert ids_of(problems_in(module_of(*lines, before=ARGMAX + most + sums, header="num_partitions=2"))) == []


def test_axis_index_groups_are_no_index() -> None:
    """The parameter of that name, which JAX writes into names of operations, is no sign of an index."""
    module = load(
        module_of(
            "value = f32[] parameter(2)",
            "x = s32[] parameter(3)",
            "y = s32[] negate(x), metadata={op_name=\"jit(f)/psum[axes=('i',) axis_index_groups=None]\"}",
            TOP,
            SUM.replace("spot", "y"),
            header="num_partitions=2",
        )
        .to_bytes()
        .decode()
    )
    assert ids_of(problems_in(module)) == []
