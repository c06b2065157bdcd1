"""The program of a child process: runs on XLA what it reads from standard input, and writes what came of it.

Started as ``python -m commlens.integrations.runtime.child`` with an environment that fixes the number of devices. It
reads one JSON object ``{"jobs": [...], "distributed": {...} or null}`` and writes one JSON object per line: ``ready``
once XLA runs, then ``begun`` before each job and ``done`` behind it. XLA may end the process in between.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlens.integrations.runtime.xla import Xla


def main() -> None:
    """Do every job in order."""
    tell = _line_to_parent()
    request: dict[str, Any] = json.load(sys.stdin)
    from commlens.integrations.runtime.xla import Xla

    xla = Xla.start(request["distributed"])
    tell({"ready": xla.version})
    for number, job in enumerate(request["jobs"]):
        tell({"begun": number})
        tell({"done": number, "answer": _answer(xla, job)})


def _line_to_parent() -> Callable[[dict[str, object]], None]:
    """Return what writes to the standard output of old; whatever else is written there goes to standard error."""
    parent = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def tell(message: dict[str, object]) -> None:
        parent.write(json.dumps(message) + "\n")
        parent.flush()

    return tell


def _answer(xla: Xla, job: dict[str, Any]) -> dict[str, object]:
    if job["kind"] == "program":
        return _run(xla, job)
    from commlens.integrations.runtime.module_comparison import compared

    return compared(xla, job)


def _run(xla: Xla, job: dict[str, Any]) -> dict[str, object]:
    """Run the first of some texts that XLA takes."""
    import numpy as np

    counts = job["replicas"], job["partitions"]
    refused = "there is no text to run"
    for number, text in enumerate(job["texts"]):
        try:
            executable = xla.compile(xla.module(text), *counts)
        except Exception as error:
            refused = str(error)
            continue
        vectors = [np.array(vector, dtype=np.int32) for vector in job["arguments"]]
        (results,) = xla.execute(executable, [vectors], *counts)
        return {"text": number, "results": {device: array.tolist() for device, array in results.items()}}
    return {"refused": refused}


if __name__ == "__main__":
    main()
