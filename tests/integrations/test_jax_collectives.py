"""``collectives``: what JAX functions communicate, in a process that pretends to have eight devices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from commlens import CommlensError
from commlens.integrations.jax import collectives

ROOT = Path(__file__).resolve().parent.parent.parent

SCRIPT = """
import json, os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"
from functools import partial
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from commlens import expect
from commlens.integrations.jax import collectives

devices = np.array(jax.devices())
plain = Mesh(devices.reshape(2, 4), ("data", "model"))
turned = Mesh(devices[[5, 0, 7, 2, 1, 4, 3, 6]].reshape(2, 4), ("data", "model"))
paired = Mesh(devices[[0, 4, 1, 5, 2, 6, 3, 7]].reshape(2, 4), ("data", "model"))

def like(mesh, shape, *spec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))

def matmul(x, w):
    return x @ w

def rows(report):
    return [[row.opcode, row.axes, row.participants, row.wire_bytes_per_device, row.trip_count] for row in report.collectives]

def message(fails, *args, **kwargs):
    try:
        fails(*args, **kwargs)
    except ValueError as error:
        return str(error)

@partial(jax.jit, static_argnames="trips")
def loop(x, w, *, trips):
    return jax.lax.fori_loop(0, trips, lambda _, x: x @ w, x)

def pair(mesh):
    return like(mesh, (8, 16), "data", "model"), like(mesh, (16, 4), "model", None)

square = like(plain, (16, 16), "model", None)
arrays = [jax.device_put(jnp.ones(each.shape), each.sharding) for each in pair(plain)]
jitted = jax.jit(matmul)
lowered = jitted.lower(*pair(plain))
reduced = lambda axis: jax.shard_map(lambda x: jax.lax.psum(x, axis), mesh=turned, in_specs=P("data", "model"), out_specs=P(), check_vma=False)
forms = {
    "function": collectives(matmul, *pair(plain), mesh=plain),
    "jitted": collectives(jitted, *pair(plain), mesh=plain),
    "arrays": collectives(jitted, *arrays, mesh=plain),
    "keywords": collectives(jitted, pair(plain)[0], w=pair(plain)[1], mesh=plain),
    "traced": collectives(jitted.trace(*pair(plain)), mesh=plain),
    "lowered": collectives(lowered, mesh=plain),
    "compiled": collectives(lowered.compile(), mesh=plain),
    "sizes": collectives(matmul, *pair(plain), mesh={"data": 2, "model": 4}),
    "turned": collectives(matmul, *pair(turned), mesh=turned),
    "abstract": collectives(matmul, *pair(plain), mesh=plain.abstract_mesh),
}
expect(jitted, plain, args=pair(plain)).count("all-reduce", 1, axes="model").same_as(forms["turned"])
print(json.dumps({
    "forms": {name: rows(report) for name, report in forms.items()},
    "none": [row.axes for row in collectives(matmul, *pair(plain)).collectives],
    "other mesh": rows(collectives(matmul, *pair(paired), mesh=plain)),
    "irregular": rows(collectives(matmul, *pair(turned), mesh=plain)),
    "shard_map": [rows(collectives(reduced(axis), like(turned, (8, 16), "data", "model"), mesh=turned))[0][1]
                  for axis in ("data", "model", ("data", "model"))],
    "static": rows(collectives(loop, pair(plain)[0], square, trips=5, mesh=plain)),
    "pmap": rows(collectives(jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i"), jnp.ones((8, 4)), mesh=Mesh(devices, "i"))),
    "unsharded": message(collectives, matmul, jnp.ones((4, 4)), jnp.ones((4, 4)), mesh=plain),
    "small mesh": message(collectives, matmul, *pair(plain), mesh=Mesh(devices[:4], "x")),
    "other devices": message(collectives, matmul, *pair(Mesh(devices[:4].reshape(2, 2), ("data", "model"))), mesh=Mesh(devices[4:], "x")),
    "no function": message(collectives, 3, mesh=plain),
    "no function to compile": message(collectives, 42, 1),
    "arguments": message(collectives, lowered, 1, mesh=plain),
}))
"""

GROUPS = [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.fixture(scope="module")
def found() -> dict[str, object]:
    """Return what the script found, run once."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    child = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300, check=False, env=env
    )
    assert child.returncode == 0, child.stderr[-3000:]
    return json.loads(child.stdout.splitlines()[-1])


@pytest.mark.xla
def test_every_form_of_a_function_gives_one_answer(found: dict[str, dict[str, object]]) -> None:
    """A matmul over a split dimension sums 64 B over model, whichever way it is given and in whatever order devices lie."""
    assert set(map(json.dumps, found["forms"].values())) == {json.dumps([["all-reduce", ["model"], GROUPS, 96, 1]])}
    assert len(found["forms"]) == 10
    assert found["shard_map"] == [["data"], ["model"], ["data", "model"]]


@pytest.mark.xla
def test_axes_are_those_of_the_devices_on_the_mesh_that_is_asked(found: dict[str, list[list[object]]]) -> None:
    """Named on another order of the same devices, the groups of the program run along what they run along there.

    The first four ids are the devices 0, 4, 1, 5: on the other mesh (0, 0), (1, 0), (0, 1), (1, 1).
    """
    assert [row[:3] for row in found["other mesh"]] == [["all-reduce", ["model:(2)2", "data"], GROUPS]]
    assert [row[:3] for row in found["irregular"]] == [["all-reduce", None, GROUPS]]


@pytest.mark.xla
def test_static_arguments_loops_and_replicas_count(found: dict[str, list[list[object]]]) -> None:
    """A jitted function keeps its static arguments; a loop of 5 runs 5 times; pmap has an axis as well."""
    assert [[row[1], row[4]] for row in found["static"]] == [[["model"], 5]]
    assert [row[:3] for row in found["pmap"]] == [["all-reduce", ["i"], [list(range(8))]]]
    assert found["none"] == [None]  # without a mesh nobody names axes


@pytest.mark.xla
@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            "unsharded",
            "expected a program for the 8 devices of the mesh, found jit_matmul compiled for 1; give arguments",
        ),
        ("small mesh", "expected a program for the 4 devices of the mesh, found jit_matmul compiled for 8"),
        ("other devices", "found device 0 outside it: name its axes on the mesh that its arguments are sharded on"),
        ("no function", "found int"),
        ("no function to compile", "expected a function to compile for the arguments, found int"),
        ("arguments", "expected arguments for a jitted function alone, found some for Lowered"),
    ],
)
def test_what_does_not_fit_is_said(found: dict[str, str], case: str, message: str) -> None:
    """Each misunderstanding has a sentence that says what would be right."""
    assert message in found[case]


def test_without_jax_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain function needs JAX to be compiled."""
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(CommlensError, match=r"expected JAX to compile .* install commlens\[jax\]"):
        collectives(lambda: None)
