"""Reads modules with XLA and writes them as it has them; a process of its own, XLA may end it.

Reads a JSON list of ``{"text": ...}`` or ``{"proto": ...}`` from standard input and writes both for each, protos in base 64.
"""

from __future__ import annotations

import base64
import json
import sys


def main() -> None:
    """Read every module."""
    json.dump([read(case) for case in json.load(sys.stdin)], sys.stdout)


def read(case: dict[str, str]) -> dict[str, str]:
    """Read one module."""
    from jaxlib._hlo import HloModule, hlo_module_from_text

    if "text" in case:
        module = hlo_module_from_text(case["text"])
    else:
        module = HloModule.from_serialized_hlo_module_proto(base64.b64decode(case["proto"]))
    proto = base64.b64encode(module.as_serialized_hlo_module_proto()).decode()
    return {"text": module.to_string(), "proto": proto}


if __name__ == "__main__":
    main()
