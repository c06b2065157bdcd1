"""The spellings of collectives that are met in the wild, one by one: what each of them is.

The numbers are those of the list of syntactic variants that these modules were made from.
"""

from __future__ import annotations

import pytest

from commlens.hlo.collectives import signature_of
from commlens.hlo.discovery import discover
from commlens.hlo.group_modes import group_mode
from commlens.hlo.model import UnreadableError
from forms import module, read

WRAPPED = """wrapped_rs.7 {
  q = f32[16,4]{1,0} parameter(0)
  ROOT rs.7 = f32[4,4]{1,0} reduce-scatter(q), channel_id=3, replica_groups=[2,4]<=[8], use_global_device_ids=true, dimensions={0}, to_apply=plus
}

"""


def test_01_generic_async_start_is_the_collective_it_wraps() -> None:
    """One row per start, none for the wrapped line, the update and the done."""
    body = """  b = f32[16,4]{1,0} parameter(1)
  go = ((f32[16,4]{1,0}), f32[4,4]{1,0}, u32[]) async-start(b), calls=wrapped_rs.7, frontend_attributes={k="start"}
  mid = ((f32[16,4]{1,0}), f32[4,4]{1,0}, u32[]) async-update(go)
  ROOT end = f32[4,4]{1,0} async-done(mid)"""
    assert read(body, before=WRAPPED) == [("go", "reduce-scatter", True, 256, 64, "[2,4]<=[8]")]


def test_02_sugared_async_start() -> None:
    """The payload is element 1 of the nested tuple."""
    body = """  b = f32[16,4]{1,0} parameter(1)
  go = ((f32[16,4]{1,0}), f32[4,4]{1,0}) reduce-scatter-start(b), channel_id=3, replica_groups=[2,4]<=[8], use_global_device_ids=true, dimensions={0}, to_apply=plus
  ROOT end = f32[4,4]{1,0} reduce-scatter-done(go)"""
    assert read(body) == [("go", "reduce-scatter", True, 256, 64, "[2,4]<=[8]")]


def test_03_results_of_starts_count_once() -> None:
    """All-reduce has the plain shape, the others operands and results, with or without contexts."""
    body = """  b = f32[4]{0} parameter(1)
  g0 = (f32[8]{0}, f32[64]{0}) all-gather-start(a), channel_id=1, replica_groups=[1,8]<=[8], dimensions={0}, use_global_device_ids=true
  g1 = f32[64]{0} all-gather-done(g0)
  r0 = f32[8]{0} all-reduce-start(a), channel_id=2, replica_groups=[1,8]<=[8], use_global_device_ids=true, to_apply=plus
  r1 = f32[8]{0} all-reduce-done(r0)
  p0 = (f32[8]{0}, f32[8]{0}, u32[]{:S(2)}, u32[]{:S(2)}) collective-permute-start(a), channel_id=3, source_target_pairs={{0,1},{1,0}}
  p1 = f32[8]{0} collective-permute-done(p0)
  m0 = ((f32[8]{0}, f32[4]{0}), (f32[64]{0}, f32[32]{0})) all-gather-start(a, b), channel_id=4, replica_groups=[1,8]<=[8], dimensions={0}, use_global_device_ids=true
  m1 = (f32[64]{0}, f32[32]{0}) all-gather-done(m0)"""
    assert read(body) == [
        ("g0", "all-gather", True, 32, 256, "[1,8]<=[8]"),
        ("r0", "all-reduce", True, 32, 32, "[1,8]<=[8]"),
        ("p0", "collective-permute", True, 32, 32, "{{0,1},{1,0}}"),
        ("m0", "all-gather", True, 48, 384, "[1,8]<=[8]"),
    ]


