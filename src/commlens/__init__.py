"""commlens: see, check and repair communication in compiled XLA programs.

The names below are the whole of the everyday interface; the topology maths is in :mod:`commlens.topology`.
Importing the package loads nothing else: each name is fetched when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from commlens.analysis import Report, Row, expect, report
    from commlens.errors import CommlensError
    from commlens.hlo import Computation, Instruction, Module, load, load_all
    from commlens.integrations.jax import from_jax
    from commlens.topology import AxisRef, Mesh

__version__ = "0.1.0"

__all__ = [
    "AxisRef",
    "CommlensError",
    "Computation",
    "Instruction",
    "Mesh",
    "Module",
    "Report",
    "Row",
    "__version__",
    "expect",
    "from_jax",
    "load",
    "load_all",
    "report",
]

_HOMES = MappingProxyType(
    {
        "AxisRef": "commlens.topology",
        "CommlensError": "commlens.errors",
        "Computation": "commlens.hlo",
        "Instruction": "commlens.hlo",
        "Mesh": "commlens.topology",
        "Module": "commlens.hlo",
        "Report": "commlens.analysis",
        "Row": "commlens.analysis",
        "expect": "commlens.analysis",
        "from_jax": "commlens.integrations.jax",
        "load": "commlens.hlo",
        "load_all": "commlens.hlo",
        "report": "commlens.analysis",
    }
)


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        msg = f"module 'commlens' has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
