"""The rules about Neuron: the documented cases, and what each finds or must leave alone beyond them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checking import ADD, FLAG, ids_of, module_of, one_of, problems_in
from commlens.hlo import TARGETS
from commlens.neuron import RULES
from neuron_cases import cases, section
from strategies import iota_groups

if TYPE_CHECKING:
    from commlens.analysis import Problem
    from commlens.hlo import Target
    from commlens.topology import IotaReplicaGroupList

NEURON: tuple[Target, ...] = ("trn1", "trn2", "trn3", "inf2")


def braces(groups: list[list[int]]) -> str:
    """Write groups as HLO does."""
    return "{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in groups) + "}"


def gathered(name: str, groups: str, attributes: str = "", *, channel: int | None = None) -> str:
    """Write an all-gather over groups of replicas, or of devices where it has a channel."""
    more = "" if channel is None else f", channel_id={channel}, {FLAG}"
    stated = f", frontend_attributes={{{attributes}}}" if attributes else ""
    return f"{name} = f32[16] all-gather(p), replica_groups={groups}, dimensions={{0}}{more}{stated}"


def neuron_ids(problems: list[Problem]) -> list[str]:
    """Return the Neuron rules that found something; the stock ones have tests of their own."""
    return [rule for rule in ids_of(problems) if rule.startswith(("NEU", "stream"))]


# --- the documented cases -------------------------------------------------------------------------------------------


def distinct_lists(number: int) -> list[str]:
    """Write so many all-gathers over different groups of 16 replicas."""
    found: list[str] = []
    for step in range(1, number + 1):
        rest = [rank for rank in range(1, 16) if rank != step]
        pairs = [[0, step], *(rest[at : at + 2] for at in range(0, 14, 2))]
        found.append(gathered(f"g{step}", braces(pairs)))
    return found


TRANSFERS = {
    "send": [
        "t = token[] after-all()",
        "s = (f32[8], u32[], token[]) send(p, t), channel_id={ch}",
        "sd = token[] send-done(s)",
    ],
    "recv": [
        "u = token[] after-all()",
        "v = (f32[8], u32[], token[]) recv(u), channel_id={ch}",
        "vd = (f32[8], token[]) recv-done(v)",
    ],
}


def lines_of(op: str, channel: int, place: int) -> list[str]:
    """Write an instruction of a case about channels."""
    if op in TRANSFERS:
        return [line.replace("{ch}", str(channel)) for line in TRANSFERS[op]]
    if op == "all-gather":
        return [gathered(f"x{place}", "{{0,1}}", channel=channel)]
    return [f"x{place} = f32[8] {op}(p), channel_id={channel}, replica_groups={{{{0,1}}}}, {FLAG}, to_apply=add"]


def findings_of(case: dict[str, Any]) -> list[Problem]:
    """Build the module of a case and check it."""
    given: dict[str, Any] | list[dict[str, Any]] = case["input"]
    if isinstance(given, dict):
        return findings_of_one(given)
    if "op" in given[0]:
        lines = [line for place, each in enumerate(given) for line in lines_of(each["op"], each["ch"], place)]
    else:
        lines = [gathered(f"g{n}", braces(each["rg"]), f'stream_id="{each["sid"]}"') for n, each in enumerate(given)]
    return problems_in(module_of(*lines, header="num_partitions=2"), target="trn2")


def findings_of_one(given: dict[str, Any]) -> list[Problem]:
    """Check the module of a case with one thing in it."""
    match given:
        case {"num_topologies": number}:
            lines = distinct_lists(number)
        case {"stream_id": stream}:
            lines = [gathered("g", "{{0,1}}", f'stream_id="{stream}"')]
        case {"cores": cores}:
            return problems_in(module_of(header=f"num_partitions={cores}"), target="trn1")
        case {"arch": arch, "lnc": lnc}:
            return problems_in(module_of(), target=arch, lnc=lnc)
        case {"group_size": size}:
            lines = [gathered("g", braces([[*range(size)]]))]
        case {"reduce": operation}:
            reducer = ADD.replace("add {", "both {").replace("add(", f"{operation}(")
            line = "r = f32[8] all-reduce(p), replica_groups={{0,1}}, to_apply=both"
            return problems_in(module_of(line, before=reducer), target="trn2")
        case _:
            lines = [gathered("g", braces(given["rg"]))]
    return problems_in(module_of(*lines), target="trn2", ranks_per_node=given.get("ranks_per_node"))


@pytest.mark.parametrize("case", cases("lint"))
def test_documented_case(case: dict[str, Any]) -> None:
    """The rule of the case says what the case expects, with its severity; a case that is fine has no finding of it."""
    found = [each.severity for each in findings_of(case) if each.rule.id == case["rule"]]
    assert set(found) == (set() if case["expected"] == "ok" else {case["expected"]})


def test_every_neuron_rule_has_a_case() -> None:
    """The rules with targets are those of the documented cases."""
    assert {rule.id for rule in RULES if rule.targets} == {case["rule"] for case in section("lint")}


@pytest.mark.parametrize("target", [None, "gpu", "tpu"])
@pytest.mark.parametrize("case", cases("lint"))
def test_cases_need_a_neuron_target(case: dict[str, Any], target: Target | None) -> None:
    """Without one of Neuron's machines none of its rules speaks."""
    module = module_of(gathered("g", "{{-1,0},{2}}", 'stream_id="x"'), header="num_partitions=4")
    found = neuron_ids(problems_in(module, target=target, lnc=3))
    assert case["rule"] not in found


