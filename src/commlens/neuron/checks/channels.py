"""Who uses which channel."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlens.hlo import Site, Subject


def users_by_channel(subject: Subject) -> Mapping[int, tuple[Site, ...]]:
    """Return everything that has a channel id, by its id, in row order."""
    found: dict[int, list[Site]] = {}
    for site in subject.sites:
        if site.channel_id is not None:
            found.setdefault(site.channel_id, []).append(site)
    return {channel: tuple(sites) for channel, sites in found.items()}
