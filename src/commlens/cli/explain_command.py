"""``commlens explain``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from commlens.cli.options import count_options, full_option, mesh_option, output_options, read_mode
from commlens.cli.specs import placed

if TYPE_CHECKING:
    from commlens.cli.output import Output
    from commlens.topology import CollectiveOpGroupMode, Mesh


@click.command("explain", short_help="Explain one replica group list.")
@click.argument("spec", metavar="SPEC")
@mesh_option
@click.option("--devices", type=click.IntRange(min=1), metavar="N", help="How many devices there are.")
@count_options
@click.option(
    "--mode",
    callback=read_mode,
    metavar="MODE",
    help="Group mode, to tell who takes part: kCrossReplica, kCrossPartition, kCrossReplicaAndPartition, kFlattenedID.",
)
@full_option
@output_options
def command(
    *,
    spec: str,
    mesh: Mesh | None,
    devices: int | None,
    replicas: int | None,
    partitions: int | None,
    mode: CollectiveOpGroupMode | None,
    full: bool,
    output: Output,
) -> int:
    """Explain one replica group list: its groups, spellings, axes, and a picture.

    SPEC is a list in any spelling, such as {{0,1},{2,3}}, [4,2]<=[2,4]T(1,0) or mesh['data'=2,'model'=4] {'data'}.
    """
    from commlens.analysis import explain
    from commlens.views import ExplanationView

    with placed("SPEC"):
        answer = explain(spec, mesh, devices=devices, replicas=replicas, partitions=partitions, mode=mode, full=full)
    known = replicas is not None or partitions is not None
    output.show(ExplanationView(answer, (replicas or 1, partitions or 1) if known else None))
    return 0