def test_targets_are_known() -> None:
    """All machines of Neuron are among the targets that can be named."""
    assert set(NEURON) <= set(TARGETS)


# --- beyond the cases -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "named"), [(12, []), (13, ["g13"]), (15, ["g13", "g14", "g15"])])
def test_too_many_topologies(number: int, named: list[str]) -> None:
    """The first collective of each list beyond the twelfth is named."""
    found = [
        each
        for each in problems_in(module_of(*distinct_lists(number)), target="trn1")
        if each.rule.id == "NEU-COMM-MAX"
    ]
    assert [each.instructions for each in found] == [named] * bool(named)
    assert all(f"found {number};" in each.message for each in found)


def test_spellings_are_one_topology() -> None:
    """A list and an iota of the same groups count once; another order of the groups counts again."""
    lists = distinct_lists(12)
    same = [gathered("a", "[8,2]<=[16]"), gathered("b", braces([[at, at + 1] for at in range(0, 16, 2)]))]
    turned = gathered("c", braces([[at, at + 1] for at in range(14, -1, -2)]))
    assert "NEU-COMM-MAX" not in neuron_ids(problems_in(module_of(*lists, *same), target="trn2"))
    assert "NEU-COMM-MAX" in neuron_ids(problems_in(module_of(*lists, *same, turned), target="trn2"))


@pytest.mark.parametrize(
    ("value", "rule"),
    [("0", None), ("3", None), ("03", None), ("4", "MAX"), ("17", "MAX"), ("9" * 50, "MAX"), ("", "NONDIGIT"),
     ("-1", "NONDIGIT"), ("1.0", "NONDIGIT"), ("٣", "NONDIGIT"), ("٩", "NONDIGIT"), ("a", "NONDIGIT")],
)  # fmt: skip
def test_stream_ids(value: str, rule: str | None) -> None:
    """Digits of 0 to 3 are streams; larger numbers and other texts are none."""
    found = neuron_ids(problems_in(module_of(gathered("g", "{{0,1}}", f'stream_id="{value}"')), target="trn3"))
    assert found == ([] if rule is None else [f"NEU-STREAM-{rule}"])


def test_one_stream_per_topology_in_both_voices() -> None:
    """Without a target it is a warning of stream-split, with one of Neuron's an error; never both."""
    module = module_of(
        gathered("a", "{{0,1},{2,3}}", 'stream_id="0"'),
        gathered("b", "[2,2]<=[4]", 'stream_id="1"'),
        gathered("c", "{{0,2},{1,3}}", 'stream_id="1"'),
    )
    [plain] = [each for each in problems_in(module) if each.rule.id.startswith("stream")]
    [target] = [each for each in problems_in(module, target="trn1") if "STREAM" in each.rule.id.upper()]
    assert (plain.rule.id, plain.severity, plain.instructions) == ("stream-split", "warning", ["a", "b"])
    assert (target.rule.id, target.severity, target.instructions) == ("NEU-STREAM-PER-GROUP", "error", ["a", "b"])
    assert "found 0 (a); 1 (b)" in plain.message


