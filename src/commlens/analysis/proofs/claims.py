"""What commlens says of collectives, one claim for those that join the same devices in the same way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from commlens.analysis.participation import Counts, groups_participation, participation_of
from commlens.analysis.proofs.scaling import Flags, Layout
from commlens.analysis.totals import OPCODES
from commlens.errors import CommlensError, InputError
from commlens.hlo import Signature, shortened
from commlens.topology import CollectiveOpGroupMode as Mode
from commlens.topology import (
    get_collective_op_group_mode,
    parse_replica_groups,
    parse_source_target_pairs,
    use_global_device_ids_for,
)

if TYPE_CHECKING:
    from commlens.analysis.participation import Participation
    from commlens.analysis.reports import Report
    from commlens.analysis.row import Row

_PAIRED: Final = ("collective-permute", "send", "recv")


@dataclass(frozen=True, slots=True)
class Claim:
    """What is said of collectives that join the same devices in the same way.

    Attributes:
        names: the instructions that are alike, the first one first.
        module: the name of their module; None where there is none.
        opcode: the operation.
        text: its groups or pairs as they are spelled; None where they are not known.
        participation: who takes part.
        layout: what to run; None where it is not known who takes part.
        counts: replicas and partitions.
    """

    names: tuple[str, ...]
    module: str | None
    opcode: str
    text: str | None
    participation: Participation
    layout: Layout | None
    counts: Counts


def claims_of(report: Report) -> list[Claim]:
    """Return what a report says of each distinct collective: by opcode, channel and flag, groups or pairs as spelled.

    Raises:
        InputError: nobody states how many replicas and partitions there are.
    """
    module = report.module
    counts = Counts.of(module.replica_count, module.num_partitions)
    if not report.collectives:
        return []
    if counts is None:
        reason = "nobody states how many replicas and partitions to run; give them with --replicas and --partitions"
        raise InputError(reason, path=module.path)
    alike: dict[tuple[str, Flags, str | None], list[Row]] = {}
    for row in report.collectives:
        signature = row.figures.signature
        alike.setdefault((row.opcode, _flags_of(signature), _text_of(signature)), []).append(row)
    return [
        _claim(tuple(row.name for row in rows), module.name, rows[0].figures.signature, counts)
        for rows in alike.values()
    ]


def claim_of(
    spec: str,
    mode: Mode | str,
    *,
    replicas: int,
    partitions: int,
    opcode: str | None = None,
) -> Claim:
    """Return what is said of one replica group list, or of one list of pairs.

    Args:
        spec: the groups in any spelling; for collective-permute, send and recv the pairs.
        mode: what the ids are.
        replicas: how many replicas there are.
        partitions: how many partitions there are.
        opcode: the operation; None: one that can have the mode and shows the order inside a group, if any does.

    Raises:
        GrammarError: the spec breaks the grammar.
        CommlensError: there is no such collective, or it is never in this mode.

    Example:
        >>> claim = claim_of("{{1,0}}", "cross_replica", replicas=2, partitions=2)
        >>> claim.opcode, claim.participation.listed(100)
        ('all-gather', [[2, 0], [3, 1]])
    """
    mode = Mode(mode)
    counts = Counts(replicas, partitions)
    if opcode in _PAIRED:
        pairs = parse_source_target_pairs(spec)
        _check_mode("collective-permute", mode)
        signature = Signature(opcode, False, (), (), pairs=pairs, has_channel=mode is not Mode.CROSS_REPLICA)
        return _claim((spec,), None, signature, counts)
    groups = parse_replica_groups(spec)
    opcode = opcode or _telling_opcode(mode, even=groups.num_devices_per_group is not None)
    if opcode not in OPCODES:
        msg = f"expected a collective ({', '.join(OPCODES)}), found {shortened(repr(opcode))}"
        raise CommlensError(msg)
    _check_mode(opcode, mode)
    participation = groups_participation(mode, groups, counts)
    return Claim((spec,), None, opcode, str(groups), participation, Layout(mode, counts, groups), counts)


def _telling_opcode(mode: Mode, *, even: bool) -> str:
    if mode is Mode.CROSS_PARTITION:
        return "all-to-all"
    return "all-gather" if even else "all-reduce"


def _check_mode(opcode: str, mode: Mode) -> None:
    """Insist on a mode that the operation can have."""
    stated = (True, False) if use_global_device_ids_for(opcode, True) else (None,)
    modes = {get_collective_op_group_mode(False, None), *(get_collective_op_group_mode(True, flag) for flag in stated)}
    if mode not in modes:
        possible = " or ".join(map(str, sorted(modes)))
        msg = f"expected a mode that {opcode} can have ({possible}), found {mode}"
        raise CommlensError(msg)


def _text_of(signature: Signature) -> str | None:
    stated = signature.pairs if signature.groups is None else signature.groups
    return None if stated is None else str(stated)


def _flags_of(signature: Signature) -> Flags:
    return Flags(signature.has_channel, bool(signature.use_global_device_ids))


def _claim(names: tuple[str, ...], module: str | None, signature: Signature, counts: Counts) -> Claim:
    participation = participation_of(signature, counts)
    mode = participation.mode
    layout = None if mode is None else Layout(mode, counts, signature.groups, signature.pairs, _flags_of(signature))
    return Claim(names, module, signature.opcode, _text_of(signature), participation, layout, counts)
