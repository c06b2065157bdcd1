"""XLA's own reading of shardings, asked of jaxlib in a child process: some texts end the process that reads them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import IO, NamedTuple, cast

_CHILD = """
import json, os, sys
from jaxlib._hlo import HloSharding

answers = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
for line in sys.stdin:
    try:
        sharding = HloSharding.from_string(json.loads(line))
        answer = [str(sharding), str(sharding.v3_to_v2_sharding())]
    except Exception as error:
        answer = [str(error)]
    os.write(answers, (json.dumps(answer) + chr(10)).encode())
"""


class Reading(NamedTuple):
    """What XLA makes of a text.

    Attributes:
        printed: the sharding as XLA prints it.
        tile_form: the same without mesh axes.
    """

    printed: str
    tile_form: str


class XlaShardings:
    """A child process that reads shardings until it is closed; it is started anew when a text has ended it."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[str] | None = None

    def read(self, text: str) -> Reading | None:
        """Read a sharding; None where XLA refuses the text or dies of it."""
        if self._child is None:
            self._child = subprocess.Popen(
                [sys.executable, "-c", _CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        questions, answers = cast("IO[str]", self._child.stdin), cast("IO[str]", self._child.stdout)
        questions.write(json.dumps(text) + "\n")
        questions.flush()
        line = answers.readline()
        if not line:
            self.close()
            return None
        answer: list[str] = json.loads(line)
        return Reading(*answer) if len(answer) == len(Reading._fields) else None

    def close(self) -> None:
        """End the child process."""
        if self._child is not None:
            self._child.communicate()
            self._child = None
