"""A module on the cores of a machine: for every physical core its rank, and whom it meets in each collective."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from commlens.errors import CommlensError, InputError
from commlens.hlo import UnreadableError, discover, is_collective
from commlens.neuron.rank_model import simulator_refusal
from commlens.topology import (
    CollectiveDeviceList,
    CollectiveOpGroupMode,
    get_collective_op_group_mode,
    participant_list,
    participant_pairs,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commlens.hlo import Instruction, Module, Signature, Site
    from commlens.neuron.rank_model import RankModel
    from commlens.topology import DeviceList, SourceTargetPairs


_NO_COUNTS: Final = (
    "nobody states how many replicas and partitions there are; give them with --replicas and --partitions"
)


@dataclass(frozen=True, slots=True)
class Peers:
    """Whom one rank meets in one collective.

    Attributes:
        peers: the other ranks of its group in their order; for pairs the others that it sends to or receives from.
        position: its place in its group; None for pairs.
        sends_to: for pairs the ranks it sends to, itself among them where it keeps its own data.
        receives_from: for pairs the ranks it receives from, itself likewise.
    """

    peers: list[int]
    position: int | None = None
    sends_to: tuple[int, ...] = ()
    receives_from: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Meeting:
    """Who meets whom in a collective, and in all others that say the same: large modules repeat few of them many times.

    Attributes:
        ranks: the groups of ranks; None for pairs, and where they cannot be told.
        unknown_because: why nobody's peers can be told, in a sentence; None where they can.
    """

    ranks: DeviceList | None
    unknown_because: str | None
    _neighbours: Mapping[int, Peers]

    def peers_of(self, rank: int) -> Peers | None:
        """Return whom a rank meets; None where it does not take part, or where that cannot be told."""
        if self.ranks is None:
            return self._neighbours.get(rank)
        place = self.ranks.group_of(rank)
        if place is None:
            return None
        number, position = place
        group = self.ranks.group(number)
        others = [*group[:position], *group[position + 1 :]]
        return Peers(others if rank not in others else [other for other in others if other != rank], position)


@dataclass(frozen=True, slots=True, eq=False)
class CoreCollective:
    """One collective of a module, in ranks.

    Attributes:
        name: the instruction's name, of the start where there is one.
        opcode: the operation.
        line: the line it stands on; None in a proto.
        stated: the groups that the instruction states, as it states them; None for a send or recv without any, which
            HLO never gives some, so that there is nothing to be judged.
        meeting: who meets whom in it.
    """

    name: str
    opcode: str
    line: int | None
    stated: DeviceList | None
    meeting: Meeting

    @property
    def ranks(self) -> DeviceList | None:
        """Its groups of ranks; None for pairs, and where they cannot be told."""
        return self.meeting.ranks

    @property
    def unknown_because(self) -> str | None:
        """Why nobody's peers can be told, in a sentence; None where they can."""
        return self.meeting.unknown_because

    @property
    def refusal(self) -> str | None:
        """Why the documented simulator would not run it, see :func:`simulator_refusal`; None where it would."""
        return None if self.stated is None else simulator_refusal(self.opcode, self.stated)

    def peers_of(self, rank: int) -> Peers | None:
        """Return whom a rank meets; None where it does not take part, or where that cannot be told."""
        return self.meeting.peers_of(rank)


