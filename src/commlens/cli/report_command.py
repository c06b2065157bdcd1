"""``commlens report``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from commlens.cli.messages import warn
from commlens.cli.options import full_option, input_options, mesh_option, output_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.analysis import Report
    from commlens.cli.inputs import Inputs
    from commlens.cli.output import Output
    from commlens.hlo import Module
    from commlens.topology import Mesh


@click.command("report")
@input_options
@mesh_option
@full_option
@output_options
def command(*, inputs: Inputs, mesh: Mesh | None, full: bool, output: Output) -> int:
    """Show every collective of a module, and totals.

    FILE is HLO text, a binary HLO proto or its text form, compressed or not; a folder that XLA dumped to; a Neuron
    compile cache; or - for standard input. What it holds is found out from its content.
    """
    from commlens.analysis import report
    from commlens.views import ReportView

    def question(module: Module) -> Report:
        return report(module, mesh, full=full)

    answers = inputs.answer(question)
    if answers.found:
        output.show(ReportView(answers.found))
    warn(_warnings(answers.found))
    return answers.complain()


def _warnings(reports: Sequence[Report]) -> Iterator[str]:
    """Say what is strange about the mesh, and name what could not be read, with its place."""
    for report in reports:
        module = report.module
        yield from (f"{module.path}: {note}" for note in report.notes)
        for item in report.unread:
            place = f"{module.path}:{item.where}" if module.format == "text" else f"{module.path}: {item.where}"
            what = " ".join(word for word in (item.opcode, item.name) if word)
            yield f"{place}: {what}: {item.why}" if what else f"{place}: {item.why}"
