"""Two modules run on the same inputs, their results compared device by device. For child processes."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Final

from commlens.integrations.runtime.inputs import values
from commlens.integrations.runtime.plain_hlo import one_by_one, partitioner_of, plain, readable
from commlens.integrations.runtime.result_differences import difference

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from commlens.integrations.runtime.xla import Xla

    Array = np.ndarray[Any, Any]

MOST_BYTES: Final = 1 << 30
"""Bytes that the parameters of all devices may take together."""


class RefusedError(Exception):
    """A module cannot be run.

    Attributes:
        module: 0 for the first module, 1 for the second.
    """

    def __init__(self, module: int, why: str) -> None:
        super().__init__(why)
        self.module = module


@dataclass(frozen=True, slots=True)
class Ready:
    """A compiled module.

    Attributes:
        executable: what runs.
        shapes: shape and type of each parameter: on a device, or of all partitions together where it was partitioned.
        shardings: how XLA shards each parameter over the partitions; None where the module came partitioned.
    """

    executable: Any
    shapes: tuple[tuple[tuple[int, ...], Any], ...]
    shardings: tuple[Any, ...] | None


def compared(xla: Xla, job: dict[str, Any]) -> dict[str, object]:
    """Run two modules and compare what they give.

    Args:
        xla: the client.
        job: ``modules`` (two of ``{"text"}`` or ``{"proto"}``), ``replicas``, ``partitions``, ``seed``, ``max_ulp``.

    The first module is run twice: what differs from run to run (random numbers) says nothing about the second one.
    Every process of several does the same runs, whatever it has seen of its own devices: a collective waits for all.

    Returns:
        ``outputs``: for each result ``index`` with ``max_ulp``, or ``differs`` where that is too much; or ``refused``,
        why, and the number of the ``module`` at fault.
    """
    counts = job["replicas"], job["partitions"]
    try:
        first, second = (_ready(xla, number, module, *counts) for number, module in enumerate(job["modules"]))
        arguments = _arguments(xla, first, second, *counts, job["seed"])
        runs = ((0, first), (0, first), (1, second))
        left, again, right = (_results(xla, number, each, arguments, *counts) for number, each in runs)
        _check_steady(left, again, job["max_ulp"])
    except RefusedError as refusal:
        return {"refused": str(refusal), "module": refusal.module}
    if len(left) != len(right):
        differs = f"{len(left)} results and {len(right)} results"
        return {"outputs": [{"index": min(len(left), len(right)), "differs": differs}]}
    pairs = enumerate(zip(left, right, strict=True))
    return {"outputs": [{"index": index, **difference(a, b, job["max_ulp"])} for index, (a, b) in pairs]}


def _ready(xla: Xla, number: int, source: dict[str, str], replicas: int, partitions: int) -> Ready:
    try:
        module = xla.module(readable(source["text"]) if "text" in source else b64decode(source["proto"]))
        text = xla.text(module)
        partitioner = partitioner_of(text) if partitions > 1 else None
        module = xla.module(plain(text) if partitioner is None else one_by_one(text))
        executable = xla.compile(module, replicas, partitions, partitioner=partitioner)
        shapes = xla.parameters(module)
    except Exception as error:
        raise RefusedError(number, f"XLA does not run it: {error}") from error
    return Ready(executable, shapes, None if partitioner is None else tuple(executable.get_parameter_shardings()))


def _results(
    xla: Xla, number: int, module: Ready, arguments: list[list[Array]], replicas: int, partitions: int
) -> list[dict[int, Array]]:
    try:
        return xla.execute(module.executable, arguments, replicas, partitions)
    except Exception as error:
        raise RefusedError(number, f"XLA does not run it: {error}") from error


def _check_steady(left: list[dict[int, Array]], again: list[dict[int, Array]], max_ulp: int) -> None:
    """Insist that there are results, and that they depend on the inputs alone."""
    if not left:
        msg = "expected results to compare, found none"
        raise RefusedError(0, msg)
    for index, (one, other) in enumerate(zip(left, again, strict=True)):
        differs = difference(one, other, max_ulp).get("differs")
        if differs is not None:
            msg = f"expected results that depend on the inputs alone, found that result {index} changes from run to run"
            raise RefusedError(0, f"{msg}: {differs}")


def _arguments(xla: Xla, first: Ready, second: Ready, replicas: int, partitions: int, seed: int) -> list[list[Array]]:
    """Return for each parameter the arrays of all devices.

    Where one of the modules was partitioned, its parameters are cut out of whole arrays, and the other one gets the
    same pieces; else each device has arrays of its own.
    """
    if len(first.shapes) != len(second.shapes):
        msg = f"expected {len(first.shapes)} parameters as the other module has, found {len(second.shapes)}"
        raise RefusedError(1, msg)
    whole = first if first.shardings is not None or second.shardings is None else second
    _check_size(whole, replicas if whole.shardings is not None else replicas * partitions)
    shared: list[list[Array]] = []
    for place, (shape, dtype) in enumerate(whole.shapes):
        if whole.shardings is None:
            devices = range(replicas * partitions)
            shared.append([values(shape, dtype, f"{seed}/{place}/{device}") for device in devices])
        else:
            cuts = xla.cuts(whole.shardings[place], shape, partitions)
            arrays = [values(shape, dtype, f"{seed}/{place}/{replica}") for replica in range(replicas)]
            shared.append([array[cut] for array in arrays for cut in cuts])
    for number, each in enumerate((first, second)):
        _check_alike(number, each, shared, xla, partitions)
    return shared


def _check_size(module: Ready, copies: int) -> None:
    size = sum(prod(shape) * dtype.itemsize * copies for shape, dtype in module.shapes)
    if size > MOST_BYTES:
        msg = f"expected parameters of at most {MOST_BYTES} bytes together on all devices, found {size}"
        raise RefusedError(0, msg)


def _check_alike(number: int, module: Ready, shared: Sequence[Sequence[Array]], xla: Xla, partitions: int) -> None:
    """Insist that a module takes the arrays that are there."""
    for place, (shape, dtype) in enumerate(module.shapes):
        array = shared[place][0]
        if module.shardings is None:
            wanted = tuple(shape)
        else:
            cut = xla.cuts(module.shardings[place], shape, partitions)[0]
            wanted = tuple(len(range(size)[part]) for size, part in zip(shape, cut, strict=True))
        if (wanted, dtype) != (array.shape, array.dtype):
            there = f"{array.dtype}{list(array.shape)}"
            msg = f"expected parameter {place} to be {there} as in the other module, found {dtype}{list(wanted)}"
            raise RefusedError(number, msg)
