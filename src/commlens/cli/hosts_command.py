"""``commlens hosts``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commlens.cli.inputs import STANDARD_INPUT
from commlens.cli.messages import warn
from commlens.cli.options import input_options, mesh_option, output_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.analysis import HostModule
    from commlens.cli.inputs import Inputs
    from commlens.cli.output import Output
    from commlens.topology import Mesh


@click.command("hosts", short_help="Show where the modules of several hosts part, and who lacks what.")
@input_options
@mesh_option
@output_options
def command(*, inputs: Inputs, mesh: Mesh | None, output: Output) -> int:
    """Compare what the hosts of one job communicate, before they wait for each other.

    Each FILE is the module of one host or rank, or a folder that one host dumped to; modules of several folders belong
    together by their names. A single folder holds the files or the folders of all hosts. Exit code 1: the hosts do not
    run the same collectives in the same order, or something could not be read.
    """
    from commlens.analysis import HostSurvey, compare_hosts
    from commlens.views import HostsView

    survey = HostSurvey(mesh)
    paths, notes = _each_once(inputs.paths)
    inputs = replace(inputs, paths=tuple(_opened(paths)))
    answers = inputs.answer(survey.look_at)
    if answers.found:
        answer = compare_hosts(answers.found, inputs.paths, survey, notes=notes)
        output.show(HostsView(answer))
        warn(_warnings(answers.found))
        return answers.complain() or (0 if answer.agree else 1)
    return answers.complain()


def _opened(paths: Sequence[str]) -> Sequence[str]:
    """Return what lies in a single folder of folders, and all else as it is."""
    if len(paths) != 1 or not Path(paths[0]).is_dir():
        return paths
    inner = sorted(Path(paths[0]).iterdir())
    is_cache = any(each.name.startswith(("MODULE_", "neuronxcc-")) for each in (Path(paths[0]), *inner))
    return [str(each) for each in inner] if inner and not is_cache and all(each.is_dir() for each in inner) else paths


def _each_once(paths: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the paths without those that are given again, and what to say of these.

    A link has another name than what it leads to, and may stand for another host.
    """
    spellings: dict[object, list[str]] = {}
    for path in paths:
        spellings.setdefault(path if path == STANDARD_INPUT else Path(path).absolute(), []).append(path)
    again = (same for same in spellings.values() if len(same) > 1)
    return (
        tuple(first for first, *_ in spellings.values()),
        tuple(f"{same[0]} is given {len(same):,} times and counts once" for same in again),
    )


def _warnings(members: Sequence[HostModule]) -> Iterator[str]:
    """Say what is strange about the mesh, and name what could not be read, with its place."""
    for member in members:
        yield from (f"{member.path}: {note}" for note in member.notes)
        for item in member.unread:
            place = f"{member.path}:{item.where}" if member.format == "text" else f"{member.path}: {item.where}"
            what = " ".join(word for word in (item.opcode, item.name) if word)
            yield f"{place}: {what}: {item.why}" if what else f"{place}: {item.why}"