def test_topologies_are_those_of_devices() -> None:
    """Groups of replicas and groups of global ids are one topology where the same devices meet."""
    lines = [gathered("a", "{{0,1}}", 'stream_id="0"'), gathered("b", "{{0,2},{1,3}}", 'stream_id="1"', channel=1)]
    header = "replica_count=2, num_partitions=2"
    assert one_of(problems_in(module_of(*lines, header=header)), "stream-split").instructions == ["a", "b"]
    assert neuron_ids(problems_in(module_of(*lines))) == []


def test_partly_stamped() -> None:
    """Those without a stream id are named; permutes, sends and recvs never have one."""
    permute = "c = f32[8] collective-permute(p), source_target_pairs={{0,1}}"
    stamped = gathered("a", "{{0,1},{2,3}}", 'stream_id="0"')
    found = problems_in(module_of(stamped, gathered("b", "{{0,2},{1,3}}"), permute))
    assert one_of(found, "stream-partial").instructions == ["b"]
    assert neuron_ids(problems_in(module_of(stamped, permute))) == []
    assert neuron_ids(problems_in(module_of(gathered("b", "{{0,2},{1,3}}"), permute))) == []


@pytest.mark.parametrize(
    ("tag", "contradicts"),
    [("fsdp_all_gather", False), ("tp_all_gather", False), ("all_gather", False), ("my_tag", False), ("gather", False),
     ("fsdp_reduce_scatter", True), ("tp_all_reduce", True), ("all_to_all", True), ("all_gather_reduce", False)],
)  # fmt: skip
def test_tags_that_contradict(tag: str, contradicts: bool) -> None:
    """Only a tag that ends in another operation's name contradicts the opcode."""
    found = neuron_ids(problems_in(module_of(gathered("g", "{{0,1}}", f'collective_type="{tag}"'))))
    assert found == ["stream-type-opcode"] * contradicts


def test_tags_of_one_kind_over_several_lists() -> None:
    """Exemplars that compete are all named, per kind of parallelism; other tags and lists do not matter."""
    lines = [
        gathered("a", "{{0,1},{2,3}}", 'collective_type="tp_all_gather"'),
        gathered("b", "[2,2]<=[4]", 'collective_type="tp_all_gather"'),
        gathered("c", "{{0,2},{1,3}}", 'collective_type="fsdp_all_gather"'),
        gathered("d", "{{0,3},{1,2}}", 'collective_type="moe_all_gather"'),
    ]
    assert neuron_ids(problems_in(module_of(*lines))) == []
    also = gathered("e.1", "{{0,2},{1,3}}", 'collective_type="tp_all_gather"')
    assert one_of(problems_in(module_of(*lines, also)), "stream-type-groups").instructions == ["a", "b", "e.1"]


@pytest.mark.parametrize(("line", "found"), [
    ("x = f32[8] all-reduce(p), replica_groups={{0,1},{-1}}, to_apply=add", True),
    ("x = f32[8] collective-permute(p), source_target_pairs={{0,-2}}", True),
    ("x = f32[8] all-reduce(p), replica_groups={{0,1},{2,3}}, to_apply=add", False),
    ("x = f32[8] all-reduce(p), replica_groups=[1,4]<=[4], to_apply=add", False),
    ("x = f32[8] all-reduce(p), replica_groups={}, to_apply=add", False),
])  # fmt: skip
def test_negative_ranks(line: str, found: bool) -> None:
    """Groups and pairs alike."""
    assert ("NEU-RANK-NEG" in neuron_ids(problems_in(module_of(line), target="trn2"))) is found


def test_uneven_groups_of_an_all_reduce() -> None:
    """XLA allows them there, Neuron does not; each collective is named."""
    lines = [f"{name} = f32[8] all-reduce(p), replica_groups={{{{0,1}},{{2}}}}, to_apply=add" for name in "ab"]
    assert ids_of(problems_in(module_of(*lines))) == []
    found = problems_in(module_of(*lines), target="inf2")
    assert [(each.rule.id, each.instructions) for each in found] == [
        ("NEU-GROUP-UNEVEN", ["a"]),
        ("NEU-GROUP-UNEVEN", ["b"]),
    ]


@pytest.mark.parametrize("cores", range(1, 200))
def test_cores_of_trn1(cores: int) -> None:
    """1, 2, 8, 16 and multiples of 32, counted over replicas and partitions."""
    fine = cores in (1, 2, 8, 16) or cores % 32 == 0
    header = f"replica_count={cores // 2}, num_partitions=2" if cores % 2 == 0 else f"replica_count={cores}"
    assert neuron_ids(problems_in(module_of(header=header), target="trn1")) == ["NEU-TRN1-CORES"] * (not fine)