def test_02_sugared_async_start_of_an_all_reduce() -> None:
    """What XLA prints for an async-start around an all-reduce has the dedicated name and the nested shape."""
    body = """  b = f32[4]{0} parameter(1)
  r0 = ((f32[8]{0}), f32[8]{0}) all-reduce-start(a), replica_groups={{0,1}}, to_apply=plus
  r1 = f32[8]{0} all-reduce-done(r0)
  v0 = ((f32[8]{0}, f32[4]{0}), (f32[8]{0}, f32[4]{0}), u32[]) all-reduce-start(a, b), replica_groups={{0,1}}, to_apply=plus
  v1 = (f32[8]{0}, f32[4]{0}) all-reduce-done(v0)
  d0 = (f32[8]{0}, f32[4]{0}) all-reduce-start(a, b), replica_groups={{0,1}}, to_apply=plus
  d1 = (f32[8]{0}, f32[4]{0}) all-reduce-done(d0)"""
    assert read(body) == [
        ("r0", "all-reduce", True, 32, 32, "{{0,1}}"),
        ("v0", "all-reduce", True, 48, 48, "{{0,1}}"),
        ("d0", "all-reduce", True, 48, 48, "{{0,1}}"),
    ]


def test_04_05_06_every_spelling_of_groups() -> None:
    """Mesh axes, iota and lists, empty and absent, in any order and with blanks."""
    body = """  x1 = f32[32]{0} all-gather(a), replica_groups=mesh['dp'=2,'tp'=4] {'tp'}, dimensions={0}
  x2 = f32[32]{0} all-gather(a), replica_groups=[2,4]<=[4,2]T(1,0), dimensions={0}
  x3 = f32[8]{0} all-reduce(a), replica_groups={}, to_apply=plus
  x4 = f32[8]{0} all-reduce(a), to_apply=plus
  x5 = f32[8]{0} all-reduce(a), replica_groups={{ 2, 3 }, { 1, 0 }}, to_apply=plus
  x6 = f32[16]{0} all-gather(a), replica_groups=mesh['p'=2,'q'=2], device_ids=(3,1,2,0) {'q'}, dimensions={0}
  x7 = f32[16]{0} all-gather(a), replica_groups=mesh['x'=8] {'x':(2)2}, dimensions={0}"""
    assert [row[-1] for row in read(body)] == [
        "mesh['dp'=2,'tp'=4] {'tp'}",
        "[2,4]<=[4,2]T(1,0)",
        "{}",
        "{}",
        "{{2,3},{1,0}}",
        "mesh['p'=2,'q'=2], device_ids=(3,1,2,0) {'q'}",
        "mesh['x'=8] {'x':(2)2}",
    ]


def test_08_09_10_quotes_and_braces_mislead_nobody() -> None:
    """Braces in JSON strings, escaped quotes, arrows and line breaks inside op_name."""
    body = r"""  r0 = f32[8]{0} all-reduce-start(a), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=plus, backend_config={"collective_backend_config":{"is_sync":true,"note":"\nRing{c:2}\n}{"}}
  r1 = f32[8]{0} all-reduce-done(r0)
  x = f32[8]{0} all-reduce(a), replica_groups={{2,3}}, to_apply=plus, metadata={op_name="jit(f)/psum[axis_name=(\'i\',) groups={{9,9}} msg=\"}{\"] -> {" stack_frame_id=3}
  y = f32[8]{0} all-reduce(x), replica_groups={{4,5}}, to_apply=plus, metadata={op_name="one
  ROOT z = f32[8]{0} all-gather(x)
two"}"""
    assert [(row[0], row[-1]) for row in read(body)] == [("r0", "{{0,1}}"), ("x", "{{2,3}}"), ("y", "{{4,5}}")]


def test_11_names_lie() -> None:
    """Only the word behind the shape is the opcode."""
    body = """  all-gather = f32[64]{0} all-gather(a), replica_groups=[1,8]<=[8], dimensions={0}
  all-reduce.4 = f32[64]{0} negate(all-gather)
  %collective-permute-done = f32[64]{0} add(all-reduce.4, all-gather), metadata={op_name="x/all-reduce(y)"}
  while = f32[64]{0} copy(%collective-permute-done)
  ROOT send = f32[64]{0} negate(while)"""
    assert [row[:2] for row in read(body)] == [("all-gather", "all-gather")]


