"""Reads modules with XLA, turns each into a proto and back, and says what it had; a process of its own, XLA may end it.

Reads lines of JSON from standard input, ``{"text": ...}`` or ``{"proto": ...}`` with the proto in base 64. Writes one line
for each as soon as it has been read: ``proto`` and ``text``, which is that proto read and printed, or ``refused``. Needs
nothing but jaxlib, any release from 0.4.30 on.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from importlib import import_module
from typing import Any


def main() -> None:
    """Read every module."""
    answers = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    hlo = hlo_classes()
    for line in sys.stdin:
        os.write(answers, f"{json.dumps(answer(hlo, json.loads(line)))}\n".encode())


def hlo_classes() -> Any:
    """Return the home of HLO classes: a module of its own in newer releases."""
    try:
        return import_module("jaxlib._hlo")
    except ImportError:
        return import_module("jaxlib.xla_client")._xla


def answer(hlo: Any, question: dict[str, str]) -> dict[str, str]:
    """Read one module."""
    try:
        if "text" in question:
            module = hlo.hlo_module_from_text(question["text"])
        else:
            module = hlo.HloModule.from_serialized_hlo_module_proto(base64.b64decode(question["proto"]))
        proto = module.as_serialized_hlo_module_proto()
        text = hlo.HloModule.from_serialized_hlo_module_proto(proto).to_string()
    except Exception as error:
        return {"refused": str(error)}
    return {"proto": base64.b64encode(proto).decode(), "text": text}


if __name__ == "__main__":
    main()
