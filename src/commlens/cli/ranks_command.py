"""``commlens ranks``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from commlens.cli.inputs import Inputs
from commlens.cli.messages import warn
from commlens.cli.options import AllMissing, count_options, mesh_option, output_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.analysis import Report
    from commlens.cli.output import Output
    from commlens.hlo import Module
    from commlens.neuron import RankLayout
    from commlens.topology import Mesh
    from commlens.views import ModuleOnRanks

_DEGREE = click.IntRange(min=1)


@click.command("ranks", cls=AllMissing, short_help="Show which ranks of a Neuron job form its groups.")
@click.option("--world", type=_DEGREE, required=True, metavar="W", help="Ranks in all.")
@click.option("--tp", type=_DEGREE, required=True, metavar="T", help="Tensor parallel degree.")
@click.option("--pp", type=_DEGREE, default=1, show_default=True, metavar="P", help="Pipeline stages.")
@click.option("--ep", type=_DEGREE, default=1, show_default=True, metavar="E", help="Expert parallel degree.")
@click.option("--hardware", type=click.Choice(("trn1", "trn2")), default="trn1", show_default=True)
@click.option("--lnc", type=_DEGREE, metavar="N", help="Physical cores to a rank. [default: 1 on trn1, 2 on trn2]")
@click.option(
    "--local-world-size",
    type=_DEGREE,
    metavar="L",
    help="Ranks on a node. [default: 32 on trn1; on trn2 64 with LNC 2, 128 with LNC 1]",
)
@click.option("--kv", type=_DEGREE, metavar="N", help="Ranks that share a key-value head.")
@click.option("--kv-sequential", is_flag=True, help="Let these be neighbours on trn1 too.")
@click.option("--cp", type=_DEGREE, metavar="N", help="Context parallel degree of a world of one tp group.")
@click.option("--token-shuffle", type=_DEGREE, metavar="S", help="Ranks that shuffle tokens among them.")
@click.option("--against", metavar="FILE", help="Compare with the groups of a module.")
@click.option("--cores", is_flag=True, help="Show whom each physical core meets in the collectives of the module.")
@click.option("--simulated", is_flag=True, help="Refuse a module that the compiler's simulator would refuse.")
@mesh_option
@count_options
@output_options
def command(
    *,
    against: str | None,
    cores: bool,
    simulated: bool,
    mesh: Mesh | None,
    replicas: int | None,
    partitions: int | None,
    output: Output,
    **degrees: Any,
) -> int:
    """Show which ranks of a Neuron job form its groups: tensor, data, pipeline and expert parallel, and more.

    The groups are those of neuronx-distributed. With --against, also what each collective of a module is among them;
    FILE is anything that `commlens report` reads.
    """
    from commlens.neuron import rank_layout
    from commlens.views import RanksView

    if degrees["kv_sequential"] and degrees["kv"] is None:
        msg = "expected --kv N with --kv-sequential, which is about its groups"
        raise click.UsageError(msg, click.get_current_context())
    layout = rank_layout(**degrees)
    if against is None:
        _refuse_without_module(cores=cores, simulated=simulated, mesh=mesh, replicas=replicas, partitions=partitions)
        output.show(RanksView(layout))
        return 0

    def question(module: Module) -> tuple[Report, ModuleOnRanks]:
        return _compare(module, layout, mesh, cores=cores, simulated=simulated)

    inputs = Inputs((against,), "last", None, replicas, partitions, keep_going=False)
    answers = inputs.answer(question).found
    warnings = list(_warnings([report for report, _ in answers], layout.world))
    output.show(RanksView(layout, [module for _, module in answers], warnings))
    warn(warnings)
    return 0


def _refuse_without_module(**options: object) -> None:
    """Refuse options that only say something of a module where there is none."""
    given = [f"--{name}" for name, value in options.items() if value is not None and value is not False]
    if given:
        is_of = "is" if len(given) == 1 else "are"
        msg = f"expected --against FILE with {', '.join(given)}, which {is_of} about a module"
        raise click.UsageError(msg, click.get_current_context())


def _compare(
    module: Module, layout: RankLayout, mesh: Mesh | None, *, cores: bool, simulated: bool
) -> tuple[Report, ModuleOnRanks]:
    from commlens.analysis import match_layouts, report
    from commlens.neuron import RankModel, core_map
    from commlens.views import ModuleOnRanks

    found = report(module, mesh)
    on_cores = core_map(module, RankModel(layout.cores_per_lnc), layout.world) if cores or simulated else None
    if on_cores is not None and simulated:
        on_cores.check_simulated()
    matches = match_layouts(found, layout.groups)
    return found, ModuleOnRanks(module.path, module.name, matches, on_cores if cores else None)


def _warnings(reports: Sequence[Report], world: int) -> Iterator[str]:
    """Name modules for another number of ranks or devices of the mesh, and those of which not all could be read."""
    for report in reports:
        module = report.module
        yield from (f"{module.path}: {note}" for note in report.notes)
        replicas, partitions = module.replica_count, module.num_partitions
        if replicas is not None and partitions is not None:
            if replicas * partitions != world:
                yield f"{module.path}: the module runs on {replicas * partitions} devices, the layout has {world} ranks"
        elif report.mesh is not None and report.mesh.num_devices != world:
            yield f"{module.path}: the mesh has {report.mesh.num_devices} devices, the layout has {world} ranks"
        if report.unread:
            number = len(report.unread)
            yield f"{module.path}: {number} that may communicate could not be read (see commlens report)"
