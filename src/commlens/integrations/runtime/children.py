"""Child processes in which XLA runs: started with an environment of their own, asked over pipes, ended in time.

XLA ends its process on some inputs, and a collective that some device never reaches waits for ever. Both cost the job
concerned and no other: the jobs behind it go to a fresh child.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, TYPE_CHECKING, Any, Final, Self, TypeAlias

from commlens.errors import CommlensError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import TracebackType


CHILD: Final = "commlens.integrations.runtime.child"

START_S: Final = 120.0
"""Seconds that a child may take to load XLA."""

_MOST_LOST: Final = 4
"""Children that may be lost before the jobs left over are given up."""

_MOST_STARTS: Final = 3
"""Ports that are tried for processes which have to meet."""

_TAIL: Final = 4000
_MOST_TOLD: Final = 300
_OWN_VARIABLES: Final = ("JAX_", "XLA_", "TF_")

Job: TypeAlias = dict[str, Any]
Answer: TypeAlias = dict[str, Any]


class ChildLostError(Exception):
    """A child ended or was ended before it answered; the text says why."""


def answers_of(jobs: Sequence[Job], *, devices: int, timeout_s: float, processes: int = 1) -> list[Answer]:
    """Have jobs done by child processes.

    Args:
        jobs: what to do.
        devices: how many devices the largest of them needs.
        timeout_s: seconds that one job may take.
        processes: how many processes share the devices.

    Returns:
        One answer to each job; ``{"refused": WHY}`` where a child was lost in it.

    Raises:
        CommlensError: no child process with XLA can be started.
    """
    answers: list[Answer] = []
    lost = starts = 0
    while len(answers) < len(jobs) and lost < _MOST_LOST:
        with _Children(processes, devices, jobs[len(answers) :], timeout_s) as children:
            starts += 1
            try:
                children.wait_until_ready()
            except ChildLostError as loss:
                if processes > 1 and starts < _MOST_STARTS:  # somebody else may have the port
                    continue
                msg = f"XLA cannot be started in a process of its own: {loss}"
                raise CommlensError(msg) from loss
            try:
                for answer in children.answers():
                    answers.append(answer)  # noqa: PERF402 - those before a loss are kept
            except ChildLostError as loss:
                lost += 1
                answers.append({"refused": str(loss)})
    why = f"it was not run: XLA had been lost {lost} times before"
    return [*answers, *({"refused": why} for _ in jobs[len(answers) :])]


class _Children:
    """The child processes that make up one client, with the same jobs to do.

    Args:
        processes: how many.
        devices: how many devices they have together, at least.
        jobs: what to do.
        timeout_s: seconds that a job may take.
    """

    def __init__(self, processes: int, devices: int, jobs: Sequence[Job], timeout_s: float) -> None:
        self._jobs = jobs
        self._timeout_s = timeout_s
        environment = _environment(-(-devices // processes))
        port = random.SystemRandom().randrange(20000, 60000)
        self._children: list[_Child] = []
        for process in range(processes):
            address = {"address": f"127.0.0.1:{port}", "processes": processes, "process": process}
            request = {"distributed": address if processes > 1 else None, "jobs": jobs}
            self._children.append(_Child(environment, request))

    def wait_until_ready(self) -> None:
        """Wait until XLA runs in all children.

        Raises:
            ChildLostError: a child is lost before.
        """
        for child in self._children:
            child.message("ready", START_S)

    def answers(self) -> Iterator[Answer]:
        """Yield the answers to the jobs in order.

        Raises:
            ChildLostError: a child is lost in the job that is next.
        """
        for _ in self._jobs:
            yield joined([child.answer(self._timeout_s) for child in self._children])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for child in self._children:
            child.end()


def joined(parts: Sequence[Answer]) -> Answer:
    """Make one answer of those of several processes, each of which speaks of its own devices.

    Example:
        >>> joined([{"text": 0, "results": {"0": [1]}}, {"text": 0, "results": {"1": [2]}}])
        {'text': 0, 'results': {'0': [1], '1': [2]}}
        >>> joined([{"outputs": [{"index": 0, "max_ulp": 1}]}, {"outputs": [{"index": 0, "max_ulp": 3}]}])
        {'outputs': [{'index': 0, 'max_ulp': 3}]}
    """
    refused = next((part for part in parts if "refused" in part), None)
    if refused is not None or len(parts) == 1:
        return refused or parts[0]
    if "outputs" in parts[0]:
        return {"outputs": [_furthest(of_one) for of_one in zip(*(part["outputs"] for part in parts), strict=True)]}
    return {**parts[0], "results": {device: got for part in parts for device, got in part["results"].items()}}


def _furthest(parts: Sequence[Answer]) -> Answer:
    """Return what says most against a result: that it differs without a distance, then the largest distance.

    It shows nothing only where it shows nothing in any of the processes.
    """
    furthest = max(parts, key=lambda part: (part.get("max_ulp", float("inf")), "differs" in part))
    shows = any(part.get("finite", True) for part in parts)
    return {key: value for key, value in furthest.items() if key != "finite" or not shows}


class _Child:
    """One child process.

    Args:
        environment: its environment.
        request: what it reads from its standard input.
    """

    def __init__(self, environment: Mapping[str, str], request: Job) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by end()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", CHILD],
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        feeder = Thread(target=self._feed, args=(json.dumps(request).encode(),), daemon=True)
        reader = Thread(target=self._read, daemon=True)
        self._threads = (feeder, reader)
        for thread in self._threads:
            thread.start()

    def _feed(self, request: bytes) -> None:
        stream = self._process.stdin
        if stream is not None:
            with suppress(OSError), stream:
                stream.write(request)

    def _read(self) -> None:
        stream = self._process.stdout
        if stream is not None:
            with suppress(ValueError), stream:
                for line in stream:
                    self._lines.put(line)
        self._lines.put(None)

    def answer(self, timeout_s: float) -> Answer:
        """Wait for the answer to the next job."""
        self.message("begun", timeout_s)
        return self.message("done", timeout_s)["answer"]

    def message(self, key: str, timeout_s: float) -> Answer:
        """Wait for a message.

        Raises:
            ChildLostError: none came in time, or the process ended.
        """
        try:
            line = self._lines.get(timeout=timeout_s)
        except Empty:
            msg = f"it was ended after {timeout_s:g} seconds without an answer"
            raise ChildLostError(msg) from None
        if line is None:
            raise ChildLostError(self._last_words())
        message: Answer = json.loads(line)
        if key not in message:
            msg = f"expected the message {key!r} of a child process, found {sorted(message)}"
            raise ChildLostError(msg)
        return message

    def _last_words(self) -> str:
        """Say how the process ended, in the words that it wrote last."""
        code = self._process.wait(timeout=START_S)
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - _TAIL))
        written = self._errors.read().decode("utf-8", "replace").splitlines()
        told = next((line for line in written if line.startswith("F")), written[-1] if written else "")
        return f"XLA ended its process (exit status {code}): {told[:_MOST_TOLD] or 'it wrote nothing'}"

    def end(self) -> None:
        """End the process, if it has not ended, and let go of its pipes."""
        self._process.kill()
        self._process.wait()
        for thread in self._threads:
            thread.join()
        self._errors.close()


def _environment(devices: int) -> dict[str, str]:
    """Return the environment of a child: as many devices as asked for, and no settings of XLA but these.

    It finds the packages that this process finds.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OWN_VARIABLES)}
    return {
        **kept,
        "JAX_ENABLE_X64": "1",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTHONWARNINGS": "ignore",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
    }
