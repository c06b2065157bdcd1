"""Groups that do not lie along the axes of the mesh."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.analysis.checks.queries import context_of, faults_of, figures_of
from commlens.analysis.effective_axes import axes_up_to_order
from commlens.analysis.meshes import size_fault
from commlens.hlo import Example, Finding, Rule, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.analysis.figures import Figures
    from commlens.hlo import Subject
    from commlens.topology import Mesh


def find(subject: Subject) -> Iterator[Finding]:
    """Name what fits no axes, or the mesh where that is for another number of devices than the program."""
    mesh = _mesh(subject)
    if mesh is None:
        return
    fault = size_fault(mesh, subject.num_devices)
    if fault is not None:
        yield Finding(fault)
        return
    faults = subject.ask(faults_of)
    for site in subject.sites:
        figures = figures_of(subject, site)
        explained = any(fault.rule != "groups-uneven" for fault in faults[site.signature])
        if figures.axes is None and not explained and _is_off(figures, mesh):
            yield Finding.about(_message(figures, mesh), site)


def _mesh(subject: Subject) -> Mesh | None:
    """Return the mesh that the program means: one with names that somebody gave, not one that the partitioner made."""
    mesh = subject.ask(context_of).mesh
    stated = subject.mesh is not None or subject.module.mesh is not None
    return mesh if mesh is not None and mesh.axes and (stated or not mesh.has_generated_names) else None


def _is_off(figures: Figures, mesh: Mesh) -> bool:
    """Whether it is known who takes part, and no order of the members makes their groups lie along axes."""
    groups = figures.participation.groups
    if groups is None:
        return figures.participation.pairs is not None
    return groups.num_devices != mesh.num_devices or axes_up_to_order(groups, mesh, "any") is None


def _message(figures: Figures, mesh: Mesh) -> str:
    participation = figures.participation
    groups = participation.groups
    wanted = f"expected groups along axes of {mesh}"
    if groups is None:
        return f"expected pairs of devices of {mesh}, found ids that it does not have"
    if groups.num_devices != mesh.num_devices:
        return f"{wanted}, found groups of {groups.num_devices:,} devices in all where it has {mesh.num_devices:,}"
    if groups.num_devices_per_group is None:
        return f"{wanted}, which all have one size, found groups of different sizes"
    return (
        f"{wanted}, found {shortened(figures.signature.groups)}, whose members do not differ in whole axes or parts of "
        "axes alone; is it the mesh that was meant?"
    )


RULE: Final = Rule(
    id="groups-off-mesh",
    severity="warning",
    title="Groups do not lie along the axes of the mesh",
    documentation=(
        "The members of a group do not vary along whole axes of the mesh, or along parts of axes that divide them "
        "evenly. So the collective joins other devices than any sharding over this mesh would, which is the sign of a "
        "wrong mesh, of a wrong device order, or of groups that were written by hand. Held against the mesh named "
        "with --mesh, the only one in the module's header, or the only one with real names in its groups; never "
        "against meshes whose axes the partitioner numbered. A mesh for another number of devices than the program's "
        "is said once. Groups that are meant to be irregular, such as those of axis_index_groups in JAX, are a reason "
        "to ignore the rule."
    ),
    source="the digits of an iota list, xla/hlo/ir/tile_assignment.cc",
    bad=Example("""HloModule example, replica_count=8
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
  g = f32[32] all-gather(p), replica_groups=mesh['data'=2,'model'=4] {'model'}, dimensions={0}
  ROOT r = f32[32] all-reduce(g), replica_groups={{0,5},{1,4},{2,7},{3,6}}, to_apply=add
}
"""),
    good=Example("""HloModule example, replica_count=8
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
  g = f32[32] all-gather(p), replica_groups=mesh['data'=2,'model'=4] {'model'}, dimensions={0}
  ROOT r = f32[32] all-reduce(g), replica_groups={{0,4},{1,5},{2,6},{3,7}}, to_apply=add
}
"""),
    find=find,
)
