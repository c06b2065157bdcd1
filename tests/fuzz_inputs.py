"""Damaged inputs for fuzzing: real modules and specs, broken in the ways that files and people break them.

Everything is drawn from a seed, so that a failure is found again by its number.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DATA: Final = Path(__file__).parent / "data" / "protos"

TOKENS: Final = tuple(
    rb"""{ } ( ) [ ] , = " ' /* */ // -> %  ROOT ENTRY HloModule \  \n } \x00 <=[8] T(1,0) {{0,1},{2,3}} {} [2,4]<=[8]
    [0,0]<=[0] 9223372036854775808 -1 mesh['a'=2,'b'=4] {'a'} all-reduce( all-gather-start( reduce-scatter( async-start(
    all-to-all( custom-call( fusion( while( , channel_id=1 , dimensions={0} , to_apply=add , replica_groups={}
    , frontend_attributes={stream_id="0"} metadata={op_name="x f32[8]{0} (f32[8]{0},u32[]) bf16[ s4[3] token[]""".split()
)

HAND_WRITTEN: Final = b"""HloModule m, num_partitions=8

add { a = f32[] parameter(0)
  b = f32[] parameter(1) ROOT c = f32[] add(a, b) }

ENTRY main {
  p = f32[8]{0} parameter(0) /* all-reduce( in a comment */
  x = f32[8]{0} all-reduce(p), channel_id=1, replica_groups=[2,4]<=[8], use_global_device_ids=true, to_apply=add
  y = f32[64]{0} all-gather(x), channel_id=2, replica_groups=mesh['d'=2,'m'=4] {'d','m'}, dimensions={0},
      use_global_device_ids=true, metadata={op_name="all-reduce(\\"" }
  s = (f32[8]{0}, f32[8]{0}) collective-permute-start(p), source_target_pairs={{0,1},{1,0}}
  d = f32[8]{0} collective-permute-done(s)
  ROOT r = f32[8]{0} all-to-all(d), replica_groups={{0,1,2,3,4,5,6,7}}, dimensions={0}
}
"""

LOGS: Final = (
    b"""I0000 step 41 took 3.2 s
E0000 rendezvous.cc:40] may be stuck: RendezvousKey{run_id=RunId: 7, global_devices=[0, 1, 2, 3],
  num_local_participants=4, collective_op_kind=cross_module, op_id=1}
""",
    b"""[host3]: acquire clique for rank 2; clique=CliqueKey{devices=[0,1]; is_p2p=0; groups=[[0,1],[2,3]]; root_device=-1}
\x1b[31mERROR: all-reduce with channel_id=12 timed out\x1b[0m
failed to run hlo_op=all-gather-done.4
""",
    b"""NCCL INFO comm 0x7f rank 3 nranks 8 - Init COMPLETE
replica_groups does not have myself 3
Inconsistent worker count across topologies: 2 vs 4
""",
)
"""Logs of hangs and errors, as machines print them."""

SPECS: Final = (
    b"{{0,1},{2,3}}",
    b"[4,2]<=[2,4]T(1,0)",
    b"mesh['data'=2,'model'=4] {'data':(1)2}",
    b"mesh['p'=2,'q'=2], device_ids=(3,1,2,0) {'q'}",
    b"@mesh<data=2,model=4> {data}",
    b"{devices=[2,1,4]<=[8] last_tile_dims={manual,replicated}}",
    b"{{0,1},{1,0}}",
)


def text_seeds() -> list[bytes]:
    """Return texts of real modules, and one that somebody wrote by hand."""
    return [HAND_WRITTEN, *(path.read_bytes() for path in sorted(DATA.glob("*.txt")))]


def proto_seeds() -> list[bytes]:
    """Return real modules as binary protos."""
    return [path.read_bytes() for path in sorted(DATA.glob("*.pb"))]


def damaged(seeds: Sequence[bytes], seed: int) -> bytes:
    """Return one of the inputs, broken in one to four ways.

    Args:
        seeds: whole inputs.
        seed: which damage to do.
    """
    draw = random.Random(seed)
    data = draw.choice(seeds)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        data = draw.choice(_DAMAGES)(data, seeds, draw)
    return data


def _span(data: bytes, draw: random.Random) -> tuple[int, int]:
    start = draw.randrange(len(data) + 1)
    return start, min(len(data), start + draw.choice((1, 1, 2, 8, 40, 400)))


def _flip(data: bytes, _seeds: Sequence[bytes], draw: random.Random) -> bytes:
    if not data:
        return data
    position = draw.randrange(len(data))
    return data[:position] + bytes([data[position] ^ 1 << draw.randrange(8)]) + data[position + 1 :]


def _cut(data: bytes, _seeds: Sequence[bytes], draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _remove(data: bytes, _seeds: Sequence[bytes], draw: random.Random) -> bytes:
    start, end = _span(data, draw)
    return data[:start] + data[end:]


def _repeat(data: bytes, _seeds: Sequence[bytes], draw: random.Random) -> bytes:
    start, end = _span(data, draw)
    return data[:end] + data[start:end] * draw.choice((1, 1, 3)) + data[end:]


def _insert(data: bytes, _seeds: Sequence[bytes], draw: random.Random) -> bytes:
    position = draw.randrange(len(data) + 1)
    return data[:position] + draw.choice(TOKENS) + data[position:]


def _overwrite(data: bytes, _seeds: Sequence[bytes], draw: random.Random) -> bytes:
    start, end = _span(data, draw)
    return data[:start] + draw.randbytes(end - start) + data[end:]


def _transplant(data: bytes, seeds: Sequence[bytes], draw: random.Random) -> bytes:
    other = draw.choice(seeds)
    start, end = _span(other, draw)
    position = draw.randrange(len(data) + 1)
    return data[:position] + other[start:end] + data[position:]


def _swap_lines(data: bytes, _seeds: Sequence[bytes], draw: random.Random) -> bytes:
    lines = data.split(b"\n")
    first, second = draw.randrange(len(lines)), draw.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]
    return b"\n".join(lines)


_DAMAGES: Final[tuple[Callable[[bytes, Sequence[bytes], random.Random], bytes], ...]] = (
    _flip,
    _cut,
    _remove,
    _repeat,
    _insert,
    _insert,
    _overwrite,
    _transplant,
    _swap_lines,
)
