"""Groups that are unlike on different nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo import Deployment, Example, Finding, Rule, check_listable, some_of
from commlens.neuron.checks.topologies import NEURON_TARGETS, topologies_of
from commlens.neuron.rank_layouts import LOCAL_WORLD_SIZES
from commlens.neuron.rank_model import LNCS
from commlens.topology import Mesh, axes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Subject
    from commlens.topology import DeviceList

_SHOWN: Final = 16
"""How many ranks of a group are named."""


def find(subject: Subject) -> Iterator[Finding]:
    """Name collectives with a group that has other places on one of its nodes than on another."""
    on_node = _ranks_per_node(subject.deployment)
    if on_node is None:
        return
    for groups, sites in subject.ask(topologies_of).items():
        uneven = _uneven_group(groups, on_node)
        if uneven is not None:
            message = (
                f"expected a group to have the same places on each of its nodes of {on_node} ranks, found "
                f"{some_of([str(rank) for rank in uneven], _SHOWN)}; pick ranks that are whole nodes apart"
            )
            for site in sites:
                yield Finding.about(message, site)


def _ranks_per_node(deployment: Deployment) -> int | None:
    """Return how many ranks a node has; None where that is not known."""
    if deployment.ranks_per_node is not None or deployment.target is None:
        return deployment.ranks_per_node
    lnc = deployment.lnc or LNCS[deployment.target][0]
    return LOCAL_WORLD_SIZES.get((deployment.target, lnc))


def _uneven_group(groups: DeviceList, on_node: int) -> list[int] | None:
    """Return the first group that is not symmetric; nothing is listed where members vary in nodes and in places."""
    nodes, rest = divmod(groups.num_devices, on_node)
    if nodes and not rest and axes_of(groups, Mesh({"node": nodes, "place": on_node})) is not None:
        return None
    check_listable(groups)
    return next((group for group in groups.groups() if not _is_symmetric(group, on_node)), None)


def _is_symmetric(group: list[int], on_node: int) -> bool:
    if min(group, default=0) < 0:
        return True  # a rule of its own names negative ranks
    places: dict[int, set[int]] = {}
    for rank in group:
        places.setdefault(rank // on_node, set()).add(rank % on_node)
    first, *others = places.values() or [set[int]()]
    return all(each == first for each in others)


RULE: Final = Rule(
    id="NEU-SYMMETRIC-NODES",
    severity="warning",
    title="A group has different places on its nodes",
    documentation=(
        "A group spans several nodes and has other ranks on one than on another: another number of them, or other "
        "places within the node. The inter-node algorithms expect the same number of ranks on every node and the same "
        "indices in each, and fall back or refuse otherwise. How many ranks a node has follows from the target and "
        "the LNC (trn1 32; trn2 64 with LNC 2, its default, and 128 with LNC 1) or is named with --local-world-size; "
        "where it is not known nothing is said."
    ),
    source="AWS Neuron documentation of inter-node collectives",
    bad=Example(
        """HloModule example
ENTRY e {
  p = f32[8] parameter(0)
  ROOT g = f32[16] all-gather(p), replica_groups={{0,65},{1,64}}, dimensions={0}
}
""",
        Deployment("trn2", ranks_per_node=64),
    ),
    good=Example(
        """HloModule example
ENTRY e {
  p = f32[8] parameter(0)
  ROOT g = f32[16] all-gather(p), replica_groups={{0,64},{1,65}}, dimensions={0}
}
""",
        Deployment("trn2", ranks_per_node=64),
    ),
    find=find,
    targets=NEURON_TARGETS,
)
