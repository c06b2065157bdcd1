"""Whether XLA reads a text, asked of jaxlib in a child process: some texts end the process that reads them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import IO, cast

_CHILD = """
import json, os, sys
from jaxlib._hlo import hlo_module_from_text

answers = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
for line in sys.stdin:
    try:
        answer = hlo_module_from_text(json.loads(line)).to_string()
    except Exception as error:
        answer = None
    os.write(answers, (json.dumps(answer) + chr(10)).encode())
"""


class XlaReader:
    """A child process that reads modules until it is closed; it is started anew when a text has ended it."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[str] | None = None

    def printed(self, text: bytes) -> str | None:
        """Return a module as XLA prints it; None where XLA refuses the text or dies of it."""
        if self._child is None:
            self._child = subprocess.Popen(
                [sys.executable, "-c", _CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        questions, answers = cast("IO[str]", self._child.stdin), cast("IO[str]", self._child.stdout)
        questions.write(json.dumps(text.decode("utf-8", "surrogateescape")) + "\n")
        questions.flush()
        line = answers.readline()
        if not line:
            self.close()
            return None
        return json.loads(line)

    def reads(self, text: bytes) -> bool:
        """Whether XLA takes a module."""
        return self.printed(text) is not None

    def close(self) -> None:
        """End the child process."""
        if self._child is not None:
            self._child.communicate()
            self._child = None
