"""The `gateway` command: one table of commands, each imported only when it runs, so that `--help` answers at once."""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from gateway.__about__ import COMMAND, __version__
from gateway.cli.streams import close_output, let_go, prepare_streams, tell, told_of_output
from gateway.interruption import Interruptions, exit_code, told

# Boxes and colours are for people. Through a pipe they only get in the way, and rich's help takes 0.2 s to import.
_MARKUP: Literal["rich"] | None = "rich" if sys.stdout is not None and sys.stdout.isatty() else None


class _Entry(NamedTuple):
    module: str
    attribute: str
    help: str


COMMANDS = {
    "serve": _Entry("gateway.cli.serve", "serve", "Start the gateway."),
    "check": _Entry("gateway.cli.check", "check", "Validate a configuration; --live asks every target too."),
    "init": _Entry("gateway.cli.init", "init", "Write a commented configuration file."),
    "config": _Entry("gateway.cli.config", "app", "Show the effective configuration or its JSON schema."),
    "import": _Entry("gateway.cli.import_", "app", "Make a configuration of another gateway's."),
    "keys": _Entry("gateway.cli.keys", "app", "Create, list, show and revoke API keys."),
    "models": _Entry("gateway.cli.models", "app", "List models with prices, limits and what they can do."),
    "explain": _Entry("gateway.cli.explain", "explain", "Say what would become of a request, without sending it."),
    "probe": _Entry("gateway.cli.probe", "probe", "Ask a provider whether its file still holds."),
    "simulate": _Entry("gateway.cli.simulate", "simulate", "Play a provider on this machine, to rehearse."),
    "providers": _Entry("gateway.cli.providers", "app", "List provider types, and what is known about each."),
    "catalog": _Entry("gateway.cli.catalog", "app", "Make the snapshot of prices anew."),
    "local": _Entry("gateway.cli.local", "app", "Fetch and manage the bundled engine's models."),
    "db": _Entry("gateway.cli.db", "app", "Upgrade the database, or show its revision."),
}


class _LazyGroup(TyperGroup):
    """Lists its commands from the table, and imports the one that is run."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        entry = COMMANDS.get(cmd_name)
        return TyperCommand(cmd_name, help=entry.help) if entry is not None else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        self.commands = dict.fromkeys(COMMANDS)  # type: ignore[assignment]  # only its keys are read, for suggestions
        name, command, rest = super().resolve_command(ctx, args)
        return name, _load(name) if name and command is not None else command, rest


def command_app(name: str) -> typer.Typer:
    """The app behind a command of the table; imports what the command needs."""
    entry = COMMANDS[name]
    target = getattr(importlib.import_module(entry.module), entry.attribute)
    if not isinstance(target, typer.Typer):
        function, target = target, typer.Typer(add_completion=False)
        target.command(name)(function)
    target.pretty_exceptions_enable = False
    target._add_completion = False
    target.rich_markup_mode = _MARKUP
    return target


def _load(name: str) -> Any:
    command = typer.main.get_command(command_app(name))
    command.name = name
    return command


app = typer.Typer(
    cls=_LazyGroup,
    name=COMMAND,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=_MARKUP,
    pretty_exceptions_enable=False,
    help="One OpenAI-compatible endpoint in front of hosted and self-hosted models.",
    epilog="Exit codes: 0 ok, 1 failed, 2 wrong usage, 3 wrong configuration, 4 a provider or service out of reach.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{COMMAND} {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", help="Show the version.", callback=_print_version, is_eager=True),
) -> None:
    """The options of the command itself; their callbacks do the work."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave the process with the exit code its outcome has."""
    prepare_streams()
    with Interruptions() as interruptions:
        code = close_output(_run(arguments))
    if interruptions.number is not None:
        tell(told(interruptions.number))
        code = exit_code(interruptions.number)
    let_go(sys.stderr, 2)
    sys.exit(code)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        typer.main.get_command(app)(args=arguments, prog_name=COMMAND)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except KeyboardInterrupt:
        return exit_code(signal.SIGINT)
    except Exception as error:  # the edge: what has words of its own is told, the rest raised again
        known = _known_error(error)
        if known is None:
            raise
        message, code = known
        if message:
            tell(message)
        return code
    return 0


def _known_error(error: Exception) -> tuple[str, int] | None:
    """What to say, and the exit code, for an error in a file; imported only here, since it brings pydantic along."""
    said = told_of_output(error)
    if said is not None:
        let_go(sys.stdout, 1)
        return said, 1
    if "adapters.registry" not in sys.modules:
        return None
    from adapters.registry import SpecError
    from gateway.config.problems import ConfigError

    if isinstance(error, ConfigError):
        return error.render(), 3
    if isinstance(error, SpecError):
        return f"a provider file of this installation is wrong; install it again\n{error}", 1
    return None
