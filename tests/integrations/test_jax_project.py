"""A project of its own that pins the communication of three JAX programs: its tests fail when a sharding changes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.xla

ROOT = Path(__file__).resolve().parent.parent.parent

CONFTEST = """
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"
"""

PROGRAMS = """
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

LAYERS, STEPS = 6, 11

def mesh(**axes):
    return Mesh(np.array(jax.devices()).reshape(tuple(axes.values())), tuple(axes))

def like(mesh, shape, *spec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))

def tensor_parallel(x, up, down):
    return jax.nn.relu(x @ up) @ down

def data_parallel(mesh):
    def layer(x, weight):
        whole = jax.lax.with_sharding_constraint(weight, NamedSharding(mesh, P()))
        return jnp.tanh(x @ whole), None

    def loss(weights, x):
        return jnp.mean(jax.lax.scan(layer, x, weights)[0] ** 2)

    return jax.jit(jax.grad(loss), out_shardings=NamedSharding(mesh, P(None, "data", None)))

def pipeline(mesh, shift):
    def step(x, _):
        return jax.lax.ppermute(jnp.tanh(x), "stage", [(i, i + shift) for i in range(8 - shift)]), None

    def stages(x):
        return jax.lax.scan(step, x, None, length=STEPS)[0]

    return jax.shard_map(stages, mesh=mesh, in_specs=P("stage"), out_specs=P("stage"), check_vma=False)
"""

TESTS = """
import pytest

from commlens import expect
from commlens.integrations.jax import collectives
from programs import LAYERS, STEPS, data_parallel, like, mesh, pipeline, tensor_parallel

@pytest.mark.parametrize("tokens", [16, 64])
def test_tensor_parallel(commlens_golden, tokens):
    grid = mesh(data=2, model=4)
    weights = like(grid, (32, 64), None, "model"), like(grid, (64, 32), "model", None)
    report = collectives(tensor_parallel, like(grid, (tokens, 32), "data", None), *weights, mesh=grid)
    expect(report).count("all-reduce", 1, axes="model").only("all-reduce").none(axes="data")
    commlens_golden(report)

def test_data_parallel(commlens_golden):
    grid = mesh(data=2, model=4)
    args = like(grid, (LAYERS, 32, 32), None, "data", None), like(grid, (16, 32), "data", None)
    claims = expect(data_parallel(grid), grid, args=args)
    claims.runs("all-gather", axes="data", at_least=LAYERS).budget({"data": LAYERS * 32 * 32 * 4 * 3})
    commlens_golden(claims)

def test_pipeline(commlens_golden):
    ring = mesh(stage=8)
    report = collectives(pipeline(ring, 1), like(ring, (8, 16), "stage", None), mesh=ring)
    expect(report).only("collective-permute").bytes("collective-permute", STEPS * 16 * 4)
    commlens_golden(report)
"""

GOLDEN = {
    "test_steps.test_tensor_parallel-16": ["mesh: data=2, model=4", "1 all-reduce model 2 of 4 f32 1,024 -> 1,024 1"],
    "test_steps.test_tensor_parallel-64": ["mesh: data=2, model=4", "1 all-reduce model 2 of 4 f32 4,096 -> 4,096 1"],
    "test_steps.test_data_parallel": [
        "mesh: data=2, model=4",
        "1 all-gather data 4 of 2 f32 2,048 -> 4,096 6",
        "1 all-reduce data 4 of 2 f32 4,096 -> 4,096 6",
    ],
    "test_steps.test_pipeline": [
        "mesh: stage=8",
        "1 collective-permute stage {{0,1},{1,2},{2,3},{3,4},{4,5},{5,6},{6,7}} f32 64 -> 64 11",
    ],
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project whose golden files are written."""
    folder = tmp_path_factory.mktemp("project")
    for name, text in (("conftest", CONFTEST), ("programs", PROGRAMS), ("test_steps", TESTS)):
        (folder / f"{name}.py").write_text(text)
    code, output = run_tests(folder)
    assert code == 1
    assert output.count("found none; make it with pytest --commlens-update") == 4
    assert not (folder / "golden").exists()
    code, output = run_tests(folder, "--commlens-update")
    assert code == 0, output
    assert "commlens: golden files written: 4" in output
    return folder


def run_tests(folder: Path, *options: str) -> tuple[int, str]:
    """Run the tests of a project."""
    plugins = ("-p", "commlens.integrations.pytest_plugin", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-B", "-m", "pytest", "-q", "-rN", *plugins, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_golden_files_say_what_the_programs_do(project: Path) -> None:
    """One file per test and parameter, short enough to be read; the tests hold against them."""
    files = {path.name.removesuffix(".comm.txt"): path for path in (project / "golden").iterdir()}
    said = {
        name: [" ".join(line.split()) for line in path.read_text().splitlines() if line and line[0] not in "#c"]
        for name, path in files.items()
    }
    assert said == GOLDEN
    code, output = run_tests(project)
    assert (code, "4 passed" in output) == (0, True), output


@pytest.mark.parametrize(
    ("old", "new", "failing", "shown"),
    [
        ('"data", None), *weights', '"data", "model"), *weights', "test_tensor_parallel", "only"),
        ('None, "data", None), like(grid, (16', 'None, None, None), like(grid, (16', "test_data_parallel", "all-gather"),
        ("pipeline(ring, 1)", "pipeline(ring, 2)", "test_pipeline", "+ 1  collective-permute  stage  {{0,2},{1,3},"),
        ("data=2, model=4", "data=4, model=2", "test_tensor_parallel", "+ mesh: data=4, model=2"),
    ],
    ids=["activations-split", "weights-whole", "other-shift", "other-mesh"],
)  # fmt: skip
def test_another_sharding_fails(project: Path, tmp_path: Path, old: str, new: str, failing: str, shown: str) -> None:
    """Each change of a sharding fails the test that pins it, with what differs."""
    for path in project.rglob("*.*"):
        copied = tmp_path / path.relative_to(project)
        copied.parent.mkdir(exist_ok=True)
        copied.write_bytes(path.read_bytes())
    tests = tmp_path / "test_steps.py"
    assert old in TESTS
    tests.write_text(TESTS.replace(old, new))
    code, output = run_tests(tmp_path, "-k", failing)
    assert code == 1, output
    assert "ExpectationError" in output
    assert shown in output