def test_12_13_14_layouts_and_operands() -> None:
    """Tiles and memory spaces, operands with and without types, long tuples with index comments."""
    body = """  b = u4[4,8]{1,0} parameter(1)
  x = f32[64]{0:T(8,128)(2,1)S(1)} all-gather(f32[8]{0:T(8,128)(2,1)} a), replica_groups=[1,8]<=[8], dimensions={0}
  u = u4[32,8]{1,0:E(4)} all-gather(b), replica_groups=[1,8]<=[8], dimensions={0}
  %big = (f32[2]{0}, f32[3]{0}, f32[4]{0}, f32[5]{0}, f32[6]{0}, /*index=5*/f32[7]{0}) all-reduce(f32[2]{0} %p0, f32[3]{0} %p1, f32[4]{0} %p2, f32[5]{0} %p3, f32[6]{0} %p4, /*index=5*/f32[7]{0} %p5), replica_groups={}, constrain_layout=true, to_apply=plus"""
    assert [row[3:5] for row in read(body)] == [(32, 256), (16, 128), (108, 108)]


def test_16_a_scalar_that_rides_along_is_a_token() -> None:
    """In a variadic all-gather the operand that keeps its shape is not gathered; in an all-reduce it must be said."""
    body = """  tok = bf16[] parameter(1)
  ag = (f32[64]{0}, bf16[]) all-gather(a, tok), replica_groups={{0,1,2,3,4,5,6,7}}, dimensions={0}
  ar = (f32[8]{0}, bf16[]) all-reduce(a, tok), replica_groups={}, to_apply=plus
  at = (f32[8]{0}, bf16[]) all-reduce(a, tok), replica_groups={}, to_apply=plus, frontend_attributes={has_token="1"}"""
    found = discover(module(body))
    assert [site.signature.token_operands for site in found.sites] == [(1,), (), (1,)]


SCATTER = """%all-reduce-scatter.3 (q: f32[32]) -> f32[8] {
  %q = f32[32]{0:T(128)} parameter(0)
  %all-reduce.9 = f32[32]{0:T(128)} all-reduce(%q), channel_id=5, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=plus
  %tbl = u32[4]{0} constant({0, 8, 16, 24})
  %pid = u32[] partition-id()
  %o = u32[1]{0} dynamic-slice(%tbl, %pid), dynamic_slice_sizes={1}
  %os = u32[] reshape(%o)
  ROOT %ds = f32[8]{0:T(128)} dynamic-slice(%all-reduce.9, %os), dynamic_slice_sizes={8}
}

"""


def test_17_a_custom_fusion_of_all_reduce_and_slice_is_a_reduce_scatter() -> None:
    """It bears the fusion's name and shapes, and the all-reduce inside is no row."""
    body = "  b = f32[32]{0} parameter(1)\n  ROOT f = f32[8]{0:T(128)S(1)} fusion(b), kind=kCustom, calls=%all-reduce-scatter.3"
    assert read(body, before=SCATTER) == [("f", "reduce-scatter", False, 128, 32, "{{0,1,2,3}}")]
    found = discover(module(body, before=SCATTER))
    assert (found.sites[0].signature.via, found.sites[0].signature.dimensions) == ("all-reduce-scatter", (0,))


def test_17_another_fusion_is_seen_through() -> None:
    """A fusion of another kind shows the all-reduce at its own line, as often as the fusion runs."""
    body = "  b = f32[32]{0} parameter(1)\n  ROOT f = f32[8]{0} fusion(b), kind=kLoop, calls=%all-reduce-scatter.3"
    found = discover(module(body, before=SCATTER))
    assert [(site.name, site.signature.opcode) for site in found.sites] == [("all-reduce.9", "all-reduce")]
    assert found.call_graph.executions("all-reduce-scatter.3") == 1


