"""Comparing the modules of many hosts before they run together: where they part, and who lacks what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from commlens.analysis.hosts.grouping import grouped
from commlens.analysis.hosts.module_comparison import compare_module

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commlens.analysis.hosts.answers import FirstDifference, ModuleOnHosts
    from commlens.analysis.hosts.survey import HostModule, HostSurvey


@dataclass(frozen=True, slots=True, eq=False)
class Hosts:
    """How the modules of some hosts compare.

    Attributes:
        hosts: the hosts, as they were named.
        modules: one answer per module.
        absent: name of a module -> hosts that do not have it, where others do.
        members: what was looked at.
        notes: what to know of the comparison, in sentences.
    """

    hosts: tuple[str, ...]
    modules: tuple[ModuleOnHosts, ...]
    absent: Mapping[str, tuple[str, ...]]
    members: tuple[HostModule, ...]
    notes: tuple[str, ...]

    @property
    def agree(self) -> bool | None:
        """Whether all hosts run the same collectives in the same order, on as many devices; None: it is not known."""
        verdicts = [module.agree for module in self.modules]
        if self.absent or False in verdicts:
            return False
        return None if None in verdicts else True

    @property
    def first_difference(self) -> FirstDifference | None:
        """Where the hosts part in the first module in which they do; None where they do in none."""
        return next((each.first_difference for each in self.modules if each.first_difference is not None), None)

    def as_dict(self) -> dict[str, object]:
        """Return the answer in its JSON form."""
        first = self.first_difference
        return {
            "agree": self.agree,
            "first_difference": None if first is None else first.as_dict(),
            "missing": _joined([module.missing for module in self.modules]),
            "extra": _joined([module.extra for module in self.modules]),
            "absent": {name: list(hosts) for name, hosts in self.absent.items()},
            "hosts": list(self.hosts),
            "modules": [module.as_dict() for module in self.modules],
            "notes": list(self.notes),
        }


def _joined(found: Sequence[Mapping[str, tuple[str, ...]]]) -> dict[str, list[str]]:
    joined: dict[str, list[str]] = {}
    for each in found:
        for path, names in each.items():
            joined.setdefault(path, []).extend(names)
    return joined


def compare_hosts(
    members: Sequence[HostModule], inputs: Sequence[str], survey: HostSurvey, *, notes: Sequence[str] = ()
) -> Hosts:
    """Compare the modules of some hosts.

    Args:
        members: what was seen of them, in the order of the inputs.
        inputs: files and folders as they were named, see :func:`~commlens.analysis.hosts.grouping.grouped`.
        survey: what has looked at them.
        notes: what to know beforehand, in sentences.

    Example:
        >>> from commlens.analysis import HostSurvey
        >>> from commlens.hlo import load
        >>> text = '''HloModule m, replica_count=2
        ... ENTRY e {{
        ...   p = f32[4] parameter(0)
        ...   ROOT r = {}
        ... }}'''
        >>> survey, members = HostSurvey(), []
        >>> for path, line in (("a", "f32[4] all-reduce(p), replica_groups={}, to_apply=add"), ("b", "f32[4] copy(p)")):
        ...     module = load(text.format(line))
        ...     module.path = path
        ...     members.append(survey.look_at(module))
        >>> answer = compare_hosts(members, ["a", "b"], survey)
        >>> answer.agree, answer.as_dict()["missing"], answer.first_difference.members["b"]
        (False, {'b': ['r']}, 'nothing: its list of 0 collectives ends before')
    """
    grouping = grouped(members, inputs)
    modules = tuple(compare_module(name, found, survey.meanings) for name, found in grouping.groups)
    return Hosts(grouping.hosts, modules, grouping.absent, tuple(members), (*notes, *grouping.notes))
