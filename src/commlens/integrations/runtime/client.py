"""What others ask of XLA: run programs, compare modules."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import asdict, dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from commlens.analysis import Comparison, Outcome, ResultDifference, uncounted_loops
from commlens.errors import CommlensError, InputError
from commlens.hlo import UnreadableError, serialized_module
from commlens.integrations.runtime.children import answers_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlens.analysis import Counts, Program
    from commlens.hlo import Module


@dataclass(frozen=True, slots=True)
class Runtime:
    """XLA's CPU client, in child processes.

    Attributes:
        timeout_s: seconds that one program may take.
        processes: how many processes make up the client, each with its share of the devices.

    Raises:
        CommlensError: jax is not installed.
    """

    timeout_s: float = 60.0
    processes: int = 1

    def __post_init__(self) -> None:
        for name in ("jax", "jaxlib"):
            if find_spec(name) is None:
                msg = f"expected the package {name}, which brings XLA to run on, found none: install commlens[jax]"
                raise CommlensError(msg)

    @property
    def version(self) -> str:
        """What runs, e.g. ``"jax 0.10.2"``."""
        return f"jax {version('jax')}"

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        """Run programs, each on as many devices as it asks for.

        Returns:
            What came of each, in their order.

        Raises:
            CommlensError: no process with XLA can be started.
        """
        devices = max((each.replicas * each.partitions for each in programs), default=0)
        jobs = [{"kind": "program", **asdict(each)} for each in programs]
        answers = answers_of(jobs, devices=devices, timeout_s=self.timeout_s, processes=self.processes)
        return list(map(_outcome, answers))

    def compare(self, first: Module, second: Module, counts: Counts, *, max_ulp: int, seed: int = 0) -> Comparison:
        """Run two modules on the same inputs and compare their results device by device.

        Args:
            first: one module.
            second: the other.
            counts: replicas and partitions to run them with.
            max_ulp: units in the last place that floats may be apart; an eighth of that in types of 16 bits, one in
                types of fewer.
            seed: other seeds, other inputs.

        Raises:
            CommlensError: no process with XLA can be started, XLA does not run one of the modules, or the results of
                the first one are no function of its inputs.
        """
        both = (first, second)
        job = {
            "kind": "compare",
            "modules": [_source(module) for module in both],
            "replicas": counts.replicas,
            "partitions": counts.partitions,
            "max_ulp": max_ulp,
            "seed": seed,
        }
        devices = counts.replicas * counts.partitions
        (answer,) = answers_of([job], devices=devices, timeout_s=self.timeout_s, processes=self.processes)
        if "refused" in answer:
            at_fault: int | None = answer.get("module")
            why = _one_line(answer["refused"])
            if at_fault is None:
                reason = f"XLA does not run it: {why}"
                raise InputError(reason, path=f"{first.path} or {second.path}")
            raise InputError(why, path=both[at_fault].path)
        outputs = (
            ResultDifference(each["index"], each.get("max_ulp"), each.get("differs"), each.get("finite", True))
            for each in answer["outputs"]
        )
        notes = tuple(dict.fromkeys(note for note in map(uncounted_loops, both) if note is not None))
        return Comparison((first.path, second.path), counts, tuple(outputs), max_ulp, self.version, notes)


def _outcome(answer: dict[str, Any]) -> Outcome:
    if "refused" in answer:
        return Outcome(None, refused=str(answer["refused"]))
    by_device = {int(device): tuple(vector) for device, vector in answer["results"].items()}
    return Outcome(tuple(by_device[device] for device in range(len(by_device))), answer["text"])


def _source(module: Module) -> dict[str, str]:
    try:
        content = serialized_module(module)
    except UnreadableError as error:
        raise InputError(str(error), path=module.path) from error
    if module.format == "proto":
        return {"proto": b64encode(content).decode("ascii")}
    return {"text": content.decode("utf-8", "replace")}


def _one_line(text: str) -> str:
    return " ".join(text.split())[:300]
