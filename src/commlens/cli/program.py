"""The program: its commands, loaded when they are used, and the one place where errors become exit codes."""

from __future__ import annotations

import os
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import click

from commlens.cli.messages import complain, sentence_of
from commlens.errors import CommlensError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

EXIT_UNUSABLE: Final = 2
EXIT_INTERRUPTED: Final = 130

COMMANDS: Final = MappingProxyType(
    {
        "check": "commlens.cli.check_command",
        "diff": "commlens.cli.diff_command",
        "explain": "commlens.cli.explain_command",
        "explain-log": "commlens.cli.explain_log_command",
        "groups": "commlens.cli.groups_command",
        "hosts": "commlens.cli.hosts_command",
        "neff": "commlens.cli.neff_command",
        "opt": "commlens.cli.opt_command",
        "prove": "commlens.cli.prove_command",
        "ranks": "commlens.cli.ranks_command",
        "report": "commlens.cli.report_command",
    }
)
"""Name -> module that has the command under the name ``command``."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None if there is none of that name."""
        home = COMMANDS.get(cmd_name)
        if home is None:
            return None
        command: object = import_module(home).command
        return command if isinstance(command, click.Command) else None


def _print_version(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if not value or context.resilient_parsing:
        return
    from commlens import __version__

    click.echo(f"commlens {__version__}")
    context.exit()


@click.group(
    cls=LazyGroup,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 found what the command looks for, 2 unusable input or command line.",
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the version and exit.",
)
def program() -> None:
    """See the communication in compiled XLA programs.

    Which devices every collective joins, along which mesh axes, how many bytes it moves and how often it runs.
    """


def run(argv: Sequence[str] | None) -> int:
    """Run the program; see :func:`commlens.cli.main`."""
    try:
        result: object = program.main(
            args=None if argv is None else list(argv), prog_name="commlens", standalone_mode=False
        )
    except click.Abort:
        return EXIT_INTERRUPTED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except MemoryError:
        complain("there is not enough memory for this input")
        return EXIT_UNUSABLE
    except Exception as error:
        if _is_foreseen(error):
            complain(sentence_of(error))
            return EXIT_UNUSABLE
        if _wants_traceback(os.environ):
            raise
        complain(
            f"this is a fault of commlens, please report it: {type(error).__name__}: {error} "
            "(COMMLENS_DEBUG=1 shows where)"
        )
        return EXIT_UNUSABLE
    return result if isinstance(result, int) else 0


def _is_foreseen(error: Exception) -> bool:
    return isinstance(error, (CommlensError, OSError, click.ClickException))


def _wants_traceback(environment: Mapping[str, str]) -> bool:
    return environment.get("COMMLENS_DEBUG", "") not in ("", "0")
