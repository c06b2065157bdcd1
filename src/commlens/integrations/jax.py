"""From JAX: lowered and compiled programs as modules. Needs the extra ``jax``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from commlens.errors import CommlensError
from commlens.hlo import load

if TYPE_CHECKING:
    from commlens.hlo import Module


@runtime_checkable
class _Lowered(Protocol):
    def compiler_ir(self, dialect: str) -> _HasText: ...


@runtime_checkable
class _HasText(Protocol):
    def as_hlo_text(self) -> str: ...


@runtime_checkable
class _Compiled(Protocol):
    def as_text(self) -> str: ...


def from_jax(lowered_or_compiled: object) -> Module:
    """Return the module of a JAX program.

    Args:
        lowered_or_compiled: what ``jax.jit(f).lower(...)`` or its ``.compile()`` returns.

    Returns:
        The module: of a lowered program as it was before optimisation, of a compiled one as it runs.

    Raises:
        CommlensError: the argument is neither.
    """
    if isinstance(lowered_or_compiled, _Lowered):
        return load(lowered_or_compiled.compiler_ir(dialect="hlo").as_hlo_text())
    if isinstance(lowered_or_compiled, _Compiled):
        return load(lowered_or_compiled.as_text())
    msg = f"expected what jax.jit(f).lower(...) or .compile() returns, found {type(lowered_or_compiled).__name__}"
    raise CommlensError(msg)
