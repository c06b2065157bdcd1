"""``commlens groups``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from commlens.cli.options import full_option, mesh_option, output_options
from commlens.cli.specs import placed
from commlens.errors import excerpt

if TYPE_CHECKING:
    from commlens.analysis import CollectiveGroups
    from commlens.cli.output import Output
    from commlens.topology import Mesh

_MOST_DIGITS: Final = 9


def read_dims(_context: click.Context, _parameter: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """Read ``--dims``: ``0`` or ``0,2``."""
    if value is None:
        return None
    parts = [part.strip() for part in value.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) <= _MOST_DIGITS for part in parts):
        msg = f"expected dimensions such as 0 or 0,2, found {excerpt(value)!r}"
        raise click.BadParameter(msg)
    return tuple(int(part) for part in parts)


@click.command("groups", short_help="Show the groups of a collective to be.")
@mesh_option
@click.option("--over", metavar="AXIS,...", help="Axes of the mesh, outermost first in a group; sub-axes as a:(1)2.")
@click.option("--sharding", metavar="SHARDING", help="A tiled sharding, such as {devices=[4,2]<=[8]}.")
@click.option("--dims", callback=read_dims, metavar="DIM,...", help="Dimensions of the sharding to communicate along.")
@click.option("--channel-id", type=click.IntRange(min=1), default=1, show_default=True, metavar="N")
@full_option
@output_options
def command(
    *,
    mesh: Mesh | None,
    over: str | None,
    sharding: str | None,
    dims: tuple[int, ...] | None,
    channel_id: int,
    full: bool,
    output: Output,
) -> int:
    """Show the groups of a collective to be: over axes of a mesh, or along dimensions of a sharding.

    Give --mesh and --over, or --sharding and --dims. The first line of the answer is ready to paste.
    """
    from commlens.views import CollectiveGroupsView

    if over is not None and mesh is not None and sharding is None and dims is None:
        answer = _over(mesh, over, channel_id, full=full)
    elif over is None and sharding is not None and dims is not None:
        answer = _along(sharding, dims, mesh, channel_id, full=full)
    else:
        msg = "expected --mesh and --over, or --sharding and --dims"
        raise click.UsageError(msg, click.get_current_context())
    output.show(CollectiveGroupsView(answer))
    return 0


def _over(mesh: Mesh, over: str, channel_id: int, *, full: bool) -> CollectiveGroups:
    from commlens.analysis import groups_over

    with placed("SPEC"):
        return groups_over(mesh, over, channel_id=channel_id, full=full)


def _along(sharding: str, dims: tuple[int, ...], mesh: Mesh | None, channel_id: int, *, full: bool) -> CollectiveGroups:
    from commlens.analysis import groups_from_sharding

    with placed("SPEC"):
        return groups_from_sharding(sharding, dims, mesh=mesh, channel_id=channel_id, full=full)
