"""``commlens hosts``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

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
    inputs = replace(inputs, paths=tuple(dict.fromkeys(_opened(inputs.paths))))
    answers = inputs.answer(survey.look_at)
    if answers.found:
        answer = compare_hosts(answers.found, inputs.paths, survey)
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


def _warnings(members: Sequence[HostModule]) -> Iterator[str]:
    """Name what could not be read, with its place."""
    for member in members:
        for item in member.unread:
            place = f"{member.path}:{item.where}" if member.format == "text" else f"{member.path}: {item.where}"
            what = " ".join(word for word in (item.opcode, item.name) if word)
            yield f"{place}: {what}: {item.why}" if what else f"{place}: {item.why}"
