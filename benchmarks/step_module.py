"""Write large modules to read: a sharded training step from JAX, and a text with few collectives.

The dense one is a transformer's training step, weights sharded over ``fsdp`` and activations over ``tensor``, every
collective written out and every layer unrolled: 16 collectives and 42 kB a layer. It is lowered, not compiled, and
printed as XLA dumps modules before optimisation. Run as a script: the devices must be forced before JAX starts.

    python benchmarks/step_module.py LAYERS OUT.txt OUT.pb
"""

from __future__ import annotations

import os
import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

FILLER_BYTES = 100_000


def sparse_lines(size: int) -> Iterator[str]:
    """Yield the lines of a module of a given size with one collective per 100 kB."""
    yield "HloModule sparse, num_partitions=8\n\nENTRY %main (x: f32[64,64]) -> f32[64,64] {\n"
    yield "  %x.0 = f32[64,64]{1,0} parameter(0)\n"
    written, next_collective, number = 0, FILLER_BYTES, 0
    while written < size:
        line = (
            f"  %x.{number + 1} = f32[64,64]{{1,0}} multiply(%x.{number}, %x.{max(number - 1, 0)}), "
            f'metadata={{op_name="jit(step)/layer_{number // 40}/mul"}}\n'
        )
        written, number = written + len(line), number + 1
        yield line
        if written >= next_collective:
            next_collective += FILLER_BYTES
            yield (
                f"  %x.{number + 1} = f32[64,64]{{1,0}} collective-permute(%x.{number}), channel_id={number}, "
                "source_target_pairs={{0,1},{1,2},{2,3},{3,4},{4,5},{5,6},{6,7},{7,0}}\n"
            )
            number += 1
    yield f"  ROOT %last = f32[64,64]{{1,0}} copy(%x.{number})\n}}\n"


def write_dense(layers: int, text: Path, proto: Path) -> None:
    """Lower the training step and write it in both forms."""
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax
    from jax.sharding import Mesh
    from jax.sharding import PartitionSpec as Spec

    jax.config.update("jax_platforms", "cpu")
    width, hidden, heads, length, batch = 16, 32, 4, 8, 4
    specs = {
        "wqkv": Spec(None, "fsdp", "tensor"),
        "wo": Spec(None, "tensor", "fsdp"),
        "w_up": Spec(None, "fsdp", "tensor"),
        "w_down": Spec(None, "tensor", "fsdp"),
        "g1": Spec(),
        "g2": Spec(),
    }
    sizes = {"wqkv": (width, 3 * width), "wo": (width, width), "w_up": (width, hidden), "w_down": (hidden, width)}
    weights = {name: jax.ShapeDtypeStruct((layers, *sizes.get(name, (width,))), jnp.float32) for name in specs}
    batches = jax.ShapeDtypeStruct((batch, length, width), jnp.float32)

    def gather(weight: jax.Array, name: str) -> jax.Array:
        return lax.all_gather(weight, "fsdp", axis=specs[name].index("fsdp") - 1, tiled=True)

    def norm(x: jax.Array, gain: jax.Array) -> jax.Array:
        return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * gain

    @partial(jax.jit, inline=True)
    def layer(x: jax.Array, w: dict[str, jax.Array]) -> jax.Array:
        h = lax.all_gather(norm(x, w["g1"]), "tensor", axis=1, tiled=True)
        qkv = (h @ gather(w["wqkv"], "wqkv")).reshape((*h.shape[:2], 3, -1, width // heads))
        q, k, v = jnp.moveaxis(qkv, 2, 0)
        scores = jax.nn.softmax(jnp.einsum("bshk,bthk->bhst", q, k))
        mixed = jnp.einsum("bhst,bthk->bshk", scores, v).reshape((*h.shape[:2], -1)) @ gather(w["wo"], "wo")
        x = x + lax.psum_scatter(mixed, "tensor", scatter_dimension=1, tiled=True)
        h = lax.all_gather(norm(x, w["g2"]), "tensor", axis=1, tiled=True)
        up = jax.nn.gelu(h @ gather(w["w_up"], "w_up")) @ gather(w["w_down"], "w_down")
        return x + lax.psum_scatter(up, "tensor", scatter_dimension=1, tiled=True)

    def train_step(x: jax.Array, w: dict[str, jax.Array]) -> tuple[dict[str, jax.Array], jax.Array]:
        def loss(w: dict[str, jax.Array]) -> jax.Array:
            y = x
            for index in range(layers):
                y = layer(y, {name: value[index] for name, value in w.items()})
            return jnp.mean(y * y)

        value, gradient = jax.value_and_grad(loss)(w)
        return jax.tree.map(lambda old, slope: old - 0.1 * slope, w, gradient), lax.psum(value, ("fsdp", "tensor"))

    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("fsdp", "tensor"))
    inputs = (Spec("fsdp", "tensor"), specs)
    step = jax.shard_map(train_step, mesh=mesh, in_specs=inputs, out_specs=(specs, Spec()), check_vma=False)
    lowered = jax.jit(step).lower(batches, weights)
    computation: Any = lowered.compiler_ir("hlo")
    serialized = computation.as_serialized_hlo_module_proto()
    proto.write_bytes(serialized)
    text.write_text(import_module("jaxlib._hlo").HloModule.from_serialized_hlo_module_proto(serialized).to_string())


if __name__ == "__main__":
    write_dense(int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
