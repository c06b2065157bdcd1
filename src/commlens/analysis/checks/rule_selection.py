"""Choosing rules by name."""

from __future__ import annotations

from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from commlens.errors import CommlensError, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from commlens.hlo import Deployment, Rule


def matches(pattern: str, rule_id: str) -> bool:
    """Whether a pattern names a rule: by its id, by the beginning of it up to a dash, or with stars.

    Example:
        >>> matches("NEU", "NEU-RANK-NEG"), matches("stream-*", "stream-split"), matches("group", "groups-uneven")
        (True, True, False)
    """
    wanted, name = pattern.lower(), rule_id.lower()
    return wanted in ("all", name) or name.startswith(f"{wanted}-") or fnmatchcase(name, wanted)


def chosen_rules(
    rules: Sequence[Rule], deployment: Deployment, *, select: Sequence[str] = (), ignore: Sequence[str] = ()
) -> tuple[Rule, ...]:
    """Return the rules to run.

    Args:
        rules: all there are.
        deployment: what programs are to run on: rules for other machines are left out.
        select: patterns of the rules to run; none: all.
        ignore: patterns of those to leave out all the same.

    Returns:
        The rules in their order.

    Raises:
        CommlensError: a pattern names no rule, or one of ``select`` only rules for another machine.

    Example:
        >>> from commlens.analysis import RULES
        >>> from commlens.hlo import Deployment
        >>> [rule.id for rule in chosen_rules(RULES, Deployment(), select=["groups"], ignore=["*-mesh"])]
        ['groups-uneven', 'groups-incomplete']
    """
    for pattern in (*select, *ignore):
        _check_known(rules, pattern)
    for pattern in select:
        _check_applies([rule for rule in rules if matches(pattern, rule.id)], deployment)
    return tuple(
        rule
        for rule in rules
        if rule.applies_to(deployment)
        and (not select or any(matches(pattern, rule.id) for pattern in select))
        and not any(matches(pattern, rule.id) for pattern in ignore)
    )


def rules_of(rules: Sequence[Rule], pattern: str) -> tuple[Rule, ...]:
    """Return the rules that a pattern names, upper and lower case alike.

    Raises:
        CommlensError: it names none.
    """
    _check_known(rules, pattern)
    return tuple(rule for rule in rules if matches(pattern, rule.id))


def _check_known(rules: Sequence[Rule], pattern: str) -> None:
    if not any(matches(pattern, rule.id) for rule in rules):
        raise _unknown(rules, pattern)


def _unknown(rules: Iterable[Rule], name: str) -> CommlensError:
    names = [name for rule in rules for name in (rule.id, rule.id.partition("-")[0])]
    known = {name.lower(): name for name in names}
    like = [known[each] for each in get_close_matches(name.lower(), known, n=1)]
    hint = f"did you mean {like[0]}?" if like else "--list-rules shows them all"
    msg = f"expected the id of a rule, found {excerpt(name)!r}; {hint}"
    return CommlensError(msg)


def _check_applies(selected: Sequence[Rule], deployment: Deployment) -> None:
    """Refuse to look for what cannot be found: no finding would be taken for no fault."""
    if any(rule.applies_to(deployment) for rule in selected):
        return
    targets = ", ".join(sorted({target for rule in selected for target in rule.targets or ()}))
    found = "none" if deployment.target is None else deployment.target
    msg = f"expected a target of {selected[0].id}, one of {targets}, found {found}"
    raise CommlensError(msg)
