"""What the all-reduces of a module reduce with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlens.hlo import UnreadableError, reducer_of, reduction_kind

if TYPE_CHECKING:
    from commlens.hlo import ReductionKind, Site, Subject


def reduction_of(subject: Subject, site: Site) -> ReductionKind | None:
    """Return what a collective reduces with, None where that is none of XLA's reductions or cannot be made out."""
    try:
        reducer = reducer_of(site.instruction)
        if reducer is None:
            return None
        known = subject.ask(_kinds)
        if reducer.name not in known:
            known[reducer.name] = reduction_kind(reducer)
        return known[reducer.name]
    except (UnreadableError, LookupError):
        return None


def _kinds(_: Subject) -> dict[str, ReductionKind | None]:
    """Return where reductions are kept by the name of their reducer: many collectives share a few."""
    return {}