@dataclass(frozen=True, slots=True)
class CoreRank:
    """One physical core.

    Attributes:
        core: its number.
        rank: the rank it works for.
        peers: whom it meets in each collective, in their order; None where it does not take part.
    """

    core: int
    rank: int
    peers: tuple[Peers | None, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CoreMap:
    """A module on the cores of a machine.

    Attributes:
        path: where the module came from.
        model: how cores become ranks.
        world: how many ranks there are.
        collectives: the collectives in row order.
    """

    path: str
    model: RankModel
    world: int
    collectives: tuple[CoreCollective, ...]

    @property
    def num_cores(self) -> int:
        """How many physical cores there are."""
        return self.world * self.model.cores_per_lnc

    def core(self, core: int) -> CoreRank:
        """Return one core.

        Raises:
            CommlensError: there is no such core.
        """
        rank = self.model.global_rank_id(core, self.world)
        meetings = dict.fromkeys(collective.meeting for collective in self.collectives)
        met = {meeting: meeting.peers_of(rank) for meeting in meetings}
        return CoreRank(core, rank, tuple(met[collective.meeting] for collective in self.collectives))

    def cores(self) -> Iterator[CoreRank]:
        """Yield all cores, ascending."""
        return (self.core(core) for core in range(self.num_cores))

    def check_simulated(self) -> None:
        """Refuse a module that the documented simulator would not run.

        Raises:
            InputError: with the simulator's words, and the name and line of the first such collective.
        """
        for collective in self.collectives:
            if collective.stated is None:
                continue
            try:
                self.model.check_simulated(collective.opcode, collective.stated)
            except CommlensError as error:
                reason = f"{collective.opcode} {collective.name}: {error}"
                raise InputError(reason, path=self.path, line=collective.line) from error


def core_map(module: Module, model: RankModel, world: int | None = None) -> CoreMap:
    """Put a module on the cores of a machine.

    Args:
        module: the module. The ids of its groups, made global by the group mode, are the ranks.
        model: how cores become ranks.
        world: how many ranks there are; None for the devices that the module states.

    Returns:
        The map. What could not be read of the module is not in it.

    Raises:
        InputError: nobody says how many ranks there are, or the module is for another number of them.

    Source: reference document on meshes and replica groups, section 6: an id in a replica group is a rank, and that is
    the physical core divided by the cores per LNC.

    Example:
        >>> from commlens.hlo import load
        >>> from commlens.neuron.rank_model import RankModel
        >>> module = load('''HloModule m, replica_count=4
        ... ENTRY e {
        ...   p = f32[4] parameter(0)
        ...   ROOT g = f32[8] all-gather(p), replica_groups={{0,2},{1,3}}, dimensions={0}
        ... }''')
        >>> core = core_map(module, RankModel(2)).core(5)
        >>> core.rank, core.peers[0].peers
        (2, [0])
    """
    counts = _counts(module)
    stated = None if counts is None else counts[0] * counts[1]
    ranks = stated if world is None else world
    if ranks is None:
        reason = "expected the number of ranks: the module states neither replicas nor partitions; give world"
        raise InputError(reason, path=module.path)
    if stated not in (None, ranks):
        reason = f"expected a module for {ranks} ranks, found one for {stated} devices"
        raise InputError(reason, path=module.path)
    sites = discover(module).sites
    meetings = {signature: _meeting(signature, counts) for signature in {site.signature for site in sites}}
    collectives = (
        CoreCollective(site.name, site.signature.opcode, site.line, _stated(module, site), meetings[site.signature])
        for site in sites
    )
    return CoreMap(module.path, model, ranks, tuple(collectives))


def _counts(module: Module) -> tuple[int, int] | None:
    if module.replica_count is None or module.num_partitions is None:
        return None
    return module.replica_count, module.num_partitions


def _meeting(signature: Signature, counts: tuple[int, int] | None) -> Meeting:
    ranks: DeviceList | None = None
    neighbours: Mapping[int, Peers] = {}
    why: str | None = None
    try:
        if signature.groups is not None:
            ranks = _ranks(signature, signature.groups, counts)
        else:
            neighbours = _neighbours(_rank_pairs(signature, counts))
    except CommlensError as error:
        why = str(error)
    return Meeting(ranks, why, neighbours)


def _stated(module: Module, site: Site) -> DeviceList | None:
    """Return the groups that a site states, also where they have no meaning: those of permutes, sends and receives."""
    signature = site.signature
    if signature.groups is not None:
        return signature.groups
    groups = _attribute(_communicating(module, site.instruction))
    return groups if groups.num_replica_groups or signature.opcode == "collective-permute" else None


def _communicating(module: Module, instruction: Instruction) -> Instruction:
    """Return the collective that an async-start wraps; any other instruction is itself."""
    if instruction.opcode != "async-start":
        return instruction
    wrapped = next((module.computation(name) for role, name in instruction.called if role == "async"), None)
    inside = () if wrapped is None else wrapped.instructions
    return next((each for each in inside if is_collective(each.opcode)), instruction)


def _attribute(instruction: Instruction) -> DeviceList:
    """Return the groups that an instruction states; what cannot be read is one group, for it is there."""
    try:
        return instruction.replica_groups
    except UnreadableError:
        return CollectiveDeviceList([[]])


def _ranks(signature: Signature, groups: DeviceList, counts: tuple[int, int] | None) -> DeviceList:
    mode = get_collective_op_group_mode(signature.has_channel, signature.use_global_device_ids)
    if counts is None and mode is not CollectiveOpGroupMode.FLATTENED_ID:
        raise CommlensError(_NO_COUNTS)
    replicas, partitions = counts or (1, 1)  # flattened ids do not ask for them
    return participant_list(mode, groups, replicas, partitions, any_group_order=True)


def _rank_pairs(signature: Signature, counts: tuple[int, int] | None) -> SourceTargetPairs:
    if signature.is_host_transfer:
        msg = "the peer is the host"
        raise CommlensError(msg)
    if signature.pairs is None:
        msg = "the instruction does not state its source-target pairs"
        raise CommlensError(msg)
    if counts is None:
        raise CommlensError(_NO_COUNTS)
    return participant_pairs(get_collective_op_group_mode(signature.has_channel, None), signature.pairs, *counts)


def _neighbours(pairs: SourceTargetPairs) -> dict[int, Peers]:
    """Sort pairs by who is in them; by a pair with itself a rank meets nobody else."""
    targets: defaultdict[int, list[int]] = defaultdict(list)
    sources: defaultdict[int, list[int]] = defaultdict(list)
    for source, target in pairs:
        targets[source].append(target)
        sources[target].append(source)
    return {
        rank: Peers(
            [each for each in dict.fromkeys([*targets.get(rank, ()), *sources.get(rank, ())]) if each != rank],
            None,
            tuple(targets.get(rank, ())),
            tuple(sources.get(rank, ())),
        )
        for rank in sorted(targets.keys() | sources.keys())
    }
