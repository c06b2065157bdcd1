"""From JAX: lowered and compiled programs as modules, and what a function communicates. Needs the extra ``jax``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from commlens.analysis import expect
from commlens.errors import CommlensError
from commlens.hlo import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlens.analysis import AnyMesh, Report
    from commlens.hlo import Module


@runtime_checkable
class _Lowered(Protocol):
    def compiler_ir(self, dialect: str) -> _HasText: ...


@runtime_checkable
class _Jitted(Protocol):
    def lower(self, *args: object, **kwargs: object) -> object: ...


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


def collectives(
    function: Callable[..., object] | object, *args: object, mesh: AnyMesh | None = None, **kwargs: object
) -> Report:
    """Compile a function for some arguments and list what it communicates.

    Nothing is run: a ``jax.ShapeDtypeStruct`` with a sharding does as well as an array.

    Args:
        function: a jitted function (static arguments and options as it was jitted with), any other function, which is
            jitted as it is, or what ``.trace()``, ``.lower()`` or ``.compile()`` made of one.
        *args: its arguments. Their shardings decide for which devices it is compiled.
        mesh: the mesh that names axes. Of a ``jax.sharding.Mesh`` names, sizes and the order of the devices count: ids
            in a program are positions in its device assignment, and are brought into the order of this mesh even where
            the arguments are sharded on another mesh of the same devices. None: the axes that the program itself names.
        **kwargs: its keyword arguments; one that is called ``mesh`` must be bound before, by ``functools.partial``.

    Returns:
        The report: rows in ``.collectives``, sums in ``.totals``, what could not be read in ``.unread``.

    Raises:
        CommlensError: JAX is not installed; the mesh and the program are not of the same devices, as when no argument
            is sharded; or this is no function and no program. What JAX itself raises while compiling passes through.

    Example:
        ``collectives(step, params, batch, mesh=mesh).totals.by_axes["model"].wire_bytes_per_device``
    """
    program: object = function
    if callable(function) and not isinstance(function, _Jitted | _Compiled):
        program = _jit(function)
    return expect(program, mesh, args=args, kwargs=kwargs).report


def _jit(function: Callable[..., object]) -> object:
    try:
        from jax import jit  # pyright: ignore[reportUnknownVariableType] - half typed, and called with a function alone
    except ImportError as error:
        msg = f"expected JAX to compile the function with, found none ({error}); install commlens[jax]"
        raise CommlensError(msg) from error
    return jit(function)