def test_28_29_39_40_other_collectives() -> None:
    """All-to-all in both forms, permutes of several operands, ragged-all-to-all, collective-broadcast."""
    body = """  b = f32[4]{0} parameter(1)
  x = f32[8]{0} all-to-all(a), replica_groups={{0,1,2,3}}, dimensions={0}
  y = (f32[4]{0}, f32[4]{0}) all-to-all(b, b), replica_groups={{1,2},{3,0}}
  z = (f32[8]{0}, f32[4]{0}) collective-permute(a, b), source_target_pairs={{0,0},{1,3},{3,1}}
  w = f32[8]{0} collective-permute(a), source_target_pairs={}
  r = f32[64,8] ragged-all-to-all(a, a, b, b, b, b), channel_id=1, replica_groups=[2,4]<=[8]
  c = f32[8]{0} collective-broadcast(a), replica_groups={{3,0,1,2}}, has_dynamic_root=false"""
    assert [row[1:] for row in read(body)] == [
        ("all-to-all", False, 32, 32, "{{0,1,2,3}}"),
        ("all-to-all", False, 32, 32, "{{1,2},{3,0}}"),
        ("collective-permute", False, 48, 48, "{{0,0},{1,3},{3,1}}"),
        ("collective-permute", False, 32, 32, "{}"),
        ("ragged-all-to-all", False, 128, 2048, "[2,4]<=[8]"),
        ("collective-broadcast", False, 32, 32, "{{3,0,1,2}}"),
    ]


def test_30_send_and_recv_are_two_rows() -> None:
    """A send has operands, a recv results, both the pairs of their frontend attribute; done forms are none."""
    body = """  tk = token[] after-all()
  r = (f32[8]{0}, u32[], token[]) recv(tk), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1}, {1,2}}"}
  s = (f32[8]{0}, u32[], token[]) send(a, tk), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2}}}
  rd = (f32[8]{0}, token[]) recv-done(r), channel_id=1
  sd = token[] send-done(s), channel_id=1
  h = (f32[8]{0}, u32[], token[]) send(a, tk), channel_id=9, is_host_transfer=true"""
    assert read(body) == [
        ("r", "recv", False, 0, 32, "{{0,1},{1,2}}"),
        ("s", "send", False, 32, 0, "{{0,1},{1,2}}"),
        ("h", "send", False, 32, 0, "None"),
    ]
    assert [site.signature.is_host_transfer for site in discover(module(body)).sites] == [False, False, True]


def test_43_a_wrapped_computation_that_is_shared() -> None:
    """Two starts are two rows; a fusion that calls the same computation adds the collective's own row."""
    wrapped = """wrapped_a2a {
  q = f32[8]{0} parameter(0)
  ROOT t = f32[8]{0} all-to-all(q), replica_groups={{0,1}}, dimensions={0}
}

"""
    body = """  st.1 = ((f32[8]{0}), f32[8]{0}, u32[]) async-start(a), calls=wrapped_a2a
  dn.1 = f32[8]{0} async-done(st.1)
  st.2 = ((f32[8]{0}), f32[8]{0}, u32[]) async-start(dn.1), calls=wrapped_a2a
  dn.2 = f32[8]{0} async-done(st.2)"""
    assert [row[0] for row in read(body, before=wrapped)] == ["st.1", "st.2"]
    body += "\n  f = f32[8]{0} fusion(a), kind=kLoop, calls=wrapped_a2a"
    found = discover(module(body, before=wrapped))
    assert [site.name for site in found.sites] == ["t", "st.1", "st.2"]
    assert found.call_graph.executions("wrapped_a2a") == 1


def test_async_starts_of_other_things_are_no_rows() -> None:
    """A slice or a copy that runs asynchronously does not communicate."""
    wrapped = "wrapped_slice {\n  q = f32[8]{0} parameter(0)\n  ROOT t = f32[4]{0} slice(q), slice={[0:4]}\n}\n\n"
    body = """  st = ((f32[8]{0}), f32[4]{0}, u32[]) async-start(a), calls=wrapped_slice
  c = (f32[8]{0}, f32[8]{0}, u32[]) copy-start(a)
  s = ((f32[8]{0}), f32[4]{0}, s32[]) slice-start(a), slice={[0:4]}"""
    assert read(body, before=wrapped) == []