def test_cores_need_known_counts() -> None:
    """Groups are no proof of how many cores there are."""
    line = gathered("g", "{{0,1,2,3}}", channel=1).replace("f32[16]", "f32[32]")
    assert neuron_ids(problems_in(module_of(line), target="trn1")) == []


@pytest.mark.parametrize("target", NEURON)
@pytest.mark.parametrize("lnc", [None, 1, 2, 4])
def test_lnc(target: Target, lnc: int | None) -> None:
    """The older two have 1 only, the newer two 1 or 2; where none is named nothing is said."""
    allowed = (1,) if target in ("trn1", "inf2") else (1, 2)
    found = neuron_ids(problems_in(module_of(), target=target, lnc=lnc))
    assert found == ["NEU-LNC-ARCH"] * (lnc is not None and lnc not in allowed)


def slow_symmetric(group: list[int], on_node: int) -> bool:
    """Whether every node of a group has the same places, found by looking at all pairs of ranks."""
    return all(
        any(other // on_node == node and other % on_node == rank % on_node for other in group)
        for rank in group
        for node in {each // on_node for each in group}
    )


@given(
    st.lists(st.lists(st.integers(0, 11), min_size=1, max_size=6, unique=True), min_size=1, max_size=3),
    st.integers(1, 4),
)
def test_symmetric_nodes(groups: list[list[int]], on_node: int) -> None:
    """Groups are unlike on their nodes when some rank has no partner in its place on another."""
    found = neuron_ids(problems_in(module_of(gathered("g", braces(groups))), target="trn2", ranks_per_node=on_node))
    assert ("NEU-SYMMETRIC-NODES" in found) is not all(slow_symmetric(group, on_node) for group in groups)


@given(iota_groups(), st.integers(1, 9))
def test_symmetric_nodes_of_lists_that_are_not_written_out(groups: IotaReplicaGroupList, on_node: int) -> None:
    """Lists in short are judged as they would be written out."""
    module = module_of(f"r = f32[8] all-reduce(p), replica_groups={groups}, to_apply=add")
    found = neuron_ids(problems_in(module, target="trn2", ranks_per_node=on_node))
    assert ("NEU-SYMMETRIC-NODES" in found) is not all(slow_symmetric(group, on_node) for group in groups.groups())


def test_a_long_group_is_named_by_its_first_ranks() -> None:
    """No number is cut in its middle."""
    module = module_of(gathered("g", braces([[*range(90, 130), 1000]])))
    found = one_of(problems_in(module, target="trn2", ranks_per_node=64), "NEU-SYMMETRIC-NODES")
    assert (
        "found 90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100, 101, 102, 103, 104, 105 and 25 more; pick" in found.message
    )


@pytest.mark.parametrize(
    ("target", "lnc", "odd"),
    [
        ("trn1", None, True),
        ("trn2", None, False),
        ("trn2", 2, False),
        ("trn2", 1, False),
        ("trn3", None, False),
        ("inf2", None, False),
    ],
)
def test_ranks_per_node_follow_from_the_machine(target: Target, lnc: int | None, odd: bool) -> None:
    """32 on trn1, 64 or 128 on trn2; where it is not known nothing is said."""
    module = module_of(gathered("g", "{{0,33},{1,32}}"))
    assert ("NEU-SYMMETRIC-NODES" in neuron_ids(problems_in(module, target=target, lnc=lnc))) is odd
    far = module_of(gathered("g", "{{0,65},{1,64}}"))
    assert ("NEU-SYMMETRIC-NODES" in neuron_ids(problems_in(far, target=target, lnc=lnc))) is (
        target == "trn1" or (target == "trn2" and lnc != 1)
    )


@pytest.mark.parametrize("size", range(1, 18))
def test_powers_of_two(size: int) -> None:
    """A size with more than one bit is noted, once for all collectives of a list."""
    ids = braces([[*range(size)]])
    lines = [f"{name} = f32[8] all-reduce(p), replica_groups={ids}, to_apply=add" for name in "ab"]
    found = [each for each in problems_in(module_of(*lines), target="trn2") if each.rule.id == "NEU-RDH-POW2"]
    assert [each.instructions for each in found] == [["a", "b"]] * (size.bit_count() > 1)
    assert all(each.severity == "note" for each in found)


def test_sends_and_recvs() -> None:
    """Each needs an id, and one that the other end has; transfers to the host are left out."""
    pair = [*lines_of("send", 7, 0), *lines_of("recv", 7, 1)]
    assert neuron_ids(problems_in(module_of(*pair), target="trn2")) == []
    bare = [line.replace(", channel_id=7", "") for line in pair]
    assert neuron_ids(problems_in(module_of(*bare), target="trn2")) == ["NEU-SEND-RECV-CHANNEL"] * 2
    host = [line.replace("channel_id=7", "channel_id=7, is_host_transfer=true") for line in pair[:3]]
    assert neuron_ids(problems_in(module_of(*host), target="trn2")) == []


def test_channels_of_jax_are_an_error_on_neuron() -> None:
    """One id of 1 for all is a note elsewhere."""
    lines = [gathered("a", "{{0,1}}", channel=1), *lines_of("all-reduce", 1, 1), *lines_of("all-reduce", 1, 2)]
    found = problems_in(module_of(*lines, header="num_partitions=2"), target="trn2")
    assert one_of(found, "channel-two-opcodes").severity == "note"
    assert one_of(found, "NEU-CHANNEL-MIXED-OPCODES").instructions == ["a", "x1", "x2"]
    assert one_of(found, "NEU-CHANNEL-DUP").instructions == ["x1", "x2"]


@pytest.mark.parametrize(
    ("opcode", "header", "changed"),
    [
        ("all-reduce", "replica_count=2", []),
        ("all-reduce", "", []),
        ("all-reduce", "replica_count=2, num_partitions=2", ["x1", "x2"]),
        ("all-to-all", "replica_count=2", ["x1", "x2"]),
        ("collective-broadcast", "replica_count=2, num_partitions=2", []),
    ],
)
def test_second_collectives_without_an_id(opcode: str, header: str, changed: list[str]) -> None:
    """The enforcer takes no id for one value; named is what would then join other devices."""
    more = {"all-reduce": ", to_apply=add", "all-to-all": ", dimensions={0}"}.get(opcode, "")
    lines = [f"x{n} = f32[8] {opcode}(p), replica_groups={{{{0,1}}}}{more}" for n in range(3)]
    found = [
        each
        for each in problems_in(module_of(*lines, header=header), target="trn2")
        if each.rule.id == "NEU-CHANNEL-DUP"
    ]
    assert [each.instructions for each in found] == [changed] * bool(changed)


@pytest.mark.parametrize(
    ("element", "operation", "known"),
    [("f32", "add", True), ("f32", "maximum", True), ("s32", "minimum", True), ("f32", "multiply", False),
     ("pred", "and", True), ("pred", "or", True), ("s32", "or", False), ("f32", "subtract", False)],
)  # fmt: skip
def test_reductions(element: str, operation: str, known: bool) -> None:
    """Sums, maxima and minima are known, and and and or of booleans are among them."""
    reducer = ADD.replace("add {", "both {").replace("add(", f"{operation}(").replace("f32", element)
    lines = [
        f"a = {element}[8] parameter(2)",
        f"r = {element}[8] all-reduce(a), replica_groups={{{{0,1}}}}, to_apply=both",
    ]
    found = neuron_ids(problems_in(module_of(*lines, before=reducer), target="trn2"))
    assert found == ["NEU-REDUCE-OP"] * (not known)


@pytest.mark.parametrize(("operation", "known"), [("add", True), ("multiply", False)])
def test_reductions_in_a_wider_type(operation: str, known: bool) -> None:
    """Compilers widen the operands of a reducer and narrow its result: what counts is what stands between."""
    reducer = f"""
wide {{
  x = bf16[] parameter(0)
  a = f32[] convert(x)
  y = bf16[] parameter(1)
  b = f32[] convert(y)
  c = f32[] {operation}(a, b)
  ROOT d = bf16[] convert(c)
}}
"""
    lines = ["a = bf16[8] parameter(2)", "r = bf16[8] all-reduce(a), replica_groups={{0,1}}, to_apply=wide"]
    found = problems_in(module_of(*lines, before=reducer), target="trn2")
    assert [each.message.partition("found ")[2] for each in found] == [f"{operation} in wide"] * (not known)
