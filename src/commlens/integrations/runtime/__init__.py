"""XLA's own CPU client as a witness: programs and modules run on devices that it pretends to have. Extra ``jax``.

XLA is never loaded into the caller's process: it may end the process, take for ever, and reads its environment once.
:mod:`~commlens.integrations.runtime.children` starts processes for it; all other files here run inside those.
"""

from __future__ import annotations

from commlens.integrations.runtime.client import Runtime

__all__ = ["Runtime"]
