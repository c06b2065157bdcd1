"""Whether a NEFF is the compilation of the module and the flags that lie beside it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeAlias

from commlens.errors import CommlensError
from commlens.hlo import shortened, some_of
from commlens.neuron.cc_info import CCInfo
from commlens.neuron.cc_rows import groups_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from commlens.hlo import Module

_Geometry: TypeAlias = frozenset[frozenset[int]]

_LNC: Final = re.compile(r"--(?:lnc|logical-nc-config)(?:[= ]\s*(?P<number>\d{1,9}))?")
_NUMBER: Final = re.compile(r"\d{1,9}")


def lnc_of_flags(flags: Iterable[str]) -> int | None:
    """Return the LNC that the compiler's flags ask for, the last where they do so twice; None where they do not.

    Example:
        >>> lnc_of_flags(["--target=trn2", "--lnc=2"]), lnc_of_flags(["--lnc", "1"]), lnc_of_flags(["-O1"])
        (2, 1, None)
    """
    found: int | None = None
    open_flag = False
    for flag in flags:
        match = _LNC.fullmatch(flag)
        number = flag if open_flag and _NUMBER.fullmatch(flag) else None if match is None else match["number"]
        found = found if number is None else int(number)
        open_flag = match is not None and number is None
    return found


def lnc_fault(flags: Iterable[str] | None, compiled: int | None) -> str | None:
    """Say where the flags ask for another LNC than the header of the NEFF states; None where one is silent.

    Example:
        >>> print(lnc_fault(["--lnc=1"], 2))
        the flags ask for LNC 1, the header of the NEFF states LNC 2: it was compiled with other flags
    """
    asked = lnc_of_flags(flags or ())
    if asked is None or compiled is None or asked == compiled:
        return None
    return (
        f"the flags ask for LNC {asked}, the header of the NEFF states LNC {compiled}: it was compiled with other flags"
    )


def groups_fault(compiled: CCInfo, module: Module) -> str | None:
    """Say where the groups of a NEFF are not those of its module.

    Groups are compared as sets, and groups of one rank do not count. A module may state the first group for all
    (``NEURON_EXPERIMENTAL_COMPRESS_RG``). Where it has permutes, the NEFF may have more groups, since the compiler can
    replace a permute by an all-gather.

    Args:
        compiled: the CC info of the NEFF.
        module: the module beside it.

    Returns:
        A sentence; None where they agree, and where the module leaves open what its groups are: counts that nobody
        states, collectives that could not be read, ids that are no ranks.
    """
    try:
        stated = CCInfo.from_module(module)
    except CommlensError:
        return None
    if stated.notes:
        return None
    here, there = dict(_geometries(compiled)), dict(_geometries(stated))
    first_alone = {frozenset({frozenset(groups[0])}) for groups in there.values()}
    lacking = [groups for geometry, groups in there.items() if not here.keys() & _forms(geometry, groups)]
    surplus = [groups for geometry, groups in here.items() if geometry not in there and geometry not in first_alone]
    if stated.src_target_pairs is not None:
        surplus = []
    if not lacking and not surplus:
        return None
    sides = (("module", lacking), ("NEFF", surplus))
    parts = "; ".join(f"only in the {side}: {_named(groups)}" for side, groups in sides if groups)
    return f"the NEFF does not have the groups of the module beside it, and was compiled from another: {parts}"


def _geometries(info: CCInfo) -> Iterator[tuple[_Geometry, list[list[int]]]]:
    """Yield each topology as a set of sets and as it is written, those aside in which nobody meets anybody."""
    for topology in info.replica_groups or []:
        meeting = [group for group in topology if len(group) > 1]
        if meeting:
            yield frozenset(map(frozenset, meeting)), meeting


def _forms(geometry: _Geometry, groups: Sequence[Sequence[int]]) -> set[_Geometry]:
    return {geometry, frozenset({frozenset(groups[0])})}


def _named(topologies: Sequence[list[list[int]]]) -> str:
    return some_of([shortened(groups_text(groups)) for groups in topologies])
