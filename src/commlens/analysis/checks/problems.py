"""Running rules on a module: findings with their places, in the order in which one reads the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from commlens.analysis.meshes import as_mesh
from commlens.hlo import Subject, find_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlens.analysis.meshes import MeshLike
    from commlens.hlo import Deployment, Module, Place, Rule, Severity


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding of one rule in one module.

    Attributes:
        rule: the rule.
        severity: how bad it is.
        message: a full sentence: what was expected, what was found, what would be right.
        path: the file, as the user named it.
        module: the module's name.
        places: the instructions that it is about, the first of them the one to show; none where it is the module.
    """

    rule: Rule
    severity: Severity
    message: str
    path: str
    module: str
    places: tuple[Place, ...]

    @property
    def line(self) -> int | None:
        """The line to show; None in a proto, and where it is the module that something is wrong with."""
        return self.places[0].line if self.places else None

    @property
    def instructions(self) -> list[str]:
        """Names of the instructions that it is about."""
        return [place.name for place in self.places if place.name]

    def as_dict(self) -> dict[str, object]:
        """Return the finding in its JSON form."""
        return {
            "rule": self.rule.id,
            "severity": self.severity,
            "message": self.message,
            "path": self.path,
            "line": self.line,
            "instructions": self.instructions,
            "module": self.module,
            "computation": self.places[0].computation if self.places else None,
        }


def check(
    module: Module, rules: Iterable[Rule], *, mesh: MeshLike | None = None, deployment: Deployment | None = None
) -> list[Problem]:
    """Find everything that some rules have against a module.

    Args:
        module: the module.
        rules: the rules, such as :data:`~commlens.analysis.RULES`; those for other machines are passed over.
        mesh: the mesh that names axes, as for :func:`~commlens.analysis.report`.
        deployment: what the program is to run on.

    Returns:
        All findings, by line where the module has lines, those about the module first; findings of one line in the
        order of the rules.

    Raises:
        CommlensError: ``mesh`` is no mesh. Faults of the module are findings.

    Example:
        >>> from commlens.hlo import load
        >>> from commlens.analysis import RULES
        >>> module = load('''HloModule m, replica_count=4
        ... ENTRY e {
        ...   p = f32[16] parameter(0)
        ...   ROOT g = f32[32] all-gather(p), replica_groups={{0,1},{2,4}}, dimensions={0}
        ... }''')
        >>> [(found.rule.id, found.severity, found.instructions) for found in check(module, RULES)]
        [('id-out-of-range', 'error', ['g']), ('groups-incomplete', 'error', ['g'])]
    """
    subject = Subject.of(module, None if mesh is None else as_mesh(mesh), deployment)
    found = [
        Problem(rule, finding.severity or rule.severity, finding.message, module.path, module.name, finding.places)
        for rule, finding in find_all(subject, rules)
    ]
    return sorted(found, key=lambda problem: problem.line or 0)