def test_44_spellings_of_2018() -> None:
    """cross-replica-sum is all-reduce; group numbers per replica become groups."""
    body = """  k = f32[2,2]{1,0} constant(f32[2,2] {{1, 2}, {3, 4}})
  x = f32[8]{0} cross-replica-sum(a), replica_group_ids={0,0,1,1}, barrier="b", to_apply=plus
  ROOT y = f32[8]{0} cross-replica-sum(x), replica_groups={{0,1}}, all_reduce_id=1, to_apply=plus"""
    found = discover(module(body))
    assert [(site.signature.opcode, str(site.signature.groups), site.channel_id) for site in found.sites] == [
        ("all-reduce", "{{0,1},{2,3}}", None),
        ("all-reduce", "{{0,1}}", 1),
    ]


def test_jax_custom_calls_are_read_from_their_json() -> None:
    """JAX 0.12 writes asynchronous collectives as custom calls before optimisation."""
    body = """  g = f32[32]{0} custom-call(a), custom_call_target="all-gather-start", frontend_attributes={async_collective_config={"all_gather_dimension": 0, "replica_groups": [[0, 1, 2, 3], [4, 5, 6, 7]], "use_global_device_ids": true, "channel_id": 1}}
  d = f32[32]{0} custom-call(g), custom_call_target="all-gather-done"
  p = f32[8]{0} custom-call(a), custom_call_target="collective-permute-start", frontend_attributes={async_collective_config={"permutation": [[0, 1], [1, 0]], "channel_id": 1}}"""
    assert read(body) == [
        ("g", "all-gather", True, 32, 128, "{{0,1,2,3},{4,5,6,7}}"),
        ("p", "collective-permute", True, 32, 32, "{{0,1},{1,0}}"),
    ]


def test_axis_names_of_any_script() -> None:
    """A mesh axis is called what the program calls it."""
    (row,) = read("  x = f32[16]{0} all-gather(a), replica_groups=mesh['δ'=2,'模型'=4] {'模型'}, dimensions={0}")
    assert row[-1] == "mesh['δ'=2,'模型'=4] {'模型'}"


@pytest.mark.parametrize(
    ("attributes", "mode"),
    [
        ("", "kCrossReplica"),
        (", channel_id=1", "kCrossReplicaAndPartition"),
        (", channel_id=1, use_global_device_ids=true", "kFlattenedID"),
    ],
)
def test_group_mode_of_an_instruction(attributes: str, mode: str) -> None:
    """An absent flag is false for the opcodes that carry one; the forbidden combination is an error."""
    found = module(f"  x = f32[8]{{0}} all-reduce(a){attributes}, to_apply=plus")
    assert str(group_mode(found.instruction("%x"))) == mode
    assert found.instruction("x").replica_groups.groups() == []


def test_group_mode_of_opcodes_without_the_flag() -> None:
    """all-to-all with a channel is cross-partition, and the flag without a channel is refused."""
    found = module(
        "  x = f32[8]{0} all-to-all(a), channel_id=1, dimensions={0}\n"
        "  y = f32[8]{0} all-reduce(a), use_global_device_ids=true, to_apply=plus"
    )
    assert str(group_mode(found.instruction("x"))) == "kCrossPartition"
    with pytest.raises(ValueError, match="Invalid combination of has_channel_id and use_global_device_ids"):
        group_mode(found.instruction("y"))


@pytest.mark.parametrize("line", ["x = f32[8]{0} negate(a)", "x = f32[8]{0} all-reduce-done(a)"])
def test_what_is_no_collective_has_no_signature(line: str) -> None:
    """Asking for the signature of anything else is refused."""
    with pytest.raises(UnreadableError, match="opcode of a collective"):
        signature_of(module(f"  {line}").instruction("x"))
