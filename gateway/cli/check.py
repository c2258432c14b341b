"""`gateway check`: is the configuration right, what would it serve, and do the targets answer?"""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer
from rich.text import Text

from gateway import interruption
from gateway.catalog import Catalog
from gateway.cli import console
from gateway.cli.console import ExitCode
from gateway.cli.live import Outcome, Probe, ask_all
from gateway.cli.options import ConfigFile
from gateway.config.problems import ConfigError, Problem
from gateway.settings import Settings, load_settings


def check(
    config: ConfigFile = None,
    live: Annotated[bool, typer.Option("--live", help="Send one tiny request to each target.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Validate a configuration and show what it would serve. Without a file: what the environment alone gives."""
    try:
        settings = load_settings(config, environ=os.environ)
    except ConfigError as error:
        if as_json:
            console.print_json({"ok": False, "problems": [_problem(problem) for problem in error.problems]})
            raise typer.Exit(ExitCode.CONFIG) from None
        raise
    catalog = Catalog.build(settings)
    probes = interruption.run(ask_all(settings, catalog)) if live else []
    if as_json:
        console.print_json(_report(settings, catalog, probes))
    else:
        _print(settings, catalog, probes)
    if any(probe.outcome is Outcome.FAIL for probe in probes):
        raise typer.Exit(ExitCode.UNREACHABLE)


def _print(settings: Settings, catalog: Catalog, probes: list[Probe]) -> None:
    out = console.out()
    for note in settings.notes:
        console.note(note)
    out.print(Text(f"{settings.source or 'the environment'} is right."))
    width = max((len(name) for name in (*catalog.models, *catalog.aliases)), default=0)
    for model in catalog.models.values():
        out.print(Text(f"  {model.id:{width}}  {', '.join(target.name for target in model.targets)}"))
    for alias, name in catalog.aliases.items():
        out.print(Text(f"  {alias:{width}}  = {name}"))
    styles = {Outcome.OK: "green", Outcome.FAIL: "bold red", Outcome.SKIP: "yellow"}
    for probe in probes:
        out.print(
            Text.assemble((f"{probe.outcome.value:4}", styles[probe.outcome]), f"  {probe.target}  {probe.detail}")
        )


def _report(settings: Settings, catalog: Catalog, probes: list[Probe]) -> dict[str, Any]:
    return {
        "ok": all(probe.outcome is not Outcome.FAIL for probe in probes),
        "file": settings.source or None,
        "notes": list(settings.notes),
        "models": {model.id: [target.name for target in model.targets] for model in catalog.models.values()},
        "aliases": dict(catalog.aliases),
        "live": [{"target": probe.target, "outcome": probe.outcome, "detail": probe.detail} for probe in probes],
    }


def _problem(problem: Problem) -> dict[str, Any]:
    return {
        "file": problem.file,
        "line": problem.line or None,
        "column": problem.column or None,
        "path": problem.path,
        "message": problem.message,
    }
