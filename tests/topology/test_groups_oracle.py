"""Replica group text against XLA's own reader and printer, as jaxlib has them.

XLA ends the whole process on some texts, so it works in a process of its own; all texts go there in one module.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from math import prod

from commlens.topology import AxisRef, IotaReplicaGroupList, Mesh, MeshAxesReplicaGroupList, parse_replica_groups

_ORACLE = """
import json, re, sys
from jaxlib._hlo import hlo_module_from_text
lines = [f"  r{i} = f32[16] all-reduce(p), replica_groups={t}, to_apply=add" for i, t in enumerate(json.load(sys.stdin))]
text = "\\n".join([
    "HloModule m", "add {", "  a = f32[] parameter(0)", "  b = f32[] parameter(1)", "  ROOT c = f32[] add(a, b)", "}",
    "ENTRY e {", "  p = f32[16] parameter(0)", *lines, "  ROOT t = f32[16] negate(p)", "}",
])
printed = hlo_module_from_text(text).to_string()
found = dict(re.findall(r"%r([0-9]+) = .* replica_groups=(.*), to_apply", printed))
json.dump([found[str(i)] for i in range(len(lines))], sys.stdout)
"""

_SIZES = [(2,), (8,), (2, 4), (4, 6), (3, 2, 4), (2, 2, 2, 2), (6, 1, 4), (12, 2)]


def _perm(rng: random.Random, length: int) -> list[int]:
    return rng.sample(range(length), length)


def _iota_text(rng: random.Random) -> str:
    """An iota that is not canonical."""
    sizes = rng.choice(_SIZES)
    members = rng.choice([each for each in range(1, prod(sizes) + 1) if prod(sizes) % each == 0])
    perm = f"T({','.join(map(str, _perm(rng, len(sizes))))})" if len(sizes) > 1 else ""
    return f"[{prod(sizes) // members},{members}]<=[{','.join(map(str, sizes))}]{perm}"


def _mesh_text(rng: random.Random) -> str:
    """Axes and sub-axes of a mesh with some order of devices; groups of one device, which XLA's reader refuses, left out."""
    sizes = rng.choice(_SIZES)
    number = prod(sizes)
    perm = _perm(rng, len(sizes))
    shuffled = rng.sample(range(number), number)
    order = rng.choice([None, (sizes, perm), shuffled if shuffled != sorted(shuffled) else None])
    refs: list[AxisRef] = []
    for axis in _perm(rng, len(sizes)):
        parts = [(p, s) for p in range(1, sizes[axis]) for s in range(2, sizes[axis]) if sizes[axis] % (p * s) == 0]
        whole = not parts or rng.random() < 0.5
        refs.append(AxisRef(f"x{axis}") if whole else AxisRef(f"x{axis}", *rng.choice(parts)))
    mesh = Mesh([(f"x{axis}", size) for axis, size in enumerate(sizes)], order)
    groups = MeshAxesReplicaGroupList(mesh, refs[: rng.randint(1, len(refs))])
    return str(groups) if groups.num_devices_per_group > 1 else str(MeshAxesReplicaGroupList(mesh, refs))


def _list_text(rng: random.Random) -> str:
    """Groups in any order, with gaps in the text."""
    members = rng.choice([1, 2, 4])
    rows = [f"{{ {', '.join(map(str, rng.sample(range(64), members)))} }}" for _ in range(rng.randint(0, 3))]
    return f"{{{', '.join(rows)}}}"


def test_texts_are_read_and_printed_as_xla_does() -> None:
    """Three hundred texts of all kinds, read by XLA and by us, print the same canonical text."""
    rng = random.Random(20)
    texts = [make(rng) for make in (_iota_text, _mesh_text, _list_text) for _ in range(100)]
    done = subprocess.run(
        [sys.executable, "-c", _ORACLE], input=json.dumps(texts), capture_output=True, text=True, check=True
    )
    assert [str(parse_replica_groups(text)) for text in texts] == json.loads(done.stdout)


def test_kinds_are_as_many() -> None:
    """The texts above hold iotas and meshes that say something: transposed ones, sub-axes, orders of devices."""
    rng = random.Random(20)
    iotas = [parse_replica_groups(_iota_text(rng)) for _ in range(100)]
    meshes = [_mesh_text(rng) for _ in range(100)]
    assert sum(isinstance(each, IotaReplicaGroupList) and not each.tile.is_identity() for each in iotas) > 20
    assert sum(":(" in text for text in meshes) > 20
    assert sum("device_ids=([" in text for text in meshes) > 10
    assert sum("device_ids=(" in text and "([" not in text for text in meshes) > 10
